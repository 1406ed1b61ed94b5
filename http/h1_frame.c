/* http/h1_frame.c - where a message body ends.
 *
 * Two parsers that disagree about a length are how requests are smuggled and responses are planted.
 * So there is one opinion here, for both directions, and where a message leaves room for another
 * one it is refused; in a response, where the strict answer would cost users whole sites, what is
 * doubtful but decidable costs the connection instead. */
#include "http/h1_frame.h"

#include "base/buf.h"

#define LENGTH_MAX (UINT64_C(1) << 62)

static enum h1_result
bad(enum h1_reason *why, enum h1_reason reason)
{
    *why = reason;
    return H1_BAD;
}

/* ---- Content-Length and Transfer-Encoding ---- */

/* "5", or "5, 5" as some relay may have joined two lines: every member plain digits, all equal
 * (RFC 9112 section 6.3 item 5). */
static bool
read_lengths(struct span value, bool *have, uint64_t *length)
{
    uint64_t n;

    for (;;) {
        size_t comma = span_index(value, ',');

        if (!span_to_uint(span_trim(span_first(value, comma)), LENGTH_MAX, &n))
            return false;
        if (*have && n != *length)
            return false;
        *have = true;
        *length = n;
        if (comma == value.n)
            return true;
        value = span_skip(value, comma + 1);
    }
}

/* Over all lines; *have: there is one. */
static bool
content_length(const struct fields *f, bool *have, uint64_t *length)
{
    const struct field *field = fields_find(f, FIELD_CONTENT_LENGTH);

    *have = false;
    for (; field; field = fields_next(f, FIELD_CONTENT_LENGTH, field)) {
        if (!read_lengths(field->value, have, length))
            return false;
    }
    return true;
}

struct codings {
    unsigned n, n_chunked, n_identity;
    bool chunked_last, malformed;
};

/* Over all lines of Transfer-Encoding. */
static struct codings
read_codings(const struct fields *f)
{
    const struct field *field = fields_find(f, FIELD_TRANSFER_ENCODING);
    struct codings c = {0};

    for (; field; field = fields_next(f, FIELD_TRANSFER_ENCODING, field)) {
        struct span rest = field->value, member;

        while (list_next(&rest, &member)) {
            c.n++;
            c.chunked_last = span_eq_ci(member, SPAN("chunked"));
            c.n_chunked += c.chunked_last;
            c.n_identity += span_eq_ci(member, SPAN("identity"));
            c.malformed |= !field_name_is_token(member); /* quoted, or with parameters */
        }
    }
    return c;
}

/* The codings must be exactly "chunked": no other is decoded here, and a body that is only half
 * decoded must not travel as if it were whole. */
static enum h1_reason
judge_codings(const struct codings *c)
{
    if (c->malformed || c->n_chunked > 1 || c->n == 0 || (c->n_chunked && !c->chunked_last))
        return H1_BAD_TRANSFER_ENCODING;
    return c->n > c->n_chunked ? H1_UNKNOWN_TRANSFER_CODING : H1_FINE;
}

/* ---- requests ---- */

static enum h1_result
frame_encoded_request(const struct request_head *r, struct framed *out, enum h1_reason *why)
{
    struct codings codings = read_codings(&r->fields);
    enum h1_reason coding = judge_codings(&codings);

    if (fields_find(&r->fields, FIELD_CONTENT_LENGTH) || r->minor == 0)
        return bad(why, H1_FRAMING_AMBIGUOUS);
    if (coding != H1_FINE)
        return bad(why, coding);
    out->how = FRAMING_CHUNKED;
    return H1_OK;
}

uint64_t
framed_length(const struct framed *f)
{
    switch (f->how) {
    case FRAMING_LENGTH:
        return f->length;
    case FRAMING_NONE:
        return 0;
    default:
        return UINT64_MAX;
    }
}

/* RFC 9112 sections 6.1 and 6.3. What follows the head of a CONNECT is the tunnel (RFC 9110 section
 * 9.3.6), so a CONNECT that announces a body means two things at once. */
