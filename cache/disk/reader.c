/* cache/disk/reader.c - from a record on disk to an entry.
 *
 * What the page cache has is read at once (preadv2 with RWF_NOWAIT); else one of the pool's threads
 * reads. A small record is read into the chunk that becomes the body's; each of its blocks is
 * judged before anybody sees it, the first time after a start. Later times its row is asked again
 * after the reading: what still lies where it lay has not been written over meanwhile. */
#include "base/check.h"
#include "base/clock.h"
#include "cache/disk/bans.h"
#include "cache/disk/names.h"
#include "cache/disk/read.h"
#include "cache/disk/spool.h"
#include "cache/vary.h"

#define FIRST_BYTES (TIER_WHOLE_MAX + 4096) /* read with the head: most records are whole in it */

static void go_on(struct tier_read *r);

static void
job_done(void *owner)
{
    struct tier_read *r = owner;

    r->in_flight = false;
    go_on(r);
}

/* ---- the end ---- */

void
tier_read_free(struct tier_read *r)
{
    CHECK(!r->in_flight);
    loop_task_cancel(r->reader->loop, &r->again);
    loop_task_cancel(r->reader->loop, &r->room_task);
    if (r->entry) {
        if (body_state(r->entry->body) == BODY_FILLING)
            body_fail(r->entry->body, FAULT_SERVER_INCOMPLETE);
        body_detach_fill(r->entry->body);
        entry_unref(&r->entry);
    }
    list_remove(&r->link);
    chunk_unref(&r->chunk);
    mem_free(r->extent.head);
    mem_free(r->head);
    mem_free(r);
}

static void
forget(struct tier_read *r, const char *why)
{
    tier_forget_row(r, &r->candidates[r->i].row, why);
}

/* ---- searching ---- */

/* Those that hold what is wanted, or its beginning. They are kept. */
static bool
part_will_do(const struct tier_read *r)
{
    const struct record *k = &r->record;

    if (!r->wish.parts || k->part_whole == 0 || record_length(k) > r->wish.keep_bytes)
        return false;
    return k->part_from == 0 ||
           (k->part_from <= r->wish.from && r->wish.to < k->part_from + record_length(k));
}

static bool
varies_right(const struct tier_read *r)
{
    char lent[1024];
    struct arena scratch;
    bool fits;

    if (r->record.vary.n == 0)
        return true;
    arena_init(&scratch, lent, sizeof lent);
    fits = vary_matches(r->record.vary, &r->request->fields, &scratch);
    arena_free(&scratch);
    return fits;
}

static bool
fits(struct tier_read *r)
{
    const struct record *k = &r->record;
    uint64_t digest[2];

    tier_hash(tier_of(r), r->uri, digest);
    if (digest[0] != k->digest[0] || digest[1] != k->digest[1] || !span_eq(r->uri, k->uri) ||
        k->status == 0 || k->kind == RECORD_PIECE ||
        k->generation != atomic_load(&tier_of(r)->generation) || tier_is_banned(tier_of(r), k) ||
        !varies_right(r))
        return false;
    if (k->is_part != r->parts_pass) { /* a whole one is better */
        r->saw_part = r->saw_part || k->is_part;
        return false;
    }
    return !k->is_part || part_will_do(r);
}

/* From the page cache, without a copy: from some length on that is cheaper than memory of our own,
 * and what is so long is a chain. */
static bool
is_sent(const struct tier_read *r)
{
    return r->record.kind == RECORD_CHAIN && !r->record.is_part && r->wish.may_send &&
           tier_of(r)->may_send;
}

static bool
is_kept(const struct tier_read *r)
{
    return r->record.is_part || (r->length <= r->wish.keep_bytes && !is_sent(r));
}

/* What is given of a body that passes: the whole, or from the block of the first wanted byte on. */
static struct part
part_of(const struct tier_read *r)
{
    const struct record *k = &r->record;

    if (k->is_part)
        return (struct part){k->part_from, k->part_whole, k->range};
    if (is_kept(r) || r->wish.from >= r->length)
        return (struct part){.whole = r->length};
    return (struct part){.from = r->wish.from - r->wish.from % RECORD_BLOCK, .whole = r->length};
}

static struct entry *
entry_of(struct tier_read *r)
{
    const struct record *k = &r->record;
    struct head_kept kept = {k->status,        k->reason,           k->block,
                             k->initial_age_s, k->response_wall_ms, k->had_authorization,
                             k->date_given};
    struct head *h = head_revive(&kept, tier_wall_ms(), clock_mono_ms());
    struct part part = part_of(r);
    bool whole = part.from == 0 && !k->is_part;
    struct entry *e;
    struct body *b;

    if (h == NULL)
        return NULL;
    r->done = k->is_part ? 0 : part.from;
    b = body_new(is_kept(r) ? BODY_KEEP : BODY_PASS, r->length - r->done, r->reader->loop,
                 &r->room_task);
    e = entry_new_part(&h, &b, k->vary, r->length - r->done, whole ? NULL : &part);
    e->on_disk = true;
    e->passing = !k->is_part && r->candidates[r->i].row.uses == 0;
    atomic_init(&e->chain, k->kind == RECORD_CHAIN ? k->chain : 0);
    return e;
}

