/* A socket as a transport. Thin on purpose: one system call a function, EINTR handled in one place.
 */
#include "proxy/net/splice.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

static ssize_t
tcp_read(struct transport *t, void *at, size_t n_bytes)
{
    ssize_t got;

    do
        got = read(t->io.fd, at, n_bytes);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

static ssize_t
tcp_writev(struct transport *t, const struct iovec *runs, int n)
{
    struct msghdr message = {.msg_iov = (struct iovec *)runs, .msg_iovlen = (size_t)n};
    ssize_t sent;

    do
        sent = sendmsg(t->io.fd, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

/* For file systems that have no sendfile. */
static ssize_t
copy_file(struct transport *t, int fd, uint64_t at, size_t n_bytes)
{
    char bytes[16384];
    ssize_t got = pread(fd, bytes, n_bytes < sizeof bytes ? n_bytes : sizeof bytes, (off_t)at);
    struct iovec run = {bytes, got > 0 ? (size_t)got : 0};

    return got > 0 ? tcp_writev(t, &run, 1) : -EIO;
}

static ssize_t
tcp_sendfile(struct transport *t, int fd, uint64_t at, size_t n_bytes)
{
    off_t from = (off_t)at;
    ssize_t sent;

    do
        sent = sendfile(t->io.fd, fd, &from, n_bytes);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && (errno == EINVAL || errno == ENOSYS))
        return copy_file(t, fd, at, n_bytes);
    if (sent == 0)
        return -EIO;
    return sent < 0 ? -errno : sent;
}

static void
tcp_want(struct transport *t, int events)
{
    loop_io_want(&t->io, events);
}

static size_t
tcp_pending(const struct transport *t)
{
    (void)t;
    return 0; /* the kernel has it, and says so */
}

static int
tcp_shutdown(struct transport *t)
{
    return shutdown(t->io.fd, SHUT_WR) < 0 ? -errno : 0;
}

static void
tcp_close(struct transport *t)
{
    fds_close(t->io.fd);
}

static const struct transport_ops TCP = {"tcp",    tcp_read,    tcp_writev,   tcp_sendfile,
                                         tcp_want, tcp_pending, tcp_shutdown, tcp_close};

void
transport_tcp_open(struct transport *t, struct loop *l, int fd)
{
    t->ops = &TCP;
    loop_io_init(&t->io, l, fd, LOOP_CLIENT, NULL, NULL);
}

void
transport_take(struct transport *t, struct transport *from, enum loop_kind kind, loop_io_fn *fn,
               void *owner)
{
    CHECK(from->ops);
    loop_io_stop(&from->io);
    t->ops = from->ops;
    from->ops = NULL;
    loop_io_init(&t->io, from->io.loop, from->io.fd, kind, fn, owner);
}

ssize_t
transport_read(struct transport *t, void *at, size_t n_bytes)
{
    return t->ops ? t->ops->read(t, at, n_bytes) : -EBADF;
}

ssize_t
transport_write(struct transport *t, const void *at, size_t n_bytes)
{
    struct iovec run = {(void *)at, n_bytes};

    return transport_writev(t, &run, 1);
}

ssize_t
transport_writev(struct transport *t, const struct iovec *runs, int n)
{
    return t->ops ? t->ops->writev(t, runs, n) : -EBADF;
}

ssize_t
transport_sendfile(struct transport *t, int fd, uint64_t at, size_t n_bytes)
{
    return t->ops ? t->ops->sendfile(t, fd, at, n_bytes) : -EBADF;
}

void
transport_want(struct transport *t, int events)
{
    if (t->ops)
        t->ops->want(t, events);
}

int
transport_wanted(const struct transport *t)
{
    return t->ops ? t->io.wanted : 0;
}

size_t
transport_pending(const struct transport *t)
{
    return t->ops ? t->ops->pending(t) : 0;
}

int
transport_shutdown(struct transport *t)
{
    return t->ops ? t->ops->shutdown(t) : -EBADF;
}

void
transport_close(struct transport *t)
{
    const struct transport_ops *ops = t->ops;

    if (!ops)
        return;
    loop_io_stop(&t->io);
    t->ops = NULL;
    ops->close(t);
}

void
transport_reset(struct transport *t)
{
    struct linger abortive = {.l_onoff = 1, .l_linger = 0};

    if (t->ops)
        (void)setsockopt(t->io.fd, SOL_SOCKET, SO_LINGER, &abortive, sizeof abortive);
    transport_close(t);
}

void
transport_purpose(struct transport *t, enum fd_purpose p)
{
    if (t->ops)
        fds_purpose(t->io.fd, p);
}

void
transport_note(struct transport *t, struct span text)
{
    if (t->ops)
        fds_note(t->io.fd, text);
}

void
transport_probe_when_quiet(struct transport *t, int after_s)
{
    int on = 1;

    if (!t->ops)
        return;
    (void)setsockopt(t->io.fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(t->io.fd, IPPROTO_TCP, TCP_KEEPIDLE, &after_s, sizeof after_s);
}

/* The socket, when bytes pass through nothing but it; else -1. Also known to splice.c. */
int
transport_plain_socket(const struct transport *t)
{
    return t->ops == &TCP ? t->io.fd : -1;
}
