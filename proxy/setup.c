/* From plain data to running parts. Everything that can fail is tried before anything runs; a
 * reload either swaps the whole configuration or nothing. */
#include "proxy/setup.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "cache/evict.h"
#include "cache/tier.h"
#include "proxy/admin/manager.h"
#include "proxy/net/listener.h"
#include "proxy/version.h"
#include "proxy/worker.h"

#define PORTS_MAX 64
#define WORKERS_MAX 256

struct setup {
    struct conf *conf;
    struct policy *policy;
    struct log_sinks *sinks;
    struct tiers *tiers;
    struct store *store;
    struct answer_cache *answers;
    struct resolver_options resolver;
    struct conf *resolver_conf; /* keeps the resolver's strings */
    struct manager *manager;
    struct worker *workers[WORKERS_MAX];
    unsigned n_workers;
};

/* ---- logs ---- */

static unsigned
sink_compile(const struct policy *p, const struct conf_access_log *a, struct log_sink *out,
             struct buf *errors)
{
    unsigned bad = log_format_new(p->conf, a->format, errors, &out->format);

    if (a->condition.n)
        bad += acl_cond_new(p->request.acls, &a->condition, "access_log", errors, &out->condition);
    return bad;
}

static unsigned
sink_open(const struct conf_access_log *a, struct log_sink *out, struct buf *errors)
{
    char why[256];

    out->log = access_log_open(a->where, why, sizeof why);
    if (out->log)
        return 0;
    buf_addf(errors, "%s:%u: access_log: %s: %s\n", a->place.file, a->place.line, a->where, why);
    return 1;
}

static bool
is_none(const struct conf_access_log *a)
{
    return strcmp(a->where, "none") == 0;
}

/* open false: only compiled, for a check. */
static struct log_sinks *
sinks_new(const struct policy *p, bool open, struct buf *errors)
{
    const struct conf *c = p->conf;
    struct log_sinks *s = log_sinks_new(c->n_access_logs);
    unsigned bad = 0;

    s->v4_bits = c->client_netmask.v4_bits;
    s->v6_bits = c->client_netmask.v6_bits;
    s->masks_clients = s->v4_bits < 32 || s->v6_bits < 128;
    if (c->log_access.n)
        bad +=
            acl_list_new(p->request.acls, &c->log_access, "log_access", true, errors, &s->allowed);
    for (unsigned i = 0; i < c->n_access_logs; i++) {
        bad += sink_compile(p, &c->access_logs[i], &s->at[i], errors);
        if (open && !bad && !is_none(&c->access_logs[i]))
            bad += sink_open(&c->access_logs[i], &s->at[i], errors);
    }
    if (bad)
        log_sinks_unref(&s);
    return s;
}

/* ---- reading ---- */

struct conf *
setup_read(const char *path, struct buf *notes, struct buf *errors)
{
    struct conf *c = conf_read(path);

    buf_add(notes, buf_span(&c->notes));
    buf_add(errors, buf_span(&c->errors));
    if (c->n_errors) {
        (void)setup_check(c, errors); /* all mistakes at once, not one kind after the other */
        conf_unref(&c);
    }
    return c;
}

static bool
ports_are_supported(const struct conf *c, struct buf *errors)
{
    bool fine = true;

    for (unsigned i = 0; i < c->n_ports; i++) {
        const struct conf_port *port = &c->ports[i];

        if (!port->accel)
            continue;
        buf_addf(errors,
                 "%s:%u: http_port: accel is not supported yet: a forward, intercept or tproxy "
                 "port was expected\n",
                 port->place.file, port->place.line);
        fine = false;
    }
    return fine;
}

bool
setup_check(struct conf *c, struct buf *errors)
{
    bool fine = ports_are_supported(c, errors);
    struct policy *p = policy_new(c, errors);
    struct log_sinks *s = p ? sinks_new(p, false, errors) : NULL;

    fine = fine && s != NULL;

    log_sinks_unref(&s);
    policy_unref(&p);
    return fine;
}

/* ---- starting ---- */

static enum diversion
diversion_of(const struct conf_port *port)
{
    if (port->tproxy)
        return DIVERSION_TPROXY;
    return port->intercept ? DIVERSION_REDIRECT : DIVERSION_NONE;
}

static int
bind_port(const struct conf_port *port, struct worker_port *out, struct buf *errors)
{
    struct listener_options o = {
        .address = port->address, .both_families = port->any, .diversion = diversion_of(port)};
    char text[ADDR_TEXT_MAX];

    out->address = port->address;
    out->both_families = port->any;
    out->diversion = diversion_of(port);
    out->name = port->name;
    out->fd = listener_bind(&o);
    if (out->fd == -EAFNOSUPPORT && port->any) { /* a kernel without IPv6 */
        o.address = (struct addr){.v4 = {.sin_family = AF_INET}};
        addr_set_port(&o.address, addr_port(&port->address));
        out->address = o.address;
        out->fd = listener_bind(&o);
    }
    if (out->fd >= 0)
        return 0;
    (void)addr_format_port(&port->address, text);
    buf_addf(errors, "%s:%u: http_port: %s: %s%s\n", port->place.file, port->place.line, text,
             strerror(-out->fd),
             out->fd == -EPERM && port->tproxy ? " (tproxy needs CAP_NET_ADMIN)" : "");
    return -1;
}

