/* proxy/admin/report_counters.c - `counters`, `5min`, `60min`: one "name = number" a line, because
 * programs read them.
 *
 * Squid's names come first, in its order and units (kilobytes where it has them); after them
 * everything that counters.def has, and the measurement. */
#include "http/date.h"
#include "proxy/admin/report.h"

/* Squid counts all servers and those of one protocol; ours all speak HTTP. */
static const struct squid_row {
    const char *name;
    enum counter counter;
    bool in_kbytes;
} squid_rows[] = {
    {"client_http.requests", COUNTER_CLIENT_REQUESTS, false},
    {"client_http.hits", COUNTER_CLIENT_HITS, false},
    {"client_http.errors", COUNTER_CLIENT_ERRORS, false},
    {"client_http.kbytes_in", COUNTER_CLIENT_KBYTES_IN, true},
    {"client_http.kbytes_out", COUNTER_CLIENT_KBYTES_OUT, true},
    {"client_http.hit_kbytes_out", COUNTER_CLIENT_HIT_BYTES_OUT, true},
    {"server.all.requests", COUNTER_SERVER_REQUESTS, false},
    {"server.all.errors", COUNTER_SERVER_ERRORS, false},
    {"server.all.kbytes_in", COUNTER_SERVER_BYTES_IN, true},
    {"server.all.kbytes_out", COUNTER_SERVER_BYTES_OUT, true},
    {"server.http.requests", COUNTER_SERVER_REQUESTS, false},
    {"server.http.errors", COUNTER_SERVER_ERRORS, false},
    {"server.http.kbytes_in", COUNTER_SERVER_BYTES_IN, true},
    {"server.http.kbytes_out", COUNTER_SERVER_BYTES_OUT, true},
};

#define SQUID_ROWS (sizeof squid_rows / sizeof *squid_rows)

static const struct {
    const char *name;
    enum histogram histogram;
} medians[] = {
    {"client_http.all_median_svc_time", HISTOGRAM_ALL_US},
    {"client_http.miss_median_svc_time", HISTOGRAM_MISS_US},
    {"client_http.hit_median_svc_time", HISTOGRAM_HIT_US},
    {"dns.median_svc_time", HISTOGRAM_DNS_US},
};

static bool
has_squid_name(enum counter c)
{
    for (unsigned i = 0; i < SQUID_ROWS; i++)
        if (span_eq(span_str(squid_rows[i].name), span_str(counter_name(c))))
            return true;
    return false;
}

static void
add_time(struct buf *out, const char *name, double at_s)
{
    char date[DATE_TEXT_MAX];

    date_format((int64_t)at_s, date);
    buf_addf(out, "%s = %.6f (%s)\n", name, at_s, date);
}

static void
add_medians(struct buf *out, const struct totals *t)
{
    for (unsigned i = 0; i < sizeof medians / sizeof *medians; i++)
        buf_addf(out, "%s = %.6f seconds\n", medians[i].name,
                 figure_median_s(t, medians[i].histogram));
}

/* What the process holds now, whatever the time it was asked about. */
static void
add_gauges(struct buf *out, const struct view *v)
{
    const struct {
        const char *name;
        uint64_t value;
    } gauges[] = {
        {"descriptors.in_use", v->fds_in_use},
        {"descriptors.peak", v->fds_peak},
        {"descriptors.limit", v->fds_limit},
        {"descriptors.watched",
         v->now.t.readiness.watched > 0 ? (uint64_t)v->now.t.readiness.watched : 0},
        {"store.entries", v->store.entries},
        {"store.bytes", v->store.bytes},
        {"store.limit_bytes", v->store.limit},
        {"dns.entries", v->answers.entries},
        {"process.resident_bytes", v->resident_bytes},
    };

    for (unsigned i = 0; i < sizeof gauges / sizeof *gauges; i++)
        buf_addf(out, "%s = %llu\n", gauges[i].name, (unsigned long long)gauges[i].value);
}

/* ---- sums since start ---- */

static void
add_squid_sums(struct buf *out, const struct totals *t)
{
    for (unsigned i = 0; i < SQUID_ROWS; i++) {
        uint64_t n = t->t.counters[squid_rows[i].counter];

        buf_addf(out, "%s = %llu\n", squid_rows[i].name,
                 (unsigned long long)(squid_rows[i].in_kbytes ? n / 1024 : n));
    }
}

static void
add_select_sums(struct buf *out, const struct totals *t)
{
    const struct readiness_sum *r = &t->t.readiness;

    buf_addf(out, "page_faults = %llu\n", (unsigned long long)t->t.page_faults);
    buf_addf(out, "select_loops = %llu\n", (unsigned long long)r->calls);
    buf_addf(out, "select_fds = %llu\n", (unsigned long long)r->events);
    buf_addf(out, "average_select_fd_period = %.9f\n",
             figure_ratio((double)r->wall_ns / 1e9, (double)r->events));
    buf_addf(out, "median_select_fds = %.6f\n", figure_events_median(r));
    buf_addf(out, "syscalls.selects = %llu\n", (unsigned long long)r->calls);
    buf_addf(out, "cpu_time = %.6f\n", (double)t->t.cpu_us / 1e6);
    buf_addf(out, "wall_time = %.6f\n", figure_seconds(t));
}

