/* A worker puts the parts together on its own thread and is otherwise left alone: the main thread
 * talks to it by posts. */
#include "proxy/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "cache/tier.h"
#include "proxy/admin/manager.h"
#include "proxy/client/client_h1.h"
#include "proxy/net/listener.h"

#define SCRATCH (64 * 1024)
#define STOP_CHECK_MS 20
#define FLUSH_MS 1000

struct worker {
    struct worker_options o;
    pthread_t thread;
    struct loop *loop;
    struct resolver *resolver;
    struct upstream upstream;
    struct exchange_env exchanges;
    struct client_env clients;
    struct listener **listeners;
    struct addr *addresses;
    struct log_writer *logs;
    char *scratch;
    struct loop_timer flush, stop_check;
    struct loop_task reload, stop, flush_now;
    int64_t stop_at_ms;
    _Atomic bool done;
    /* handed over by the main thread, under the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct policy *next_policy;
    struct log_sinks *next_sinks;
    int64_t grace_ms;
    unsigned asked, served; /* requests of the main thread */
};

/* ---- what the parts ask of their worker ---- */

static void
worker_log(void *owner, const struct log_record *r, const struct acl_facts *f)
{
    struct worker *w = owner;

    log_writer_write(w->logs, r, f);
}

static bool
worker_page(void *owner, struct span path, struct buf *body, const char **content_type)
{
    struct worker *w = owner;

    return manager_page(w->o.manager, path, body, content_type);
}

/* Descriptors that clients may not take: an accepted request is of no use when no origin can be
 * reached. */
static bool
worker_is_full(void)
{
    uint64_t limit = fds_limit(), spare = limit / 8 < 64 ? limit / 8 : 64;

    return fds_in_use() + spare > limit;
}

static unsigned worker_shed(void *owner);

