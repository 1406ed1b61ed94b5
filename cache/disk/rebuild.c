/* cache/disk/rebuild.c - knowing again what a file holds.
 *
 * After an orderly end a snapshot of the directory is there; it is used once and removed, so that a
 * crash later cannot bring back an old one. Without it the records themselves are read: from the
 * start, one behind the other, and where there is none the next is looked for at each place where
 * one could be. Of two of one key and variant the higher sequence counts; a tombstone takes all of
 * its key that came before it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/disk/bans.h"
#include "cache/disk/file.h"
#include "cache/disk/names.h"
#include "cache/disk/rebuild.h"
#include "cache/disk/removals.h"
#include "cache/disk/ring.h"
#include "cache/disk/writer.h"

#define SNAPSHOT_MAGIC "CUTTLE-K"
#define WINDOW (1u << 20)

struct snapshot_header {
    char magic[8];
    uint64_t generation, seed, bytes, n_rings, at[2], reclaimed[2], sequence, n, sum;
};

struct packed_row { /* 32 bytes */
    uint64_t hash, at, bytes;
    uint32_t tag, used_s; /* tag: with PIECE_BIT and the uses */
};

#define PIECE_BIT (UINT32_C(1) << 31)
#define USES_AT 24
#define TAG_MASK ((UINT32_C(1) << USES_AT) - 1)

/* ---- the snapshot ---- */

struct rows {
    struct packed_row *at;
    size_t n, room;
};

static void
rows_add(void *arg, const struct directory_row *row)
{
    struct rows *r = arg;

    if (r->n == r->room) {
        r->room = r->room ? r->room * 2 : 1024;
        r->at = mem_realloc(r->at, r->room * sizeof *r->at);
    }
    r->at[r->n++] = (struct packed_row){
        row->hash, row->at, row->bytes,
        row->tag | (row->piece ? PIECE_BIT : 0) | (uint32_t)row->uses << USES_AT, row->used_s};
}

static uint64_t
snapshot_sum(const struct snapshot_header *h, const struct rows *r)
{
    return XXH3_64bits_withSeed(r->at, r->n * sizeof *r->at,
                                XXH3_64bits(h, offsetof(struct snapshot_header, sum)));
}

