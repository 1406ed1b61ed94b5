/* cache/shard.h - one part of the store. Private to store.c and collapse.c.
 *
 * All functions but shard_evict_to_limit and shard_dead_release are for under the shard's lock. */
#ifndef CACHE_SHARD_H
#define CACHE_SHARD_H

#include <pthread.h>

#include "cache/evict.h"
#include "cache/index.h"
#include "cache/store.h"

struct store_shard {
    pthread_mutex_t lock;
    struct index index;
    struct evict_order order;
    struct list bare; /* nodes that are only a memory, oldest first */
    size_t n_bare, bare_bytes;
    uint64_t n_entries;
    _Atomic int64_t victim_used_ms; /* INT64_MAX: there is none */
    char apart[64];                 /* no cache line shared with the next shard */
};

struct store {
    uint32_t magic;
    _Atomic uint64_t limit, total, evicted;
    _Atomic unsigned evict_from;
    int64_t unshared_ms;
    struct tiers *tiers;
    unsigned n_shards;
    struct store_shard *shards;
};

struct store_node *shard_node_add(struct store *s, struct store_shard *shard,
                                  const struct cache_key *key);
/* After each change to a node: it may be gone after this, when there was nothing left in it. */
void shard_node_settle(struct store *s, struct store_shard *shard, struct store_node *node);
void shard_trim_bare(struct store *s, struct store_shard *shard,
                     int64_t now_ms); /* drops expired memories, and the oldest of too many */

/* Makes e findable in place of the variant with an equal spec. false: nobody could use it, or it is
 * larger than the whole cache. */
bool shard_variant_add(struct store *s, struct store_shard *shard, struct store_node *node,
                       struct entry *e, struct list *dead);
/* The index's reference goes to `dead`, for shard_dead_release after the lock. The node is settled
 * by the caller. */
void shard_variant_remove(struct store *s, struct store_shard *shard, struct entry *e,
                          struct list *dead);
/* The whole one; parts are kept beside it. */
struct entry *shard_variant_with_spec(const struct store_node *node, struct span spec);
void shard_note_victim(struct store *s,
                       struct store_shard *shard); /* after the order's end has changed */
bool shard_entry_is_usable(const struct entry *e);
bool shard_entry_selected_by(const struct entry *e, const struct request_head *request);
/* store.c: after a 304 */
void shard_take_fresh(struct store *s, struct store_shard *shard, struct store_node *node,
                      struct entry *fresh, struct list *dead);
size_t shard_entry_cost(const struct entry *e);

/* Up to n of the coldest; returns how many were missing. store.c */
uint64_t shard_purge_some(struct store *s, struct store_shard *shard, uint64_t n);
void shard_dead_release(struct list *dead);
void shard_evict_to_limit(struct store *s);

void
collapse_outdate(struct store_node *node); /* collapse.c: what its tickets bring is not stored */

static inline struct store_shard *
shard_of(struct store *s, const struct cache_key *key)
{
    return &s->shards[key->digest[1] % s->n_shards];
}

static inline struct entry *
node_variant(struct list *link)
{
    return LIST_OWNER(link, struct entry, variants);
}

static inline void
store_total_add(struct store *s, uint64_t n_bytes)
{
    atomic_fetch_add_explicit(&s->total, n_bytes, memory_order_relaxed);
}

static inline void
store_total_sub(struct store *s, uint64_t n_bytes)
{
    atomic_fetch_sub_explicit(&s->total, n_bytes, memory_order_relaxed);
}

static inline uint64_t
store_limit_of(const struct store *s)
{
    return atomic_load_explicit(&s->limit, memory_order_relaxed);
}

#endif
