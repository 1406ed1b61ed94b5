/* cache/head.h - the head of one stored response: immutable, counted, in one piece of memory.
 *
 * Fields are filtered as RFC 9111 section 3.1 asks: hop-by-hop fields, those named by Connection
 * (the caller ran forwarding_clean), Age, Content-Length and framing fields are not kept; `block`
 * holds the rest serialized once ("Name: value\r\n"...), so that a hit is a copy of it between a
 * status line and our own fields (Age, Via...). It always has a Date: ours when the response came
 * without a readable one. Spans in here live as long as the head. Times are wall seconds; -1:
 * absent. */
#ifndef CACHE_HEAD_H
#define CACHE_HEAD_H

#include "base/ref.h"
#include "cache/key.h"
#include "http/cache_control.h"
#include "http/message.h"

struct head {
    uint32_t magic;
    struct ref refs;
    size_t bytes; /* whole allocation, for accounting */
    unsigned status;
    struct span reason, block, etag, content_type;
    struct fields fields;    /* same fields, parsed; includes Cache-Control, Vary, ETag... */
    struct cache_control cc; /* of the response; spans borrow from this head */
    int64_t date_s;          /* Date, or response_time_s when absent or unreadable */
    int64_t expires_s;       /* -1 absent; 0 for unreadable ones: in the past */
    int64_t last_modified_s;
    int64_t initial_age_s;  /* corrected_initial_age (RFC 9111 section 4.2.3) */
    int64_t response_ms;    /* monotonic ms when the response (or the 304) arrived: resident time is
                               measured from here */
    bool had_authorization; /* the request carried Authorization */
    bool pragma_no_cache;   /* Pragma: no-cache in the response, without Cache-Control */
    bool date_given;        /* false: the Date in block is the time of arrival */
};

struct head_times {
    int64_t request_wall_s, response_wall_s, response_mono_ms;
};

/* `response` was cleaned by forwarding_clean. Never fails. One reference for the caller. */
struct head *head_new(const struct request_head *request, const struct response_head *response,
                      const struct head_times *t);
/* The head after a 304 (or a HEAD answer) freshened it: RFC 9111 section 3.2. Never changes
 * Content-Length, Content-Encoding, Content-Range, Transfer-Encoding; Set-Cookie of the 304 is not
 * taken over (Squid's habit). */
struct head *head_freshen(const struct head *stored, const struct request_head *request,
                          const struct response_head *not_modified, const struct head_times *t);
/* A head that was kept elsewhere as its block ("Name: value\r\n"...) and these numbers. */
struct head_kept {
    unsigned status;
    struct span reason, block;
    int64_t initial_age_s;    /* at response_wall_ms */
    int64_t response_wall_ms; /* when it arrived */
    bool had_authorization, date_given;
};
/* The time between then and now counts into its age. NULL: the block is none. */
struct head *head_revive(const struct head_kept *k, int64_t now_wall_ms, int64_t now_mono_ms);
void head_ref(struct head *h);
void head_unref(struct head **held);

#endif
