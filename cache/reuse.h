/* cache/reuse.h - may a stored response answer this request, and how? (RFC 9111 section 4, RFC
 * 5861). Pure. */
#ifndef CACHE_REUSE_H
#define CACHE_REUSE_H

#include "cache/freshness.h"

enum reuse_verdict {
    REUSE_SERVE,              /* fresh enough */
    REUSE_SERVE_STALE,        /* stale but allowed (max-stale); goes out as a hit */
    REUSE_SERVE_AND_VALIDATE, /* stale-while-revalidate: serve at once, validate in the background
                               */
    REUSE_VALIDATE,           /* ask the origin with its validators first */
    REUSE_NONE,  /* fetch anew; the stored one is of no use to this request (request no-cache: Squid
                    fetches plainly) */
    REUSE_REFUSE /* only-if-cached and nothing usable: 504 */
};

struct reuse {
    enum reuse_verdict verdict;
    const char *why; /* RFC 9211 fwd= word when not served: "stale", "request", "uri-miss",
                        "vary-miss", "method", "miss" */
    struct freshness freshness;
};

struct reuse_policy {
    bool offline; /* offline_mode */
    bool reload_into_ims;
    int64_t max_stale_s; /* of the configuration (default one week): staler is never served */
};

/* head NULL: nothing stored. request_cc: cache_control_parse of the request; Pragma: no-cache
 * counts when it has no Cache-Control. */
/* RFC 9111 sections 4, 4.2.4, 5.2.1; RFC 5861 section 3. */
struct reuse reuse_decide(const struct request_head *request,
                          const struct cache_control *request_cc, const struct head *head,
                          const struct refresh_rule *rule, const struct reuse_policy *policy,
                          int64_t now_mono_ms);
/* Has it neither Cookie nor Authorization? */
bool request_is_anonymous(const struct request_head *request);
/* The client wants the origin asked, whatever has just come for another. */
bool reuse_wants_origin(const struct request_head *request, const struct cache_control *request_cc,
                        const struct refresh_rule *rule);
/* Another's request has brought `head` while this one waited for it. May it be used for this one?
 * As from the store without validation; and where neither was anybody's, what is no more than stale
 * on arrival too: it was made after both had asked. */
/* RFC 9111 section 4. */
bool reuse_collapsed(const struct request_head *request, const struct cache_control *request_cc,
                     const struct head *head, bool brought_by_anonymous,
                     const struct refresh_rule *rule, const struct reuse_policy *policy,
                     int64_t now_mono_ms);
/* The origin failed (no answer, or 500, 502, 503, 504): may the stale one go
 * out instead? (RFC 9111 section 4.2.4, RFC 5861 section 4). Not with must-revalidate,
 * proxy-revalidate, s-maxage, no-cache. status 0: no answer at all. */
bool reuse_after_failure(const struct cache_control *request_cc, const struct head *head,
                         const struct refresh_rule *rule, const struct reuse_policy *policy,
                         unsigned status, int64_t now_mono_ms);

#endif
