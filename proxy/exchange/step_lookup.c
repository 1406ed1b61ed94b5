/* The store's turn: is there something, may it be used, and if not, who fetches? */
#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "http/conditional.h"
#include "proxy/exchange/states.h"

#define WAITS_MAX 4 /* then an exchange goes to the origin by itself */

/* cache and send_hit, judged before anything is looked for. false: they wait for something. */
static bool
rules_are_known(struct exchange *x)
{
    const struct request_policy *r = &x->context->policy->request;
    bool get = x->context->request.method == METHOD_GET, send = true;

    x->look.may_serve = (get || exchange_is_head(x)) && !x->context->host_elsewhere;
    if (x->look.may_serve && !exchange_ask_rules(x, r->cache, &x->look.may_serve))
        return false;
    if (x->look.may_serve && !exchange_ask_rules(x, r->send_hit, &send))
        return false;
    x->look.hit_denied = !send;
    x->look.may_store = x->look.may_serve && get && !x->body;
    return true;
}

static enum how
how_hit(const struct exchange *x)
{
    if (x->look.sharing == SHARING_GOT)
        return HOW_COLLAPSED;
    if (x->context->policy->request.reuse.offline &&
        x->look.reuse.freshness.age_s > x->look.reuse.freshness.lifetime_s)
        return HOW_OFFLINE_HIT;
    if (x->look.stored->head->status >= 400)
        return HOW_NEGATIVE_HIT;
    return x->look.disk_use == DISK_FOUND ? HOW_DISK_HIT : HOW_HIT;
}

/* The stored response becomes the answer. */
static enum step
serve_stored(struct exchange *x)
{
    x->answer.how = how_hit(x);
    x->answer.entry = x->look.stored;
    x->look.stored = NULL;
    return exchange_next(x, DELIVER);
}

static void
decide_reuse(struct exchange *x)
{
    x->look.reuse = reuse_decide(&x->context->request, &x->context->cc,
                                 x->look.stored ? x->look.stored->head : NULL, x->context->rule,
                                 &x->context->policy->request.reuse, clock_mono_ms());
    x->answer.fwd = x->look.stored      ? x->look.reuse.why
                    : x->look.vary_miss ? "vary-miss"
                                        : "uri-miss";
}

static void
look(struct exchange *x)
{
    if (x->look.stored)
        entry_unref(&x->look.stored);
    x->look.stored =
        store_lookup(x->env->store, &x->context->key, &x->context->request, &x->look.vary_miss);
    if (x->look.stored && (x->look.hit_denied || body_state(x->look.stored->body) == BODY_FAILED))
        entry_unref(&x->look.stored);
    if (!x->look.stored && x->ranges.field && !x->look.hit_denied) {
        parts_look(x);
        if (x->look.stored)
            return;
    }
    decide_reuse(x);
}

#define FAR (UINT64_MAX >> 3) /* further in than any body is long */

/* What of a body that passes is wanted, if that is a single range with known ends. */
static void
wish_range(const struct exchange *x, struct tier_wish *w)
{
    struct byte_range r;
    unsigned n;

    w->to = UINT64_MAX;
    if (!x->ranges.field || range_parse(x->ranges.field->value, FAR << 1, &r, 1, &n) != RANGE_OK ||
        r.first > FAR)
        return;
    w->from = r.first;
    if (r.last <= FAR)
        w->to = r.last;
}

/* false: nothing can be there. */
static bool
disk_is_asked(struct exchange *x)
{
    struct tier_wish w = {.keep_bytes = x->context->policy->request.promote_bytes,
                          .parts = x->look.may_store,
                          .may_send = x->context->policy->request.sendfile};

    if (x->look.stored || x->look.disk_use != DISK_NOT_ASKED || !x->env->disk ||
        x->cause == CAUSE_BACKGROUND || x->look.hit_denied)
        return false;
    x->look.disk_use = DISK_ASKED;
    wish_range(x, &w);
    x->look.disk =
        tier_read_start(x->env->disk, x->context->url, &x->context->request, &w, &x->resume);
    return x->look.disk != NULL;
}

static enum step
decide(struct exchange *x)
{
    switch (x->look.reuse.verdict) {
    case REUSE_SERVE:
    case REUSE_SERVE_STALE:
        return serve_stored(x);
    case REUSE_SERVE_AND_VALIDATE:
        exchange_validate_in_background(x);
        return serve_stored(x);
    case REUSE_REFUSE:
        return exchange_fail(x, FAULT_ONLY_IF_CACHED, 0);
    case REUSE_VALIDATE:
        return exchange_next(x, RESERVE);
    case REUSE_NONE:
        tier_read_cancel(&x->look.disk);
        if (x->look.stored)
            entry_unref(&x->look.stored);
        return exchange_next(x, RESERVE);
    }
    UNREACHABLE();
}

enum step
step_lookup(struct exchange *x)
{
    bool get = x->context->request.method == METHOD_GET;

    if (!rules_are_known(x))
        return STEP_WAIT;
    x->context->rule = policy_refresh_rule(x->context->policy, x->context->url);
    parts_begin(x);
    if (!x->look.may_serve) {
        if (x->context->cc.only_if_cached && (get || exchange_is_head(x)))
            return exchange_fail(x, FAULT_ONLY_IF_CACHED, 0);
        x->answer.fwd = get || exchange_is_head(x) ? "bypass" : "method";
        return exchange_next(x, FORWARD);
    }
    x->context->key = cache_key_of(x->context->url);
    look(x);
    if (disk_is_asked(x))
        return exchange_next(x, DISK);
    return decide(x);
}

