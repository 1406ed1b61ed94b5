/* proxy/admin/manager.h - the reports under /squid-internal-mgr/ and /metrics: text for people and
 * for the tools they already have.
 *
 * Names are Squid's where it has them; ours follow. A manager reads shared state only (counters,
 * census, store, answers, the stopwatches), so any worker may render any page. Thread-safe. */
#ifndef PROXY_ADMIN_MANAGER_H
#define PROXY_ADMIN_MANAGER_H

#include "base/buf.h"
#include "base/readiness.h"
#include "cache/store.h"
#include "dns/resolver.h"

#define MANAGER_WORKERS 256

struct manager;
struct manager_options {
    struct store *store;
    struct tiers *tiers; /* NULL: none */
    struct answer_cache *answers;
    const char *name, *version;
    unsigned n_workers;
    int64_t started_wall_s;
    const char *readiness_log; /* file; NULL: none */
    int64_t readiness_log_ms;  /* a line each */
};

struct manager *manager_new(const struct manager_options *o);
void manager_free(struct manager **m);
void manager_add_worker(struct manager *m, unsigned id, const struct readiness *r,
                        const char *backend);
void manager_names(struct manager *m, const char *name); /* after a reload */
/* The configuration as `config` shows it; copied. */
void manager_config(struct manager *m, struct span text);
void manager_reopen(struct manager *m); /* logs were renamed */
void manager_tick(
    struct manager *m); /* once a second, from the main thread: samples for 5min and 60min */
/* path: "/squid-internal-mgr/info", "/metrics", "/". false: no such page. */
bool manager_page(struct manager *m, struct span path, struct buf *out, const char **content_type);

#endif
