/* cache/disk/front.c - one file, written round and round: opening and closing it, and the front
 * that gives its writer (cache/disk/writer.c) work. */
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
#include "cache/disk/ring.h"

#define HEADER_MAGIC "CUTTLE-D"
#define WRITER_LINGERS_MS 5
#define REGION_MIN (256u << 10)
#define REGION_MAX (16u << 20)

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

/* Of a piece, that nobody asks for by a name. */
void
tier_piece_hash(const struct tier *t, uint64_t chain, uint64_t at, uint64_t digest[2])
{
    uint64_t name[2] = {chain, at};

    tier_hash(t, span_of((const char *)name, sizeof name), digest);
}

uint64_t
tier_chain_new(void)
{
    static _Atomic uint64_t given;
    uint64_t random = 0;

    (void)!getrandom(&random, sizeof random, GRND_NONBLOCK);
    random = (random ^ atomic_fetch_add(&given, 1) ^ (uint64_t)tier_wall_ms() << 20);
    return random ? random : 1;
}

/* What passes from the disk from somewhere on is the whole there. */
const struct part *
tier_part_of(const struct entry *e)
{
    return body_mode(e->body) == BODY_PASS ? NULL : e->part;
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

/* ---- jobs ---- */

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

    for (unsigned i = 0; i < t->n_rings; i++)
        t->rings[i].n_rows = 0;
    directory_clear(t->directory);
    if (!header_write(t))
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
        tier_piece_give(t, j->piece);
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

/* A chain at most takes half of the file. */
bool
tier_wants(const struct tier *t, uint64_t body_bytes)
{
    return !t->options.read_only && body_bytes >= t->options.min_bytes &&
           (t->options.max_bytes == 0 || body_bytes <= t->options.max_bytes) &&
           body_bytes < (t->bytes - TIER_BASE) / 2;
}

char *
tier_piece_take(struct tier *t)
{
    char *bytes = NULL;

    pthread_mutex_lock(&t->spare_lock);
    if (t->n_spare)
        bytes = t->spare[--t->n_spare];
    pthread_mutex_unlock(&t->spare_lock);
    return bytes ? bytes : mem_alloc(t->piece);
}

void
tier_piece_give(struct tier *t, char *bytes)
{
    pthread_mutex_lock(&t->spare_lock);
    if (t->n_spare < TIER_SPARE) {
        t->spare[t->n_spare++] = bytes;
        bytes = NULL;
    }
    pthread_mutex_unlock(&t->spare_lock);
    mem_free(bytes);
}

/* ---- all tiers ---- */

/* The one with the most room of those that take it; by the key, so that it is the same again. */
struct tier *
tier_choose(struct tiers *tiers, struct span uri, uint64_t body_bytes)
{
    uint64_t total = 0, draw = XXH3_64bits(uri.at, uri.n);

    for (unsigned i = 0; i < tiers->n; i++)
        total += tier_wants(tiers->at[i], body_bytes) ? tiers->at[i]->bytes >> 20 : 0;
    if (total == 0)
        return NULL;
    draw %= total;
    for (unsigned i = 0; i < tiers->n; i++) {
        uint64_t share = tier_wants(tiers->at[i], body_bytes) ? tiers->at[i]->bytes >> 20 : 0;

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
tiers_put(struct tiers *tiers, struct span uri, struct entry *e)
{
    struct tier *t = tier_choose(tiers, uri, body_published(e->body));

    if (t == NULL)
        return;
    if (atomic_load(&t->pending_bytes) > TIER_PENDING_MAX) { /* slower than the traffic */
        atomic_fetch_add(&t->dropped, 1);
        forget_key(t, uri);
        return;
    }
    entry_job(t, PUT, uri, e, 0);
}

void
tier_put_piece(struct tier *t, uint64_t chain, uint64_t at, char *bytes, size_t n_bytes)
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
tier_put_chain(struct tier *t, struct span uri, struct entry *e, uint64_t chain)
{
    entry_job(t, CHAIN, uri, e, chain);
}

/* The tier and the row of this variant. NULL: none has it. */
static struct tier *
tier_with(struct tiers *tiers, struct span uri, const struct entry *e, struct directory_row *row)
{
    uint32_t tag = tier_tag(e->vary, tier_part_of(e));

    for (unsigned i = 0; i < tiers->n; i++) {
        struct directory_row rows[16];
        uint64_t digest[2];
        unsigned n;

        tier_hash(tiers->at[i], uri, digest);
        n = directory_find(tiers->at[i]->directory, digest[0], rows, 16);
        for (unsigned k = 0; k < n; k++)
            if (rows[k].tag == tag) {
                *row = rows[k];
                return tiers->at[i];
            }
    }
    return NULL;
}

void
tiers_freshen(struct tiers *tiers, struct span uri, struct entry *e)
{
    struct directory_row row;
    struct tier *t = tier_with(tiers, uri, e, &row);

    if (t == NULL)
        t = tier_choose(tiers, uri, entry_bytes(e));
    if (t == NULL || t->options.read_only)
        return;
    if (atomic_load(&t->pending_bytes) > TIER_PENDING_MAX)
        atomic_fetch_add(&t->dropped, 1); /* the old head asks the origin once more */
    else
        entry_job(t, FRESHEN, uri, e, 0);
}

static void
touch_pieces(struct tier *t, const struct entry *e)
{
    uint64_t chain = atomic_load(&e->chain);

    for (uint64_t at = 0; chain && at < body_published(e->body); at += t->piece) {
        struct directory_row row;
        uint64_t digest[2];

        tier_piece_hash(t, chain, at, digest);
        if (directory_find(t->directory, digest[0], &row, 1))
            (void)directory_touch(t->directory, &row, tier_now_s());
    }
}

void
tiers_used(struct tiers *tiers, struct span uri, struct entry *e)
{
    struct directory_row row;
    struct tier *t;

    if (body_state(e->body) != BODY_COMPLETE)
        return;
    t = tier_with(tiers, uri, e, &row);
    if (t) {
        (void)directory_touch(t->directory, &row, tier_now_s());
        touch_pieces(t, e);
    } else
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

_Atomic uint64_t *
tier_removals_of(struct tier *t, struct span uri)
{
    uint64_t hash[2];

    tier_hash(t, uri, hash);
    return &t->removals[hash[1] % TIER_REMOVALS];
}

static void
all_removed(struct tier *t)
{
    for (unsigned i = 0; i < TIER_REMOVALS; i++)
        atomic_fetch_add(&t->removals[i], 1);
}

static bool
tier_knows(struct tier *t, struct span uri)
{
    struct directory_row row;
    uint64_t hash[2];

    tier_hash(t, uri, hash);
    return directory_find(t->directory, hash[0], &row, 1) > 0;
}

static bool
tier_remove(struct tier *t, struct span uri)
{
    uint64_t hash[2];
    struct job *j;
    bool known;

    atomic_fetch_add(tier_removals_of(t, uri), 1);
    tier_hash(t, uri, hash);
    if (note_early(t, hash))
        return true;
    known = tier_knows(t, uri) || atomic_load(&t->pending_bytes) > 0; /* or on its way */
    if (!known && atomic_load(&t->pending_jobs) == 0)
        return false;
    (void)directory_remove_all(t->directory, hash[0]);
    j = job_new(t, TOMBSTONE, SPAN_NONE);
    memcpy(j->hash, hash, sizeof hash);
    job_submit(j);
    return known;
}

bool
tiers_remove(struct tiers *tiers, struct span uri)
{
    bool some = false;

    for (unsigned i = 0; i < tiers->n; i++)
        some = tier_remove(tiers->at[i], uri) || some;
    return some;
}

void
tiers_purge_prefix(struct tiers *tiers, struct span prefix)
{
    for (unsigned i = 0; i < tiers->n; i++) {
        struct tier *t = tiers->at[i];
        struct job *j = job_new(t, PURGE, SPAN_NONE);

        all_removed(t);
        j->chain = tier_ban(t, prefix);
        job_submit(j);
    }
}

void
tiers_idle(struct tiers *tiers)
{
    for (unsigned i = 0; i < tiers->n; i++) {
        struct tier *t = tiers->at[i];

        if (atomic_load(&t->ready) && atomic_load(&t->pending_jobs) == 0 &&
            !atomic_exchange(&t->scrubbing, true))
            job_submit(job_new(t, SCRUB, SPAN_NONE));
    }
}

void
tiers_clear(struct tiers *tiers)
{
    for (unsigned i = 0; i < tiers->n; i++) {
        atomic_fetch_add(&tiers->at[i]->generation, 1); /* as good as a new one */
        all_removed(tiers->at[i]);
        directory_clear(tiers->at[i]->directory);
        job_submit(job_new(tiers->at[i], CLEAR, SPAN_NONE));
    }
}

bool
tiers_have(struct tiers *tiers, struct span uri)
{
    for (unsigned i = 0; i < tiers->n; i++)
        if (!atomic_load(&tiers->at[i]->ready) || tier_knows(tiers->at[i], uri))
            return true;
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

/* ---- opening and closing ---- */

static bool
header_read(struct tier *t)
{
    struct tier_header h;

    if (lseek(t->fd, 0, SEEK_END) == 0)
        return false;
    if (!disk_read_at(t->fd, 0, (char *)&h, sizeof h) ||
        memcmp(h.magic, HEADER_MAGIC, sizeof h.magic) != 0 ||
        h.sum != XXH3_64bits(&h, offsetof(struct tier_header, sum))) {
        log_event(LOG_WARN,
                  "cache_dir %s: cuttle.store is no store, or its start is spoilt; it starts "
                  "empty",
                  t->path);
        return false;
    }
    if (h.version != RECORD_VERSION || h.bytes != t->bytes) {
        log_event(LOG_WARN, "cache_dir %s: made for another %s; it starts empty", t->path,
                  h.version != RECORD_VERSION ? "version" : "size");
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
    t->may_send = fallocate(t->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, TIER_BASE / 2,
                            TIER_BASE / 2) == 0;
    fds_adopt(t->fd, FD_DISK);
    fds_adopt(t->folder, FD_DISK);
    return NULL;
}

static uint64_t
region_of(uint64_t bytes)
{
    uint64_t region = bytes / 32;

    region = region < REGION_MIN ? REGION_MIN : region > REGION_MAX ? REGION_MAX : region;
    return region - region % TIER_BASE; /* of whole pages, whatever their size */
}

/* So that half a region has room for one with its head. */
static uint32_t
piece_of(uint64_t region)
{
    uint64_t piece = region / 4 < TIER_PIECE_MAX ? region / 4 : TIER_PIECE_MAX;

    return (uint32_t)(piece - piece % RECORD_BLOCK);
}

static void
tier_free(struct tier *t)
{
    if (t->writer)
        offload_free(&t->writer);
    directory_free(&t->directory);
    tier_bans_free(&t->bans);
    pthread_mutex_destroy(&t->early_lock);
    pthread_mutex_destroy(&t->spare_lock);
    while (t->n_spare)
        mem_free(t->spare[--t->n_spare]);
    mem_free(t->early);
    mem_free(t->regions);
    tier_rings_free(t);
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
    t->bytes = o->bytes - o->bytes % TIER_BASE;
    t->region = region_of(t->bytes);
    t->piece = piece_of(t->region);
    t->n_regions = (unsigned)((t->bytes - TIER_BASE) / t->region + 1);
    t->regions = mem_zalloc(t->n_regions * sizeof *t->regions);
    tier_rings_init(t, o->scan_resistant);
    t->fd = t->folder = -1;
    t->directory = directory_new();
    t->bans = tier_bans_new();
    t->scrub_at = TIER_BASE;
    pthread_mutex_init(&t->early_lock, NULL);
    pthread_mutex_init(&t->spare_lock, NULL);
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
    t->writer = offload_new_gathering("disk writer", WRITER_LINGERS_MS);
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
