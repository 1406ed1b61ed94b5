/* dns/queries.c - those who ask: joining a name that is under way, and being told.
 *
 * The askers are told from a deferred task and nowhere else: c-ares may call back from inside
 * name_server_ask, and an asker may ask again, or cancel another query, from inside its callback.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "dns/resolver_private.h"

#define QUERY_MAGIC 0xd2501e03u

/* ---- life ---- */

void
dns_query_free(struct dns_query **held)
{
    struct dns_query *q = *held;

    *held = NULL;
    CHECK_OBJ(q, QUERY_MAGIC);
    list_remove(&q->link);
    FREE_OBJ(q);
}

static void
queries_free(struct list *queries)
{
    while (!list_empty(queries)) {
        struct dns_query *q = LIST_OWNER(queries->next, struct dns_query, link);

        dns_query_free(&q);
    }
}

static void
list_free(struct list *lookups)
{
    while (!list_empty(lookups)) {
        struct lookup *l = LIST_OWNER(lookups->next, struct lookup, link);

        queries_free(&l->queries);
        lookup_free(l);
    }
}

void
queries_end(struct resolver *r)
{
    for (unsigned i = 0; i < LOOKUP_BUCKETS; i++)
        list_free(&r->buckets[i]);
    list_free(&r->lingering);
}

void
queries_detach(struct resolver *r)
{
    for (unsigned i = 0; i < LOOKUP_BUCKETS; i++)
        list_move_all(&r->lingering, &r->buckets[i]);
}

/* ---- joining ---- */

static struct list *
bucket_of(struct resolver *r, const struct dns_name *name)
{
    return &r->buckets[name->hash % LOOKUP_BUCKETS];
}

static struct lookup *
lookup_find(struct resolver *r, const struct dns_name *name)
{
    struct list *bucket = bucket_of(r, name);

    for (struct list *at = bucket->next; at != bucket; at = at->next) {
        struct lookup *l = LIST_OWNER(at, struct lookup, link);

        if (l->name.hash == name->hash && span_eq(name_key(&l->name), name_key(name)))
            return l;
    }
    return NULL;
}

static struct lookup *
lookup_start(struct resolver *r, const struct dns_name *name)
{
    struct lookup *l = lookup_new(r, name);

    list_push_front(bucket_of(r, name), &l->link);
    counter_add(COUNTER_DNS_QUERIES, 1);
    lookup_ask(l);
    return l;
}

struct dns_query *
query_join(struct resolver *r, const struct dns_name *name, dns_fn *fn, void *owner)
{
    struct lookup *l = lookup_find(r, name);
    struct dns_query *q = mem_zalloc(sizeof(*q));

    if (l == NULL)
        l = lookup_start(r, name);
    *q = (struct dns_query){.magic = QUERY_MAGIC, .fn = fn, .owner = owner};
    list_push_back(&l->queries, &q->link);
    return q;
}

/* ---- telling ---- */

/* What a lack of sockets or routes on this machine decides is no property of the name. */
static bool
lookup_cacheable(const struct lookup *l)
{
    return lookup_is_current(l) && (lookup_useful(l) || lookup_absent(l) ||
                                    l->local_failures == l->resolver->local_failures);
}

/* A family that is still in the air counts as failed: should its answer come, it will replace this
 * in the cache. */
static void
lookup_close(struct lookup *l)
{
    struct resolver *r = l->resolver;

    for (unsigned i = 0; i < HALVES; i++) {
        if (l->half[i].kind == HALF_NONE)
            l->half[i].kind = l->family[i].failure ? l->family[i].failure : HALF_TIMEOUT;
        l->half[i].ttl_s = answer_cache_lifetime(r->cache, &l->half[i]);
    }
    l->told = true;
    l->ok = lookup_useful(l);
    l->setting->n_untold--;
    loop_timer_close(&l->timer);
    list_remove(&l->link);
    list_push_back(&r->lingering, &l->link);
    if (lookup_cacheable(l))
        answer_cache_put(r->cache, &l->name, l->half);
}

static void
lookup_answer(struct lookup *l, struct dns_answer *a)
{
    struct addr worked;
    bool known = answer_cache_worked(l->resolver->cache, &l->name, &worked);

    order_answer(l->half, known ? &worked : NULL, l->setting->v4_first, a);
    a->from_cache = false;
    histogram_add(HISTOGRAM_DNS_US, (uint64_t)(clock_exact_mono_ns() - l->started_ns) / 1000);
    if (a->status != DNS_OK)
        counter_add(COUNTER_DNS_FAILURES, 1);
}

static void
lookup_tell(struct lookup *l)
{
    struct dns_answer answer;

    lookup_close(l);
    lookup_answer(l, &answer);
    while (!list_empty(&l->queries)) {
        struct dns_query *q = LIST_OWNER(l->queries.next, struct dns_query, link);
        dns_fn *fn = q->fn;
        void *owner = q->owner;

        dns_query_free(&q);
        fn(owner, &answer);
    }
    if (l->in_air == 0)
        lookup_free(l);
}

/* What retired is freed here, where nothing is inside one of its servers. */
static void
retired_free(struct resolver *r)
{
    for (struct list *at = r->retired.next; at != &r->retired;) {
        struct setting *s = LIST_OWNER(at, struct setting, link);

        at = at->next;
        if (s->n_untold == 0)
            setting_free(&s);
    }
}

void
queries_tell(void *owner)
{
    struct resolver *r = owner;

    while (!list_empty(&r->due)) {
        struct lookup *l = LIST_OWNER(r->due.next, struct lookup, due);

        list_remove(&l->due);
        if (lookup_absent(l) && !l->expired &&
            !setting_candidate_is_last(l->setting, &l->name, l->candidate)) {
            l->candidate++;
            lookup_ask(l);
        } else {
            lookup_tell(l);
        }
    }
    retired_free(r);
}
