/* cache/disk/remove.h - what is invalid leaves a disk: one key, or all of them. Any thread. */
#ifndef CACHE_DISK_REMOVE_H
#define CACHE_DISK_REMOVE_H

#include "cache/disk/disk.h"

bool tier_knows(struct tier *t, struct span uri);
/* false: there was nothing, as far as can be told. */
bool tier_remove(struct tier *t, struct span uri);
void tier_clear(struct tier *t);

#endif
