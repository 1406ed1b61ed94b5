/* cache/disk/ring.c - a stretch of a tier's file, written round and round by its own thread.
 *
 * Records are appended, small ones together. Before a region is written over, its rows leave the
 * directory; those that are worth it are read and appended again. A reader that copies finds other
 * bytes there: what it reads is judged by its own checksums and its URI, never by where it was
 * found. A reader that sends the file's bytes unread pins their region, and a pinned region is
 * passed over. What was sent may still be on its way out of the page cache: such a region gets
 * fresh pages before it is written again.
 *
 * With one ring the file is a log in which what was used lately is carried forward, which is close
 * to LRU. With two it is S3-FIFO (Yang et al., SOSP 2023) made of logs: what is new goes to the
 * small ring; what is used there twice, or comes again soon after it was dropped from there, goes
 * to the main one.
 *
 * A fault in writing costs the batch and a pause; reading goes on. */
#include "cache/disk/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/disk/bans.h"
#include "cache/disk/file.h"
#include "cache/disk/names.h"
#include "cache/ghost.h"

#define PAUSE_MS 1000
#define TELL_MS 10000
#define SYNC_BYTES (8u << 20)
#define USES_TO_MAIN 2
#define SMALL_SHARE 5 /* the small ring is a fifth of the file */

/* ---- making ---- */

static void
ring_init(struct tier_ring *g, struct tier *t, uint64_t from, uint64_t to)
{
    *g = (struct tier_ring){.tier = t, .from = from, .to = to, .at = from, .reclaimed = from};
    g->batch = mem_alloc(TIER_BATCH);
}

/* A file of few regions is too small to be divided. */
void
tier_rings_init(struct tier *t, bool two)
{
    uint64_t small = (t->bytes - TIER_BASE) / SMALL_SHARE;

    small -= small % t->region;
    t->n_rings = two && small >= 2 * t->region ? 2 : 1;
    if (t->n_rings == 1) {
        ring_init(&t->rings[0], t, TIER_BASE, t->bytes);
        return;
    }
    ring_init(&t->rings[0], t, TIER_BASE, TIER_BASE + small);
    ring_init(&t->rings[1], t, TIER_BASE + small, t->bytes);
    t->ghost = ghost_new();
}

void
tier_rings_free(struct tier *t)
{
    for (unsigned i = 0; i < t->n_rings; i++) {
        mem_free(t->rings[i].batch);
        mem_free(t->rings[i].rows);
    }
    ghost_free(&t->ghost);
}

static struct tier_ring *
main_ring(struct tier *t)
{
    return &t->rings[t->n_rings - 1];
}

struct tier_ring *
tier_ring_at(struct tier *t, uint64_t at)
{
    return t->n_rings > 1 && at >= t->rings[1].from ? &t->rings[1] : &t->rings[0];
}

static bool
is_unwritten_ahead(const struct tier_ring *g)
{
    return g->at >= atomic_load(&g->top) && g->at + g->tier->region <= g->to;
}

/* What was dropped a short while ago, and what would fill the small ring alone, goes to main; all
 * does as long as that has never been full. */
struct tier_ring *
tier_ring_for(struct tier *t, uint64_t hash, uint64_t bytes_before)
{
    struct tier_ring *small = &t->rings[0];

    if (t->n_rings == 1 || is_unwritten_ahead(main_ring(t)) ||
        bytes_before > (small->to - small->from) / 2 || ghost_take(t->ghost, hash))
        return main_ring(t);
    return small;
}

/* ---- bytes ---- */

void
tier_write_failed(struct tier *t, const char *what)
{
    atomic_fetch_add(&t->write_faults, 1);
    log_event_every(TELL_MS, LOG_WARN, "cache_dir %s: %s: %s; what was to be stored is not",
                    t->path, what, strerror(errno));
    t->pause_until_ms = clock_exact_mono_ns() / 1000000 + PAUSE_MS;
}

bool
tier_is_paused(const struct tier *t)
{
    return t->pause_until_ms && clock_exact_mono_ns() / 1000000 < t->pause_until_ms;
}

/* Behind a large body the system would let dirty pages pile up by the gigabyte and then make us
 * wait for all of them; so each stretch of it is sent on its way. What comes in small is left to
 * the system, which does it at its leisure. */
