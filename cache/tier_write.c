/* cache/tier_write.c - the writer's side of a tier: all on the tier's own thread.
 *
 * Records are appended, small ones together. Before a region is written over, its rows leave the
 * directory; those that were used lately are read and appended again. A reader that copies finds
 * other bytes there: what it reads is judged by its own checksums and its URI, never by where it
 * was found. A reader that sends the file's bytes unread pins their region, and a pinned region is
 * passed over. What was sent may still be on its way out of the page cache: such a region gets
 * fresh pages before it is written again.
 *
 * A fault in writing costs the batch and a pause; reading goes on. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/tier_private.h"

#define PAUSE_MS 1000
#define TELL_MS 10000
#define SYNC_BYTES (8u << 20)

/* ---- bytes ---- */

void
tier_write_failed(struct tier *t, const char *what)
{
    atomic_fetch_add(&t->write_faults, 1);
    log_event_every(TELL_MS, LOG_WARN, "cache_dir %s: %s: %s; what was to be stored is not",
                    t->path, what, strerror(errno));
    t->pause_until_ms = clock_exact_mono_ns() / 1000000 + PAUSE_MS;
}

static bool
is_paused(const struct tier *t)
{
    return t->pause_until_ms && clock_exact_mono_ns() / 1000000 < t->pause_until_ms;
}

/* The system would let dirty pages pile up by the gigabyte and then make us wait for all of them;
 * so each stretch is sent on its way when it is full. */
static void
wrote(struct tier *t, uint64_t end, size_t n_bytes)
{
    atomic_fetch_add(&t->written, n_bytes);
    t->unsynced += n_bytes;
    if (t->unsynced < SYNC_BYTES || end < t->unsynced)
        return;
    (void)sync_file_range(t->fd, (off_t)(end - t->unsynced), (off_t)t->unsynced,
                          SYNC_FILE_RANGE_WRITE);
    t->unsynced = 0;
}

/* The batch lies before `at`. Only what has been written can be found. */
void
tier_flush(struct tier *t)
{
    bool written =
        t->batch_n == 0 || disk_write_at(t->fd, t->at - t->batch_n, t->batch, t->batch_n);

    if (written)
        wrote(t, t->at, t->batch_n);
    else
        tier_write_failed(t, "writing");
    for (unsigned i = 0; written && i < t->n_rows; i++)
        directory_put(t->directory, &t->rows[i]);
    t->n_rows = 0;
    t->batch_n = 0;
    atomic_store(&t->at_shown, t->at);
    atomic_store(&t->reclaimed_shown, t->reclaimed);
    if (t->at > atomic_load(&t->top))
        atomic_store(&t->top, t->at);
}

static void
row_add(struct tier *t, const struct directory_row *row)
{
    if (t->n_rows == t->rows_room) {
        t->rows_room = t->rows_room ? t->rows_room * 2 : 64;
        t->rows = mem_realloc(t->rows, t->rows_room * sizeof *t->rows);
    }
    t->rows[t->n_rows++] = *row;
}

/* A whole batch and more needs no copy. */
static size_t
emit_direct(struct tier *t, const char *bytes, size_t n)
{
    if (t->batch_n || n < TIER_BATCH)
        return 0;
    if (disk_write_at(t->fd, t->at, bytes, n))
        wrote(t, t->at + n, n);
    else
        tier_write_failed(t, "writing");
    t->at += n;
    return n;
}

static void
emit(struct tier *t, const char *bytes, size_t n)
{
    while (n) {
        size_t room = TIER_BATCH - t->batch_n, some = emit_direct(t, bytes, n);

        if (some == 0) {
            some = n < room ? n : room;
            memcpy(t->batch + t->batch_n, bytes, some);
            t->batch_n += some;
            t->at += some;
        }
        bytes += some;
        n -= some;
        if (t->batch_n == TIER_BATCH)
            tier_flush(t);
    }
}

static void
emit_padding(struct tier *t)
{
    static const char zeros[RECORD_ALIGN];

    if (t->at % RECORD_ALIGN)
        emit(t, zeros, RECORD_ALIGN - t->at % RECORD_ALIGN);
}

struct kept {
    struct directory_row *rows;
    size_t n, room;
    uint32_t since_s; /* last used before: not carried */
};