/* It hangs, or is so slow that the origin is faster. */
static void
leave_disk(void *owner)
{
    struct exchange *x = owner;

    tier_read_cancel(&x->look.disk);
    (void)exchange_next(x, LOOKUP);
    exchange_resume(x);
}

/* What is kept of it is for others from now on; a body that passes waits for its reader. */
enum step
step_disk(struct exchange *x)
{
    if (!tier_read_is_done(x->look.disk)) {
        if (!x->context->cc.only_if_cached && !x->context->policy->request.reuse.offline)
            exchange_wait_at_most(x, STORE_PATIENCE_MS, leave_disk);
        return STEP_WAIT;
    }
    loop_timer_stop(&x->patience);
    x->look.stored = tier_read_entry(x->look.disk);
    if (!x->look.stored) {
        tier_read_cancel(&x->look.disk);
        return exchange_next(x, LOOKUP);
    }
    x->look.disk_use = DISK_FOUND;
    if (body_mode(x->look.stored->body) == BODY_KEEP) {
        store_adopt(x->env->store, &x->context->key, x->look.stored);
        tier_read_release(&x->look.disk);
        if (x->look.stored->part) /* it is looked for where parts are */
            return exchange_next(x, LOOKUP);
    }
    decide_reuse(x);
    return decide(x);
}

/* What came, came for another request: is it for this one too? */
static bool
may_take_what_came(const struct exchange *x)
{
    const struct store_waiter *w = &x->look.waiter;
    const struct reuse_policy *policy = &x->context->policy->request.reuse;

    if (w->failed)
        return reuse_after_failure(&x->context->cc, w->entry->head, x->context->rule, policy,
                                   w->status, clock_mono_ms());
    return reuse_collapsed(&x->context->request, &x->context->cc, w->entry->head, w->by_anonymous,
                           x->context->rule, policy, clock_mono_ms());
}

/* Beside the others who do the same, not behind them. */
static enum step
go_on_alone(struct exchange *x)
{
    store_wait_cancel(x->env->store, &x->look.waiter);
    x->look.sharing = SHARING_NEVER;
    return exchange_next(x, LOOKUP);
}

/* Another exchange's fill has ended: its response may be ours at once, else we look again. */
static enum step
after_wait(struct exchange *x)
{
    loop_timer_stop(&x->patience);
    x->look.sharing = SHARING_NOT;
    if (!x->look.waiter.entry)
        return exchange_next(x, LOOKUP);
    if (!may_take_what_came(x))
        return go_on_alone(x);
    if (x->look.stored)
        entry_unref(&x->look.stored);
    x->look.stored = x->look.waiter.entry;
    x->look.waiter.entry = NULL;
    if (body_state(x->look.stored->body) == BODY_FAILED)
        return exchange_next(x, LOOKUP);
    x->look.sharing = SHARING_GOT;
    counter_add(COUNTER_COLLAPSED, 1);
    return serve_stored(x);
}

/* That fetch hangs: it may go on to do so for as long as read_timeout allows. */
static void
stop_waiting(void *owner)
{
    struct exchange *x = owner;

    (void)go_on_alone(x);
    exchange_resume(x);
}

/* Conditional requests and reloads of one client do not make the others wait, and who is sent no
 * hits is sent nobody else's answer. */
static bool
may_collapse(const struct exchange *x)
{
    return x->context->policy->request.collapse && x->look.sharing == SHARING_NOT &&
           x->look.n_waits < WAITS_MAX && x->look.may_store && !x->look.hit_denied &&
           (!x->ranges.field || x->ranges.whole_asked) &&
           (x->look.stored || !conditional_is_present(&x->context->request.fields)) &&
           !x->context->cc.no_store &&
           !reuse_wants_origin(&x->context->request, &x->context->cc, x->context->rule);
}

enum step
step_reserve(struct exchange *x)
{
    if (x->look.sharing == SHARING_WAITS)
        return x->look.waiter.node ? STEP_WAIT : after_wait(x);
    if (!x->look.may_store && !x->look.stored)
        return exchange_next(x, FORWARD);
    x->look.waiter.loop = x->env->loop;
    x->look.waiter.task = &x->resume;
    x->look.waiter.request = &x->context->request;
    if (store_reserve(x->env->store, &x->context->key, &x->context->request, may_collapse(x),
                      &x->look.waiter, &x->look.ticket) == RESERVE_WAIT) {
        x->look.sharing = SHARING_WAITS;
        x->look.n_waits++;
        if (x->cause == CAUSE_BACKGROUND) /* somebody else is at it */
            exchange_finish(x);
        else
            exchange_wait_at_most(x, x->look.waiter.until_ms - clock_mono_ms(), stop_waiting);
        return STEP_WAIT;
    }
    parts_look_for_beginning(x);
    return exchange_next(x, x->look.stored ? VALIDATE : FORWARD);
}