/* The file is whole before it has its name. */
static bool
snapshot_write(const struct tier *t, const struct snapshot_header *h, const struct rows *r)
{
    int fd = openat(t->folder, "cuttle.index.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    bool good;

    if (fd < 0)
        return false;
    good = disk_write_at(fd, 0, (const char *)h, sizeof *h) &&
           disk_write_at(fd, sizeof *h, (const char *)r->at, r->n * sizeof *r->at) &&
           fdatasync(fd) == 0;
    good = close(fd) == 0 && good;
    return good && renameat(t->folder, "cuttle.index.new", t->folder, "cuttle.index") == 0;
}

void
tier_snapshot(struct tier *t)
{
    struct rows r = {0};
    struct snapshot_header h = {.generation = atomic_load(&t->generation),
                                .seed = t->seed,
                                .bytes = t->bytes,
                                .n_rings = t->n_rings,
                                .sequence = t->sequence};

    if (!atomic_load(&t->ready) || tier_has_bans(t)) /* the records tell of both */
        return;
    memcpy(h.magic, SNAPSHOT_MAGIC, sizeof h.magic);
    for (unsigned i = 0; i < t->n_rings; i++) {
        h.at[i] = t->rings[i].at;
        h.reclaimed[i] = t->rings[i].reclaimed;
    }
    directory_each(t->directory, rows_add, &r);
    h.n = r.n;
    h.sum = snapshot_sum(&h, &r);
    if (fdatasync(t->fd) != 0 || !snapshot_write(t, &h, &r))
        log_event(LOG_WARN, "cache_dir %s: %s; the next start reads all of it", t->path,
                  strerror(errno));
    mem_free(r.at);
}

static bool
row_is_sane(const struct tier *t, const struct packed_row *p)
{
    return p->at % 16 == 0 && p->bytes % 16 == 0 && p->at >= TIER_BASE && p->bytes > 0 &&
           p->bytes <= t->bytes && p->at <= t->bytes - p->bytes &&
           (p->tag & ~PIECE_BIT) >> USES_AT <= 3;
}

static void
snapshot_use(struct tier *t, const struct snapshot_header *h, const struct rows *r)
{
    directory_reserve(t->directory, r->n);
    for (size_t i = 0; i < r->n; i++) {
        const struct packed_row *p = &r->at[i];
        struct directory_row row = {.hash = p->hash,
                                    .at = p->at,
                                    .bytes = p->bytes,
                                    .tag = p->tag & TAG_MASK,
                                    .used_s = p->used_s,
                                    .uses = (p->tag >> USES_AT) & 3,
                                    .piece = p->tag & PIECE_BIT};

        if (row_is_sane(t, p))
            directory_put(t->directory, &row);
    }
    for (unsigned i = 0; i < t->n_rings && h->n_rings == t->n_rings; i++) {
        t->rings[i].at = h->at[i];
        t->rings[i].reclaimed = h->reclaimed[i];
    }
    t->sequence = h->sequence;
}

/* Those of another policy are started from their beginnings: their regions are emptied in turn. */
static bool
rings_fit(const struct tier *t, const struct snapshot_header *h)
{
    for (unsigned i = 0; i < t->n_rings && h->n_rings == t->n_rings; i++) {
        const struct tier_ring *g = &t->rings[i];

        if (h->at[i] < g->from || h->at[i] > h->reclaimed[i] || h->reclaimed[i] > g->to ||
            h->at[i] % RECORD_ALIGN)
            return false;
    }
    return true;
}

static bool
header_fits(const struct tier *t, const struct snapshot_header *h)
{
    return memcmp(h->magic, SNAPSHOT_MAGIC, sizeof h->magic) == 0 && h->seed == t->seed &&
           h->generation == atomic_load(&t->generation) && h->bytes == t->bytes &&
           rings_fit(t, h) && h->n < t->bytes / 16;
}

static bool
snapshot_read(struct tier *t)
{
    int fd = openat(t->folder, "cuttle.index", O_RDONLY | O_CLOEXEC);
    struct snapshot_header h;
    struct rows r = {0};
    bool good = false;

    if (fd < 0)
        return false;
    if (disk_read_at(fd, 0, (char *)&h, sizeof h) && header_fits(t, &h) &&
        lseek(fd, 0, SEEK_END) == (off_t)(sizeof h + h.n * sizeof *r.at)) {
        r.n = h.n;
        r.at = mem_alloc(r.n * sizeof *r.at + 1);
        good = disk_read_at(fd, sizeof h, (char *)r.at, r.n * sizeof *r.at) &&
               h.sum == snapshot_sum(&h, &r);
    }
    (void)close(fd);
    if (good)
        snapshot_use(t, &h, &r);
    mem_free(r.at);
    return good;
}

/* ---- the records ---- */

struct found {
    uint64_t hash, at, bytes, sequence;
    uint32_t tag, used_s;
    bool tombstone, piece, ban;
};

struct scan {
    struct tier *t;
    char *window;
    uint64_t start, end; /* of the file, what the window holds */
    struct found *at;
    size_t n, room;
};

/* Bytes of the file from `at` on, at least `wanted` if there are as many. */
static struct span
window_at(struct scan *s, uint64_t at, size_t wanted)
{
    size_t n = WINDOW;

    if (at >= s->start && at + wanted <= s->end)
        return span_of(s->window + (at - s->start), (size_t)(s->end - at));
    if (at + n > s->t->bytes)
        n = (size_t)(s->t->bytes - at);
    s->start = s->end = at;
    if (!disk_read_at(s->t->fd, at, s->window, n)) {
        atomic_fetch_add(&s->t->read_faults, 1);
        memset(s->window, 0, n);
    }
    s->end = at + n;
    return span_of(s->window, n);
}

/* Bodies hold what strangers sent: what looks like a record and is not of this file is none. */
static bool
is_ours(const struct scan *s, const struct record *r)
{
    return r->generation == atomic_load(&s->t->generation) && r->sequence < UINT64_MAX / 2;
}

static void
found_add(struct scan *s, uint64_t at, const struct record *r)
{
    struct part part = {r->part_from, r->part_whole, r->range};

    if (s->n == s->room) {
        s->room = s->room ? s->room * 2 : 1024;
        s->at = mem_realloc(s->at, s->room * sizeof *s->at);
    }
    s->at[s->n++] = (struct found){.hash = r->digest[0],
                                   .at = at,
                                   .bytes = record_bytes(r),
                                   .sequence = r->sequence,
                                   .tag = tier_tag(r->vary, r->is_part ? &part : NULL),
                                   .used_s = (uint32_t)(r->response_wall_ms / 1000),
                                   .tombstone = r->kind == RECORD_WHOLE && r->status == 0,
                                   .piece = r->kind == RECORD_PIECE,
                                   .ban = r->kind == RECORD_BAN};
}

/* A head image larger than the window is read by itself. */
static enum record_result
decode_at(struct scan *s, uint64_t at, struct record *r, char **own)
{
    size_t head_bytes = 0;
    struct span bytes = window_at(s, at, 4096);
    enum record_result result = record_decode(bytes, r, &head_bytes);

    *own = NULL;
    if (result != RECORD_MORE || head_bytes == 0 || at + head_bytes > s->t->bytes || !is_ours(s, r))
        return result;
    if (head_bytes <= WINDOW)
        return record_decode(window_at(s, at, head_bytes), r, &head_bytes);
    *own = mem_alloc(head_bytes);
    if (!disk_read_at(s->t->fd, at, *own, head_bytes))
        return RECORD_BAD;
    return record_decode(span_of(*own, head_bytes), r, &head_bytes);
}

/* The places a record may start: most are middles of bodies, or were never written. */
static uint64_t
skip_nothing(struct scan *s, uint64_t at)
{
    struct span bytes = window_at(s, at, 4096);
    size_t i = RECORD_ALIGN;
    off_t data;

    while (i + 8 <= bytes.n && !record_may_start(bytes.at + i))
        i += RECORD_ALIGN;
    at += i;
    data = lseek(s->t->fd, (off_t)at, SEEK_DATA);
    if (data < 0)
        return errno == ENXIO ? s->t->bytes : at; /* only a hole is left */
    return (uint64_t)data > at ? ((uint64_t)data + RECORD_ALIGN - 1) & ~(uint64_t)(RECORD_ALIGN - 1)
                               : at;
}

/* The file stays as it is, for the next start, as long as nobody has asked for a change of it. */
static bool
may_stop(struct tier *t)
{
    return atomic_load(&t->closing) && atomic_load(&t->pending_bytes) == 0 && !tier_has_bans(t) &&
           tier_early_is_empty(t);
}

/* false: it was not read to its end. */
static bool
scan_file(struct scan *s)
{
    uint64_t at = TIER_BASE;

    while (at + RECORD_ALIGN <= s->t->bytes && !may_stop(s->t)) {
        struct record r;
        char *own;

        if (decode_at(s, at, &r, &own) == RECORD_OK && is_ours(s, &r) &&
            record_bytes(&r) <= s->t->bytes - at) {
            found_add(s, at, &r);
            if (r.kind == RECORD_BAN)
                tier_ban_again(s->t, &r);
            at += record_bytes(&r);
        } else
            at = skip_nothing(s, at);
        mem_free(own);
    }
    return at + RECORD_ALIGN > s->t->bytes;
}

static int
by_sequence(const void *a, const void *b)
{
    uint64_t x = ((const struct found *)a)->sequence, y = ((const struct found *)b)->sequence;

    return (x > y) - (x < y);
}

/* The newest record tells where writing went on. What lay in front of it is not free any more: it
 * is reclaimed again. */
static void
scan_use(struct tier *t, struct scan *s)
{
    if (s->n)
        qsort(s->at, s->n, sizeof *s->at, by_sequence);
    for (size_t i = 0; i < s->n; i++) {
        struct directory_row row = {.hash = s->at[i].hash,
                                    .at = s->at[i].at,
                                    .bytes = s->at[i].bytes,
                                    .tag = s->at[i].tag,
                                    .used_s = s->at[i].used_s,
                                    .piece = s->at[i].piece};

        if (s->at[i].tombstone)
            (void)directory_remove_all(t->directory, row.hash);
        else if (!s->at[i].ban)
            directory_put(t->directory, &row);
    }
    if (s->n == 0)
        return;
    t->sequence = s->at[s->n - 1].sequence;
    for (size_t i = 0; i < s->n; i++) { /* the last of each ring stays */
        struct tier_ring *g = tier_ring_at(t, s->at[i].at);
        uint64_t end = s->at[i].at + s->at[i].bytes;

        g->at = g->reclaimed = end < g->to ? end : g->to;
    }
}

static void
forget_early(struct tier *t)
{
    uint64_t(*early)[2];
    struct directory_row row;
    size_t n;

    while ((early = tier_early_take(t, &n)) != NULL) {
        for (size_t i = 0; i < n; i++)
            if (directory_find(t->directory, early[i][0], &row, 1) > 0)
                tier_tombstone(t, early[i]);
        mem_free(early);
    }
}

static void
row_end(void *arg, const struct directory_row *row)
{
    struct tier_ring *g = tier_ring_at(arg, row->at);

    if (row->at + row->bytes > atomic_load(&g->top))
        atomic_store(&g->top, row->at + row->bytes);
}

static void
show_places(struct tier *t)
{
    directory_each(t->directory, row_end, t);
    for (unsigned i = 0; i < t->n_rings; i++)
        tier_ring_show(&t->rings[i]);
    tier_free_show(t);
}

static bool
rebuild_from_records(struct tier *t)
{
    struct scan s = {.t = t, .window = mem_alloc(WINDOW)};
    bool whole = scan_file(&s);

    if (whole)
        scan_use(t, &s);
    mem_free(s.window);
    mem_free(s.at);
    return whole;
}

void
tier_rebuild(struct tier *t)
{
    int64_t from_ns = clock_exact_mono_ns();
    bool known = t->made || snapshot_read(t);

    (void)unlinkat(t->folder, "cuttle.index", 0);
    if (!known && !rebuild_from_records(t))
        return;
    show_places(t);
    forget_early(t);
    log_event(LOG_NOTE, "cache_dir %s: %llu objects known %s, %.2f s", t->path,
              (unsigned long long)directory_count(t->directory),
              t->made ? "yet"
              : known ? "from the last end"
                      : "from the records themselves",
              (double)(clock_exact_mono_ns() - from_ns) / 1e9);
}
