/* cache/freshness.h - is a stored response still fresh? (RFC 9111 section 4.2)
 *
 * Pure: no clock, no I/O, no allocation. Nothing here fails: without any hint lifetime_s is 0. rule
 * NULL: the default. lifetime_s is negative when Expires lies before Date: that long ago it became
 * stale. */
#ifndef CACHE_FRESHNESS_H
#define CACHE_FRESHNESS_H

#include "cache/head.h"
#include "cache/refresh_rule.h"

enum lifetime_origin {
    LIFETIME_NONE,
    LIFETIME_S_MAXAGE,
    LIFETIME_MAX_AGE,
    LIFETIME_EXPIRES,
    LIFETIME_HEURISTIC,
    LIFETIME_RULE_MIN,
    LIFETIME_NEGATIVE,
    LIFETIME_OVERRIDE
};

struct freshness {
    int64_t lifetime_s; /* freshness_lifetime, 4.2.1 */
    int64_t age_s;      /* current_age, 4.2.3; never negative */
    enum lifetime_origin origin;
};

/* RFC 9111 sections 4.2.1, 4.2.2, 4.2.3. */
struct freshness freshness_at(const struct head *head, const struct refresh_rule *rule,
                              int64_t now_mono_ms);
/* RFC 9111 section 4.2.1. */
bool freshness_is_explicit(const struct head *head); /* max-age, s-maxage or Expires is there */
static inline bool
freshness_is_fresh(const struct freshness *f) /* response_is_fresh, 4.2 */
{
    return f->lifetime_s > f->age_s;
}
/* Must it not be used stale (4.2.4)? no-cache, must-revalidate, proxy-revalidate and s-maxage say
 * so. */
bool freshness_forbids_stale(const struct head *head, const struct refresh_rule *rule);

#endif
