/* Rules, and what they ask for before they can answer.
 *
 * What is got goes into the context's facts, where each rule of the request finds it from then on:
 * nothing is asked for twice, and the addresses that are judged are those that are connected to. A
 * step that has to wait runs again from its beginning. What cannot be had is known as such; an acl
 * then does not match, and it is for the fetch to fail. */
#include "base/check.h"
#include "proxy/exchange/states.h"

static void
know_dst(struct context *c)
{
    c->facts.dst = c->dst->at;
    c->facts.n_dst = c->dst->status == DNS_OK ? c->dst->n : 0;
    c->facts.dst_known = true;
}

static void
dst_resolved(void *owner, const struct dns_answer *a)
{
    struct exchange *x = owner;

    x->query = NULL;
    context_take_dst(x->context, a);
    exchange_resume(x);
}

static bool
obtain_dst(struct exchange *x)
{
    struct dns_answer now;

    if (x->query)
        return false;
    if (!x->context->dst) {
        if (!resolver_ask(x->env->upstream->resolver, x->context->request.uri.host, dst_resolved, x,
                          &now, &x->query))
            return false;
        context_take_dst(x->context, &now);
    }
    know_dst(x->context);
    return true;
}

bool
exchange_obtain(struct exchange *x, unsigned needs)
{
    return !(needs & ACL_NEEDS(ACL_NEED_DST)) || obtain_dst(x);
}

enum fault
exchange_dst_fault(const struct exchange *x)
{
    const struct dns_answer *dst = x->context->dst;

    return dst && dst->status != DNS_OK ? upstream_dns_fault(dst->status) : FAULT_NONE;
}

bool
exchange_ask_rules(struct exchange *x, const struct acl_list *rules, bool *allow)
{
    enum acl_answer a;

    while ((a = acl_list_check(rules, &x->context->facts)) != ACL_ALLOW && a != ACL_DENY)
        if (!exchange_obtain(x, ACL_NEEDS(a)))
            return false;
    *allow = a == ACL_ALLOW;
    return true;
}

bool
exchange_rules_allow(const struct exchange *x, const struct acl_list *rules)
{
    enum acl_answer a = acl_list_check(rules, &x->context->facts);

    CHECK(a == ACL_ALLOW || a == ACL_DENY);
    return a == ACL_ALLOW;
}
