/* base/buf.c - owned, growing bytes.
 *
 * Growth doubles, so adding n bytes one by one costs O(n). An emptied buffer gives its memory back:
 * an idle connection then holds none, and idle connections are most of what a proxy has. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"

enum { BUF_LEAST = 64 };

void
buf_free(struct buf *b)
{
    mem_free(b->at);
    *b = (struct buf){0};
}

char *
buf_reserve(struct buf *b, size_t n_bytes)
{
    size_t need, cap;

    CHECK(n_bytes <= SIZE_MAX / 4 - b->n);
    need = b->n + n_bytes;
    if (need <= b->cap && b->at)
        return b->at + b->n;
    cap = b->cap < BUF_LEAST ? BUF_LEAST : b->cap * 2;
    if (cap < need)
        cap = need;
    b->at = mem_realloc(b->at, cap);
    b->cap = cap;
    return b->at + b->n;
}

void
buf_add(struct buf *b, struct span s)
{
    if (s.n == 0)
        return;
    memcpy(buf_reserve(b, s.n), s.at, s.n);
    b->n += s.n;
}

void
buf_add_char(struct buf *b, char c)
{
    *buf_reserve(b, 1) = c;
    b->n++;
}

void
buf_add_uint(struct buf *b, uint64_t v)
{
    char digits[20];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + v % 10);
    while ((v /= 10) != 0);
    buf_add(b, span_of(digits + at, sizeof digits - at));
}

void
buf_addf(struct buf *b, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    CHECK(n >= 0);
    buf_reserve(b, (size_t)n + 1); /* vsnprintf wants room for its NUL */
    va_start(args, format);
    vsnprintf(b->at + b->n, (size_t)n + 1, format, args);
    va_end(args);
    b->n += (size_t)n;
}

void
buf_drop_front(struct buf *b, size_t n_bytes)
{
    CHECK(n_bytes <= b->n);
    if (n_bytes == b->n) {
        buf_free(b);
        return;
    }
    if (n_bytes == 0)
        return;
    memmove(b->at, b->at + n_bytes, b->n - n_bytes);
    b->n -= n_bytes;
}
