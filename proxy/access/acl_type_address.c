/* acl_type_address.c - src, dst, localip: addresses against networks.
 *
 * dst asks for the addresses of a name only when they decide: a literal host needs no question, and
 * with -n (Squid's flag) nobody is ever asked. Squid resolves names inside a dst list once, at
 * start; here they are compared with the host the client asked for, which needs no resolver and
 * does not age. That matches less, so acl_list_new refuses such an acl where matching less would
 * let more through (ACL_BY_TEXT). A diverted connection has one destination, and no name gets
 * around it. */
#include "base/check.h"
#include "http/uri.h"
#include "proxy/access/acl_type.h"
#include "proxy/access/domain_table.h"
#include "proxy/access/net_table.h"

struct address_acl {
    struct net_table nets;
    struct domain_table names; /* dst only */
    bool never_ask, every;
};

/* Old ways to write `all`, which Squid also takes for both families. */
static bool
means_all(const char *value)
{
    static const char *const words[] = {"all", "0/0", "0.0.0.0/0", "0.0.0.0/0.0.0.0",
                                        "0.0.0.0-255.255.255.255"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(value, words[i]) == 0)
            return true;
    return false;
}

static bool
add_word(struct address_acl *d, const char *value)
{
    if (means_all(value))
        d->every = true;
    else if (strcasecmp(value, "ipv4") == 0)
        net_table_add_family(&d->nets, AF_INET);
    else if (strcasecmp(value, "ipv6") == 0)
        net_table_add_family(&d->nets, AF_INET6);
    else
        return strcasecmp(value, "none") == 0;
    return true;
}

/* "[2001:db8::1]" is the address between the brackets; "[2001:db8::]/32" has its length behind
 * them. */
static struct span
without_brackets(struct span value, char out[ADDR_TEXT_MAX * 2])
{
    size_t end = span_index(value, ']');

    if (value.n == 0 || value.at[0] != '[' || end == value.n || value.n > ADDR_TEXT_MAX * 2)
        return value;
    memcpy(out, value.at + 1, end - 1);
    memcpy(out + end - 1, value.at + end + 1, value.n - end - 1);
    return span_of(out, value.n - 2);
}

static bool
add_network(struct address_acl *d, struct span value)
{
    char room[ADDR_TEXT_MAX * 2];
    struct net net;

    if (!net_parse(without_brackets(value, room), &net))
        return false;
    net_table_add(&d->nets, &net);
    return true;
}

static bool
has_letter(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((s.at[i] | 0x20) >= 'a' && (s.at[i] | 0x20) <= 'z')
            return true;
    return false;
}

static void
add_value(struct acl_build *b, struct address_acl *d, const char *value, bool may_be_name)
{
    struct span s = span_str(value);
    bool is_name = has_letter(s) && uri_host_is_name(s);

    if (strcmp(value, "-n") == 0) {
        d->never_ask = true;
    } else if (add_word(d, value) || add_network(d, s)) {
        return;
    } else if (is_name && may_be_name) {
        domain_table_add(&d->names, s, false);
        b->properties |= ACL_BY_TEXT;
    } else if (is_name) {
        acl_problem(b, "%s: an address is expected here, not a name", value);
    } else {
        acl_problem(b, "%s: expected an address, a network (10.0.0.0/8) or a range", value);
    }
}

static void *
compile(struct acl_build *b, bool may_be_name)
{
    struct address_acl *d = mem_zalloc(sizeof *d);

    /* `acl all src`, seen in the wild: Squid adds nothing to its built-in all, which stays whole.
     */
    if (b->acl->n_values == 0 && strcasecmp(b->acl->name, "all") == 0)
        d->every = true;
    for (unsigned i = 0; i < b->acl->n_values; i++)
        add_value(b, d, b->acl->values[i], may_be_name);
    net_table_seal(&d->nets);
    return d;
}

static void *
address_compile(struct acl_build *b)
{
    return compile(b, false);
}

static bool
has_networks(const struct address_acl *d)
{
    return d->nets.n4 > 0 || d->nets.n6 > 0;
}

static void *
dst_compile(struct acl_build *b)
{
    struct address_acl *d = compile(b, true);

    if (!d->never_ask && !d->every && has_networks(d))
        b->needs = ACL_NEEDS(ACL_NEED_DST);
    return d;
}

static void
address_free(void *data)
{
    struct address_acl *d = data;

    net_table_free(&d->nets);
    domain_table_free(&d->names);
    mem_free(d);
}

static enum acl_match
has(const struct address_acl *d, const struct addr *a)
{
    return d->every || net_table_has(&d->nets, a) ? ACL_MATCH_YES : ACL_MATCH_NO;
}

static enum acl_match
src_match(const void *data, const struct acl_facts *f)
{
    return has(data, &f->client);
}

static enum acl_match
localip_match(const void *data, const struct acl_facts *f)
{
    return has(data, &f->local);
}

static enum acl_match
dst_match(const void *data, const struct acl_facts *f)
{
    const struct address_acl *d = data;

    if (f->destination)
        return has(d, f->destination);
    if (d->every || domain_table_has(&d->names, f->host, false))
        return ACL_MATCH_YES;
    if (f->host_literal.sa.sa_family != AF_UNSPEC)
        return has(d, &f->host_literal);
    if (f->host.n == 0 || !has_networks(d))
        return ACL_MATCH_NO;
    if (!f->dst_known)
        return d->never_ask ? ACL_MATCH_NO : ACL_MATCH_NEEDS_DST;
    for (unsigned i = 0; i < f->n_dst && !d->never_ask; i++)
        if (net_table_has(&d->nets, &f->dst[i]))
            return ACL_MATCH_YES;
    return ACL_MATCH_NO;
}

const struct acl_type acl_type_src = {"src", address_compile, src_match, address_free};
const struct acl_type acl_type_dst = {"dst", dst_compile, dst_match, address_free};
const struct acl_type acl_type_localip = {"localip", address_compile, localip_match, address_free};
