/* cache/disk/names.h - what things on a disk are called: digests of keys and of pieces, tags of
 * variants, numbers of chains; and the clock they are dated by. Any thread. */
#ifndef CACHE_DISK_NAMES_H
#define CACHE_DISK_NAMES_H

#include "cache/disk/disk.h"

void tier_hash(const struct tier *t, struct span uri, uint64_t digest[2]);
/* Of a piece, that nobody asks for by a name. */
void tier_piece_hash(const struct tier *t, uint64_t chain, uint64_t at, uint64_t digest[2]);
uint64_t tier_chain_new(void);
/* Two that would stand for the same request in the store have the same tag. Parts are apart. */
uint32_t tier_tag(struct span vary, const struct part *part);
/* What passes from the disk from somewhere on is the whole there. */
const struct part *tier_part_of(const struct entry *e);
int64_t tier_wall_ms(void);
uint32_t tier_now_s(void);

#endif
