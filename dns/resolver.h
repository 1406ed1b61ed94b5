/* dns/resolver.h - names to addresses on this loop. The only module that knows c-ares.
 *
 * One resolver per worker (its name servers are asked on the worker's loop), one answer_cache for
 * all. The server that answered last, whichever worker it was, is asked first. A question that
 * another exchange of this worker has under way is joined. A and AAAA are asked side by side; the
 * answer comes when both are in, or 50 ms after the first useful one (RFC 8305 section 3); the
 * later family still enters the cache. One family that fails does not fail the name. Callbacks come
 * from the loop, once per query, never from inside resolver_ask. */
#ifndef DNS_RESOLVER_H
#define DNS_RESOLVER_H

#include "base/addr.h"
#include "base/loop.h"

#define DNS_ADDRESSES 32

enum dns_status { DNS_OK, DNS_NO_NAME, DNS_FAILED, DNS_TIMEOUT, DNS_BAD_NAME };

struct dns_answer {
    enum dns_status status;
    unsigned n;
    /* interleaved by family, IPv6 first (RFC 8305 section 4); ports 0 */
    struct addr at[DNS_ADDRESSES];
    int64_t ttl_s;
    bool from_cache; /* answer cache, hosts file or literal */
};

struct resolver_options {
    /* "127.0.0.1:5353,[::1]:53"; NULL: those of /etc/resolv.conf. With several, a silent one gets
     * company after a second. */
    const char *nameservers;
    const char *hosts_file; /* NULL: none */
    int64_t timeout_ms;     /* dns_timeout: whole question */
    int64_t retransmit_ms;  /* dns_retransmit_interval */
    int64_t positive_ttl_s; /* upper bound, positive_dns_ttl */
    /* negative_dns_ttl: at most this long, never longer than the SOA says */
    int64_t negative_ttl_s;
    bool v4_first;             /* dns_v4_first (obsolete in Squid, kept as an order) */
    bool defnames;             /* dns_defnames: use the search list for names without a dot */
    const char *append_domain; /* NULL: none */
    uint64_t cache_entries;    /* ipcache_size, 0: 4096 */
};

struct resolver;
struct dns_query;
struct answer_cache;
typedef void dns_fn(void *owner, const struct dns_answer *a);

struct answer_cache *answer_cache_new(
    const struct resolver_options *o); /* reads the hosts file; re-reads it when its mtime changes
                                          (checked at most once a second) */
void answer_cache_free(struct answer_cache **c);
/* While others use it, by one thread at a time. What is kept ends no later than the new bounds say;
 * when other servers or completions are asked now, it is forgotten. */
void answer_cache_reconfigure(struct answer_cache *c, const struct resolver_options *o);
struct answer_cache_stats {
    uint64_t entries, hits, misses, negative_hits, hosts_entries;
};
void answer_cache_stats(struct answer_cache *c, struct answer_cache_stats *out);
void answer_cache_each(struct answer_cache *c,
                       void (*fn)(void *arg, struct span name, const struct dns_answer *a,
                                  int64_t left_s),
                       void *arg);

struct resolver *resolver_new(struct loop *l, struct answer_cache *shared,
                              const struct resolver_options *o);
/* New questions are asked under these options, of which nothing is kept; those under way end under
 * the old ones, and are not kept in the cache. */
void resolver_reconfigure(struct resolver *r, const struct resolver_options *o);
void resolver_free(struct resolver **r); /* pending queries are dropped without a callback */
/* true: *now holds the answer (literal, hosts file, cache, a name no resolver accepts). false: fn
 * will be called; *q can be cancelled until then. */
bool resolver_ask(struct resolver *r, struct span host, dns_fn *fn, void *owner,
                  struct dns_answer *now, struct dns_query **q);
void resolver_cancel(struct dns_query **q); /* no callback after this; NULL is fine */
/* A connect outcome, so that the next answer of this name starts with what works (RFC 8305 section
 * 4). */
void resolver_prefer(struct resolver *r, struct span host, const struct addr *worked);
const char *resolver_status_text(enum dns_status s);

#endif
