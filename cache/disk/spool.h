/* cache/disk/spool.h - bodies that are written as they come; cache/tier.h starts them. */
#ifndef CACHE_DISK_SPOOL_H
#define CACHE_DISK_SPOOL_H

#include "cache/disk/disk.h"

void tier_spools_end(struct tier_reader *home); /* what is under way is left out */

#endif
