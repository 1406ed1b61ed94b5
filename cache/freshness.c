/* cache/freshness.c - freshness lifetime and current age.
 *
 * This runs on every hit, so it only compares numbers that head_new has read. An explicit
 * lifetime is never shortened by a refresh_rule; without one the rule's share of the time since
 * Last-Modified counts, and its minimum when there is no Last-Modified (the order of Squid's
 * refresh_pattern). Resident time is monotonic, so setting the clock ages nothing. */
#include "cache/freshness.h"

#include "http/status.h"

static const struct refresh_rule default_rule = REFRESH_RULE_DEFAULT;

static int64_t
current_age(const struct head *head, int64_t now_mono_ms)
{
    int64_t resident_ms = now_mono_ms - head->response_ms;

    return head->initial_age_s + (resident_ms > 0 ? resident_ms / 1000 : 0);
}

bool
freshness_is_explicit(const struct head *head)
{
    return head->cc.s_maxage_s >= 0 || head->cc.max_age_s >= 0 || head->expires_s >= 0;
}

/* RFC 9111 section 4.2.1. Expires minus Date may be negative: stale for that long already. */
static void
explicit_lifetime(struct freshness *f, const struct head *head, const struct refresh_rule *rule)
{
    if (head->cc.s_maxage_s >= 0) {
        f->origin = LIFETIME_S_MAXAGE;
        f->lifetime_s = head->cc.s_maxage_s;
    } else if (head->cc.max_age_s >= 0) {
        f->origin = LIFETIME_MAX_AGE;
        f->lifetime_s = head->cc.max_age_s;
    } else {
        f->origin = LIFETIME_EXPIRES;
        f->lifetime_s = head->expires_s - head->date_s;
    }
    if (rule->override_expire && f->lifetime_s < rule->min_s) {
        f->origin = LIFETIME_OVERRIDE;
        f->lifetime_s = rule->min_s;
    }
}

/* A share of the time the response had not changed for when it was sent. */
static int64_t
share_of_unchanged(const struct head *head, const struct refresh_rule *rule)
{
    int64_t share;

    if (__builtin_mul_overflow(head->date_s - head->last_modified_s, (int64_t)rule->percent,
                               &share))
        return rule->max_s;
    share /= 100;
    return share < rule->max_s ? share : rule->max_s;
}

/* RFC 9111 section 4.2.2: only where the status or `public` allows it. A Pragma of the origin
 * without Cache-Control forbids just this (Squid's habit).
 * negative_ttl is the operator's word for errors. */
static void
heuristic_lifetime(struct freshness *f, const struct head *head, const struct refresh_rule *rule)
{
    int64_t min_s = rule->min_s < rule->max_s ? rule->min_s : rule->max_s;
    bool modified_before = head->last_modified_s >= 0 && head->last_modified_s < head->date_s;

    if (head->status >= 400 && rule->negative_s > 0 && !head->pragma_no_cache) {
        f->origin = LIFETIME_NEGATIVE;
        f->lifetime_s = rule->negative_s;
        return;
    }
    if (head->pragma_no_cache ||
        (!head->cc.public_ && !status_is_heuristically_cacheable(head->status)))
        return;
    if (modified_before) {
        f->origin = LIFETIME_HEURISTIC;
        f->lifetime_s = share_of_unchanged(head, rule);
    }
    if ((!modified_before || rule->override_lastmod) && f->lifetime_s < min_s) {
        f->origin = LIFETIME_RULE_MIN;
        f->lifetime_s = min_s;
    }
}

struct freshness
freshness_at(const struct head *head, const struct refresh_rule *rule, int64_t now_mono_ms)
{
    struct freshness f = {.age_s = current_age(head, now_mono_ms), .origin = LIFETIME_NONE};

    if (!rule)
        rule = &default_rule;
    if (freshness_is_explicit(head))
        explicit_lifetime(&f, head, rule);
    else
        heuristic_lifetime(&f, head, rule);
    return f;
}

bool
freshness_forbids_stale(const struct head *head, const struct refresh_rule *rule)
{
    const struct cache_control *cc = &head->cc;

    if (cc->no_cache || cc->no_cache_fields)
        return true;
    if (rule && rule->ignore_must_revalidate)
        return false;
    return cc->must_revalidate || cc->proxy_revalidate || cc->s_maxage_s >= 0;
}
