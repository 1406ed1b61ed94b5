/* cache/disk/choice.h - which disk takes an object. Any thread. */
#ifndef CACHE_DISK_CHOICE_H
#define CACHE_DISK_CHOICE_H

#include "cache/disk/disk.h"

/* A body of that length? */
bool tier_wants(const struct tier *t, uint64_t body_bytes);
/* That where the key lies already, if it takes it, else one with room. NULL: none does. */
struct tier *tier_choose(struct tiers *tiers, struct span uri, uint64_t body_bytes);
/* t gets the newest version: what the others have, or are about to write, is older. */
void tier_alone(struct tiers *tiers, const struct tier *t, struct span uri);

#endif
