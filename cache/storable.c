/* cache/storable.c - may a response be stored, and with whom of those who wait may it be shared?
 *
 * The order of the questions is that of RFC 9111 section 3; each answer names its reason. A
 * response without explicit freshness is kept when its status allows heuristics, even with a
 * lifetime of 0: it serves collapsed requests without credentials, max-stale, and clients while its
 * origin is down. Two exceptions keep strangers' data apart and the memory clean: a Set-Cookie that
 * the origin did not mean for a shared cache (no lifetime, no `public`) is not kept, nor is what
 * could never be served again. */
#include "cache/storable.h"

#include "cache/freshness.h"
#include "cache/validate.h"
#include "cache/vary.h"
#include "http/status.h"

static const struct refresh_rule default_rule = REFRESH_RULE_DEFAULT;

/* Statuses whose responses speak about this one request: its range, its conditions, its
 * credentials (Squid's habit for these), or that must not be stored (RFC 6585: 428 429 431 511), or
 * of which nobody knows what they say (from 600 on, RFC 9110 section 15). */
static bool
status_is_for_one_request(unsigned status)
{
    switch (status) {
    case 304:
    case 401:
    case 407:
    case 412:
    case 416:
    case 417:
    case 421:
    case 425:
    case 428:
    case 429:
    case 431:
    case 511:
        return true;
    }
    return status < 200 || status > 599;
}

/* RFC 9110 section 9.3.3: the answer to a POST that says how long it is fresh, and that it is what
 * a GET of the same URI would bring. */
static bool
stands_for_get(const struct request_head *request, const struct head *head)
{
    const struct field *location = fields_find(&head->fields, FIELD_CONTENT_LOCATION);
    struct arena scratch;
    struct uri uri;
    char lent[1024];
    bool same;

    if (request->method != METHOD_POST || head->status != 200 || !location ||
        !freshness_is_explicit(head))
        return false;
    arena_init(&scratch, lent, sizeof lent);
    same = uri_resolve(&request->uri, location->value, &scratch, &uri) &&
           span_eq(uri_text(&uri, &scratch), uri_text(&request->uri, &scratch));
    arena_free(&scratch);
    return same;
}

static const char *
refused_by_message(const struct request_head *request, const struct head *head)
{
    if (request->method != METHOD_GET && !stands_for_get(request, head))
        return "method";
    if (status_is_for_one_request(head->status))
        return "status";
    return NULL;
}

/* RFC 9111 sections 5.2.2.3 and 5.2.2.5: with must-understand, no-store is for caches that do
 * not know the status, and these must not store. */
static const char *
refused_by_no_store(const struct cache_control *request_cc, const struct head *head,
                    const struct refresh_rule *rule)
{
    const struct cache_control *cc = &head->cc;

    if (cc->must_understand && !status_is_known(head->status))
        return "must-understand";
    if (cc->no_store && !cc->must_understand && !rule->ignore_no_store)
        return "no-store";
    return request_cc->no_store ? "request-no-store" : NULL;
}

/* RFC 9111 sections 3.5 and 5.2.2.7. private with field names is taken as plain private. */
static const char *
refused_by_owner(const struct head *head, const struct refresh_rule *rule)
{
    const struct cache_control *cc = &head->cc;

    if ((cc->private_ || cc->private_fields) && !rule->ignore_private)
        return "private";
    if (head->had_authorization && !rule->ignore_auth && !cc->public_ && !cc->must_revalidate &&
        cc->s_maxage_s < 0)
        return "authorization";
    if (!freshness_is_explicit(head) && !cc->public_ &&
        fields_find(&head->fields, FIELD_SET_COOKIE))
        return "set-cookie";
    return NULL;
}

/* May it ever go out without validation? */
static bool
usable_on_arrival(const struct head *head, const struct refresh_rule *rule)
{
    struct freshness f = freshness_at(head, rule, head->response_ms);

    if (head->cc.no_cache || head->cc.no_cache_fields)
        return false;
    return freshness_is_fresh(&f) || !freshness_forbids_stale(head, rule);
}

static const char *
refused_by_use(const struct head *head, const struct refresh_rule *rule)
{
    if (vary_is_never(&head->fields))
        return "vary";
    if (!freshness_is_explicit(head) && !head->cc.public_ &&
        !status_is_heuristically_cacheable(head->status) &&
        !(head->status >= 400 && rule->negative_s > 0))
        return "no-freshness";
    if (!usable_on_arrival(head, rule) && !head_has_validator(head) && !rule->store_stale)
        return "no-validator";
    return NULL;
}

/* Pages made for one user that say so only by a date in the past are common: a stale one is not
 * handed round among those who may be users, and none that comes with a cookie. */
static enum share
shared_with(const struct head *head, const struct refresh_rule *rule)
{
    struct freshness f = freshness_at(head, rule, head->response_ms);

    if (!usable_on_arrival(head, rule))
        return SHARE_NONE;
    if (freshness_is_fresh(&f))
        return SHARE_ALL;
    return fields_find(&head->fields, FIELD_SET_COOKIE) ? SHARE_NONE : SHARE_ANONYMOUS;
}

struct storable
response_storable(const struct request_head *request, const struct cache_control *request_cc,
                  const struct head *head, const struct refresh_rule *rule)
{
    const char *refused;

    if (!rule)
        rule = &default_rule;
    refused = refused_by_message(request, head);
    if (!refused)
        refused = refused_by_no_store(request_cc, head, rule);
    if (!refused)
        refused = refused_by_owner(head, rule);
    if (!refused)
        refused = refused_by_use(head, rule);
    if (refused)
        return (struct storable){.why = refused};
    return (struct storable){.yes = true, .share = shared_with(head, rule), .why = "stored"};
}
