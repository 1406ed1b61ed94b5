/* proxy/admin/report.h - what a report is made from; private to admin.
 *
 * A page is rendered from one view, taken under the manager's lock, so that its figures belong to
 * one moment. A report adds text and cannot fail. */
#ifndef PROXY_ADMIN_REPORT_H
#define PROXY_ADMIN_REPORT_H

#include "base/fds.h"
#include "proxy/admin/manager.h"
#include "proxy/admin/sampler.h"

#define REPORT_ROOT "/squid-internal-mgr/"
#define VIEW_RATES 60

struct view {
    char name[256];
    const char *version;
    unsigned n_workers;
    int64_t started_wall_s, now_wall_ms;
    struct totals now;                 /* since start */
    struct totals recent, min5, min60; /* over some seconds, five minutes, an hour */
    struct store_stats store;
    struct answer_cache_stats answers;
    struct fd_census_row census[FD_PURPOSES];
    uint64_t fds_in_use, fds_peak, fds_limit, fds_largest, fds_free;
    uint64_t resident_bytes, resident_peak_bytes;
    double rates[VIEW_RATES]; /* requests in each of the last seconds */
    unsigned n_rates;
};

typedef void report_fn(struct manager *m, const struct view *v, struct buf *out);

struct report {
    const char *name, *text;
    report_fn *add;
    const char *content_type;
};

const struct report *report_at(unsigned i); /* those in the menu, in its order; NULL: no more */

report_fn report_menu, report_info, report_counters, report_5min, report_60min,
    report_filedescriptors, report_readiness, report_histograms, report_ipcache, report_mem,
    report_store, report_storedir, report_config, report_metrics, report_page, report_live;

/* What reports ask of the manager beyond the view; each takes its lock. */
struct answer_cache *manager_answers(struct manager *m);
struct tiers *manager_tiers(struct manager *m); /* NULL: none */
void manager_config_add(struct manager *m, struct buf *out);
/* false: no worker with this number has started. */
bool manager_worker(struct manager *m, unsigned id, struct readiness_sum *out,
                    const char **backend);
const char *manager_backend(struct manager *m); /* of the first worker; "none" */

/* ---- arithmetic on what was counted (figures.c) ---- */
double figure_ratio(double part, double whole); /* 0 when whole is */
double figure_seconds(const struct totals *t);  /* how long; since start for view.now */
double figure_per_second(const struct totals *t, double n);
double figure_hit_share(const struct totals *t);
double figure_hit_byte_share(const struct totals *t);
double figure_cpu_share(const struct totals *t);
double figure_median_s(const struct totals *t, enum histogram h);
double figure_blocked_s(const struct readiness_sum *r);
double figure_events_median(const struct readiness_sum *r);
uint64_t events_bucket_low(unsigned bucket);
uint64_t events_bucket_high(unsigned bucket); /* UINT64_MAX: no end */
const char *loop_kind_name(enum loop_kind k);

#endif
