/* cache/body_private.h - what body.c (the bytes and their life), body_pace.c (who waits for whom)
 * and body_reader.c (cursors) share. */
#ifndef CACHE_BODY_PRIVATE_H
#define CACHE_BODY_PRIVATE_H

#include <pthread.h>

#include "base/ref.h"
#include "cache/body.h"
#include "cache/chunk.h"

#define BODY_MAGIC 0xb0d1b0d1u

struct body {
    uint32_t magic;
    struct ref refs;
    _Atomic uint64_t published;
    _Atomic int state; /* enum body_state */
    _Atomic int mode;  /* enum body_mode */
    struct chunk
        *first; /* the oldest chunk held; changes under the lock while FILLING, then never */
    struct chunk *last;           /* the writer's own */
    uint64_t expected, lag_bytes; /* lag_bytes: how far behind a reader may be in PASS */
    _Atomic size_t held;
    _Atomic int64_t moved_ms; /* when something came, or was asked for, last */
    enum fault fault;
    struct span trailer;
    /* --- while FILLING, and until the last of those readers has closed --- */
    pthread_mutex_t lock;
    struct list readers;
    unsigned n_readers;
    _Atomic unsigned n_waiting;
    _Atomic bool fill_waits;
    struct loop *fill_loop;
    struct loop_task *fill;
};

static inline uint64_t
published_of(const struct body *b)
{
    return atomic_load_explicit(&b->published, memory_order_acquire);
}

void body_fill_wake(struct body *b); /* under the lock: a reader's progress may have made room */

#endif
