/* base/ref.h - an atomic reference count. ref_drop returns what is left; at 0 the caller frees. */
#ifndef BASE_REF_H
#define BASE_REF_H

#include <stdatomic.h>

struct ref {
    _Atomic int n;
};

static inline void
ref_init(struct ref *r)
{
    atomic_init(&r->n, 1);
}

static inline void
ref_take(struct ref *r)
{
    atomic_fetch_add_explicit(&r->n, 1, memory_order_relaxed);
}

static inline int
ref_drop(struct ref *r)
{
    return atomic_fetch_sub_explicit(&r->n, 1, memory_order_acq_rel) - 1;
}

#endif