static void
send_on_its_way(struct tier_ring *g, uint64_t end, size_t n_bytes)
{
    g->unsynced += n_bytes;
    if (g->unsynced < SYNC_BYTES || end < g->from + g->unsynced)
        return;
    (void)sync_file_range(g->tier->fd, (off_t)(end - g->unsynced), (off_t)g->unsynced,
                          SYNC_FILE_RANGE_WRITE);
    g->unsynced = 0;
}

void
tier_ring_show(struct tier_ring *g)
{
    atomic_store(&g->at_shown, g->at);
    atomic_store(&g->reclaimed_shown, g->reclaimed);
    if (g->at > atomic_load(&g->top))
        atomic_store(&g->top, g->at);
}

/* The batch lies before `at`. Only what has been written can be found. */
void
tier_ring_flush(struct tier_ring *g)
{
    bool written =
        g->batch_n == 0 || disk_write_at(g->tier->fd, g->at - g->batch_n, g->batch, g->batch_n);

    if (written)
        atomic_fetch_add(&g->tier->written, g->batch_n);
    else
        tier_write_failed(g->tier, "writing");
    for (unsigned i = 0; written && i < g->n_rows; i++)
        directory_put(g->tier->directory, &g->rows[i]);
    g->n_rows = 0;
    g->batch_n = 0;
    tier_ring_show(g);
}

void
tier_free_show(struct tier *t)
{
    uint64_t live = directory_live_bytes(t->directory), room = t->bytes - TIER_BASE;

    atomic_store(&t->free_bytes, live < room ? room - live : 0);
}

void
tier_flush(struct tier *t)
{
    for (unsigned i = 0; i < t->n_rings; i++)
        tier_ring_flush(&t->rings[i]);
    atomic_fetch_add(&t->puts, t->puts_unflushed);
    t->puts_unflushed = 0;
    tier_free_show(t);
}

void
tier_ring_row(struct tier_ring *g, const struct directory_row *row)
{
    if (g->n_rows == g->rows_room) {
        g->rows_room = g->rows_room ? g->rows_room * 2 : 64;
        g->rows = mem_realloc(g->rows, g->rows_room * sizeof *g->rows);
    }
    g->rows[g->n_rows++] = *row;
}

/* Those that are still in a batch. */
void
tier_rows_forget(struct tier *t, uint64_t hash)
{
    for (struct tier_ring *g = t->rings; g < t->rings + t->n_rings; g++)
        for (unsigned i = 0; i < g->n_rows; i++)
            if (g->rows[i].hash == hash)
                g->rows[i--] = g->rows[--g->n_rows];
}

/* A whole batch and more needs no copy. */
static size_t
emit_direct(struct tier_ring *g, const char *bytes, size_t n)
{
    if (g->batch_n || n < TIER_BATCH)
        return 0;
    if (disk_write_at(g->tier->fd, g->at, bytes, n)) {
        atomic_fetch_add(&g->tier->written, n);
        send_on_its_way(g, g->at + n, n);
    } else
        tier_write_failed(g->tier, "writing");
    g->at += n;
    return n;
}

void
tier_ring_emit(struct tier_ring *g, const char *bytes, size_t n)
{
    while (n) {
        size_t room = TIER_BATCH - g->batch_n, some = emit_direct(g, bytes, n);

        if (some == 0) {
            some = n < room ? n : room;
            memcpy(g->batch + g->batch_n, bytes, some);
            g->batch_n += some;
            g->at += some;
        }
        bytes += some;
        n -= some;
        if (g->batch_n == TIER_BATCH)
            tier_ring_flush(g);
    }
}

void
tier_ring_pad(struct tier_ring *g)
{
    static const char zeros[RECORD_ALIGN];

    if (g->at % RECORD_ALIGN)
        tier_ring_emit(g, zeros, RECORD_ALIGN - g->at % RECORD_ALIGN);
}

/* ---- what is moved on ---- */

struct kept {
    struct tier_ring *ring;
    struct directory_row *rows;
    size_t n, room;
    uint32_t since_s; /* last used before: not carried */
};

static bool
is_small(const struct tier_ring *g)
{
    return g->tier->n_rings > 1 && g == &g->tier->rings[0];
}

