/* base/child_pool.c - a pool of children that answer requests.
 *
 * Whatever happens (a request, a reply, a death, a timer) only changes the books and asks for a
 * turn. pool_turn, once at the end of the loop's turn, does what follows from them: gives waiting
 * requests to children with room, starts children, refuses what cannot be served. So asking never
 * calls back, and there is one place that decides.
 *
 * A request that its caller gave up, or whose time is over, keeps its slot until the child replies:
 * without ids the next line would else be taken for the answer to the next request, and with ids
 * the id could come back to somebody else. All requests, given up or not, count against one bound.
 */
#include "base/child_pool.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/child.h"
#include "base/log.h"

#define POOL_MAGIC 0xc4119001u

enum { SETTLED_REPLIES = 32 };

struct child_pool {
    uint32_t magic;
    struct loop *loop;
    struct child_pool_options o;
    char **argv; /* ours, as o.name is */
    struct list members, queue;
    unsigned n_members, n_settled, n_waiting, n_asked;
    unsigned failures; /* in a row; one of or beside a settled child begins the count anew */
    bool broken, stopping, closed;
    bool restart_due; /* when the timer fires */
    struct loop_timer restart;
    struct loop_task turn, free_later;
    loop_fn *stopped;
    void *stopped_owner;
    uint64_t n_started, n_ended, n_replies, n_timed_out;
};

/* One child of the pool, with a slot for each request it may have; their numbers are the ids. */
struct member {
    struct list link;
    struct child_pool *pool;
    struct child *child;
    struct loop_timer settle;
    bool settled;
    uint64_t n_replies;
    unsigned n_busy, next_slot;
    struct child_request *slots[];
};

struct child_request {
    struct list link; /* in the queue */
    struct child_pool *pool;
    struct member *member; /* NULL: it waits */
    unsigned slot;
    struct loop_timer deadline;
    child_reply_fn *fn; /* NULL: nobody wants the answer any more */
    void *owner;
    bool overdue;
    size_t n;
    char line[];
};

static unsigned
slots_of_each(const struct child_pool *p)
{
    return p->o.concurrency ? p->o.concurrency : 1;
}

static void
turn_wanted(struct child_pool *p)
{
    loop_defer(p->loop, &p->turn);
}

/* ---- requests ---- */

/* Takes it out of the queue or its slot. */
static void
request_free(struct child_request *r)
{
    if (r->member) {
        r->member->slots[r->slot] = NULL;
        r->member->n_busy--;
        r->pool->n_asked--;
    } else {
        list_remove(&r->link);
        r->pool->n_waiting--;
    }
    loop_timer_close(&r->deadline);
    mem_free(r);
}

/* Frees it first: fn may do anything, also free the pool. */
static void
request_answer(struct child_request *r, enum child_result result, struct span line)
{
    child_reply_fn *fn = r->fn;
    void *owner = r->owner;

    request_free(r);
    if (fn)
        fn(owner, result, line);
}

static void
request_overdue(struct child_request *r)
{
    child_reply_fn *fn = r->fn;
    void *owner = r->owner;

    r->overdue = true;
    r->fn = NULL;
    loop_timer_set(&r->deadline, r->pool->o.timeout_ms);
    if (fn)
        fn(owner, CHILD_TIMED_OUT, SPAN_NONE);
}

static void
on_deadline(void *owner)
{
    struct child_request *r = owner;

    if (r->overdue) {
        child_fail(r->member->child, "it left a request unanswered");
        return;
    }
    r->pool->n_timed_out += r->fn != NULL;
    if (r->member)
        request_overdue(r);
    else
        request_answer(r, CHILD_TIMED_OUT, SPAN_NONE);
}

static bool
is_one_line(struct span line)
{
    return span_index(line, '\n') == line.n && span_index(line, '\r') == line.n &&
           span_index(line, '\0') == line.n;
}

static bool
is_unavailable(const struct child_pool *p)
{
    return p->broken && p->n_members == 0;
}

static int
refusal(const struct child_pool *p, struct span line)
{
    uint64_t most = (uint64_t)p->o.most * slots_of_each(p) + p->o.queue_most;

    if (p->stopping)
        return -ESHUTDOWN;
    if (line.n > p->o.line_most || !is_one_line(line))
        return -EINVAL;
    if (is_unavailable(p))
        return -EIO;
    if ((uint64_t)p->n_waiting + p->n_asked < most)
        return 0;
    log_event_every(60000, LOG_WARN, "%s: the queue is full: %u requests wait for %u children",
                    p->o.name, p->n_waiting, p->n_members);
    return -EAGAIN;
}

