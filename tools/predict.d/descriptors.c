/* tools/predict.d/descriptors.c - three sorted streams, merged: arrivals, ends, and timeouts.
 *
 * Since a side has one timeout, idle connections run out in the order in which they became idle,
 * which is the order of the ends: the third stream is the second one, later. So no heap is needed.
 * An idle connection bears the number of the request that left it. A pool (of one client, or one
 * server) is a chain of them, the last one first; when its first has run out, all have. */
#include "tools/predict.d/descriptors.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { MAGIC = 0x46445052, NONE = 0xffffffff };

enum conn_state { NOT_IDLE, IDLE };

struct side {
    uint32_t *top;   /* of each pool: its last idle connection, or NONE */
    uint32_t *below; /* of each connection, in its pool */
    uint8_t *state;  /* enum conn_state of each connection */
    size_t pools;
    int64_t idle_us; /* 0: not persistent */
    size_t expired;  /* how far in the order of ends timeouts are done */
    uint32_t active, idle;
    uint64_t opened, asked;
};

struct fd_plan {
    uint32_t magic;
    struct fd_request *requests; /* by arrival */
    uint32_t *by_end;
    size_t n;
    int64_t first_us, last_us;
    struct side client, server;
};

/* What one prediction keeps while it runs. */
struct run {
    struct fd_plan *plan;
    struct fd_levels levels;
    struct fd_need need;
    double client_area, server_area; /* descriptors times microseconds */
    int64_t at_us;
    fd_level_fn *tell;
    void *arg;
};

/* ---- the plan ---- */

static int
by_start(const void *a, const void *b)
{
    const struct fd_request *x = a, *y = b;

    if (x->start_us != y->start_us)
        return x->start_us < y->start_us ? -1 : 1;
    return (x->end_us > y->end_us) - (x->end_us < y->end_us);
}

/* Of those that end at one time the earlier comers are first: who came at that very time is last,
 * so that his arrival can go before his end. */
static int
by_end(const void *a, const void *b, void *requests)
{
    const struct fd_request *all = requests;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;

    if (all[i].end_us != all[j].end_us)
        return all[i].end_us < all[j].end_us ? -1 : 1;
    return (i > j) - (i < j);
}

static void
side_init(struct side *s, size_t pools, size_t n)
{
    s->pools = pools;
    s->top = mem_alloc((pools + 1) * sizeof(*s->top));
    s->below = mem_alloc((n + 1) * sizeof(*s->below));
    s->state = mem_alloc(n + 1);
}

static void
side_clear(struct side *s, size_t n, int64_t idle_us)
{
    memset(s->top, 0xff, s->pools * sizeof(*s->top));
    memset(s->state, NOT_IDLE, n);
    s->idle_us = idle_us;
    s->expired = 0;
    s->active = s->idle = 0;
    s->opened = s->asked = 0;
}

struct fd_plan *
fd_plan_new(struct fd_request *requests, size_t n)
{
    struct fd_plan *p = mem_zalloc(sizeof(*p));
    size_t clients = 0, servers = 0;

    CHECK(n < NONE);
    p->magic = MAGIC;
    p->requests = requests;
    p->n = n;
    p->by_end = mem_alloc((n + 1) * sizeof(*p->by_end));
    qsort(requests, n, sizeof(*requests), by_start);
    for (size_t i = 0; i < n; i++) {
        CHECK(requests[i].end_us >= requests[i].start_us);
        p->by_end[i] = (uint32_t)i;
        if (requests[i].client >= clients)
            clients = requests[i].client + 1;
        if (requests[i].server != FD_NO_SERVER && requests[i].server >= servers)
            servers = requests[i].server + 1;
    }
    qsort_r(p->by_end, n, sizeof(*p->by_end), by_end, requests);
    if (n > 0) {
        p->first_us = requests[0].start_us;
        p->last_us = requests[p->by_end[n - 1]].end_us;
    }
    side_init(&p->client, clients, n);
    side_init(&p->server, servers, n);
    return p;
}

void
fd_plan_span(const struct fd_plan *p, int64_t *first_us, int64_t *last_us)
{
    *first_us = p->first_us;
    *last_us = p->last_us;
}

static void
side_free(struct side *s)
{
    mem_free(s->top);
    mem_free(s->below);
    mem_free(s->state);
}

void
fd_plan_free(struct fd_plan **held)
{
    struct fd_plan *p = *held;

    if (p == NULL)
        return;
    CHECK_OBJ(p, MAGIC);
    *held = NULL;
    side_free(&p->client);
    side_free(&p->server);
    mem_free(p->by_end);
    FREE_OBJ(p);
}

/* ---- connections ---- */

/* An idle connection of the pool goes on serving; false: there is none. */
static bool
side_take_idle(struct side *s, uint32_t pool)
{
    uint32_t top = s->top[pool];

    if (top == NONE || s->state[top] != IDLE) {
        s->top[pool] = NONE;
        return false;
    }
    s->top[pool] = s->below[top];
    s->state[top] = NOT_IDLE;
    s->idle--;
    return true;
}

static void
side_begin(struct side *s, uint32_t pool, bool may_reuse)
{
    s->asked++;
    s->active++;
    if (s->idle_us == 0 || !may_reuse || !side_take_idle(s, pool))
        s->opened++;
}