static void
keep_row(void *arg, const struct directory_row *row)
{
    struct kept *k = arg;

    if (row->used_s < k->since_s)
        return;
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
carry(struct tier *t, const struct directory_row *row, struct span bytes)
{
    struct directory_row moved = *row;
    uint64_t faults = atomic_load(&t->write_faults), *sums;
    struct record r;
    size_t head_bytes;
    char *head;

    if (record_decode(bytes, &r, &head_bytes) != RECORD_OK || record_bytes(&r) != row->bytes)
        return;
    r.sequence = ++t->sequence;
    sums = mem_alloc(r.sums.n + 1);
    memcpy(sums, r.sums.at, r.sums.n);
    head = mem_alloc(head_bytes);
    record_encode(&r, sums, head);
    moved.at = t->at;
    moved.used = moved.checked = false;
    emit(t, head, head_bytes);
    emit(t, bytes.at + head_bytes, bytes.n - head_bytes);
    if (atomic_load(&t->write_faults) == faults)
        row_add(t, &moved);
    atomic_fetch_add(&t->carried, row->bytes);
    mem_free(head);
    mem_free(sums);
}

/* The most recently used of them, up to `room`, in one piece of memory. */
static char *
kept_read(struct tier *t, struct kept *k, uint64_t room)
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
        if (!disk_read_at(t->fd, k->rows[i].at, to, k->rows[i].bytes))
            k->rows[i].bytes = 0;
        to += k->rows[i].bytes;
    }
    return bytes;
}

