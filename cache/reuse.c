/* cache/reuse.c - may a stored response answer this request?
 *
 * The questions in their order: is there one; may the method use it; does the client want the
 * origin asked; does the origin want to be asked; is it fresh enough for the client; if stale, may
 * it go out all the same. Where the RFC leaves a choice this is Squid's: a request's no-cache
 * fetches plainly, max-age=0 validates even what has just come, no-store in a request does not
 * keep the store from answering, a HEAD that would need validation goes through. */
#include "cache/reuse.h"

#include "base/check.h"

static const struct refresh_rule default_rule = REFRESH_RULE_DEFAULT;

struct question {
    const struct request_head *request;
    const struct cache_control *cc;
    const struct head *head;
    const struct refresh_rule *rule;
    const struct reuse_policy *policy;
    struct freshness freshness;
};

static struct reuse
answer(const struct question *q, enum reuse_verdict verdict, const char *why)
{
    return (struct reuse){.verdict = verdict, .why = why, .freshness = q->freshness};
}

/* Pragma counts only where Cache-Control is absent (RFC 9111 section 5.4). */
static bool
wants_reload(const struct question *q)
{
    if (q->rule->ignore_reload)
        return false;
    if (q->cc->present)
        return q->cc->no_cache || q->cc->no_cache_fields;
    return fields_has_token(&q->request->fields, FIELD_PRAGMA, SPAN("no-cache"));
}

/* RFC 9111 sections 5.2.1.1 and 5.2.1.3. */
static bool
too_old_for_client(const struct question *q)
{
    const struct freshness *f = &q->freshness;
    int64_t max_age_s = q->cc->max_age_s;

    if (max_age_s == 0)
        return !q->rule->ignore_reload;
    if (max_age_s > 0 && f->age_s > max_age_s)
        return true;
    return q->cc->min_fresh_s > 0 && f->lifetime_s - f->age_s < q->cc->min_fresh_s;
}

static bool
wants_change_checked(const struct question *q)
{
    return q->rule->refresh_ims && fields_find(&q->request->fields, FIELD_IF_MODIFIED_SINCE);
}

static int64_t
stale_limit(const struct refresh_rule *rule, const struct reuse_policy *policy)
{
    return rule->max_stale_s >= 0 ? rule->max_stale_s : policy->max_stale_s;
}

/* RFC 9111 section 4.2.4, RFC 5861 section 3. */
static struct reuse
decide_stale(const struct question *q)
{
    const struct cache_control *cc = q->cc;
    int64_t staleness_s = q->freshness.age_s - q->freshness.lifetime_s;
    bool accepted = cc->max_stale_s >= 0 ? staleness_s <= cc->max_stale_s : cc->max_stale_any;
    bool unwanted = cc->max_stale_s >= 0 && !accepted;

    if (freshness_forbids_stale(q->head, q->rule) || unwanted ||
        staleness_s > stale_limit(q->rule, q->policy))
        return answer(q, REUSE_VALIDATE, "stale");
    if (staleness_s <= q->head->cc.stale_while_revalidate_s)
        return answer(q, REUSE_SERVE_AND_VALIDATE, "stale");
    if (accepted)
        return answer(q, REUSE_SERVE_STALE, NULL);
    return answer(q, REUSE_VALIDATE, "stale");
}

static struct reuse
decide_stored(const struct question *q)
{
    bool fresh = freshness_is_fresh(&q->freshness);

    if (q->policy->offline)
        return answer(q, fresh ? REUSE_SERVE : REUSE_SERVE_STALE, NULL);
    if (wants_reload(q)) {
        bool ask = q->policy->reload_into_ims || q->rule->reload_into_ims;

        return answer(q, ask ? REUSE_VALIDATE : REUSE_NONE, "request");
    }
    if (q->head->cc.no_cache || q->head->cc.no_cache_fields)
        return answer(q, REUSE_VALIDATE, "stale");
    if (too_old_for_client(q))
        return answer(q, REUSE_VALIDATE, fresh ? "request" : "stale");
    if (!fresh)
        return decide_stale(q);
    if (wants_change_checked(q))
        return answer(q, REUSE_VALIDATE, "request");
    return answer(q, REUSE_SERVE, NULL);
}

static struct reuse
decide(const struct question *q)
{
    struct reuse r;

    if (q->request->method != METHOD_GET && q->request->method != METHOD_HEAD)
        return answer(q, REUSE_NONE, "method");
    if (!q->head)
        return answer(q, REUSE_NONE, "uri-miss");
    r = decide_stored(q);
    if (r.verdict == REUSE_VALIDATE && q->request->method == METHOD_HEAD)
        r.verdict = REUSE_NONE;
    return r;
}

