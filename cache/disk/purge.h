/* cache/disk/purge.h - all objects whose URI starts alike: banned at once, taken out after that. */
#ifndef CACHE_DISK_PURGE_H
#define CACHE_DISK_PURGE_H

#include "cache/disk/disk.h"

struct tier_bans *tier_bans_new(void);
void tier_bans_free(struct tier_bans **held);
/* Is it void, though it can be found still? Any thread. */
bool tier_is_banned(const struct tier *t, const struct record *r);
uint64_t tier_ban(struct tier *t, struct span prefix); /* a number for tier_purge; any thread */
void tier_purge(struct tier *t, uint64_t ban);         /* on the writer's thread: for good */

#endif