static void
kept_append(struct tier *t, const struct kept *k, const char *bytes)
{
    for (size_t i = 0; i < k->n; i++) {
        if (k->rows[i].bytes)
            carry(t, &k->rows[i], span_of(bytes, k->rows[i].bytes));
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
mark_of(const struct tier *t, uint64_t at)
{
    return (unsigned)((at - TIER_BASE) * TIER_MARKS / (t->bytes - TIER_BASE + 1));
}

/* When the writer was half a round behind where it is; 0: it has not come so far. On the traces
 * that decide (tools/simulate) this is the age up to which carrying pays for what it writes. */
static uint32_t
half_a_round_ago(const struct tier *t)
{
    return t->marks_s[(mark_of(t, t->at) + TIER_MARKS / 2) % TIER_MARKS];
}

static uint64_t
next_region_end(const struct tier *t)
{
    uint64_t end = t->reclaimed + t->region - (t->reclaimed - TIER_BASE) % t->region;

    return end < t->bytes ? end : t->bytes;
}

static bool
pass_over(struct tier *t, uint64_t end)
{
    tier_flush(t);
    t->at = t->reclaimed = end;
    return false;
}

/* What is carried has room where it was, even in a short region at the end. */
static uint64_t
carry_room(const struct tier *t, uint64_t end)
{
    return end - t->reclaimed < t->region / 2 ? end - t->reclaimed : t->region / 2;
}

/* The rows go first, so that nobody new pins it; who came before is seen then. */
static bool
region_empty(struct tier *t, uint64_t end)
{
    struct kept k = {.since_s = half_a_round_ago(t)};
    char *bytes;
    bool free;

    directory_take_range(t->directory, t->reclaimed, end, keep_row, &k);
    bytes = kept_read(t, &k, carry_room(t, end));
    free = !is_pinned(t, t->reclaimed, end) && give_fresh_pages(t, t->reclaimed, end);
    if (free) {
        t->reclaimed = end;
        t->marks_s[mark_of(t, t->at)] = tier_now_s();
        kept_append(t, &k, bytes);
    }
    mem_free(bytes);
    mem_free(k.rows);
    return free || pass_over(t, end);
}

/* The next region behind what is free becomes free. false: it is passed over. */
static bool
reclaim(struct tier *t)
{
    uint64_t end = next_region_end(t);

    return is_pinned(t, t->reclaimed, end) ? pass_over(t, end) : region_empty(t, end);
}

/* Room for n_bytes in one piece at `at`. */
static bool
reserve(struct tier *t, uint64_t n_bytes)
{
    unsigned passed = 0;

    if (n_bytes > (t->bytes - TIER_BASE) / 4)
        return false;
    while (passed <= t->n_regions) {
        if (t->at + n_bytes > t->bytes) {
            tier_flush(t);
            t->at = t->reclaimed = TIER_BASE;
        }
        if (t->at + n_bytes <= t->reclaimed)
            return true;
        if (t->reclaimed < t->bytes && !reclaim(t))
            passed++;
    }
    return false; /* everything is being sent to somebody */
}

/* ---- records ---- */

static void
sums_of(struct span body, uint64_t *sums)
{
    for (size_t i = 0; body.n; i++) {
        struct span block = span_first(body, body.n < RECORD_BLOCK ? body.n : RECORD_BLOCK);

        sums[i] = record_sum(block);
        body = span_skip(body, block.n);
    }
}

/* Only what was written whole gets a row. */
static bool
append(struct tier *t, struct record *r, struct span body, uint32_t tag)
{
    struct directory_row row = {.hash = r->digest[0],
                                .bytes = record_bytes(r),
                                .tag = tag,
                                .used_s = tier_now_s(),
                                .piece = r->kind == RECORD_PIECE};
    uint64_t faults = atomic_load(&t->write_faults), *sums;
    size_t head_bytes = record_head_bytes(r);
    char *head;

    if (is_paused(t) || !reserve(t, row.bytes))
        return false;
    sums = mem_alloc((record_blocks(r->body_bytes) + 1) * sizeof *sums);
    head = mem_alloc(head_bytes);
    row.at = t->at;
    r->sequence = ++t->sequence;
    sums_of(body, sums);
    record_encode(r, sums, head);
    emit(t, head, head_bytes);
    emit(t, body.at, body.n);
    emit_padding(t);
    mem_free(head);
    mem_free(sums);
    if (atomic_load(&t->write_faults) != faults)
        return false;
    row_add(t, &row);
    atomic_fetch_add(&t->admitted, row.bytes);
    return true;
}

static struct record
record_of(const struct tier *t, struct span uri, const struct entry *e)
{
    const struct head *h = e->head;
    int64_t age_ms = clock_exact_mono_ns() / 1000000 - h->response_ms;
    struct record r = {
        .generation = atomic_load(&t->generation),
        .status = h->status,
        .response_wall_ms = tier_wall_ms() - (age_ms > 0 ? age_ms : 0),
        .initial_age_s = h->initial_age_s,
        .had_authorization = h->had_authorization,
        .date_given = h->date_given,
        .uri = uri,
        .vary = e->vary,
        .reason = h->reason,
        .block = h->block,
        .trailer = body_trailer(e->body),
    };

    if (tier_part_of(e)) {
        r.is_part = true;
        r.part_from = e->part->from;
        r.part_whole = e->part->whole;
        r.range = e->part->range;
    }
    tier_hash(t, uri, r.digest);
    return r;
}

bool
tier_append_piece(struct tier *t, uint64_t chain, uint64_t at, struct span bytes)
{
    struct record r = {.generation = atomic_load(&t->generation),
                       .kind = RECORD_PIECE,
                       .chain = chain,
                       .chain_bytes = at,
                       .body_bytes = bytes.n};

    tier_piece_hash(t, chain, at, r.digest);
    return append(t, &r, bytes, 0);
}

bool
tier_append_chain(struct tier *t, struct span uri, struct entry *e, uint64_t chain)
{
    struct record r = record_of(t, uri, e);

    r.kind = RECORD_CHAIN;
    r.chain = chain;
    r.chain_bytes = body_published(e->body);
    r.piece_bytes = t->piece;
    atomic_store(&e->chain, chain);
    return append(t, &r, SPAN_NONE, tier_tag(e->vary, tier_part_of(e)));
}

static bool
append_in_pieces(struct tier *t, struct span uri, struct entry *e)
{
    uint64_t chain = tier_chain_new(), length = body_published(e->body);
    char *piece = mem_alloc(t->piece);
    bool written = true;

    for (uint64_t at = 0; at < length && written; at += t->piece) {
        size_t n = length - at < t->piece ? (size_t)(length - at) : t->piece;

        body_copy_out(e->body, at, piece, n);
        written = tier_append_piece(t, chain, at, span_of(piece, n));
    }
    mem_free(piece);
    return written && tier_append_chain(t, uri, e, chain);
}

bool
tier_append(struct tier *t, struct span uri, struct entry *e)
{
    struct record r = record_of(t, uri, e);
    char *body;
    bool written;

    r.body_bytes = body_published(e->body);
    if (r.body_bytes > TIER_WHOLE_MAX)
        return append_in_pieces(t, uri, e);
    body = mem_alloc((size_t)r.body_bytes + 1);
    body_copy_out(e->body, 0, body, (size_t)r.body_bytes);
    written =
        append(t, &r, span_of(body, (size_t)r.body_bytes), tier_tag(e->vary, tier_part_of(e)));
    mem_free(body);
    return written;
}

/* ---- a new head ---- */

/* The head image of the record that row names, if it is of this response. NULL: it is not. */
static char *
head_at(struct tier *t, const struct directory_row *row, const struct record *wanted,
        uint64_t length, struct record *old)
{
    size_t n = row->bytes < TIER_WHOLE_MAX ? (size_t)row->bytes : TIER_WHOLE_MAX, head_bytes;
    char *bytes = mem_alloc(n);

    if (disk_read_at(t->fd, row->at, bytes, n) &&
        record_decode(span_of(bytes, n), old, &head_bytes) == RECORD_OK &&
        old->kind != RECORD_PIECE && old->generation == wanted->generation &&
        span_eq(old->uri, wanted->uri) && span_eq(old->vary, wanted->vary) &&
        record_length(old) == length)
        return bytes;
    mem_free(bytes);
    return NULL;
}

/* In its own place: whole or none, as its checksums tell. false: it does not fit there. */
static bool
head_replace(struct tier *t, const struct directory_row *row, const struct record *r,
             const struct record *old)
{
    uint64_t *sums;
    char *head;
    bool written;

    if (!record_head_fits(r))
        return false;
    sums = mem_alloc(old->sums.n + 1);
    memcpy(sums, old->sums.at, old->sums.n);
    head = mem_alloc(record_head_bytes(r));
    record_encode(r, sums, head);
    written = disk_write_at(t->fd, row->at, head, record_head_bytes(r));
    if (written)
        atomic_fetch_add(&t->written, record_head_bytes(r));
    else {
        (void)directory_remove(t->directory, row->hash, row->at);
        tier_write_failed(t, "writing a head");
    }
    mem_free(head);
    mem_free(sums);
    return true;
}

static void
body_stays(struct record *r, const struct record *old)
{
    r->sequence = old->sequence;
    r->kind = old->kind;
    r->chain = old->chain;
    r->chain_bytes = old->chain_bytes;
    r->piece_bytes = old->piece_bytes;
    r->body_bytes = old->body_bytes;
    r->trailer = old->trailer;
    r->head_room = old->head_room;
}

/* The row of this variant; false: there is none. */
static bool
row_of_entry(struct tier *t, const struct record *r, const struct entry *e,
             struct directory_row *row)
{
    struct directory_row rows[16];
    unsigned n = directory_find(t->directory, r->digest[0], rows, 16);

    for (unsigned i = 0; i < n; i++)
        if (rows[i].tag == tier_tag(e->vary, tier_part_of(e))) {
            *row = rows[i];
            return true;
        }
    return false;
}

bool
tier_freshen(struct tier *t, struct span uri, struct entry *e)
{
    struct record r = record_of(t, uri, e), old;
    struct directory_row row;
    char *bytes = NULL;
    bool done;

    tier_flush(t); /* it may be in the batch */
    if (row_of_entry(t, &r, e, &row))
        bytes = head_at(t, &row, &r, r.is_part ? entry_bytes(e) : entry_length(e), &old);
    if (bytes == NULL)
        return false;
    body_stays(&r, &old);
    done = head_replace(t, &row, &r, &old);
    if (!done && r.kind == RECORD_CHAIN) { /* the pieces stay where they are */
        r.head_room = 0;
        done = append(t, &r, SPAN_NONE, row.tag);
    }
    mem_free(bytes);
    return done;
}

/* So that what was made invalid does not come back after a crash. */
void
tier_tombstone(struct tier *t, const uint64_t hash[2])
{
    struct record r = {.generation = atomic_load(&t->generation), .digest = {hash[0], hash[1]}};
    char *head;

    (void)directory_remove_all(t->directory, hash[0]);
    for (unsigned i = 0; i < t->n_rows; i++) /* what is still in the batch */
        if (t->rows[i].hash == hash[0])
            t->rows[i--] = t->rows[--t->n_rows];
    if (is_paused(t) || !reserve(t, record_bytes(&r)))
        return;
    r.sequence = ++t->sequence;
    head = mem_alloc(record_head_bytes(&r));
    record_encode(&r, NULL, head);
    emit(t, head, record_head_bytes(&r));
    mem_free(head);
}