enum h1_result
h1_frame_request(const struct request_head *r, struct framed *out, enum h1_reason *why)
{
    bool encoded = fields_find(&r->fields, FIELD_TRANSFER_ENCODING) != NULL, have;
    uint64_t length = 0;

    *why = H1_FINE;
    *out = (struct framed){.how = FRAMING_NONE};
    if (encoded && r->method == METHOD_CONNECT)
        return bad(why, H1_FRAMING_AMBIGUOUS);
    if (encoded)
        return frame_encoded_request(r, out, why);
    if (!content_length(&r->fields, &have, &length))
        return bad(why, H1_BAD_LENGTH);
    if (r->method == METHOD_CONNECT)
        return length > 0 ? bad(why, H1_FRAMING_AMBIGUOUS) : H1_OK;
    if (have)
        *out = (struct framed){.how = FRAMING_LENGTH, .length = length};
    return H1_OK;
}

/* ---- responses ---- */

static bool
has_no_body(const struct response_head *r, enum method m)
{
    return r->status / 100 == 1 || r->status == 204 || r->status == 304 || m == METHOD_HEAD ||
           (m == METHOD_CONNECT && r->status / 100 == 2);
}

/* A 304 or an answer to HEAD may tell the length of what it does not carry; in the others such a
 * field means that the sender may send bytes which nobody will read as a body. */
static bool
may_announce(const struct response_head *r, enum method m)
{
    return r->status == 304 || (m == METHOD_HEAD && r->status >= 200 && r->status != 204);
}

/* What servers do say, and browsers and curl understand: "chunked" from the application and once
 * more from its server, around chunks that are there once (to chunk twice is forbidden, section
 * 6.1); and the "identity" of RFC 2616, which is no coding. */
static bool
are_one_coding(const struct codings *c)
{
    return c->n > 0 && (c->n_chunked == c->n || c->n_identity == c->n);
}

/* RFC 9112 section 6.3 */
enum h1_result
h1_frame_response(const struct response_head *r, enum method m, struct framed *out,
                  enum h1_reason *why)
{
    bool encoded = fields_find(&r->fields, FIELD_TRANSFER_ENCODING) != NULL, have;
    struct codings codings = encoded ? read_codings(&r->fields) : (struct codings){0};
    bool plainly_chunked = codings.n == 1 && codings.n_chunked == 1;
    uint64_t length = 0;

    *why = H1_FINE;
    *out = (struct framed){.how = FRAMING_NONE};
    if (encoded && !are_one_coding(&codings))
        return bad(why, judge_codings(&codings));
    if (!content_length(&r->fields, &have, &length))
        return bad(why, H1_BAD_LENGTH);
    out->must_close = r->bare_lf || (encoded && (have || r->minor == 0 || !plainly_chunked));
    if (has_no_body(r, m)) {
        if (!may_announce(r, m))
            out->must_close |= encoded || length > 0;
        return H1_OK;
    }
    out->how = codings.n_chunked ? FRAMING_CHUNKED : have ? FRAMING_LENGTH : FRAMING_CLOSE;
    out->length = out->how == FRAMING_LENGTH ? length : 0;
    return H1_OK;
}

/* ---- persistence ---- */

static bool
keeps_alive(const struct fields *f, unsigned minor, bool proxy_connection)
{
    if (fields_has_token(f, FIELD_CONNECTION, SPAN("close")))
        return false;
    return minor > 0 || fields_has_token(f, FIELD_CONNECTION, SPAN("keep-alive")) ||
           (proxy_connection && fields_has_token(f, FIELD_PROXY_CONNECTION, SPAN("keep-alive")));
}

bool
h1_keeps_alive_request(const struct request_head *r)
{
    return keeps_alive(&r->fields, r->minor, true);
}

bool
h1_keeps_alive_response(const struct response_head *r)
{
    return keeps_alive(&r->fields, r->minor, false);
}

/* ---- chunked coding ---- */

enum {
    LINE_MAX_BYTES = 4096,
    TRAILER_MAX_BYTES = 65536,
    DIGITS_SHIFT_MAX = 62 - 4,
};

