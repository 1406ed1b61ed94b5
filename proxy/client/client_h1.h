/* proxy/client/client_h1.h - HTTP/1.x connections of clients (RFC 9112): heads in, responses out in
 * order, bodies as sources.
 *
 * An idle connection holds its struct and nothing else: buffers belong to work. A client dies by
 * itself; client_env_close ends all. */
#ifndef PROXY_CLIENT_CLIENT_H1_H
#define PROXY_CLIENT_CLIENT_H1_H

#include "proxy/exchange/exchange.h"

struct client_env { /* one per worker */
    struct exchange_env *exchanges;
    struct loop *loop;
    char *scratch; /* one read of any client */
    size_t scratch_bytes;
    struct buf out;         /* response heads are assembled here */
    struct list busy, idle; /* idle: longest first */
    unsigned n_clients;
    uint64_t last_connection; /* each has a number */
    bool stopping;            /* no further requests on a connection */
};

struct client_arrival { /* how a connection came to us */
    struct addr peer;
    const struct addr *local; /* the listener's address; outlives the client */
    const char *port_name;
    bool intercepts;         /* its port is for diverted connections */
    struct addr destination; /* where it was going; AF_UNSPEC: nothing has diverted it */
};

struct client;
void client_env_init(struct client_env *env, struct exchange_env *exchanges, char *scratch,
                     size_t scratch_bytes);
/* Takes over an accepted connection. */
void client_open(struct client_env *env, struct transport *t, const struct client_arrival *from);
unsigned client_shed(struct client_env *env,
                     unsigned n); /* closes the n longest idle; returns how many */
void
client_env_stop(struct client_env *env); /* closes the idle ones, the others after their response */
void client_env_close(struct client_env *env); /* closes all, now */
/* For the active_requests report. */
void client_each(struct client_env *env,
                 void (*fn)(void *arg, const struct addr *peer, const struct exchange *x),
                 void *arg);

#endif
