/* base/clock.c - wall and monotonic time.
 *
 * The cached readings are per thread: workers do not share a cache line for something each of
 * them reads dozens of times a turn. A fake pins what the proxy decides by (clock_mono_*,
 * clock_wall_*); the exact readings, which only measure, stay real. */
#include "base/clock.h"

#include <stdbool.h>
#include <time.h>

struct reading {
    int64_t wall_ms, mono_ns;
};

static _Thread_local struct {
    struct reading tick, fake;
    bool ticked, faked;
} mine;

static int64_t
clock_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t
wall_now_ms(void)
{
    return clock_ns(CLOCK_REALTIME) / 1000000;
}

void
clock_tick(void)
{
    mine.tick = (struct reading){wall_now_ms(), clock_ns(CLOCK_MONOTONIC)};
    mine.ticked = true;
}

int64_t
clock_tick_mono_ns(void)
{
    return mine.tick.mono_ns;
}

int64_t
clock_mono_ns(void)
{
    if (mine.faked)
        return mine.fake.mono_ns;
    return mine.ticked ? mine.tick.mono_ns : clock_ns(CLOCK_MONOTONIC);
}

int64_t
clock_mono_ms(void)
{
    return clock_mono_ns() / 1000000;
}

int64_t
clock_wall_ms(void)
{
    if (mine.faked)
        return mine.fake.wall_ms;
    return mine.ticked ? mine.tick.wall_ms : wall_now_ms();
}

int64_t
clock_exact_mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t
clock_thread_cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void
clock_fake(int64_t wall_ms, int64_t mono_ms)
{
    mine.faked = wall_ms != -1 || mono_ms != -1;
    mine.fake = (struct reading){wall_ms, mono_ms * 1000000};
    if (!mine.faked)
        mine.ticked = false; /* the tick from before the fake is old by now */
}