/* Framing may cost this much outright, and this many times the body: chunks of one byte pass,
 * endless extensions do not. */
#define OVERHEAD_FREE (UINT64_C(16) << 20)
#define OVERHEAD_PER_BYTE 8

enum chunked_state {
    SIZE_FIRST, /* the first digit of a size */
    SIZE_MORE,  /* further digits */
    SIZE_BLANK, /* blanks behind a size: what may follow is up to the sender */
    EXTENSION,
    SIZE_LF,
    CHUNK_DATA,
    DATA_CR,
    DATA_LF,
    TRAILER_FIRST, /* at the start of a trailer line, or the CR of the empty line */
    TRAILER_LINE,
    TRAILER_LF,
    LAST_LF,
    DONE,
    BROKEN,
};

void
chunked_start(struct chunked *c, enum h1_sender sender)
{
    *c = (struct chunked){.state = SIZE_FIRST, .sender = sender};
}

static int
hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
is_text(char c)
{
    return (unsigned char)c >= 0x20 ? c != 0x7f : c == '\t';
}

static enum chunked_state
after_size(struct chunked *c, char byte)
{
    int digit = hex_value(byte);

    if (digit >= 0) {
        if (c->left >> DIGITS_SHIFT_MAX)
            return BROKEN;
        c->left = c->left << 4 | (unsigned)digit;
        return SIZE_MORE;
    }
    if (c->state == SIZE_FIRST)
        return BROKEN;
    if (byte == '\r')
        return SIZE_LF;
    return byte == ';' ? EXTENSION : byte == ' ' || byte == '\t' ? SIZE_BLANK : BROKEN;
}

/* Blanks belong to an extension (BWS), but old servers and small devices pad their sizes with them.
 * That is harmless from an origin, since its body is chunked anew for whoever is behind us. A
 * further digit never passes: "5 0" is 5 to some and 80 to others. */
static enum chunked_state
after_blank(const struct chunked *c, char byte)
{
    if (byte == ' ' || byte == '\t')
        return SIZE_BLANK;
    if (byte == '\r' && c->sender == H1_ORIGIN)
        return SIZE_LF;
    return byte == ';' ? EXTENSION : BROKEN;
}

enum { UNQUOTED, QUOTED, QUOTED_PAIR };

/* RFC 9112 section 7.1.1: skipped, but a quoted string must end before the line does. */
static enum chunked_state
in_extension(struct chunked *c, char byte)
{
    if (byte == '\r')
        return c->quoted == UNQUOTED ? SIZE_LF : BROKEN;
    if (!is_text(byte))
        return BROKEN;
    if (c->quoted == QUOTED_PAIR)
        c->quoted = QUOTED;
    else if (byte == '"')
        c->quoted = c->quoted == QUOTED ? UNQUOTED : QUOTED;
    else if (byte == '\\' && c->quoted == QUOTED)
        c->quoted = QUOTED_PAIR;
    return EXTENSION;
}

static enum chunked_state
after_size_line(struct chunked *c)
{
    c->line_bytes = 0;
    return c->left > 0 ? CHUNK_DATA : TRAILER_FIRST;
}

static bool
is_field_line(struct span line)
{
    struct span name = span_first(line, span_index(line, ':'));

    return name.n < line.n && field_name_is_token(name) &&
           field_value_is_valid(span_skip(line, name.n + 1));
}

/* RFC 9110 section 6.5.1: a field whose meaning is settled before the body must not come behind it;
 * all that we know are of that kind. */
static bool
may_be_trailer(struct span line)
{
    struct span name = span_first(line, span_index(line, ':'));

    return field_id_of(name) == FIELD_OTHER && !span_starts_ci(name, SPAN("Content-")) &&
           !span_eq_ci(name, SPAN("Authentication-Info")) && !span_eq_ci(name, SPAN("Set-Cookie2"));
}

/* As in the head of a response (RFC 9112 section 5): the body is whole by then, and the line says
 * nothing about it. Not a fold, which would leave half of the value before it. */
