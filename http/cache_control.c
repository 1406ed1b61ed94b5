/* http/cache_control.c - Cache-Control.
 *
 * One table says which member of the struct a directive sets. Where values are malformed the rules
 * of the header are Squid's, since operators who move over expect the same lifetimes; but a number
 * with a minus sign means "not at all" to whoever sends it, and is taken as 0. */
#include "http/cache_control.h"

#define DELTA_MAX (INT64_C(1) << 31) /* RFC 9111 section 1.2.2 */

enum kind { KIND_FLAG, KIND_SECONDS, KIND_LIFETIME, KIND_NAMES, KIND_MAX_STALE };

#define AT(member) offsetof(struct cache_control, member)

static const struct directive {
    struct span name;
    enum kind kind;
    size_t at;               /* of the bool or the seconds */
    size_t has_names, names; /* KIND_NAMES */
} directives[] = {
    {{"max-age", 7}, KIND_LIFETIME, AT(max_age_s), 0, 0},
    {{"s-maxage", 8}, KIND_LIFETIME, AT(s_maxage_s), 0, 0},
    {{"no-cache", 8}, KIND_NAMES, AT(no_cache), AT(no_cache_fields), AT(no_cache_names)},
    {{"no-store", 8}, KIND_FLAG, AT(no_store), 0, 0},
    {{"private", 7}, KIND_NAMES, AT(private_), AT(private_fields), AT(private_names)},
    {{"public", 6}, KIND_FLAG, AT(public_), 0, 0},
    {{"must-revalidate", 15}, KIND_FLAG, AT(must_revalidate), 0, 0},
    {{"proxy-revalidate", 16}, KIND_FLAG, AT(proxy_revalidate), 0, 0},
    {{"must-understand", 15}, KIND_FLAG, AT(must_understand), 0, 0},
    {{"no-transform", 12}, KIND_FLAG, AT(no_transform), 0, 0},
    {{"only-if-cached", 14}, KIND_FLAG, AT(only_if_cached), 0, 0},
    {{"immutable", 9}, KIND_FLAG, AT(immutable), 0, 0},
    {{"min-fresh", 9}, KIND_SECONDS, AT(min_fresh_s), 0, 0},
    {{"max-stale", 9}, KIND_MAX_STALE, AT(max_stale_s), 0, 0},
    {{"stale-while-revalidate", 22}, KIND_SECONDS, AT(stale_while_revalidate_s), 0, 0},
    {{"stale-if-error", 14}, KIND_SECONDS, AT(stale_if_error_s), 0, 0},
};

static void *
member_at(struct cache_control *cc, size_t at)
{
    return (char *)cc + at;
}

/* Leading digits count, what follows does not ("100a" reads 100); -1 without any. */
static int64_t
seconds_of(struct span value)
{
    int64_t v = 0;

    if (value.n >= 2 && value.at[0] == '-' && value.at[1] >= '0' && value.at[1] <= '9')
        return 0;
    if (value.n == 0 || value.at[0] < '0' || value.at[0] > '9')
        return -1;
    for (size_t i = 0; i < value.n && value.at[i] >= '0' && value.at[i] <= '9'; i++) {
        v = v * 10 + (value.at[i] - '0');
        if (v > DELTA_MAX)
            v = DELTA_MAX;
    }
    return v;
}

static struct span
without_quotes(struct span value)
{
    if (value.n >= 2 && value.at[0] == '"' && value.at[value.n - 1] == '"')
        return span_of(value.at + 1, value.n - 2);
    return value;
}

/* no-cache and private: with field names they are about these fields only. The strict form wins
 * when both were sent, and so does it over two lists, of which only one could be kept. */
static void
set_names(struct cache_control *cc, const struct directive *d, struct span value)
{
    bool *set = member_at(cc, d->at), *has_names = member_at(cc, d->has_names);
    struct span *names = member_at(cc, d->names);
    bool again = *set;

    value = span_trim(without_quotes(value));
    *set = true;
    *has_names = value.n > 0 && !again;
    *names = *has_names ? value : SPAN_NONE;
}

static void
set_seconds(struct cache_control *cc, const struct directive *d, struct span value)
{
    int64_t *seconds = member_at(cc, d->at);

    if (*seconds < 0)
        *seconds = seconds_of(value);
}

/* RFC 9111 section 4.2.1: what cannot be read as a lifetime is none, so that neither Expires nor a
 * guess takes its place. Both forms are accepted (section 5.2). */
static void
set_lifetime(struct cache_control *cc, const struct directive *d, struct span value)
{
    int64_t *seconds = member_at(cc, d->at), read = seconds_of(without_quotes(value));

    if (*seconds < 0)
        *seconds = read < 0 ? 0 : read;
}

static void
apply(struct cache_control *cc, const struct directive *d, struct span value, bool has_value)
{
    switch (d->kind) {
    case KIND_FLAG:
        *(bool *)member_at(cc, d->at) = true;
        break;
    case KIND_NAMES:
        set_names(cc, d, value);
        break;
    case KIND_MAX_STALE:
        if (!has_value)
            cc->max_stale_any = true;
        set_seconds(cc, d, value);
        break;
    case KIND_LIFETIME:
        set_lifetime(cc, d, value);
        break;
    case KIND_SECONDS:
        set_seconds(cc, d, value);
        break;
    }
}

/* Space before "=" is dropped, space behind it belongs to a value that is then no number. */
static void
read_directive(struct cache_control *cc, struct span member)
{
    size_t equals = span_index(member, '=');
    struct span name = span_trim(span_first(member, equals));

    for (size_t i = 0; i < sizeof directives / sizeof directives[0]; i++) {
        if (!span_eq_ci(directives[i].name, name))
            continue;
        apply(cc, &directives[i], span_skip(member, equals + 1), equals < member.n);
        return;
    }
}

/* RFC 9111 section 5.2 */
struct cache_control
cache_control_parse(const struct fields *f)
{
    struct cache_control cc = CACHE_CONTROL_NONE;

    for (unsigned i = 0; i < f->n; i++) {
        struct span rest = f->at[i].value, member;

        if (f->at[i].id != FIELD_CACHE_CONTROL)
            continue;
        cc.present = true;
        while (list_next(&rest, &member))
            read_directive(&cc, member);
    }
    return cc;
}
