/* base/counters.c - per-worker counters and histograms, summed when read.
 *
 * A block is never freed: its thread's counts belong to the totals after the thread has ended.
 * The registry's mutex is taken once per thread and once per report, never when counting. */
#include "base/counters.h"

#include <pthread.h>
#include <string.h>

#include "base/check.h"

struct block {
    struct block *next;
    _Alignas(64) struct counters counters; /* no cache line shared with the neighbour on the heap */
    char pad[64];
};

_Thread_local struct counters *counters_thread;

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *registry;

static const struct {
    const char *name, *text;
} words[COUNTERS] = {
#define COUNTER(id, name, text) [COUNTER_##id] = {name, text},
#include "base/counters.def"
#undef COUNTER
};

static struct block *
block_new(void)
{
    char *p = mem_zalloc(sizeof(struct block) + _Alignof(struct block));

    return (struct block *)(p + (-(uintptr_t)p & (_Alignof(struct block) - 1)));
}

struct counters *
counters_register(void)
{
    struct block *b = block_new();

    pthread_mutex_lock(&registry_lock);
    b->next = registry;
    registry = b;
    pthread_mutex_unlock(&registry_lock);
    counters_thread = &b->counters;
    return counters_thread;
}

static void
sum_into(uint64_t *to, const _Atomic uint64_t *from, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        to[i] += atomic_load_explicit(&from[i], memory_order_relaxed);
}

void
counters_read(struct counters_sum *out)
{
    memset(out, 0, sizeof *out);
    pthread_mutex_lock(&registry_lock);
    for (const struct block *b = registry; b; b = b->next) {
        sum_into(out->at, b->counters.at, COUNTERS);
        sum_into(out->histogram[0], b->counters.histogram[0], HISTOGRAMS * HISTOGRAM_BUCKETS);
    }
    pthread_mutex_unlock(&registry_lock);
}

const char *
counter_name(enum counter c)
{
    CHECK((unsigned)c < COUNTERS);
    return words[c].name;
}

const char *
counter_text(enum counter c)
{
    CHECK((unsigned)c < COUNTERS);
    return words[c].text;
}

void
histogram_add(enum histogram h, uint64_t value)
{
    counter_add_to(&counters_mine()->histogram[h][histogram_bucket(value)], 1);
}
