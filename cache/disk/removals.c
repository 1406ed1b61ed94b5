/* cache/disk/removals.c - counters of removals, and the list of the early ones. */
#include "cache/disk/removals.h"

#include <string.h>

#include "base/check.h"
#include "cache/disk/names.h"

_Atomic uint64_t *
tier_removals_of(struct tier *t, struct span uri)
{
    uint64_t hash[2];

    tier_hash(t, uri, hash);
    return &t->removals[hash[1] % TIER_REMOVALS];
}

void
tier_all_removed(struct tier *t)
{
    for (unsigned i = 0; i < TIER_REMOVALS; i++)
        atomic_fetch_add(&t->removals[i], 1);
}

void
tier_forget_key(struct tier *t, struct span uri)
{
    uint64_t digest[2];

    tier_hash(t, uri, digest);
    (void)directory_remove_all(t->directory, digest[0]);
}

static void
early_add(struct tier *t, const uint64_t hash[2])
{
    if (t->n_early == t->early_room) {
        t->early_room = t->early_room ? t->early_room * 2 : 64;
        t->early = mem_realloc(t->early, t->early_room * sizeof *t->early);
    }
    memcpy(t->early[t->n_early++], hash, sizeof *t->early);
}

size_t
tier_note_early(struct tier *t, const uint64_t hash[2])
{
    size_t n = 0;

    pthread_mutex_lock(&t->early_lock);
    if (!atomic_load(&t->ready)) {
        early_add(t, hash);
        n = t->n_early;
    }
    pthread_mutex_unlock(&t->early_lock);
    return n;
}

bool
tier_early_is_empty(struct tier *t)
{
    bool is_empty;

    pthread_mutex_lock(&t->early_lock);
    is_empty = t->n_early == 0;
    pthread_mutex_unlock(&t->early_lock);
    return is_empty;
}

void
tier_early_drop(struct tier *t)
{
    pthread_mutex_lock(&t->early_lock);
    t->n_early = 0;
    pthread_mutex_unlock(&t->early_lock);
}

uint64_t (*tier_early_take(struct tier *t, size_t *n))[2]
{
    uint64_t(*early)[2];

    pthread_mutex_lock(&t->early_lock);
    early = t->n_early ? t->early : NULL;
    *n = t->n_early;
    if (early) {
        t->early = NULL;
        t->n_early = t->early_room = 0;
    } else
        atomic_store(&t->ready, true);
    pthread_mutex_unlock(&t->early_lock);
    return early;
}