static void
outcome(struct tier_read *r, enum phase phase)
{
    r->phase = phase;
    if (r->told && r->task)
        loop_defer(r->reader->loop, r->task);
}

/* Past the first chunk the head is needed for its sums and its trailer. */
static void
keep_head(struct tier_read *r)
{
    r->head = mem_alloc(r->head_bytes);
    memcpy(r->head, r->chunk->bytes, r->head_bytes);
    (void)record_decode(span_of(r->head, r->head_bytes), &r->record, &r->head_bytes);
}

static void
found(struct tier_read *r)
{
    struct tier *t = tier_of(r);

    r->length = record_length(&r->record);
    r->entry = entry_of(r);
    if (r->entry == NULL) {
        forget(r, "an unreadable head");
        outcome(r, NOTHING);
        return;
    }
    r->sends = is_sent(r);
    keep_head(r);
    atomic_fetch_add(&t->hits, 1);
    outcome(r, FOUND);
}

/* All of the record is at hand. */
static bool
is_at_hand(const struct tier_read *r)
{
    return r->record.kind == RECORD_WHOLE && r->got >= r->head_bytes + r->record.body_bytes;
}

static bool
blocks_are_sound(const struct tier_read *r)
{
    struct span bytes = span_of(r->chunk->bytes + r->head_bytes, (size_t)r->record.body_bytes);

    for (uint64_t i = 0; bytes.n; i++) {
        struct span block = span_first(bytes, bytes.n < RECORD_BLOCK ? bytes.n : RECORD_BLOCK);

        if (!record_block_is_sound(&r->record, i, block))
            return false;
        bytes = span_skip(bytes, block.n);
    }
    return true;
}

/* A row that is gone was removed, or written over, while we read: in neither case is it what is
 * asked for. Else this is a use of it. */
static bool
is_used(const struct tier_read *r)
{
    return directory_touch(tier_of(r)->directory, &r->candidates[r->i].row, tier_now_s());
}

/* Nobody is told of a body that is spoilt in what is at hand. */
static bool
is_sound(struct tier_read *r)
{
    const struct directory_row *row = &r->candidates[r->i].row;

    if (!is_at_hand(r) || row->checked)
        return true;
    if (!blocks_are_sound(r))
        return false;
    directory_check(tier_of(r)->directory, row);
    return true;
}

/* Of a chain the pieces must be there; they give way one by one. */
static bool
is_complete(struct tier_read *r)
{
    if (r->record.kind != RECORD_CHAIN || tier_chain_is_there(r, &r->record))
        return true;
    (void)directory_remove(tier_of(r)->directory, r->candidates[r->i].row.hash,
                           r->candidates[r->i].row.at);
    return false;
}

/* A head that was just being written anew is read once more. */
static bool
read_again(struct tier_read *r)
{
    if (r->again_read || r->error)
        return false;
    r->again_read = true;
    return true;
}

enum judgement { NO, YES, LATER, ONCE_MORE };

/* One candidate's bytes are there. */
static enum judgement
judge(struct tier_read *r)
{
    enum record_result result =
        r->error ? RECORD_BAD
                 : record_decode(span_of(r->chunk->bytes, r->got), &r->record, &r->head_bytes);

    if (r->error)
        atomic_fetch_add(&tier_of(r)->read_faults, 1);
    if (result == RECORD_MORE && r->head_bytes > r->wanted &&
        r->head_bytes <= r->candidates[r->i].row.bytes)
        return tier_fetch(r, r->at, r->head_bytes) ? judge(r) : LATER;
    if (result != RECORD_OK) {
        if (read_again(r))
            return ONCE_MORE;
        forget(r, r->error ? "unreadable bytes" : "no sound record");
    } else if (fits(r) && is_used(r)) {
        if (!is_sound(r))
            forget(r, "a spoilt block");
        else if (is_complete(r)) {
            found(r);
            return YES;
        }
    }
    return NO;
}

static bool
next_candidate(struct tier_read *r)
{
    r->again_read = false;
    if (++r->i < r->n)
        return true;
    if (!r->saw_part || r->parts_pass || !r->wish.parts)
        return false;
    r->parts_pass = true;
    r->i = 0;
    return true;
}