static bool
worth_keeping(const struct kept *k, const struct directory_row *row)
{
    return is_small(k->ring) ? row->uses >= USES_TO_MAIN
                             : row->uses > 0 && row->used_s >= k->since_s;
}

static void
row_taken(void *arg, const struct directory_row *row)
{
    struct kept *k = arg;

    if (!worth_keeping(k, row)) {
        if (is_small(k->ring) && !row->piece)
            ghost_add(k->ring->tier->ghost, row->hash, row->bytes);
        return;
    }
    if (k->n == k->room) {
        k->room = k->room ? k->room * 2 : 64;
        k->rows = mem_realloc(k->rows, k->room * sizeof *k->rows);
    }
    k->rows[k->n++] = *row;
}

static int
later_used_first(const void *a, const void *b)
{
    uint32_t x = ((const struct directory_row *)a)->used_s,
             y = ((const struct directory_row *)b)->used_s;

    return (x < y) - (x > y);
}

/* The bytes stay, as their sums do; only the head image is made anew, for its sequence. */
static void
move(struct tier_ring *to, const struct directory_row *row, struct span bytes)
{
    struct tier *t = to->tier;
    struct directory_row moved = *row;
    uint64_t faults = atomic_load(&t->write_faults), *sums;
    struct record r;
    size_t head_bytes;
    char *head;

    if (record_decode(bytes, &r, &head_bytes) != RECORD_OK || record_bytes(&r) != row->bytes ||
        tier_ban_takes(t, &r))
        return;
    r.sequence = ++t->sequence;
    sums = mem_alloc(r.sums.n + 1);
    memcpy(sums, r.sums.at, r.sums.n);
    head = mem_alloc(head_bytes);
    record_encode(&r, sums, head);
    moved.at = to->at;
    moved.uses = 0;
    moved.checked = false;
    tier_ring_emit(to, head, head_bytes);
    tier_ring_emit(to, bytes.at + head_bytes, bytes.n - head_bytes);
    if (atomic_load(&t->write_faults) == faults)
        tier_ring_row(to, &moved);
    atomic_fetch_add(&t->carried, row->bytes);
    mem_free(head);
    mem_free(sums);
}

/* The most recently used of them, up to `room`, in one piece of memory. */
static char *
kept_read(struct kept *k, uint64_t room)
{
    uint64_t total = 0;
    size_t n = 0;
    char *bytes, *to;

    if (k->n)
        qsort(k->rows, k->n, sizeof *k->rows, later_used_first);
    while (n < k->n && total + k->rows[n].bytes <= room)
        total += k->rows[n++].bytes;
    k->n = n;
    to = bytes = mem_alloc(total + 1);
    for (size_t i = 0; i < n; i++) {
        if (!disk_read_at(k->ring->tier->fd, k->rows[i].at, to, k->rows[i].bytes))
            k->rows[i].bytes = 0;
        to += k->rows[i].bytes;
    }
    return bytes;
}

/* In the ring itself there is room, where they were; in another it is made. */
static void
kept_append(const struct kept *k, const char *bytes)
{
    struct tier_ring *to = main_ring(k->ring->tier);

    for (size_t i = 0; i < k->n; i++) {
        if (k->rows[i].bytes && (to == k->ring || tier_ring_reserve(to, k->rows[i].bytes)))
            move(to, &k->rows[i], span_of(bytes, k->rows[i].bytes));
        bytes += k->rows[i].bytes;
    }
}

/* ---- regions ---- */

static struct tier_region *
region_at(const struct tier *t, uint64_t at)
{
    return &t->regions[(at - TIER_BASE) / t->region];
}

void
tier_pin(struct tier *t, uint64_t at, uint64_t n_bytes)
{
    for (struct tier_region *r = region_at(t, at); r <= region_at(t, at + n_bytes - 1); r++) {
        atomic_fetch_add(&r->pins, 1);
        atomic_store(&r->sent, true);
    }
}

void
tier_unpin(struct tier *t, uint64_t at, uint64_t n_bytes)
{
    for (struct tier_region *r = region_at(t, at); r <= region_at(t, at + n_bytes - 1); r++)
        atomic_fetch_sub(&r->pins, 1);
}