static void
add_readiness_sums(struct buf *out, const struct readiness_sum *r)
{
    buf_addf(out, "readiness.share = %.6f\n", readiness_share(r));
    buf_addf(out, "readiness.cpu_time = %.6f\n", (double)r->cpu_ns / 1e9);
    buf_addf(out, "readiness.thread_cpu_time = %.6f\n", (double)r->thread_cpu_ns / 1e9);
    buf_addf(out, "readiness.blocked_time = %.6f\n", figure_blocked_s(r));
    buf_addf(out, "readiness.dispatch_time = %.6f\n", (double)r->dispatch_ns / 1e9);
    buf_addf(out, "readiness.interest_changes = %llu\n", (unsigned long long)r->interest_changes);
}

void
report_counters(struct manager *m, const struct view *v, struct buf *out)
{
    add_time(out, "sample_time", (double)v->now_wall_ms / 1000);
    add_squid_sums(out, &v->now);
    add_select_sums(out, &v->now);
    for (unsigned c = 0; c < COUNTERS; c++)
        if (!has_squid_name(c))
            buf_addf(out, "%s = %llu\n", counter_name(c), (unsigned long long)v->now.t.counters[c]);
    add_readiness_sums(out, &v->now.t.readiness);
    add_gauges(out, v);
}

/* ---- averages over a while ---- */

static void
add_rate(struct buf *out, const char *name, const struct totals *t, double n)
{
    buf_addf(out, "%s = %.6f/sec\n", name, figure_per_second(t, n));
}

static void
add_squid_rates(struct buf *out, const struct totals *t)
{
    for (unsigned i = 0; i < SQUID_ROWS; i++) {
        double n = (double)t->t.counters[squid_rows[i].counter];

        add_rate(out, squid_rows[i].name, t, squid_rows[i].in_kbytes ? n / 1024 : n);
    }
}

static void
add_select_rates(struct buf *out, const struct totals *t)
{
    const struct readiness_sum *r = &t->t.readiness;

    add_rate(out, "page_faults", t, (double)t->t.page_faults);
    add_rate(out, "select_loops", t, (double)r->calls);
    add_rate(out, "select_fds", t, (double)r->events);
    buf_addf(out, "average_select_fd_period = %.9f/fd\n",
             figure_ratio((double)r->wall_ns / 1e9, (double)r->events));
    buf_addf(out, "median_select_fds = %.6f\n", figure_events_median(r));
    add_rate(out, "syscalls.selects", t, (double)r->calls);
    buf_addf(out, "cpu_time = %.6f seconds\n", (double)t->t.cpu_us / 1e6);
    buf_addf(out, "wall_time = %.6f seconds\n", figure_seconds(t));
    buf_addf(out, "cpu_usage = %.6f%%\n", 100 * figure_cpu_share(t));
}

static void
add_readiness_rates(struct buf *out, const struct totals *t)
{
    const struct readiness_sum *r = &t->t.readiness;

    buf_addf(out, "readiness.share = %.6f%%\n", 100 * readiness_share(r));
    buf_addf(out, "readiness.cpu_usage = %.6f%%\n",
             100 * figure_per_second(t, (double)r->cpu_ns / 1e9));
    buf_addf(out, "readiness.cpu_per_call = %.9f seconds\n",
             figure_ratio((double)r->cpu_ns / 1e9, (double)r->calls));
    buf_addf(out, "readiness.events_per_call = %.6f\n",
             figure_ratio((double)r->events, (double)r->calls));
    add_rate(out, "readiness.interest_changes", t, (double)r->interest_changes);
}

static void
add_averages(const struct view *v, const struct totals *t, struct buf *out)
{
    double now_s = (double)v->now_wall_ms / 1000;

    add_time(out, "sample_start_time", now_s - figure_seconds(t));
    add_time(out, "sample_end_time", now_s);
    add_squid_rates(out, t);
    add_medians(out, t);
    add_select_rates(out, t);
    buf_addf(out, "hit_ratio = %.6f%%\n", 100 * figure_hit_share(t));
    buf_addf(out, "byte_hit_ratio = %.6f%%\n", 100 * figure_hit_byte_share(t));
    for (unsigned c = 0; c < COUNTERS; c++)
        if (!has_squid_name(c))
            add_rate(out, counter_name(c), t, (double)t->t.counters[c]);
    add_readiness_rates(out, t);
    add_gauges(out, v);
}

void
report_5min(struct manager *m, const struct view *v, struct buf *out)
{
    add_averages(v, &v->min5, out);
}

void
report_60min(struct manager *m, const struct view *v, struct buf *out)
{
    add_averages(v, &v->min60, out);
}
