/* cache/disk/rebuild.h - knowing again what a file holds. On the writer's thread, but for the
 * snapshot, which is made when that has nothing more to do. */
#ifndef CACHE_DISK_REBUILD_H
#define CACHE_DISK_REBUILD_H

#include "cache/disk/disk.h"

/* From the snapshot, or from the records themselves; it is ready then. It is not when it had to end
 * before it came to the end of the file: nothing is written there. */
void tier_rebuild(struct tier *t);
void tier_snapshot(struct tier *t);

#endif