/* RFC 9111 section 4: what may change something is written through, whatever else is asked. */
static bool
is_read(const struct request_head *request)
{
    return request->method == METHOD_GET || request->method == METHOD_HEAD;
}

struct reuse
reuse_decide(const struct request_head *request, const struct cache_control *request_cc,
             const struct head *head, const struct refresh_rule *rule,
             const struct reuse_policy *policy, int64_t now_mono_ms)
{
    struct question q = {.request = request,
                         .cc = request_cc,
                         .head = head,
                         .rule = rule ? rule : &default_rule,
                         .policy = policy};
    struct reuse r;

    if (head)
        q.freshness = freshness_at(head, q.rule, now_mono_ms);
    r = decide(&q);
    /* RFC 9111 section 5.2.1.7: 504 instead of asking anybody. */
    if (request_cc->only_if_cached && is_read(request) &&
        (r.verdict == REUSE_VALIDATE || r.verdict == REUSE_NONE))
        r.verdict = REUSE_REFUSE;
    return r;
}

bool
request_is_anonymous(const struct request_head *request)
{
    return !fields_find(&request->fields, FIELD_COOKIE) &&
           !fields_find(&request->fields, FIELD_AUTHORIZATION);
}

bool
reuse_wants_origin(const struct request_head *request, const struct cache_control *request_cc,
                   const struct refresh_rule *rule)
{
    struct question q = {.request = request, .cc = request_cc, .rule = rule ? rule : &default_rule};

    return wants_reload(&q) || (request_cc->max_age_s == 0 && !q.rule->ignore_reload);
}

/* Nothing but its age speaks against it, and the client has said nothing about ages. */
static bool
is_only_stale(const struct cache_control *request_cc, const struct head *head,
              const struct refresh_rule *rule)
{
    return request_cc->max_age_s < 0 && request_cc->min_fresh_s < 0 &&
           !freshness_forbids_stale(head, rule) && !fields_find(&head->fields, FIELD_SET_COOKIE);
}

bool
reuse_collapsed(const struct request_head *request, const struct cache_control *request_cc,
                const struct head *head, bool brought_by_anonymous, const struct refresh_rule *rule,
                const struct reuse_policy *policy, int64_t now_mono_ms)
{
    struct reuse r = reuse_decide(request, request_cc, head, rule, policy, now_mono_ms);

    switch (r.verdict) {
    case REUSE_SERVE:
    case REUSE_SERVE_STALE:
    case REUSE_SERVE_AND_VALIDATE: /* nothing newer is to be had than what has just come */
        return true;
    case REUSE_VALIDATE:
        return brought_by_anonymous && request_is_anonymous(request) &&
               !freshness_is_fresh(&r.freshness) &&
               is_only_stale(request_cc, head, rule ? rule : &default_rule);
    case REUSE_NONE:
    case REUSE_REFUSE:
        return false;
    }
    UNREACHABLE();
}

/* How stale it may be: stale-if-error of either side says so and is a bound at the same time
 * (RFC 5861 section 4); without it an origin that gives no answer is bridged, and one that
 * answers with a server error is taken for such (RFC 9111 section 4.3.3, Squid's habit). -1: not.
 */
static int64_t
bridged_s(const struct cache_control *request_cc, const struct cache_control *cc, unsigned status,
          int64_t limit_s)
{
    int64_t allowed_s = cc->stale_if_error_s;

    if (request_cc->stale_if_error_s > allowed_s)
        allowed_s = request_cc->stale_if_error_s;
    if (status != 0 && status != 500 && status != 502 && status != 503 && status != 504)
        return -1;
    if (allowed_s < 0)
        return limit_s;
    return allowed_s < limit_s ? allowed_s : limit_s;
}

bool
reuse_after_failure(const struct cache_control *request_cc, const struct head *head,
                    const struct refresh_rule *rule, const struct reuse_policy *policy,
                    unsigned status, int64_t now_mono_ms)
{
    struct freshness f;
    int64_t staleness_s, bridge_s;

    if (!head || request_cc->no_cache || request_cc->no_cache_fields || head->cc.no_cache ||
        head->cc.no_cache_fields)
        return false;
    if (!rule)
        rule = &default_rule;
    bridge_s = bridged_s(request_cc, &head->cc, status, stale_limit(rule, policy));
    f = freshness_at(head, rule, now_mono_ms);
    if (freshness_is_fresh(&f))
        return bridge_s >= 0;
    staleness_s = f.age_s - f.lifetime_s;
    if (request_cc->max_stale_s >= 0 && staleness_s > request_cc->max_stale_s)
        return false;
    return !freshness_forbids_stale(head, rule) && staleness_s <= bridge_s;
}
