/* proxy/admin/report_readiness.c - `readiness` and `histograms`: what it costs to find out which
 * descriptors are ready.
 *
 * The figure of the literature is the share of non-idle CPU that is spent in the readiness call. A
 * worker is idle only while it blocks in that call, and uses no CPU then: so its non-idle CPU is
 * the CPU of its thread, and the share is CPU in the call over CPU of the thread. */
#include <stdio.h>

#include "proxy/admin/report.h"

static const char explanation[] =
    "readiness_share is the CPU spent inside the readiness call as a share of all CPU of the "
    "worker threads. A worker that has\n"
    "nothing to do blocks in the call and uses no CPU, so the threads' CPU is the non-idle CPU. "
    "blocked is the rest of the wall\n"
    "time in the call: idleness, not cost. Interest changes are what epoll charges outside of the "
    "call; poll and select charge\n"
    "inside of it, for every descriptor watched.\n\n";

static double
micros(uint64_t ns, uint64_t n)
{
    return figure_ratio((double)ns / 1e3, (double)n);
}

static void
add_times(const struct readiness_sum *r, double elapsed_s, struct buf *out)
{
    double blocked = figure_blocked_s(r);

    buf_addf(out, "    readiness_share = %.2f%%\n", 100 * readiness_share(r));
    buf_addf(out, "    cpu_in_call = %.6f s (%.3f us a call, %.3f us an event)\n",
             (double)r->cpu_ns / 1e9, micros(r->cpu_ns, r->calls), micros(r->cpu_ns, r->events));
    buf_addf(out, "    cpu_of_thread = %.6f s (%.2f%% of the time)\n",
             (double)r->thread_cpu_ns / 1e9,
             100 * figure_ratio((double)r->thread_cpu_ns / 1e9, elapsed_s));
    buf_addf(out, "    blocked = %.6f s (%.2f%% of the time)\n", blocked,
             100 * figure_ratio(blocked, elapsed_s));
    buf_addf(out, "    dispatch = %.6f s (%.2f%% of the time)\n", (double)r->dispatch_ns / 1e9,
             100 * figure_ratio((double)r->dispatch_ns / 1e9, elapsed_s));
}

static void
add_calls(const struct readiness_sum *r, double elapsed_s, struct buf *out)
{
    buf_addf(out, "    calls = %llu (%.1f a second)\n", (unsigned long long)r->calls,
             figure_ratio((double)r->calls, elapsed_s));
    buf_addf(out, "    events = %llu\n", (unsigned long long)r->events);
    buf_addf(out, "    events_per_call = %.3f mean, %.3f median\n",
             figure_ratio((double)r->events, (double)r->calls), figure_events_median(r));
    buf_addf(out, "    interest_changes = %llu (%.3f an event)\n",
             (unsigned long long)r->interest_changes,
             figure_ratio((double)r->interest_changes, (double)r->events));
}

static void
add_events(const struct readiness_sum *r, struct buf *out)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < READINESS_BUCKETS; i++)
        total += r->events_histogram[i];
    buf_addf(out, "    %-15s %12s %8s\n", "events a call", "calls", "share");
    for (unsigned i = 0; i < READINESS_BUCKETS; i++) {
        unsigned long long low = events_bucket_low(i), high = events_bucket_high(i),
                           n = r->events_histogram[i];
        char range[48];

        if (n == 0)
            continue;
        if (low == high)
            snprintf(range, sizeof range, "%llu", low);
        else if (high == UINT64_MAX)
            snprintf(range, sizeof range, "%llu-", low);
        else
            snprintf(range, sizeof range, "%llu-%llu", low, high);
        buf_addf(out, "    %-15s %12llu %7.2f%%\n", range, n,
                 100 * figure_ratio((double)n, (double)total));
    }
}

static void
add_kinds(const struct readiness_sum *r, struct buf *out)
{
    buf_addf(out, "    %-15s %12s %14s %12s\n", "callbacks", "calls", "seconds", "ns a call");
    for (unsigned i = 0; i < LOOP_KINDS; i++)
        buf_addf(out, "    %-15s %12llu %14.6f %12.0f\n", loop_kind_name(i),
                 (unsigned long long)r->kind_calls[i], (double)r->kind_ns[i] / 1e9,
                 figure_ratio((double)r->kind_ns[i], (double)r->kind_calls[i]));
}

static void
add_block(const struct readiness_sum *r, struct buf *out)
{
    double elapsed_s = (double)r->elapsed_ns / 1e9;

    add_times(r, elapsed_s, out);
    add_calls(r, elapsed_s, out);
    add_events(r, out);
    add_kinds(r, out);
    buf_add_char(out, '\n');
}

static void
add_descriptor_cost(const struct tally *t, struct buf *out)
{
    BUF_ADD(out, "Descriptors, since start:\n");
    buf_addf(out, "    open = %llu timed, %.0f ns each\n", (unsigned long long)t->opens,
             figure_ratio((double)t->open_ns, (double)t->opens));
    buf_addf(out, "    close = %llu timed, %.0f ns each\n", (unsigned long long)t->closes,
             figure_ratio((double)t->close_ns, (double)t->closes));
    buf_addf(out, "    open_and_close = %.0f ns\n\n",
             figure_ratio((double)t->open_ns, (double)t->opens) +
                 figure_ratio((double)t->close_ns, (double)t->closes));
}

static void
add_workers(struct manager *m, unsigned n, struct buf *out)
{
    for (unsigned i = 0; i < n; i++) {
        struct readiness_sum r;
        const char *backend;

        if (!manager_worker(m, i, &r, &backend))
            continue;
        buf_addf(out, "Worker %u, since start:\n    backend = %s\n    descriptors_watched = %lld\n",
                 i, backend, (long long)r.watched);
        add_block(&r, out);
    }
}

void
report_readiness(struct manager *m, const struct view *v, struct buf *out)
{
    const struct readiness_sum *all = &v->now.t.readiness;

    buf_add(out, span_str(explanation));
    buf_addf(out,
             "All workers (%u), since start (%.1f s):\n    backend = %s\n    descriptors_watched = "
             "%lld\n",
             v->n_workers, figure_seconds(&v->now), manager_backend(m), (long long)all->watched);
    add_block(all, out);
    buf_addf(out, "All workers, the last %.0f s:\n", figure_seconds(&v->min5));
    add_block(&v->min5.t.readiness, out);
    add_descriptor_cost(&v->now.t, out);
    add_workers(m, v->n_workers, out);
}

void
report_histograms(struct manager *m, const struct view *v, struct buf *out)
{
    static const char *const names[HISTOGRAMS] = {
        [HISTOGRAM_ALL_US] = "client_http.all_svc_time",
        [HISTOGRAM_HIT_US] = "client_http.hit_svc_time",
        [HISTOGRAM_MISS_US] = "client_http.miss_svc_time",
        [HISTOGRAM_DNS_US] = "dns.svc_time",
    };

    for (unsigned h = 0; h < HISTOGRAMS; h++) {
        buf_addf(out, "%s histogram, since start (seconds, from; count):\n", names[h]);
        for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
            if (v->now.histogram[h][i])
                buf_addf(out, "%.6f\t%llu\n", (double)histogram_bucket_low(i) / 1e6,
                         (unsigned long long)v->now.histogram[h][i]);
    }
    BUF_ADD(out, "select_fds_hist histogram, since start (events a call):\n");
    add_events(&v->now.t.readiness, out);
}
