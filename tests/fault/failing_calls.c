/* The daemon with system calls that fail on demand. Linked into a program of its own, cuttle_fault:
 * what the program itself defines comes before every library, so that libev's and c-ares' calls
 * come by here too, and a sanitizer's wrappers are simply next in line. Nothing is preloaded.
 *
 * A script maps the file named by CUTTLE_FAULTS and writes there which call fails how, from the
 * how manieth on and how often. It reads back how many calls there were. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum call {
    NO_CALL,
    READ,
    SENDMSG,
    ACCEPT,
    SOCKET,
    CONNECT,
    EPOLL_CTL,
    EPOLL_WAIT,
    SPLICE,
    PIPE,
    SHUTDOWN,
    SETSOCKOPT,
    GETSOCKOPT,
    OPEN,
    CLOSE,
    WRITE,
    RECVFROM,
    DATAGRAM, /* sendmsg of one */
    PWRITE,
    PREAD,
    PREADV2,
    SENDFILE,
    FALLOCATE,
    OPENAT, /* also a folder's open */
    FTRUNCATE,
    FDATASYNC,
    RENAMEAT,
    CALLS
};

enum {
    SLOW_MS = 50,
    SHORT = 0,
    DROPPED = 10000, /* a write that says it was made, and was not: what a power cut leaves */
    TORN = 10001,    /* or only half of it */
    SLOW = 10002,    /* a read that takes SLOW_MS */
    HANGS = 10003    /* a read that hangs for seconds; one that would not wait says so */
};

enum { HANGS_S = 12 };

struct plan {               /* the order is known to test_calls.py */
    _Atomic uint32_t calls; /* 1 << enum call for each that may fail */
    _Atomic uint32_t skip, times;
    _Atomic uint32_t error;     /* errno, or SHORT: one byte instead of many */
    _Atomic uint32_t per_mille; /* not 0: chance decides which and how, with this likelihood */
    _Atomic uint32_t seen, failed;
    _Atomic uint32_t seed;
};

static struct plan none, *plan = &none;

/* What may happen to a call when chance decides. */
static const int ERRORS[CALLS][6] = {
    [READ] = {SHORT, EAGAIN, EINTR, ECONNRESET, SHORT, EAGAIN},
    [SENDMSG] = {SHORT, EAGAIN, EINTR, EPIPE, ENOBUFS, SHORT},
    [ACCEPT] = {EAGAIN, ECONNABORTED, EMFILE, ENFILE, ENOMEM, EINTR},
    [SOCKET] = {EMFILE, ENFILE, ENOBUFS, EACCES, ENOMEM, EAFNOSUPPORT},
    [CONNECT] = {ECONNREFUSED, ENETUNREACH, EADDRNOTAVAIL, ETIMEDOUT, EAGAIN, EPERM},
    [EPOLL_CTL] = {ENOMEM, ENOSPC, ENOMEM, ENOSPC, ENOMEM, ENOSPC},
    [EPOLL_WAIT] = {EINTR, EINTR, EINTR, EINTR, EINTR, EINTR},
    [SPLICE] = {SHORT, EAGAIN, ENOMEM, EPIPE, SHORT, EAGAIN},
    [PIPE] = {EMFILE, ENFILE, EMFILE, ENFILE, EMFILE, ENFILE},
    [SHUTDOWN] = {ENOTCONN, ENOTCONN, ENOTCONN, ENOTCONN, ENOTCONN, ENOTCONN},
    [SETSOCKOPT] = {EINVAL, ENOBUFS, ENOMEM, EINVAL, EINVAL, EINVAL},
    [GETSOCKOPT] = {ENOBUFS, ENOMEM, EINVAL, ENOBUFS, EINVAL, EINVAL},
    [OPEN] = {EMFILE, ENFILE, ENOMEM, EMFILE, EMFILE, EMFILE},
    [CLOSE] = {EINTR, EIO, EINTR, EIO, EINTR, EIO},
    [WRITE] = {ENOSPC, EIO, SHORT, EINTR, ENOSPC, SHORT},
    [RECVFROM] = {EAGAIN, ECONNREFUSED, ENOMEM, EINTR, EAGAIN, EAGAIN},
    [DATAGRAM] = {ENOBUFS, EAGAIN, ENETUNREACH, EPERM, ECONNREFUSED, EINTR},
    [PWRITE] = {ENOSPC, EIO, SHORT, EINTR, TORN, DROPPED},
    [PREAD] = {EIO, SHORT, EINTR, EIO, SHORT, EINTR},
    [PREADV2] = {EIO, SHORT, EAGAIN, EINTR, EAGAIN, EOPNOTSUPP},
    [SENDFILE] = {EIO, SHORT, EAGAIN, EINTR, EINVAL, EPIPE},
    [FALLOCATE] = {EOPNOTSUPP, EIO, ENOSPC, EINTR, EOPNOTSUPP, EIO},
    [OPENAT] = {EMFILE, ENFILE, ENOMEM, EACCES, EIO, EMFILE},
    [FTRUNCATE] = {ENOSPC, EIO, EINTR, ENOSPC, EIO, EPERM},
    [FDATASYNC] = {EIO, ENOSPC, EIO, ENOSPC, EIO, EIO},
    [RENAMEAT] = {ENOSPC, EIO, EACCES, ENOSPC, EIO, EROFS},
};

