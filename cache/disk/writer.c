/* cache/disk/writer.c - responses as records, onto a tier's rings; all on the tier's own thread. */
#include <stdlib.h>
#include <xxhash.h>

#include "base/check.h"
#include "base/clock.h"
#include "cache/disk/bans.h"
#include "cache/disk/file.h"
#include "cache/disk/names.h"
#include "cache/disk/ring.h"
#include "cache/disk/writer.h"

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

/* A record with no head and no body, behind which what came before is void. */
static bool
void_emit(struct tier_ring *g, struct record *r)
{
    struct tier *t = g->tier;
    char *head;

    r->generation = atomic_load(&t->generation);
    if (tier_is_paused(t) || !tier_ring_reserve(g, record_bytes(r)))
        return false;
    r->sequence = ++t->sequence;
    head = mem_alloc(record_head_bytes(r));
    record_encode(r, NULL, head);
    tier_ring_emit(g, head, record_head_bytes(r));
    mem_free(head);
    return true;
}

static void
key_is_void(struct tier_ring *g, const uint64_t digest[2])
{
    struct record r = {.digest = {digest[0], digest[1]}};

    (void)void_emit(g, &r);
}

/* In one ring the older version is written over before the newer one is. In two that is not so: one
 * in the other ring would be back after a crash. */
static void
older_is_void(struct tier *t, const struct tier_ring *g, const struct record *r)
{
    struct directory_row rows[16];
    unsigned n = t->n_rings > 1 ? directory_find(t->directory, r->digest[0], rows, 16) : 0;

    for (unsigned i = 0; i < n; i++)
        if (tier_ring_at(t, rows[i].at) != g) {
            key_is_void(tier_ring_at(t, rows[i].at), r->digest);
            return;
        }
}

/* Only what was written whole gets a row. */
static bool
append(struct tier *t, struct record *r, struct span body, uint32_t tag)
{
    struct tier_ring *g =
        tier_ring_for(t, r->digest[0], r->kind == RECORD_PIECE ? r->chain_bytes : 0);
    struct directory_row row = {.hash = r->digest[0],
                                .bytes = record_bytes(r),
                                .tag = tag,
                                .used_s = tier_now_s(),
                                .piece = r->kind == RECORD_PIECE};
    uint64_t faults = atomic_load(&t->write_faults), *sums;
    size_t head_bytes = record_head_bytes(r);
    char *head;

    if (tier_is_paused(t) || !tier_ring_reserve(g, row.bytes))
        return false;
    older_is_void(t, g, r);
    sums = mem_alloc((record_blocks(r->body_bytes) + 1) * sizeof *sums);
    head = mem_alloc(head_bytes);
    row.at = g->at;
    r->sequence = ++t->sequence;
    sums_of(body, sums);
    record_encode(r, sums, head);
    tier_ring_emit(g, head, head_bytes);
    tier_ring_emit(g, body.at, body.n);
    tier_ring_pad(g);
    mem_free(head);
    mem_free(sums);
    if (atomic_load(&t->write_faults) != faults)
        return false;
    tier_ring_row(g, &row);
    atomic_fetch_add(&t->admitted, row.bytes);
    return true;
}

static struct record
record_of(const struct tier *t, struct span uri, const struct entry *e)
{
    const struct head *h = e->head;
    int64_t age_ms = clock_exact_mono_ns() / 1000000 - h->response_ms;
    struct record r = {
        .generation = t->writing,
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
    struct record r = {.generation = t->writing,
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
        span_eq(old->uri, wanted->uri) && !tier_is_banned(t, old) &&
        span_eq(old->vary, wanted->vary) && record_length(old) == length)
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

/* So that what was made invalid does not come back after a crash, wherever it lies. */
void
tier_tombstone(struct tier *t, const uint64_t hash[2])
{
    (void)directory_remove_all(t->directory, hash[0]);
    tier_rows_forget(t, hash[0]);
    for (unsigned i = 0; i < t->n_rings; i++)
        key_is_void(&t->rings[i], hash);
}

bool
tier_append_ban(struct tier *t, struct span prefix)
{
    uint64_t faults = atomic_load(&t->write_faults);
    struct record r = {.kind = RECORD_BAN, .uri = prefix};
    bool written = true;

    for (unsigned i = 0; i < t->n_rings; i++)
        written = void_emit(&t->rings[i], &r) && written;
    tier_flush(t);
    return written && atomic_load(&t->write_faults) == faults;
}
