/* dns/soa.h - how long may a negative answer be kept? (RFC 2308 section 5)
 *
 * Pure; reads a whole DNS message (RFC 1035 section 4.1) and never past it. */
#ifndef DNS_SOA_H
#define DNS_SOA_H

#include "base/span.h"

/* The smaller of TTL and MINIMUM of the SOA in the authority section.
 * false: the message has none, or breaks off before it. */
bool soa_negative_ttl(struct span message, uint32_t *ttl_s);

#endif
