/* http/h1_write.c - heads to bytes.
 *
 * Room is reserved once for all fields together, then bytes are only copied: a head is written for
 * every message, hits included. */
#include "http/h1_write.h"

static char *
put(char *to, struct span s)
{
    if (s.n)
        memcpy(to, s.at, s.n);
    return to + s.n;
}

static char *
put_field(char *to, struct span name, struct span value)
{
    to = put(to, name);
    *to++ = ':';
    *to++ = ' ';
    to = put(to, value);
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

enum { FIELD_OVERHEAD = sizeof ": \r\n" - 1 };

/* RFC 9112 section 3 */
void
h1_write_request_line(struct buf *b, struct span method, struct span target)
{
    static const struct span tail = {" HTTP/1.1\r\n", 11};
    char *to = buf_reserve(b, method.n + 1 + target.n + tail.n);

    to = put(to, method);
    *to++ = ' ';
    put(put(to, target), tail);
    b->n += method.n + 1 + target.n + tail.n;
}

/* RFC 9112 section 4: the space behind the code stays when there is no reason. */
void
h1_write_status_line(struct buf *b, unsigned status, struct span reason)
{
    static const struct span head = {"HTTP/1.1 ", 9};
    char *to = put(buf_reserve(b, head.n + 4 + reason.n + 2), head);

    *to++ = (char)('0' + status / 100 % 10);
    *to++ = (char)('0' + status / 10 % 10);
    *to++ = (char)('0' + status % 10);
    *to++ = ' ';
    put(put(to, reason), SPAN("\r\n"));
    b->n += head.n + 4 + reason.n + 2;
}

void
h1_write_field(struct buf *b, struct span name, struct span value)
{
    put_field(buf_reserve(b, name.n + value.n + FIELD_OVERHEAD), name, value);
    b->n += name.n + value.n + FIELD_OVERHEAD;
}

void
h1_write_fields(struct buf *b, const struct fields *f)
{
    size_t n = 0;
    char *to;

    for (unsigned i = 0; i < f->n; i++)
        n += f->at[i].name.n + f->at[i].value.n + FIELD_OVERHEAD;
    to = buf_reserve(b, n);
    for (unsigned i = 0; i < f->n; i++)
        to = put_field(to, f->at[i].name, f->at[i].value);
    b->n += n;
}

void
h1_write_edited(struct buf *b, struct span block, const struct fields *fields,
                const struct edits *e)
{
    if (e->n_removed == 0)
        buf_add(b, block);
    else
        for (unsigned i = 0; i < fields->n; i++)
            if (!edits_remove_it(e, &fields->at[i]))
                h1_write_field(b, fields->at[i].name, fields->at[i].value);
    h1_write_fields(b, &e->added);
}

void
h1_write_request(struct buf *b, const struct request_to_send *r)
{
    h1_write_request_line(b, r->method, r->target);
    h1_write_field(b, SPAN("Host"), r->host);
    h1_write_fields(b, &r->fields);
    if (r->body.how == FRAMING_CHUNKED)
        BUF_ADD(b, "Transfer-Encoding: chunked\r\n");
    else if (r->body.how == FRAMING_LENGTH) {
        BUF_ADD(b, "Content-Length: ");
        buf_add_uint(b, r->body.length);
        BUF_ADD(b, "\r\n");
    }
    BUF_ADD(b, "\r\n");
}

/* RFC 9112 section 7.1 */
size_t
h1_chunk_head(char *out, uint64_t n_bytes)
{
    char digits[16];
    size_t at = sizeof digits, n;

    do
        digits[--at] = "0123456789abcdef"[n_bytes % 16];
    while ((n_bytes /= 16) != 0);
    n = sizeof digits - at;
    memcpy(out, digits + at, n);
    memcpy(out + n, "\r\n", 2);
    return n + 2;
}
