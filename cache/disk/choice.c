/* cache/disk/choice.c - which disk takes an object. */
#include "cache/disk/choice.h"

#include <xxhash.h>

/* A chain at most takes half of the file. */
bool
tier_wants(const struct tier *t, uint64_t body_bytes)
{
    return !t->options.read_only && body_bytes >= t->options.min_bytes &&
           (t->options.max_bytes == 0 || body_bytes <= t->options.max_bytes) &&
           body_bytes < (t->bytes - TIER_BASE) / 2;
}

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
