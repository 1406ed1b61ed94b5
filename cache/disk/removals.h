/* cache/disk/removals.h - what is removed while it is being written, or before it is known.
 *
 * Each key has a counter that it shares with others: whoever writes for long (cache/disk/spool.c)
 * looks at it when beginning and at the end. A removal of what the rebuild has not found yet is
 * noted, and done at its end. Any thread. */
#ifndef CACHE_DISK_REMOVALS_H
#define CACHE_DISK_REMOVALS_H

#include "cache/disk/disk.h"

_Atomic uint64_t *tier_removals_of(struct tier *t, struct span uri);
void tier_all_removed(struct tier *t);

/* Older versions must not outlive one that was not written. */
void tier_forget_key(struct tier *t, struct span uri);

/* Its rows are not there yet: the rebuild takes them out at its end. Returns how many that are by
 * now; 0: it has ended. */
size_t tier_note_early(struct tier *t, const uint64_t hash[2]);
bool tier_early_is_empty(struct tier *t);
void tier_early_drop(struct tier *t);
/* What was noted; the caller frees it. NULL: nothing more, and from now on the tier is ready. */
uint64_t (*tier_early_take(struct tier *t, size_t *n))[2];

#endif
