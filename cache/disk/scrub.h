/* cache/disk/scrub.h - checking in idle time. On the writer's thread. */
#ifndef CACHE_DISK_SCRUB_H
#define CACHE_DISK_SCRUB_H

#include "cache/disk/disk.h"

void tier_scrub(struct tier *t); /* a region */

#endif
