/* cache/evict.c - replacement policies. The least recently used goes first: front of the list is
 * the newest. */
#include "cache/evict.h"

static void
lru_insert(struct list *order, struct entry *e)
{
    list_push_front(order, &e->lru);
}

static void
lru_touch(struct list *order, struct entry *e)
{
    if (order->next == &e->lru) /* already there: a hot entry costs no writes */
        return;
    list_remove(&e->lru);
    list_push_front(order, &e->lru);
}

static struct entry *
lru_victim(const struct list *order)
{
    return list_empty(order) ? NULL : LIST_OWNER(order->prev, struct entry, lru);
}

const struct evict_policy evict_lru = {"lru", lru_insert, lru_touch, lru_victim};
