/* proxy/upstream/idle.h - connections to next hops and the idle ones among them, per worker, by
 * hop. One that is bound to a client connection is found by that client alone, and goes with it. */
#ifndef PROXY_UPSTREAM_IDLE_H
#define PROXY_UPSTREAM_IDLE_H

#include "base/list.h"
#include "proxy/net/transport.h"
#include "proxy/upstream/hop.h"

struct idle_pool;
struct conn {
    uint32_t magic;
    struct transport transport;
    struct hop hop;
    struct idle_pool *pool;
    struct list by_hop, by_age; /* while idle */
    struct loop_timer timer;    /* idle time, or the user's read timeout */
    loop_io_fn *user_io;        /* while active */
    loop_fn *user_timeout;
    void *user;
    unsigned requests; /* sent on it so far */
    int64_t born_ms;
    struct loop_task free_later;
};

struct idle_pool *idle_pool_new(struct loop *l);
void idle_pool_free(struct idle_pool **p);
/* Takes t over. In use, by nobody yet. */
struct conn *conn_new(struct idle_pool *p, struct transport *t, const struct hop *hop);
void conn_use(struct conn *c, loop_io_fn *io, loop_fn *timeout, void *user);
/* In use: nobody but this client connection may have it from now on. */
void conn_bind(struct conn *c, uint64_t client_connection);
/* Hands the transport on: what comes over it is not HTTP any more. */
void conn_release(struct conn **held, struct transport *t);
/* An idle connection to it, the most recently used first; NULL: none. */
struct conn *idle_take(struct idle_pool *p, const struct hop *hop);
void idle_put(struct conn **held, int64_t for_ms);
void conn_close(struct conn **held);
unsigned idle_shed(struct idle_pool *p,
                   unsigned n); /* closes the n longest idle; returns how many */
void idle_close_all(struct idle_pool *p);
/* The client has gone, and its log-ins with it. */
void idle_close_bound(struct idle_pool *p, uint64_t client_connection);

#endif
