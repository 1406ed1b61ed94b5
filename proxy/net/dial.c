/* The race of RFC 8305: a few sockets connecting side by side, one timer that starts the next and
 * one for the whole. */
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
    bool open;
};

struct dial {
    uint32_t magic;
    struct loop *loop;
    dial_fn *fn;
    void *owner;
    struct loop_timer stagger, whole;
    struct loop_task start; /* the first attempt, or the failure of all, comes from the loop */
    unsigned n, next, open;
    int last_error;
    int64_t stagger_ms;
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
    loop_timer_close(&d->stagger);
    loop_timer_close(&d->whole);
    loop_task_cancel(d->loop, &d->start);
    FREE_OBJ(d);
}

static void
dial_finish(struct dial *d, int fd, const struct addr *to)
{
    dial_fn *fn = d->fn;
    void *owner = d->owner;
    struct addr where = to ? *to : ADDR_NONE;

    dial_release(d);
    fn(owner, fd, &where);
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
        dial_finish(d, -d->last_error, &a->to);
}

static void
attempt_ready(void *owner, int events)
{
    struct attempt *a = owner;
    struct dial *d = a->dial;
    int error = 0;
    socklen_t n = sizeof error;

    if (getsockopt(a->io.fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
        error = errno;
    if (error) {
        attempt_failed(a, error);
        return;
    }
    a->open = false; /* the winner's descriptor leaves with the callback */
    d->open--;
    loop_io_stop(&a->io);
    dial_finish(d, a->io.fd, &a->to);
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
    a->open = true;
    a->dial->open++;
    return 0;
}

/* Starts the next attempt; those that fail at once are passed over. */
static void
dial_next(struct dial *d)
{
    while (d->next < d->n) {
        int error = attempt_open(&d->attempts[d->next++]);

        if (error == 0) {
            loop_timer_set(&d->stagger, d->stagger_ms);
            return;
        }
        d->last_error = error;
    }
    if (d->open == 0)
        dial_finish(d, -d->last_error, d->n ? &d->attempts[d->n - 1].to : NULL);
}

static void
dial_begin(void *owner)
{
    dial_next(owner);
}

static void
dial_stagger(void *owner)
{
    struct dial *d = owner;

    if (d->next < d->n)
        dial_next(d);
}

static void
dial_expired(void *owner)
{
    struct dial *d = owner;

    dial_finish(d, -ETIMEDOUT, d->next ? &d->attempts[d->next - 1].to : NULL);
}

struct dial *
dial_start(struct loop *l, const struct addr *to, unsigned n, uint16_t port, int64_t timeout_ms,
           int64_t stagger_ms, dial_fn *fn, void *owner)
{
    struct dial *d = mem_zalloc(sizeof *d + n * sizeof d->attempts[0]);

    d->magic = DIAL_MAGIC;
    d->loop = l;
    d->fn = fn;
    d->owner = owner;
    d->n = n;
    d->last_error = EHOSTUNREACH;
    d->stagger_ms = stagger_ms;
    for (unsigned i = 0; i < n; i++) {
        d->attempts[i].dial = d;
        d->attempts[i].to = to[i];
        addr_set_port(&d->attempts[i].to, port);
    }
    loop_timer_init(&d->stagger, l, dial_stagger, d);
    loop_timer_init(&d->whole, l, dial_expired, d);
    loop_task_init(&d->start, dial_begin, d);
    loop_timer_set(&d->whole, timeout_ms);
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
