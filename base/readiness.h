/* base/readiness.h - the stopwatch around the readiness call (DESIGN section 6).
 *
 * One per loop, written by the loop's thread only, read by anyone (relaxed atomics; sums may be a
 * turn apart). libev's release callback starts the watch before the wait, acquire stops it after.
 */
#ifndef BASE_READINESS_H
#define BASE_READINESS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/loop.h"

#define READINESS_BUCKETS 16 /* events per call: 0, 1, 2, 3-4, 5-8, 9-16, ... */

struct readiness {
    _Atomic uint64_t calls, events;
    _Atomic uint64_t events_histogram[READINESS_BUCKETS];
    _Atomic uint64_t cpu_ns;        /* thread CPU inside the call */
    _Atomic uint64_t wall_ns;       /* wall time inside the call; minus cpu_ns is idleness */
    _Atomic uint64_t thread_cpu_ns; /* CPU of the whole thread when last read */
    _Atomic uint64_t dispatch_ns;   /* wall time between calls, i.e. spent dispatching callbacks */
    _Atomic uint64_t kind_ns[LOOP_KINDS], kind_calls[LOOP_KINDS]; /* callbacks by kind */
    _Atomic uint64_t interest_changes; /* loop_io_want calls that changed something */
    _Atomic int64_t watched;           /* descriptors watched now */
    _Atomic int64_t started_ns;        /* monotonic */
};

struct readiness_sum { /* plain copy of one or several */
    uint64_t calls, events, events_histogram[READINESS_BUCKETS], cpu_ns, wall_ns, thread_cpu_ns,
        dispatch_ns;
    uint64_t kind_ns[LOOP_KINDS], kind_calls[LOOP_KINDS], interest_changes;
    int64_t watched, elapsed_ns; /* elapsed_ns is summed like the rest: loops x time */
};

void readiness_add(struct readiness_sum *sum, const struct readiness *r);
unsigned readiness_bucket(uint64_t events);
/* CPU in the call as a share of the thread's whole CPU: the 44 % of 1998. 0 when nothing was
 * measured. */
double readiness_share(const struct readiness_sum *s);

#endif
