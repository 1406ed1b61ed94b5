/* cache/collapse.c - tickets and waiters: one fill for all who ask for the same (RFC 9111 section
 * 4).
 *
 * A ticket is a pending fill. Whether another request would select what it brings, and may have it,
 * is known only when it is there; until then we go by what the key's last response selected by and
 * by whom it was for. What comes is shown to all waiters it is selected by, and each judges it for
 * itself: to be found in the store is one thing, to be used without validation another. A waiter
 * that is woken with nothing tries again, and by then knows better. */
#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "cache/reuse.h"
#include "cache/shard.h"
#include "cache/vary.h"

#define TICKET_MAGIC 0x71c3e701u

enum { SCRATCH_BYTES = 1024 };

struct ticket {
    uint32_t magic;
    struct ticket *next; /* of the same node */
    struct store_shard *shard;
    struct store_node *node; /* it has the key's text */
    struct list waiters;
    struct span
        vary; /* the leader's selecting values, if what selects was known; behind the struct */
    int64_t started_ms;
    bool vary_known;
    bool collapse;  /* others may wait for it */
    bool anonymous; /* the leader sent no credentials */
    bool outdated;  /* the key was invalidated meanwhile: what comes may be older than that */
};

/* What became of it, as the waiters are told. */
struct outcome {
    struct entry *entry; /* NULL: nothing */
    bool failed;
    unsigned status;
};

/* The request's selecting values by the names the node knows; SPAN_NONE: no names are known. */
static struct span
node_spec_of(const struct store_node *node, const struct request_head *request, struct arena *a)
{
    struct field vary = {SPAN("Vary"), span_str(node->vary_names), FIELD_VARY};
    struct fields names = {&vary, 1, 1};
    bool never;

    return node->vary_names ? vary_spec(&names, &request->fields, a, &never) : SPAN_NONE;
}

static struct ticket *
ticket_new(struct store_shard *shard, struct store_node *node, const struct request_head *request,
           struct span spec, bool collapse)
{
    struct ticket *t = mem_zalloc(sizeof *t + spec.n);

    t->magic = TICKET_MAGIC;
    t->shard = shard;
    t->node = node;
    list_init(&t->waiters);
    t->vary_known = node->vary_names != NULL;
    if (spec.n)
        t->vary = span_of(memcpy(t + 1, spec.at, spec.n), spec.n);
    t->started_ms = clock_mono_ms();
    t->collapse = collapse;
    t->anonymous = request_is_anonymous(request);
    t->next = node->tickets;
    node->tickets = t;
    return t;
}

/* Whose answer would this request select? By what is known now: the answer may say otherwise, then
 * the waiter tries again. */
static struct ticket *
ticket_to_join(const struct store_node *node, struct span spec)
{
    bool known = node->vary_names != NULL;
    int64_t now_ms = clock_mono_ms();

    for (struct ticket *t = node->tickets; t; t = t->next) {
        if (!t->collapse || t->outdated || now_ms - t->started_ms >= STORE_PATIENCE_MS)
            continue;
        if (!known || (t->vary_known && span_eq(t->vary, spec)))
            return t;
    }
    return NULL;
}

static enum reserve
node_reserve(struct store_shard *shard, struct store_node *node, const struct request_head *request,
             bool collapse, struct store_waiter *w, struct ticket **ticket)
{
    char lent[SCRATCH_BYTES];
    struct arena scratch;
    struct ticket *joined;
    struct span spec;

    arena_init(&scratch, lent, sizeof lent);
    spec = node_spec_of(node, request, &scratch);
    joined = collapse ? ticket_to_join(node, spec) : NULL;
    if (joined) {
        w->node = node;
        w->until_ms = joined->started_ms + STORE_PATIENCE_MS;
        list_push_back(&joined->waiters, &w->link);
    } else {
        *ticket = ticket_new(shard, node, request, spec, collapse);
    }
    arena_free(&scratch);
    return joined ? RESERVE_WAIT : RESERVE_LEAD;
}

/* Would it only be delayed by waiting for what is not for it? As far as is remembered. */
static bool
node_shares_with(const struct store_node *node, const struct request_head *request)
{
    return node->unshared_until_ms <= clock_mono_ms() ||
           (node->anonymous_share && request_is_anonymous(request));
}

static void
waiter_prepare(struct store_waiter *w, struct store_shard *shard,
               const struct request_head *request)
{
    list_init(&w->link);
    w->shard = shard;
    w->node = NULL;
    w->entry = NULL;
    w->request = request;
}

/* Collapsed requests: RFC 9111 section 4. */
enum reserve
store_reserve(struct store *s, const struct cache_key *key, const struct request_head *request,
              bool collapse, struct store_waiter *w, struct ticket **ticket)
{
    struct store_shard *shard = shard_of(s, key);
    struct store_node *node;
    enum reserve reserve;

    *ticket = NULL;
    if (w)
        waiter_prepare(w, shard, request);
    pthread_mutex_lock(&shard->lock);
    node = index_find(&shard->index, key);
    if (node == NULL)
        node = shard_node_add(s, shard, key);
    collapse = collapse && w && node_shares_with(node, request);
    reserve = node_reserve(shard, node, request, collapse, w, ticket);
    shard_node_settle(s, shard, node);
    pthread_mutex_unlock(&shard->lock);
    return reserve;
}

