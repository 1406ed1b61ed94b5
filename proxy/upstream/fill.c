/* The life of a fill. Closing is immediate, freeing waits for the end of the turn, so that no
 * function here finds its fill gone under its feet. */
#include "proxy/upstream/fill.h"

#include <errno.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "cache/tier.h"
#include "proxy/upstream/fill_private.h"

bool
fill_is_live(const struct fill *f)
{
    return f->phase != FILL_OVER;
}

static void
fill_free(void *owner)
{
    struct fill *f = owner;

    buf_free(&f->in);
    buf_free(&f->trailer);
    body_writer_free(&f->writer);
    policy_unref(&f->policy);
    mem_free((void *)f->keeping.uri.at);
    FREE_OBJ(f);
}

/* Lets go of everything but the memory. */
static void
fill_end(struct fill *f)
{
    if (f->phase == FILL_OVER)
        return;
    f->phase = FILL_OVER;
    if (f->held)
        *f->held = NULL;
    f->held = NULL;
    f->events = NULL;
    route_close(&f->route);
    conn_close(&f->conn);
    if (f->request_body)
        f->request_body->wake = NULL;
    f->request_body = NULL;
    loop_timer_close(&f->continue_timer);
    if (f->entry) {
        body_detach_fill(f->entry->body);
        entry_unref(&f->entry);
    }
    loop_task_cancel(f->up->loop, &f->room);
    loop_task_cancel(f->up->loop, &f->body_ready);
    loop_task_cancel(f->up->loop, &f->fail_later);
    list_remove(&f->link);
    loop_defer(f->up->loop, &f->free_later);
}

void
fill_fail(struct fill *f, enum fault why, int error)
{
    const struct fill_events *events = f->events;
    void *owner = f->owner;
    struct entry *e = f->entry;

    if (f->phase == FILL_OVER)
        return;
    if (f->starting) {
        f->late_fault = why;
        f->late_error = error;
        loop_defer(f->up->loop, &f->fail_later);
        return;
    }
    counter_add(COUNTER_SERVER_ERRORS, 1);
    if (e) {
        if (f->keeping.stored)
            store_salvage(f->up->store, e);
        body_fail(e->body, why);
        fill_end(f);
        return;
    }
    fill_end(f);
    if (events)
        events->failed(owner, f, why, error);
}

static void
fill_fail_later(void *owner)
{
    struct fill *f = owner;

    fill_fail(f, f->late_fault, f->late_error);
}

/* pconn_lifetime: a connection this old is not kept again. */
static bool
is_old(const struct fill *f)
{
    int64_t life_ms = f->policy->upstream.life_ms;

    return life_ms > 0 && f->conn && clock_mono_ms() - f->conn->born_ms > life_ms;
}

/* The next request may have it. One that is bound is kept for its client, while that is known to be
 * there. */
static bool
is_for_others(const struct fill *f)
{
    if (f->conn && f->conn->hop.bound_to)
        return f->held != NULL;
    return f->policy->upstream.persistent;
}

void
fill_finish(struct fill *f)
{
    struct conn *c = f->conn;
    bool keep = f->keep_alive && f->request_sent && !is_old(f) && is_for_others(f);

    f->conn = NULL;
    if (keep)
        idle_put(&c, f->policy->upstream.idle_ms);
    else
        conn_close(&c);
    if (f->entry) {
        body_complete(f->entry->body, buf_span(&f->trailer));
        if (f->keeping.stored)
            store_charge(f->up->store, f->entry);
    }
    fill_end(f);
}

/* The last reader left a body that is still arriving: quick_abort_min, _max and _pct decide, as in
 * Squid. */
static bool
worth_finishing(const struct fill *f)
{
    uint64_t have = body_published(f->entry->body), length = f->entry->length, left;

    if (f->keeping.alone)
        return true;
    if (!(f->spooled || (f->keeping.stored && body_mode(f->entry->body) == BODY_KEEP)) ||
        length == LENGTH_UNKNOWN)
        return false;
    left = length - have;
    if (left <= f->policy->upstream.quick_abort_min)
        return true;
    return left <= f->policy->upstream.quick_abort_max &&
           have * 100 >= length * f->policy->upstream.quick_abort_pct;
}

bool
fill_is_unwanted(const struct fill *f)
{
    return !f->held && body_readers(f->entry->body) == 0 && !worth_finishing(f);
}

/* There is room in the body again, or its last reader has gone. */
static void
fill_room(void *owner)
{
    struct fill *f = owner;

    if (f->phase != FILL_BODY || !f->entry)
        return;
    if (body_readers(f->entry->body) == 0 && !worth_finishing(f)) {
        fill_fail(f, FAULT_CLIENT_GONE, 0);
        return;
    }
    if (f->awaiting_room && f->conn) {
        f->awaiting_room = false;
        loop_timer_set(&f->conn->timer, f->policy->upstream.read_timeout_ms);
        transport_want(&f->conn->transport, transport_wanted(&f->conn->transport) | LOOP_READ);
    }
}

static void
fill_body_ready(void *owner)
{
    struct fill *f = owner;

    if (f->phase != FILL_OVER && f->conn && !f->body_held)
        fill_send(f);
}

/* Nobody said 100 within a second: the body goes anyway (RFC 9110 section 10.1.1). */
static void
fill_continue_anyway(void *owner)
{
    struct fill *f = owner;

    if (f->phase != FILL_HEAD || !f->body_held)
        return;
    fill_release_body(f);
}

