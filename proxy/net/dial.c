/* The race of RFC 8305: a few sockets connecting side by side, and one timer, which stands at
 * whatever is due first: the next attempt, the end of one, or the end of all. A connection to a
 * single address sets it once. */
#include "proxy/net/dial.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/fds.h"

#define DIAL_MAGIC 0xd1a1d1a1u

struct attempt {
    struct loop_io io;
    struct dial *dial;
    struct addr to;
    int64_t expires_ms;
    bool open;
};

struct dial {
    uint32_t magic;
    struct loop *loop;
    dial_fn *fn;
    void *owner;
    struct loop_timer due;
    struct loop_task start; /* the first attempt, or the failure of all, comes from the loop */
    unsigned n, next, open;
    int last_error;
    int64_t stagger_ms, attempt_ms, deadline_ms;
    int64_t next_ms; /* when the next attempt starts at the latest */
    struct attempt attempts[];
};

static void dial_next(struct dial *d);

static void
attempt_close(struct attempt *a)
{
    if (!a->open)
        return;
    a->open = false;
    a->dial->open--;
    loop_io_stop(&a->io);
    fds_close(a->io.fd);
}

static void
dial_release(struct dial *d)
{
    for (unsigned i = 0; i < d->next; i++)
        attempt_close(&d->attempts[i]);
    loop_timer_close(&d->due);
    loop_task_cancel(d->loop, &d->start);
    FREE_OBJ(d);
}

/* t: the winner; NULL: error says why there is none. */
static void
dial_finish(struct dial *d, struct transport *t, int error, const struct addr *to)
{
    dial_fn *fn = d->fn;
    void *owner = d->owner;
    struct addr where = to ? *to : ADDR_NONE;

    dial_release(d);
    fn(owner, t, error, &where);
}

static void
attempt_failed(struct attempt *a, int error)
{
    struct dial *d = a->dial;

    attempt_close(a);
    d->last_error = error;
    if (d->next < d->n)
        dial_next(d);
    else if (d->open == 0)
        dial_finish(d, NULL, -d->last_error, &a->to);
}

static void
attempt_ready(void *owner, int events)
{
    struct attempt *a = owner;
    struct dial *d = a->dial;
    struct transport won;
    int error = 0;
    socklen_t n = sizeof error;

    if (getsockopt(a->io.fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
        error = errno;
    if (error) {
        attempt_failed(a, error);
        return;
    }
    a->open = false; /* the winner leaves with the callback */
    d->open--;
    loop_io_stop(&a->io);
    transport_tcp_open(&won, d->loop, a->io.fd);
    dial_finish(d, &won, 0, &a->to);
    transport_close(&won); /* taken, as a rule */
}

static int
attempt_open(struct attempt *a)
{
    int on = 1;
    int64_t before = clock_exact_mono_ns();
    int fd = socket(a->to.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return errno;
    fds_open_took(clock_exact_mono_ns() - before);
    fds_adopt(fd, FD_SERVER_ACTIVE);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    counter_add(COUNTER_SERVER_CONNECTS, 1);
    if (connect(fd, &a->to.sa, addr_len(&a->to)) < 0 && errno != EINPROGRESS) {
        int error = errno;

        fds_close(fd);
        return error;
    }
    loop_io_init(&a->io, a->dial->loop, fd, LOOP_SERVER, attempt_ready, a);
    loop_io_want(&a->io, LOOP_WRITE);
    a->expires_ms = clock_mono_ms() + a->dial->attempt_ms;
    a->open = true;
    a->dial->open++;
    return 0;
}

static int64_t
earlier(int64_t a_ms, int64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

static void
dial_set_timer(struct dial *d)
{
    int64_t at_ms = d->deadline_ms;

    if (d->next < d->n)
        at_ms = earlier(at_ms, d->next_ms);
    for (unsigned i = 0; i < d->next; i++)
        if (d->attempts[i].open)
            at_ms = earlier(at_ms, d->attempts[i].expires_ms);
    loop_timer_set(&d->due, at_ms - clock_mono_ms());
}

/* Starts the next attempt; those that fail at once are passed over. */
static void
dial_next(struct dial *d)
{
    while (d->next < d->n) {
        int error = attempt_open(&d->attempts[d->next++]);

        if (error == 0) {
            d->next_ms = clock_mono_ms() + d->stagger_ms;
            dial_set_timer(d);
            return;
        }
        d->last_error = error;
    }
    if (d->open == 0)
        dial_finish(d, NULL, -d->last_error, d->n ? &d->attempts[d->n - 1].to : NULL);
}

static bool
close_expired(struct dial *d, int64_t now_ms)
{
    unsigned before = d->open;

    for (unsigned i = 0; i < d->next; i++)
        if (d->attempts[i].open && d->attempts[i].expires_ms <= now_ms) {
            attempt_close(&d->attempts[i]);
            d->last_error = ETIMEDOUT;
        }
    return d->open < before;
}

static void
dial_due(void *owner)
{
    struct dial *d = owner;
    int64_t now_ms = clock_mono_ms();
    bool one_failed = close_expired(d, now_ms);

    if (d->deadline_ms <= now_ms)
        dial_finish(d, NULL, -ETIMEDOUT, d->next ? &d->attempts[d->next - 1].to : NULL);
    else if (d->open == 0 || (d->next < d->n && (one_failed || d->next_ms <= now_ms)))
        dial_next(d);
    else
        dial_set_timer(d);
}

/* Time may have gone by before this, in finding the addresses or in an earlier try. */
static void
dial_begin(void *owner)
{
    struct dial *d = owner;

    if (d->deadline_ms <= clock_mono_ms())
        dial_finish(d, NULL, -ETIMEDOUT, d->n ? &d->attempts[0].to : NULL);
    else
        dial_next(d);
}

struct dial *
dial_start(struct loop *l, const struct dial_options *o)
{
    struct dial *d = mem_zalloc(sizeof *d + o->n * sizeof d->attempts[0]);

    d->magic = DIAL_MAGIC;
    d->loop = l;
    d->fn = o->fn;
    d->owner = o->owner;
    d->n = o->n;
    d->last_error = EHOSTUNREACH;
    d->stagger_ms = o->stagger_ms;
    d->attempt_ms = o->attempt_ms;
    d->deadline_ms = o->deadline_ms;
    for (unsigned i = 0; i < o->n; i++) {
        d->attempts[i].dial = d;
        d->attempts[i].to = o->to[i];
        addr_set_port(&d->attempts[i].to, o->port);
    }
    loop_timer_init(&d->due, l, dial_due, d);
    loop_task_init(&d->start, dial_begin, d);
    loop_defer(l, &d->start);
    return d;
}

void
dial_cancel(struct dial **held)
{
    struct dial *d = *held;

    *held = NULL;
    if (!d)
        return;
    CHECK_OBJ(d, DIAL_MAGIC);
    dial_release(d);
}
