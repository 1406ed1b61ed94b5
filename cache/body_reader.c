/* cache/body_reader.c - the readers of a body: their cursors, and how they wait for what is to
 * come. See the top of body.c. */
#include "base/check.h"
#include "cache/body_private.h"

/* Puts the cursor on the chunk with byte `from`, or on the last one before it. */
static bool
cursor_set(struct body_reader *r, const struct body *b, uint64_t from)
{
    struct chunk *c = b->first, *next;

    r->chunk = c;
    r->chunk_at = (size_t)from;
    if (c == NULL)
        return true;
    if (from < c->at)
        return false;
    while (from >= chunk_end(c) && (next = chunk_next(c)) != NULL)
        c = next;
    r->chunk = c;
    r->chunk_at = (size_t)(from - c->at);
    return true;
}

static bool
open_registered(struct body_reader *r, struct body *b, uint64_t from)
{
    if (!cursor_set(r, b, from))
        return false;
    if (r->chunk)
        ref_take(&r->chunk->refs);
    r->registered = true;
    list_push_back(&b->readers, &r->link);
    b->n_readers += !r->background;
    body_fill_wake(b); /* it may be ahead of those the fill waits for */
    return true;
}

static bool
open_while_filling(struct body_reader *r, struct body *b, uint64_t from)
{
    bool opened;

    pthread_mutex_lock(&b->lock);
    if (body_state(b) == BODY_FILLING)
        opened = open_registered(r, b, from);
    else
        opened = cursor_set(r, b, from);
    pthread_mutex_unlock(&b->lock);
    return opened;
}

bool
body_reader_open(struct body_reader *r, struct body *b, uint64_t from, struct loop *loop,
                 struct loop_task *task)
{
    bool opened;

    CHECK_OBJ(b, BODY_MAGIC);
    CHECK(r->body == NULL);
    list_init(&r->link);
    atomic_store_explicit(&r->at, from, memory_order_relaxed);
    r->loop = loop;
    r->task = task;
    r->waiting = r->registered = false;
    atomic_init(&r->outrun, false);
    opened =
        body_state(b) == BODY_FILLING ? open_while_filling(r, b, from) : cursor_set(r, b, from);
    if (!opened) {
        r->chunk = NULL;
        return false;
    }
    body_ref(b);
    r->body = b;
    return true;
}

/* false: something came in between, there is nothing to wait for. */
static bool
wait_begin(struct body_reader *r, uint64_t at)
{
    struct body *b = r->body;
    bool waits;

    pthread_mutex_lock(&b->lock);
    if (!r->waiting)
        atomic_fetch_add(&b->n_waiting, 1); /* before looking again, see the top */
    waits = body_state(b) == BODY_FILLING && atomic_load(&b->published) <= at;
    if (!waits)
        atomic_fetch_sub(&b->n_waiting, 1);
    r->waiting = waits;
    pthread_mutex_unlock(&b->lock);
    return waits;
}

/* There was nothing at `at`. The last bytes are published before the end is. */
static enum source_state
nothing_there(struct body_reader *r, uint64_t at, uint64_t *published)
{
    enum body_state state = body_state(r->body);

    if (state == BODY_FILLING) {
        if (wait_begin(r, at))
            return SOURCE_WAIT;
        state = body_state(r->body);
    }
    *published = published_of(r->body);
    if (at < *published)
        return SOURCE_DATA;
    return state == BODY_COMPLETE ? SOURCE_END : SOURCE_FAULT;
}

static void
cursor_move(struct body_reader *r)
{
    struct chunk *next;

    while (r->chunk_at >= r->chunk->room && (next = chunk_next(r->chunk)) != NULL) {
        r->chunk_at -= r->chunk->room;
        if (r->registered) {
            ref_take(&next->refs);
            chunk_unref(&r->chunk);
        }
        r->chunk = next;
    }
}

/* Alone: it leaves another way than bytes in memory. */
static int
file_lend(struct body_reader *r, uint64_t n_bytes, struct iovec *run)
{
    uint64_t left = r->chunk->room - r->chunk_at;

    r->file_fd = r->chunk->file->fd;
    r->file_at = r->chunk->file->at + r->chunk_at;
    *run = (struct iovec){NULL, (size_t)(left < n_bytes ? left : n_bytes)};
    return 1;
}

static int
runs_lend(struct body_reader *r, uint64_t n_bytes, struct iovec *runs, int max)
{
    const struct chunk *c = r->chunk;
    size_t at = r->chunk_at;
    int n = 0;

    if (c->file)
        return file_lend(r, n_bytes, runs);
    for (; n < max && n_bytes && !c->file; c = chunk_next(c), at = 0) {
        size_t run = c->room - at < n_bytes ? c->room - at : (size_t)n_bytes;

        runs[n].iov_base = chunk_bytes(c) + at;
        runs[n++].iov_len = run;
        n_bytes -= run;
    }
    return n;
}

enum source_state
body_reader_peek(struct body_reader *r, struct iovec *runs, int max, int *n)
{
    uint64_t at = atomic_load_explicit(&r->at, memory_order_relaxed);
    uint64_t published = published_of(r->body);

    *n = 0;
    if (at >= published) {
        enum source_state state = nothing_there(r, at, &published);

        if (state != SOURCE_DATA)
            return state;
    }
    cursor_move(r);
    *n = runs_lend(r, published - at, runs, max);
    return SOURCE_DATA;
}

void
body_reader_consume(struct body_reader *r, size_t n_bytes)
{
    uint64_t at = atomic_load_explicit(&r->at, memory_order_relaxed) + n_bytes;
    struct body *b = r->body;

    CHECK_OBJ(b, BODY_MAGIC);
    if (n_bytes == 0)
        return;
    CHECK(at <= published_of(b));
    r->chunk_at += n_bytes;
    cursor_move(r);
    if (!r->registered) {
        atomic_store_explicit(&r->at, at, memory_order_relaxed);
        return;
    }
    atomic_store(&r->at, at);
    if (!atomic_load(&b->fill_waits))
        return;
    pthread_mutex_lock(&b->lock);
    body_fill_wake(b);
    pthread_mutex_unlock(&b->lock);
}

uint64_t
body_reader_at(const struct body_reader *r)
{
    return atomic_load_explicit(&r->at, memory_order_relaxed);
}

bool
body_reader_is_outrun(const struct body_reader *r)
{
    return atomic_load_explicit(&r->outrun, memory_order_relaxed);
}

bool
body_reader_is_at_end(const struct body_reader *r)
{
    return atomic_load_explicit(&r->at, memory_order_relaxed) >= published_of(r->body);
}

static void
reader_unregister(struct body_reader *r)
{
    struct body *b = r->body;

    pthread_mutex_lock(&b->lock);
    list_remove(&r->link);
    b->n_readers -= !r->background;
    if (r->waiting)
        atomic_fetch_sub(&b->n_waiting, 1);
    r->waiting = r->registered = false;
    body_fill_wake(b);
    pthread_mutex_unlock(&b->lock);
    chunk_unref(&r->chunk);
}

void
body_reader_close(struct body_reader *r)
{
    if (r->body == NULL)
        return;
    if (r->registered)
        reader_unregister(r);
    r->chunk = NULL;
    body_unref(&r->body);
}
