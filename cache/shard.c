/* cache/shard.c - one part of the store: its nodes, their variants, what they cost, and who gives
 * way.
 *
 * The bytes of all shards are one atomic total. Whoever has added to it evicts until it fits again,
 * each time from the shard whose next victim has been unused for longest; so each shard shows that
 * time. What is taken out under the lock is put aside and released after it: a large body takes its
 * time to free. */
#include "cache/shard.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "cache/tier.h"
#include "cache/vary.h"

enum {
    VARIANTS_MOST = 64, /* of one key: a lookup walks them under the lock */
    BARE_MOST = 4096,   /* nodes that are only a memory, per shard */
    BARE_BYTES_MOST = 1024 * 1024,
    SCRATCH_BYTES = 1024
};

/* ---- accounting ---- */

size_t
shard_entry_cost(const struct entry *e)
{
    return mem_size(e) + e->head->bytes + body_bytes_held(e->body);
}

bool
shard_entry_is_usable(const struct entry *e)
{
    return body_mode(e->body) == BODY_KEEP && body_state(e->body) != BODY_FAILED &&
           body_quiet_ms(e->body) < STORE_PATIENCE_MS; /* nobody joins a fetch that hangs */
}

bool
shard_entry_selected_by(const struct entry *e, const struct request_head *request)
{
    char lent[SCRATCH_BYTES];
    struct arena scratch;
    bool selected;

    if (e->vary.n == 0)
        return true;
    arena_init(&scratch, lent, sizeof lent);
    selected = vary_matches(e->vary, &request->fields, &scratch);
    arena_free(&scratch);
    return selected;
}

/* ---- nodes; all under the shard's lock ---- */

struct store_node *
shard_node_add(struct store *s, struct store_shard *shard, const struct cache_key *key)
{
    struct store_node *node = index_add(&shard->index, key);

    store_total_add(s, node->charged);
    return node;
}

static void
node_leaves_bare(struct store_shard *shard, struct store_node *node)
{
    if (list_empty(&node->bare))
        return;
    list_remove(&node->bare);
    shard->n_bare--;
    shard->bare_bytes -= node->charged;
}

static void
node_free(struct store *s, struct store_shard *shard, struct store_node *node)
{
    node_leaves_bare(shard, node);
    store_total_sub(s, node->charged);
    index_remove(&shard->index, node);
}

/* All have the same time to live, so the first is the next to expire. */
void
shard_trim_bare(struct store *s, struct store_shard *shard, int64_t now_ms)
{
    while (!list_empty(&shard->bare)) {
        struct store_node *oldest = LIST_OWNER(shard->bare.next, struct store_node, bare);

        if (oldest->unshared_until_ms > now_ms && shard->n_bare <= BARE_MOST &&
            shard->bare_bytes <= BARE_BYTES_MOST)
            return;
        node_free(s, shard, oldest);
    }
}

void
shard_node_settle(struct store *s, struct store_shard *shard, struct store_node *node)
{
    int64_t now_ms;

    if (node->n_variants || node->tickets) {
        node_leaves_bare(shard, node);
        return;
    }
    now_ms = clock_mono_ms();
    if (node->unshared_until_ms <= now_ms) {
        node_free(s, shard, node);
        return;
    }
    if (!list_empty(&node->bare))
        return;
    list_push_back(&shard->bare, &node->bare);
    shard->n_bare++;
    shard->bare_bytes += node->charged;
    shard_trim_bare(s, shard, now_ms);
}

static void
node_charge_names(struct store *s, struct store_node *node, char *names)
{
    uint32_t was = (uint32_t)mem_size(node->vary_names), is = (uint32_t)mem_size(names);

    mem_free(node->vary_names);
    node->vary_names = names;
    node->charged += is - was;
    store_total_add(s, is);
    store_total_sub(s, was);
}

/* "accept: x\ncookie\n" -> "accept,cookie": what the next request for this key is compared by. */
static void
node_learn_names(struct store *s, struct store_node *node, struct span spec)
{
    char *names, *to;

    if (spec.n == 0) {
        if (node->vary_names)
            node_charge_names(s, node, NULL);
        return;
    }
    names = to = mem_alloc(spec.n + 1);
    while (spec.n) {
        struct span line = span_first(spec, span_index(spec, '\n'));
        size_t n = span_index(line, ':');

        memcpy(to, line.at, n);
        to += n;
        *to++ = ',';
        spec = span_skip(spec, line.n + 1);
    }
    to[-1] = '\0';
    node_charge_names(s, node, mem_realloc(names, (size_t)(to - names)));
}

/* ---- variants; all under the shard's lock ---- */

void
shard_note_victim(struct store *s, struct store_shard *shard)
{
    const struct entry *victim = evict_coldest(&shard->order);

    atomic_store_explicit(&shard->victim_used_ms, victim ? victim->used_ms : INT64_MAX,
                          memory_order_relaxed);
}

void
shard_variant_remove(struct store *s, struct store_shard *shard, struct entry *e, struct list *dead)
{
    e->node->n_variants--;
    e->node = NULL;
    list_remove(&e->variants);
    evict_remove(&shard->order, e);
    list_push_back(dead, &e->lru);
    shard->n_entries--;
    store_total_sub(s, e->charged);
    e->charged = 0;
    shard_note_victim(s, shard);
}

