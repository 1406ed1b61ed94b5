/* proxy/admin/sampler.h - what the process has counted, and what it had counted some time ago.
 *
 * Three rings of samples: the last minute by seconds, five minutes by ten seconds, an hour by
 * minutes. A report over "the last five minutes" is the difference between now and the sample that
 * is nearest to that age, divided by the time that really lies between. Not thread-safe: the
 * manager's lock. */
#ifndef PROXY_ADMIN_SAMPLER_H
#define PROXY_ADMIN_SAMPLER_H

#include "base/counters.h"
#include "base/readiness.h"

enum ring_name { RING_SECONDS, RING_5MIN, RING_60MIN, RINGS };

/* Sums since start. Only 64-bit integers in here: the difference of two tallies is taken word by
 * word. */
struct tally {
    int64_t at_ns;                /* when; in a difference: how long */
    uint64_t cpu_us, page_faults; /* of the process */
    uint64_t close_ns, closes, open_ns, opens;
    uint64_t counters[COUNTERS];
    struct readiness_sum readiness; /* of all workers */
};

struct totals { /* since start, or over a while */
    struct tally t;
    uint64_t histogram[HISTOGRAMS][HISTOGRAM_BUCKETS];
};

struct sample; /* totals in half the memory */

struct ring {
    struct sample *at;
    unsigned n, newest;
};

struct sampler {
    struct ring rings[RINGS];
};

void sampler_init(struct sampler *s);
void sampler_free(struct sampler *s);
/* workers: n of them, NULL for those that have not started. */
void totals_take(struct totals *out, const struct readiness *const *workers, unsigned n,
                 int64_t now_ns);
/* Is any ring due for a sample? Ticks may come early, late, or not at all. */
bool sampler_is_due(const struct sampler *s, int64_t now_ns);
void sampler_add(struct sampler *s, const struct totals *now); /* to the rings that are due */
/* What was counted in the ring's span up to now, or since the oldest sample there is. span_s 0: the
 * whole ring. */
void sampler_since(const struct sampler *s, enum ring_name r, unsigned span_s,
                   const struct totals *now, struct totals *out);
/* A counter's rate in each second of the last minute, oldest first; returns how many. */
unsigned sampler_rates(const struct sampler *s, enum counter c, double *out, unsigned max);

#endif
