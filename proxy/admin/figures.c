/* proxy/admin/figures.c - the arithmetic that several reports share. Pure. Every division is
 * guarded: a proxy that has done nothing yet has reports too. */
#include "base/check.h"
#include "proxy/admin/report.h"

double
figure_ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

double
figure_seconds(const struct totals *t)
{
    return (double)t->t.at_ns / 1e9;
}

double
figure_per_second(const struct totals *t, double n)
{
    return figure_ratio(n, figure_seconds(t));
}

double
figure_hit_share(const struct totals *t)
{
    return figure_ratio((double)t->t.counters[COUNTER_CLIENT_HITS],
                        (double)t->t.counters[COUNTER_CLIENT_REQUESTS]);
}

double
figure_hit_byte_share(const struct totals *t)
{
    return figure_ratio((double)t->t.counters[COUNTER_CLIENT_HIT_BYTES_OUT],
                        (double)t->t.counters[COUNTER_CLIENT_KBYTES_OUT]);
}

double
figure_cpu_share(const struct totals *t)
{
    return figure_ratio((double)t->t.cpu_us / 1e6, figure_seconds(t));
}

double
figure_median_s(const struct totals *t, enum histogram h)
{
    return (double)histogram_quantile(t->histogram[h], 0.5) / 1e6;
}

/* The readings of the two clocks are not taken at one instant: a call that did not block may come
 * out below 0. */
double
figure_blocked_s(const struct readiness_sum *r)
{
    return r->wall_ns > r->cpu_ns ? (double)(r->wall_ns - r->cpu_ns) / 1e9 : 0;
}

/* The inverse of readiness_bucket: 0, 1, 2, 3-4, 5-8, ... */
uint64_t
events_bucket_low(unsigned bucket)
{
    return bucket <= 2 ? bucket : (UINT64_C(1) << (bucket - 2)) + 1;
}

uint64_t
events_bucket_high(unsigned bucket)
{
    if (bucket >= READINESS_BUCKETS - 1)
        return UINT64_MAX;
    return bucket <= 2 ? bucket : UINT64_C(1) << (bucket - 1);
}

/* Spread evenly over a bucket; the last one, which has no end, counts as its beginning. */
double
figure_events_median(const struct readiness_sum *r)
{
    double total = 0, below = 0, half;

    for (unsigned i = 0; i < READINESS_BUCKETS; i++)
        total += (double)r->events_histogram[i];
    half = total / 2;
    for (unsigned i = 0; i < READINESS_BUCKETS; i++) {
        double n = (double)r->events_histogram[i], low = (double)events_bucket_low(i);

        if (n > 0 && below + n >= half)
            return i == READINESS_BUCKETS - 1
                       ? low
                       : low + ((double)events_bucket_high(i) - low) * (half - below) / n;
        below += n;
    }
    return 0;
}

const char *
loop_kind_name(enum loop_kind k)
{
    static const char *const names[LOOP_KINDS] = {
        [LOOP_LISTEN] = "listen", [LOOP_CLIENT] = "client", [LOOP_SERVER] = "server",
        [LOOP_TUNNEL] = "tunnel", [LOOP_DNS] = "dns",       [LOOP_DISK] = "disk",
        [LOOP_CHILD] = "helper",  [LOOP_TIMER] = "timer",   [LOOP_TASK] = "task",
    };

    CHECK((unsigned)k < LOOP_KINDS && names[k]);
    return names[k];
}
