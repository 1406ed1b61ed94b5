/* dns/answer_cache.h - what the resolver needs of the cache that resolver.h shows to others.
 *
 * Thread-safe. An entry holds one answer per family, each with its own end, so that a family that
 * fails or comes late does not shorten the other's life. */
#ifndef DNS_ANSWER_CACHE_H
#define DNS_ANSWER_CACHE_H

#include "dns/name.h"
#include "dns/order.h"

/* SERVFAIL, REFUSED and the like say something of a moment at the server, nothing of the name. A
 * timeout holds longer: whoever asks again waits as long again. */
#define FAILURE_TTL_S 2
#define TIMEOUT_TTL_S 10

/* How long this may be kept: its ttl_s within what the operator allows. Failures bring none. */
int64_t answer_cache_lifetime(const struct answer_cache *c, const struct half_answer *h);
/* h: HALVES of them; HALF_NONE leaves that family as it is. Addresses with ttl_s 0 are not kept
 * (RFC 1035 section 3.2.1) and end the older ones; a failure does not displace addresses that are
 * still good. */
void answer_cache_put(struct answer_cache *c, const struct dns_name *name,
                      const struct half_answer *h);
/* Hosts file, localhost (RFC 6761 section 6.3), then the kept answers. false: ask. */
bool answer_cache_find(struct answer_cache *c, const struct dns_name *name, struct dns_answer *out);
void answer_cache_prefer(struct answer_cache *c, const struct dns_name *name,
                         const struct addr *worked);
/* false: nothing is known to have worked. */
bool answer_cache_worked(struct answer_cache *c, const struct dns_name *name, struct addr *out);
/* Which of the name servers answered last, as the workers tell each other: only the first of them
 * waits for one that is dead. 0 at first; the place in a list that may have become shorter. */
unsigned answer_cache_first_server(const struct answer_cache *c);
void answer_cache_answered(struct answer_cache *c, unsigned server);

#endif
