/* dns/lookup.c - one name under way: which server is asked, when the next, and what is known.
 *
 * Both families are asked of the server that answered last. One that fails hands its family over to
 * the next at once; one that is silent gets company after a second, and another each second after
 * that. Whoever answers first is believed. c-ares cannot take a single question back, so a lookup
 * outlives its askers until its flights have landed; then what they brought still goes to the
 * cache. */
#include "base/check.h"
#include "base/clock.h"
#include "dns/resolver_private.h"

#define LOOKUP_MAGIC 0xd2501e02u
#define NEVER INT64_MAX

enum { RESOLUTION_DELAY_MS = 50 }; /* RFC 8305 section 3 */

struct question { /* flight of a lookup */
    struct flight flight;
    struct lookup *lookup;
    unsigned candidate, server;
};

/* ---- what is known ---- */

static bool
kind_is_answer(enum half_kind kind)
{
    return kind == HALF_ADDRESSES || kind == HALF_NO_NAME || kind == HALF_NO_DATA;
}

static bool
lookup_settled(const struct lookup *l)
{
    return l->half[HALF_V6].kind != HALF_NONE && l->half[HALF_V4].kind != HALF_NONE;
}

bool
lookup_useful(const struct lookup *l)
{
    return l->half[HALF_V6].kind == HALF_ADDRESSES || l->half[HALF_V4].kind == HALF_ADDRESSES;
}

bool
lookup_absent(const struct lookup *l)
{
    return !lookup_useful(l) && kind_is_answer(l->half[HALF_V6].kind) &&
           kind_is_answer(l->half[HALF_V4].kind);
}

/* Under a setting that was replaced, what comes is of the wrong servers, or of the wrong name. */
bool
lookup_is_current(const struct lookup *l)
{
    return l->setting == l->resolver->setting;
}

/* ---- life ---- */

void
lookup_free(struct lookup *l)
{
    CHECK_OBJ(l, LOOKUP_MAGIC);
    CHECK(l->in_air == 0);
    CHECK(list_empty(&l->queries));
    list_remove(&l->link);
    list_remove(&l->due);
    loop_timer_close(&l->timer);
    FREE_OBJ(l);
}

/* ---- time ---- */

static void
lookup_due(struct lookup *l)
{
    struct resolver *r = l->resolver;

    loop_timer_stop(&l->timer);
    if (list_empty(&l->due))
        list_push_back(&r->due, &l->due);
    loop_defer(r->loop, &r->task);
}

static void
lookup_schedule(struct lookup *l)
{
    int64_t at_ms = l->next_ms < l->deadline_ms ? l->next_ms : l->deadline_ms;
    int64_t left_ms = at_ms - clock_mono_ms();

    loop_timer_set(&l->timer, left_ms > 0 ? left_ms : 0);
}

/* It ends at this time from now, or earlier. */
static void
lookup_hasten(struct lookup *l, int64_t within_ms)
{
    int64_t at_ms = clock_mono_ms() + within_ms;

    if (at_ms < l->deadline_ms)
        l->deadline_ms = at_ms;
}

/* RFC 8305 section 3: the other family gets a moment, not the whole time. */
static void
lookup_consider(struct lookup *l)
{
    if (lookup_settled(l)) {
        lookup_due(l);
        return;
    }
    if (lookup_useful(l))
        lookup_hasten(l, RESOLUTION_DELAY_MS);
    lookup_schedule(l);
}

/* ---- asking ---- */

static void on_landed(struct flight *f, const struct half_answer *reply);

static bool
family_ask(struct lookup *l, enum half half, unsigned server)
{
    struct question *q = mem_zalloc(sizeof(*q));
    char name[NAME_MAX_BYTES + 1];

    *q = (struct question){.flight = {.half = half, .landed = on_landed},
                           .lookup = l,
                           .candidate = l->candidate,
                           .server = server};
    (void)setting_candidate(l->setting, &l->name, l->candidate, name);
    l->in_air++;
    l->family[half].n_waiting++;
    if (name_server_ask(l->setting->servers[server], name, &q->flight))
        return true;
    l->in_air--;
    l->family[half].n_waiting--;
    l->resolver->local_failures++;
    mem_free(q);
    return false;
}

/* Of the next server that can be asked; false: there is none left. */
static bool
family_ask_next(struct lookup *l, enum half half)
{
    struct family *f = &l->family[half];
    unsigned n_servers = l->setting->n_servers;

    while (f->n_asked < n_servers)
        if (family_ask(l, half, (l->first + f->n_asked++) % n_servers))
            return true;
    return false;
}

/* The next server is asked. When all have been, those that are silent get one more interval, and
 * with none of them left, this family has failed. */
