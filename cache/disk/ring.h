/* cache/disk/ring.h - a stretch of a tier's file, written round and round. Private to the tier; on
 * the writer's thread, but for pins. */
#ifndef CACHE_DISK_RING_H
#define CACHE_DISK_RING_H

#include "cache/disk/disk.h"

void tier_rings_init(struct tier *t, bool two);
void tier_rings_free(struct tier *t);
struct tier_ring *tier_ring_at(struct tier *t, uint64_t at); /* in which that byte lies */
/* Where a record goes; bytes_before: of the same object, written before it. */
struct tier_ring *tier_ring_for(struct tier *t, uint64_t hash, uint64_t bytes_before);

/* Room for n_bytes in one piece at `at`. false: it can't be had. */
bool tier_ring_reserve(struct tier_ring *g, uint64_t n_bytes);
void tier_ring_emit(struct tier_ring *g, const char *bytes, size_t n);
void tier_ring_pad(struct tier_ring *g);
/* Known when what was emitted so far is written. */
void tier_ring_row(struct tier_ring *g, const struct directory_row *row);
void tier_ring_flush(struct tier_ring *g);
void tier_ring_show(struct tier_ring *g); /* for reports */
void tier_rows_forget(struct tier *t, uint64_t hash);
void tier_free_show(struct tier *t); /* for the choice among several */
void tier_flush(struct tier *t);     /* what was appended can be found from now on */
void tier_write_failed(struct tier *t, const char *what);
bool tier_is_paused(const struct tier *t);

/* Any thread: bytes [at, at + n_bytes) stay what they are until they are unpinned, if the row that
 * names them is still there after pinning. */
void tier_pin(struct tier *t, uint64_t at, uint64_t n_bytes);
void tier_unpin(struct tier *t, uint64_t at, uint64_t n_bytes);

#endif
