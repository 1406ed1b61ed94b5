/* proxy/admin/report_info.c - `info`: Squid's layout, because monitoring templates look for its
 * words.
 *
 * Lines about what cuttle has not (ICP, hot items) are left out; disk figures are a true 0 as long
 * as there is no disk. */
#include "http/date.h"
#include "proxy/admin/report.h"

static void
add_head(const struct view *v, struct buf *out)
{
    char started[DATE_TEXT_MAX], now[DATE_TEXT_MAX];

    date_format(v->started_wall_s, started);
    date_format(v->now_wall_ms / 1000, now);
    buf_addf(out, "Cuttle Object Cache: Version %s\nService Name: cuttle\nVisible Hostname: %s\n",
             v->version, v->name);
    buf_addf(out, "Start Time:\t%s\nCurrent Time:\t%s\n", started, now);
}

static void
add_connections(struct manager *m, const struct view *v, struct buf *out)
{
    const uint64_t *c = v->now.t.counters;
    const struct readiness_sum *r = &v->now.t.readiness;
    uint64_t requests = c[COUNTER_CLIENT_REQUESTS];

    BUF_ADD(out, "Connection information for cuttle:\n");
    buf_addf(out, "\tNumber of HTTP requests received:\t%llu\n", (unsigned long long)requests);
    buf_addf(out, "\tRequest failure ratio:\t%5.2f\n",
             figure_ratio((double)c[COUNTER_CLIENT_ERRORS], (double)requests));
    buf_addf(out, "\tAverage HTTP requests per minute since start:\t%.1f\n",
             60 * figure_per_second(&v->now, (double)requests));
    buf_addf(out, "\tSelect loop called: %llu times, %.3f ms avg\n", (unsigned long long)r->calls,
             figure_ratio((double)r->elapsed_ns / 1e6, (double)r->calls));
    buf_addf(out, "\tReadiness call: %s, %.2f%% of the workers' CPU\n", manager_backend(m),
             100 * readiness_share(r));
    buf_addf(out, "\tNumber of workers:\t%u\n", v->n_workers);
}

static void
add_cache(const struct view *v, struct buf *out)
{
    const struct store_stats *s = &v->store;
    double used = 100 * figure_ratio((double)s->bytes, (double)s->limit);

    BUF_ADD(out, "Cache information for cuttle:\n");
    buf_addf(out, "\tHits as %% of all requests:\t5min: %.1f%%, 60min: %.1f%%\n",
             100 * figure_hit_share(&v->min5), 100 * figure_hit_share(&v->min60));
    buf_addf(out, "\tHits as %% of bytes sent:\t5min: %.1f%%, 60min: %.1f%%\n",
             100 * figure_hit_byte_share(&v->min5), 100 * figure_hit_byte_share(&v->min60));
    buf_addf(out, "\tMemory hits as %% of hit requests:\t5min: %.1f%%, 60min: %.1f%%\n",
             v->min5.t.counters[COUNTER_CLIENT_HITS] ? 100.0 : 0.0,
             v->min60.t.counters[COUNTER_CLIENT_HITS] ? 100.0 : 0.0);
    BUF_ADD(out, "\tDisk hits as % of hit requests:\t5min: 0.0%, 60min: 0.0%\n");
    BUF_ADD(out, "\tStorage Swap size:\t0 KB\n\tStorage Swap capacity:\t 0.0% used,  0.0% free\n");
    buf_addf(out, "\tStorage Mem size:\t%llu KB\n", (unsigned long long)(s->bytes / 1024));
    buf_addf(out, "\tStorage Mem capacity:\t%4.1f%% used, %4.1f%% free\n", used,
             used < 100 ? 100 - used : 0);
    buf_addf(out, "\tMean Object Size:\t%.2f KB\n",
             figure_ratio((double)s->bytes / 1024, (double)s->entries));
}

static void
add_service_times(const struct view *v, struct buf *out)
{
    static const struct {
        const char *name;
        enum histogram histogram;
    } rows[] = {
        {"HTTP Requests (All):", HISTOGRAM_ALL_US},
        {"Cache Misses:", HISTOGRAM_MISS_US},
        {"Cache Hits:", HISTOGRAM_HIT_US},
        {"DNS Lookups:", HISTOGRAM_DNS_US},
    };

    BUF_ADD(out, "Median Service Times (seconds)  5 min    60 min:\n");
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        buf_addf(out, "\t%-21s %8.5f %8.5f\n", rows[i].name,
                 figure_median_s(&v->min5, rows[i].histogram),
                 figure_median_s(&v->min60, rows[i].histogram));
}

static void
add_resources(const struct view *v, struct buf *out)
{
    BUF_ADD(out, "Resource usage for cuttle:\n");
    buf_addf(out, "\tUP Time:\t%.3f seconds\n", figure_seconds(&v->now));
    buf_addf(out, "\tCPU Time:\t%.3f seconds\n", (double)v->now.t.cpu_us / 1e6);
    buf_addf(out, "\tCPU Usage:\t%.2f%%\n", 100 * figure_cpu_share(&v->now));
    buf_addf(out, "\tCPU Usage, 5 minute avg:\t%.2f%%\n", 100 * figure_cpu_share(&v->min5));
    buf_addf(out, "\tCPU Usage, 60 minute avg:\t%.2f%%\n", 100 * figure_cpu_share(&v->min60));
    buf_addf(out, "\tMaximum Resident Size: %llu KB\n",
             (unsigned long long)(v->resident_peak_bytes / 1024));
    buf_addf(out, "\tCurrent Resident Size: %llu KB\n",
             (unsigned long long)(v->resident_bytes / 1024));
    buf_addf(out, "\tPage faults with physical i/o: %llu\n",
             (unsigned long long)v->now.t.page_faults);
}

static void
add_descriptors(const struct view *v, struct buf *out)
{
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"Maximum number of file descriptors:", v->fds_limit},
        {"Largest file desc currently in use:", v->fds_largest},
        {"Number of file desc currently in use:", v->fds_in_use},
        {"Peak number of file desc in use:", v->fds_peak},
        {"Files queued for open:", 0},
        {"Available number of file descriptors:", v->fds_free},
        {"Reserved number of file descriptors:", 1}, /* base/fds.h, the reserve */
        {"Store Disk files open:", v->census[FD_DISK].now},
    };

    BUF_ADD(out, "File descriptor usage for cuttle:\n");
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        buf_addf(out, "\t%-37s %6llu\n", rows[i].name, (unsigned long long)rows[i].value);
}

void
report_info(struct manager *m, const struct view *v, struct buf *out)
{
    add_head(v, out);
    add_connections(m, v, out);
    add_cache(v, out);
    add_service_times(v, out);
    add_resources(v, out);
    add_descriptors(v, out);
    buf_addf(out,
             "Internal Data Structures:\n\t%6llu StoreEntries\n\t%6llu StoreEntries with "
             "MemObjects\n\t     0 on-disk objects\n",
             (unsigned long long)v->store.entries, (unsigned long long)v->store.entries);
}