/* Safe at any time, also when the ticket is ending on another thread right now. */
void
store_wait_cancel(struct store *s, struct store_waiter *w)
{
    struct entry *e;

    if (w->shard == NULL)
        return;
    pthread_mutex_lock(&w->shard->lock);
    if (w->node)
        list_remove(&w->link);
    w->node = NULL;
    e = w->entry;
    w->entry = NULL;
    pthread_mutex_unlock(&w->shard->lock);
    w->shard = NULL;
    if (e)
        entry_unref(&e);
}

static void
waiter_wake(struct store_waiter *w, const struct ticket *t, const struct outcome *o)
{
    list_remove(&w->link);
    w->node = NULL;
    if (o->entry && shard_entry_selected_by(o->entry, w->request)) {
        entry_ref(o->entry);
        w->entry = o->entry;
    }
    w->by_anonymous = t->anonymous;
    w->failed = o->failed;
    w->status = o->status;
    loop_wake(w->loop, w->task);
}

/* Under the lock, when a variant that came is there already: that alone would end the memory. */
static void
node_remember(const struct store *s, struct store_node *node, enum share share)
{
    if (share == SHARE_ALL)
        return;
    node->unshared_until_ms = clock_mono_ms() + s->unshared_ms;
    node->anonymous_share = share == SHARE_ANONYMOUS;
}

/* Under the lock: the ticket leaves its node, its waiters are told. */
static void
ticket_end(struct ticket *t, const struct outcome *o)
{
    struct ticket **at = &t->node->tickets;

    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    while (!list_empty(&t->waiters))
        waiter_wake(LIST_OWNER(t->waiters.next, struct store_waiter, link), t, o);
}

/* After it. */
static void
ticket_ended(struct store *s, struct ticket *t, struct list *dead)
{
    FREE_OBJ(t);
    shard_dead_release(dead);
    shard_evict_to_limit(s);
}

static struct ticket *
ticket_take(struct ticket **ticket)
{
    struct ticket *t = *ticket;

    CHECK_OBJ(t, TICKET_MAGIC);
    *ticket = NULL;
    return t;
}

void
store_publish(struct store *s, struct ticket **ticket, struct entry *e, enum share share)
{
    struct ticket *t = ticket_take(ticket);
    struct list dead;

    list_init(&dead);
    pthread_mutex_lock(&t->shard->lock);
    if (!t->outdated && shard_variant_add(s, t->shard, t->node, e, &dead))
        counter_add(COUNTER_STORED, 1);
    node_remember(s, t->node, share);
    ticket_end(t, &(struct outcome){.entry = e});
    shard_node_settle(s, t->shard, t->node);
    pthread_mutex_unlock(&t->shard->lock);
    ticket_ended(s, t, &dead);
}

/* RFC 9111 section 4.3.4. While we asked, `old` may have been evicted: then fresh takes its place
 * anyway. Or a newer response may have come: then that stays. */
void
store_freshen(struct store *s, struct ticket **ticket, struct entry *old, struct entry *fresh,
              enum share share)
{
    struct ticket *t = ticket_take(ticket);
    struct list dead;

    list_init(&dead);
    pthread_mutex_lock(&t->shard->lock);
    CHECK(old->node == NULL || old->node == t->node);
    if (old->node)
        shard_variant_remove(s, t->shard, old, &dead);
    if (!t->outdated && shard_variant_with_spec(t->node, fresh->vary) == NULL)
        shard_take_fresh(s, t->shard, t->node, fresh, &dead);
    node_remember(s, t->node, share);
    ticket_end(t, &(struct outcome){.entry = fresh});
    shard_node_settle(s, t->shard, t->node);
    pthread_mutex_unlock(&t->shard->lock);
    ticket_ended(s, t, &dead);
}

/* The store stays as it is. */
static void
ticket_end_empty(struct store *s, struct ticket **ticket, enum share share, const struct outcome *o)
{
    struct ticket *t = ticket_take(ticket);
    struct list dead;

    list_init(&dead);
    pthread_mutex_lock(&t->shard->lock);
    node_remember(s, t->node, share);
    ticket_end(t, o);
    shard_node_settle(s, t->shard, t->node);
    pthread_mutex_unlock(&t->shard->lock);
    ticket_ended(s, t, &dead);
}

void
store_stand_in(struct store *s, struct ticket **ticket, struct entry *e, unsigned status)
{
    ticket_end_empty(s, ticket, SHARE_ALL,
                     &(struct outcome){.entry = e, .failed = true, .status = status});
}

void
store_abandon(struct store *s, struct ticket **ticket, enum share share)
{
    ticket_end_empty(s, ticket, share, &(struct outcome){.entry = NULL});
}

void
collapse_outdate(struct store_node *node)
{
    for (struct ticket *t = node->tickets; t; t = t->next)
        t->outdated = true;
}
