/* cache/evict.h - which stored response gives way: a policy over one shard's entries, in the order
 * it keeps them.
 *
 * All calls come under the shard's lock. An entry's links are entry.lru; how often it was used, and
 * in which of the two lists it stands, the policy notes in the entry. */
#ifndef CACHE_EVICT_H
#define CACHE_EVICT_H

#include "cache/entry.h"

struct ghost;
struct evict_order {
    const struct evict_policy *policy;
    struct list small, main; /* newest first; LRU has only main */
    uint64_t small_bytes, bytes;
    struct ghost *ghost; /* S3-FIFO: what was dropped from small lately */
};

struct evict_policy {
    const char *name;
    /* hash: of its key. */
    void (*insert)(struct evict_order *o, struct entry *e, uint64_t hash);
    void (*touch)(struct evict_order *o, struct entry *e); /* it was used */
    struct entry *(*victim)(struct evict_order *o); /* the next to go, and it does go; NULL: none */
};

extern const struct evict_policy evict_lru;
/* S3-FIFO (Yang et al., SOSP 2023) by bytes: what is new goes through a tenth of the room, and only
 * what is used twice there, or comes back soon after it was dropped, gets into the rest. */
extern const struct evict_policy evict_s3fifo;

void evict_init(struct evict_order *o, const struct evict_policy *policy);
void evict_free(struct evict_order *o);
void evict_remove(struct evict_order *o, struct entry *e);
void evict_recharge(struct evict_order *o, struct entry *e, size_t charged); /* sets e->charged */
/* It gave way to others: S3-FIFO remembers it. */
void evict_remember(struct evict_order *o, const struct entry *e, uint64_t hash);
/* Which would be the next, roughly; changes nothing. NULL: none. */
struct entry *evict_coldest(const struct evict_order *o);
/* How much it looks back, and for how many; returns how many bytes of memory it took more. */
size_t evict_size(struct evict_order *o, uint64_t limit_bytes, size_t entries);
const struct evict_policy *evict_policy_named(const char *name); /* NULL: LRU */

#endif
