/* May this client make this request? Then it goes where its kind is answered. */
#include "base/counters.h"
#include "http/forwarding.h"
#include "proxy/exchange/states.h"

/* OPTIONS or TRACE that ends here (Max-Forwards 0), or OPTIONS * which asks about the proxy itself.
 */
static bool
ends_here(struct exchange *x)
{
    if (x->context->request.uri.form == URI_ASTERISK)
        return true;
    return (x->context->request.method == METHOD_OPTIONS ||
            x->context->request.method == METHOD_TRACE) &&
           !forwarding_step(&x->context->request, &x->context->arena);
}

static void
access_resolved(void *owner, const struct dns_answer *a)
{
    struct exchange *x = owner;

    x->query = NULL;
    x->context->dst = arena_alloc(&x->context->arena, sizeof *x->context->dst);
    *x->context->dst = *a;
    exchange_resume(x);
}

/* A rule looks at the destination's addresses: these are the ones that will be connected to, so
 * that nothing changes in between. */
static enum step
ask_for_addresses(struct exchange *x)
{
    struct dns_answer now;

    if (x->query)
        return STEP_WAIT;
    if (!resolver_ask(x->env->upstream->resolver, x->context->request.uri.host, access_resolved, x,
                      &now, &x->query))
        return STEP_WAIT;
    x->context->dst = arena_alloc(&x->context->arena, sizeof *x->context->dst);
    *x->context->dst = now;
    return STEP_NEXT;
}

static enum step
allowed(struct exchange *x)
{
    if (x->context->dst && x->context->dst->status != DNS_OK)
        return exchange_fail(x, upstream_dns_fault(x->context->dst->status), 0);
    if (x->context->facts.is_manager)
        return exchange_next(x, x->context->request.method == METHOD_PURGE ? PURGE : LOCAL);
    if (x->context->request.method == METHOD_CONNECT)
        return exchange_next(x, CONNECT);
    if (ends_here(x))
        return exchange_next(x, LOCAL);
    if (x->context->request.method == METHOD_PURGE)
        return exchange_next(x, PURGE);
    return exchange_next(x, x->context->from.intercepts ? VERIFY : LOOKUP);
}

static enum step
denied(struct exchange *x)
{
    counter_add(COUNTER_DENIED, 1);
    x->answer.how = HOW_DENIED;
    return exchange_fail(x, FAULT_DENIED, 0);
}

enum step
step_access(struct exchange *x)
{
    if (x->context->facts.is_manager && !x->context->policy->request.manager_ruled &&
        !addr_is_loopback(&x->context->from.peer))
        return denied(x);
    if (x->context->dst) {
        x->context->facts.dst = x->context->dst->at;
        x->context->facts.n_dst = x->context->dst->status == DNS_OK ? x->context->dst->n : 0;
        x->context->facts.dst_known = true;
    }
    switch (acl_list_check(x->context->policy->request.http_access, &x->context->facts)) {
    case ACL_ALLOW:
        return allowed(x);
    case ACL_NEED_DST:
        return ask_for_addresses(x);
    case ACL_DENY:
        break;
    }
    return denied(x);
}
