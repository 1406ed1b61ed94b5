/* The store's turn: is there something, may it be used, and if not, who fetches? */
#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "http/conditional.h"
#include "proxy/exchange/states.h"

#define WAITS_MAX 4 /* then an exchange goes to the origin by itself */

static bool
cache_allows(struct exchange *x)
{
    enum acl_answer a = acl_list_check(x->policy->request.cache, &x->facts);

    return a != ACL_DENY;
}

static enum how
how_hit(const struct exchange *x)
{
    if (x->collapsed)
        return HOW_COLLAPSED;
    if (x->policy->request.reuse.offline &&
        x->reuse.freshness.age_s > x->reuse.freshness.lifetime_s)
        return HOW_OFFLINE_HIT;
    if (x->stored->head->status >= 400)
        return HOW_NEGATIVE_HIT;
    return x->from_disk ? HOW_DISK_HIT : HOW_HIT;
}

/* The stored response becomes the answer. */
static enum step
serve_stored(struct exchange *x)
{
    x->how = how_hit(x);
    x->entry = x->stored;
    x->stored = NULL;
    return exchange_next(x, &DELIVER);
}

static void
decide_reuse(struct exchange *x)
{
    x->reuse = reuse_decide(&x->request, &x->cc, x->stored ? x->stored->head : NULL, x->rule,
                            &x->policy->request.reuse, clock_mono_ms());
    x->fwd = x->stored ? x->reuse.why : x->vary_miss ? "vary-miss" : "uri-miss";
}

static void
look(struct exchange *x)
{
    if (x->stored)
        entry_unref(&x->stored);
    x->stored = store_lookup(x->env->store, &x->key, &x->request, &x->vary_miss);
    if (x->stored && body_state(x->stored->body) == BODY_FAILED)
        entry_unref(&x->stored);
    if (x->stored && acl_list_check(x->policy->request.send_hit, &x->facts) == ACL_DENY)
        entry_unref(&x->stored);
    if (!x->stored && x->range) {
        parts_look(x);
        if (x->stored)
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
    if (!x->range || range_parse(x->range->value, FAR << 1, &r, 1, &n) != RANGE_OK || r.first > FAR)
        return;
    w->from = r.first;
    if (r.last <= FAR)
        w->to = r.last;
}

/* false: nothing can be there. */
static bool
disk_is_asked(struct exchange *x)
{
    struct tier_wish w = {.keep_bytes = x->policy->request.promote_bytes,
                          .parts = x->may_store,
                          .may_send = x->policy->request.sendfile};

    if (x->stored || x->disk_asked || !x->env->disk || x->background ||
        acl_list_check(x->policy->request.send_hit, &x->facts) == ACL_DENY)
        return false;
    x->disk_asked = true;
    wish_range(x, &w);
    x->disk = tier_read_start(x->env->disk, x->url, &x->request, &w, &x->resume);
    return x->disk != NULL;
}

static enum step
decide(struct exchange *x)
{
    switch (x->reuse.verdict) {
    case REUSE_SERVE:
    case REUSE_SERVE_STALE:
        return serve_stored(x);
    case REUSE_SERVE_AND_VALIDATE:
        exchange_validate_in_background(x);
        return serve_stored(x);
    case REUSE_REFUSE:
        return exchange_fail(x, FAULT_ONLY_IF_CACHED, 0);
    case REUSE_VALIDATE:
        return exchange_next(x, &RESERVE);
    case REUSE_NONE:
        tier_read_cancel(&x->disk);
        if (x->stored)
            entry_unref(&x->stored);
        return exchange_next(x, &RESERVE);
    }
    UNREACHABLE();
}

static enum step
step_lookup(struct exchange *x)
{
    bool get = x->request.method == METHOD_GET;

    x->rule = policy_refresh_rule(x->policy, x->url);
    x->may_serve = (get || exchange_is_head(x)) && cache_allows(x) && !x->host_elsewhere;
    x->may_store = x->may_serve && get && !x->body;
    parts_begin(x);
    if (!x->may_serve) {
        if (x->cc.only_if_cached && (get || exchange_is_head(x)))
            return exchange_fail(x, FAULT_ONLY_IF_CACHED, 0);
        x->fwd = get || exchange_is_head(x) ? "bypass" : "method";
        return exchange_next(x, &FORWARD);
    }
    x->key = cache_key_of(x->url);
    look(x);
    if (disk_is_asked(x))
        return exchange_next(x, &DISK);
    return decide(x);
}

/* What is kept of it is for others from now on; a body that passes waits for its reader. */
static enum step
step_disk(struct exchange *x)
{
    if (!tier_read_is_done(x->disk))
        return STEP_WAIT;
    x->stored = tier_read_entry(x->disk);
    if (!x->stored) {
        tier_read_cancel(&x->disk);
        return exchange_next(x, &LOOKUP);
    }
    x->from_disk = true;
    if (body_mode(x->stored->body) == BODY_KEEP) {
        store_adopt(x->env->store, &x->key, x->stored);
        tier_read_release(&x->disk);
        if (x->stored->part) /* it is looked for where parts are */
            return exchange_next(x, &LOOKUP);
    }
    decide_reuse(x);
    return decide(x);
}

/* Another exchange's fill has ended: its response may be ours at once, else we look again. */
static enum step
after_wait(struct exchange *x)
{
    x->waited = false;
    if (!x->waiter.entry)
        return exchange_next(x, &LOOKUP);
    if (x->stored)
        entry_unref(&x->stored);
    x->stored = x->waiter.entry;
    x->waiter.entry = NULL;
    if (body_state(x->stored->body) == BODY_FAILED)
        return exchange_next(x, &LOOKUP);
    x->collapsed = true;
    counter_add(COUNTER_COLLAPSED, 1);
    return serve_stored(x);
}

/* Conditional requests and reloads of one client do not make the others wait. */
static bool
may_collapse(const struct exchange *x)
{
    return x->policy->request.collapse && x->waits < WAITS_MAX && x->may_store &&
           (!x->range || x->whole_asked) &&
           (x->stored || !conditional_is_present(&x->request.fields)) && !x->cc.no_store &&
           !x->cc.no_cache;
}

static enum step
step_reserve(struct exchange *x)
{
    if (x->waited)
        return x->waiter.node ? STEP_WAIT : after_wait(x);
    if (!x->may_store && !x->stored)
        return exchange_next(x, &FORWARD);
    x->waiter.loop = x->env->loop;
    x->waiter.task = &x->resume;
    x->waiter.request = &x->request;
    if (store_reserve(x->env->store, &x->key, &x->request, may_collapse(x), &x->waiter,
                      &x->ticket) == RESERVE_WAIT) {
        x->waited = true;
        x->waits++;
        if (x->background) /* somebody else is at it */
            exchange_finish(x);
        return STEP_WAIT;
    }
    parts_look_for_beginning(x);
    return exchange_next(x, x->stored ? &VALIDATE : &FORWARD);
}

const struct exchange_state DISK = {"reading from disk", step_disk};
const struct exchange_state LOOKUP = {"looking up", step_lookup};
const struct exchange_state RESERVE = {"waiting for another fetch", step_reserve};
