/* tools/predict.d/reuse.h - what caches could have answered: one without end, and LRU of any size.
 *
 * Two notions of what is stored. "Any GET": every answer to a GET, as an upper bound that needs no
 * status. "Cacheable": trace_line_is_cacheable, for the curve. The LRU curve comes from exact stack
 * distances in bytes, by a Fenwick tree over the order of the last uses; they are tabulated in
 * steps of 0.4 %, since the sizes asked about may be shares of a sum that is known at the end. An
 * object has the size of its last whole answer; 304 does not change it, and a 304 for an object
 * never seen stores nothing. An object larger than the cache takes part in the stack here, while a
 * real cache passes it by: for sizes near that of single objects the curve is a little low.
 *
 * Memory: 24 to 48 bytes a URL, twice 12 to 24 bytes an object in the tree, 12 an object. */
#ifndef TOOLS_PREDICT_D_REUSE_H
#define TOOLS_PREDICT_D_REUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/trace/names.h"
#include "tools/predict.d/scale.h"

struct reuse {
    struct names any, cacheable;
    uint64_t any_hits, any_hit_bytes;
    uint64_t hits, hit_bytes; /* cacheable, without end */
    uint64_t unique_bytes;    /* of the cacheable objects, at their latest sizes */
    uint64_t *sizes;          /* by object */
    uint32_t *slots;          /* by object: where its last use stands */
    uint32_t objects_room;
    uint64_t *tree;   /* bytes by slot, as a Fenwick tree; from 1 */
    uint32_t *owners; /* by slot: its object, or REUSE_NOBODY */
    uint32_t tree_room, next_slot;
    uint64_t held_bytes;                                  /* in the tree */
    uint64_t hits_at[SCALE_STEPS], bytes_at[SCALE_STEPS]; /* by the cache's size that it takes */
};

enum { REUSE_NOBODY = 0xffffffff };

struct reuse *reuse_new(void);
/* A GET, whatever its answer was. */
void reuse_any(struct reuse *r, struct span url, uint64_t bytes);
/* A cacheable answer; true: a cache without end has it. confirms: a 304. */
bool reuse_cacheable(struct reuse *r, struct span url, uint64_t bytes, bool confirms);
/* Requests and bytes an LRU cache of so many bytes would have answered. */
void reuse_lru_at(const struct reuse *r, uint64_t cache_bytes, uint64_t *hits, uint64_t *hit_bytes);
void reuse_free(struct reuse **held);

#endif
