/* http/h1_parse.h - bytes to heads: the one strict parser for both directions (RFC 9112 sections 2
 * to 5).
 *
 * Pure and restartable: call it with all bytes received so far; MORE means the head is not
 * complete. Nothing is kept between calls. OK: *used bytes belong to the head, spans in `out`
 * borrow from `bytes`, arrays from the arena. A cheap check of limits works on incomplete heads
 * too, so that an endless head is refused early. */
#ifndef HTTP_H1_PARSE_H
#define HTTP_H1_PARSE_H

#include "http/message.h"

enum h1_result { H1_MORE, H1_OK, H1_BAD };

enum h1_reason { /* why H1_BAD; h1_reason_text() gives the sentence */
                 H1_FINE,
                 H1_BAD_REQUEST_LINE,
                 H1_BAD_METHOD,
                 H1_BAD_TARGET,
                 H1_BAD_VERSION,
                 H1_VERSION_UNSUPPORTED,
                 H1_HTTP09,
                 H1_TARGET_TOO_LONG,
                 H1_HEAD_TOO_LARGE,
                 H1_TOO_MANY_FIELDS,
                 H1_BAD_FIELD_LINE,
                 H1_SPACE_BEFORE_COLON,
                 H1_FOLDED_LINE,
                 H1_BARE_CR,
                 H1_CONTROL_IN_FIELD,
                 H1_BAD_HOST,
                 H1_BAD_STATUS_LINE,
                 H1_FRAMING_AMBIGUOUS,
                 H1_BAD_LENGTH,
                 H1_BAD_TRANSFER_ENCODING,
                 H1_UNKNOWN_TRANSFER_CODING,
                 H1_BAD_CHUNK,
                 H1_TRAILER_TOO_LARGE,
                 H1_REASONS
};

struct h1_limits {
    size_t head_bytes;   /* whole head; 65536 */
    size_t target_bytes; /* 32768: longer is 414 */
    unsigned fields;     /* 1000 */
};

/* Up to two empty lines before a request line are skipped (2.2). Bare LF as a line end is refused.
 * Host: exactly one in HTTP/1.1, valid even beside an absolute URI; none allowed in 1.0 (3.2). */
enum h1_result h1_parse_request(struct span bytes, const struct h1_limits *limits, struct arena *a,
                                struct request_head *out, size_t *used, enum h1_reason *why);
/* Space before a colon is dropped in responses (5.1); obs-fold becomes spaces in responses (5.2),
 * is refused in requests; a line that is no field at all is BAD in requests, dropped in
 * responses... but NUL or bare CR is BAD in both. A line may end in LF alone (2.2), told by
 * bare_lf. */
enum h1_result h1_parse_response(struct span bytes, const struct h1_limits *limits, struct arena *a,
                                 struct response_head *out, size_t *used, enum h1_reason *why);
const char *h1_reason_text(enum h1_reason why);
unsigned h1_reason_status(enum h1_reason why); /* for requests: 400, 414, 431, 501, 505 */

#endif
