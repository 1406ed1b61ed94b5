/* cache/evict.h - which stored response gives way: a policy over one shard's entries, in the order
 * it keeps them.
 *
 * All calls come under the shard's lock. The list links are entry.lru; leaving the order is
 * list_remove, whatever the policy. */
#ifndef CACHE_EVICT_H
#define CACHE_EVICT_H

#include "cache/entry.h"

struct evict_policy {
    const char *name;
    void (*insert)(struct list *order, struct entry *e);
    void (*touch)(struct list *order, struct entry *e); /* it was used */
    struct entry *(*victim)(
        const struct list *order); /* the next to go, NULL: none; does not look into it */
};

extern const struct evict_policy evict_lru;

#endif
