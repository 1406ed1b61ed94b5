/* cache/entry.c - one stored (or passing) response.
 *
 * An entry is one piece of memory: what it owns stands behind the struct. What changes in it
 * belongs to store.c; the rest is fixed here, so that any thread with a reference may read it. */
#include "cache/entry.h"

#include "base/check.h"

#define ENTRY_MAGIC 0xe117e117u

/* One piece: the struct, the part, the text of the part's range, the vary spec. */
static struct entry *
entry_alloc(struct span vary, const struct part *part)
{
    size_t part_bytes = part ? sizeof *part : 0, range_bytes = part ? part->range.n : 0;
    struct entry *e = mem_zalloc(sizeof *e + part_bytes + range_bytes + vary.n);
    char *range = (char *)(e + 1) + part_bytes, *spec = range + range_bytes;

    if (part) {
        struct part *own = (struct part *)(e + 1);

        *own = *part;
        if (range_bytes)
            own->range = span_of(memcpy(range, part->range.at, range_bytes), range_bytes);
        e->part = own;
    }
    if (vary.n)
        e->vary = span_of(memcpy(spec, vary.at, vary.n), vary.n);
    return e;
}

struct entry *
entry_new_part(struct head **head, struct body **body, struct span vary, uint64_t length,
               const struct part *part)
{
    struct entry *e = entry_alloc(vary, part);

    e->magic = ENTRY_MAGIC;
    ref_init(&e->refs);
    e->head = *head;
    e->body = *body;
    *head = NULL;
    *body = NULL;
    e->length = length;
    list_init(&e->lru);
    list_init(&e->variants);
    return e;
}

struct entry *
entry_new(struct head **head, struct body **body, struct span vary, uint64_t length)
{
    return entry_new_part(head, body, vary, length, NULL);
}

/* RFC 9111 section 4.3.4: the 304 changes fields; body, variant and length stay what they are. */
struct entry *
entry_freshened(const struct entry *old, struct head **head)
{
    struct body *body = old->body;
    struct entry *e;

    CHECK_OBJ(old, ENTRY_MAGIC);
    body_ref(body);
    e = entry_new_part(head, &body, old->vary, old->length, old->part);
    atomic_init(&e->chain, atomic_load(&old->chain));
    return e;
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
entry_bytes(const struct entry *e)
{
    if (e->length != UINT64_MAX || body_state(e->body) != BODY_COMPLETE)
        return e->length;
    return body_published(e->body);
}

uint64_t
entry_length(const struct entry *e)
{
    return e->part && e->part->whole ? e->part->whole : entry_bytes(e);
}