static struct child_request *
request_new(struct child_pool *p, struct span line)
{
    struct child_request *r = mem_zalloc(sizeof *r + line.n);

    r->pool = p;
    r->n = line.n;
    if (line.n)
        memcpy(r->line, line.at, line.n);
    list_push_back(&p->queue, &r->link);
    p->n_waiting++;
    loop_timer_init(&r->deadline, p->loop, on_deadline, r);
    loop_timer_set(&r->deadline, p->o.timeout_ms);
    return r;
}

int
child_pool_ask(struct child_pool *p, struct span line, child_reply_fn *fn, void *owner,
               struct child_request **held)
{
    int error;

    CHECK_OBJ(p, POOL_MAGIC);
    error = refusal(p, line);
    if (error)
        return error;
    *held = request_new(p, line);
    (*held)->fn = fn;
    (*held)->owner = owner;
    turn_wanted(p);
    return 0;
}

void
child_request_cancel(struct child_request **held)
{
    struct child_request *r = *held;

    *held = NULL;
    if (r == NULL)
        return;
    r->fn = NULL;
    if (r->member == NULL)
        request_free(r);
}

/* ---- failures, and what makes up for them ---- */

static void
restart_set(struct child_pool *p)
{
    int64_t delay_ms = p->o.restart_first_ms;

    for (unsigned i = 1; i < p->failures && delay_ms < p->o.restart_most_ms; i++)
        delay_ms *= 2;
    if (p->broken || delay_ms > p->o.restart_most_ms)
        delay_ms = p->o.restart_most_ms;
    p->restart_due = true;
    loop_timer_set(&p->restart, delay_ms);
}

/* Children that end while a restart is due already belong to what has been counted: if the thing
 * they all need goes away, that is one failure, not one for each of them. */
static void
pool_failed(struct child_pool *p, bool had_settled)
{
    if (p->restart_due)
        return;
    p->failures = had_settled || p->n_settled ? 1 : p->failures + 1;
    if (p->failures >= p->o.broken_after && !p->broken) {
        p->broken = true;
        log_event(LOG_ERROR,
                  "%s: broken: %u failures in a row; one child is tried every %.1f seconds",
                  p->o.name, p->failures, (double)p->o.restart_most_ms / 1000);
    }
    restart_set(p);
}

static void
member_settled(struct member *m)
{
    struct child_pool *p = m->pool;

    if (m->settled)
        return;
    m->settled = true;
    p->n_settled++;
    if (p->broken) {
        p->broken = false;
        log_event(LOG_NOTE, "%s: works again", p->o.name);
    }
    turn_wanted(p);
}

static void
on_settle(void *owner)
{
    member_settled(owner);
}

/* ---- children ---- */

/* The request that a line answers, or NULL; *line is left without the id. */
static struct child_request *
request_answered(const struct member *m, struct span *line, const char **why)
{
    uint64_t slot = 0;
    size_t id_n;

    if (m->pool->o.concurrency) {
        id_n = span_index(*line, ' ');
        if (!span_to_uint(span_first(*line, id_n), m->pool->o.concurrency - 1, &slot)) {
            *why = "it sent a line without a channel-id (does it know of concurrency?)";
            return NULL;
        }
        *line = span_skip(*line, id_n + 1);
    }
    if (m->slots[slot] == NULL)
        *why = "it sent a line that answers no request";
    return m->slots[slot];
}

static void
member_line(void *owner, struct span line)
{
    struct member *m = owner;
    const char *why = NULL;
    struct child_request *r = request_answered(m, &line, &why);

    if (r == NULL) {
        child_fail(m->child, why);
        return;
    }
    m->pool->n_replies++;
    if (++m->n_replies == SETTLED_REPLIES)
        member_settled(m);
    turn_wanted(m->pool);
    request_answer(r, CHILD_REPLIED, line);
}

static void
member_close(struct member *m)
{
    for (unsigned i = 0; i < slots_of_each(m->pool); i++)
        if (m->slots[i])
            request_free(m->slots[i]);
    loop_timer_close(&m->settle);
    child_close(&m->child);
}

