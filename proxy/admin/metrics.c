/* proxy/admin/metrics.c - /metrics in the Prometheus text format 0.0.4.
 *
 * Every row of counters.def becomes a metric by itself; the rest are rows of the tables below, read
 * by offset. Base units (seconds, bytes), counters end in _total. The measurement is given per
 * worker: sums are for the asker. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "proxy/admin/report.h"

#define NAME_MAX_BYTES 96

static void
add_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* ---- counters.def ---- */

/* "client_http.bytes_in" -> "cuttle_client_http_in_bytes_total": the unit stands last but for
 * _total. */
static void
metric_name(enum counter c, char out[NAME_MAX_BYTES])
{
    const char *name = counter_name(c), *bytes = strstr(name, "bytes_");

    if (bytes)
        snprintf(out, NAME_MAX_BYTES, "cuttle_%.*s%s_bytes_total", (int)(bytes - name), name,
                 bytes + strlen("bytes_"));
    else
        snprintf(out, NAME_MAX_BYTES, "cuttle_%s_total", name);
    for (char *at = out; (at = strpbrk(at, ".- ")) != NULL;)
        *at = '_';
}

static void
add_counters(const struct view *v, struct buf *out)
{
    for (unsigned c = 0; c < COUNTERS; c++) {
        char name[NAME_MAX_BYTES];

        metric_name(c, name);
        add_head(out, name, "counter", counter_text(c));
        buf_addf(out, "%s %llu\n", name, (unsigned long long)v->now.t.counters[c]);
    }
}

/* ---- single numbers of the view ---- */

static const struct {
    const char *name, *type, *help;
    size_t at;   /* of a uint64_t in struct view */
    double unit; /* 0: a whole number */
} singles[] = {
    {"cuttle_descriptors_in_use", "gauge", "Descriptors open in all",
     offsetof(struct view, fds_in_use), 0},
    {"cuttle_descriptors_in_use_peak", "gauge", "Most descriptors that were open at once",
     offsetof(struct view, fds_peak), 0},
    {"cuttle_descriptors_limit", "gauge", "RLIMIT_NOFILE", offsetof(struct view, fds_limit), 0},
    {"cuttle_descriptors_headroom", "gauge", "Descriptors left to the limit",
     offsetof(struct view, fds_free), 0},
    {"cuttle_descriptor_open_seconds_total", "counter", "Time in socket, accept4 and the like",
     offsetof(struct view, now.t.open_ns), 1e-9},
    {"cuttle_descriptor_opens_timed_total", "counter",
     "Calls of socket, accept4 and the like that were timed", offsetof(struct view, now.t.opens),
     0},
    {"cuttle_descriptor_close_seconds_total", "counter", "Time in close",
     offsetof(struct view, now.t.close_ns), 1e-9},
    {"cuttle_descriptor_closes_timed_total", "counter", "Calls of close that were timed",
     offsetof(struct view, now.t.closes), 0},
    {"cuttle_store_entries", "gauge", "Responses in the store",
     offsetof(struct view, store.entries), 0},
    {"cuttle_store_bytes", "gauge", "Bytes of the store: heads, bodies and overhead",
     offsetof(struct view, store.bytes), 0},
    {"cuttle_store_limit_bytes", "gauge", "cache_mem", offsetof(struct view, store.limit), 0},
    {"cuttle_dns_cache_entries", "gauge", "Names in the cache of answers",
     offsetof(struct view, answers.entries), 0},
    {"cuttle_dns_cache_hits_total", "counter", "Names, and failures, found in the cache of answers",
     offsetof(struct view, answers.hits), 0},
    {"cuttle_dns_cache_negative_hits_total", "counter", "Failures found in the cache of answers",
     offsetof(struct view, answers.negative_hits), 0},
    {"cuttle_dns_cache_misses_total", "counter", "Names not found in the cache of answers",
     offsetof(struct view, answers.misses), 0},
    {"process_resident_memory_bytes", "gauge", "Resident memory",
     offsetof(struct view, resident_bytes), 0},
    {"process_cpu_seconds_total", "counter", "CPU of the process, user and system",
     offsetof(struct view, now.t.cpu_us), 1e-6},
    {"process_open_fds", "gauge", "Descriptors open in all", offsetof(struct view, fds_in_use), 0},
    {"process_max_fds", "gauge", "RLIMIT_NOFILE", offsetof(struct view, fds_limit), 0},
};

static uint64_t
word_at(const void *base, size_t offset)
{
    uint64_t n;

    memcpy(&n, (const char *)base + offset, sizeof n);
    return n;
}

static void
add_value(struct buf *out, uint64_t n, double unit)
{
    if (unit > 0)
        buf_addf(out, " %.9f\n", (double)n * unit);
    else
        buf_addf(out, " %llu\n", (unsigned long long)n);
}

