/* http/field.h - field names with their properties, and lists of field lines (RFC 9110 section 5).
 *
 * A struct fields keeps the order and exact bytes of a message's field lines. Its array lives in an
 * arena; names and values borrow from the buffer the message was parsed from (the arena, as a
 * rule). */
#ifndef HTTP_FIELD_H
#define HTTP_FIELD_H

#include "base/arena.h"

enum field_id {
    FIELD_OTHER,
#define FIELD(id, name, flags) FIELD_##id,
#include "http/fields.def"
#undef FIELD
    FIELDS
};

struct field {
    struct span name, value; /* value without surrounding whitespace */
    enum field_id id;
};

struct fields {
    struct field *at;
    unsigned n, cap;
};

/* RFC 9110 section 5.1: without case. */
enum field_id field_id_of(struct span name); /* case-insensitive, a perfect or hashed lookup: hot */
struct span field_name(enum field_id id);
bool field_is_hop_by_hop(enum field_id id);
bool field_is_framing(enum field_id id);
bool field_name_is_token(struct span name);   /* RFC 9110 section 5.6.2, not empty */
bool field_value_is_valid(struct span value); /* no CR, LF, NUL (5.5) */

void fields_add(struct fields *f, struct arena *a, struct span name, struct span value);
void fields_add_id(struct fields *f, struct arena *a, enum field_id id, struct span value);
const struct field *fields_find(const struct fields *f, enum field_id id); /* the first, or NULL */
const struct field *fields_next(const struct fields *f, enum field_id id,
                                const struct field *after);
const struct field *fields_find_name(const struct fields *f, struct span name);
/* RFC 9110 section 5.2. */
unsigned fields_count(const struct fields *f, enum field_id id);
void fields_remove(struct fields *f, enum field_id id);
void fields_remove_name(struct fields *f, struct span name);
/* All lines of id joined with ", " (RFC 9110 section 5.3); borrows when there is one; SPAN_NONE
 * when none. */
struct span fields_join(const struct fields *f, struct arena *a, enum field_id id);
/* RFC 9110 section 5.3. */
struct span fields_join_name(const struct fields *f, struct arena *a, struct span name);

/* Walks the members of a comma list (5.6.1): trimmed, empty ones skipped, commas inside quoted
 * strings kept. *rest starts as the whole value; false at the end. */
bool list_next(struct span *rest, struct span *member);
/* Over all lines of id: is this token a member (case-insensitive; parameters after ';' do not
 * count)? */
/* RFC 9110 section 5.6.1. */
bool fields_has_token(const struct fields *f, enum field_id id, struct span token);

#endif
