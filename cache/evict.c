/* cache/evict.c - replacement policies. Front of a list is the newest. */
#include "cache/evict.h"

#include <string.h>

#include "cache/ghost.h"

enum { SMALL_SHARE = 10, USES_TO_MAIN = 2, USES_MOST = 3 };

/* ---- all ---- */

void
evict_init(struct evict_order *o, const struct evict_policy *policy)
{
    *o = (struct evict_order){.policy = policy};
    list_init(&o->small);
    list_init(&o->main);
    if (policy == &evict_s3fifo)
        o->ghost = ghost_new();
}

void
evict_free(struct evict_order *o)
{
    ghost_free(&o->ghost);
}

static void
count(struct evict_order *o, const struct entry *e, size_t add, size_t sub)
{
    o->bytes += add - sub;
    if (e->in_small)
        o->small_bytes += add - sub;
}

void
evict_remove(struct evict_order *o, struct entry *e)
{
    count(o, e, 0, e->charged);
    list_remove(&e->lru);
}

void
evict_recharge(struct evict_order *o, struct entry *e, size_t charged)
{
    count(o, e, charged, e->charged);
    e->charged = charged;
}

void
evict_remember(struct evict_order *o, const struct entry *e, uint64_t hash)
{
    if (o->ghost && e->in_small)
        ghost_add(o->ghost, hash, e->charged);
}

size_t
evict_size(struct evict_order *o, uint64_t limit_bytes, size_t entries)
{
    size_t before = ghost_memory(o->ghost);

    if (!o->ghost)
        return 0;
    ghost_size(o->ghost, limit_bytes / 10 * 9, entries);
    return ghost_memory(o->ghost) - before;
}

static struct entry *
oldest(const struct list *l)
{
    return list_empty(l) ? NULL : LIST_OWNER(l->prev, struct entry, lru);
}

struct entry *
evict_coldest(const struct evict_order *o)
{
    struct entry *e = oldest(&o->small);

    return e ? e : oldest(&o->main);
}

static void
stand_in(struct evict_order *o, struct entry *e, bool small)
{
    e->in_small = small;
    e->uses = 0;
    list_push_front(small ? &o->small : &o->main, &e->lru);
    count(o, e, e->charged, 0);
}

const struct evict_policy *
evict_policy_named(const char *name)
{
    return name && strcmp(name, evict_s3fifo.name) == 0 ? &evict_s3fifo : &evict_lru;
}

/* ---- the least recently used goes first ---- */

static void
lru_insert(struct evict_order *o, struct entry *e, uint64_t hash)
{
    stand_in(o, e, false);
}

static void
lru_touch(struct evict_order *o, struct entry *e)
{
    if (o->main.next == &e->lru) /* already there: a hot entry costs no writes */
        return;
    list_remove(&e->lru);
    list_push_front(&o->main, &e->lru);
}

static struct entry *
lru_victim(struct evict_order *o)
{
    return oldest(&o->main);
}

const struct evict_policy evict_lru = {"lru", lru_insert, lru_touch, lru_victim};

/* ---- S3-FIFO ---- */

static void
s3fifo_insert(struct evict_order *o, struct entry *e, uint64_t hash)
{
    stand_in(o, e, !ghost_take(o->ghost, hash));
}

static void
s3fifo_touch(struct evict_order *o, struct entry *e)
{
    if (e->uses < USES_MOST)
        e->uses++;
}

static void
move_to_main(struct evict_order *o, struct entry *e, uint8_t uses)
{
    evict_remove(o, e);
    stand_in(o, e, false);
    e->uses = uses;
}

/* Each round moves an entry out of small or takes a use from one in main, so it ends. */
static struct entry *
s3fifo_victim(struct evict_order *o)
{
    for (;;) {
        bool from_small = o->small_bytes * SMALL_SHARE > o->bytes || list_empty(&o->main);
        struct entry *e = oldest(from_small && !list_empty(&o->small) ? &o->small : &o->main);

        if (e == NULL || e->uses < (e->in_small ? USES_TO_MAIN : 1))
            return e;
        move_to_main(o, e, e->in_small ? 0 : (uint8_t)(e->uses - 1));
    }
}

const struct evict_policy evict_s3fifo = {"s3fifo", s3fifo_insert, s3fifo_touch, s3fifo_victim};
