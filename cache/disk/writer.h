/* cache/disk/writer.h - responses as records on a tier's rings. On the writer's thread; what is
 * false was not written. */
#ifndef CACHE_DISK_WRITER_H
#define CACHE_DISK_WRITER_H

#include "cache/disk/disk.h"

bool tier_append(struct tier *t, struct span uri, struct entry *e);
bool tier_append_piece(struct tier *t, uint64_t chain, uint64_t at, struct span bytes);
/* The head of a chain whose pieces were appended. */
bool tier_append_chain(struct tier *t, struct span uri, struct entry *e, uint64_t chain);
/* A new head for what lies there already; its body stays where it is. */
bool tier_freshen(struct tier *t, struct span uri, struct entry *e);
/* Of all that starts so, and was written before; it is on the disk when this returns. */
bool tier_append_ban(struct tier *t, struct span prefix);
void tier_tombstone(struct tier *t, const uint64_t hash[2]);

#endif
