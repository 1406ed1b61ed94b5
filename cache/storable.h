/* cache/storable.h - may this response be stored? (RFC 9111 section 3). Pure: verdict and reason.
 */
#ifndef CACHE_STORABLE_H
#define CACHE_STORABLE_H

#include "cache/head.h"
#include "cache/refresh_rule.h"

/* With whom of those who wait for it can a response be shared (collapsed forwarding)? That it is
 * stored is another matter: each of them judges for itself, by reuse_collapsed. */
enum share {
    SHARE_NONE,      /* it may not be used without validation */
    SHARE_ANONYMOUS, /* stale on arrival: where neither side sent credentials */
    SHARE_ALL        /* fresh */
};

struct storable {
    bool yes;
    enum share share;
    const char *why; /* one word for Cache-Status detail and logs: "no-store", "private",
                        "authorization", "method", "status", "vary", "no-freshness"... */
};

/* A 206 is judged like a 200: the caller keeps it as a part (cache/part.h), or not at all.
 * head: of the response (head_new). A response without freshness and without validator is still
 * stored when its status is cacheable by default? Yes: with a heuristic lifetime of 0 it serves
 * collapsed requests, max-stale and stale-on-error (Squid stores it likewise when it has a
 * validator). min_fresh rule: see .c. */
/* RFC 9111 sections 3, 3.5, 5.2.2. */
struct storable response_storable(const struct request_head *request,
                                  const struct cache_control *request_cc, const struct head *head,
                                  const struct refresh_rule *rule);

#endif