static bool
is_passed_over(const struct chunked *c, struct span line)
{
    return c->sender == H1_ORIGIN && line.at[0] != ' ' && line.at[0] != '\t';
}

/* The line has been collected at the end of trailer; what must not be there is taken off again.
 * false: it is no field line. */
static bool
finish_trailer_line(struct chunked *c, struct buf *trailer)
{
    size_t from;
    struct span line;
    bool is_field;

    if (trailer == NULL)
        return true;
    from = trailer->n - c->line_bytes;
    line = span_of(trailer->at + from, c->line_bytes);
    is_field = is_field_line(line);
    if (!is_field && !is_passed_over(c, line))
        return false;
    if (is_field && may_be_trailer(line))
        BUF_ADD(trailer, "\r\n");
    else
        trailer->n = from;
    return true;
}

static enum chunked_state
in_trailer(struct chunked *c, char byte, struct buf *trailer)
{
    if (++c->trailer_bytes > TRAILER_MAX_BYTES)
        return BROKEN;
    if (byte == '\r')
        return c->state == TRAILER_FIRST ? LAST_LF : TRAILER_LF;
    if (!is_text(byte))
        return BROKEN;
    c->line_bytes++;
    if (trailer)
        buf_add_char(trailer, byte);
    return TRAILER_LINE;
}

static enum chunked_state
after_trailer_line(struct chunked *c, struct buf *trailer)
{
    bool fine = finish_trailer_line(c, trailer);

    c->line_bytes = 0;
    return fine ? TRAILER_FIRST : BROKEN;
}

/* One byte of framing. */
static enum chunked_state
step(struct chunked *c, char byte, struct buf *trailer)
{
    switch ((enum chunked_state)c->state) {
    case SIZE_FIRST:
    case SIZE_MORE:
        return after_size(c, byte);
    case SIZE_BLANK:
        return after_blank(c, byte);
    case EXTENSION:
        return in_extension(c, byte);
    case SIZE_LF:
        return byte == '\n' ? after_size_line(c) : BROKEN;
    case DATA_CR:
        return byte == '\r' ? DATA_LF : BROKEN;
    case DATA_LF:
        return byte == '\n' ? SIZE_FIRST : BROKEN;
    case TRAILER_FIRST:
    case TRAILER_LINE:
        return in_trailer(c, byte, trailer);
    case TRAILER_LF:
        return byte == '\n' ? after_trailer_line(c, trailer) : BROKEN;
    case LAST_LF:
        return byte == '\n' ? DONE : BROKEN;
    case CHUNK_DATA:
    case DONE:
    case BROKEN:
        break;
    }
    return BROKEN;
}

/* Counts a byte of framing; false: too much of it. */
static bool
is_within_bounds(struct chunked *c)
{
    c->overhead++;
    if (c->state < CHUNK_DATA && ++c->line_bytes > LINE_MAX_BYTES)
        return false;
    return c->overhead <= OVERHEAD_FREE ||
           c->overhead - OVERHEAD_FREE <= OVERHEAD_PER_BYTE * c->payload;
}

static enum chunked_result
take_data(struct chunked *c, struct span *in, struct span *data)
{
    *data = span_first(*in, c->left < in->n ? (size_t)c->left : in->n);
    *in = span_skip(*in, data->n);
    c->left -= data->n;
    c->payload += data->n;
    if (c->left == 0)
        c->state = DATA_CR;
    return CHUNKED_DATA;
}

/* RFC 9112 section 7.1 */
enum chunked_result
chunked_next(struct chunked *c, struct span *in, struct span *data, struct buf *trailer)
{
    *data = SPAN_NONE;
    while (in->n > 0 && c->state != DONE && c->state != BROKEN) {
        if (c->state == CHUNK_DATA)
            return take_data(c, in, data);
        c->state = is_within_bounds(c) ? step(c, in->at[0], trailer) : BROKEN;
        *in = span_skip(*in, 1);
    }
    return c->state == DONE ? CHUNKED_END : c->state == BROKEN ? CHUNKED_BAD : CHUNKED_MORE;
}
