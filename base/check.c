/* base/check.c - ending the process on our own mistakes.
 *
 * The message is put together on the stack and written with one write(2): the heap or stdio may be
 * what is broken. abort() follows, so that a core or a sanitizer's trace shows where. */
#include "base/check.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MALLOC_HEADER_BYTES = sizeof(size_t) };

static _Noreturn void
end_with(const char *line, int n)
{
    if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0) {
        /* nowhere left to say it */
    }
    abort();
}

static int
bounded(int n, size_t room)
{
    return n < (int)room ? n : (int)room - 1;
}

void
check_failed(const char *file, int line, const char *what)
{
    char text[512];
    int n = snprintf(text, sizeof text, "cuttle: %s:%d: check failed: %s\n", file, line, what);

    end_with(text, bounded(n, sizeof text));
}

static _Noreturn void
out_of_memory(size_t n_bytes)
{
    char text[96];
    int n = snprintf(text, sizeof text, "cuttle: out of memory: %zu bytes wanted\n", n_bytes);

    end_with(text, bounded(n, sizeof text));
}

/* 0 bytes still give a pointer of one's own, so that NULL always means "none". */
void *
mem_alloc(size_t n_bytes)
{
    void *p = malloc(n_bytes ? n_bytes : 1);

    if (p == NULL)
        out_of_memory(n_bytes);
    return p;
}

void *
mem_zalloc(size_t n_bytes)
{
    void *p = calloc(1, n_bytes ? n_bytes : 1);

    if (p == NULL)
        out_of_memory(n_bytes);
    return p;
}

void *
mem_realloc(void *p, size_t n_bytes)
{
    p = realloc(p, n_bytes ? n_bytes : 1);
    if (p == NULL)
        out_of_memory(n_bytes);
    return p;
}

void
mem_free(void *p)
{
    free(p);
}

char *
mem_strdup(const char *text)
{
    size_t n = strlen(text) + 1;

    return memcpy(mem_alloc(n), text, n);
}

size_t
mem_size(const void *p)
{
    return p ? malloc_usable_size((void *)p) + MALLOC_HEADER_BYTES : 0;
}
