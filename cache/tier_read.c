/* cache/tier_read.c - from a record on disk to an entry, and its body as it is asked for.
 *
 * What the page cache has is read at once (preadv2 with RWF_NOWAIT); else one of the pool's threads
 * reads. A read belongs to one loop: only its job runs elsewhere, and while that is under way
 * nothing else of the read is touched. Each block of the body is judged before anybody sees it. */
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/tier_private.h"
#include "cache/vary.h"

#define FIRST_BYTES (128u * 1024) /* read with the head: small records are whole in it */
#define PIECE (4u * RECORD_BLOCK) /* of a body, later */
#define ROWS_MAX 16
#define PIECES_A_TURN 4
#define TELL_MS 10000

struct tier_reader {
    struct tiers *tiers;
    struct loop *loop;
    struct list reads; /* all */
    void (*loaded)(void *owner, struct entry *e);
    void *owner;
};

enum phase { SEARCHING, FOUND, NOTHING, STREAMING, OVER };

struct candidate {
    struct tier *tier;
    struct directory_row row;
};

struct tier_read {
    struct list link;
    struct tier_reader *reader;
    enum phase phase;
    /* the question; borrowed until the outcome is there */
    struct span uri;
    const struct request_head *request;
    uint64_t keep_bytes, from;
    struct loop_task *task; /* NULL: nobody asks any more */
    struct candidate candidates[ROWS_MAX];
    unsigned n, i;
    /* the bytes */
    struct offload_job job;
    bool in_flight, told;
    char *bytes;
    size_t room, wanted, got; /* of bytes */
    uint64_t at;              /* in the file */
    int error;
    struct loop_task again, room_task; /* goes on; there is room in the body */
    /* the outcome */
    struct record record; /* borrows from head */
    char *head;
    struct entry *entry;
    uint64_t body_at, done; /* where the body lies; how much of it has been passed on */
    uint64_t judged;        /* of the body's bytes that came with the head */
};

static void go_on(struct tier_read *r);

static struct tier *
tier_of(const struct tier_read *r)
{
    return r->candidates[r->i].tier;
}

/* ---- getting bytes ---- */

static void
job_read(struct offload_job *job)
{
    struct tier_read *r = LIST_OWNER(job, struct tier_read, job);

    while (r->got < r->wanted) {
        ssize_t n =
            pread(tier_of(r)->fd, r->bytes + r->got, r->wanted - r->got, (off_t)(r->at + r->got));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            r->error = n < 0 ? errno : EIO;
            return;
        }
        r->got += (size_t)n;
    }
}

/* What is in memory already. true: that is all of it. */
static bool
read_at_once(struct tier_read *r)
{
    while (r->got < r->wanted) {
        struct iovec v = {r->bytes + r->got, r->wanted - r->got};
        ssize_t n = preadv2(tier_of(r)->fd, &v, 1, (off_t)(r->at + r->got), RWF_NOWAIT);

        if (n <= 0)
            return false;
        r->got += (size_t)n;
    }
    return true;
}

static void
job_done(void *owner)
{
    struct tier_read *r = owner;

    r->in_flight = false;
    go_on(r);
}

/* true: they are there. false: they come later. */
static bool
fetch(struct tier_read *r, uint64_t at, size_t n_bytes)
{
    if (r->room < n_bytes) {
        mem_free(r->bytes);
        r->bytes = mem_alloc(n_bytes);
        r->room = n_bytes;
    }
    r->at = at;
    r->wanted = n_bytes;
    r->got = 0;
    r->error = 0;
    if (read_at_once(r))
        return true;
    r->in_flight = true;
    offload_submit(r->reader->tiers->readers, &r->job);
    return false;
}

/* ---- the end ---- */

static void
read_free(struct tier_read *r)
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
    mem_free(r->bytes);
    mem_free(r->head);
    mem_free(r);
}

/* The record is not what its row promised: written over, or spoilt. */
static void
forget_row(struct tier_read *r, const char *why)
{
    struct tier *t = tier_of(r);

    if (directory_remove(t->directory, r->candidates[r->i].row.hash, r->candidates[r->i].row.at)) {
        atomic_fetch_add(&t->bad_records, 1);
        log_event_every(TELL_MS, LOG_WARN, "cache_dir %s: %s at %llu; the object is dropped",
                        t->path, why, (unsigned long long)r->candidates[r->i].row.at);
    }
}

