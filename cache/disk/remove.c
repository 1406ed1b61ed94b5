/* cache/disk/remove.c - at once for those who ask, and in the queue for the medium. */
#include "cache/disk/remove.h"

#include "cache/disk/names.h"
#include "cache/disk/queue.h"
#include "cache/disk/removals.h"

#define EARLY_MAX (1u << 20)

bool
tier_knows(struct tier *t, struct span uri)
{
    struct directory_row row;
    uint64_t hash[2];

    tier_hash(t, uri, hash);
    return directory_find(t->directory, hash[0], &row, 1) > 0;
}

/* As good as a new one: no record of another generation is served. */
static void
everything_is_void(struct tier *t)
{
    atomic_fetch_add(&t->generation, 1);
    tier_all_removed(t);
    queue_clear(t);
}

void
tier_clear(struct tier *t)
{
    everything_is_void(t);
    directory_clear(t->directory);
}

/* Removals wait in memory until they are on the disk: were one of them lost, what is invalid would
 * be back. A disk that does not take them is not worth that. Others may hold a lock of theirs: the
 * directory is emptied on the writer's thread. */
static void
give_up(struct tier *t)
{
    if (atomic_exchange(&t->given_up, true))
        return;
    tier_early_drop(t);
    everything_is_void(t);
}

bool
tier_remove(struct tier *t, struct span uri)
{
    uint64_t hash[2];
    size_t n_early;
    bool known;

    atomic_fetch_add(tier_removals_of(t, uri), 1);
    tier_hash(t, uri, hash);
    n_early = tier_note_early(t, hash);
    if (n_early > EARLY_MAX || queue_is_stuck(t))
        give_up(t);
    if (n_early || atomic_load(&t->given_up))
        return true;
    known = tier_knows(t, uri) || atomic_load(&t->pending_bytes) > 0; /* or on its way */
    if (!known && atomic_load(&t->pending_jobs) == 0)
        return false;
    (void)directory_remove_all(t->directory, hash[0]);
    queue_tombstone(t, hash);
    return known;
}
