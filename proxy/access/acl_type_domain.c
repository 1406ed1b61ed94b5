/* acl_type_domain.c - dstdomain: the host of the target URI against a list of domains.
 *
 * A host that is an address is compared as text, in its canonical form, and is never looked up
 * backwards: a PTR record belongs to whoever has the address. Values that no host can ever equal
 * are refused, because a block list with a URL in it does not block. */
#include "base/check.h"
#include "http/uri.h"
#include "proxy/access/acl_type.h"
#include "proxy/access/domain_table.h"

static bool
add_address(struct domain_table *t, struct span value)
{
    char text[ADDR_TEXT_MAX];
    struct addr a;

    if (value.n > 2 && value.at[0] == '[' && value.at[value.n - 1] == ']')
        value = span_of(value.at + 1, value.n - 2);
    if (!addr_parse(value, &a))
        return false;
    domain_table_add(t, span_of(text, addr_format(&a, text)), false);
    return true;
}

static void
add_value(struct acl_build *b, struct domain_table *t, const char *value)
{
    struct span name = span_str(value);
    bool with_below = false;

    if (strcmp(value, "-n") == 0 || add_address(t, name))
        return;
    if (span_starts(name, SPAN("*."))) /* no dialect of ours, but only one thing can be meant */
        name = span_skip(name, 1);
    while (name.n && name.at[0] == '.') {
        name = span_skip(name, 1);
        with_below = true;
    }
    if (uri_host_is_name(name))
        domain_table_add(t, name, with_below);
    else
        acl_problem(b, "%s: expected a domain such as .example.com", value);
}

static void *
domain_compile(struct acl_build *b)
{
    struct domain_table *t = mem_zalloc(sizeof *t);

    for (unsigned i = 0; i < b->acl->n_values; i++)
        add_value(b, t, b->acl->values[i]);
    return t;
}

static void
domain_free(void *data)
{
    domain_table_free(data);
    mem_free(data);
}

static enum acl_match
domain_match(const void *data, const struct acl_facts *f)
{
    char text[ADDR_TEXT_MAX];
    struct span host = f->host;
    bool is_name = f->host_literal.sa.sa_family == AF_UNSPEC;

    if (!is_name)
        host = span_of(text, addr_format(&f->host_literal, text));
    return domain_table_has(data, host, is_name) ? ACL_MATCH_YES : ACL_MATCH_NO;
}

const struct acl_type acl_type_dstdomain = {"dstdomain", domain_compile, domain_match, domain_free};
