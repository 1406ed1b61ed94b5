/* proxy/net/transport.h - bytes both ways, as an interface: TCP now, TLS later.
 *
 * A transport lives inside its owner, belongs to one loop, and owns its descriptor, which nobody
 * outside net/ sees. It moves from owner to owner as an object: what dials, accepts, upgrades or
 * steals hands one over, and transport_take moves it. Reads and writes never block and return
 * -errno (-EAGAIN: say what you want and wait for the callback). After transport_close, or when it
 * was taken, no callback comes. */
#ifndef PROXY_NET_TRANSPORT_H
#define PROXY_NET_TRANSPORT_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/fds.h"
#include "base/loop.h"
#include "base/span.h"

struct transport;
struct transport_ops {
    const char *name;
    ssize_t (*read)(struct transport *t, void *at, size_t n_bytes);
    ssize_t (*writev)(struct transport *t, const struct iovec *runs, int n);
    ssize_t (*sendfile)(struct transport *t, int fd, uint64_t at, size_t n_bytes);
    void (*want)(struct transport *t, int events);
    size_t (*pending)(const struct transport *t); /* bytes it has read already: no event comes */
    int (*shutdown)(struct transport *t);
    void (*close)(struct transport *t);
};

struct transport {
    const struct transport_ops *ops; /* NULL: closed */
    struct loop_io io;
};

/* Takes over a connected socket, non-blocking and already in the census. Nobody hears of it yet. */
void transport_tcp_open(struct transport *t, struct loop *l, int fd);
/* t becomes what `from` is, and from is closed without closing anything. fn hears of it from now
 * on; nothing is wanted at first. */
void transport_take(struct transport *t, struct transport *from, enum loop_kind kind,
                    loop_io_fn *fn, void *owner);
ssize_t transport_read(struct transport *t, void *at, size_t n_bytes); /* 0: end of stream */
ssize_t transport_write(struct transport *t, const void *at, size_t n_bytes);
ssize_t transport_writev(struct transport *t, const struct iovec *runs, int n);
/* Bytes of a file that are known to be there; -EIO when they are not. */
ssize_t transport_sendfile(struct transport *t, int fd, uint64_t at, size_t n_bytes);
void transport_want(struct transport *t, int events); /* exactly these: LOOP_READ | LOOP_WRITE */
int transport_wanted(const struct transport *t);
size_t transport_pending(const struct transport *t);
int transport_shutdown(struct transport *t); /* FIN: no more from us */
void transport_close(struct transport *t);   /* closing twice is fine */
void transport_reset(
    struct transport *t); /* RST instead of FIN: the peer must see that this is incomplete */
/* In the census of descriptors. */
void transport_purpose(struct transport *t, enum fd_purpose p);
void transport_note(struct transport *t, struct span text);
/* The system asks the peer whether it is still there when it has been silent for so long. */
void transport_probe_when_quiet(struct transport *t, int after_s);

static inline bool
transport_is_open(const struct transport *t)
{
    return t->ops != NULL;
}

#endif
