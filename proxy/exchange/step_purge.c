/* PURGE: of one URL, as Squid has it, and of many. */
#include "proxy/exchange/states.h"

#define OWN_PREFIX "/squid-internal-mgr/purge?prefix="
#define OWN_CLEAR "/squid-internal-mgr/clear"

/* PURGE of our own pages takes out more than one: /squid-internal-mgr/purge?prefix=URI, and all by
 * /squid-internal-mgr/clear. */
static enum step
purge_many(struct exchange *x)
{
    struct span path = x->context->request.uri.path, prefix = span_skip(path, SPAN(OWN_PREFIX).n);
    struct span text = SPAN("all is cleared\n");

    if (span_starts(path, SPAN(OWN_PREFIX)) && prefix.n)
        text = arena_printf(&x->context->arena, "%llu in memory purged, those on disk follow\n",
                            (unsigned long long)store_purge_prefix(x->env->store, prefix));
    else if (span_eq(path, SPAN(OWN_CLEAR)))
        store_purge_all(x->env->store);
    else
        return exchange_fail(x, FAULT_NOT_FOUND, 0);
    return exchange_tell(x, text);
}

enum step
step_purge(struct exchange *x)
{
    const struct edits none = {.n_removed = 0};
    unsigned n;

    if (x->context->facts.is_manager)
        return purge_many(x);
    x->context->request.uri.form = URI_ABSOLUTE;
    x->context->key = cache_key_of(x->context->url);
    n = store_invalidate(x->env->store, &x->context->key);
    if (n == 0)
        return exchange_fail(x, FAULT_NOT_FOUND, 0);
    exchange_respond(
        x, &(struct outgoing){.status = 200, .reason = SPAN("OK"), .edits = &none, .length = 0});
    return STEP_WAIT;
}
