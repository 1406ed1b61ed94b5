/* cache/disk/stream.c - the body of a record that was found, as it is asked for.
 *
 * Two ways. Copied: blocks are read, judged and appended. Sent: the body gets runs of the file,
 * which its reader sends without seeing them; the pieces they lie in are judged by a pool thread
 * the first time after a start, or when the page cache does not have them any more, and are pinned
 * until they are gone, see cache/disk/ring.c. */
#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "cache/disk/file.h"
#include "cache/disk/names.h"
#include "cache/disk/read.h"
#include "cache/disk/ring.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* the same everywhere that matters */
#endif

#define COPIED_AT_ONCE (4u * RECORD_BLOCK)
#define PIECES_A_TURN 4

/* ---- chains ---- */

static bool
piece_row(const struct tier_read *r, const struct record *head, uint64_t from,
          struct directory_row *row)
{
    uint64_t digest[2];

    tier_piece_hash(tier_of(r), head->chain, from, digest);
    return directory_find(tier_of(r)->directory, digest[0], row, 1) == 1;
}

bool
tier_chain_is_there(const struct tier_read *r, const struct record *head)
{
    struct directory_row row;

    for (uint64_t at = 0; at < head->chain_bytes; at += head->piece_bytes)
        if (!piece_row(r, head, at, &row))
            return false;
    return true;
}

/* ---- the end ---- */

static void
stream_stop(struct tier_read *r)
{
    body_fail(r->entry->body, FAULT_SERVER_INCOMPLETE);
    r->phase = OVER;
    loop_defer(r->reader->loop, &r->again); /* frees */
}

static void
finish(struct tier_read *r)
{
    body_complete(r->entry->body, r->record.trailer);
    if (r->reader->loaded)
        r->reader->loaded(r->reader->owner, r->entry);
    r->phase = OVER;
    loop_defer(r->reader->loop, &r->again);
}

static void
stop_at_spoilt(struct tier_read *r)
{
    atomic_fetch_add(&tier_of(r)->read_faults, r->error != 0);
    tier_forget_row(r, &r->extent.row, r->error ? "unreadable bytes" : "a spoilt block");
    stream_stop(r);
}

static bool
is_unwanted(const struct tier_read *r)
{
    return body_mode(r->entry->body) == BODY_PASS && body_readers(r->entry->body) == 0;
}

/* ---- extents ---- */

static void
extent_of_whole(struct tier_read *r)
{
    const struct directory_row *row = &r->candidates[r->i].row;

    r->extent = (struct extent){
        .row = *row, .record = r->record, .end = r->length, .at = row->at + r->head_bytes};
}

static uint64_t
piece_from(const struct tier_read *r)
{
    return r->done - r->done % r->record.piece_bytes;
}

static uint64_t
piece_end(const struct tier_read *r)
{
    uint64_t end = piece_from(r) + r->record.piece_bytes;

    return end < r->length ? end : r->length;
}

static size_t
piece_head_bytes(const struct tier_read *r)
{
    struct record piece = {.kind = RECORD_PIECE, .body_bytes = piece_end(r) - piece_from(r)};

    return record_head_bytes(&piece);
}

/* Where the next byte lies. false: it had to give way meanwhile. */
static bool
piece_find(struct tier_read *r)
{
    struct extent *x = &r->extent;

    mem_free(x->head);
    *x = (struct extent){.from = piece_from(r)};
    if (piece_row(r, &r->record, x->from, &x->row)) {
        x->at = x->row.at + piece_head_bytes(r);
        x->end = piece_end(r);
        (void)directory_touch(tier_of(r)->directory, &x->row, tier_now_s());
        return true;
    }
    stream_stop(r);
    return false;
}

/* The head of that piece. true: it has come. */
static bool
piece_head_ask(struct tier_read *r)
{
    r->awaited = AWAITS_HEAD;
    return tier_fetch(r, r->extent.row.at, piece_head_bytes(r));
}

static bool
piece_fits(const struct tier_read *r, const struct record *piece)
{
    uint64_t digest[2];

    tier_piece_hash(tier_of(r), r->record.chain, piece_from(r), digest);
    return piece->kind == RECORD_PIECE && piece->digest[0] == digest[0] &&
           piece->digest[1] == digest[1] && piece->chain == r->record.chain &&
           piece->chain_bytes == piece_from(r) &&
           piece->body_bytes == piece_end(r) - piece_from(r) &&
           piece->generation == r->record.generation;
}