__attribute__((constructor)) static void
plan_map(void)
{
    const char *path = getenv("CUTTLE_FAULTS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *at =
        fd >= 0 ? mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (fd >= 0)
        close(fd);
    if (at != MAP_FAILED)
        plan = at;
}

static uint32_t
chance(void)
{
    uint32_t x = atomic_fetch_add(&plan->seed, 0x9e3779b9u);

    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

static bool
chance_decides(enum call call, int *error)
{
    *error = ERRORS[call][chance() % 6];
    return chance() % 1000 < atomic_load(&plan->per_mille);
}

static bool
turn_decides(int *error)
{
    uint32_t nth = atomic_fetch_add(&plan->seen, 1), skip = atomic_load(&plan->skip);

    *error = (int)atomic_load(&plan->error);
    return nth >= skip && nth - skip < atomic_load(&plan->times);
}

/* Is it this call's turn? *error says how it fails. */
static bool
fails(enum call call, int *error)
{
    if (!(atomic_load(&plan->calls) >> call & 1))
        return false;
    if (!(atomic_load(&plan->per_mille) ? chance_decides(call, error) : turn_decides(error)))
        return false;
    atomic_fetch_add(&plan->failed, 1);
    return true;
}

static int
failure(int error)
{
    errno = error;
    return -1;
}

/* Several threads may look at once: they find the same. */
static void *
next_of(void *_Atomic *known, const char *name)
{
    void *next = atomic_load_explicit(known, memory_order_acquire);

    if (next == NULL) {
        next = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(known, next, memory_order_release);
    }
    return next;
}

/* A function that takes the place of `name`, and NEXT(name) for the one it took it from. The label
 * keeps the declarations of the system's headers out of it. */
#define TAKE(type, name, ...)                                                                      \
    type taken_##name(__VA_ARGS__) __asm__(#name);                                                 \
    static void *_Atomic next_##name;                                                              \
    typedef type fn_##name(__VA_ARGS__);                                                           \
    type taken_##name(__VA_ARGS__)
#define NEXT(name) ((fn_##name *)next_of(&next_##name, #name))

TAKE(ssize_t, read, int fd, void *at, size_t n)
{
    int error;

    if (!fails(READ, &error))
        return NEXT(read)(fd, at, n);
    return error == SHORT ? NEXT(read)(fd, at, n ? 1 : 0) : failure(error);
}

/* Only of a connection that is over already. */
TAKE(int, shutdown, int fd, int how)
{
    int error;

    if (!fails(SHUTDOWN, &error))
        return NEXT(shutdown)(fd, how);
    (void)NEXT(shutdown)(fd, SHUT_RDWR);
    return failure(error);
}

TAKE(int, setsockopt, int fd, int level, int name, const void *value, socklen_t n)
{
    int error;

    return fails(SETSOCKOPT, &error) ? failure(error) : NEXT(setsockopt)(fd, level, name, value, n);
}

TAKE(int, getsockopt, int fd, int level, int name, void *value, socklen_t *n)
{
    int error;

    return fails(GETSOCKOPT, &error) ? failure(error) : NEXT(getsockopt)(fd, level, name, value, n);
}

static bool
is_socket(int fd)
{
    struct stat s;

    return fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode);
}

static bool
is_datagram(int fd)
{
    int type = 0;
    socklen_t n = sizeof type;

    return NEXT(getsockopt)(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_DGRAM;
}

/* An error that tells of a dead connection comes of a dead connection, which has an end in the
 * other direction too: that is what the program goes by. */
static int
broken(int fd, int error)
{
    (void)NEXT(shutdown)(fd, SHUT_RDWR);
    return failure(error);
}

static bool
is_end(int error)
{
    return error == EPIPE || error == ECONNRESET;
}

static ssize_t
send_one_byte(int fd, const struct msghdr *m, int flags,
              ssize_t (*send)(int, const struct msghdr *, int))
{
    struct msghdr less = *m;
    struct iovec one;

    for (size_t i = 0; i < m->msg_iovlen; i++)
        if (m->msg_iov[i].iov_len) {
            one = (struct iovec){m->msg_iov[i].iov_base, 1};
            less.msg_iov = &one;
            less.msg_iovlen = 1;
            break;
        }
    return send(fd, &less, flags);
}

TAKE(ssize_t, sendmsg, int fd, const struct msghdr *m, int flags)
{
    int error;

    if (!fails(is_datagram(fd) ? DATAGRAM : SENDMSG, &error))
        return NEXT(sendmsg)(fd, m, flags);
    if (error == SHORT)
        return send_one_byte(fd, m, flags, NEXT(sendmsg));
    return is_end(error) ? broken(fd, error) : failure(error);
}

TAKE(int, accept4, int fd, struct sockaddr *from, socklen_t *n, int flags)
{
    int error;

    return fails(ACCEPT, &error) ? failure(error) : NEXT(accept4)(fd, from, n, flags);
}

TAKE(int, socket, int family, int type, int protocol)
{
    int error;

    return fails(SOCKET, &error) ? failure(error) : NEXT(socket)(family, type, protocol);
}

TAKE(int, connect, int fd, const struct sockaddr *to, socklen_t n)
{
    int error;

    return fails(CONNECT, &error) ? failure(error) : NEXT(connect)(fd, to, n);
}

/* Only what is new to the set takes room; afterwards it is as new as before. */
TAKE(int, epoll_ctl, int ep, int op, int fd, struct epoll_event *e)
{
    int error, done = NEXT(epoll_ctl)(ep, op, fd, e);

    if (done < 0 || op != EPOLL_CTL_ADD || !fails(EPOLL_CTL, &error))
        return done;
    (void)NEXT(epoll_ctl)(ep, EPOLL_CTL_DEL, fd, e);
    return failure(error);
}

TAKE(int, epoll_wait, int ep, struct epoll_event *e, int n, int timeout)
{
    int error;

    return fails(EPOLL_WAIT, &error) ? failure(error) : NEXT(epoll_wait)(ep, e, n, timeout);
}

/* The broken pipe is the socket written to: the pipe between has both ends in one hand. */
TAKE(ssize_t, splice, int from, off64_t *from_at, int to, off64_t *to_at, size_t n, unsigned flags)
{
    int error;

    if (!fails(SPLICE, &error))
        return NEXT(splice)(from, from_at, to, to_at, n, flags);
    if (error == SHORT)
        return NEXT(splice)(from, from_at, to, to_at, 1, flags);
    if (is_end(error))
        return is_socket(to) ? broken(to, error) : failure(ECONNRESET);
    return failure(error);
}

TAKE(int, pipe2, int *ends, int flags)
{
    int error;

    return fails(PIPE, &error) ? failure(error) : NEXT(pipe2)(ends, flags);
}

TAKE(int, open, const char *path, int flags, ...)
{
    int error, mode = 0;
    va_list more;

    va_start(more, flags);
    if (flags & (O_CREAT | O_TMPFILE))
        mode = va_arg(more, int);
    va_end(more);
    return fails(flags & O_DIRECTORY ? OPENAT : OPEN, &error)
               ? failure(error)
               : ((int (*)(const char *, int, ...))next_of(&next_open, "open"))(path, flags, mode);
}

/* The descriptor is gone all the same, as on Linux it is. */
TAKE(int, close, int fd)
{
    int error, done = NEXT(close)(fd);

    return done == 0 && fails(CLOSE, &error) ? failure(error) : done;
}

/* Only files: a log's disk can be full; the descriptor by which threads wake each other can't. */
TAKE(ssize_t, write, int fd, const void *at, size_t n)
{
    struct stat s;
    int error;

    if (fd <= 2 || fstat(fd, &s) < 0 || !S_ISREG(s.st_mode) || !fails(WRITE, &error))
        return NEXT(write)(fd, at, n);
    return error == SHORT ? NEXT(write)(fd, at, n ? 1 : 0) : failure(error);
}

TAKE(ssize_t, recvfrom, int fd, void *at, size_t n, int flags, struct sockaddr *from, socklen_t *m)
{
    int error;

    return fails(RECVFROM, &error) ? failure(error) : NEXT(recvfrom)(fd, at, n, flags, from, m);
}

/* A disk. */
TAKE(ssize_t, pwrite, int fd, const void *at, size_t n, off_t offset)
{
    int error;

    if (!fails(PWRITE, &error))
        return NEXT(pwrite)(fd, at, n, offset);
    switch (error) {
    case SHORT:
        return NEXT(pwrite)(fd, at, n ? 1 : 0, offset);
    case TORN:
        (void)NEXT(pwrite)(fd, at, n / 2, offset);
        return (ssize_t)n;
    case DROPPED:
        return (ssize_t)n;
    default:
        return failure(error);
    }
}

TAKE(ssize_t, pread, int fd, void *at, size_t n, off_t offset)
{
    int error;

    if (!fails(PREAD, &error))
        return NEXT(pread)(fd, at, n, offset);
    if (error == SLOW) {
        (void)poll(NULL, 0, SLOW_MS);
        return NEXT(pread)(fd, at, n, offset);
    }
    if (error == HANGS) {
        sleep(HANGS_S);
        return NEXT(pread)(fd, at, n, offset);
    }
    return error == SHORT ? NEXT(pread)(fd, at, n ? 1 : 0, offset) : failure(error);
}

TAKE(ssize_t, preadv2, int fd, const struct iovec *at, int n, off_t offset, int flags)
{
    int error;

    if (!fails(PREADV2, &error))
        return NEXT(preadv2)(fd, at, n, offset, flags);
    if (error == HANGS)
        return failure(EAGAIN);
    return error == SHORT ? NEXT(preadv2)(fd, at, n ? 1 : 0, offset, flags) : failure(error);
}

TAKE(ssize_t, sendfile, int to, int from, off_t *offset, size_t n)
{
    int error;

    if (!fails(SENDFILE, &error))
        return NEXT(sendfile)(to, from, offset, n);
    return error == SHORT ? NEXT(sendfile)(to, from, offset, n ? 1 : 0) : failure(error);
}

TAKE(int, openat, int at, const char *path, int flags, ...)
{
    int error, mode = 0;
    va_list more;

    va_start(more, flags);
    if (flags & (O_CREAT | O_TMPFILE))
        mode = va_arg(more, int);
    va_end(more);
    return fails(OPENAT, &error) ? failure(error)
                                 : ((int (*)(int, const char *, int, ...))next_of(
                                       &next_openat, "openat"))(at, path, flags, mode);
}

TAKE(int, ftruncate, int fd, off_t n)
{
    int error;

    return fails(FTRUNCATE, &error) ? failure(error) : NEXT(ftruncate)(fd, n);
}

TAKE(int, fdatasync, int fd)
{
    int error;

    return fails(FDATASYNC, &error) ? failure(error) : NEXT(fdatasync)(fd);
}

TAKE(int, renameat, int from, const char *name, int to, const char *becomes)
{
    int error;

    return fails(RENAMEAT, &error) ? failure(error) : NEXT(renameat)(from, name, to, becomes);
}

TAKE(int, fallocate, int fd, int mode, off_t offset, off_t n)
{
    int error;

    return fails(FALLOCATE, &error) ? (int)failure(error) : NEXT(fallocate)(fd, mode, offset, n);
}
