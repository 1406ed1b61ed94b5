/* http/edits.h - how a message that leaves differs from the head it is made of: fields taken out,
 * fields added behind.
 *
 * A stored head is shared and never changed; each answer made of it has its own edits. Rendering is
 * the writer's: HTTP/1.1 copies the head's serialized fields whole while nothing is taken out. */
#ifndef HTTP_EDITS_H
#define HTTP_EDITS_H

#include "http/field.h"

#define EDITS_REMOVED 4

struct edits {
    enum field_id removed[EDITS_REMOVED];
    unsigned n_removed;
    struct fields added;
};

void edits_remove(struct edits *e, enum field_id id); /* at most EDITS_REMOVED kinds */
bool edits_remove_it(const struct edits *e, const struct field *f);

#endif
