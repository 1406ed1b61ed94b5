/* cache/tier_log.c - one file, written round and round.
 *
 * Records are appended by the tier's own thread, small ones together. Before a region is written
 * over, its rows leave the directory; those that were used since they were written are read and
 * appended again. A reader that still holds such a row finds other bytes there: what it reads is
 * judged by its own checksums and its URI, never by where it was found.
 *
 * A fault in writing costs the batch and a pause; reading goes on. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "cache/tier_private.h"

#define HEADER_MAGIC "CUTTLE-D"
#define PENDING_MAX (64u << 20)
#define REGION_MIN (256u << 10)
#define REGION_MAX (16u << 20)
#define PAUSE_MS 1000
#define TELL_MS 10000

/* ---- small things ---- */

void
tier_hash(const struct tier *t, struct span uri, uint64_t digest[2])
{
    XXH128_hash_t h = XXH3_128bits_withSeed(uri.at, uri.n, t->seed);

    digest[0] = h.low64;
    digest[1] = h.high64;
}

/* Two that would stand for the same request in the store have the same tag. Parts are apart. */
uint32_t
tier_tag(struct span vary, const struct part *part)
{
    uint64_t h = XXH3_64bits(vary.at, vary.n);

    if (part)
        h = XXH3_64bits_withSeed(part->range.at, part->range.n, h ^ part->from ^ ~part->whole);
    return (uint32_t)(h >> 40);
}

/* The clock of a loop's turn is not for other threads. */
int64_t
tier_wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

uint32_t
tier_now_s(void)
{
    return (uint32_t)(tier_wall_ms() / 1000) & INT32_MAX;
}