static bool
piece_open(struct tier_read *r)
{
    struct extent *x = &r->extent;
    size_t head_bytes = 0;

    x->head = mem_alloc(r->got + 1);
    memcpy(x->head, r->chunk->bytes, r->got);
    if (r->error || record_decode(span_of(x->head, r->got), &x->record, &head_bytes) != RECORD_OK ||
        !piece_fits(r, &x->record)) {
        stop_at_spoilt(r);
        return false;
    }
    return true;
}

/* ---- copied ---- */

/* Whole blocks of what is at hand, each judged first. false: one is spoilt. */
static bool
pass_on(struct tier_read *r, struct span bytes)
{
    const struct extent *x = &r->extent;

    while (r->done < x->end && bytes.n) {
        uint64_t left = x->end - r->done;
        size_t block = left < RECORD_BLOCK ? (size_t)left : RECORD_BLOCK;

        if (bytes.n < block)
            return true;
        if (!record_block_is_sound(&x->record, (r->done - x->from) / RECORD_BLOCK,
                                   span_first(bytes, block)))
            return false;
        body_append(r->entry->body, span_first(bytes, block));
        r->done += block;
        bytes = span_skip(bytes, block);
    }
    return true;
}

static bool
blocks_take(struct tier_read *r)
{
    if (!r->error && pass_on(r, span_of(r->chunk->bytes, r->got)))
        return true;
    stop_at_spoilt(r);
    return false;
}

/* true: they have come. */
static bool
blocks_ask(struct tier_read *r)
{
    const struct extent *x = &r->extent;
    uint64_t left = x->end - r->done;

    r->awaited = AWAITS_BYTES;
    return tier_fetch(r, x->at + (r->done - x->from),
                      left < COPIED_AT_ONCE ? (size_t)left : COPIED_AT_ONCE);
}

/* ---- sent ---- */

struct pin {
    struct tier *tier;
    uint64_t at, n_bytes;
};

static void
run_gone(const struct body_file *f)
{
    struct pin *p = f->owner;

    tier_unpin(p->tier, p->at, p->n_bytes);
    mem_free(p);
}

/* The pin comes first and the row is asked after it: the writer does it the other way round. */
static struct pin *
extent_pin(const struct tier_read *r)
{
    const struct extent *x = &r->extent;
    struct pin *p = mem_alloc(sizeof *p);

    *p = (struct pin){tier_of(r), x->row.at, x->row.bytes};
    tier_pin(p->tier, p->at, p->n_bytes);
    if (directory_holds(p->tier->directory, &x->row))
        return p;
    tier_unpin(p->tier, p->at, p->n_bytes);
    mem_free(p);
    return NULL;
}

/* Whole blocks, as far as is known to be wanted. */
static uint64_t
sent_end(const struct tier_read *r)
{
    uint64_t end = r->until > r->done && r->until < r->extent.end ? r->until : r->extent.end;

    end += (RECORD_BLOCK - end % RECORD_BLOCK) % RECORD_BLOCK;
    return end < r->extent.end ? end : r->extent.end;
}

static bool
run_send(struct tier_read *r)
{
    const struct extent *x = &r->extent;
    struct pin *p = extent_pin(r);
    struct body_file run = {.fd = tier_of(r)->fd,
                            .at = x->at + (r->done - x->from),
                            .n_bytes = r->check_end - r->done,
                            .owner = p,
                            .release = run_gone};

    if (p == NULL) {
        stream_stop(r);
        return false;
    }
    body_append_file(r->entry->body, &run);
    r->done = r->check_end;
    return true;
}

/* Linux 6.5 has one call for it: -1 where there is none. */
static int
cached_pages_tell(int fd, uint64_t at, uint64_t n_bytes)
{
    uint64_t range[2] = {at, n_bytes}, stat[5] = {0}, page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t pages = (at + n_bytes - 1) / page - at / page + 1;

    return syscall(SYS_cachestat, fd, range, stat, 0) == 0 ? stat[0] >= pages : -1;
}