/* ---- searching ---- */

static bool
fits(const struct tier_read *r)
{
    char lent[1024];
    struct arena scratch;
    uint64_t digest[2];
    bool fits;

    tier_hash(tier_of(r), r->uri, digest);
    if (digest[0] != r->record.digest[0] || digest[1] != r->record.digest[1] ||
        !span_eq(r->uri, r->record.uri) || r->record.status == 0 ||
        r->record.generation != atomic_load(&tier_of(r)->generation))
        return false;
    if (r->record.is_part) /* parts live in memory only */
        return false;
    if (r->record.vary.n == 0)
        return true;
    arena_init(&scratch, lent, sizeof lent);
    fits = vary_matches(r->record.vary, &r->request->fields, &scratch);
    arena_free(&scratch);
    return fits;
}

static struct entry *
entry_of(struct tier_read *r)
{
    const struct record *k = &r->record;
    struct head_kept kept = {k->status,        k->reason,           k->block,
                             k->initial_age_s, k->response_wall_ms, k->had_authorization,
                             k->date_given};
    struct head *h = head_revive(&kept, tier_wall_ms(), clock_mono_ms());
    bool keep = k->body_bytes <= r->keep_bytes;
    struct part part = {.from = r->from - r->from % RECORD_BLOCK, .whole = k->body_bytes};
    struct entry *e;
    struct body *b;

    if (h == NULL)
        return NULL;
    if (keep || part.from >= k->body_bytes)
        part.from = 0;
    r->done = part.from;
    b = body_new(keep ? BODY_KEEP : BODY_PASS, k->body_bytes - part.from, r->reader->loop,
                 &r->room_task);
    e = entry_new_part(&h, &b, k->vary, k->body_bytes - part.from, part.from ? &part : NULL);
    e->on_disk = true;
    return e;
}

static void
outcome(struct tier_read *r, enum phase phase)
{
    r->phase = phase;
    if (r->told && r->task)
        loop_defer(r->reader->loop, r->task);
}

/* The body bytes that came with the head go first. */
static void
found(struct tier_read *r, size_t head_bytes)
{
    struct tier *t = tier_of(r);

    r->head = mem_alloc(head_bytes);
    memcpy(r->head, r->bytes, head_bytes);
    (void)record_decode(span_of(r->head, head_bytes), &r->record, &head_bytes);
    r->entry = entry_of(r);
    if (r->entry == NULL) {
        mem_free(r->head);
        r->head = NULL;
        forget_row(r, "an unreadable head");
        outcome(r, NOTHING);
        return;
    }
    r->body_at = r->candidates[r->i].row.at + head_bytes;
    directory_touch(t->directory, &r->candidates[r->i].row, tier_now_s());
    atomic_fetch_add(&t->hits, 1);
    outcome(r, FOUND);
}

/* The blocks that came with the head: of a small body all, so that nobody is told of a spoilt one.
 */
static bool
blocks_at_hand_are_sound(struct tier_read *r, struct span bytes)
{
    r->judged = 0;
    for (uint64_t at = 0; at < r->record.body_bytes; at += RECORD_BLOCK) {
        uint64_t left = r->record.body_bytes - at;
        size_t block = left < RECORD_BLOCK ? (size_t)left : RECORD_BLOCK;

        if (bytes.n < block)
            break;
        if (!record_block_is_sound(&r->record, at / RECORD_BLOCK, span_first(bytes, block)))
            return false;
        r->judged = at + block;
        bytes = span_skip(bytes, block);
    }
    return true;
}

