/* base/readiness.c - adding up and reading the stopwatch; loop.c runs it. */
#include "base/readiness.h"

#include "base/clock.h"

static uint64_t
load(const _Atomic uint64_t *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

/* Everything is summed, the elapsed time too: with several loops it is loop-nanoseconds, so that
 * wall_ns / elapsed_ns stays a share whatever their number. */
void
readiness_add(struct readiness_sum *sum, const struct readiness *r)
{
    int64_t started_ns = atomic_load_explicit(&r->started_ns, memory_order_relaxed);

    sum->calls += load(&r->calls);
    sum->events += load(&r->events);
    for (unsigned i = 0; i < READINESS_BUCKETS; i++)
        sum->events_histogram[i] += load(&r->events_histogram[i]);
    sum->cpu_ns += load(&r->cpu_ns);
    sum->wall_ns += load(&r->wall_ns);
    sum->thread_cpu_ns += load(&r->thread_cpu_ns);
    sum->dispatch_ns += load(&r->dispatch_ns);
    for (unsigned i = 0; i < LOOP_KINDS; i++) {
        sum->kind_ns[i] += load(&r->kind_ns[i]);
        sum->kind_calls[i] += load(&r->kind_calls[i]);
    }
    sum->interest_changes += load(&r->interest_changes);
    sum->watched += atomic_load_explicit(&r->watched, memory_order_relaxed);
    if (started_ns)
        sum->elapsed_ns += clock_exact_mono_ns() - started_ns;
}

/* 0, 1, 2, 3-4, 5-8, 9-16, ...: beyond 1 the bucket is the exponent of the next power of two. */
unsigned
readiness_bucket(uint64_t events)
{
    unsigned bucket;

    if (events <= 2)
        return (unsigned)events;
    bucket = 65 - (unsigned)__builtin_clzll(events - 1);
    return bucket < READINESS_BUCKETS ? bucket : READINESS_BUCKETS - 1;
}

double
readiness_share(const struct readiness_sum *s)
{
    return s->thread_cpu_ns ? (double)s->cpu_ns / (double)s->thread_cpu_ns : 0;
}
