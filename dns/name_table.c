/* dns/name_table.c - buckets grow with the names; a name takes the bytes that it has. */
#include "dns/name_table.h"

#include "base/check.h"

enum { BUCKETS_FIRST = 64 };

/* ---- a name ---- */

static void
known_name_free(struct known_name *e)
{
    kept_drop(&e->half[HALF_V6]);
    kept_drop(&e->half[HALF_V4]);
    mem_free(e);
}

void
known_names_free(struct list *entries)
{
    while (!list_empty(entries)) {
        struct known_name *e = LIST_OWNER(entries->next, struct known_name, link);

        list_remove(&e->link);
        known_name_free(e);
    }
}

/* A family that had no addresses, or could not be asked, does not have the other one asked again
 * before its time: many names have one family only, and a short negative TTL. */
bool
known_name_answers(const struct known_name *e, int64_t now_ms)
{
    const struct kept *a = &e->half[HALF_V6], *b = &e->half[HALF_V4];

    if (kept_known(a, now_ms) && kept_known(b, now_ms))
        return true;
    if (kept_good(a, now_ms))
        return b->kind != HALF_NONE && b->kind != HALF_ADDRESSES;
    return kept_good(b, now_ms) && a->kind != HALF_NONE && a->kind != HALF_ADDRESSES;
}

static struct known_name *
known_name_copy(const struct known_name *e)
{
    size_t n_bytes =
        offsetof(struct known_name, name) + offsetof(struct dns_name, at) + e->name.n + 2u;
    struct known_name *copy = mem_alloc(n_bytes);

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
    known_names_free(&t->lru);
    mem_free(t->buckets);
}

static struct known_name **
bucket_of(struct name_table *t, uint64_t hash)
{
    return &t->buckets[hash & (t->n_buckets - 1)];
}

struct known_name *
name_table_find(struct name_table *t, const struct dns_name *name)
{
    struct known_name *e = *bucket_of(t, name->hash);

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
        struct known_name *e = LIST_OWNER(at, struct known_name, link);
        struct known_name **bucket = bucket_of(t, e->name.hash);

        e->next = *bucket;
        *bucket = e;
    }
}

static void
known_name_evict(struct name_table *t, struct known_name *e)
{
    struct known_name **at = bucket_of(t, e->name.hash);

    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    list_remove(&e->link);
    t->n--;
    known_name_free(e);
}

struct known_name *
name_table_add(struct name_table *t, const struct dns_name *name)
{
    size_t used = offsetof(struct dns_name, at) + name->n + 2u;
    struct known_name *e = mem_zalloc(offsetof(struct known_name, name) + used), **bucket;

    if (t->n >= t->limit)
        known_name_evict(t, LIST_OWNER(t->lru.prev, struct known_name, link));
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
name_table_touch(struct name_table *t, struct known_name *e)
{
    list_remove(&e->link);
    list_push_front(&t->lru, &e->link);
}

void
name_table_shrink(struct name_table *t, uint64_t n)
{
    while (t->n > n)
        known_name_evict(t, LIST_OWNER(t->lru.prev, struct known_name, link));
}

void
name_table_copy(const struct name_table *t, int64_t now_ms, struct list *copies)
{
    for (struct list *at = t->lru.next; at != &t->lru; at = at->next) {
        struct known_name *e = LIST_OWNER(at, struct known_name, link);

        if (known_name_answers(e, now_ms))
            list_push_back(copies, &known_name_copy(e)->link);
    }
}
