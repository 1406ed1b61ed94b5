/* cache/chunk.h - counted blocks of a body, linked forwards. Private to body*.c.
 *
 * A chunk holds one reference on its next; so whoever holds a chunk holds all that follow, and what
 * lies before the last holder is gone. All but `next`, the count and the unpublished bytes is fixed
 * at birth. */
#ifndef CACHE_CHUNK_H
#define CACHE_CHUNK_H

#include "base/ref.h"
#include "base/span.h"

struct body_file;
struct chunk {
    _Atomic(struct chunk *) next; /* NULL -> set once, by the writer */
    struct ref refs;
    uint32_t room;
    uint32_t skip;                /* of `bytes`: what stands before the body's bytes there */
    uint64_t at;                  /* offset of the first byte in the body */
    const struct body_file *file; /* where the bytes are, if not here; in `bytes` */
    char bytes[];
};

/* With this header and the allocator's 8 bytes: 4, 16 and 64 KB, and nothing over. */
#define CHUNK_OVERHEAD (sizeof(struct chunk) + sizeof(size_t))
#define CHUNK_SMALL (4096 - CHUNK_OVERHEAD)
#define CHUNK_MEDIUM (16384 - CHUNK_OVERHEAD)
#define CHUNK_LARGE (65536 - CHUNK_OVERHEAD)

struct chunk *chunk_new(size_t room,
                        uint64_t at); /* one reference; medium and large ones may be warm */
struct chunk *chunk_new_file(const struct body_file *file, size_t n_bytes, uint64_t at);
void chunk_unref(struct chunk **held);

static inline uint64_t
chunk_end(const struct chunk *c)
{
    return c->at + c->room;
}

static inline struct chunk *
chunk_next(const struct chunk *c)
{
    return atomic_load_explicit(&c->next, memory_order_acquire);
}

static inline char *
chunk_bytes(const struct chunk *c)
{
    return (char *)c->bytes + c->skip;
}

#endif