bool
disk_read_at(int fd, uint64_t at, char *to, size_t n_bytes)
{
    while (n_bytes) {
        ssize_t got = pread(fd, to, n_bytes, (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        at += (uint64_t)got;
        n_bytes -= (size_t)got;
    }
    return true;
}

bool
disk_write_at(int fd, uint64_t at, const char *from, size_t n_bytes)
{
    while (n_bytes) {
        ssize_t put = pwrite(fd, from, n_bytes, (off_t)at);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        from += put;
        at += (uint64_t)put;
        n_bytes -= (size_t)put;
    }
    return true;
}

/* ---- the writer ---- */

static void
write_failed(struct tier *t, const char *what)
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

/* The batch lies before `at`. Only what has been written can be found. */
static void
flush(struct tier *t)
{
    bool written =
        t->batch_n == 0 || disk_write_at(t->fd, t->at - t->batch_n, t->batch, t->batch_n);

    if (written)
        atomic_fetch_add(&t->written, t->batch_n);
    else
        write_failed(t, "writing");
    for (unsigned i = 0; written && i < t->n_rows; i++)
        directory_put(t->directory, &t->rows[i]);
    t->n_rows = 0;
    t->batch_n = 0;
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

/* Bytes go into the batch, large runs past it. */
static void
emit(struct tier *t, const char *bytes, size_t n)
{
    while (n) {
        size_t room = TIER_BATCH - t->batch_n, some = n < room ? n : room;

        memcpy(t->batch + t->batch_n, bytes, some);
        t->batch_n += some;
        t->at += some;
        bytes += some;
        n -= some;
        if (t->batch_n == TIER_BATCH)
            flush(t);
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
    moved.used = false;
    emit(t, head, head_bytes);
    emit(t, bytes.at + head_bytes, bytes.n - head_bytes);
    if (atomic_load(&t->write_faults) == faults)
        row_add(t, &moved);
    atomic_fetch_add(&t->carried, row->bytes);
    mem_free(head);
    mem_free(sums);
}

/* The most recently used of them, up to half a region. They are read before anything is written
 * where they lie. */
static void
carry_forward(struct tier *t, struct kept *k)
{
    uint64_t room = t->region / 2, total = 0;
    size_t n = 0;
    char *bytes, *to;

    if (k->n)
        qsort(k->rows, k->n, sizeof *k->rows, later_used_first);
    while (n < k->n && total + k->rows[n].bytes <= room)
        total += k->rows[n++].bytes;
    if (total == 0)
        return;
    to = bytes = mem_alloc(total);
    for (size_t i = 0; i < n; i++) {
        if (!disk_read_at(t->fd, k->rows[i].at, to, k->rows[i].bytes))
            k->rows[i].bytes = 0;
        to += k->rows[i].bytes;
    }
    to = bytes;
    for (size_t i = 0; i < n; i++) {
        if (k->rows[i].bytes)
            carry(t, &k->rows[i], span_of(to, k->rows[i].bytes));
        to += k->rows[i].bytes;
    }
    mem_free(bytes);
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

/* The next region behind what is free becomes free. */
static void
reclaim(struct tier *t)
{
    struct kept k = {.since_s = half_a_round_ago(t)};
    uint64_t end = t->reclaimed + t->region;

    if (end > t->bytes)
        end = t->bytes;
    directory_take_range(t->directory, t->reclaimed, end, keep_row, &k);
    t->reclaimed = end;
    t->marks_s[mark_of(t, t->at)] = tier_now_s();
    carry_forward(t, &k);
    mem_free(k.rows);
}

/* Room for n_bytes in one piece at `at`. */
static bool
reserve(struct tier *t, uint64_t n_bytes)
{
    if (n_bytes > (t->bytes - TIER_BASE) / 4)
        return false;
    for (;;) {
        if (t->at + n_bytes > t->bytes) {
            flush(t);
            t->at = t->reclaimed = TIER_BASE;
        }
        if (t->at + n_bytes <= t->reclaimed)
            return true;
        if (t->reclaimed < t->bytes)
            reclaim(t);
    }
}

static void
body_sums(const struct body *b, uint64_t n_bytes, uint64_t *sums)
{
    char *block = mem_alloc(RECORD_BLOCK);

    for (uint64_t at = 0; at < n_bytes; at += RECORD_BLOCK) {
        size_t n = n_bytes - at < RECORD_BLOCK ? (size_t)(n_bytes - at) : RECORD_BLOCK;

        body_copy_out(b, at, block, n);
        sums[at / RECORD_BLOCK] = record_sum(span_of(block, n));
    }
    mem_free(block);
}

static void
emit_body(struct tier *t, const struct body *b, uint64_t n_bytes)
{
    for (uint64_t at = 0; at < n_bytes;) {
        size_t room = TIER_BATCH - t->batch_n;
        size_t n = n_bytes - at < room ? (size_t)(n_bytes - at) : room;

        body_copy_out(b, at, t->batch + t->batch_n, n);
        t->batch_n += n;
        t->at += n;
        at += n;
        if (t->batch_n == TIER_BATCH)
            flush(t);
    }
    emit_padding(t);
}

static struct record
record_of(const struct tier *t, struct span uri, const struct entry *e)
{
    const struct head *h = e->head;
    int64_t age_ms = clock_exact_mono_ns() / 1000000 - h->response_ms;
    struct record r = {
        .generation = atomic_load(&t->generation),
        .sequence = t->sequence + 1,
        .status = h->status,
        .response_wall_ms = tier_wall_ms() - (age_ms > 0 ? age_ms : 0),
        .initial_age_s = h->initial_age_s,
        .had_authorization = h->had_authorization,
        .date_given = h->date_given,
        .body_bytes = body_published(e->body),
        .uri = uri,
        .vary = e->vary,
        .reason = h->reason,
        .block = h->block,
        .trailer = body_trailer(e->body),
    };

    if (e->part) {
        r.is_part = true;
        r.part_from = e->part->from;
        r.part_whole = e->part->whole;
        r.range = e->part->range;
    }
    tier_hash(t, uri, r.digest);
    return r;
}

static void
append(struct tier *t, const struct record *r, const struct entry *e)
{
    struct directory_row row = {.hash = r->digest[0],
                                .at = t->at,
                                .bytes = record_bytes(r),
                                .tag = tier_tag(e->vary, e->part),
                                .used_s = tier_now_s()};
    uint64_t *sums = mem_alloc((record_blocks(r->body_bytes) + 1) * sizeof *sums);
    uint64_t faults = atomic_load(&t->write_faults);
    size_t head_bytes = record_head_bytes(r);
    char *head = mem_alloc(head_bytes);

    body_sums(e->body, r->body_bytes, sums);
    record_encode(r, sums, head);
    emit(t, head, head_bytes);
    emit_body(t, e->body, r->body_bytes);
    if (atomic_load(&t->write_faults) == faults)
        row_add(t, &row);
    t->sequence++;
    mem_free(head);
    mem_free(sums);
}

/* ---- jobs ---- */

enum what { PUT, TOMBSTONE, CLEAR, SYNC, REBUILD };

struct job {
    struct offload_job job;
    struct tier *tier;
    enum what what;
    struct entry *entry;
    uint64_t bytes, generation; /* when it was asked for */
    uint64_t hash[2];
    size_t uri_n;
    char uri[];
};

static void
job_put(struct job *j)
{
    struct tier *t = j->tier;
    struct record r = record_of(t, span_of(j->uri, j->uri_n), j->entry);

    if (r.generation != j->generation) /* everything was cleared since */
        return;
    if (is_paused(t) || !reserve(t, record_bytes(&r))) {
        atomic_fetch_add(&t->dropped, 1);
        return;
    }
    r.sequence = t->sequence + 1;
    append(t, &r, j->entry);
    atomic_fetch_add(&t->puts, 1);
    atomic_fetch_add(&t->admitted, record_bytes(&r));
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

static bool
header_write(struct tier *t)
{
    struct tier_header h = {.version = RECORD_VERSION,
                            .bytes = t->bytes,
                            .seed = t->seed,
                            .generation = atomic_load(&t->generation)};

    memcpy(h.magic, HEADER_MAGIC, sizeof h.magic);
    h.sum = XXH3_64bits(&h, offsetof(struct tier_header, sum));
    return disk_write_at(t->fd, 0, (const char *)&h, sizeof h) && fdatasync(t->fd) == 0;
}

static void
job_clear(struct job *j)
{
    struct tier *t = j->tier;

    t->n_rows = 0;
    directory_clear(t->directory);
    if (!header_write(t))
        write_failed(t, "clearing");
}

static void
job_work(struct offload_job *job)
{
    struct job *j = LIST_OWNER(job, struct job, job);
    struct tier *t = j->tier;

    switch (j->what) {
    case PUT:
        job_put(j);
        break;
    case TOMBSTONE:
        tier_tombstone(t, j->hash);
        break;
    case CLEAR:
        job_clear(j);
        break;
    case REBUILD:
        tier_rebuild(t);
        break;
    case SYNC:
        break;
    }
    if (j->entry)
        entry_unref(&j->entry);
    atomic_fetch_sub(&t->pending_bytes, j->bytes);
    if (atomic_fetch_sub(&t->pending_jobs, 1) == 1) /* nothing more comes at once */
        flush(t);
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

static bool
wants(const struct tier *t, const struct entry *e)
{
    uint64_t n = body_published(e->body);

    return !t->options.read_only && n >= t->options.min_bytes &&
           (t->options.max_bytes == 0 || n <= t->options.max_bytes) &&
           n < (t->bytes - TIER_BASE) / 4;
}

/* ---- all tiers ---- */

/* The one with the most room of those that take it; by the key, so that it is the same again. */
static struct tier *
tier_for(struct tiers *tiers, struct span uri, const struct entry *e)
{
    uint64_t total = 0, draw = XXH3_64bits(uri.at, uri.n);

    for (unsigned i = 0; i < tiers->n; i++)
        total += wants(tiers->at[i], e) ? tiers->at[i]->bytes >> 20 : 0;
    if (total == 0)
        return NULL;
    draw %= total;
    for (unsigned i = 0; i < tiers->n; i++) {
        uint64_t share = wants(tiers->at[i], e) ? tiers->at[i]->bytes >> 20 : 0;

        if (draw < share)
            return tiers->at[i];
        draw -= share;
    }
    return NULL;
}

/* An older version must not outlive one that was not written. */
static void
forget_key(struct tier *t, struct span uri)
{
    uint64_t digest[2];

    tier_hash(t, uri, digest);
    (void)directory_remove_all(t->directory, digest[0]);
}

void
tiers_put(struct tiers *tiers, struct span uri, struct entry *e)
{
    struct tier *t = tier_for(tiers, uri, e);
    struct job *j;

    if (t == NULL)
        return;
    if (atomic_load(&t->pending_bytes) > PENDING_MAX) { /* the disk is slower than the traffic */
        atomic_fetch_add(&t->dropped, 1);
        forget_key(t, uri);
        return;
    }
    j = job_new(t, PUT, uri);
    entry_ref(e);
    j->entry = e;
    j->bytes = body_published(e->body) + e->head->bytes;
    job_submit(j);
}

void
tiers_used(struct tiers *tiers, struct span uri, struct entry *e)
{
    uint32_t tag = tier_tag(e->vary, e->part);

    if (body_state(e->body) != BODY_COMPLETE)
        return;
    for (unsigned i = 0; i < tiers->n; i++) {
        struct directory_row rows[16];
        uint64_t digest[2];
        unsigned n;

        tier_hash(tiers->at[i], uri, digest);
        n = directory_find(tiers->at[i]->directory, digest[0], rows, 16);
        for (unsigned k = 0; k < n; k++)
            if (rows[k].tag == tag) {
                directory_touch(tiers->at[i]->directory, &rows[k], tier_now_s());
                return;
            }
    }
    tiers_put(tiers, uri, e);
}

/* Its rows are not there yet: the rebuild takes them out at its end. false: it has ended. */
static bool
note_early(struct tier *t, const uint64_t hash[2])
{
    bool early;

    pthread_mutex_lock(&t->early_lock);
    early = !atomic_load(&t->ready);
    if (early && t->n_early == t->early_room) {
        t->early_room = t->early_room ? t->early_room * 2 : 64;
        t->early = mem_realloc(t->early, t->early_room * sizeof *t->early);
    }
    if (early)
        memcpy(t->early[t->n_early++], hash, sizeof *t->early);
    pthread_mutex_unlock(&t->early_lock);
    return early;
}

void
tiers_remove(struct tiers *tiers, struct span uri)
{
    for (unsigned i = 0; i < tiers->n; i++) {
        struct tier *t = tiers->at[i];
        uint64_t hash[2];
        struct job *j;

        tier_hash(t, uri, hash);
        if (note_early(t, hash))
            continue;
        (void)directory_remove_all(t->directory, hash[0]);
        j = job_new(t, TOMBSTONE, SPAN_NONE);
        memcpy(j->hash, hash, sizeof hash);
        job_submit(j);
    }
}

void
tiers_clear(struct tiers *tiers)
{
    for (unsigned i = 0; i < tiers->n; i++) {
        atomic_fetch_add(&tiers->at[i]->generation, 1); /* as good as a new one */
        directory_clear(tiers->at[i]->directory);
        job_submit(job_new(tiers->at[i], CLEAR, SPAN_NONE));
    }
}

bool
tiers_have(struct tiers *tiers, struct span uri)
{
    for (unsigned i = 0; i < tiers->n; i++) {
        struct directory_row row;
        uint64_t digest[2];

        tier_hash(tiers->at[i], uri, digest);
        if (!atomic_load(&tiers->at[i]->ready) ||
            directory_find(tiers->at[i]->directory, digest[0], &row, 1))
            return true;
    }
    return false;
}

void
tiers_sync(struct tiers *tiers)
{
    for (unsigned i = 0; i < tiers->n; i++) {
        job_submit(job_new(tiers->at[i], SYNC, SPAN_NONE));
        offload_drain(tiers->at[i]->writer);
    }
}

unsigned
tiers_count(const struct tiers *tiers)
{
    return tiers ? tiers->n : 0;
}

void
tiers_stats(struct tiers *tiers, unsigned i, struct tier_stats *out)
{
    struct tier *t = tiers->at[i];

    *out = (struct tier_stats){
        .path = t->path,
        .bytes = t->bytes,
        .objects = directory_count(t->directory),
        .live_bytes = directory_live_bytes(t->directory),
        .directory_bytes = directory_memory(t->directory),
        .puts = atomic_load(&t->puts),
        .dropped = atomic_load(&t->dropped),
        .written = atomic_load(&t->written),
        .carried = atomic_load(&t->carried),
        .admitted = atomic_load(&t->admitted),
        .hits = atomic_load(&t->hits),
        .misses = atomic_load(&t->misses),
        .read_faults = atomic_load(&t->read_faults),
        .write_faults = atomic_load(&t->write_faults),
        .bad_records = atomic_load(&t->bad_records),
        .ready = atomic_load(&t->ready),
    };
}

/* ---- opening and closing ---- */

static bool
header_read(struct tier *t)
{
    struct tier_header h;

    if (!disk_read_at(t->fd, 0, (char *)&h, sizeof h) ||
        memcmp(h.magic, HEADER_MAGIC, sizeof h.magic) != 0 ||
        h.sum != XXH3_64bits(&h, offsetof(struct tier_header, sum)))
        return false;
    if (h.version != RECORD_VERSION || h.bytes != t->bytes) {
        log_event(LOG_WARN, "cache_dir %s: made for another %s; it starts empty", t->path,
                  h.bytes != t->bytes ? "size" : "version");
        return false;
    }
    t->seed = h.seed;
    atomic_store(&t->generation, h.generation);
    return true;
}

/* A new store has a seed and a generation that no record of an older one has, and that nobody can
 * guess who would like to be found inside of a body. */
static bool
header_make(struct tier *t)
{
    uint64_t generation;

    if (getrandom(&t->seed, sizeof t->seed, 0) != sizeof t->seed ||
        getrandom(&generation, sizeof generation, 0) != sizeof generation)
        return false;
    atomic_store(&t->generation, generation);
    t->made = true;
    return ftruncate(t->fd, (off_t)t->bytes) == 0 && header_write(t);
}

static const char *
tier_open_file(struct tier *t)
{
    (void)mkdir(t->path, 0750);
    t->folder = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->folder < 0)
        return strerror(errno);
    t->fd = openat(t->folder, "cuttle.store", O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (t->fd < 0)
        return strerror(errno);
    if (flock(t->fd, LOCK_EX | LOCK_NB) != 0)
        return "another process uses it";
    if (!header_read(t) && !header_make(t))
        return strerror(errno);
    if (ftruncate(t->fd, (off_t)t->bytes) != 0)
        return strerror(errno);
    fds_adopt(t->fd, FD_DISK);
    fds_adopt(t->folder, FD_DISK);
    return NULL;
}

static uint64_t
region_of(uint64_t bytes)
{
    uint64_t region = bytes / 32;

    region = region < REGION_MIN ? REGION_MIN : region > REGION_MAX ? REGION_MAX : region;
    return region - region % RECORD_ALIGN;
}

static void
tier_free(struct tier *t)
{
    if (t->writer)
        offload_free(&t->writer);
    directory_free(&t->directory);
    pthread_mutex_destroy(&t->early_lock);
    mem_free(t->early);
    mem_free(t->rows);
    mem_free(t->batch);
    mem_free(t->path);
    FREE_OBJ(t);
}

static struct tier *
tier_new(const struct tier_options *o)
{
    struct tier *t = mem_zalloc(sizeof *t);

    t->magic = TIER_MAGIC;
    t->options = *o;
    t->path = mem_strdup(o->path);
    t->options.path = t->path;
    t->bytes = o->bytes - o->bytes % RECORD_ALIGN;
    t->region = region_of(t->bytes);
    t->fd = t->folder = -1;
    t->directory = directory_new();
    t->batch = mem_alloc(TIER_BATCH);
    t->at = t->reclaimed = TIER_BASE;
    pthread_mutex_init(&t->early_lock, NULL);
    return t;
}

struct tiers *
tiers_new(void)
{
    struct tiers *tiers = mem_zalloc(sizeof *tiers);

    tiers->readers = offload_new("disk", READ_THREADS);
    return tiers;
}

bool
tiers_add(struct tiers *tiers, const struct tier_options *o, char *why, size_t why_bytes)
{
    struct tier *t;
    const char *fault;

    if (tiers->n == TIERS_MAX) {
        snprintf(why, why_bytes, "more than %d", TIERS_MAX);
        return false;
    }
    t = tier_new(o);
    fault = tier_open_file(t);
    if (fault) {
        snprintf(why, why_bytes, "%s", fault);
        if (t->fd >= 0)
            (void)close(t->fd);
        if (t->folder >= 0)
            (void)close(t->folder);
        tier_free(t);
        return false;
    }
    t->writer = offload_new("disk writer", 1);
    tiers->at[tiers->n++] = t;
    job_submit(job_new(t, REBUILD, SPAN_NONE));
    return true;
}

void
tiers_close(struct tiers **held)
{
    struct tiers *tiers = *held;

    *held = NULL;
    if (!tiers)
        return;
    tiers_sync(tiers);
    offload_free(&tiers->readers);
    for (unsigned i = 0; i < tiers->n; i++) {
        struct tier *t = tiers->at[i];

        tier_snapshot(t);
        fds_close(t->fd);
        fds_close(t->folder);
        tier_free(t);
    }
    mem_free(tiers);
}