static bool
is_pinned(const struct tier *t, uint64_t from, uint64_t to)
{
    for (struct tier_region *r = region_at(t, from); r <= region_at(t, to - 1); r++)
        if (atomic_load(&r->pins))
            return true;
    return false;
}

/* Sockets hold pages of the page cache until their peers have read them. A hole gives the file new
 * ones, but for a page that is only partly in it. */
static bool
give_fresh_pages(struct tier *t, uint64_t from, uint64_t to)
{
    bool sent = false;

    for (struct tier_region *r = region_at(t, from); r <= region_at(t, to - 1); r++)
        sent = atomic_load(&r->sent) || sent;
    if (!sent)
        return true;
    if (from % TIER_BASE || fallocate(t->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                      (off_t)from, (off_t)(to - from)) != 0)
        return false;
    if ((from - TIER_BASE) % t->region == 0 && to - from == t->region)
        atomic_store(&region_at(t, from)->sent, false);
    return true;
}

static unsigned
mark_of(const struct tier_ring *g, uint64_t at)
{
    return (unsigned)((at - g->from) * TIER_MARKS / (g->to - g->from + 1));
}

/* When the writer was half a round behind where it is; 0: it has not come so far. On the traces
 * that decide (tools/simulate) this is the age up to which carrying pays for what it writes. The
 * main one of two rings keeps what was used at all. */
static uint32_t
keep_since(const struct tier_ring *g)
{
    if (g->tier->n_rings > 1)
        return 0;
    return g->marks_s[(mark_of(g, g->at) + TIER_MARKS / 2) % TIER_MARKS];
}

static uint64_t
next_region_end(const struct tier_ring *g)
{
    uint64_t region = g->tier->region;
    uint64_t end = g->reclaimed + region - (g->reclaimed - TIER_BASE) % region;

    return end < g->to ? end : g->to;
}

static bool
pass_over(struct tier_ring *g, uint64_t end)
{
    tier_ring_flush(g);
    g->at = g->reclaimed = end;
    return false;
}

/* What is carried has room where it was, even in a short region at the end; so does what is moved
 * to the other ring, where room is made. */
static uint64_t
keep_room(const struct tier_ring *g, uint64_t end)
{
    uint64_t most = is_small(g) ? g->tier->region : g->tier->region / 2;

    return end - g->reclaimed < most ? end - g->reclaimed : most;
}

/* The rows go first, so that nobody new pins it; who came before is seen then. Batches are written
 * before, so that what is kept is not older than what they hold. */
static bool
region_empty(struct tier_ring *g, uint64_t end)
{
    struct tier *t = g->tier;
    struct kept k = {.ring = g, .since_s = keep_since(g)};
    char *bytes;
    bool free;

    tier_flush(t);
    if (is_small(g))
        ghost_size(t->ghost, (t->bytes - TIER_BASE) / 10 * 9, directory_count(t->directory));
    directory_take_range(t->directory, g->reclaimed, end, row_taken, &k);
    bytes = kept_read(&k, keep_room(g, end));
    free = !is_pinned(t, g->reclaimed, end) && give_fresh_pages(t, g->reclaimed, end);
    if (free) {
        g->reclaimed = end;
        g->marks_s[mark_of(g, g->at)] = tier_now_s();
        kept_append(&k, bytes);
    }
    mem_free(bytes);
    mem_free(k.rows);
    return free || pass_over(g, end);
}

/* The next region behind what is free becomes free. false: it is passed over. */
static bool
reclaim(struct tier_ring *g)
{
    uint64_t end = next_region_end(g);

    return is_pinned(g->tier, g->reclaimed, end) ? pass_over(g, end) : region_empty(g, end);
}

bool
tier_ring_reserve(struct tier_ring *g, uint64_t n_bytes)
{
    unsigned passed = 0;

    if (n_bytes > (g->to - g->from) / 4)
        return false;
    while (passed <= g->tier->n_regions) {
        if (g->at + n_bytes > g->to) {
            tier_ring_flush(g);
            g->at = g->reclaimed = g->from;
        }
        if (g->at + n_bytes <= g->reclaimed)
            return true;
        if (g->reclaimed < g->to && !reclaim(g))
            passed++;
    }
    return false; /* everything is being sent to somebody */
}
