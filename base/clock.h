/* base/clock.h - wall and monotonic time.
 *
 * clock_tick() reads both clocks; the loop calls it once per turn, and everything else on that
 * thread reads the cached values. A thread that never ticked gets fresh readings. Timers and
 * residence times use the monotonic clock: the wall clock may jump. clock_fake() pins both for
 * tests of the calling thread (clock_fake(-1, -1) ends it). */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

void clock_tick(void);
int64_t clock_mono_ms(void);
int64_t clock_mono_ns(void); /* cached like the others */
int64_t clock_wall_ms(void); /* since the epoch */
static inline int64_t
clock_wall_s(void)
{
    return clock_wall_ms() / 1000;
}
int64_t clock_exact_mono_ns(void); /* reads the clock now; a fake does not touch it */
int64_t
clock_tick_mono_ns(void); /* what clock_tick() last read on this thread; a fake does not touch it */
int64_t clock_thread_cpu_ns(void); /* CPU of the calling thread, read now */
void clock_fake(int64_t wall_ms, int64_t mono_ms);

#endif
