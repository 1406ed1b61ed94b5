/* cache/purge.c - taking out on purpose: one key, all that start alike, everything.
 *
 * What is being fetched meanwhile may have left the origin before the change that made somebody ask
 * for this: those who wait for it asked before, and may have it, but it is not stored. The disk
 * comes before memory, or what has just been read from there would be in memory again. */
#include "base/check.h"
#include "cache/shard.h"
#include "cache/tier.h"

enum { PURGE_AT_ONCE = 256 };

static unsigned
node_purge(struct store *s, struct store_shard *shard, struct store_node *node, struct list *dead)
{
    unsigned n = 0;

    for (; node->n_variants; n++)
        shard_variant_remove(s, shard, node_variant(node->variants.next), dead);
    collapse_outdate(node);
    shard_node_settle(s, shard, node);
    return n;
}

/* RFC 9111 section 4.4. */
unsigned
store_invalidate(struct store *s, const struct cache_key *key)
{
    struct store_shard *shard = shard_of(s, key);
    struct store_node *node;
    bool on_disk = s->tiers && tiers_remove(s->tiers, key->uri);
    struct list dead;
    unsigned n = 0;

    list_init(&dead);
    pthread_mutex_lock(&shard->lock);
    node = index_find(&shard->index, key);
    if (node)
        n = node_purge(s, shard, node, &dead);
    pthread_mutex_unlock(&shard->lock);
    shard_dead_release(&dead);
    return n ? n : on_disk;
}

/* ---- all that start alike ---- */

struct alike {
    struct span prefix;
    struct store_node **nodes;
    size_t n, room;
};

static void
alike_add(void *arg, struct store_node *node)
{
    struct alike *a = arg;

    if (!span_starts(span_of(node->uri, node->uri_n), a->prefix))
        return;
    if (a->n == a->room) {
        a->room = a->room ? a->room * 2 : 64;
        a->nodes = mem_realloc(a->nodes, a->room * sizeof *a->nodes);
    }
    a->nodes[a->n++] = node;
}

/* A walk over one shard's table is some milliseconds at most; others go on with the other shards.
 */
static uint64_t
shard_purge_prefix(struct store *s, struct store_shard *shard, struct span prefix)
{
    struct alike a = {.prefix = prefix};
    struct list dead;
    uint64_t n = 0;

    list_init(&dead);
    pthread_mutex_lock(&shard->lock);
    index_each(&shard->index, alike_add, &a);
    for (size_t i = 0; i < a.n; i++)
        n += node_purge(s, shard, a.nodes[i], &dead);
    pthread_mutex_unlock(&shard->lock);
    shard_dead_release(&dead);
    mem_free(a.nodes);
    return n;
}

uint64_t
store_purge_prefix(struct store *s, struct span prefix)
{
    uint64_t n = 0;

    if (s->tiers)
        tiers_purge_prefix(s->tiers, prefix);
    for (unsigned i = 0; i < s->n_shards; i++)
        n += shard_purge_prefix(s, &s->shards[i], prefix);
    return n;
}

/* ---- everything ---- */

/* As many as there are now: others go on storing meanwhile. */
void
store_purge_all(struct store *s)
{
    if (s->tiers)
        tiers_clear(s->tiers);
    for (unsigned i = 0; i < s->n_shards; i++) {
        struct store_shard *shard = &s->shards[i];
        uint64_t left;

        pthread_mutex_lock(&shard->lock);
        left = shard->n_entries;
        pthread_mutex_unlock(&shard->lock);
        while (left) {
            uint64_t some = left < PURGE_AT_ONCE ? left : PURGE_AT_ONCE;

            left = shard_purge_some(s, shard, some) ? 0 : left - some;
        }
    }
}
