/* Validation without a client: the stale response is on its way already (RFC 5861 section 3). It
 * asks in the context of the request that got it. */
#include "proxy/exchange/states.h"

#define HEAD_MS 60000 /* for an answer: then another may try, so that those that hang are few */

static void
give_up(void *owner)
{
    exchange_finish(owner);
}

void
exchange_validate_in_background(struct exchange *x)
{
    struct exchange *y;

    if (exchange_is_head(x))
        return;
    y = exchange_new_in_background(x);
    y->look.may_store = y->look.may_serve = true;
    y->look.stored = x->look.stored;
    entry_ref(y->look.stored);
    y->state = RESERVE;
    loop_defer(x->env->loop, &y->resume);
    exchange_wait_at_most(y, HEAD_MS, give_up);
}
