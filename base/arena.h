/* base/arena.h - one exchange's memory: many small allocations, one release.
 *
 * Nothing is freed alone. Allocations are 16-byte aligned and not zeroed. The first block may
 * be lent by the owner (arena_init), so that a small exchange costs no extra malloc. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/span.h"

struct arena_block;
struct arena {
    char *at, *end;             /* free room in the current block */
    struct arena_block *blocks; /* owned blocks, newest first */
    char *lent, *lent_end;
};

void arena_init(struct arena *a, void *lent, size_t n_bytes); /* lent may be NULL */
void arena_free(struct arena *a); /* usable again afterwards, as after init */
void *arena_alloc(struct arena *a, size_t n_bytes);
struct span arena_copy(struct arena *a, struct span s);
char *arena_str(struct arena *a, struct span s); /* copy with a NUL behind it */
struct span arena_printf(struct arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
