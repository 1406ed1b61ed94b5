/* base/arena.c - one exchange's memory.
 *
 * Small allocations share blocks of about a page. A large one gets a block to itself and leaves the
 * current block in use, so that one long field does not waste what is left of it. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"

enum {
    ARENA_ALIGN = 16,
    ARENA_BLOCK = 4096 - 16, /* with the allocator's header still a page */
    ARENA_LARGE = 1024
};

struct arena_block {
    struct arena_block *next;
    _Alignas(ARENA_ALIGN) char bytes[];
};

static char *
aligned_up(char *p)
{
    return p + (-(uintptr_t)p & (ARENA_ALIGN - 1));
}

static void
use_lent(struct arena *a)
{
    a->at = a->lent ? aligned_up(a->lent) : NULL;
    a->end = a->lent_end;
    if (a->at > a->end)
        a->at = a->end = NULL;
}

void
arena_init(struct arena *a, void *lent, size_t n_bytes)
{
    *a = (struct arena){.lent = lent, .lent_end = lent ? (char *)lent + n_bytes : NULL};
    use_lent(a);
}

void
arena_free(struct arena *a)
{
    struct arena_block *next;

    for (struct arena_block *b = a->blocks; b; b = next) {
        next = b->next;
        mem_free(b);
    }
    a->blocks = NULL;
    use_lent(a);
}

static char *
block_new(struct arena *a, size_t n_bytes)
{
    struct arena_block *b = mem_alloc(sizeof *b + n_bytes);

    b->next = a->blocks;
    a->blocks = b;
    return b->bytes;
}

void *
arena_alloc(struct arena *a, size_t n_bytes)
{
    char *p;

    CHECK(n_bytes < SIZE_MAX / 4);
    /* 0 bytes take 16 as well: every result is a pointer of its own, and at stays aligned. */
    n_bytes = n_bytes ? (n_bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1) : ARENA_ALIGN;
    if (n_bytes > (size_t)(a->end - a->at)) {
        if (n_bytes >= ARENA_LARGE)
            return block_new(a, n_bytes);
        a->at = block_new(a, ARENA_BLOCK - sizeof(struct arena_block));
        a->end = a->at + ARENA_BLOCK - sizeof(struct arena_block);
    }
    p = a->at;
    a->at += n_bytes;
    return p;
}

struct span
arena_copy(struct arena *a, struct span s)
{
    if (s.n == 0)
        return SPAN("");
    return span_of(memcpy(arena_alloc(a, s.n), s.at, s.n), s.n);
}

char *
arena_str(struct arena *a, struct span s)
{
    char *text = arena_alloc(a, s.n + 1);

    if (s.n)
        memcpy(text, s.at, s.n);
    text[s.n] = '\0';
    return text;
}

struct span
arena_printf(struct arena *a, const char *format, ...)
{
    va_list args;
    char *text;
    int n;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    CHECK(n >= 0);
    text = arena_alloc(a, (size_t)n + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return span_of(text, (size_t)n);
}
