/* cache/entry.c - one stored (or passing) response.
 *
 * An entry is one piece of memory: its vary spec stands behind the struct. What changes in it
 * belongs to store.c; the rest is fixed here, so that any thread with a reference may read it. */
#include "cache/entry.h"

#include "base/check.h"

#define ENTRY_MAGIC 0xe117e117u

struct entry *
entry_new(struct head **head, struct body **body, struct span vary, uint64_t length)
{
    struct entry *e = mem_zalloc(sizeof *e + vary.n);

    e->magic = ENTRY_MAGIC;
    ref_init(&e->refs);
    e->head = *head;
    e->body = *body;
    *head = NULL;
    *body = NULL;
    if (vary.n)
        e->vary = span_of(memcpy(e + 1, vary.at, vary.n), vary.n);
    e->length = length;
    list_init(&e->lru);
    list_init(&e->variants);
    return e;
}

/* RFC 9111 section 4.3.4: the 304 changes fields; body, variant and length stay what they are. */
struct entry *
entry_freshened(const struct entry *old, struct head **head)
{
    struct body *body = old->body;

    CHECK_OBJ(old, ENTRY_MAGIC);
    body_ref(body);
    return entry_new(head, &body, old->vary, old->length);
}

void
entry_ref(struct entry *e)
{
    CHECK_OBJ(e, ENTRY_MAGIC);
    ref_take(&e->refs);
}

void
entry_unref(struct entry **held)
{
    struct entry *e = *held;

    CHECK_OBJ(e, ENTRY_MAGIC);
    *held = NULL;
    if (ref_drop(&e->refs) > 0)
        return;
    CHECK(e->node == NULL); /* the index has a reference of its own */
    head_unref(&e->head);
    body_unref(&e->body);
    FREE_OBJ(e);
}

uint64_t
entry_length(const struct entry *e)
{
    if (e->length != UINT64_MAX || body_state(e->body) != BODY_COMPLETE)
        return e->length;
    return body_published(e->body);
}
