/* dns/name_table.c - buckets grow with the names; a name takes the bytes that it has. */
#include "dns/name_table.h"

#include "base/check.h"

enum { BUCKETS_FIRST = 64 };

/* ---- an entry ---- */

static void
entry_free(struct entry *e)
{
    kept_drop(&e->half[HALF_V6]);
    kept_drop(&e->half[HALF_V4]);
    mem_free(e);
}

void
entries_free(struct list *entries)
{
    while (!list_empty(entries)) {
        struct entry *e = LIST_OWNER(entries->next, struct entry, link);

        list_remove(&e->link);
        entry_free(e);
    }
}

/* A family that had no addresses, or could not be asked, does not have the other one asked again
 * before its time: many names have one family only, and a short negative TTL. */
bool
entry_answers(const struct entry *e, int64_t now_ms)
{
    const struct kept *a = &e->half[HALF_V6], *b = &e->half[HALF_V4];

    if (kept_known(a, now_ms) && kept_known(b, now_ms))
        return true;
    if (kept_good(a, now_ms))
        return b->kind != HALF_NONE && b->kind != HALF_ADDRESSES;
    return kept_good(b, now_ms) && a->kind != HALF_NONE && a->kind != HALF_ADDRESSES;
}

static struct entry *
entry_copy(const struct entry *e)
{
    size_t n_bytes = offsetof(struct entry, name) + offsetof(struct dns_name, at) + e->name.n + 2u;
    struct entry *copy = mem_alloc(n_bytes);

    memcpy(copy, e, n_bytes);
    for (unsigned i = 0; i < HALVES; i++)
        kept_own(&copy->half[i], i);
    return copy;
}

/* ---- the table ---- */

void
name_table_init(struct name_table *t)
{
    list_init(&t->lru);
    t->n_buckets = BUCKETS_FIRST;
    t->buckets = mem_zalloc(t->n_buckets * sizeof(*t->buckets));
}

void
name_table_free(struct name_table *t)
{
    entries_free(&t->lru);
    mem_free(t->buckets);
}

static struct entry **
bucket_of(struct name_table *t, uint64_t hash)
{
    return &t->buckets[hash & (t->n_buckets - 1)];
}

struct entry *
name_table_find(struct name_table *t, const struct dns_name *name)
{
    struct entry *e = *bucket_of(t, name->hash);

    while (e && (e->name.hash != name->hash || !span_eq(name_key(&e->name), name_key(name))))
        e = e->next;
    return e;
}

static void
buckets_grow(struct name_table *t)
{
    mem_free(t->buckets);
    t->n_buckets *= 2;
    t->buckets = mem_zalloc(t->n_buckets * sizeof(*t->buckets));
    for (struct list *at = t->lru.next; at != &t->lru; at = at->next) {
        struct entry *e = LIST_OWNER(at, struct entry, link);
        struct entry **bucket = bucket_of(t, e->name.hash);

        e->next = *bucket;
        *bucket = e;
    }
}

static void
entry_evict(struct name_table *t, struct entry *e)
{
    struct entry **at = bucket_of(t, e->name.hash);

    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    list_remove(&e->link);
    t->n--;
    entry_free(e);
}

struct entry *
name_table_add(struct name_table *t, const struct dns_name *name)
{
    size_t used = offsetof(struct dns_name, at) + name->n + 2u;
    struct entry *e = mem_zalloc(offsetof(struct entry, name) + used), **bucket;

    if (t->n >= t->limit)
        entry_evict(t, LIST_OWNER(t->lru.prev, struct entry, link));
    if (t->n >= t->n_buckets)
        buckets_grow(t);
    memcpy(&e->name, name, used);
    bucket = bucket_of(t, name->hash);
    e->next = *bucket;
    *bucket = e;
    list_push_front(&t->lru, &e->link);
    t->n++;
    return e;
}

void
name_table_touch(struct name_table *t, struct entry *e)
{
    list_remove(&e->link);
    list_push_front(&t->lru, &e->link);
}

void
name_table_shrink(struct name_table *t, uint64_t n)
{
    while (t->n > n)
        entry_evict(t, LIST_OWNER(t->lru.prev, struct entry, link));
}

void
name_table_copy(const struct name_table *t, int64_t now_ms, struct list *copies)
{
    for (struct list *at = t->lru.next; at != &t->lru; at = at->next) {
        struct entry *e = LIST_OWNER(at, struct entry, link);

        if (entry_answers(e, now_ms))
            list_push_back(copies, &entry_copy(e)->link);
    }
}