static void
member_free(struct member *m)
{
    list_remove(&m->link);
    mem_free(m);
}

/* The pool may be freed by one of those who are told: its members then last until the end of the
 * turn, with empty slots. */
static void
member_ended(void *owner)
{
    struct member *m = owner;
    struct child_pool *p = m->pool;

    p->n_members--;
    p->n_settled -= m->settled;
    p->n_ended++;
    loop_timer_close(&m->settle);
    if (!p->stopping)
        pool_failed(p, m->settled);
    turn_wanted(p);
    for (unsigned i = 0; i < slots_of_each(p); i++)
        if (m->slots[i])
            request_answer(m->slots[i], CHILD_ENDED, SPAN_NONE);
    if (p->closed)
        return;
    member_close(m);
    member_free(m);
}

static const struct child_ops member_ops = {member_line, member_ended};

static bool
member_start(struct child_pool *p)
{
    struct child_options o = {p->o.name, p->argv, p->o.line_most, p->o.term_after_ms,
                              p->o.kill_after_ms};
    struct member *m = mem_zalloc(sizeof *m + slots_of_each(p) * sizeof m->slots[0]);
    int error;

    m->child = child_start(p->loop, &o, &member_ops, m, &error);
    if (m->child == NULL) {
        log_event(LOG_ERROR, "%s: cannot start %s: %s", p->o.name, p->argv[0], strerror(-error));
        mem_free(m);
        return false;
    }
    m->pool = p;
    list_push_back(&p->members, &m->link);
    p->n_members++;
    p->n_started++;
    loop_timer_init(&m->settle, p->loop, on_settle, m);
    loop_timer_set(&m->settle, p->o.settle_ms);
    return true;
}

/* ---- the turn ---- */

/* The least busy one, or NULL. */
static struct member *
member_with_room(struct child_pool *p)
{
    struct member *best = NULL;

    for (struct list *at = p->members.next; at != &p->members; at = at->next) {
        struct member *m = LIST_OWNER(at, struct member, link);

        if (m->n_busy < slots_of_each(p) && child_takes_lines(m->child) &&
            (best == NULL || m->n_busy < best->n_busy))
            best = m;
    }
    return best;
}

/* Ids go round, so that a reply given twice is seldom taken for that to the next request. */
static void
slot_take(struct member *m, struct child_request *r)
{
    while (m->slots[m->next_slot])
        m->next_slot = (m->next_slot + 1) % slots_of_each(m->pool);
    r->slot = m->next_slot;
    r->member = m;
    m->slots[r->slot] = r;
    m->next_slot = (m->next_slot + 1) % slots_of_each(m->pool);
    m->n_busy++;
}

static void
request_send(struct member *m, struct child_request *r)
{
    struct child_pool *p = m->pool;
    struct buf text = {0};

    list_remove(&r->link);
    p->n_waiting--;
    p->n_asked++;
    slot_take(m, r);
    if (p->o.concurrency)
        buf_addf(&text, "%u ", r->slot);
    buf_add(&text, span_of(r->line, r->n));
    buf_add_char(&text, '\n');
    child_send(m->child, buf_span(&text));
    buf_free(&text);
}

static void
queue_serve(struct child_pool *p)
{
    struct member *m;

    while (p->n_waiting && (m = member_with_room(p)) != NULL)
        request_send(m, LIST_OWNER(p->queue.next, struct child_request, link));
}

/* Who is told cannot ask again: such a pool refuses. */
static void
queue_refuse(struct child_pool *p)
{
    while (p->n_waiting)
        request_answer(LIST_OWNER(p->queue.next, struct child_request, link), CHILD_UNAVAILABLE,
                       SPAN_NONE);
}

/* While the pool is broken one child is tried; those that run serve what comes. */
static unsigned
members_wanted(const struct child_pool *p)
{
    unsigned room = p->o.most - p->n_members, slots = slots_of_each(p), wanted = 0;

    if (p->broken)
        return p->n_members == 0;
    if (p->n_members < p->o.startup)
        wanted = p->o.startup - p->n_members;
    if (p->n_waiting) {
        unsigned needed = (p->n_waiting + slots - 1) / slots;

        needed = needed < p->o.idle ? p->o.idle : needed;
        wanted = wanted < needed ? needed : wanted;
    }
    return wanted < room ? wanted : room;
}

