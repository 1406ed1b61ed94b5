/* cache/index.c - one shard's table from keys to nodes.
 *
 * Chained buckets, indexed by the low bits of the digest (already seeded, so nobody can aim at one
 * bucket). While the table doubles, bucket i of the old array becomes i and i + n_old of the new
 * one; a key belongs to the old array exactly as long as its old bucket has not moved. */
#include "cache/index.h"

#include "base/check.h"

/* SLOT_BYTES: what a node costs in the arrays, between doublings. */
enum { BUCKETS_AT_FIRST = 256, MOVES_PER_CHANGE = 4, SLOT_BYTES = 2 * sizeof(void *) };

void
index_init(struct index *ix)
{
    *ix = (struct index){.n_buckets = BUCKETS_AT_FIRST};
    ix->buckets = mem_zalloc(BUCKETS_AT_FIRST * sizeof *ix->buckets);
}

void
index_free(struct index *ix)
{
    CHECK(ix->n_nodes == 0);
    mem_free(ix->buckets);
    mem_free(ix->old);
    *ix = (struct index){0};
}

static struct store_node **
bucket_of(const struct index *ix, uint64_t hash)
{
    size_t i = hash & (ix->n_old - 1);

    if (ix->old && i >= ix->moved)
        return &ix->old[i];
    return &ix->buckets[hash & (ix->n_buckets - 1)];
}

static void
bucket_move(struct index *ix)
{
    struct store_node *node = ix->old[ix->moved], *next;

    ix->old[ix->moved++] = NULL;
    for (; node; node = next) {
        struct store_node **to = &ix->buckets[node->digest[0] & (ix->n_buckets - 1)];

        next = node->next;
        node->next = *to;
        *to = node;
    }
}

static void
some_buckets_move(struct index *ix)
{
    for (unsigned i = 0; ix->old && i < MOVES_PER_CHANGE; i++) {
        bucket_move(ix);
        if (ix->moved == ix->n_old) {
            mem_free(ix->old);
            ix->old = NULL;
        }
    }
}

static void
grow_when_full(struct index *ix)
{
    if (ix->n_nodes < ix->n_buckets || ix->old)
        return;
    ix->old = ix->buckets;
    ix->n_old = ix->n_buckets;
    ix->moved = 0;
    ix->n_buckets *= 2;
    ix->buckets = mem_zalloc(ix->n_buckets * sizeof *ix->buckets);
}

static bool
node_is_of(const struct store_node *node, const struct cache_key *key)
{
    return node->digest[0] == key->digest[0] && node->digest[1] == key->digest[1] &&
           node->uri_n == key->uri.n && memcmp(node->uri, key->uri.at, key->uri.n) == 0;
}

struct store_node *
index_find(const struct index *ix, const struct cache_key *key)
{
    struct store_node *node = *bucket_of(ix, key->digest[0]);

    while (node && !node_is_of(node, key))
        node = node->next;
    return node;
}

static struct store_node *
node_new(const struct cache_key *key)
{
    struct store_node *node = mem_zalloc(sizeof *node + key->uri.n);

    CHECK(key->uri.n <= UINT32_MAX);
    node->digest[0] = key->digest[0];
    node->digest[1] = key->digest[1];
    list_init(&node->variants);
    list_init(&node->bare);
    node->uri_n = (uint32_t)key->uri.n;
    memcpy(node->uri, key->uri.at, key->uri.n);
    node->charged = (uint32_t)(mem_size(node) + SLOT_BYTES);
    return node;
}

struct store_node *
index_add(struct index *ix, const struct cache_key *key)
{
    struct store_node *node = node_new(key), **bucket;

    grow_when_full(ix);
    some_buckets_move(ix);
    bucket = bucket_of(ix, node->digest[0]);
    node->next = *bucket;
    *bucket = node;
    ix->n_nodes++;
    return node;
}

void
index_remove(struct index *ix, struct store_node *node)
{
    struct store_node **at = bucket_of(ix, node->digest[0]);

    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    ix->n_nodes--;
    mem_free(node->vary_names);
    mem_free(node);
}

static void
buckets_each(struct store_node *const *buckets, size_t n,
             void (*fn)(void *arg, struct store_node *node), void *arg)
{
    for (size_t i = 0; i < n; i++)
        for (struct store_node *node = buckets[i]; node; node = node->next)
            fn(arg, node);
}

void
index_each(const struct index *ix, void (*fn)(void *arg, struct store_node *node), void *arg)
{
    buckets_each(ix->buckets, ix->n_buckets, fn, arg);
    if (ix->old)
        buckets_each(ix->old + ix->moved, ix->n_old - ix->moved, fn, arg);
}
