/* cache/part.c - parts of representations.
 *
 * Parts of unequal versions must never be mixed, so everything that puts bytes side by side asks
 * for equal strong validators. Bytes whose place is in doubt (no Content-Range that can be read,
 * more or fewer bytes than it says, several ranges in one message) are never cut. */
#include "cache/part.h"

#include "http/etag.h"

static bool
is_placed(const struct response_head *r, uint64_t body_bytes, struct part *out)
{
    const struct field *f = fields_find(&r->fields, FIELD_CONTENT_RANGE);
    struct byte_range range;
    bool known;

    if (!f || fields_next(&r->fields, FIELD_CONTENT_RANGE, f) ||
        !content_range_parse(f->value, &range, &known, &out->whole) || !known)
        return false;
    out->from = range.first;
    return body_bytes == range.last - range.first + 1;
}

/* RFC 9110 section 15.3.7: one part has a Content-Range, several are multipart/byteranges. */
static bool
is_part(const struct response_head *r)
{
    const struct field *type = fields_find(&r->fields, FIELD_CONTENT_TYPE);

    return fields_find(&r->fields, FIELD_CONTENT_RANGE) ||
           (type && span_starts_ci(type->value, SPAN("multipart/byteranges")));
}

bool
part_of_response(const struct response_head *r, uint64_t body_bytes, struct span range,
                 struct part *out)
{
    *out = (struct part){0};
    if (r->status != 206 || !is_part(r))
        return false;
    if (!is_placed(r, body_bytes, out))
        *out = (struct part){.range = range};
    return true;
}

bool
part_answers(const struct part *p, uint64_t n_bytes, struct span range, struct byte_range *cut)
{
    unsigned n;

    if (p->whole == 0)
        return span_eq(p->range, range);
    return range_parse(range, p->whole, cut, 1, &n) == RANGE_OK && n == 1 &&
           cut->first >= p->from && cut->last - p->from < n_bytes;
}

/* RFC 9110 section 8.8.2.2: the origin's clock has moved on since, so that a second change within
 * that second would show. */
static bool
date_is_strong(const struct head *h)
{
    return h->last_modified_s >= 0 && h->date_given && h->date_s > h->last_modified_s;
}

struct span
part_validator(const struct head *h)
{
    if (h->etag.n)
        return etag_is_weak(h->etag) ? SPAN_NONE : h->etag;
    return date_is_strong(h) ? fields_find(&h->fields, FIELD_LAST_MODIFIED)->value : SPAN_NONE;
}

bool
part_may_grow(const struct head *h)
{
    return part_validator(h).n > 0;
}

bool
part_is_same(const struct head *a, const struct head *b)
{
    if (a->etag.n || b->etag.n)
        return a->etag.n && b->etag.n && etag_match_strong(a->etag, b->etag);
    return date_is_strong(a) && date_is_strong(b) && a->last_modified_s == b->last_modified_s;
}

bool
part_joins(const struct part *p, uint64_t n_bytes, uint64_t from, uint64_t end)
{
    return p->whole && from >= p->from && from - p->from <= n_bytes && end - p->from > n_bytes;
}

bool
part_replaces(const struct part *newer, uint64_t newer_bytes, const struct part *old,
              uint64_t old_bytes)
{
    if (newer->whole == 0 || old->whole == 0)
        return newer->whole == old->whole && span_eq(newer->range, old->range);
    return newer->whole != old->whole || (newer->from <= old->from && newer_bytes >= old_bytes &&
                                          old->from - newer->from <= newer_bytes - old_bytes);
}
