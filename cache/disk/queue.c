/* cache/disk/queue.c - work for a tier's writer, in the order in which it was asked for.
 *
 * A put holds its entry and is counted by its bytes: when more than TIER_PENDING_MAX of them wait
 * the disk is slower than the traffic, and those who put leave out what comes. */
#include "cache/disk/queue.h"

#include <string.h>

#include "base/check.h"
#include "cache/disk/file.h"
#include "cache/disk/purge.h"
#include "cache/disk/rebuild.h"
#include "cache/disk/ring.h"
#include "cache/disk/scrub.h"
#include "cache/disk/writer.h"

/* ---- room for pieces ---- */

char *
queue_piece_take(struct tier *t)
{
    char *bytes = NULL;

    pthread_mutex_lock(&t->spare_lock);
    if (t->n_spare)
        bytes = t->spare[--t->n_spare];
    pthread_mutex_unlock(&t->spare_lock);
    return bytes ? bytes : mem_alloc(t->piece);
}

void
queue_piece_give(struct tier *t, char *bytes)
{
    pthread_mutex_lock(&t->spare_lock);
    if (t->n_spare < TIER_SPARE) {
        t->spare[t->n_spare++] = bytes;
        bytes = NULL;
    }
    pthread_mutex_unlock(&t->spare_lock);
    mem_free(bytes);
}

/* ---- doing ---- */

enum what { PUT, FRESHEN, PIECE, CHAIN, TOMBSTONE, PURGE, CLEAR, SCRUB, SYNC, REBUILD };

struct job {
    struct offload_job job;
    struct tier *tier;
    enum what what;
    struct entry *entry;
    uint64_t bytes, generation; /* when it was asked for */
    uint64_t hash[2];
    uint64_t chain, at; /* a piece's chain and place; chain: a ban's number */
    char *piece;
    size_t piece_n, uri_n;
    char uri[];
};

static bool
put(struct job *j)
{
    struct span uri = span_of(j->uri, j->uri_n);

    if (atomic_load(&j->tier->generation) != j->generation) /* everything was cleared since */
        return true;
    j->tier->writing = j->generation;
    switch (j->what) {
    case PIECE:
        return tier_append_piece(j->tier, j->chain, j->at, span_of(j->piece, j->piece_n));
    case CHAIN:
        return tier_append_chain(j->tier, uri, j->entry, j->chain);
    case FRESHEN:
        if (tier_freshen(j->tier, uri, j->entry) || body_mode(j->entry->body) != BODY_KEEP ||
            body_state(j->entry->body) != BODY_COMPLETE)
            return true;
        return tier_append(j->tier, uri, j->entry);
    default:
        return tier_append(j->tier, uri, j->entry);
    }
}

static void
job_put(struct job *j)
{
    if (!put(j))
        atomic_fetch_add(&j->tier->dropped, 1);
    else if (j->what == PUT || j->what == CHAIN)
        j->tier->puts_unflushed++; /* counted when it can be found */
}

static void
job_clear(struct job *j)
{
    struct tier *t = j->tier;

    for (unsigned i = 0; i < t->n_rings; i++)
        t->rings[i].n_rows = 0;
    directory_clear(t->directory);
    if (!tier_header_write(t))
        tier_write_failed(t, "clearing");
}

static void
job_do(struct job *j)
{
    struct tier *t = j->tier;

    switch (j->what) {
    case PUT:
    case FRESHEN:
    case PIECE:
    case CHAIN:
        job_put(j);
        break;
    case TOMBSTONE:
        tier_tombstone(t, j->hash);
        break;
    case PURGE:
        tier_purge(t, j->chain);
        break;
    case CLEAR:
        job_clear(j);
        break;
    case SCRUB:
        tier_scrub(t);
        break;
    case REBUILD:
        tier_rebuild(t);
        break;
    case SYNC:
        break;
    }
}

static void
job_work(struct offload_job *job)
{
    struct job *j = LIST_OWNER(job, struct job, job);
    struct tier *t = j->tier;

    job_do(j);
    if (j->entry)
        entry_unref(&j->entry);
    if (j->piece)
        queue_piece_give(t, j->piece);
    atomic_fetch_sub(&t->pending_bytes, j->bytes);
    if (atomic_fetch_sub(&t->pending_jobs, 1) == 1) /* nothing more comes at once */
        tier_flush(t);
    mem_free(j);
}

static struct job *
job_new(struct tier *t, enum what what, struct span uri)
{
    struct job *j = mem_zalloc(sizeof *j + uri.n + 1);

    j->tier = t;
    j->what = what;
    j->job.work = job_work;
    j->generation = atomic_load(&t->generation);
    j->uri_n = uri.n;
    if (uri.n)
        memcpy(j->uri, uri.at, uri.n);
    return j;
}

static void
job_submit(struct job *j)
{
    atomic_fetch_add(&j->tier->pending_jobs, 1);
    atomic_fetch_add(&j->tier->pending_bytes, j->bytes);
    offload_submit(j->tier->writer, &j->job);
}

/* ---- asking ---- */

bool
queue_is_full(const struct tier *t)
{
    return atomic_load(&t->pending_bytes) > TIER_PENDING_MAX;
}

static void
entry_job(struct tier *t, enum what what, struct span uri, struct entry *e, uint64_t chain)
{
    struct job *j = job_new(t, what, uri);

    entry_ref(e);
    j->entry = e;
    j->chain = chain;
    j->bytes = (body_mode(e->body) == BODY_KEEP ? body_published(e->body) : 0) + e->head->bytes;
    job_submit(j);
}

void
queue_put(struct tier *t, struct span uri, struct entry *e)
{
    entry_job(t, PUT, uri, e, 0);
}

void
queue_freshen(struct tier *t, struct span uri, struct entry *e)
{
    entry_job(t, FRESHEN, uri, e, 0);
}

void
queue_chain(struct tier *t, struct span uri, struct entry *e, uint64_t chain)
{
    entry_job(t, CHAIN, uri, e, chain);
}

void
queue_piece(struct tier *t, uint64_t chain, uint64_t at, char *bytes, size_t n_bytes)
{
    struct job *j = job_new(t, PIECE, SPAN_NONE);

    j->chain = chain;
    j->at = at;
    j->piece = bytes;
    j->piece_n = n_bytes;
    j->bytes = n_bytes;
    job_submit(j);
}

void
queue_tombstone(struct tier *t, const uint64_t hash[2])
{
    struct job *j = job_new(t, TOMBSTONE, SPAN_NONE);

    memcpy(j->hash, hash, sizeof j->hash);
    job_submit(j);
}

void
queue_purge(struct tier *t, uint64_t ban)
{
    struct job *j = job_new(t, PURGE, SPAN_NONE);

    j->chain = ban;
    job_submit(j);
}

void
queue_clear(struct tier *t)
{
    job_submit(job_new(t, CLEAR, SPAN_NONE));
}

void
queue_scrub(struct tier *t)
{
    job_submit(job_new(t, SCRUB, SPAN_NONE));
}

void
queue_rebuild(struct tier *t)
{
    job_submit(job_new(t, REBUILD, SPAN_NONE));
}

void
queue_sync(struct tier *t)
{
    job_submit(job_new(t, SYNC, SPAN_NONE));
    offload_drain(t->writer);
}
