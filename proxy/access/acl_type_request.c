/* acl_type_request.c - port, localport, method, proto, myportname: the small facts of a request.
 *
 * Ports are a bitmap of 8 KB an acl: two or three of them stand in nearly every configuration, and
 * one load answers. Words are few, so they are compared in turn. */
#include <stdio.h>

#include "base/check.h"
#include "proxy/access/acl_type.h"

enum { PORTS = 65536, PORT_MAX = PORTS - 1 };

struct port_acl {
    uint64_t has[PORTS / 64];
};

static bool
parse_range(struct span value, uint64_t *first, uint64_t *last)
{
    size_t dash = span_index(value, '-');

    if (!span_to_uint(span_first(value, dash), PORT_MAX, first))
        return false;
    *last = *first;
    if (dash == value.n)
        return true;
    return span_to_uint(span_skip(value, dash + 1), PORT_MAX, last) && *first <= *last;
}

static void *
port_compile(struct acl_build *b)
{
    struct port_acl *d = mem_zalloc(sizeof *d);
    uint64_t first, last;

    for (unsigned i = 0; i < b->acl->n_values; i++) {
        const char *value = b->acl->values[i];

        if (!parse_range(span_str(value), &first, &last)) {
            acl_problem(b, "%s: expected a port or a range such as 1025-65535", value);
            continue;
        }
        for (uint64_t p = first; p <= last; p++)
            d->has[p / 64] |= (uint64_t)1 << p % 64;
    }
    return d;
}

static enum acl_match
has_port(const struct port_acl *d, uint16_t port)
{
    return d->has[port / 64] >> port % 64 & 1 ? ACL_MATCH_YES : ACL_MATCH_NO;
}

static enum acl_match
port_match(const void *data, const struct acl_facts *f)
{
    return has_port(data, f->port);
}

static enum acl_match
localport_match(const void *data, const struct acl_facts *f)
{
    return has_port(data, addr_port(&f->local));
}

struct words_acl {
    uint32_t methods; /* a bit for each known method */
    unsigned n;
    struct span words[]; /* copies: the configuration may go first */
};

static struct words_acl *
words_new(unsigned n)
{
    return mem_zalloc(sizeof(struct words_acl) + n * sizeof(struct span));
}

static void
words_add(struct words_acl *d, const char *word)
{
    d->words[d->n++] = span_str(mem_strdup(word));
}

static void
words_free(void *data)
{
    struct words_acl *d = data;

    for (unsigned i = 0; i < d->n; i++)
        mem_free((char *)d->words[i].at);
    mem_free(d);
}

static void *
words_compile(struct acl_build *b)
{
    struct words_acl *d = words_new(b->acl->n_values);

    for (unsigned i = 0; i < b->acl->n_values; i++)
        words_add(d, b->acl->values[i]);
    return d;
}

/* Methods are case-sensitive (RFC 9110 section 9.1), but whoever writes `connect` into a rule means
 * CONNECT. */
static enum method
method_meant(const char *word)
{
    char upper[16];
    size_t n = 0;

    for (; word[n] && n < sizeof upper; n++)
        upper[n] = word[n] >= 'a' && word[n] <= 'z' ? (char)(word[n] - 0x20) : word[n];
    return n < sizeof upper ? method_of(span_of(upper, n)) : METHOD_OTHER;
}

static void *
method_compile(struct acl_build *b)
{
    struct words_acl *d = words_new(b->acl->n_values);

    for (unsigned i = 0; i < b->acl->n_values; i++) {
        const char *word = b->acl->values[i];
        enum method m = method_meant(word);

        if (m != METHOD_OTHER)
            d->methods |= (uint32_t)1 << m;
        else if (field_name_is_token(span_str(word)))
            words_add(d, word);
        else
            acl_problem(b, "%s: expected a method", word);
    }
    return d;
}

static enum acl_match
method_match(const void *data, const struct acl_facts *f)
{
    const struct words_acl *d = data;

    if (f->method != METHOD_OTHER)
        return d->methods >> f->method & 1 ? ACL_MATCH_YES : ACL_MATCH_NO;
    for (unsigned i = 0; i < d->n; i++)
        if (span_eq(d->words[i], f->method_text))
            return ACL_MATCH_YES;
    return ACL_MATCH_NO;
}

static bool
is_manager_word(struct span word)
{
    return span_eq_ci(word, SPAN("cache_object")) || span_eq_ci(word, SPAN("manager"));
}

/* A CONNECT request has no scheme: Squid calls that NONE. */
static enum acl_match
proto_match(const void *data, const struct acl_facts *f)
{
    const struct words_acl *d = data;
    struct span scheme = f->scheme.n ? f->scheme : SPAN("NONE");

    for (unsigned i = 0; i < d->n; i++)
        if (span_eq_ci(d->words[i], scheme) || (f->is_manager && is_manager_word(d->words[i])))
            return ACL_MATCH_YES;
    return ACL_MATCH_NO;
}

/* Without name= a port is called by its number. */
static enum acl_match
myportname_match(const void *data, const struct acl_facts *f)
{
    const struct words_acl *d = data;
    struct span name = span_str(f->port_name);
    char number[8];

    if (f->port_name == NULL)
        name = span_of(number, (size_t)snprintf(number, sizeof number, "%u", addr_port(&f->local)));
    for (unsigned i = 0; i < d->n; i++)
        if (span_eq(d->words[i], name))
            return ACL_MATCH_YES;
    return ACL_MATCH_NO;
}

const struct acl_type acl_type_port = {"port", port_compile, port_match, mem_free};
const struct acl_type acl_type_localport = {"localport", port_compile, localport_match, mem_free};
const struct acl_type acl_type_method = {"method", method_compile, method_match, words_free};
const struct acl_type acl_type_proto = {"proto", words_compile, proto_match, words_free};
const struct acl_type acl_type_myportname = {"myportname", words_compile, myportname_match,
                                             words_free};
