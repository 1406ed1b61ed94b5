/* cache/disk/front.c - the disks behind the store: making and ending them, and what their writers
 * are asked for. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "cache/disk/bans.h"
#include "cache/disk/choice.h"
#include "cache/disk/file.h"
#include "cache/disk/names.h"
#include "cache/disk/queue.h"
#include "cache/disk/rebuild.h"
#include "cache/disk/removals.h"
#include "cache/disk/remove.h"
#include "cache/disk/ring.h"

#define READ_THREADS 4
#define WRITER_LINGERS_MS 5
#define CLOSE_MS 5000
#define REGION_MIN (256u << 10)
#define REGION_MAX (16u << 20)

/* ---- what comes ---- */

void
tiers_put(struct tiers *tiers, struct span uri, struct entry *e)
{
    struct tier *t = tier_choose(tiers, uri, body_published(e->body));

    if (t == NULL)
        return;
    tier_alone(tiers, t, uri);
    if (queue_is_full(t)) {
        atomic_fetch_add(&t->dropped, 1);
        tier_forget_key(t, uri);
        return;
    }
    queue_put(t, uri, e);
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
    if (queue_is_full(t))
        atomic_fetch_add(&t->dropped, 1); /* the old head asks the origin once more */
    else
        queue_freshen(t, uri, e);
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

/* ---- what goes ---- */

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

        tier_all_removed(t);
        queue_purge(t, tier_ban(t, prefix));
    }
}

void
tiers_idle(struct tiers *tiers)
{
    for (unsigned i = 0; i < tiers->n; i++) {
        struct tier *t = tiers->at[i];

        if (atomic_load(&t->ready) && atomic_load(&t->pending_jobs) == 0 &&
            !atomic_exchange(&t->scrubbing, true))
            queue_scrub(t);
    }
}

void
tiers_clear(struct tiers *tiers)
{
    for (unsigned i = 0; i < tiers->n; i++)
        tier_clear(tiers->at[i]);
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
    for (unsigned i = 0; i < tiers->n; i++)
        queue_sync(tiers->at[i]);
}

unsigned
tiers_count(const struct tiers *tiers)
{
    return tiers ? tiers->n : 0;
}
/* ---- opening and closing ---- */

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
    fault = tier_file_open(t);
    if (fault) {
        snprintf(why, why_bytes, "%s", fault);
        tier_free(t);
        return false;
    }
    t->writer = offload_new_gathering("disk writer", WRITER_LINGERS_MS);
    tiers->at[tiers->n++] = t;
    queue_rebuild(t);
    return true;
}

void
tiers_close(struct tiers **held)
{
    struct tiers *tiers = *held;

    *held = NULL;
    if (!tiers)
        return;
    for (unsigned i = 0; i < tiers->n; i++)
        queue_close(tiers->at[i], CLOSE_MS);
    tiers_sync(tiers);
    offload_free(&tiers->readers);
    for (unsigned i = 0; i < tiers->n; i++) {
        struct tier *t = tiers->at[i];

        tier_snapshot(t);
        tier_file_close(t);
        tier_free(t);
    }
    mem_free(tiers);
}