static void
add_singles(const struct view *v, struct buf *out)
{
    for (unsigned i = 0; i < sizeof singles / sizeof *singles; i++) {
        add_head(out, singles[i].name, singles[i].type, singles[i].help);
        buf_add(out, span_str(singles[i].name));
        add_value(out, word_at(v, singles[i].at), singles[i].unit);
    }
    add_head(out, "process_start_time_seconds", "gauge",
             "When the process started, since the epoch");
    buf_addf(out, "process_start_time_seconds %lld\n", (long long)v->started_wall_s);
}

/* ---- descriptors by purpose ---- */

static const struct {
    const char *name, *type, *help;
    size_t at; /* of a uint64_t in struct fd_census_row */
} census_rows[] = {
    {"cuttle_descriptors", "gauge", "Descriptors by purpose", offsetof(struct fd_census_row, now)},
    {"cuttle_descriptors_peak", "gauge", "Most descriptors of a purpose at once",
     offsetof(struct fd_census_row, peak)},
    {"cuttle_descriptors_opened_total", "counter", "Descriptors opened for a purpose",
     offsetof(struct fd_census_row, opened)},
    {"cuttle_descriptors_closed_total", "counter", "Descriptors closed while they served a purpose",
     offsetof(struct fd_census_row, closed)},
};

static void
add_census(const struct view *v, struct buf *out)
{
    for (unsigned i = 0; i < sizeof census_rows / sizeof *census_rows; i++) {
        add_head(out, census_rows[i].name, census_rows[i].type, census_rows[i].help);
        for (unsigned p = 0; p < FD_PURPOSES; p++) {
            buf_addf(out, "%s{purpose=\"%s\"}", census_rows[i].name, fd_purpose_name(p));
            add_value(out, word_at(&v->census[p], census_rows[i].at), 0);
        }
    }
    add_head(out, "cuttle_descriptors_mean", "gauge", "Descriptors by purpose, mean since start");
    for (unsigned p = 0; p < FD_PURPOSES; p++)
        buf_addf(out, "cuttle_descriptors_mean{purpose=\"%s\"} %.3f\n", fd_purpose_name(p),
                 v->census[p].mean);
}

/* ---- durations ---- */

enum {
    DURATION_FROM = 5,
    DURATION_TO = 27
}; /* bounds are powers of two of microseconds: edges of the buckets */

static uint64_t
count_below(const uint64_t buckets[HISTOGRAM_BUCKETS], uint64_t bound)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS && histogram_bucket_low(i) < bound; i++)
        n += buckets[i];
    return n;
}

/* The middles of the buckets: off by a sixteenth at most. */
static double
sum_of(const uint64_t buckets[HISTOGRAM_BUCKETS])
{
    double sum = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        sum += (double)buckets[i] *
               (double)(histogram_bucket_low(i) + histogram_bucket_low(i + 1)) / 2;
    return sum;
}

static void
add_durations(const struct view *v, struct buf *out)
{
    static const struct {
        const char *name, *help;
    } rows[HISTOGRAMS] = {
        [HISTOGRAM_ALL_US] = {"cuttle_request_duration_seconds",
                              "From a request's head to the end of its response"},
        [HISTOGRAM_HIT_US] = {"cuttle_hit_duration_seconds", "The same, of hits"},
        [HISTOGRAM_MISS_US] = {"cuttle_miss_duration_seconds", "The same, of misses"},
        [HISTOGRAM_DNS_US] = {"cuttle_dns_duration_seconds", "From a question to its answer"},
    };

    for (unsigned h = 0; h < HISTOGRAMS; h++) {
        const uint64_t *buckets = v->now.histogram[h];
        unsigned long long n = count_below(buckets, UINT64_MAX);

        add_head(out, rows[h].name, "histogram", rows[h].help);
        for (unsigned i = DURATION_FROM; i <= DURATION_TO; i++)
            buf_addf(out, "%s_bucket{le=\"%.6f\"} %llu\n", rows[h].name,
                     (double)(UINT64_C(1) << i) / 1e6,
                     (unsigned long long)count_below(buckets, UINT64_C(1) << i));
        buf_addf(out, "%s_bucket{le=\"+Inf\"} %llu\n", rows[h].name, n);
        buf_addf(out, "%s_sum %.6f\n%s_count %llu\n", rows[h].name, sum_of(buckets) / 1e6,
                 rows[h].name, n);
    }
}

/* ---- the measurement, by worker ---- */

