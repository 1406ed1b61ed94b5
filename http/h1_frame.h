/* http/h1_frame.h - where a message body ends (RFC 9112 sections 6 and 7). Ambiguous framing is
 * refused, never guessed. */
#ifndef HTTP_H1_FRAME_H
#define HTTP_H1_FRAME_H

#include "http/h1_parse.h"

enum framing { FRAMING_NONE, FRAMING_LENGTH, FRAMING_CHUNKED, FRAMING_CLOSE };

struct framed {
    enum framing how;
    uint64_t length; /* FRAMING_LENGTH only; at most 2^62 */
    bool must_close; /* framing was doubtful but decidable: do not reuse the connection */
};

uint64_t framed_length(const struct framed *f); /* of the body; UINT64_MAX: not known beforehand */
/* Requests: Transfer-Encoding with Content-Length, in HTTP/1.0, or not exactly "chunked" -> BAD
 * (501 for an unknown coding); several or odd Content-Length -> BAD unless equal plain numbers
 * (then one). */
enum h1_result h1_frame_request(const struct request_head *r, struct framed *out,
                                enum h1_reason *why);
/* Responses to `method` (6.3): 1xx, 204, 304, HEAD, 2xx to CONNECT: NONE. must_close: chunked
 * beside Content-Length (chunked wins), in HTTP/1.0 or said twice; "identity", which counts for
 * nothing; a head with bare LFs. Any other coding, and chunked among others, is BAD. */
enum h1_result h1_frame_response(const struct response_head *r, enum method m, struct framed *out,
                                 enum h1_reason *why);

/* Is the connection kept after this message, by the sender's own words (RFC 9112 section 9.3)?
 * Proxy-Connection counts in requests of 1.0 clients. */
bool h1_keeps_alive_request(const struct request_head *r);
/* RFC 9112 section 9.3. */
bool h1_keeps_alive_response(const struct response_head *r);

/* Chunked coding, incremental (section 7.1): strict sizes, CRLF only, extensions skipped but
 * bounded, trailers bounded and dropped into `trailer` as raw lines (validated field lines, without
 * framing, routing and credential fields) for whoever wants them. From an origin, blanks between a
 * size and its CRLF are skipped, and so is a trailer line that is no field. */
enum h1_sender { H1_CLIENT, H1_ORIGIN };

struct chunked {
    int state;
    enum h1_sender sender;
    uint64_t left;       /* of the current chunk */
    uint32_t line_bytes; /* of the current size line or trailer line */
    uint32_t trailer_bytes;
    uint64_t overhead, payload; /* framing against body bytes, to bound waste */
    int quoted;                 /* inside a quoted chunk extension */
};
enum chunked_result { CHUNKED_MORE, CHUNKED_DATA, CHUNKED_END, CHUNKED_BAD };

/* RFC 9112 section 7.1. */
void chunked_start(struct chunked *c, enum h1_sender sender);
/* Consumes from *in. DATA: *data borrows from in. MORE: in is used up. END: the rest of *in is not
 * ours. trailer may be NULL. */
struct buf;
enum chunked_result chunked_next(struct chunked *c, struct span *in, struct span *data,
                                 struct buf *trailer);

#endif
