/* dns/name_table.h - names and what is kept of each: a hash table with an exact LRU.
 *
 * No locks and no clock: the caller has the one and passes the other. */
#ifndef DNS_NAME_TABLE_H
#define DNS_NAME_TABLE_H

#include "base/list.h"
#include "dns/kept.h"
#include "dns/name.h"

struct known_name {
    struct list link;        /* the table's LRU, most recent first */
    struct known_name *next; /* in its bucket */
    struct kept half[HALVES];
    struct addr worked; /* AF_UNSPEC: not known */
    struct dns_name name;
};

struct name_table {
    struct list lru;
    struct known_name **buckets;
    size_t n_buckets;
    uint64_t n, limit;
};

void name_table_init(struct name_table *t); /* limit is the caller's to set */
void name_table_free(struct name_table *t);
struct known_name *name_table_find(struct name_table *t, const struct dns_name *name);
/* It is not there yet. The least recently used makes room. */
struct known_name *name_table_add(struct name_table *t, const struct dns_name *name);
void name_table_touch(struct name_table *t, struct known_name *e);
/* The least recently used go until no more than n are left. */
void name_table_shrink(struct name_table *t, uint64_t n);
/* Copies of those that still hold, on the list, in the order of use. */
void name_table_copy(const struct name_table *t, int64_t now_ms, struct list *copies);
void known_names_free(struct list *entries);
/* Is what is kept of it an answer? */
bool known_name_answers(const struct known_name *e, int64_t now_ms);

#endif
