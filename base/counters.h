/* base/counters.h - per-worker counters and histograms, summed when read.
 *
 * Each thread writes its own block (counters_mine()); a block is registered at first use and lives
 * until the process ends. Adding is one plain load, add, store: no lock prefix. */
#ifndef BASE_COUNTERS_H
#define BASE_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

enum counter {
#define COUNTER(id, name, text) COUNTER_##id,
#include "base/counters.def"
#undef COUNTER
    COUNTERS
};

/* Log-linear histogram of milliseconds or any unit: 8 sub-buckets per power of two. */
#define HISTOGRAM_BUCKETS 256
enum histogram {
    HISTOGRAM_ALL_US,
    HISTOGRAM_HIT_US,
    HISTOGRAM_MISS_US,
    HISTOGRAM_DNS_US,
    HISTOGRAMS
};

struct counters {
    _Atomic uint64_t at[COUNTERS];
    _Atomic uint64_t histogram[HISTOGRAMS][HISTOGRAM_BUCKETS];
};

struct counters_sum {
    uint64_t at[COUNTERS];
    uint64_t histogram[HISTOGRAMS][HISTOGRAM_BUCKETS];
};

extern _Thread_local struct counters *counters_thread;
struct counters *counters_register(void); /* counters_mine() calls it once per thread */

static inline struct counters *
counters_mine(void)
{
    return counters_thread ? counters_thread : counters_register();
}

static inline void
counter_add_to(_Atomic uint64_t *c, uint64_t n)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static inline void
counter_add(enum counter c, uint64_t n)
{
    counter_add_to(&counters_mine()->at[c], n);
}

void histogram_add(enum histogram h, uint64_t value);
void counters_read(struct counters_sum *out); /* sum over all threads */
const char *counter_name(enum counter c);
const char *counter_text(enum counter c);
unsigned histogram_bucket(uint64_t value);
uint64_t histogram_bucket_low(unsigned bucket); /* smallest value of the bucket */
/* Value below which `share` (0..1) of the entries lie; 0 when empty. */
uint64_t histogram_quantile(const uint64_t buckets[HISTOGRAM_BUCKETS], double share);

#endif