void
shard_dead_release(struct list *dead)
{
    while (!list_empty(dead)) {
        struct entry *e = LIST_OWNER(dead->next, struct entry, lru);

        list_remove(&e->lru);
        entry_unref(&e);
    }
}

struct entry *
shard_variant_with_spec(const struct store_node *node, struct span spec)
{
    for (struct list *l = node->variants.next; l != &node->variants; l = l->next) {
        if (!node_variant(l)->part && span_eq(node_variant(l)->vary, spec))
            return node_variant(l);
    }
    return NULL;
}

static struct entry *
variant_coldest(const struct store_node *node)
{
    struct entry *coldest = node_variant(node->variants.prev);

    for (struct list *l = node->variants.next; l != &node->variants; l = l->next) {
        if (node_variant(l)->used_ms < coldest->used_ms)
            coldest = node_variant(l);
    }
    return coldest;
}

/* RFC 9111 section 4: of several that fit, the most recent by Date is used; so they stand in that
 * order, and of equal ones the later arrival first. */
static void
variant_place(struct store_node *node, struct entry *e)
{
    struct list *before = &node->variants;

    while (before->next != &node->variants &&
           node_variant(before->next)->head->date_s > e->head->date_s)
        before = before->next;
    list_insert_after(before, &e->variants);
    node->n_variants++;
}

/* A whole response takes the place of the one with its spec and of the parts of it; a part that of
 * parts which are of no use beside it. */
static bool
variant_replaces(const struct entry *e, const struct entry *old)
{
    if (!span_eq(e->vary, old->vary))
        return false;
    if (!e->part)
        return true;
    return old->part && part_replaces(e->part, entry_bytes(e), old->part, entry_bytes(old));
}

/* Makes room in the node: what e replaces, and the least used of too many. */
static void
variants_make_room(struct store *s, struct store_shard *shard, struct store_node *node,
                   const struct entry *e, struct list *dead)
{
    for (struct list *l = node->variants.next, *next; l != &node->variants; l = next) {
        next = l->next;
        if (variant_replaces(e, node_variant(l)))
            shard_variant_remove(s, shard, node_variant(l), dead);
    }
    while (node->n_variants >= VARIANTS_MOST) {
        shard_variant_remove(s, shard, variant_coldest(node), dead);
        atomic_fetch_add_explicit(&s->evicted, 1, memory_order_relaxed);
        counter_add(COUNTER_EVICTED, 1);
    }
}

/* An entry larger than the limit would push out everything else for nothing. */
bool
shard_variant_add(struct store *s, struct store_shard *shard, struct store_node *node,
                  struct entry *e, struct list *dead)
{
    size_t cost = shard_entry_cost(e);

    CHECK(e->node == NULL);
    variants_make_room(s, shard, node, e, dead);
    if (!shard_entry_is_usable(e) || cost > store_limit_of(s))
        return false;
    entry_ref(e);
    e->shard = shard;
    e->node = node;
    e->used_ms = clock_mono_ms();
    e->charged = cost;
    variant_place(node, e);
    shard->order.policy->insert(&shard->order, e, node->digest[0]);
    shard->n_entries++;
    store_total_add(
        s, cost + evict_size(&shard->order, store_limit_of(s) / s->n_shards, shard->n_entries));
    shard_note_victim(s, shard);
    node_learn_names(s, node, e->vary);
    node->unshared_until_ms = 0;
    return true;
}

/* ---- eviction; without a lock ---- */

/* Starts somewhere else each time, so that shards of equal age take turns. */
static struct store_shard *
shard_to_evict_from(struct store *s)
{
    unsigned from = atomic_fetch_add_explicit(&s->evict_from, 1, memory_order_relaxed);
    struct store_shard *oldest = NULL;
    int64_t oldest_ms = INT64_MAX;

    for (unsigned i = 0; i < s->n_shards; i++) {
        struct store_shard *shard = &s->shards[(from + i) % s->n_shards];
        int64_t ms = atomic_load_explicit(&shard->victim_used_ms, memory_order_relaxed);

        if (ms < oldest_ms) {
            oldest = shard;
            oldest_ms = ms;
        }
    }
    return oldest;
}

static void
evict_one(struct store *s, struct store_shard *shard)
{
    struct list dead;
    struct entry *victim;

    list_init(&dead);
    pthread_mutex_lock(&shard->lock);
    victim = shard->order.policy->victim(&shard->order);
    if (victim) {
        struct store_node *node = victim->node;

        evict_remember(&shard->order, victim, node->digest[0]);
        if (s->tiers && victim->hit && victim->on_disk)
            tiers_used(s->tiers, span_of(node->uri, node->uri_n), victim);
        shard_variant_remove(s, shard, victim, &dead);
        shard_node_settle(s, shard, node);
    }
    pthread_mutex_unlock(&shard->lock);
    if (victim == NULL)
        return;
    atomic_fetch_add_explicit(&s->evicted, 1, memory_order_relaxed);
    counter_add(COUNTER_EVICTED, 1);
    shard_dead_release(&dead);
}

void
shard_evict_to_limit(struct store *s)
{
    struct store_shard *shard;

    while (atomic_load_explicit(&s->total, memory_order_relaxed) > store_limit_of(s)) {
        shard = shard_to_evict_from(s);
        if (shard == NULL)
            return;
        evict_one(s, shard);
    }
}
