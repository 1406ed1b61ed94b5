/* proxy/upstream/idle.h - connections to origins and the idle ones among them, per worker, by
 * address and port. */
#ifndef PROXY_UPSTREAM_IDLE_H
#define PROXY_UPSTREAM_IDLE_H

#include "base/addr.h"
#include "base/list.h"
#include "proxy/net/transport.h"

struct idle_pool;
struct conn {
    uint32_t magic;
    struct transport transport;
    struct addr to; /* with port */
    struct idle_pool *pool;
    struct list by_address, by_age; /* while idle */
    struct loop_timer timer;        /* idle time, or the user's read timeout */
    loop_io_fn *user_io;            /* while active */
    loop_fn *user_timeout;
    void *user;
    unsigned requests; /* sent on it so far */
    int64_t born_ms;
    struct loop_task free_later;
};

struct idle_pool *idle_pool_new(struct loop *l);
void idle_pool_free(struct idle_pool **p);
/* A connected descriptor becomes a connection in use by `user`. */
struct conn *conn_new(struct idle_pool *p, int fd, const struct addr *to);
void conn_use(struct conn *c, loop_io_fn *io, loop_fn *timeout, void *user);
/* An idle connection to one of these addresses, the most recently used first; NULL: none. */
struct conn *idle_take(struct idle_pool *p, const struct addr *to, unsigned n, uint16_t port);
void idle_put(struct conn **held, int64_t for_ms);
void conn_close(struct conn **held);
unsigned idle_shed(struct idle_pool *p,
                   unsigned n); /* closes the n longest idle; returns how many */
void idle_close_all(struct idle_pool *p);

#endif