/* Would sending wait for the disk? Else one byte of each block tells. */
static bool
is_in_memory(const struct tier_read *r)
{
    const struct extent *x = &r->extent;
    int told =
        cached_pages_tell(tier_of(r)->fd, x->at + (r->done - x->from), r->check_end - r->done);
    char byte;

    if (told >= 0)
        return told;
    for (uint64_t at = r->done; at < r->check_end; at += RECORD_BLOCK) {
        struct iovec v = {&byte, 1};

        if (preadv2(tier_of(r)->fd, &v, 1, (off_t)(x->at + (at - x->from)), RWF_NOWAIT) != 1)
            return false;
    }
    return true;
}

static void
check_job(struct offload_job *job)
{
    struct tier_read *r = LIST_OWNER(job, struct tier_read, job);
    const struct extent *x = &r->extent;
    char *block = mem_alloc(RECORD_BLOCK);

    r->error = 0;
    for (uint64_t at = r->done; at < r->check_end && !r->error; at += RECORD_BLOCK) {
        size_t n = r->check_end - at < RECORD_BLOCK ? (size_t)(r->check_end - at) : RECORD_BLOCK;

        if (!disk_read_at(tier_of(r)->fd, x->at + (at - x->from), block, n))
            r->error = errno ? errno : EIO;
        else if (!record_block_is_sound(&x->record, (at - x->from) / RECORD_BLOCK,
                                        span_of(block, n)))
            r->error = EILSEQ;
    }
    mem_free(block);
}

static bool
check_take(struct tier_read *r)
{
    const struct extent *x = &r->extent;

    if (r->error) {
        if (r->error == EILSEQ)
            r->error = 0;
        stop_at_spoilt(r);
        return false;
    }
    if (r->done == x->from && r->check_end == x->end) {
        directory_check(tier_of(r)->directory, &x->row);
        r->extent.row.checked = true;
    }
    return run_send(r);
}

static bool
check_ask(struct tier_read *r)
{
    r->awaited = AWAITS_CHECK;
    tier_by_thread(r, check_job);
    return false;
}

/* true: a run was given to the body. What was judged since the start needs no head any more. */
static bool
run_ask(struct tier_read *r)
{
    r->check_end = sent_end(r);
    if (r->extent.row.checked && is_in_memory(r))
        return run_send(r);
    return (r->extent.head || (piece_head_ask(r) && piece_open(r))) && check_ask(r);
}

/* ---- on and on ---- */

/* One step. false: it goes on later, or it is over. */
static bool
step(struct tier_read *r)
{
    if (r->done == r->length) {
        finish(r);
        return false;
    }
    if (is_unwanted(r)) {
        stream_stop(r);
        return false;
    }
    if (!body_wants(r->entry->body))
        return false; /* room_task comes */
    if (r->done >= r->extent.end && !piece_find(r))
        return false;
    if (r->sends)
        return run_ask(r);
    if (r->record.kind == RECORD_CHAIN && !r->extent.head && (!piece_head_ask(r) || !piece_open(r)))
        return false;
    return blocks_ask(r) && blocks_take(r);
}

void
tier_stream(struct tier_read *r)
{
    for (int i = 0; i < PIECES_A_TURN; i++)
        if (!step(r))
            return;
    loop_defer(r->reader->loop, &r->again);
}

void
tier_stream_go_on(struct tier_read *r)
{
    bool good = false;

    switch (r->awaited) {
    case AWAITS_BYTES:
        good = blocks_take(r);
        break;
    case AWAITS_HEAD:
        good = piece_open(r); /* and then what it was opened for */
        break;
    case AWAITS_CHECK:
        good = check_take(r);
        break;
    }
    if (good)
        tier_stream(r);
}

static bool
is_at_hand(const struct tier_read *r)
{
    return r->record.kind == RECORD_WHOLE && r->got >= r->head_bytes + r->length;
}

/* The whole body was read with the head, and judged. */
static void
take_all(struct tier_read *r)
{
    if (r->length > r->done)
        body_append_chunk(r->entry->body, &r->chunk, r->head_bytes + (size_t)r->done,
                          (size_t)(r->length - r->done));
    finish(r);
}

void
tier_stream_start(struct tier_read *r)
{
    r->phase = STREAMING;
    r->until = r->wish.to == UINT64_MAX ? UINT64_MAX : r->wish.to + 1;
    if (is_at_hand(r)) {
        take_all(r);
        return;
    }
    if (r->record.kind == RECORD_WHOLE)
        extent_of_whole(r);
    tier_stream(r);
}
