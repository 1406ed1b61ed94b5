/* cache/invalidate.h - which stored responses an unsafe request makes stale (RFC 9111 section 4.4).
 * Pure. */
#ifndef CACHE_INVALIDATE_H
#define CACHE_INVALIDATE_H

#include "http/message.h"

/* Canonical URIs to invalidate after `response` to `request`: the target, and Location and
 * Content-Location of the same origin. Only for unsafe methods and 2xx or 3xx answers; returns how
 * many (0..3). */
/* RFC 9111 section 4.4. */
unsigned invalidate_targets(const struct request_head *request,
                            const struct response_head *response, struct arena *a,
                            struct span out[3]);

#endif
