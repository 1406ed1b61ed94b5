/* cache/disk/queue.c - work for a tier's writer, in the order in which it was asked for.
 *
 * A put holds its entry and is counted by its bytes: when more than TIER_PENDING_MAX of them wait
 * the disk is slower than the traffic, and those who put leave out what comes. */
#include "cache/disk/queue.h"

#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/disk/bans.h"
#include "cache/disk/file.h"
#include "cache/disk/purge.h"
#include "cache/disk/rebuild.h"
#include "cache/disk/removals.h"
#include "cache/disk/ring.h"
#include "cache/disk/scrub.h"
#include "cache/disk/writer.h"

#define TOMBSTONES_MAX 65536

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
    uint64_t chain, at; /* a piece's chain and place */
    uint64_t ban;       /* the number of what is to be purged; 0: it goes on with the others */
    bool counted;       /* among pending_jobs */
    char *piece;
    size_t piece_n, uri_n;
    char uri[];
};

static bool
is_late(const struct tier *t)
{
    return atomic_load(&t->closing) && clock_exact_mono_ns() / 1000000 > atomic_load(&t->late_ms);
}

static bool
put(struct job *j)
{
    struct span uri = span_of(j->uri, j->uri_n);

    if (atomic_load(&j->tier->generation) != j->generation) /* everything was cleared since */
        return true;
    if (is_late(j->tier)) {
        tier_forget_key(j->tier, uri);
        return false;
    }
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

    if (atomic_exchange(&t->given_up, false)) { /* what was asked for since then is void too */
        atomic_fetch_add(&t->generation, 1);
        log_event(LOG_WARN, "cache_dir %s: too slow for what is removed from it; it was emptied",
                  t->path);
    }
    for (unsigned i = 0; i < t->n_rings; i++)
        t->rings[i].n_rows = 0;
    directory_clear(t->directory);
    t->header_owed = true;
}

/* Until the file says so itself a crash would undo a clear: it is tried again after each fault. */
static void
header_pay(struct tier *t)
{
    if (!t->header_owed || (tier_is_paused(t) && !atomic_load(&t->closing)))
        return;
    t->header_owed = !tier_header_write(t);
    if (t->header_owed)
        tier_write_failed(t, "clearing");
}

/* All bans are looked for at once: who comes while that is being done only begins. */
static bool
job_purge(struct job *j)
{
    struct tier *t = j->tier;

    if (j->ban) {
        tier_purge_begin(t, j->ban);
        j->ban = 0;
        if (t->purging)
            return false;
    }
    t->purging = !atomic_load(&t->closing) && tier_purge_some(t);
    if (!t->purging)
        tier_purge_end(t);
    return t->purging;
}

/* A purge that was under way at the last end goes on. */
static bool
job_rebuild(struct job *j)
{
    struct tier *t = j->tier;

    tier_rebuild(t);
    j->what = PURGE;
    t->purging = atomic_load(&t->ready) && tier_has_bans(t);
    return t->purging;
}

static void
job_tombstone(struct job *j)
{
    if (atomic_load(&j->tier->generation) == j->generation)
        tier_tombstone(j->tier, j->hash);
    atomic_fetch_sub(&j->tier->pending_tombstones, 1);
}

/* true: there is more of it. A file that is not known is not written. */
static bool
job_do(struct job *j)
{
    struct tier *t = j->tier;

    if (!atomic_load(&t->ready) && j->what != REBUILD && j->what != CLEAR)
        return false;
    switch (j->what) {
    case PUT:
    case FRESHEN:
    case PIECE:
    case CHAIN:
        job_put(j);
        return false;
    case TOMBSTONE:
        job_tombstone(j);
        return false;
    case PURGE:
        return job_purge(j);
    case CLEAR:
        job_clear(j);
        return false;
    case SCRUB:
        tier_scrub(t);
        return false;
    case REBUILD:
        return job_rebuild(j);
    case SYNC:
        return false;
    }
    UNREACHABLE();
}

static void
job_free(struct job *j)
{
    if (j->entry)
        entry_unref(&j->entry);
    if (j->piece)
        queue_piece_give(j->tier, j->piece);
    mem_free(j);
}

/* What goes on does so behind all that was asked for meanwhile, and does not count as work that is
 * waiting. */
static void
job_work(struct offload_job *job)
{
    struct job *j = LIST_OWNER(job, struct job, job);
    struct tier *t = j->tier;
    bool goes_on = job_do(j);

    header_pay(t);
    atomic_fetch_sub(&t->pending_bytes, j->bytes);
    j->bytes = 0;
    if (j->counted && atomic_fetch_sub(&t->pending_jobs, 1) == 1) /* nothing more comes at once */
        tier_flush(t);
    j->counted = false;
    if (goes_on)
        offload_submit(t->writer, &j->job);
    else
        job_free(j);
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
    j->counted = true;
    atomic_fetch_add(&j->tier->pending_jobs, 1);
    atomic_fetch_add(&j->tier->pending_bytes, j->bytes);
    offload_submit(j->tier->writer, &j->job);
}

/* ---- asking ---- */

bool
queue_is_full(const struct tier *t)
{
    return atomic_load(&t->pending_bytes) > TIER_PENDING_MAX || atomic_load(&t->given_up);
}

bool
queue_is_stuck(const struct tier *t)
{
    return atomic_load(&t->pending_tombstones) >= TOMBSTONES_MAX;
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
    atomic_fetch_add(&t->pending_tombstones, 1);
    job_submit(j);
}

void
queue_purge(struct tier *t, uint64_t ban)
{
    struct job *j = job_new(t, PURGE, SPAN_NONE);

    j->ban = ban;
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

void
queue_close(struct tier *t, int64_t within_ms)
{
    atomic_store(&t->late_ms, clock_exact_mono_ns() / 1000000 + within_ms);
    atomic_store(&t->closing, true);
}
