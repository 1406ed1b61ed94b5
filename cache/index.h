/* cache/index.h - one shard's table from keys to nodes. Private to store.c.
 *
 * Pure bookkeeping under the shard's lock. The table grows by doubling; the nodes move a few
 * buckets at a time, so that no lookup ever waits for a rehash. */
#ifndef CACHE_INDEX_H
#define CACHE_INDEX_H

#include "base/list.h"
#include "cache/key.h"

struct ticket;

struct store_node {
    struct store_node *next; /* in its bucket */
    uint64_t digest[2];
    struct list variants;   /* entries, newest Date first */
    struct ticket *tickets; /* pending fills, newest first */
    char *vary_names; /* "accept,cookie": what the newest response selected by; NULL: nothing */
    int64_t unshared_until_ms; /* what came last is not for all; 0: not remembered as such */
    struct list bare;          /* in the shard's queue while only that memory keeps the node */
    uint32_t n_variants, charged;
    uint32_t uri_n;
    bool anonymous_share; /* with that memory: they go on sharing among themselves */
    char uri[];
};

struct index {
    struct store_node **buckets, **old; /* old: being moved, NULL when done */
    size_t n_buckets, n_old, moved;     /* powers of two; old buckets below `moved` are empty */
    size_t n_nodes;
};

void index_init(struct index *ix);
void index_free(struct index *ix); /* must be empty */
struct store_node *index_find(const struct index *ix, const struct cache_key *key);
struct store_node *index_add(struct index *ix,
                             const struct cache_key *key); /* not there yet; charged is set */
/* Nothing is added or removed meanwhile. */
void index_each(const struct index *ix, void (*fn)(void *arg, struct store_node *node), void *arg);
void index_remove(struct index *ix, struct store_node *node); /* frees it */

#endif
