/* cache/disk/purge.h - taking out what is banned, a slice at a time. On the writer's thread. */
#ifndef CACHE_DISK_PURGE_H
#define CACHE_DISK_PURGE_H

#include "cache/disk/disk.h"

/* Bans up to that number begin: what is written from now on is not theirs. */
void tier_purge_begin(struct tier *t, uint64_t number);
/* Some milliseconds of it. false: there is nothing left to be taken out. */
bool tier_purge_some(struct tier *t);
void tier_purge_end(struct tier *t); /* wherever it is */

#endif