static const struct {
    const char *name, *type, *help;
    size_t at; /* of a 64-bit number in struct readiness_sum */
    double unit;
} readiness_rows[] = {
    {"cuttle_readiness_calls_total", "counter", "Readiness calls",
     offsetof(struct readiness_sum, calls), 0},
    {"cuttle_readiness_events_total", "counter", "Events they brought",
     offsetof(struct readiness_sum, events), 0},
    {"cuttle_readiness_cpu_seconds_total", "counter", "CPU inside the readiness call",
     offsetof(struct readiness_sum, cpu_ns), 1e-9},
    {"cuttle_readiness_wall_seconds_total", "counter",
     "Wall time inside the readiness call, blocked or not", offsetof(struct readiness_sum, wall_ns),
     1e-9},
    {"cuttle_worker_cpu_seconds_total", "counter", "CPU of the worker's thread",
     offsetof(struct readiness_sum, thread_cpu_ns), 1e-9},
    {"cuttle_dispatch_seconds_total", "counter", "Wall time between readiness calls",
     offsetof(struct readiness_sum, dispatch_ns), 1e-9},
    {"cuttle_interest_changes_total", "counter", "Changes of what a descriptor is watched for",
     offsetof(struct readiness_sum, interest_changes), 0},
    {"cuttle_descriptors_watched", "gauge", "Descriptors watched",
     offsetof(struct readiness_sum, watched), 0},
};

struct workers {
    struct readiness_sum at[MANAGER_WORKERS];
    bool started[MANAGER_WORKERS];
    unsigned n;
};

static void
add_readiness(const struct workers *w, struct buf *out)
{
    for (unsigned i = 0; i < sizeof readiness_rows / sizeof *readiness_rows; i++) {
        add_head(out, readiness_rows[i].name, readiness_rows[i].type, readiness_rows[i].help);
        for (unsigned id = 0; id < w->n; id++) {
            if (!w->started[id])
                continue;
            buf_addf(out, "%s{worker=\"%u\"}", readiness_rows[i].name, id);
            add_value(out, word_at(&w->at[id], readiness_rows[i].at), readiness_rows[i].unit);
        }
    }
}

static void
add_callbacks(const struct workers *w, const char *name, const char *help, size_t array_at,
              double unit, struct buf *out)
{
    add_head(out, name, "counter", help);
    for (unsigned id = 0; id < w->n; id++)
        for (unsigned k = 0; w->started[id] && k < LOOP_KINDS; k++) {
            buf_addf(out, "%s{worker=\"%u\",kind=\"%s\"}", name, id, loop_kind_name(k));
            add_value(out, word_at(&w->at[id], array_at + k * sizeof(uint64_t)), unit);
        }
}

static void
add_events(const struct workers *w, struct buf *out)
{
    static const char name[] = "cuttle_readiness_events_per_call";

    add_head(out, name, "histogram", "Events that a readiness call brought");
    for (unsigned id = 0; id < w->n; id++) {
        const struct readiness_sum *r = &w->at[id];
        unsigned long long n = 0;

        if (!w->started[id])
            continue;
        for (unsigned i = 0; i < READINESS_BUCKETS; i++) {
            n += r->events_histogram[i];
            if (i + 1 < READINESS_BUCKETS)
                buf_addf(out, "%s_bucket{worker=\"%u\",le=\"%llu\"} %llu\n", name, id,
                         (unsigned long long)events_bucket_high(i), n);
        }
        buf_addf(out, "%s_bucket{worker=\"%u\",le=\"+Inf\"} %llu\n", name, id, n);
        buf_addf(out, "%s_sum{worker=\"%u\"} %llu\n%s_count{worker=\"%u\"} %llu\n", name, id,
                 (unsigned long long)r->events, name, id, n);
    }
}

static void
add_workers(struct manager *m, const struct view *v, struct buf *out)
{
    struct workers *w = mem_zalloc(sizeof *w);
    const char *backend;

    w->n = v->n_workers < MANAGER_WORKERS ? v->n_workers : MANAGER_WORKERS;
    for (unsigned i = 0; i < w->n; i++)
        w->started[i] = manager_worker(m, i, &w->at[i], &backend);
    add_readiness(w, out);
    add_callbacks(w, "cuttle_callbacks_total", "Callbacks by kind",
                  offsetof(struct readiness_sum, kind_calls), 0, out);
    add_callbacks(w, "cuttle_callback_seconds_total", "Wall time in callbacks by kind",
                  offsetof(struct readiness_sum, kind_ns), 1e-9, out);
    add_events(w, out);
    mem_free(w);
}

void
report_metrics(struct manager *m, const struct view *v, struct buf *out)
{
    add_head(out, "cuttle_build_info", "gauge", "Version and readiness backend");
    buf_addf(out, "cuttle_build_info{version=\"%s\",backend=\"%s\"} 1\n", v->version,
             manager_backend(m));
    add_head(out, "cuttle_workers", "gauge", "Worker threads");
    buf_addf(out, "cuttle_workers %u\n", v->n_workers);
    add_counters(v, out);
    add_singles(v, out);
    add_census(v, out);
    add_durations(v, out);
    add_workers(m, v, out);
}
