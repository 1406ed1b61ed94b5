/* Two directions, each with its own small state: reading, holding what the other side did not take,
 * or ended. A direction that has moved more than 64 KB goes over to splice(2) through a pipe of its
 * own, where both ends are plain sockets: the bytes then never enter user space. Small tunnels
 * never pay for a pipe. */
#include "proxy/tunnel/tunnel.h"

#include <errno.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/counters.h"
#include "proxy/net/splice.h"

#define TUNNEL_MAGIC 0x70117011u
#define SPLICE_AFTER (64 * 1024)
#define ROUNDS 4
#define PROBE_AFTER_S 120

struct way { /* one direction */
    struct transport *from, *to;
    struct buf held; /* read, not yet written */
    uint64_t moved;
    struct splice splice; /* open when bytes go that way */
    bool ended, shut;     /* end of stream was read; FIN was passed on */
};

struct tunnel {
    uint32_t magic;
    struct loop *loop;
    struct tunnel_options o;
    struct transport client, server;
    struct way up, down;
    struct loop_timer idle;
    struct loop_task begin, free_later;
    bool over;
};

static void
way_free(struct way *w)
{
    buf_free(&w->held);
    splice_close(&w->splice);
}

static void
tunnel_free(void *owner)
{
    struct tunnel *t = owner;

    FREE_OBJ(t);
}

static void
tunnel_end(struct tunnel *t)
{
    t->over = true;
    transport_close(&t->client);
    transport_close(&t->server);
    way_free(&t->up);
    way_free(&t->down);
    loop_timer_close(&t->idle);
    loop_task_cancel(t->loop, &t->begin);
    counter_add(COUNTER_TUNNEL_BYTES, t->up.moved + t->down.moved);
    loop_defer(t->loop, &t->free_later);
}

static void
tunnel_finish(struct tunnel *t, int error)
{
    uint64_t up = t->up.moved, down = t->down.moved;

    if (t->over)
        return;
    if (error == ECONNRESET) { /* a reset stays one on the other side */
        transport_reset(&t->client);
        transport_reset(&t->server);
    }
    tunnel_end(t);
    t->o.ended(t->o.owner, up, down, error);
}

/* Direction w wants its source readable, unless something waits to be written: then its sink
 * writable. */
static void
tunnel_interest(struct tunnel *t)
{
    int client = 0, server = 0;

    if (t->up.held.n || t->up.splice.held)
        server |= LOOP_WRITE;
    else if (!t->up.ended)
        client |= LOOP_READ;
    if (t->down.held.n || t->down.splice.held)
        client |= LOOP_WRITE;
    else if (!t->down.ended)
        server |= LOOP_READ;
    transport_want(&t->client, client);
    transport_want(&t->server, server);
}

/* 0: go on; -EAGAIN: wait; another -errno: broken. */
static int
way_flush(struct way *w)
{
    ssize_t sent;

    if (w->splice.held) {
        sent = splice_out(&w->splice, w->to);
        if (sent < 0)
            return (int)sent;
        w->moved += (uint64_t)sent;
        return w->splice.held ? -EAGAIN : 0;
    }
    if (!w->held.n)
        return 0;
    sent = transport_write(w->to, w->held.at, w->held.n);
    if (sent < 0)
        return (int)sent;
    w->moved += (uint64_t)sent;
    buf_drop_front(&w->held, (size_t)sent);
    return w->held.n ? -EAGAIN : 0;
}

static int
way_splice(struct way *w)
{
    ssize_t got = splice_in(&w->splice, w->from);

    if (got < 0)
        return (int)got;
    w->ended = got == 0;
    return way_flush(w);
}

