/* cache/store.c - the front door of the cache.
 *
 * A key's digest picks a shard; its lock guards the shard's table of nodes, the order in which its
 * entries give way, and everything in a node: variants, tickets, waiters, the memory that what
 * comes for a key is not for all. Under the lock there are only straight lines over one node
 * (shard.c).
 *
 * An entry can turn useless behind our back (its fill fails or hangs, its body becomes too large to
 * keep) before its owner withdraws it; so the body is asked at each lookup. */
#include "cache/store.h"

#include "base/check.h"
#include "base/clock.h"
#include "cache/shard.h"
#include "cache/tier.h"

#define STORE_MAGIC 0x5709e001u

enum { SHARDS = 16, UNSHARED_MS = 10000 };

/* ---- the store ---- */

struct store *
store_new(const struct store_options *o)
{
    struct store *s = mem_zalloc(sizeof *s);

    s->magic = STORE_MAGIC;
    atomic_init(&s->limit, o->limit_bytes);
    s->unshared_ms = o->unshared_ms ? o->unshared_ms : UNSHARED_MS;
    s->tiers = o->tiers;
    s->n_shards = o->shards ? o->shards : SHARDS;
    s->shards = mem_zalloc(s->n_shards * sizeof *s->shards);
    for (unsigned i = 0; i < s->n_shards; i++) {
        struct store_shard *shard = &s->shards[i];

        pthread_mutex_init(&shard->lock, NULL);
        index_init(&shard->index);
        evict_init(&shard->order, o->policy ? o->policy : &evict_lru);
        list_init(&shard->bare);
        atomic_init(&shard->victim_used_ms, INT64_MAX);
    }
    return s;
}

uint64_t
shard_purge_some(struct store *s, struct store_shard *shard, uint64_t n)
{
    struct list dead;

    list_init(&dead);
    pthread_mutex_lock(&shard->lock);
    for (struct entry *e; n && (e = evict_coldest(&shard->order)) != NULL; n--) {
        struct store_node *node = e->node;

        shard_variant_remove(s, shard, e, &dead);
        shard_node_settle(s, shard, node);
    }
    pthread_mutex_unlock(&shard->lock);
    shard_dead_release(&dead);
    return n; /* not found any more */
}

static void
shard_free(struct store *s, struct store_shard *shard)
{
    shard_purge_some(s, shard, UINT64_MAX);
    shard_trim_bare(s, shard, INT64_MAX);
    evict_free(&shard->order);
    index_free(&shard->index); /* a node left over is a ticket that was never ended */
    pthread_mutex_destroy(&shard->lock);
}

void
store_free(struct store **held)
{
    struct store *s = *held;

    CHECK_OBJ(s, STORE_MAGIC);
    *held = NULL;
    for (unsigned i = 0; i < s->n_shards; i++)
        shard_free(s, &s->shards[i]);
    mem_free(s->shards);
    FREE_OBJ(s);
}

void
store_limit(struct store *s, uint64_t limit_bytes)
{
    CHECK_OBJ(s, STORE_MAGIC);
    atomic_store_explicit(&s->limit, limit_bytes, memory_order_relaxed);
    shard_evict_to_limit(s);
}

/* ---- finding ---- */

static struct entry *
node_select(const struct store_node *node, const struct request_head *request, bool *vary_miss)
{
    for (struct list *l = node->variants.next; l != &node->variants; l = l->next) {
        struct entry *e = node_variant(l);

        if (e->part || !shard_entry_is_usable(e))
            continue;
        if (shard_entry_selected_by(e, request)) {
            *vary_miss = false;
            return e;
        }
        *vary_miss = true;
    }
    return NULL;
}

static void
entry_touch(struct store *s, struct store_shard *shard, struct entry *e)
{
    bool was_victim = evict_coldest(&shard->order) == e;

    e->used_ms = clock_mono_ms();
    e->hit = true;
    shard->order.policy->touch(&shard->order, e);
    if (was_victim)
        shard_note_victim(s, shard);
}

/* RFC 9111 sections 4 and 4.1. */
struct entry *
store_lookup(struct store *s, const struct cache_key *key, const struct request_head *request,
             bool *vary_miss)
{
    struct store_shard *shard = shard_of(s, key);
    struct store_node *node;
    struct entry *e = NULL;

    *vary_miss = false;
    pthread_mutex_lock(&shard->lock);
    node = index_find(&shard->index, key);
    if (node)
        e = node_select(node, request, vary_miss);
    if (e) {
        entry_touch(s, shard, e);
        entry_ref(e);
    }
    pthread_mutex_unlock(&shard->lock);
    return e;
}

