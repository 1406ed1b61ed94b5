/* cache/refresh_rule.h - refresh_pattern: an operator's bounds on freshness. Plain data; the
 * regular expressions are matched by the caller. */
#ifndef CACHE_REFRESH_RULE_H
#define CACHE_REFRESH_RULE_H

#include <stdbool.h>
#include <stdint.h>

struct refresh_rule {
    int64_t min_s, max_s; /* of a heuristic lifetime */
    unsigned percent;     /* of the time since Last-Modified */
    int64_t max_stale_s;  /* -1: the global max_stale */
    int64_t negative_s;   /* negative_ttl: of an error that does not say how long it is fresh */
    bool override_expire, override_lastmod, reload_into_ims, ignore_reload, ignore_no_store,
        ignore_private, ignore_auth, ignore_must_revalidate, store_stale, refresh_ims;
};

#define REFRESH_RULE_DEFAULT                                                                       \
    ((struct refresh_rule){.min_s = 0, .max_s = 3 * 86400, .percent = 20, .max_stale_s = -1})

#endif