static void
copy_order(struct fill *f, const struct fill_order *o)
{
    f->policy = o->policy;
    policy_ref(f->policy);
    f->events = o->events;
    f->owner = o->owner;
    f->arena = o->arena;
    f->method = o->method;
    f->client_connection = o->connection;
    f->logs_in = o->logs_in;
    f->request_body = o->body;
    f->body_chunked = o->body_chunked;
    f->body_length = o->body_length;
    f->expects_continue = o->expects_continue;
    f->wants_upgrade = o->wants_upgrade;
}

static void
fill_route_failed(void *owner, enum fault why, int error)
{
    fill_fail(owner, why, error);
}

/* Only a request that may be sent twice goes out on a kept connection: it may turn out dead. */
static bool
may_reuse(const struct fill *f)
{
    return f->policy->upstream.persistent && !f->request_body && !f->wants_upgrade &&
           method_is_idempotent(f->method);
}

static void
find_way(struct fill *f, const struct fill_order *o)
{
    f->starting = true;
    route_start(&f->route, f->up,
                &(struct route_order){.policy = &f->policy->upstream,
                                      .host = o->host,
                                      .port = o->port,
                                      .judged = o->judged,
                                      .n_judged = o->n_judged,
                                      .deny_local = o->deny_local,
                                      .reuse = may_reuse(f),
                                      .connection = o->connection,
                                      .deadline_ms =
                                          clock_mono_ms() + f->policy->upstream.forward_timeout_ms,
                                      .found = fill_connected,
                                      .failed = fill_route_failed,
                                      .owner = f});
    f->starting = false;
}

void
fill_start(struct upstream *u, const struct fill_order *o, struct fill **held)
{
    struct fill *f = mem_zalloc(sizeof *f);

    *held = f;
    f->held = held;
    f->magic = FILL_MAGIC;
    f->up = u;
    copy_order(f, o);
    list_push_back(&u->fills, &f->link);
    loop_task_init(&f->room, fill_room, f);
    loop_task_init(&f->body_ready, fill_body_ready, f);
    loop_task_init(&f->fail_later, fill_fail_later, f);
    loop_task_init(&f->free_later, fill_free, f);
    loop_timer_init(&f->continue_timer, u->loop, fill_continue_anyway, f);
    if (o->body) {
        o->body->loop = u->loop;
        o->body->wake = &f->body_ready;
    }
    f->started_ns = clock_mono_ns();
    f->first_byte_us = -1;
    find_way(f, o);
}

/* Before the first byte, or while all bytes are still there. */
void
fill_spool(struct fill *f)
{
    const struct fill_keeping *k = &f->keeping;

    f->spooled = k->spool && f->up->disk && tier_spool_start(f->up->disk, k->uri, f->entry);
}

/* The name is needed later only when it is not known yet how much comes. */
static void
take_keeping(struct fill *f, const struct fill_keeping *keeping)
{
    f->keeping = *keeping;
    if (body_mode(f->entry->body) == BODY_PASS)
        fill_spool(f);
    if (f->keeping.spool && !f->spooled && f->entry->length == LENGTH_UNKNOWN)
        f->keeping.uri = span_of(
            memcpy(mem_alloc(keeping->uri.n + 1), keeping->uri.at, keeping->uri.n), keeping->uri.n);
    else
        f->keeping.uri = SPAN_NONE;
}

void
fill_into(struct fill *f, struct entry *e, const struct fill_keeping *keeping)
{
    CHECK_OBJ(f, FILL_MAGIC);
    CHECK(f->phase == FILL_HEAD && f->entry == NULL);
    entry_ref(e);
    f->entry = e;
    take_keeping(f, keeping);
    f->phase = FILL_BODY;
    fill_start_body(f); /* before the owner answers: head and body leave in one call */
}

void
fill_cancel(struct fill **held)
{
    struct fill *f = *held;

    *held = NULL;
    if (!f)
        return;
    CHECK_OBJ(f, FILL_MAGIC);
    f->held = NULL;
    if (f->entry && fill_is_live(f)) {
        f->events = NULL;
        fill_fail(f, FAULT_CLIENT_GONE, 0);
        return;
    }
    fill_end(f);
}

void
fill_release(struct fill **held)
{
    struct fill *f = *held;

    *held = NULL;
    if (!f)
        return;
    CHECK_OBJ(f, FILL_MAGIC);
    f->held = NULL;
    if (f->phase == FILL_BODY && f->request_sent) {
        f->events = NULL;
        f->arena = NULL; /* and what lies in it */
        f->request_body = NULL;
        loop_defer(f->up->loop, &f->room); /* was it the last reader? */
        return;
    }
    fill_cancel(&f);
}

struct loop_task *
fill_room_task(struct fill *f)
{
    return &f->room;
}

bool
fill_is_bound(const struct fill *f)
{
    return f->conn && f->conn->hop.bound_to != 0;
}

const struct addr *
fill_server(const struct fill *f)
{
    return &f->route.server;
}

struct fill_times
fill_times_of(const struct fill *f)
{
    return (struct fill_times){f->route.dns_us, f->route.connect_us, f->first_byte_us};
}

uint64_t
fill_bytes_in(const struct fill *f)
{
    return f->bytes_in;
}

void
fill_cancel_all(struct upstream *u)
{
    while (!list_empty(&u->fills)) {
        struct fill *f = LIST_OWNER(u->fills.next, struct fill, link);

        fill_cancel(&f);
    }
}
