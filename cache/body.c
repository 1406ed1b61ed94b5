/* cache/body.c - an append-only body with one writer and any number of readers.
 *
 * What is published never changes, so readers need no lock to read it: the writer fills a chunk,
 * links it, then moves `published`; a reader that sees the new value sees the bytes and the link.
 *
 * While FILLING, readers are registered and hold a reference on the chunk under their cursor,
 * because a passing body lets go of what is behind. Once the body has ended nothing in it moves any
 * more: a reader that opens then takes a reference on the body and nothing else, which is what
 * makes a hit cheap.
 *
 * Two questions are asked without the lock, each side first storing and then loading (sequentially
 * consistent), so that at least one side sees the other:
 *     published / n_waiting      does a reader wait for these bytes?
 *     reader's at / fill_waits   does the fill wait for this room?
 * The lock is only taken when the answer is yes, and the one who takes it looks again. */
#include "base/check.h"
#include "base/clock.h"
#include "cache/body_private.h"

enum { PAST_EXPECTED = 64 };

/* ---- life ---- */

struct body *
body_new(enum body_mode mode, uint64_t expected, struct loop *fill_loop, struct loop_task *fill)
{
    struct body *b = mem_zalloc(sizeof *b);

    b->magic = BODY_MAGIC;
    ref_init(&b->refs);
    atomic_init(&b->state, BODY_FILLING);
    atomic_init(&b->mode, mode);
    atomic_init(&b->held, mem_size(b));
    atomic_init(&b->moved_ms, clock_mono_ms());
    b->expected = expected;
    b->lag_bytes = BODY_LAG;
    pthread_mutex_init(&b->lock, NULL);
    list_init(&b->readers);
    b->fill_loop = fill_loop;
    b->fill = fill;
    return b;
}

void
body_ref(struct body *b)
{
    CHECK_OBJ(b, BODY_MAGIC);
    ref_take(&b->refs);
}

void
body_unref(struct body **held)
{
    struct body *b = *held;

    CHECK_OBJ(b, BODY_MAGIC);
    *held = NULL;
    if (ref_drop(&b->refs) > 0)
        return;
    CHECK(b->n_readers == 0);
    chunk_unref(&b->first);
    pthread_mutex_destroy(&b->lock);
    mem_free((void *)b->trailer.at);
    FREE_OBJ(b);
}

/* ---- the writer ---- */

/* A known length is met exactly, so that a stored body holds no spare room. A passing body takes
 * the sizes that chunk.c keeps warm. */
static size_t
room_next(const struct body *b, uint64_t done)
{
    bool passing = body_mode(b) == BODY_PASS;
    uint64_t left = b->expected > done ? b->expected - done : 0;

    if (b->expected == UINT64_MAX) {
        if (done == 0)
            return passing ? CHUNK_MEDIUM : CHUNK_SMALL;
        return done < CHUNK_MEDIUM ? CHUNK_MEDIUM : CHUNK_LARGE;
    }
    if (left == 0)
        return PAST_EXPECTED;
    if (passing && left > CHUNK_SMALL)
        return left > CHUNK_MEDIUM ? CHUNK_LARGE : CHUNK_MEDIUM;
    return left <= BODY_CHUNK ? (size_t)left : CHUNK_LARGE;
}

/* Readers that opened before there was anything get their cursor here, before a byte is published:
 * later it could have been dropped. */
static void
first_chunk_set(struct body *b, struct chunk *c)
{
    b->first = c;
    for (struct list *l = b->readers.next; l != &b->readers; l = l->next) {
        struct body_reader *r = LIST_OWNER(l, struct body_reader, link);

        ref_take(&c->refs);
        r->chunk = c;
    }
}

/* Lets go of all but the newest chunk; what is returned is for the caller to release without the
 * lock. */
static struct chunk *
first_chunk_drop(struct body *b, struct chunk *newest)
{
    struct chunk *dropped = b->first;

    if (newest == NULL || newest == dropped)
        return NULL;
    ref_take(&newest->refs);
    b->first = newest;
    atomic_store_explicit(&b->held, mem_size(b) + mem_size(newest), memory_order_relaxed);
    return dropped;
}

