/* cache/disk/bans.h - prefixes that are being purged: what starts so and was written before is
 * void, though it can be found still.
 *
 * The directory knows no URIs, so taking such records out means to read the head of each, which
 * takes its time (cache/disk/purge.c). Until that is done they are asked for at each reading, and
 * nothing they ban is carried forward. There are BANS_MAX of them at most: one more is made one
 * with that which is most like it, by what both start with, and purges more than was asked for. */
#ifndef CACHE_DISK_BANS_H
#define CACHE_DISK_BANS_H

#include "cache/disk/disk.h"

#define BANS_MAX 64

struct tier_bans *tier_bans_new(void);
void tier_bans_free(struct tier_bans **held);

/* ---- any thread ---- */
/* Bans all that is there by now, until tier_bans_adopt; returns its number for that. */
uint64_t tier_ban(struct tier *t, struct span prefix);
bool tier_is_banned(const struct tier *t, const struct record *r);
bool tier_has_bans(const struct tier *t);

/* ---- the writer's thread ---- */
/* Those up to that number ban what has been written so far, and nothing that comes. */
void tier_bans_adopt(struct tier *t, uint64_t number);
/* One that is adopted and not on the disk itself; the caller frees the prefix. false: none. */
bool tier_ban_to_write(struct tier *t, char **prefix, size_t *n);
/* One that was found on the disk. */
void tier_ban_again(struct tier *t, const struct record *r);
/* As tier_is_banned, and it counts as purged. */
bool tier_ban_takes(struct tier *t, const struct record *r);
uint64_t tier_bans_given(const struct tier *t);
/* The next n_bytes of the file were looked through for those up to that number. Who has had the
 * whole file is over. */
void tier_bans_passed(struct tier *t, uint64_t number, uint64_t n_bytes);

#endif
