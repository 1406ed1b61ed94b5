/* base/buf.h - owned, growing bytes. A zeroed struct buf is an empty one and holds no memory. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/span.h"

struct buf {
    char *at;
    size_t n, cap;
};

void buf_free(struct buf *b); /* gives the memory back; b is empty and usable */
char *buf_reserve(struct buf *b,
                  size_t n_bytes); /* room for n_bytes after the end; add to b->n yourself */
void buf_add(struct buf *b, struct span s);
void buf_add_char(struct buf *b, char c);
void buf_add_uint(struct buf *b, uint64_t v);
void buf_addf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_drop_front(struct buf *b, size_t n_bytes); /* frees the memory when nothing is left */

static inline struct span
buf_span(const struct buf *b)
{
    return span_of(b->at, b->n);
}

#define BUF_ADD(b, literal) buf_add((b), SPAN(literal))

#endif
