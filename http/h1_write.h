/* http/h1_write.h - heads to bytes. What was judged is what is sent: only parsed fields, CRLF, one
 * space. */
#ifndef HTTP_H1_WRITE_H
#define HTTP_H1_WRITE_H

#include "base/buf.h"
#include "http/edits.h"
#include "http/h1_frame.h"
#include "http/message.h"

/* A request as field lists; how it looks on the wire is the writer's matter. */
struct request_to_send {
    struct span method, target, host;
    struct fields fields; /* without Host and framing */
    struct framed body;
};

void h1_write_request(struct buf *b, const struct request_to_send *r); /* the whole head */
void h1_write_request_line(struct buf *b, struct span method,
                           struct span target); /* always HTTP/1.1 */
void h1_write_status_line(struct buf *b, unsigned status,
                          struct span reason); /* always HTTP/1.1; empty reason allowed */
void h1_write_field(struct buf *b, struct span name, struct span value);
/* RFC 9112 section 5. */
void h1_write_fields(struct buf *b, const struct fields *f);
/* The fields of a head with edits. block: the same fields as they are serialized already. */
void h1_write_edited(struct buf *b, struct span block, const struct fields *fields,
                     const struct edits *e);
/* "1a2b\r\n" of one chunk into out (at least 20 bytes); returns its length. */
size_t h1_chunk_head(char *out, uint64_t n_bytes);

#endif
