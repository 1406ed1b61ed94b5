/* http/conditional.c - preconditions.
 *
 * The order of RFC 9110 section 13.2.2: If-Match before If-Unmodified-Since, If-None-Match before
 * If-Modified-Since; the date of a pair is not looked at when its tags are there. A date that is
 * none, or a second line of a field that has one value, makes the field count as absent. */
#include "http/conditional.h"

#include "http/date.h"
#include "http/etag.h"

bool
conditional_is_present(const struct fields *f)
{
    for (unsigned i = 0; i < f->n; i++) {
        switch (f->at[i].id) {
        case FIELD_IF_MATCH:
        case FIELD_IF_NONE_MATCH:
        case FIELD_IF_MODIFIED_SINCE:
        case FIELD_IF_UNMODIFIED_SINCE:
            return true;
        default:
            break;
        }
    }
    return false;
}

/* The date of the only line of id; -1 when there is none to go by. */
static int64_t
date_of(const struct fields *f, enum field_id id, int64_t now_s)
{
    const struct field *field = fields_find(f, id);
    int64_t at_s;

    if (field == NULL || fields_next(f, id, field) || !date_parse(field->value, now_s, &at_s))
        return -1;
    return at_s;
}

/* "*" matches any representation, and there is one. */
static bool
any_tag_matches(const struct fields *f, enum field_id id, const struct selected *s, bool strong)
{
    const struct field *field = fields_find(f, id);

    for (; field; field = fields_next(f, id, field)) {
        if (span_eq(field->value, SPAN("*")) || etag_list_has(field->value, s->etag, strong))
            return true;
    }
    return false;
}

/* Steps 1 and 2. */
static bool
may_proceed(const struct fields *f, const struct selected *s, int64_t now_s)
{
    int64_t since_s;

    if (fields_find(f, FIELD_IF_MATCH))
        return any_tag_matches(f, FIELD_IF_MATCH, s, true);
    since_s = date_of(f, FIELD_IF_UNMODIFIED_SINCE, now_s);
    return since_s < 0 || s->last_modified_s < 0 || s->last_modified_s <= since_s;
}

/* Without a Last-Modified the Date stands in: nothing has changed since the response was made. In
 * that very second it may have, twice, and a client that fetched in between must not be told that it
 * has the last one. */
static bool
is_unmodified_since(const struct selected *s, int64_t since_s)
{
    if (s->last_modified_s >= 0)
        return s->last_modified_s <= since_s;
    return s->date_s >= 0 && s->date_s < since_s;
}

enum precondition
conditional_evaluate(const struct request_head *r, const struct selected *s, int64_t now_s)
{
    const struct fields *f = &r->fields;
    bool reads = r->method == METHOD_GET || r->method == METHOD_HEAD;

    if (!may_proceed(f, s, now_s))
        return PRECONDITION_FAILED;
    if (fields_find(f, FIELD_IF_NONE_MATCH)) {
        if (!any_tag_matches(f, FIELD_IF_NONE_MATCH, s, false))
            return PRECONDITION_PASS;
        return reads ? PRECONDITION_NOT_MODIFIED : PRECONDITION_FAILED;
    }
    if (reads && is_unmodified_since(s, date_of(f, FIELD_IF_MODIFIED_SINCE, now_s)))
        return PRECONDITION_NOT_MODIFIED;
    return PRECONDITION_PASS;
}

/* A Last-Modified is a strong validator once a second has passed before the Date of the response:
 * until then the representation may have changed again within the same second (8.8.2.2). */
static bool
last_modified_is_strong(const struct selected *s)
{
    return s->last_modified_s >= 0 && s->date_s > s->last_modified_s;
}

bool
conditional_if_range_holds(const struct fields *f, const struct selected *s, int64_t now_s)
{
    const struct field *field = fields_find(f, FIELD_IF_RANGE);
    int64_t at_s;

    if (field == NULL)
        return true;
    if (fields_next(f, FIELD_IF_RANGE, field))
        return false;
    if (date_parse(field->value, now_s, &at_s))
        return at_s == s->last_modified_s && last_modified_is_strong(s);
    return etag_match_strong(field->value, s->etag);
}
