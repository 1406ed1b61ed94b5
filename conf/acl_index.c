/* conf/acl_index.c - acls by name, without regard to case.
 *
 * Files that a program wrote can have thousands of acls and rules over them; looking through all of
 * them for each word would make reading quadratic. A table of numbers into the array of acls. */
#include <ctype.h>

#include "base/check.h"
#include "conf/reader.h"

struct acl_index {
    unsigned n_slots, n_used; /* n_slots is a power of two */
    unsigned *slots;          /* number of the acl + 1; 0: free */
};

enum { SLOTS_LEAST = 64 };

/* FNV-1a over lower-case letters. */
static uint32_t
name_hash(const char *name)
{
    uint32_t h = 2166136261u;

    for (; *name; name++)
        h = (h ^ (uint32_t)tolower((unsigned char)*name)) * 16777619u;
    return h;
}

/* The slot that has this name, or the free one where it belongs. */
static unsigned *
find_slot(const struct conf *c, const char *name)
{
    const struct acl_index *x = c->acl_index;
    unsigned at = name_hash(name) & (x->n_slots - 1);

    while (x->slots[at] && strcasecmp(c->acls[x->slots[at] - 1].name, name) != 0)
        at = (at + 1) & (x->n_slots - 1);
    return &x->slots[at];
}

static void
index_resize(struct conf *c, unsigned n_slots, unsigned n_acls)
{
    struct acl_index *x = c->acl_index;

    mem_free(x->slots);
    x->slots = mem_zalloc(n_slots * sizeof x->slots[0]);
    x->n_slots = n_slots;
    x->n_used = n_acls;
    for (unsigned i = 0; i < n_acls; i++)
        *find_slot(c, c->acls[i].name) = i + 1;
}

void
acl_index_add(struct conf *c, unsigned i)
{
    if (c->acl_index == NULL) {
        c->acl_index = mem_zalloc(sizeof *c->acl_index);
        index_resize(c, SLOTS_LEAST, i);
    }
    if (c->acl_index->n_used * 2 >= c->acl_index->n_slots)
        index_resize(c, c->acl_index->n_slots * 2, i);
    *find_slot(c, c->acls[i].name) = i + 1;
    c->acl_index->n_used++;
}

void
acl_index_rebuild(struct conf *c)
{
    index_resize(c, c->acl_index->n_slots, c->n_acls);
}

void
acl_index_free(struct conf *c)
{
    if (c->acl_index)
        mem_free(c->acl_index->slots);
    mem_free(c->acl_index);
}

const struct conf_acl *
conf_acl_find(const struct conf *c, const char *name)
{
    unsigned slot = c->acl_index ? *find_slot(c, name) : 0;

    return slot ? &c->acls[slot - 1] : NULL;
}
