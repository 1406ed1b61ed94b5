/* http/range.c - byte ranges.
 *
 * A Range that is not understood is ignored, which gives the whole representation and is always
 * right. Numbers too long for 64 bits lie behind the end of every representation, so they are
 * clamped instead of being called bad syntax. */
#include "http/range.h"

/* Digits at the front of *s, clamped; false when there are none. */
static bool
take_number(struct span *s, uint64_t *value)
{
    uint64_t v = 0;
    size_t i = 0;

    for (; i < s->n && s->at[i] >= '0' && s->at[i] <= '9'; i++) {
        unsigned digit = (unsigned)(s->at[i] - '0');

        v = v > (UINT64_MAX - digit) / 10 ? UINT64_MAX : v * 10 + digit;
    }
    *s = span_skip(*s, i);
    *value = v;
    return i > 0;
}

enum spec { SPEC_BAD, SPEC_SATISFIABLE, SPEC_BEYOND };

static enum spec
suffix_spec(struct span digits, uint64_t length, struct byte_range *out)
{
    uint64_t n;

    if (!take_number(&digits, &n) || digits.n > 0)
        return SPEC_BAD;
    if (n == 0)
        return SPEC_BEYOND;
    out->first = n >= length ? 0 : length - n;
    out->last = length - 1;
    return SPEC_SATISFIABLE;
}

/* "first-last", "first-" or "-suffix" (RFC 9110 section 14.1.1). */
static enum spec
read_spec(struct span s, uint64_t length, struct byte_range *out)
{
    if (s.n > 0 && s.at[0] == '-')
        return suffix_spec(span_skip(s, 1), length, out);
    if (!take_number(&s, &out->first) || s.n == 0 || s.at[0] != '-')
        return SPEC_BAD;
    s = span_skip(s, 1);
    out->last = UINT64_MAX;
    if (s.n > 0 && (!take_number(&s, &out->last) || s.n > 0 || out->last < out->first))
        return SPEC_BAD;
    if (out->first >= length)
        return SPEC_BEYOND;
    if (out->last >= length)
        out->last = length - 1;
    return SPEC_SATISFIABLE;
}

static bool
take_unit(struct span *value)
{
    if (!span_starts_ci(*value, SPAN("bytes=")))
        return false;
    *value = span_skip(*value, 6);
    return true;
}

/* Ranges that add up to more than the whole overlap: a small request must not make us send a
 * representation many times over (RFC 9110 sections 14.2, 17.15). */
static bool
is_wasteful(const struct byte_range *r, unsigned n, uint64_t length)
{
    uint64_t left = length;

    for (unsigned i = 0; n > 1 && i < n; i++) {
        uint64_t size = r[i].last - r[i].first + 1;

        if (size > left)
            return true;
        left -= size;
    }
    return false;
}

/* RFC 9110 section 14.2 */
enum range_result
range_parse(struct span value, uint64_t length, struct byte_range *out, unsigned max, unsigned *n)
{
    unsigned n_specs = 0;

    *n = 0;
    /* Of an empty representation no byte can be named; all of it is the honest answer. */
    if (length == 0 || !take_unit(&value))
        return RANGE_IGNORE;
    while (value.n > 0) {
        size_t comma = span_index(value, ',');
        struct span spec = span_trim(span_first(value, comma));
        struct byte_range r = {0, 0};
        enum spec kind;

        value = span_skip(value, comma + 1);
        if (spec.n == 0)
            continue;
        kind = read_spec(spec, length, &r);
        if (kind == SPEC_BAD || n_specs++ == max)
            return *n = 0, RANGE_IGNORE;
        if (kind == SPEC_SATISFIABLE)
            out[(*n)++] = r;
    }
    if (n_specs == 0 || is_wasteful(out, *n, length))
        return *n = 0, RANGE_IGNORE;
    return *n > 0 ? RANGE_OK : RANGE_UNSATISFIABLE;
}

/* RFC 9110 section 14.4. The form of a 416, with an asterisk for the range, names none: false. */
bool
content_range_parse(struct span value, struct byte_range *range, bool *length_known,
                    uint64_t *length)
{
    struct byte_range r;
    uint64_t total = 0;
    size_t dash, slash;
    bool known;

    if (!span_starts_ci(value, SPAN("bytes ")))
        return false;
    value = span_skip(value, 6);
    slash = span_index(value, '/');
    dash = span_index(span_first(value, slash), '-');
    if (slash == value.n || dash == slash ||
        !span_to_uint(span_first(value, dash), UINT64_MAX - 1, &r.first) ||
        !span_to_uint(span_skip(span_first(value, slash), dash + 1), UINT64_MAX - 1, &r.last))
        return false;
    value = span_skip(value, slash + 1);
    known = !span_eq(value, SPAN("*"));
    if (r.last < r.first ||
        (known && (!span_to_uint(value, UINT64_MAX, &total) || r.last >= total)))
        return false;
    *range = r;
    *length_known = known;
    *length = total;
    return true;
}
