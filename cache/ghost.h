/* cache/ghost.h - a memory of what was dropped lately, by hash, for replacement policies that let
 * what comes back in at once. No I/O, no lock.
 *
 * It remembers the latest `limit` bytes of what was dropped, by eight bytes each in a table that
 * may forget some of them earlier: a quarter of its rows stands for each hash. */
#ifndef CACHE_GHOST_H
#define CACHE_GHOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ghost;

struct ghost *ghost_new(void);
void ghost_free(struct ghost **held);
/* How many bytes it looks back, and for how many rows it has room (no more than that are
 * remembered).
 */
void ghost_size(struct ghost *g, uint64_t limit_bytes, size_t rows);
void ghost_add(struct ghost *g, uint64_t hash, uint64_t n_bytes);
/* Was it dropped lately? Then it is forgotten. */
bool ghost_take(struct ghost *g, uint64_t hash);
size_t ghost_memory(const struct ghost *g);

#endif
