/* proxy/admin/sampler.c - rings of samples.
 *
 * A sample keeps its histograms in 32 bits: only differences are ever taken of it, and these are
 * right modulo 2^32. The memory of a ring is touched as it fills, so a proxy that has just started
 * has not paid for an hour of it. */
#include "proxy/admin/sampler.h"

#include <string.h>
#include <sys/resource.h>

#include "base/check.h"
#include "base/fds.h"

#define SECOND_NS INT64_C(1000000000)
#define EARLY_NS (SECOND_NS / 20) /* a timer's second may be a little short */

struct sample {
    struct tally t;
    uint32_t histogram[HISTOGRAMS][HISTOGRAM_BUCKETS];
};

static const struct {
    unsigned every_s, slots;
} shapes[RINGS] = {
    [RING_SECONDS] = {1, 61},
    [RING_5MIN] = {10, 32},
    [RING_60MIN] = {60, 62},
};

_Static_assert(sizeof(struct tally) % sizeof(uint64_t) == 0, "a tally is made of 64-bit words");

void
sampler_init(struct sampler *s)
{
    for (unsigned i = 0; i < RINGS; i++)
        s->rings[i] = (struct ring){.at = mem_zalloc(shapes[i].slots * sizeof(struct sample))};
}

void
sampler_free(struct sampler *s)
{
    for (unsigned i = 0; i < RINGS; i++)
        mem_free(s->rings[i].at);
}

static uint64_t
timeval_us(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

void
totals_take(struct totals *out, const struct readiness *const *workers, unsigned n, int64_t now_ns)
{
    struct counters_sum counted;
    struct rusage used = {0};

    memset(out, 0, sizeof *out);
    counters_read(&counted);
    memcpy(out->t.counters, counted.at, sizeof out->t.counters);
    memcpy(out->histogram, counted.histogram, sizeof out->histogram);
    for (unsigned i = 0; i < n; i++)
        if (workers[i])
            readiness_add(&out->t.readiness, workers[i]);
    getrusage(RUSAGE_SELF, &used);
    out->t.cpu_us = timeval_us(used.ru_utime) + timeval_us(used.ru_stime);
    out->t.page_faults = (uint64_t)used.ru_majflt;
    fds_cost(&out->t.close_ns, &out->t.closes);
    fds_open_cost(&out->t.open_ns, &out->t.opens);
    out->t.at_ns = now_ns;
}

static bool
ring_is_due(const struct ring *r, unsigned every_s, int64_t now_ns)
{
    return r->n == 0 || now_ns - r->at[r->newest].t.at_ns >= every_s * SECOND_NS - EARLY_NS;
}

bool
sampler_is_due(const struct sampler *s, int64_t now_ns)
{
    for (unsigned i = 0; i < RINGS; i++)
        if (ring_is_due(&s->rings[i], shapes[i].every_s, now_ns))
            return true;
    return false;
}

static void
ring_add(struct ring *r, unsigned slots, const struct totals *now)
{
    struct sample *s;

    r->newest = r->n ? (r->newest + 1) % slots : 0;
    r->n += r->n < slots;
    s = &r->at[r->newest];
    s->t = now->t;
    for (unsigned h = 0; h < HISTOGRAMS; h++)
        for (unsigned b = 0; b < HISTOGRAM_BUCKETS; b++)
            s->histogram[h][b] = (uint32_t)now->histogram[h][b];
}

void
sampler_add(struct sampler *s, const struct totals *now)
{
    for (unsigned i = 0; i < RINGS; i++)
        if (ring_is_due(&s->rings[i], shapes[i].every_s, now->t.at_ns))
            ring_add(&s->rings[i], shapes[i].slots, now);
}

/* The sample that is `back` samples old. */
static const struct sample *
ring_at(const struct ring *r, unsigned slots, unsigned back)
{
    return &r->at[(r->newest + slots - back) % slots];
}

static void
difference(const struct totals *now, const struct sample *then, struct totals *out)
{
    const uint64_t *a = (const uint64_t *)&now->t, *b = (const uint64_t *)&then->t;
    uint64_t *to = (uint64_t *)&out->t;

    for (size_t i = 0; i < sizeof out->t / sizeof *to; i++)
        to[i] = a[i] - b[i];
    for (unsigned h = 0; h < HISTOGRAMS; h++)
        for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
            out->histogram[h][i] = (uint32_t)now->histogram[h][i] - then->histogram[h][i];
}

void
sampler_since(const struct sampler *s, enum ring_name name, unsigned span_s,
              const struct totals *now, struct totals *out)
{
    const struct ring *r = &s->rings[name];
    unsigned slots = shapes[name].slots, back = 0;
    int64_t span_ns = span_s * SECOND_NS - EARLY_NS;

    if (r->n == 0) {
        *out = *now;
        return;
    }
    while (back + 1 < r->n &&
           (span_s == 0 || now->t.at_ns - ring_at(r, slots, back)->t.at_ns < span_ns))
        back++;
    difference(now, ring_at(r, slots, back), out);
}

unsigned
sampler_rates(const struct sampler *s, enum counter c, double *out, unsigned max)
{
    const struct ring *r = &s->rings[RING_SECONDS];
    unsigned slots = shapes[RING_SECONDS].slots, n = r->n > 1 ? r->n - 1 : 0;

    if (n > max)
        n = max;
    for (unsigned i = 0; i < n; i++) {
        const struct tally *from = &ring_at(r, slots, n - i)->t,
                           *to = &ring_at(r, slots, n - i - 1)->t;

        out[i] =
            (double)(to->counters[c] - from->counters[c]) * 1e9 / (double)(to->at_ns - from->at_ns);
    }
    return n;
}