static void
chunk_add(struct body *b, struct chunk *c)
{
    struct chunk *dropped = NULL;

    pthread_mutex_lock(&b->lock);
    atomic_fetch_add_explicit(&b->held, mem_size(c), memory_order_relaxed);
    if (b->last)
        atomic_store_explicit(&b->last->next, c, memory_order_release);
    if (b->first == NULL)
        first_chunk_set(b, c);
    else if (body_mode(b) == BODY_PASS)
        dropped = first_chunk_drop(b, c);
    pthread_mutex_unlock(&b->lock);
    b->last = c;
    chunk_unref(&dropped);
}

char *
body_room(struct body *b, size_t *n_bytes)
{
    uint64_t published = published_of(b);

    CHECK_OBJ(b, BODY_MAGIC);
    CHECK(body_state(b) == BODY_FILLING);
    if (b->last == NULL || published == chunk_end(b->last))
        chunk_add(b, chunk_new(room_next(b, published), published));
    *n_bytes = (size_t)(chunk_end(b->last) - published);
    return chunk_bytes(b->last) + (published - b->last->at);
}

/* Under the lock. A reader that waits for bytes further on sleeps until they are there. */
static void
readers_wake(struct body *b)
{
    uint64_t published = published_of(b);
    bool ended = body_state(b) != BODY_FILLING;

    for (struct list *l = b->readers.next; l != &b->readers; l = l->next) {
        struct body_reader *r = LIST_OWNER(l, struct body_reader, link);

        if (!r->waiting || (!ended && atomic_load(&r->at) >= published))
            continue;
        r->waiting = false;
        atomic_fetch_sub(&b->n_waiting, 1);
        if (r->task)
            loop_wake(r->loop, r->task);
    }
}

static void
publish(struct body *b, uint64_t n_bytes)
{
    atomic_store_explicit(&b->moved_ms, clock_mono_ms(), memory_order_relaxed);
    atomic_store(&b->published, published_of(b) + n_bytes);
    if (atomic_load(&b->n_waiting) == 0)
        return;
    pthread_mutex_lock(&b->lock);
    readers_wake(b);
    pthread_mutex_unlock(&b->lock);
}

void
body_commit(struct body *b, size_t n_bytes)
{
    CHECK_OBJ(b, BODY_MAGIC);
    CHECK(body_state(b) == BODY_FILLING);
    if (n_bytes == 0)
        return;
    CHECK(b->last && n_bytes <= chunk_end(b->last) - published_of(b));
    publish(b, n_bytes);
}

void
body_append_chunk(struct body *b, struct chunk **held, size_t skip, size_t n_bytes)
{
    struct chunk *c = *held;

    CHECK_OBJ(b, BODY_MAGIC);
    CHECK(body_state(b) == BODY_FILLING);
    CHECK(b->last == NULL && c->file == NULL && skip + n_bytes <= c->room);
    *held = NULL;
    if (n_bytes == 0) {
        chunk_unref(&c);
        return;
    }
    c->skip = (uint32_t)skip;
    c->room = (uint32_t)n_bytes;
    chunk_add(b, c);
    publish(b, n_bytes);
}

void
body_append_file(struct body *b, const struct body_file *f)
{
    uint64_t published = published_of(b);

    CHECK_OBJ(b, BODY_MAGIC);
    CHECK(body_state(b) == BODY_FILLING && body_mode(b) == BODY_PASS);
    CHECK(b->last == NULL || published == chunk_end(b->last));
    chunk_add(b, chunk_new_file(f, (size_t)f->n_bytes, published));
    publish(b, f->n_bytes);
}

void
body_append(struct body *b, struct span bytes)
{
    while (bytes.n) {
        size_t room;
        char *to = body_room(b, &room);
        size_t n = bytes.n < room ? bytes.n : room;

        memcpy(to, bytes.at, n);
        body_commit(b, n);
        bytes = span_skip(bytes, n);
    }
}

