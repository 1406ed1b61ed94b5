/* cache/disk/choice.c - which disk takes an object. */
#include "cache/disk/choice.h"

#include <xxhash.h>

#include "cache/disk/remove.h"

/* A chain at most takes half of the file. */
bool
tier_wants(const struct tier *t, uint64_t body_bytes)
{
    return !t->options.read_only && body_bytes >= t->options.min_bytes &&
           (t->options.max_bytes == 0 || body_bytes <= t->options.max_bytes) &&
           body_bytes < (t->bytes - TIER_BASE) / 2;
}

static uint64_t
room_of(const struct tier *t)
{
    return t->bytes - TIER_BASE;
}

/* Until an eighth is left: some is always free, where old versions lay and where the writer is. */
static bool
is_filling(const struct tier *t)
{
    return atomic_load(&t->free_bytes) > room_of(t) / 8;
}

/* Of those that take it: by what is free, as long as one is not full; then by size, so that each
 * keeps what it has for as long as the others do. */
static uint64_t
share_of(const struct tier *t, uint64_t body_bytes, bool filling)
{
    if (!tier_wants(t, body_bytes) || (filling && !is_filling(t)))
        return 0;
    return (filling ? atomic_load(&t->free_bytes) : room_of(t)) / TIER_BASE + 1;
}

static bool
some_are_filling(const struct tiers *tiers, uint64_t body_bytes)
{
    for (unsigned i = 0; i < tiers->n; i++)
        if (tier_wants(tiers->at[i], body_bytes) && is_filling(tiers->at[i]))
            return true;
    return false;
}

/* The key draws. */
static struct tier *
drawn(struct tiers *tiers, struct span uri, uint64_t body_bytes)
{
    bool filling = some_are_filling(tiers, body_bytes);
    uint64_t total = 0, draw = XXH3_64bits(uri.at, uri.n);

    for (unsigned i = 0; i < tiers->n; i++)
        total += share_of(tiers->at[i], body_bytes, filling);
    draw = total ? draw % total : 0;
    for (unsigned i = 0; i < tiers->n; i++) {
        uint64_t share = share_of(tiers->at[i], body_bytes, filling);

        if (draw < share)
            return tiers->at[i];
        draw -= share;
    }
    return NULL;
}

struct tier *
tier_choose(struct tiers *tiers, struct span uri, uint64_t body_bytes)
{
    for (unsigned i = 0; tiers->n > 1 && i < tiers->n; i++)
        if (tier_wants(tiers->at[i], body_bytes) && tier_knows(tiers->at[i], uri))
            return tiers->at[i];
    return drawn(tiers, uri, body_bytes);
}

void
tier_alone(struct tiers *tiers, const struct tier *t, struct span uri)
{
    for (unsigned i = 0; i < tiers->n; i++)
        if (tiers->at[i] != t)
            (void)tier_remove(tiers->at[i], uri);
}
