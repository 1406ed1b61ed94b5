/* cache/chunk.c - counted blocks of a body.
 *
 * Touching fresh memory for the first time costs more than copying into it, and a passing body goes
 * through many chunks of the same two sizes. So each thread keeps a few of the chunks it let go and
 * hands them out again. The number is bounded, and a thread that ends gives back what it kept. */
#include "cache/chunk.h"

#include <pthread.h>

#include "base/check.h"
#include "cache/body.h"

/* A kept chunk would hide a use after free from the sanitizer. */
#ifdef __SANITIZE_ADDRESS__
enum { KEPT_MOST = 0 };
#else
enum { KEPT_MOST = 16 };
#endif

enum { MEDIUM, LARGE, KEPT_SIZES };

struct kept {
    struct chunk *first;
    int n;
};

static _Thread_local struct kept kept[KEPT_SIZES];
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static struct kept *
kept_of(size_t room)
{
    return room == CHUNK_LARGE ? &kept[LARGE] : room == CHUNK_MEDIUM ? &kept[MEDIUM] : NULL;
}

static struct chunk *
kept_take(struct kept *k)
{
    struct chunk *c = k->first;

    k->first = atomic_load_explicit(&c->next, memory_order_relaxed);
    k->n--;
    return c;
}

static void
kept_free_all(void *all)
{
    struct kept *k = all;

    for (int i = 0; i < KEPT_SIZES; i++) {
        while (k[i].n)
            mem_free(kept_take(&k[i]));
    }
}

static void
key_make(void)
{
    CHECK(pthread_key_create(&key, kept_free_all) == 0);
}

static bool
kept_put(struct chunk *c)
{
    struct kept *k = c->skip ? NULL : kept_of(c->room);

    if (k == NULL || k->n >= KEPT_MOST)
        return false;
    if (k->n == 0) { /* again after it was emptied: the end of a thread may go round twice */
        pthread_once(&key_once, key_make);
        pthread_setspecific(key, kept);
    }
    atomic_store_explicit(&c->next, k->first, memory_order_relaxed);
    k->first = c;
    k->n++;
    return true;
}

struct chunk *
chunk_new(size_t room, uint64_t at)
{
    struct kept *k = kept_of(room);
    struct chunk *c;

    CHECK(room > 0 && room <= UINT32_MAX);
    c = k && k->n ? kept_take(k) : mem_alloc(sizeof *c + room);
    atomic_init(&c->next, NULL);
    ref_init(&c->refs);
    c->room = (uint32_t)room;
    c->skip = 0;
    c->at = at;
    c->file = NULL;
    return c;
}

struct chunk *
chunk_new_file(const struct body_file *file, size_t n_bytes, uint64_t at)
{
    struct chunk *c = mem_alloc(sizeof *c + sizeof *file);

    CHECK(n_bytes > 0 && n_bytes <= UINT32_MAX);
    atomic_init(&c->next, NULL);
    ref_init(&c->refs);
    c->room = (uint32_t)n_bytes;
    c->skip = 0;
    c->at = at;
    c->file = memcpy(c->bytes, file, sizeof *file);
    return c;
}

static void
chunk_end_of_life(struct chunk *c)
{
    if (c->file)
        c->file->release(c->file);
    if (c->file || !kept_put(c))
        mem_free(c);
}

/* A loop, not a recursion: a body can have thousands of chunks. */
void
chunk_unref(struct chunk **held)
{
    struct chunk *c = *held, *next;

    *held = NULL;
    while (c && ref_drop(&c->refs) == 0) {
        next = chunk_next(c);
        chunk_end_of_life(c);
        c = next;
    }
}
