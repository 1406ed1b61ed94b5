/* dns/name.h - a host name as the resolver asks for it and as the answer cache finds it.
 *
 * Pure but for the seed of the hash, drawn once per process: clients choose the names, so they must
 * not be able to choose the buckets. */
#ifndef DNS_NAME_H
#define DNS_NAME_H

#include "base/span.h"

#define NAME_MAX_BYTES 253 /* RFC 1035 section 2.3.4, as text without the last dot */
#define NAME_LABEL_BYTES 63

struct dns_name {
    uint64_t hash;               /* of the key */
    uint8_t n;                   /* without the last dot */
    bool dotted;                 /* has a dot inside: never completed from a search list */
    bool absolute;               /* had a dot at its end */
    char at[NAME_MAX_BYTES + 3]; /* lower case */
};

/* Letters, digits, "-" and "_" in labels of 1 to 63, 253 in all, at most one dot at the end
 * (RFC 1123 section 2.1; "_" is in use). false: no resolver would take it. */
bool name_read(struct span host, struct dns_name *out);
/* "printer." and "printer" may be different hosts, "www.test." and "www.test" are not. */
struct span name_key(const struct dns_name *name);
static inline struct span
name_text(const struct dns_name *name)
{
    return span_of(name->at, name->n);
}
/* "localhost" and all below it (RFC 6761 section 6.3). */
bool name_is_localhost(const struct dns_name *name);
uint64_t name_hash(struct span lower_case);

#endif