static void
turn_away(struct transport *t)
{
    static const char SORRY[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: "
                                "close\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n";

    (void)transport_write(t, SORRY, sizeof SORRY - 1);
    log_event_every(5000, LOG_WARN, "no free descriptors for clients: %llu of %llu in use",
                    (unsigned long long)fds_in_use(), (unsigned long long)fds_limit());
    transport_close(t);
}

static const struct worker_port *
port_of(const struct worker *w, const struct listener *l)
{
    unsigned i = 0;

    while (w->listeners[i] != l)
        i++;
    return &w->o.ports[i];
}

static void
worker_accepted(void *owner, struct listener *l, struct transport *t, const struct addr *peer,
                const struct addr *destination)
{
    struct worker *w = owner;
    const struct worker_port *port = port_of(w, l);
    struct client_arrival from = {.peer = *peer,
                                  .local = listener_address(l),
                                  .port_name = port->name,
                                  .intercepts = port->diversion != DIVERSION_NONE,
                                  .destination = *destination};

    if (worker_is_full() && worker_shed(w) == 0) {
        turn_away(t);
        return;
    }
    client_open(&w->clients, t, &from);
}

/* Descriptors have run out: idle connections go first, to origins and of clients alike. */
static unsigned
worker_shed(void *owner)
{
    struct worker *w = owner;
    unsigned closed = idle_shed(w->upstream.idle, 8);

    return closed ? closed : client_shed(&w->clients, 8);
}

/* ---- requests of the main thread ---- */

static void
served(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    w->served = w->asked;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void
worker_take_reload(void *owner)
{
    struct worker *w = owner;
    struct policy *p;
    struct log_sinks *s;

    pthread_mutex_lock(&w->lock);
    p = w->next_policy;
    s = w->next_sinks;
    w->next_policy = NULL;
    w->next_sinks = NULL;
    pthread_mutex_unlock(&w->lock);
    if (p) {
        policy_unref(&w->exchanges.policy);
        w->exchanges.policy = p;
    }
    if (s) {
        log_writer_free(&w->logs);
        w->logs = log_writer_new(s);
        log_sinks_unref(&s);
    }
    served(w);
}

static void
worker_take_flush(void *owner)
{
    struct worker *w = owner;

    log_writer_flush(w->logs);
    served(w);
}

static void
worker_close_listeners(struct worker *w)
{
    for (unsigned i = 0; i < w->o.n_ports; i++)
        listener_stop(&w->listeners[i]);
}

static void
worker_check_stop(void *owner)
{
    struct worker *w = owner;

    if ((w->clients.n_clients == 0 && w->exchanges.n_alive == 0) ||
        clock_mono_ms() >= w->stop_at_ms)
        loop_stop(w->loop);
    else
        loop_timer_set(&w->stop_check, STOP_CHECK_MS);
}

static void
worker_take_stop(void *owner)
{
    struct worker *w = owner;

    pthread_mutex_lock(&w->lock);
    w->stop_at_ms = clock_mono_ms() + w->grace_ms;
    pthread_mutex_unlock(&w->lock);
    worker_close_listeners(w);
    client_env_stop(&w->clients);
    idle_close_all(w->upstream.idle);
    worker_check_stop(w);
}

static void
worker_flush_timer(void *owner)
{
    struct worker *w = owner;

    log_writer_flush(w->logs);
    if (w->o.id == 0 && w->o.tiers)
        tiers_idle(w->o.tiers);
    loop_timer_set(&w->flush, FLUSH_MS);
}

/* ---- the thread ---- */

static void
start_upstream(struct worker *w)
{
    w->upstream = (struct upstream){
        .loop = w->loop,
        .resolver = w->resolver,
        .idle = idle_pool_new(w->loop),
        .store = w->o.store,
        .scratch = w->scratch,
        .scratch_bytes = SCRATCH,
        .self = w->addresses,
        .n_self = w->o.n_ports,
        .shed = worker_shed,
        .owner = w,
    };
    list_init(&w->upstream.fills);
}

/* What came from disk is whole now, and counts with all its bytes. */
static void
worker_loaded(void *owner, struct entry *e)
{
    store_charge(((struct worker *)owner)->o.store, e);
}

static void
start_exchanges(struct worker *w)
{
    memset(&w->exchanges, 0, sizeof w->exchanges);
    w->exchanges.loop = w->loop;
    w->exchanges.upstream = &w->upstream;
    w->exchanges.store = w->o.store;
    w->exchanges.policy = w->o.policy;
    policy_ref(w->o.policy);
    list_init(&w->exchanges.all);
    list_init(&w->exchanges.spare);
    context_pool_init(&w->exchanges.contexts);
    w->exchanges.owner = w;
    w->exchanges.log = worker_log;
    w->exchanges.page = worker_page;
    if (w->o.tiers)
        w->exchanges.disk = w->upstream.disk =
            tier_reader_new(w->o.tiers, w->loop, worker_loaded, w);
}

static void
start_listeners(struct worker *w)
{
    for (unsigned i = 0; i < w->o.n_ports; i++) {
        struct listener_options o = {.address = w->o.ports[i].address,
                                     .both_families = w->o.ports[i].both_families,
                                     .diversion = w->o.ports[i].diversion,
                                     .accepted = worker_accepted,
                                     .shed = worker_shed,
                                     .owner = w};

        w->addresses[i] = w->o.ports[i].address;
        w->listeners[i] = listener_start(w->loop, w->o.ports[i].fd, &o);
    }
}

static void
worker_close(struct worker *w)
{
    worker_close_listeners(w);
    client_env_close(&w->clients);
    exchange_env_close(&w->exchanges);
    fill_cancel_all(&w->upstream);
    tier_reader_free(&w->exchanges.disk);
    idle_pool_free(&w->upstream.idle);
    resolver_free(&w->resolver);
    log_writer_free(&w->logs);
    policy_unref(&w->exchanges.policy);
    loop_timer_close(&w->flush);
    loop_timer_close(&w->stop_check);
}

static void *
worker_main(void *arg)
{
    struct worker *w = arg;

    loop_run(w->loop);
    worker_close(w);
    loop_stop(w->loop); /* one more turn, for what was put off to its end */
    loop_run(w->loop);
    atomic_store(&w->done, true);
    served(w);
    return NULL;
}

struct worker *
worker_start(const struct worker_options *o)
{
    struct worker *w = mem_zalloc(sizeof *w);

    w->o = *o;
    w->o.ports = mem_alloc(o->n_ports * sizeof *o->ports);
    memcpy(w->o.ports, o->ports, o->n_ports * sizeof *o->ports);
    w->scratch = mem_alloc(SCRATCH);
    w->addresses = mem_zalloc(o->n_ports * sizeof *w->addresses);
    w->listeners = mem_zalloc(o->n_ports * sizeof *w->listeners);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->loop = loop_new(o->backend);
    w->resolver = resolver_new(w->loop, o->answers, o->resolver);
    start_upstream(w);
    start_exchanges(w);
    client_env_init(&w->clients, &w->exchanges, w->scratch, SCRATCH);
    w->logs = log_writer_new(o->sinks);
    loop_task_init(&w->reload, worker_take_reload, w);
    loop_task_init(&w->stop, worker_take_stop, w);
    loop_task_init(&w->flush_now, worker_take_flush, w);
    loop_timer_init(&w->flush, w->loop, worker_flush_timer, w);
    loop_timer_init(&w->stop_check, w->loop, worker_check_stop, w);
    loop_timer_set(&w->flush, FLUSH_MS);
    start_listeners(w);
    manager_add_worker(o->manager, o->id, loop_readiness(w->loop), loop_backend_name(w->loop));
    CHECK(pthread_create(&w->thread, NULL, worker_main, w) == 0);
    return w;
}

static void
ask(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    w->asked++;
    pthread_mutex_unlock(&w->lock);
}

void
worker_reload(struct worker *w, struct policy *p, struct log_sinks *s)
{
    policy_ref(p);
    log_sinks_ref(s);
    pthread_mutex_lock(&w->lock);
    policy_unref(&w->next_policy);
    log_sinks_unref(&w->next_sinks);
    w->next_policy = p;
    w->next_sinks = s;
    w->asked++;
    pthread_mutex_unlock(&w->lock);
    loop_post(w->loop, &w->reload);
}

void
worker_flush_logs(struct worker *w)
{
    ask(w);
    loop_post(w->loop, &w->flush_now);
}

void
worker_sync(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->served != w->asked && !atomic_load(&w->done))
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

void
worker_stop(struct worker *w, int64_t grace_ms)
{
    pthread_mutex_lock(&w->lock);
    w->grace_ms = grace_ms;
    pthread_mutex_unlock(&w->lock);
    loop_post(w->loop, &w->stop);
}

bool
worker_is_done(const struct worker *w)
{
    return atomic_load(&w->done);
}

void
worker_join(struct worker **held)
{
    struct worker *w = *held;

    *held = NULL;
    pthread_join(w->thread, NULL);
    loop_free(w->loop);
    policy_unref(&w->next_policy);
    log_sinks_unref(&w->next_sinks);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    mem_free(w->o.ports);
    mem_free(w->addresses);
    mem_free(w->listeners);
    mem_free(w->scratch);
    mem_free(w);
}