static void
search(struct tier_read *r)
{
    bool at_hand = r->wanted > 0; /* a job has brought it */

    for (;;) {
        const struct directory_row *row = &r->candidates[r->i].row;
        enum judgement j;

        if (!at_hand &&
            !tier_fetch(r, row->at, row->bytes < FIRST_BYTES ? row->bytes : FIRST_BYTES))
            return;
        at_hand = false;
        j = judge(r);
        if (j == YES || j == LATER)
            return;
        if (j == NO && !next_candidate(r))
            break;
    }
    r->i = r->i < r->n ? r->i : 0;
    outcome(r, NOTHING);
}

/* From a job, or from the loop. */
static void
go_on(struct tier_read *r)
{
    switch (r->phase) {
    case SEARCHING:
        search(r);
        return;
    case STREAMING:
        tier_stream_go_on(r);
        return;
    case FOUND:
    case NOTHING:
        return;
    case OVER:
        tier_read_free(r);
        return;
    }
}

static void
again(void *owner)
{
    struct tier_read *r = owner;

    if (r->in_flight)
        return; /* its job comes back */
    if (r->phase == STREAMING)
        tier_stream(r);
    else
        go_on(r);
}

/* ---- the front ---- */

struct tier_reader *
tier_reader_new(struct tiers *t, struct loop *l, void (*loaded)(void *owner, struct entry *e),
                void *owner)
{
    struct tier_reader *reader = mem_zalloc(sizeof *reader);

    reader->tiers = t;
    reader->loop = l;
    reader->loaded = loaded;
    reader->owner = owner;
    list_init(&reader->reads);
    list_init(&reader->spools);
    return reader;
}

/* The loop runs no more: jobs are waited for, and what they would have told it is dropped. */
void
tier_reader_free(struct tier_reader **held)
{
    struct tier_reader *reader = *held;

    *held = NULL;
    if (!reader)
        return;
    if (!list_empty(&reader->reads))
        offload_drain(reader->tiers->readers);
    while (!list_empty(&reader->reads)) {
        struct tier_read *r = LIST_OWNER(reader->reads.next, struct tier_read, link);

        loop_task_cancel(reader->loop, &r->job.done);
        r->in_flight = false;
        tier_read_free(r);
    }
    tier_spools_end(reader);
    mem_free(reader);
}

static unsigned
candidates_of(struct tiers *tiers, struct span uri, struct candidate *out)
{
    unsigned n = 0;

    for (unsigned i = 0; i < tiers->n; i++) {
        struct directory_row rows[ROWS_MAX];
        uint64_t digest[2];
        unsigned found;

        if (!atomic_load(&tiers->at[i]->ready))
            continue;
        tier_hash(tiers->at[i], uri, digest);
        found = directory_find(tiers->at[i]->directory, digest[0], rows, ROWS_MAX - n);
        for (unsigned k = 0; k < found; k++)
            out[n++] = (struct candidate){tiers->at[i], rows[k]};
        if (found == 0)
            atomic_fetch_add(&tiers->at[i]->misses, 1);
    }
    return n;
}

struct tier_read *
tier_read_start(struct tier_reader *reader, struct span uri, const struct request_head *request,
                const struct tier_wish *wish, struct loop_task *task)
{
    struct candidate candidates[ROWS_MAX];
    unsigned n = candidates_of(reader->tiers, uri, candidates);
    struct tier_read *r;

    if (n == 0)
        return NULL;
    r = mem_zalloc(sizeof *r);
    r->reader = reader;
    r->uri = uri;
    r->request = request;
    r->wish = *wish;
    r->task = task;
    memcpy(r->candidates, candidates, n * sizeof *candidates);
    r->n = n;
    r->job.loop = reader->loop;
    loop_task_init(&r->job.done, job_done, r);
    loop_task_init(&r->again, again, r);
    loop_task_init(&r->room_task, again, r);
    list_push_back(&reader->reads, &r->link);
    search(r);
    r->told = true;
    return r;
}

bool
tier_read_is_done(const struct tier_read *r)
{
    return r->phase != SEARCHING;
}

struct entry *
tier_read_entry(struct tier_read *r)
{
    struct tier *t = tier_of(r);

    if (r->entry == NULL || /* or removed since it was found? */
        !directory_holds(t->directory, &r->candidates[r->i].row) || tier_is_banned(t, &r->record))
        return NULL;
    entry_ref(r->entry);
    return r->entry;
}

void
tier_read_release(struct tier_read **held)
{
    struct tier_read *r = *held;

    *held = NULL;
    r->task = NULL;
    r->request = NULL;
    if (r->phase == FOUND)
        tier_stream_start(r);
    else
        tier_read_free(r);
}

void
tier_read_cancel(struct tier_read **held)
{
    struct tier_read *r = *held;

    *held = NULL;
    if (!r)
        return;
    r->task = NULL;
    if (r->in_flight) { /* its job comes back to `go_on` */
        r->phase = OVER;
        return;
    }
    tier_read_free(r);
}
