/* cache/disk/stats.c - what a tier tells of itself. */
#include "cache/disk/names.h"
#include "cache/ghost.h"

static void
oldest(void *arg, const struct directory_row *row)
{
    uint32_t *oldest_s = arg;

    if (row->used_s < *oldest_s)
        *oldest_s = row->used_s;
}

static int64_t
oldest_age_s(struct tier *t)
{
    uint32_t oldest_s = UINT32_MAX, now_s = tier_now_s();

    directory_each(t->directory, oldest, &oldest_s);
    return oldest_s == UINT32_MAX ? -1 : oldest_s < now_s ? (int64_t)(now_s - oldest_s) : 0;
}

/* Between `at` and `reclaimed` nothing is left, behind `top` there was never anything. */
static uint64_t
ring_written(const struct tier_ring *g)
{
    uint64_t at = atomic_load(&g->at_shown), end = atomic_load(&g->reclaimed_shown),
             top = atomic_load(&g->top), free = 0;

    if (top <= g->from)
        return 0;
    if (at < top && end > at)
        free = (end < top ? end : top) - at;
    return top - g->from - free;
}

static uint64_t
written_bytes(const struct tier *t)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < t->n_rings; i++)
        n += ring_written(&t->rings[i]);
    return n;
}

void
tiers_stats(struct tiers *tiers, unsigned i, struct tier_stats *out)
{
    struct tier *t = tiers->at[i];
    uint64_t live = directory_live_bytes(t->directory), written = written_bytes(t);

    *out = (struct tier_stats){
        .path = t->path,
        .bytes = t->bytes,
        .objects = directory_count(t->directory),
        .live_bytes = live,
        .dead_bytes = written > live ? written - live : 0,
        .written_bytes = written,
        .oldest_age_s = oldest_age_s(t),
        .directory_bytes = directory_memory(t->directory),
        .ghost_bytes = ghost_memory(t->ghost),
        .policy = t->n_rings > 1 ? "s3fifo" : "lru",
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
        .checked = atomic_load(&t->checked),
        .ready = atomic_load(&t->ready),
    };
}