/* All ports of one worker; a failure closes those that were bound. */
static int
bind_ports(const struct conf *c, struct worker_port ports[PORTS_MAX], struct buf *errors)
{
    for (unsigned i = 0; i < c->n_ports; i++) {
        if (bind_port(&c->ports[i], &ports[i], errors) == 0)
            continue;
        while (i-- > 0)
            fds_close(ports[i].fd);
        return -1;
    }
    return 0;
}

static struct resolver_options
resolver_options_of(const struct conf *c)
{
    return (struct resolver_options){
        .nameservers = c->dns_nameservers,
        .hosts_file = c->hosts_file,
        .timeout_ms = c->dns_timeout_ms,
        .retransmit_ms = c->dns_retransmit_interval_ms,
        .positive_ttl_s = c->positive_dns_ttl_ms / 1000,
        .negative_ttl_s = c->negative_dns_ttl_ms / 1000,
        .v4_first = c->dns_v4_first,
        .defnames = c->dns_defnames,
        .append_domain = c->append_domain,
        .cache_entries = (uint64_t)c->ipcache_size,
    };
}

static bool
is_scan_resistant(const struct conf *c)
{
    return evict_policy_named(c->cache_replacement_policy) == &evict_s3fifo;
}

static bool
tier_add(struct tiers *tiers, const struct conf *c, const struct conf_cache_dir *d, char *why,
         size_t why_bytes)
{
    return tiers_add(
        tiers,
        &(struct tier_options){.path = d->path,
                               .bytes = (uint64_t)d->bytes,
                               .min_bytes = (uint64_t)d->min_bytes,
                               .max_bytes = d->max_bytes < 0 ? 0 : (uint64_t)d->max_bytes,
                               .read_only = d->read_only,
                               .scan_resistant = is_scan_resistant(c)},
        why, why_bytes);
}

bool
setup_prepare(struct conf *c, struct buf *errors)
{
    struct tiers *tiers = tiers_new();
    bool fine = true;
    char why[256];

    for (unsigned i = 0; i < c->n_cache_dirs; i++) {
        const struct conf_cache_dir *d = &c->cache_dirs[i];

        if (tier_add(tiers, c, d, why, sizeof why))
            continue;
        buf_addf(errors, "%s:%u: cache_dir: %s: %s\n", d->place.file, d->place.line, d->path, why);
        fine = false;
    }
    tiers_close(&tiers);
    return fine;
}

/* A folder that cannot be used costs what it would have held: the rest starts without it. */
static struct tiers *
tiers_of(const struct conf *c)
{
    struct tiers *tiers = c->n_cache_dirs ? tiers_new() : NULL;
    char why[256];

    for (unsigned i = 0; i < c->n_cache_dirs; i++)
        if (!tier_add(tiers, c, &c->cache_dirs[i], why, sizeof why))
            log_event(LOG_WARN, "cache_dir %s: %s; it is not used", c->cache_dirs[i].path, why);
    return tiers;
}

static void
setup_parts(struct setup *s)
{
    const struct conf *c = s->conf;
    struct buf text = {0};

    s->tiers = tiers_of(c);
    s->store = store_new(
        &(struct store_options){.limit_bytes = (uint64_t)c->cache_mem,
                                .policy = evict_policy_named(c->memory_replacement_policy),
                                .tiers = s->tiers});
    s->resolver_conf = s->conf;
    conf_ref(s->resolver_conf);
    s->resolver = resolver_options_of(c);
    s->answers = answer_cache_new(&s->resolver);
    s->manager =
        manager_new(&(struct manager_options){.store = s->store,
                                              .tiers = s->tiers,
                                              .answers = s->answers,
                                              .name = s->policy->visible_name.at,
                                              .version = CUTTLE_VERSION,
                                              .n_workers = s->n_workers,
                                              .started_wall_s = clock_wall_s(),
                                              .readiness_log = c->readiness_log,
                                              .readiness_log_ms = c->readiness_log_interval_ms});
    conf_dump(c, &text);
    manager_config(s->manager, buf_span(&text));
    buf_free(&text);
}