static int
way_copy(struct tunnel *t, struct way *w)
{
    ssize_t got = transport_read(w->from, t->o.scratch, t->o.scratch_bytes), sent;

    if (got < 0)
        return (int)got;
    w->ended = got == 0;
    if (got == 0)
        return 0;
    sent = transport_write(w->to, t->o.scratch, (size_t)got);
    if (sent < 0 && sent != -EAGAIN)
        return (int)sent;
    sent = sent < 0 ? 0 : sent;
    w->moved += (uint64_t)sent;
    buf_add(&w->held, span_of(t->o.scratch + sent, (size_t)(got - sent)));
    if (w->moved > SPLICE_AFTER && !w->held.n)
        (void)splice_open(&w->splice, w->from, w->to, FD_TUNNEL);
    return (size_t)got < t->o.scratch_bytes || w->held.n ? -EAGAIN : 0;
}

static void
pass_end_on(struct way *w)
{
    if (w->shut || !w->ended || w->held.n || w->splice.held)
        return;
    w->shut = true;
    (void)transport_shutdown(w->to);
}

/* Nobody takes these bytes any more. The other direction may still have some and ends by itself. */
static void
way_cut(struct way *w)
{
    way_free(w);
    w->ended = w->shut = true;
}

static int
way_move(struct tunnel *t, struct way *w)
{
    int r = way_flush(w);

    for (int i = 0; i < ROUNDS && r == 0 && !w->ended; i++)
        r = splice_is_open(&w->splice) ? way_splice(w) : way_copy(t, w);
    if (r == -EPIPE) {
        way_cut(w);
        return 0;
    }
    pass_end_on(w);
    return r == -EAGAIN ? 0 : r;
}

static void
tunnel_move(struct tunnel *t)
{
    int r = way_move(t, &t->up);

    if (r == 0)
        r = way_move(t, &t->down);
    if (r < 0) {
        tunnel_finish(t, -r);
        return;
    }
    if (t->up.shut && t->down.shut) {
        tunnel_finish(t, 0);
        return;
    }
    if (t->o.idle_ms)
        loop_timer_set(&t->idle, t->o.idle_ms);
    tunnel_interest(t);
}

static void
tunnel_io(void *owner, int events)
{
    tunnel_move(owner);
}

static void
tunnel_begin(void *owner)
{
    tunnel_move(owner);
}

static void
tunnel_idle(void *owner)
{
    tunnel_finish(owner, ETIMEDOUT);
}

static void
way_init(struct way *w, struct transport *from, struct transport *to, struct span early)
{
    w->from = from;
    w->to = to;
    splice_init(&w->splice);
    buf_add(&w->held, early);
}

/* A tunnel may be quiet for long, and a peer that lost its power or its route never says so. The
 * system's usual two hours before it asks are more than most tunnels live. */
static void
end_open(struct tunnel *t, struct transport *end, struct transport *from)
{
    transport_take(end, from, LOOP_TUNNEL, tunnel_io, t);
    transport_purpose(end, FD_TUNNEL);
    transport_probe_when_quiet(end, PROBE_AFTER_S);
}

struct tunnel *
tunnel_start(struct loop *l, const struct tunnel_options *o)
{
    struct tunnel *t = mem_zalloc(sizeof *t);

    t->magic = TUNNEL_MAGIC;
    t->loop = l;
    t->o = *o;
    end_open(t, &t->client, o->client);
    end_open(t, &t->server, o->server);
    way_init(&t->up, &t->client, &t->server, o->to_server);
    way_init(&t->down, &t->server, &t->client, o->to_client);
    loop_timer_init(&t->idle, l, tunnel_idle, t);
    loop_task_init(&t->begin, tunnel_begin, t);
    loop_task_init(&t->free_later, tunnel_free, t);
    counter_add(COUNTER_TUNNELS, 1);
    loop_defer(l, &t->begin);
    return t;
}

void
tunnel_bytes(const struct tunnel *t, uint64_t *up, uint64_t *down)
{
    *up = t->up.moved;
    *down = t->down.moved;
}

void
tunnel_close(struct tunnel **held)
{
    struct tunnel *t = *held;

    *held = NULL;
    if (!t)
        return;
    CHECK_OBJ(t, TUNNEL_MAGIC);
    if (!t->over)
        tunnel_end(t);
}