/* RFC 9111 section 3.3: an incomplete response answers for the bytes it has. */
struct entry *
store_lookup_part(struct store *s, const struct cache_key *key, const struct request_head *request,
                  bool (*fits)(const void *arg, const struct entry *e), const void *arg)
{
    struct store_shard *shard = shard_of(s, key);
    struct store_node *node;
    struct entry *found = NULL;

    pthread_mutex_lock(&shard->lock);
    node = index_find(&shard->index, key);
    for (struct list *l = node ? node->variants.next : NULL;
         l && l != &node->variants && found == NULL; l = l->next) {
        struct entry *e = node_variant(l);

        if (e->part && shard_entry_is_usable(e) && shard_entry_selected_by(e, request) &&
            fits(arg, e))
            found = e;
    }
    if (found) {
        entry_touch(s, shard, found);
        entry_ref(found);
    }
    pthread_mutex_unlock(&shard->lock);
    return found;
}

/* RFC 9111 section 4.3.1: an If-None-Match may name the entity tags of all stored variants. */
unsigned
store_variants(struct store *s, const struct cache_key *key, struct entry **out, unsigned max)
{
    struct store_shard *shard = shard_of(s, key);
    struct store_node *node;
    unsigned n = 0;

    pthread_mutex_lock(&shard->lock);
    node = index_find(&shard->index, key);
    for (struct list *l = node ? node->variants.next : NULL; l && l != &node->variants && n < max;
         l = l->next) {
        struct entry *e = node_variant(l);

        if (e->part || !shard_entry_is_usable(e) ||
            (e->head->etag.n == 0 && e->head->last_modified_s < 0))
            continue;
        entry_ref(e);
        out[n++] = e;
    }
    pthread_mutex_unlock(&shard->lock);
    return n;
}

/* ---- changing what is there ---- */

static struct span
node_uri(const struct store_node *node)
{
    return span_of(node->uri, node->uri_n);
}

/* Under the lock: it is only queued there. */
static void
put_on_disk(struct store *s, struct store_node *node, struct entry *e)
{
    if (!s->tiers || e->on_disk || (e->part && e->part->whole == 0) ||
        body_state(e->body) != BODY_COMPLETE)
        return;
    e->on_disk = true;
    tiers_put(s->tiers, node_uri(node), e);
}

/* Its head is new; of a body that passed from the disk that is all there is to keep. */
void
shard_take_fresh(struct store *s, struct store_shard *shard, struct store_node *node,
                 struct entry *fresh, struct list *dead)
{
    if (body_mode(fresh->body) == BODY_KEEP && !shard_variant_add(s, shard, node, fresh, dead))
        return;
    if (!s->tiers || (fresh->part && fresh->part->whole == 0))
        return;
    fresh->on_disk = true;
    tiers_freshen(s->tiers, node_uri(node), fresh);
}

static void
take_from_disk(struct store *s, struct span uri)
{
    if (s->tiers)
        (void)tiers_remove(s->tiers, uri);
}

void
store_adopt(struct store *s, const struct cache_key *key, struct entry *e)
{
    struct store_shard *shard = shard_of(s, key);
    struct store_node *node;
    struct list dead;

    if (e->passing)
        return;
    list_init(&dead);
    pthread_mutex_lock(&shard->lock);
    node = index_find(&shard->index, key);
    if (node == NULL)
        node = shard_node_add(s, shard, key);
    if (shard_variant_with_spec(node, e->vary) == NULL && tiers_have(s->tiers, key->uri))
        shard_variant_add(s, shard, node, e, &dead);
    shard_node_settle(s, shard, node);
    pthread_mutex_unlock(&shard->lock);
    shard_dead_release(&dead);
    shard_evict_to_limit(s);
}

void
store_charge(struct store *s, struct entry *e)
{
    struct list dead;

    if (e->shard == NULL)
        return;
    list_init(&dead);
    pthread_mutex_lock(&e->shard->lock);
    if (e->node) {
        struct store_node *node = e->node;
        size_t cost = shard_entry_cost(e);

        store_total_add(s, cost);
        store_total_sub(s, e->charged);
        evict_recharge(&e->shard->order, e, cost);
        put_on_disk(s, node, e);
        if (cost > store_limit_of(s)) {
            shard_variant_remove(s, e->shard, e, &dead);
            shard_node_settle(s, e->shard, node);
        }
    }
    pthread_mutex_unlock(&e->shard->lock);
    shard_dead_release(&dead);
    shard_evict_to_limit(s);
}