static bool
start_workers(struct setup *s, struct buf *errors)
{
    struct worker_port ports[WORKERS_MAX][PORTS_MAX];
    enum loop_backend backend = LOOP_AUTO;

    if (s->conf->event_backend)
        (void)loop_backend_parse(s->conf->event_backend, &backend);
    for (unsigned i = 0; i < s->n_workers; i++)
        if (bind_ports(s->conf, ports[i], errors) < 0) {
            while (i-- > 0)
                for (unsigned k = 0; k < s->conf->n_ports; k++)
                    fds_close(ports[i][k].fd);
            return false;
        }
    for (unsigned i = 0; i < s->n_workers; i++)
        s->workers[i] = worker_start(&(struct worker_options){.id = i,
                                                              .backend = backend,
                                                              .store = s->store,
                                                              .tiers = s->tiers,
                                                              .answers = s->answers,
                                                              .resolver = &s->resolver,
                                                              .manager = s->manager,
                                                              .ports = ports[i],
                                                              .n_ports = s->conf->n_ports,
                                                              .policy = s->policy,
                                                              .sinks = s->sinks});
    return true;
}

static void
setup_release(struct setup *s)
{
    log_sinks_unref(&s->sinks);
    policy_unref(&s->policy);
    if (s->manager)
        manager_free(&s->manager);
    tiers_close(&s->tiers);
    if (s->store)
        store_free(&s->store);
    if (s->answers)
        answer_cache_free(&s->answers);
    if (s->resolver_conf)
        conf_unref(&s->resolver_conf);
    conf_unref(&s->conf);
    mem_free(s);
}

struct setup *
setup_start(struct conf *c, struct buf *errors)
{
    struct setup *s = mem_zalloc(sizeof *s);

    conf_ref(c);
    s->conf = c;
    s->n_workers = c->workers < 1             ? 1
                   : c->workers > WORKERS_MAX ? WORKERS_MAX
                                              : (unsigned)c->workers;
    if (c->n_ports > PORTS_MAX)
        buf_addf(errors, "%s:%u: http_port: at most %d ports\n", c->ports[PORTS_MAX].place.file,
                 c->ports[PORTS_MAX].place.line, PORTS_MAX);
    else if (ports_are_supported(c, errors) && (s->policy = policy_new(c, errors)) != NULL &&
             (s->sinks = sinks_new(s->policy, true, errors)) != NULL) {
        setup_parts(s);
        if (start_workers(s, errors))
            return s;
    }
    setup_release(s);
    return NULL;
}

/* ---- while running ---- */

bool
setup_reload(struct setup *s, const char *path, struct buf *notes, struct buf *errors)
{
    struct conf *c = setup_read(path, notes, errors);
    struct policy *p = c ? policy_new(c, errors) : NULL;
    struct log_sinks *sinks = p ? sinks_new(p, true, errors) : NULL;
    struct buf text = {0};

    if (!sinks) {
        policy_unref(&p);
        if (c)
            conf_unref(&c);
        return false;
    }
    conf_restart_notes(s->conf, c, notes);
    for (unsigned i = 0; i < s->n_workers; i++)
        worker_reload(s->workers[i], p, sinks);
    for (unsigned i = 0; i < s->n_workers; i++)
        worker_sync(s->workers[i]);
    store_limit(s->store, (uint64_t)c->cache_mem);
    manager_names(s->manager, p->visible_name.at);
    conf_dump(c, &text);
    manager_config(s->manager, buf_span(&text));
    buf_free(&text);
    policy_unref(&s->policy);
    log_sinks_unref(&s->sinks);
    conf_unref(&s->conf);
    s->policy = p;
    s->sinks = sinks;
    s->conf = c;
    return true;
}

void
setup_rotate(struct setup *s)
{
    for (unsigned i = 0; i < s->n_workers; i++)
        worker_flush_logs(s->workers[i]);
    for (unsigned i = 0; i < s->n_workers; i++)
        worker_sync(s->workers[i]);
    for (unsigned i = 0; i < s->sinks->n; i++)
        if (s->sinks->at[i].log)
            (void)access_log_rotate(s->sinks->at[i].log, (int)s->conf->logfile_rotate);
    log_reopen();
    manager_reopen(s->manager);
}

void
setup_tick(struct setup *s)
{
    manager_tick(s->manager);
}

void
setup_stop(struct setup *s, int64_t grace_ms)
{
    for (unsigned i = 0; i < s->n_workers; i++)
        worker_stop(s->workers[i], grace_ms);
}

bool
setup_is_done(const struct setup *s)
{
    for (unsigned i = 0; i < s->n_workers; i++)
        if (!worker_is_done(s->workers[i]))
            return false;
    return true;
}

const struct conf *
setup_conf(const struct setup *s)
{
    return s->conf;
}

void
setup_free(struct setup **held)
{
    struct setup *s = *held;

    *held = NULL;
    for (unsigned i = 0; i < s->n_workers; i++)
        worker_join(&s->workers[i]);
    setup_release(s);
}