void
body_pass(struct body *b)
{
    struct chunk *dropped = NULL;

    CHECK_OBJ(b, BODY_MAGIC);
    pthread_mutex_lock(&b->lock);
    if (body_state(b) == BODY_FILLING && body_mode(b) == BODY_KEEP) {
        if (published_of(b) > b->lag_bytes)
            b->lag_bytes = published_of(b);
        dropped = first_chunk_drop(b, b->last);
        atomic_store_explicit(&b->mode, BODY_PASS, memory_order_release);
    }
    pthread_mutex_unlock(&b->lock);
    chunk_unref(&dropped);
}

/* Under the lock. */
static void
body_end(struct body *b, enum body_state how)
{
    atomic_store_explicit(&b->state, how, memory_order_release);
    atomic_store(&b->fill_waits, false);
    readers_wake(b);
}

/* A body of unknown length has grown by guesses; is more than a quarter of it spare? Large ones are
 * not copied, their spare room is small against them. */
static bool
room_is_wasted(const struct body *b, uint64_t published)
{
    uint64_t room = b->last ? chunk_end(b->last) : 0;

    return body_mode(b) == BODY_KEEP && published <= BODY_CHUNK && (room - published) * 4 > room;
}

static struct chunk *
copy_in_one(const struct body *b, uint64_t published)
{
    struct chunk *whole = published ? chunk_new((size_t)published, 0) : NULL;

    for (const struct chunk *c = b->first; c && c->at < published; c = chunk_next(c)) {
        uint64_t left = published - c->at;

        memcpy(whole->bytes + c->at, chunk_bytes(c), left < c->room ? (size_t)left : c->room);
    }
    return whole;
}

/* The old chunks are not changed, only let go: readers that are in them hold them and read on. */
static struct chunk *
chunks_replace(struct body *b, struct chunk *whole)
{
    struct chunk *old = b->first;

    b->first = b->last = whole;
    atomic_store_explicit(&b->held, mem_size(b) + mem_size(whole), memory_order_relaxed);
    return old;
}

void
body_complete(struct body *b, struct span trailer)
{
    uint64_t published = published_of(b);
    bool wasted = room_is_wasted(b, published);
    struct chunk *whole = wasted ? copy_in_one(b, published) : NULL, *old = NULL;

    CHECK_OBJ(b, BODY_MAGIC);
    CHECK(body_state(b) == BODY_FILLING);
    if (trailer.n)
        b->trailer = span_of(memcpy(mem_alloc(trailer.n), trailer.at, trailer.n), trailer.n);
    pthread_mutex_lock(&b->lock);
    if (wasted)
        old = chunks_replace(b, whole);
    atomic_fetch_add_explicit(&b->held, mem_size(b->trailer.at), memory_order_relaxed);
    body_end(b, BODY_COMPLETE);
    pthread_mutex_unlock(&b->lock);
    chunk_unref(&old);
}

void
body_fail(struct body *b, enum fault why)
{
    CHECK_OBJ(b, BODY_MAGIC);
    CHECK(body_state(b) == BODY_FILLING);
    pthread_mutex_lock(&b->lock);
    b->fault = why;
    body_end(b, BODY_FAILED);
    pthread_mutex_unlock(&b->lock);
}

/* The chunks are shared: neither side changes what is published. */
struct body *
body_salvage(const struct body *b)
{
    struct body *kept = body_new(BODY_KEEP, published_of(b), NULL, NULL);

    CHECK_OBJ(b, BODY_MAGIC);
    CHECK(body_mode(b) == BODY_KEEP);
    if (b->first)
        ref_take(&b->first->refs);
    kept->first = b->first;
    kept->last = b->last;
    atomic_init(&kept->published, published_of(b));
    atomic_init(&kept->state, BODY_COMPLETE);
    atomic_init(&kept->held, body_bytes_held(b));
    return kept;
}

