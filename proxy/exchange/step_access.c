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

static enum step
allowed(struct exchange *x)
{
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
    bool allow;

    if (x->context->facts.is_manager && !x->context->policy->request.manager_ruled &&
        !addr_is_loopback(&x->context->from.peer))
        return denied(x);
    if (!exchange_ask_rules(x, x->context->policy->request.http_access, &allow))
        return STEP_WAIT;
    return allow ? allowed(x) : denied(x);
}
