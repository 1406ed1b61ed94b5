/* The few kinds of fields that are ever taken out are looked through one by one. */
#include "http/edits.h"

#include "base/check.h"

void
edits_remove(struct edits *e, enum field_id id)
{
    CHECK(e->n_removed < EDITS_REMOVED);
    e->removed[e->n_removed++] = id;
}

bool
edits_remove_it(const struct edits *e, const struct field *f)
{
    for (unsigned i = 0; i < e->n_removed; i++)
        if (e->removed[i] == f->id)
            return true;
    return false;
}
