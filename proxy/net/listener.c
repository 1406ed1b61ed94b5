/* Accepts in batches: one wake-up takes what is there, up to a budget, so that busy times cost few
 * readiness calls. */
#include "proxy/net/listener.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/fds.h"
#include "base/log.h"

#define ACCEPT_BATCH 64
#define PAUSE_MS 100
#define LISTENER_MAGIC 0x11570e75u

struct listener {
    uint32_t magic;
    struct loop_io io;
    struct loop_timer pause;
    struct listener_options o;
};

static int
bind_and_listen(int fd, const struct listener_options *o)
{
    int on = 1, v6only = !o->both_families;
    int error = o->diversion == DIVERSION_TPROXY
                    ? intercept_make_transparent(fd, o->address.sa.sa_family)
                    : 0;

    if (error < 0)
        return error;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) < 0)
        return -errno;
    if (o->address.sa.sa_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof v6only) < 0)
        return -errno;
    /* Accepted sockets inherit TCP_NODELAY, which saves a system call each. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (bind(fd, &o->address.sa, addr_len(&o->address)) < 0 || listen(fd, 4096) < 0)
        return -errno;
    return 0;
}

int
listener_bind(const struct listener_options *o)
{
    int fd = socket(o->address.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error;

    if (fd < 0)
        return -errno;
    fds_adopt(fd, FD_LISTENING);
    error = bind_and_listen(fd, o);
    if (error < 0) {
        fds_close(fd);
        return error;
    }
    return fd;
}

/* Takes the waiting client with the reserve descriptor and closes it at once: better than leaving
 * it to wait for ever. */
static void
turn_one_away(struct listener *l)
{
    int fd;

    if (!fds_reserve_use())
        return;
    fd = accept4(l->io.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        (void)close(fd);
    fds_reserve_refill();
}

static void
accept_failed(struct listener *l, int error)
{
    unsigned shed = l->o.shed ? l->o.shed(l->o.owner) : 0;

    counter_add(COUNTER_ACCEPT_FAILURES, 1);
    log_event_every(
        5000, LOG_WARN, "accept: %s; %u idle connections closed, %llu of %llu descriptors in use",
        strerror(error), shed, (unsigned long long)fds_in_use(), (unsigned long long)fds_limit());
    if (shed == 0)
        turn_one_away(l);
    loop_io_want(&l->io, 0);
    loop_timer_set(&l->pause, shed ? 1 : PAUSE_MS);
}

static bool
error_is_passing(int error)
{
    return error == ECONNABORTED || error == EINTR || error == EPROTO || error == EPERM ||
           error == ENETDOWN || error == EHOSTUNREACH || error == ENETUNREACH;
}

static void
accepted(struct listener *l, int fd, const struct addr *peer)
{
    struct addr destination = ADDR_NONE;
    struct transport t;

    fds_adopt(fd, FD_CLIENT_ACTIVE);
    fds_reserve_refill(); /* descriptors may have come back since listener_resume tried */
    counter_add(COUNTER_CLIENT_ACCEPTS, 1);
    if (l->o.diversion != DIVERSION_NONE)
        destination = intercept_destination(fd, l->o.diversion, &l->o.address);
    transport_tcp_open(&t, l->io.loop, fd);
    l->o.accepted(l->o.owner, l, &t, peer, &destination);
    transport_close(&t);
}

static void
listener_ready(void *owner, int events)
{
    struct listener *l = owner;

    for (int i = 0; i < ACCEPT_BATCH; i++) {
        struct sockaddr_storage peer;
        struct addr from;
        socklen_t n = sizeof peer;
        int64_t before = clock_exact_mono_ns();
        int fd = accept4(l->io.fd, (struct sockaddr *)&peer, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && errno == EAGAIN)
            return;
        if (fd < 0 && error_is_passing(errno))
            continue;
        if (fd < 0) {
            accept_failed(l, errno);
            return;
        }
        fds_open_took(clock_exact_mono_ns() - before);
        from = addr_from_sockaddr((struct sockaddr *)&peer);
        accepted(l, fd, &from);
    }
}

static void
listener_resume(void *owner)
{
    struct listener *l = owner;

    /* When the reserve was spent, somebody else may have taken the descriptor that was to become
     * the next one. */
    fds_reserve_refill();
    loop_io_want(&l->io, LOOP_READ);
}

struct listener *
listener_start(struct loop *loop, int fd, const struct listener_options *o)
{
    struct listener *l = mem_zalloc(sizeof *l);

    l->magic = LISTENER_MAGIC;
    l->o = *o;
    loop_io_init(&l->io, loop, fd, LOOP_LISTEN, listener_ready, l);
    loop_timer_init(&l->pause, loop, listener_resume, l);
    loop_io_want(&l->io, LOOP_READ);
    return l;
}

const struct addr *
listener_address(const struct listener *l)
{
    return &l->o.address;
}

void
listener_stop(struct listener **held)
{
    struct listener *l = *held;

    *held = NULL;
    if (!l)
        return;
    CHECK_OBJ(l, LISTENER_MAGIC);
    loop_timer_close(&l->pause);
    loop_io_stop(&l->io);
    fds_close(l->io.fd);
    FREE_OBJ(l);
}
