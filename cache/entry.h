/* cache/entry.h - one stored (or passing) response: an immutable head and a shared body.
 *
 * FILLING -> COMPLETE | ABANDONED (the body's state says which). Each holder has one reference: the
 * index (while findable), the fill (while FILLING), each reader. Freshening makes a new entry with
 * a new head and the same body; old readers keep the old one. */
#ifndef CACHE_ENTRY_H
#define CACHE_ENTRY_H

#include "base/list.h"
#include "base/ref.h"
#include "cache/body.h"
#include "cache/head.h"
#include "cache/part.h"

struct store_node;
struct store_shard;
struct entry {
    uint32_t magic;
    struct ref refs;
    struct head *head; /* never changes */
    struct body *body;
    struct span vary; /* vary_spec of the request that brought it; owned by the entry */
    uint64_t length;  /* of the body as announced, UINT64_MAX: not; never changes (entry_length) */
    bool hit;         /* since it became findable */
    bool on_disk;     /* it came from there: a tier has it */
    bool passing;     /* it came from there for the first time: memory is for what is used again */
    _Atomic uint64_t
        chain; /* there, in pieces: their chain's number (cache/disk/record.h); else 0 */
    const struct part *part; /* NULL: the whole representation. Owned by the entry */
    /* --- store.c's own, under the shard lock --- */
    struct store_shard
        *shard; /* set when it becomes findable, never cleared: where `node` may be read */
    struct list lru, variants;
    struct store_node *node; /* NULL: not findable */
    size_t charged;          /* bytes counted against cache_mem */
    uint8_t uses;            /* evict.c's */
    bool in_small;
    int64_t used_ms;
};

struct entry *entry_new(struct head **head, struct body **body, struct span vary,
                        uint64_t length); /* takes both references */
struct entry *entry_new_part(struct head **head, struct body **body, struct span vary,
                             uint64_t length, const struct part *part); /* part: copied */
struct entry *entry_freshened(const struct entry *old,
                              struct head **head); /* new head, same body */
/* Of the whole representation; of a part that is not placed, of its body. UINT64_MAX while it is
 * not known. */
uint64_t entry_length(const struct entry *e);
uint64_t entry_bytes(const struct entry *e); /* that it has, or will have; as above */
void entry_ref(struct entry *e);
void entry_unref(struct entry **held);

#endif