static void
side_end(struct side *s, uint32_t pool, uint32_t conn, bool may_stay)
{
    s->active--;
    if (s->idle_us == 0 || !may_stay)
        return;
    s->below[conn] = s->top[pool];
    s->top[pool] = conn;
    s->state[conn] = IDLE;
    s->idle++;
}

/* When the next connection runs out that is still idle among those that `ended`; INT64_MAX: none.
 */
static int64_t
side_next_expiry(struct side *s, const struct fd_plan *p, size_t ended)
{
    if (s->idle_us == 0)
        return INT64_MAX;
    while (s->expired < ended && s->state[p->by_end[s->expired]] != IDLE)
        s->expired++;
    if (s->expired == ended)
        return INT64_MAX;
    return p->requests[p->by_end[s->expired]].end_us + s->idle_us;
}

static void
side_expire(struct side *s, const struct fd_plan *p)
{
    s->state[p->by_end[s->expired++]] = NOT_IDLE;
    s->idle--;
}

/* ---- the merge ---- */

/* The levels held from the last event until now. */
static void
pass_time(struct run *r, int64_t now_us)
{
    struct fd_plan *p = r->plan;
    double us = (double)(now_us - r->at_us);

    r->levels.client_active = p->client.active;
    r->levels.client_idle = p->client.idle;
    r->levels.server_active = p->server.active;
    r->levels.server_idle = p->server.idle;
    r->client_area += us * (p->client.active + p->client.idle);
    r->server_area += us * (p->server.active + p->server.idle);
    if (fd_levels_sum(&r->levels) > r->need.peak) {
        r->need.peak = fd_levels_sum(&r->levels);
        r->need.peak_at_us = r->at_us;
        r->need.at_peak = r->levels;
    }
    if (r->tell)
        r->tell(r->arg, r->at_us, now_us, &r->levels);
    r->at_us = now_us;
}

static void
begin(struct run *r, const struct fd_request *q)
{
    side_begin(&r->plan->client, q->client, !q->tunnel);
    if (q->server != FD_NO_SERVER)
        side_begin(&r->plan->server, q->server, !q->tunnel && !q->fresh);
    r->levels.tunnels += q->tunnel;
    r->levels.requests += !q->tunnel;
}

static void
end(struct run *r, uint32_t index)
{
    const struct fd_request *q = &r->plan->requests[index];

    side_end(&r->plan->client, q->client, index, !q->tunnel);
    if (q->server != FD_NO_SERVER)
        side_end(&r->plan->server, q->server, index, !q->tunnel);
    r->levels.tunnels -= q->tunnel;
    r->levels.requests -= !q->tunnel;
}

/* Timeouts up to now; they are found in time order on each side, and merged. */
static void
expire_until(struct run *r, size_t ended, int64_t now_us)
{
    struct fd_plan *p = r->plan;

    for (;;) {
        int64_t client_us = side_next_expiry(&p->client, p, ended);
        int64_t server_us = side_next_expiry(&p->server, p, ended);
        int64_t next_us = client_us < server_us ? client_us : server_us;

        if (next_us > now_us)
            return;
        pass_time(r, next_us);
        side_expire(client_us <= server_us ? &p->client : &p->server, p);
    }
}

/* Does the next end go before the next arrival? */
static bool
end_is_next(const struct fd_plan *p, size_t begun, size_t ended)
{
    const struct fd_request *e = &p->requests[p->by_end[ended]];

    if (begun == p->n)
        return true;
    return e->end_us < p->requests[begun].start_us ||
           (e->end_us == p->requests[begun].start_us && p->by_end[ended] < begun &&
            e->start_us < e->end_us);
}

static void
merge(struct run *r)
{
    struct fd_plan *p = r->plan;
    size_t begun = 0, ended = 0;

    while (ended < p->n) {
        bool is_end = end_is_next(p, begun, ended);
        int64_t now_us =
            is_end ? p->requests[p->by_end[ended]].end_us : p->requests[begun].start_us;

        expire_until(r, ended, now_us);
        pass_time(r, now_us);
        if (is_end)
            end(r, p->by_end[ended++]);
        else
            begin(r, &p->requests[begun++]);
    }
}

struct fd_need
fd_plan_predict(struct fd_plan *p, const struct fd_model *m, fd_level_fn *tell, void *arg)
{
    struct run r = {.plan = p, .at_us = p->first_us, .tell = tell, .arg = arg};
    double span_us = (double)(p->last_us - p->first_us);

    CHECK_OBJ(p, MAGIC);
    side_clear(&p->client, p->n, m->client_idle_us);
    side_clear(&p->server, p->n, m->server_idle_us);
    merge(&r);
    if (span_us > 0) {
        r.need.client_mean = r.client_area / span_us;
        r.need.server_mean = r.server_area / span_us;
        r.need.mean = r.need.client_mean + r.need.server_mean;
    }
    r.need.client_opened = p->client.opened;
    r.need.client_asked = p->client.asked;
    r.need.server_opened = p->server.opened;
    r.need.server_asked = p->server.asked;
    return r.need;
}
