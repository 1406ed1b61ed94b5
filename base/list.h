/* base/list.h - intrusive circular doubly linked list. A node that is on no list points at itself.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *prev, *next;
};

#define LIST_OWNER(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

static inline void
list_init(struct list *l)
{
    l->prev = l->next = l;
}

static inline bool
list_empty(const struct list *l)
{
    return l->next == l;
}

static inline void
list_insert_after(struct list *where, struct list *node)
{
    node->prev = where;
    node->next = where->next;
    where->next->prev = node;
    where->next = node;
}

static inline void
list_push_front(struct list *head, struct list *node)
{
    list_insert_after(head, node);
}

static inline void
list_push_back(struct list *head, struct list *node)
{
    list_insert_after(head->prev, node);
}

static inline void
list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->prev = node->next = node;
}

/* Moves all of `from` to the end of `to`. */
static inline void
list_move_all(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#endif
