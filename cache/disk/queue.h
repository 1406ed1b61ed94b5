/* cache/disk/queue.h - what a tier's writer is asked for, done on its own thread in the order of
 * asking. Any thread may ask; nothing here waits but queue_sync. */
#ifndef CACHE_DISK_QUEUE_H
#define CACHE_DISK_QUEUE_H

#include "cache/disk/disk.h"

/* The disk is slower than the traffic: who puts leaves it out. */
bool queue_is_full(const struct tier *t);
/* More removals wait than there is memory for: the disk does not take them. */
bool queue_is_stuck(const struct tier *t);
void queue_put(struct tier *t, struct span uri, struct entry *e);
void queue_freshen(struct tier *t, struct span uri, struct entry *e);
/* One piece of a chain; its bytes come from queue_piece_take, and are the queue's then. */
void queue_piece(struct tier *t, uint64_t chain, uint64_t at, char *bytes, size_t n_bytes);
/* The head of a chain whose pieces were all asked for before. */
void queue_chain(struct tier *t, struct span uri, struct entry *e, uint64_t chain);
void queue_tombstone(struct tier *t, const uint64_t hash[2]);
void queue_purge(struct tier *t, uint64_t ban); /* of tier_ban */
void queue_clear(struct tier *t);               /* the generation is a new one already */
void queue_scrub(struct tier *t);
void queue_rebuild(struct tier *t);
void queue_sync(struct tier *t); /* waits until all that was asked for before is done */
/* Nobody asks for more. A purge goes on at the next start; what is not written within so many
 * milliseconds is left out. */
void queue_close(struct tier *t, int64_t within_ms);

/* Room for a piece, used over and over: memory that was touched before costs less. */
char *queue_piece_take(struct tier *t);
void queue_piece_give(struct tier *t, char *bytes);

#endif
