/* cache/validate.c - asking the origin whether what we hold is still good.
 *
 * The client's own conditions are about its copy, so they stay here: they are evaluated against
 * whatever comes out of the validation. Upstream goes what we hold, byte for byte as the origin
 * once sent it. */
#include "cache/validate.h"

#include "http/date.h"
#include "http/etag.h"

bool
head_has_validator(const struct head *h)
{
    return h->etag.n > 0 || h->last_modified_s >= 0;
}

static void
remove_conditions(struct fields *f)
{
    static const enum field_id conditions[] = {FIELD_IF_NONE_MATCH, FIELD_IF_MODIFIED_SINCE,
                                               FIELD_IF_MATCH,      FIELD_IF_UNMODIFIED_SINCE,
                                               FIELD_IF_RANGE,      FIELD_RANGE};

    for (unsigned i = 0; i < sizeof conditions / sizeof conditions[0]; i++)
        fields_remove(f, conditions[i]);
}

static bool
tag_came_before(struct head *const *stored, unsigned i)
{
    for (unsigned j = 0; j < i; j++)
        if (span_eq(stored[j]->etag, stored[i]->etag))
            return true;
    return false;
}

/* The entity tags of all, each once; SPAN_NONE when none has one. */
static struct span
join_tags(struct arena *a, struct head *const *stored, unsigned n)
{
    size_t room = 0;
    char *text, *end;

    for (unsigned i = 0; i < n; i++)
        room += stored[i]->etag.n + 2;
    text = end = arena_alloc(a, room);
    for (unsigned i = 0; i < n; i++) {
        if (stored[i]->etag.n == 0 || tag_came_before(stored, i))
            continue;
        if (end > text) {
            *end++ = ',';
            *end++ = ' ';
        }
        memcpy(end, stored[i]->etag.at, stored[i]->etag.n);
        end += stored[i]->etag.n;
    }
    return end > text ? span_of(text, (size_t)(end - text)) : SPAN_NONE;
}

/* RFC 9111 section 4.3.1. Last-Modified is sent beside the tag for origins that know no tags;
 * of several stored responses it could not say which is meant. */
void
validate_add_conditions(struct fields *f, struct arena *a, struct head *const *stored, unsigned n)
{
    struct span tags;

    if (n == 0)
        return;
    remove_conditions(f);
    tags = join_tags(a, stored, n);
    if (tags.n)
        fields_add_id(f, a, FIELD_IF_NONE_MATCH, tags);
    if (n == 1 && stored[0]->last_modified_s >= 0) {
        const struct field *lm = fields_find(&stored[0]->fields, FIELD_LAST_MODIFIED);

        fields_add_id(f, a, FIELD_IF_MODIFIED_SINCE, arena_copy(a, lm->value));
    }
}

struct validators {
    struct span etag;
    int64_t last_modified_s; /* -1: none */
};

static struct validators
validators_of(const struct response_head *r, int64_t now_s)
{
    const struct field *etag = fields_find(&r->fields, FIELD_ETAG);
    const struct field *lm = fields_find(&r->fields, FIELD_LAST_MODIFIED);
    struct validators v = {SPAN_NONE, -1};
    int64_t at_s;

    if (etag && etag_is_valid(etag->value))
        v.etag = etag->value;
    if (lm && date_parse(lm->value, now_s, &at_s))
        v.last_modified_s = at_s < 0 ? 0 : at_s; /* as head.c has it */
    return v;
}

enum fit { FIT_NO, FIT_YES, FIT_UNKNOWN };

/* A strong tag selects what has the same strong tag and nothing else; a weak one, or a date,
 * what has the same (RFC 9111 section 4.3.4). */
static enum fit
validators_fit(const struct validators *v, const struct head *h)
{
    if (v->etag.n && h->etag.n) {
        bool same = etag_is_weak(v->etag) ? etag_match_weak(v->etag, h->etag)
                                          : etag_match_strong(v->etag, h->etag);

        return same ? FIT_YES : FIT_NO;
    }
    if (v->last_modified_s >= 0 && h->last_modified_s >= 0)
        return v->last_modified_s == h->last_modified_s ? FIT_YES : FIT_NO;
    return FIT_UNKNOWN;
}

int
validate_select(const struct response_head *not_modified, struct head *const *stored, unsigned n)
{
    struct validators v;

    if (n == 0)
        return -1;
    v = validators_of(not_modified, stored[0]->date_s);
    for (unsigned i = 0; i < n; i++)
        if (validators_fit(&v, stored[i]) == FIT_YES)
            return (int)i;
    /* Many origins leave the validators out of a 304. It can only be about the one we named. */
    return n == 1 && validators_fit(&v, stored[0]) == FIT_UNKNOWN ? 0 : -1;
}

bool
validate_head_fits(const struct response_head *answer, const struct head *stored,
                   uint64_t stored_length)
{
    const struct field *length = fields_find(&answer->fields, FIELD_CONTENT_LENGTH);
    struct validators v = validators_of(answer, stored->date_s);
    uint64_t n_bytes;

    if (answer->status != stored->status)
        return false;
    if (length && stored_length != UINT64_MAX &&
        span_to_uint(length->value, UINT64_MAX - 1, &n_bytes) && n_bytes != stored_length)
        return false;
    if (v.etag.n && stored->etag.n && !etag_match_weak(v.etag, stored->etag))
        return false;
    return v.last_modified_s < 0 || stored->last_modified_s < 0 ||
           v.last_modified_s == stored->last_modified_s;
}