/* One candidate's bytes are there. true: it is decided. */
static bool
judge(struct tier_read *r)
{
    size_t head_bytes;
    enum record_result result =
        r->error ? RECORD_BAD : record_decode(span_of(r->bytes, r->got), &r->record, &head_bytes);

    if (r->error)
        atomic_fetch_add(&tier_of(r)->read_faults, 1);
    if (result == RECORD_MORE && head_bytes > r->wanted &&
        head_bytes <= r->candidates[r->i].row.bytes) {
        if (!fetch(r, r->at, head_bytes))
            return true; /* comes back later */
        return judge(r);
    }
    if (result != RECORD_OK)
        forget_row(r, r->error ? "unreadable bytes" : "no sound record");
    else if (!blocks_at_hand_are_sound(r, span_skip(span_of(r->bytes, r->got), head_bytes)))
        forget_row(r, "a spoilt block");
    else if (fits(r)) {
        found(r, head_bytes);
        return true;
    }
    r->i++;
    return false;
}

static void
search(struct tier_read *r)
{
    if (r->wanted && judge(r))
        return;
    for (; r->i < r->n;) {
        const struct directory_row *row = &r->candidates[r->i].row;

        if (!fetch(r, row->at, row->bytes < FIRST_BYTES ? row->bytes : FIRST_BYTES))
            return;
        if (judge(r))
            return;
    }
    outcome(r, NOTHING);
}

/* ---- the body ---- */

/* Whole blocks of what is at hand, each judged first. false: one is spoilt. */
static bool
pass_on(struct tier_read *r, struct span bytes)
{
    uint64_t length = r->record.body_bytes;

    while (r->done < length && bytes.n) {
        uint64_t left = length - r->done;
        size_t block = left < RECORD_BLOCK ? (size_t)left : RECORD_BLOCK;

        if (bytes.n < block)
            return true;
        if (r->done >= r->judged &&
            !record_block_is_sound(&r->record, r->done / RECORD_BLOCK, span_first(bytes, block)))
            return false;
        body_append(r->entry->body, span_first(bytes, block));
        r->done += block;
        bytes = span_skip(bytes, block);
    }
    return true;
}

static void
stop(struct tier_read *r)
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

static size_t
next_piece(const struct tier_read *r)
{
    uint64_t left = r->record.body_bytes - r->done;

    return left < PIECE ? (size_t)left : PIECE;
}

/* What has come is for the body; then on, as long as somebody wants more. */
static bool
take_piece(struct tier_read *r)
{
    if (r->error || !pass_on(r, span_of(r->bytes, r->got))) {
        atomic_fetch_add(&tier_of(r)->read_faults, r->error != 0);
        forget_row(r, r->error ? "unreadable bytes" : "a spoilt block");
        stop(r);
        return false;
    }
    return true;
}

static bool
is_unwanted(const struct tier_read *r)
{
    return body_mode(r->entry->body) == BODY_PASS && body_readers(r->entry->body) == 0;
}

static void
stream(struct tier_read *r)
{
    for (int i = 0; i < PIECES_A_TURN; i++) {
        if (r->done == r->record.body_bytes) {
            finish(r);
            return;
        }
        if (is_unwanted(r)) {
            stop(r);
            return;
        }
        if (!body_wants(r->entry->body))
            return; /* room_task comes */
        if (!fetch(r, r->body_at + r->done, next_piece(r)))
            return;
        if (!take_piece(r))
            return;
    }
    loop_defer(r->reader->loop, &r->again);
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
        if (take_piece(r))
            stream(r);
        return;
    case FOUND:
    case NOTHING:
        return;
    case OVER:
        read_free(r);
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
        stream(r);
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
        read_free(r);
    }
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
                uint64_t keep_bytes, uint64_t from, struct loop_task *task)
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
    r->keep_bytes = keep_bytes;
    r->from = from;
    r->task = task;
    memcpy(r->candidates, candidates, n * sizeof *candidates);
    r->n = n;
    r->job.work = job_read;
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

static void
start_streaming(struct tier_read *r)
{
    size_t head_bytes = (size_t)(r->body_at - r->candidates[r->i].row.at);

    r->phase = STREAMING;
    if (r->done == 0 && r->got > head_bytes &&
        !pass_on(r, span_skip(span_of(r->bytes, r->got), head_bytes))) {
        forget_row(r, "a spoilt block");
        stop(r);
        return;
    }
    stream(r);
}

struct entry *
tier_read_entry(struct tier_read *r)
{
    if (r->entry)
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
        start_streaming(r);
    else
        read_free(r);
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
    read_free(r);
}
