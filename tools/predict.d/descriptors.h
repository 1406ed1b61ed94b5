/* tools/predict.d/descriptors.h - how many descriptors a proxy would have held for the requests of
 * a log, by the overlap of their intervals.
 *
 * The model. A request holds a client connection from its arrival to its end, and a server
 * connection for as long when it goes to a server. Without persistence both close at the end. With
 * it the connection stays, idle, until its timeout; the next request of that client (or to that
 * server) takes the one that became idle last, as proxies do. A tunnel opens its own connections
 * on both sides and closes them; a request that must not be repeated goes out on a fresh server
 * connection, which stays afterwards like any other. Nothing waits: a client has as many
 * connections as it had requests at once.
 *
 * At equal times ends come before arrivals, so a connection can be taken over at once; a request
 * of no duration is there for a moment and counts in the peak. Exact, without randomness. Memory:
 * 24 bytes a request for the caller, 14 for the plan, more while it sorts; time is linear per
 * model. */
#ifndef TOOLS_PREDICT_D_DESCRIPTORS_H
#define TOOLS_PREDICT_D_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FD_NO_SERVER = (1 << 30) - 1 };

struct fd_request {
    int64_t start_us, end_us; /* end >= start */
    uint32_t client;          /* from 0, dense */
    uint32_t server : 30;     /* from 0, dense, or FD_NO_SERVER */
    uint32_t tunnel : 1;
    uint32_t fresh : 1; /* takes no idle server connection */
};

struct fd_model {
    int64_t client_idle_us, server_idle_us; /* 0: that side is not persistent */
};

struct fd_levels {
    uint32_t requests, tunnels; /* under way; requests without the tunnels */
    uint32_t client_active, client_idle, server_active, server_idle;
};

struct fd_need {
    double mean, client_mean, server_mean; /* over the log's span, idle ones included */
    uint32_t peak;
    int64_t peak_at_us;
    struct fd_levels at_peak;
    uint64_t client_opened, server_opened;
    uint64_t client_asked, server_asked; /* what would be opened without persistence */
};

/* Told each stretch of time with constant levels, in order; stretches of no length too. */
typedef void fd_level_fn(void *arg, int64_t from_us, int64_t until_us, const struct fd_levels *l);

struct fd_plan;

/* Sorts the requests (in place, by arrival) and borrows them for the plan's life. n below 2^32. */
struct fd_plan *fd_plan_new(struct fd_request *requests, size_t n);
void fd_plan_span(const struct fd_plan *p, int64_t *first_us, int64_t *last_us);
/* tell may be NULL. */
struct fd_need fd_plan_predict(struct fd_plan *p, const struct fd_model *m, fd_level_fn *tell,
                               void *arg);
void fd_plan_free(struct fd_plan **held);

static inline uint32_t
fd_levels_sum(const struct fd_levels *l)
{
    return l->client_active + l->client_idle + l->server_active + l->server_idle;
}

#endif