void
body_append_of(struct body *b, const struct body *from, uint64_t at, uint64_t n_bytes)
{
    CHECK(body_state(from) == BODY_COMPLETE && at + n_bytes <= published_of(from));
    for (const struct chunk *c = from->first; c && n_bytes; c = chunk_next(c)) {
        uint64_t skip = at > c->at ? at - c->at : 0, n;

        if (skip >= c->room)
            continue;
        n = c->room - skip < n_bytes ? c->room - skip : n_bytes;
        body_append(b, span_of(chunk_bytes(c) + skip, (size_t)n));
        at += n;
        n_bytes -= n;
    }
}

void
body_copy_out(const struct body *b, uint64_t at, char *to, size_t n_bytes)
{
    CHECK(body_mode(b) == BODY_KEEP && at + n_bytes <= published_of(b));
    for (const struct chunk *c = b->first; c && n_bytes; c = chunk_next(c)) {
        uint64_t skip = at > c->at ? at - c->at : 0;
        size_t n;

        if (skip >= c->room)
            continue;
        n = c->room - skip < n_bytes ? (size_t)(c->room - skip) : n_bytes;
        memcpy(to, chunk_bytes(c) + skip, n);
        to += n;
        at += n;
        n_bytes -= n;
    }
}

void
body_detach_fill(struct body *b)
{
    CHECK_OBJ(b, BODY_MAGIC);
    pthread_mutex_lock(&b->lock);
    b->fill = NULL;
    b->fill_loop = NULL;
    atomic_store(&b->fill_waits, false);
    pthread_mutex_unlock(&b->lock);
}

/* ---- everybody ---- */

enum body_state
body_state(const struct body *b)
{
    return (enum body_state)atomic_load_explicit(&b->state, memory_order_acquire);
}

enum body_mode
body_mode(const struct body *b)
{
    return (enum body_mode)atomic_load_explicit(&b->mode, memory_order_acquire);
}

uint64_t
body_published(const struct body *b)
{
    return published_of(b);
}

size_t
body_bytes_held(const struct body *b)
{
    return atomic_load_explicit(&b->held, memory_order_relaxed);
}

unsigned
body_readers(struct body *b)
{
    unsigned n;

    pthread_mutex_lock(&b->lock);
    n = b->n_readers;
    pthread_mutex_unlock(&b->lock);
    return n;
}

enum fault
body_fault(const struct body *b)
{
    return body_state(b) == BODY_FAILED ? b->fault : FAULT_NONE;
}

int64_t
body_quiet_ms(const struct body *b)
{
    if (body_state(b) != BODY_FILLING || atomic_load(&b->fill_waits))
        return 0;
    return clock_mono_ms() - atomic_load_explicit(&b->moved_ms, memory_order_relaxed);
}

/* Under the lock the chunks stay, even if the body turns from KEEP to PASS just now. */
static bool
chunks_match(const struct body *b, uint64_t at, struct span bytes)
{
    const struct chunk *c = b->first;

    if (c == NULL || at < c->at || at + bytes.n > published_of(b))
        return bytes.n == 0;
    for (; bytes.n; c = chunk_next(c)) {
        uint64_t skip = at - c->at;
        size_t n;

        if (skip >= c->room)
            continue;
        n = c->room - skip < bytes.n ? (size_t)(c->room - skip) : bytes.n;
        if (c->file || memcmp(chunk_bytes(c) + skip, bytes.at, n) != 0)
            return false;
        at += n;
        bytes = span_skip(bytes, n);
    }
    return true;
}

bool
body_matches(struct body *b, uint64_t at, struct span bytes)
{
    bool matches;

    CHECK_OBJ(b, BODY_MAGIC);
    pthread_mutex_lock(&b->lock);
    matches = chunks_match(b, at, bytes);
    pthread_mutex_unlock(&b->lock);
    return matches;
}

struct span
body_trailer(const struct body *b)
{
    return body_state(b) == BODY_COMPLETE ? b->trailer : SPAN_NONE;
}