void
store_withdraw(struct store *s, struct entry *e)
{
    struct list dead;

    if (e->shard == NULL)
        return;
    list_init(&dead);
    pthread_mutex_lock(&e->shard->lock);
    if (e->node) {
        struct store_node *node = e->node;

        if (body_state(e->body) == BODY_COMPLETE)
            take_from_disk(s, node_uri(node));
        shard_variant_remove(s, e->shard, e, &dead);
        shard_node_settle(s, e->shard, node);
    }
    pthread_mutex_unlock(&e->shard->lock);
    shard_dead_release(&dead);
}

/* The part that came of e, whose fill has broken off; a reference for the caller. */
static struct entry *
salvage(const struct entry *e)
{
    struct body *b = body_salvage(e->body);
    struct head *h = e->head;
    struct part p = {.from = e->part ? e->part->from : 0, .whole = entry_length(e)};

    head_ref(h);
    return entry_new_part(&h, &b, e->vary, body_published(e->body), &p);
}

void
store_salvage(struct store *s, struct entry *e)
{
    struct list dead;
    struct entry *part;

    if (e->shard == NULL || body_published(e->body) == 0 || entry_length(e) == UINT64_MAX ||
        (e->part && e->part->whole == 0) || !part_may_grow(e->head)) {
        store_withdraw(s, e);
        return;
    }
    part = salvage(e);
    list_init(&dead);
    pthread_mutex_lock(&e->shard->lock);
    if (e->node) {
        struct store_node *node = e->node;

        shard_variant_remove(s, e->shard, e, &dead);
        if (shard_variant_with_spec(node, e->vary) == NULL &&
            shard_variant_add(s, e->shard, node, part, &dead))
            put_on_disk(s, node, part);
        shard_node_settle(s, e->shard, node);
    }
    pthread_mutex_unlock(&e->shard->lock);
    entry_unref(&part);
    shard_dead_release(&dead);
    shard_evict_to_limit(s);
}

/* RFC 9111 section 4.3.5: a HEAD answer freshens too, without anybody having waited for it. */
void
store_refresh(struct store *s, struct entry *old, struct entry *fresh)
{
    struct list dead;

    if (old->shard == NULL)
        return;
    list_init(&dead);
    pthread_mutex_lock(&old->shard->lock);
    if (old->node) {
        struct store_node *node = old->node;

        shard_variant_remove(s, old->shard, old, &dead);
        shard_take_fresh(s, old->shard, node, fresh, &dead);
        shard_node_settle(s, old->shard, node);
    }
    pthread_mutex_unlock(&old->shard->lock);
    shard_dead_release(&dead);
    shard_evict_to_limit(s);
}

/* ---- reports ---- */

void
store_stats(struct store *s, struct store_stats *out)
{
    CHECK_OBJ(s, STORE_MAGIC);
    *out = (struct store_stats){.limit = store_limit_of(s)};
    out->bytes = atomic_load_explicit(&s->total, memory_order_relaxed);
    out->evicted = atomic_load_explicit(&s->evicted, memory_order_relaxed);
    for (unsigned i = 0; i < s->n_shards; i++) {
        pthread_mutex_lock(&s->shards[i].lock);
        out->entries += s->shards[i].n_entries;
        out->nodes += s->shards[i].index.n_nodes;
        pthread_mutex_unlock(&s->shards[i].lock);
    }
}

static void
each_in(const struct list *order, void (*fn)(void *arg, struct span uri, const struct entry *e),
        void *arg, unsigned *max)
{
    for (const struct list *l = order->next; l != order && *max; l = l->next, (*max)--) {
        const struct entry *e = LIST_OWNER(l, struct entry, lru);

        fn(arg, span_of(e->node->uri, e->node->uri_n), e);
    }
}

void
store_each(struct store *s, void (*fn)(void *arg, struct span uri, const struct entry *e),
           void *arg, unsigned max)
{
    CHECK_OBJ(s, STORE_MAGIC);
    for (unsigned i = 0; i < s->n_shards && max; i++) {
        struct store_shard *shard = &s->shards[i];

        pthread_mutex_lock(&shard->lock);
        each_in(&shard->order.main, fn, arg, &max);
        each_in(&shard->order.small, fn, arg, &max);
        pthread_mutex_unlock(&shard->lock);
    }
}
