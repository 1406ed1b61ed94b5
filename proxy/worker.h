/* proxy/worker.h - a thread with its loop, listeners, resolver, idle connections and exchanges.
 * Everything here but worker_new belongs to the main thread. */
#ifndef PROXY_WORKER_H
#define PROXY_WORKER_H

#include "dns/resolver.h"
#include "proxy/policy/policy.h"
#include "proxy/log/log_sinks.h"
#include "proxy/net/intercept.h"

struct worker;
struct manager;

struct worker_port {
    int fd; /* bound and listening; the worker's */
    struct addr address;
    bool both_families;
    enum diversion diversion;
    const char *name;
};

struct worker_options {
    unsigned id;
    enum loop_backend backend;
    struct store *store;
    struct tiers *tiers; /* NULL: there is no disk */
    struct answer_cache *answers;
    const struct resolver_options *resolver; /* not kept */
    struct manager *manager;
    struct worker_port *ports; /* copied */
    unsigned n_ports;
    struct policy *policy;   /* a reference is taken */
    struct log_sinks *sinks; /* likewise */
};

struct worker *worker_start(const struct worker_options *o);
/* From now on new exchanges use this; policy and sinks get a reference, names is the caller's and
 * is read until worker_sync. Asynchronous. */
void worker_reload(struct worker *w, struct policy *p, struct log_sinks *s,
                   const struct resolver_options *names);
void worker_flush_logs(struct worker *w); /* asynchronous; worker_sync waits */
void worker_sync(struct worker *w);       /* everything asked for before has happened */
void worker_stop(
    struct worker *w,
    int64_t grace_ms); /* closes the listeners; ends when its clients are done or the time is up */
bool worker_is_done(const struct worker *w);
void worker_join(struct worker **w);

#endif