static void
members_start(struct child_pool *p)
{
    if (p->restart_due)
        return;
    for (unsigned n = members_wanted(p); n > 0; n--)
        if (!member_start(p)) {
            pool_failed(p, false);
            return;
        }
}

static void
stopped_tell(struct child_pool *p)
{
    loop_fn *fn = p->stopped;

    p->stopped = NULL;
    if (fn)
        fn(p->stopped_owner);
}

static void
pool_turn(void *owner)
{
    struct child_pool *p = owner;

    if (!p->stopping) {
        queue_serve(p);
        members_start(p);
        queue_serve(p);
    }
    if (p->stopping || is_unavailable(p))
        queue_refuse(p);
    if (p->stopping && !p->closed && p->n_members == 0)
        stopped_tell(p);
}

static void
on_restart(void *owner)
{
    struct child_pool *p = owner;

    p->restart_due = false;
    turn_wanted(p);
}

/* ---- life ---- */

static void
options_keep(struct child_pool *p, const struct child_pool_options *o)
{
    size_t n = 0;

    CHECK(o->most > 0 && o->timeout_ms > 0 && o->argv[0]);
    while (o->argv[n])
        n++;
    p->argv = mem_zalloc((n + 1) * sizeof *p->argv);
    for (size_t i = 0; i < n; i++)
        p->argv[i] = mem_strdup(o->argv[i]);
    p->o = *o;
    p->o.name = mem_strdup(o->name);
    p->o.argv = NULL;
}

/* The children are gone by now, but some of the callers of free may still stand on the members. */
static void
pool_free_memory(void *owner)
{
    struct child_pool *p = owner;

    while (!list_empty(&p->members))
        member_free(LIST_OWNER(p->members.next, struct member, link));
    for (char **a = p->argv; *a; a++)
        mem_free(*a);
    mem_free(p->argv);
    mem_free((char *)p->o.name);
    FREE_OBJ(p);
}

struct child_pool *
child_pool_new(struct loop *l, const struct child_pool_options *o)
{
    struct child_pool *p = mem_zalloc(sizeof *p);

    p->magic = POOL_MAGIC;
    p->loop = l;
    options_keep(p, o);
    list_init(&p->members);
    list_init(&p->queue);
    loop_timer_init(&p->restart, l, on_restart, p);
    loop_task_init(&p->turn, pool_turn, p);
    loop_task_init(&p->free_later, pool_free_memory, p);
    turn_wanted(p);
    return p;
}

void
child_pool_stop(struct child_pool *p, loop_fn *stopped, void *owner)
{
    CHECK_OBJ(p, POOL_MAGIC);
    p->stopping = true;
    p->stopped = stopped;
    p->stopped_owner = owner;
    loop_timer_stop(&p->restart);
    for (struct list *at = p->members.next; at != &p->members; at = at->next)
        child_stop(LIST_OWNER(at, struct member, link)->child);
    turn_wanted(p);
}

/* All are killed before the first is waited for. */
static void
members_close(struct child_pool *p)
{
    struct list *at;

    for (at = p->members.next; at != &p->members; at = at->next)
        child_fail(LIST_OWNER(at, struct member, link)->child, NULL);
    for (at = p->members.next; at != &p->members; at = at->next)
        member_close(LIST_OWNER(at, struct member, link));
}

void
child_pool_free(struct child_pool **held)
{
    struct child_pool *p = *held;

    CHECK_OBJ(p, POOL_MAGIC);
    *held = NULL;
    p->stopping = p->closed = true;
    members_close(p);
    while (p->n_waiting)
        request_free(LIST_OWNER(p->queue.next, struct child_request, link));
    loop_timer_close(&p->restart);
    loop_task_cancel(p->loop, &p->turn);
    loop_defer(p->loop, &p->free_later);
}

struct child_pool_figures
child_pool_figures(const struct child_pool *p)
{
    return (struct child_pool_figures){.children = p->n_members,
                                       .waiting = p->n_waiting,
                                       .asked = p->n_asked,
                                       .started = p->n_started,
                                       .ended = p->n_ended,
                                       .replies = p->n_replies,
                                       .timed_out = p->n_timed_out,
                                       .broken = p->broken};
}