static void
family_go_on(struct lookup *l, enum half half)
{
    struct family *f = &l->family[half];

    if (family_ask_next(l, half))
        return;
    if (f->n_waiting > 0 && f->failure != HALF_NONE)
        lookup_hasten(l, l->setting->retransmit_ms);
    if (f->n_waiting == 0)
        l->half[half].kind = f->failure != HALF_NONE ? f->failure : HALF_FAILED;
}

/* Both begin anew: a reply that comes out of name_server_ask finds its family begun. */
static void
lookup_begin(struct lookup *l, enum half_kind kind)
{
    for (unsigned i = 0; i < HALVES; i++) {
        l->family[i] = (struct family){0};
        l->half[i].kind = kind;
        l->half[i].n = 0;
        l->half[i].ttl_s = 0;
    }
}

void
lookup_ask(struct lookup *l)
{
    char name[NAME_MAX_BYTES + 1];
    bool fits = setting_candidate(l->setting, &l->name, l->candidate, name);

    l->next_ms = l->setting->n_servers > 1 ? clock_mono_ms() + l->setting->next_ms : NEVER;
    lookup_begin(l, fits ? HALF_NONE : HALF_NO_NAME);
    for (unsigned i = 0; fits && i < HALVES; i++)
        family_go_on(l, i);
    lookup_consider(l);
}

static void
on_timer(void *owner)
{
    struct lookup *l = owner;

    if (l->deadline_ms <= l->next_ms) {
        l->expired = true;
        lookup_due(l);
        return;
    }
    l->next_ms = NEVER;
    for (unsigned i = 0; i < HALVES; i++) {
        if (l->half[i].kind != HALF_NONE)
            continue;
        family_go_on(l, i);
        if (l->family[i].n_asked < l->setting->n_servers)
            l->next_ms = clock_mono_ms() + l->setting->next_ms;
    }
    lookup_consider(l);
}

/* ---- what a flight brought ---- */

static void
half_set(struct lookup *l, enum half half, const struct half_answer *reply)
{
    l->half[half] = *reply;
    l->half[half].ttl_s = answer_cache_lifetime(l->resolver->cache, reply);
}

/* The askers were told without it; now it is here and may serve the next one. */
static void
lookup_take_late(struct lookup *l, enum half half, const struct half_answer *reply)
{
    struct half_answer h[HALVES] = {{.kind = HALF_NONE}, {.kind = HALF_NONE}};
    bool last = setting_candidate_is_last(l->setting, &l->name, l->candidate);

    if (kind_is_answer(l->half[half].kind) || !kind_is_answer(reply->kind))
        return;
    half_set(l, half, reply);
    h[half] = l->half[half];
    if (lookup_is_current(l) && (reply->kind == HALF_ADDRESSES || l->ok || last))
        answer_cache_put(l->resolver->cache, &l->name, h);
}

static void
lookup_take(struct lookup *l, const struct question *q, const struct half_answer *reply)
{
    enum half half = q->flight.half;
    struct family *f = &l->family[half];

    f->n_waiting--;
    if (l->half[half].kind != HALF_NONE)
        return; /* another server was faster */
    if (kind_is_answer(reply->kind)) {
        half_set(l, half, reply);
        if (lookup_is_current(l))
            answer_cache_answered(l->resolver->cache, q->server);
    } else {
        if (f->failure != HALF_FAILED)
            f->failure = reply->kind;
        family_go_on(l, half);
    }
    lookup_consider(l);
}

/* One for an earlier candidate says nothing that matters any more. */
static void
on_landed(struct flight *f, const struct half_answer *reply)
{
    struct question q = *LIST_OWNER(f, struct question, flight);
    struct lookup *l = q.lookup;

    CHECK_OBJ(l, LOOKUP_MAGIC);
    mem_free(LIST_OWNER(f, struct question, flight));
    l->in_air--;
    if (reply && q.candidate == l->candidate) {
        if (l->told)
            lookup_take_late(l, q.flight.half, reply);
        else
            lookup_take(l, &q, reply);
    }
    if (l->told && l->in_air == 0)
        lookup_free(l);
}

/* ---- beginning ---- */

struct lookup *
lookup_new(struct resolver *r, const struct dns_name *name)
{
    struct lookup *l = mem_zalloc(sizeof(*l));

    l->magic = LOOKUP_MAGIC;
    l->resolver = r;
    l->setting = r->setting;
    l->setting->n_untold++;
    l->name = *name;
    list_init(&l->link);
    list_init(&l->queries);
    list_init(&l->due);
    l->started_ns = clock_exact_mono_ns();
    l->local_failures = r->local_failures;
    l->first = answer_cache_first_server(r->cache);
    loop_timer_init(&l->timer, r->loop, on_timer, l);
    l->deadline_ms = clock_mono_ms() + l->setting->timeout_ms;
    return l;
}
