/* acl_type_regex.c - url_regex, urlpath_regex, dstdom_regex and the patterns on request fields.
 *
 * A pattern is matched against what the origin will understand, not against one of the many ways to
 * write it: percent-escapes of URLs are decoded first (as Squid does), and the dot that may end a
 * host name is left out. Otherwise %65xample.com or "example.com." would walk around a block list.
 * -i and +i switch the case of all patterns behind them. */
#include "base/check.h"
#include "proxy/access/acl_type.h"
#include "proxy/access/regex.h"

struct regex_acl {
    enum field_id field;    /* FIELD_OTHER with a name: found by name */
    struct span field_name; /* owned */
    unsigned n;
    struct regex *patterns[];
};

static void
add_pattern(struct acl_build *b, struct regex_acl *d, const char *value, bool ignore_case)
{
    char why[160];
    struct regex *r = regex_new(value, ignore_case, why, sizeof why);

    if (r)
        d->patterns[d->n++] = r;
    else
        acl_problem(b, "%s: not a regular expression: %s", value, why);
}

static struct regex_acl *
compile_from(struct acl_build *b, unsigned first)
{
    const struct conf_acl *a = b->acl;
    struct regex_acl *d = mem_zalloc(sizeof *d + a->n_values * sizeof d->patterns[0]);
    bool ignore_case = false, flags_over = false;

    for (unsigned i = first; i < a->n_values; i++) {
        const char *value = a->values[i];

        if (!flags_over && strcmp(value, "-i") == 0)
            ignore_case = true;
        else if (!flags_over && strcmp(value, "+i") == 0)
            ignore_case = false;
        else if (!flags_over && (strcmp(value, "-n") == 0 || strcmp(value, "--") == 0))
            flags_over = value[1] == '-';
        else
            add_pattern(b, d, value, ignore_case);
    }
    return d;
}

static void *
regex_compile(struct acl_build *b)
{
    return compile_from(b, 0);
}

static void *
browser_compile(struct acl_build *b)
{
    struct regex_acl *d = compile_from(b, 0);

    d->field = FIELD_USER_AGENT;
    return d;
}

static void *
referer_compile(struct acl_build *b)
{
    struct regex_acl *d = compile_from(b, 0);

    d->field = FIELD_REFERER;
    return d;
}

static void *
mime_compile(struct acl_build *b)
{
    struct regex_acl *d = compile_from(b, 0);

    d->field = FIELD_CONTENT_TYPE;
    return d;
}

static void *
header_compile(struct acl_build *b)
{
    struct regex_acl *d = compile_from(b, 1);
    const char *name = b->acl->n_values ? b->acl->values[0] : "";

    if (!field_name_is_token(span_str(name)))
        acl_problem(b, "expected the name of a field, then regular expressions");
    d->field = field_id_of(span_str(name));
    d->field_name = span_str(mem_strdup(name));
    return d;
}

static void
regex_acl_free(void *data)
{
    struct regex_acl *d = data;

    for (unsigned i = 0; i < d->n; i++)
        regex_free(&d->patterns[i]);
    mem_free((char *)d->field_name.at);
    mem_free(d);
}

static enum acl_match
try_all(const struct regex_acl *d, struct span subject)
{
    for (unsigned i = 0; i < d->n; i++) {
        enum regex_answer a = regex_match(d->patterns[i], subject);

        if (a != REGEX_NO)
            return a == REGEX_YES ? ACL_MATCH_YES : ACL_MATCH_FAILED;
    }
    return ACL_MATCH_NO;
}

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* %00 stays as it is: no pattern was written with a NUL in mind. */
static size_t
decode(char *at, size_t n)
{
    size_t out = 0;

    for (size_t i = 0; i < n; i++) {
        int high = at[i] == '%' && i + 2 < n ? hex_digit(at[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(at[i + 2]) : -1;

        if (low >= 0 && (high | low) != 0) {
            at[out++] = (char)(high << 4 | low);
            i += 2;
        } else {
            at[out++] = at[i];
        }
    }
    return out;
}

static bool
ends_in_dot(struct span host)
{
    return host.n > 1 && host.at[host.n - 1] == '.';
}

/* The first place where a host that ends in a dot stands in the URL is the host: no scheme has a
 * dot before it. */
static size_t
drop_host_dot(char *at, size_t n, struct span host)
{
    char *found = memmem(at, n, host.at, host.n);

    if (found == NULL)
        return n;
    found += host.n - 1;
    memmove(found, found + 1, (size_t)(at + n - found) - 1);
    return n - 1;
}

static struct span
as_understood(struct span text, struct span host)
{
    char *copy;
    size_t n = text.n;

    if (span_index(text, '%') == text.n && !ends_in_dot(host))
        return text;
    copy = regex_scratch(n);
    memcpy(copy, text.at, n);
    if (ends_in_dot(host))
        n = drop_host_dot(copy, n, host);
    return span_of(copy, decode(copy, n));
}

static enum acl_match
url_match(const void *data, const struct acl_facts *f)
{
    return f->url.n ? try_all(data, as_understood(f->url, f->host)) : ACL_MATCH_NO;
}

static enum acl_match
urlpath_match(const void *data, const struct acl_facts *f)
{
    return f->path.n ? try_all(data, as_understood(f->path, SPAN_NONE)) : ACL_MATCH_NO;
}

static enum acl_match
host_match(const void *data, const struct acl_facts *f)
{
    struct span host = f->host;

    if (ends_in_dot(host))
        host.n--;
    return host.n ? try_all(data, host) : ACL_MATCH_NO;
}

static bool
is_line_of(const struct field *field, const struct regex_acl *d)
{
    return d->field != FIELD_OTHER ? field->id == d->field : span_eq_ci(field->name, d->field_name);
}

/* Each line of the field is a subject of its own: no allocation, and ^ means the start of what
 * somebody wrote. */
static enum acl_match
field_match(const void *data, const struct acl_facts *f)
{
    const struct regex_acl *d = data;
    const struct fields *fields =
        d->field == FIELD_PROXY_AUTHORIZATION ? &f->proxy_authorization : f->fields;

    for (unsigned i = 0; fields && i < fields->n; i++) {
        enum acl_match m = ACL_MATCH_NO;

        if (is_line_of(&fields->at[i], d))
            m = try_all(d, fields->at[i].value);
        if (m != ACL_MATCH_NO)
            return m;
    }
    return ACL_MATCH_NO;
}

const struct acl_type acl_type_url_regex = {"url_regex", regex_compile, url_match, regex_acl_free};
const struct acl_type acl_type_urlpath_regex = {"urlpath_regex", regex_compile, urlpath_match,
                                                regex_acl_free};
const struct acl_type acl_type_dstdom_regex = {"dstdom_regex", regex_compile, host_match,
                                               regex_acl_free};
const struct acl_type acl_type_browser = {"browser", browser_compile, field_match, regex_acl_free};
const struct acl_type acl_type_referer_regex = {"referer_regex", referer_compile, field_match,
                                                regex_acl_free};
const struct acl_type acl_type_req_mime_type = {"req_mime_type", mime_compile, field_match,
                                                regex_acl_free};
const struct acl_type acl_type_req_header = {"req_header", header_compile, field_match,
                                             regex_acl_free};
