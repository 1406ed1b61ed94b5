/* http/h1_parse.c - bytes to heads.
 *
 * Two steps. The first finds the end of the head with memchr alone; it refuses what can be refused
 * early (limits, a line without CR, a broken first line), so that nobody can keep us waiting for
 * the end of something hopeless, and it counts the lines. The second step runs once per message: it
 * reads each byte once, by table or eight at a time, and needs no check for the end inside a line,
 * since it knows that each line ends in LF and every scan stops there.
 *
 * A line ends at its LF, and one CR in front of that belongs to the end. From origins that CR may
 * be missing, line by line, as devices and CGI programs send it (section 2.2). So a head ends at
 * the first line of which nothing is left, whatever mixture of CRLF and LF stands around it; a CR
 * at any other place is content, and is refused as such. */
#include "http/h1_parse.h"

#include "base/check.h"

enum { VERSION_BYTES = 8, EMPTY_LINES_MAX = 2, ROOM_FOR_OURS = 8 };

/* ---- characters ---- */

enum { TOKEN = 1, TARGET = 2 };

static const unsigned char classes[256] = {
    ['!'] = TOKEN | TARGET,          ['"'] = TARGET,
    ['#' ... '\''] = TOKEN | TARGET, ['(' ... ')'] = TARGET,
    ['*' ... '+'] = TOKEN | TARGET,  [','] = TARGET,
    ['-' ... '.'] = TOKEN | TARGET,  ['/'] = TARGET,
    ['0' ... '9'] = TOKEN | TARGET,  [':' ... '@'] = TARGET,
    ['A' ... 'Z'] = TOKEN | TARGET,  ['[' ... ']'] = TARGET,
    ['^' ... 'z'] = TOKEN | TARGET,  ['{'] = TARGET,
    ['|'] = TOKEN | TARGET,          ['}'] = TARGET,
    ['~'] = TOKEN | TARGET,          [0x80 ... 0xff] = TARGET,
};

static bool
is_class(char c, unsigned class)
{
    return classes[(unsigned char)c] & class;
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

#define EACH_BYTE(b) (UINT64_C(0x0101010101010101) * (b))

/* Is there a byte below 0x20, or 0x7f, among these eight? */
static bool
has_control(uint64_t word)
{
    uint64_t del = word ^ EACH_BYTE(0x7f);

    return ((((word - EACH_BYTE(0x20)) & ~word) | ((del - EACH_BYTE(1)) & ~del)) &
            EACH_BYTE(0x80)) != 0;
}

/* The first control character but HTAB at or after p; end when there is none. */
static const char *
find_control(const char *p, const char *end)
{
    for (;;) {
        uint64_t word;

        while (end - p >= 8) {
            memcpy(&word, p, 8);
            if (has_control(word))
                break;
            p += 8;
        }
        for (int i = 0; i < 8; i++, p++) {
            if (p == end || ((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f)
                return p;
        }
    }
}

/* ---- the first step: is it all there? ---- */

struct head {
    struct span bytes; /* from the first line on */
    struct span first; /* the first line without its end; NULL while it is not there */
    size_t fields_at;  /* where the field lines begin */
    size_t fields_end; /* where the empty line begins */
    size_t n;          /* of the head with its empty line; 0: not all there */
    unsigned n_lines;  /* field lines so far */
    bool takes_lf;     /* a line may end in LF alone */
    bool bare_lf;      /* one does */
    const struct h1_limits *limits;
    struct arena *arena;
    enum h1_reason bad_first; /* why a first line is refused */
    enum h1_reason *why;
};

static enum h1_result
bad(struct head *h, enum h1_reason why)
{
    *h->why = why;
    return H1_BAD;
}

/* One line, from `at` up to the LF at lf. The empty one sets n. */
static enum h1_result
take_line(struct head *h, size_t at, size_t lf)
{
    bool has_cr = lf > at && h->bytes.at[lf - 1] == '\r';
    size_t end = lf - has_cr;

    if (!has_cr && !h->takes_lf)
        return bad(h, at == 0 ? h->bad_first : H1_BAD_FIELD_LINE);
    h->bare_lf |= !has_cr;
    if (at == 0) {
        h->first = span_of(h->bytes.at, end);
        h->fields_at = lf + 1;
    } else if (end == at) {
        h->fields_end = at;
        h->n = lf + 1;
    } else if (++h->n_lines > h->limits->fields) {
        return bad(h, H1_TOO_MANY_FIELDS);
    }
    return H1_OK;
}

/* Sets n, or leaves it 0 for an incomplete head. */
static enum h1_result
find_end(struct head *h)
{
    struct span b = h->bytes;
    size_t at = 0;

    while (h->n == 0) {
        const char *hit = at < b.n ? memchr(b.at + at, '\n', b.n - at) : NULL;
        size_t lf = hit ? (size_t)(hit - b.at) : b.n;

        if (lf >= h->limits->head_bytes)
            return bad(h, H1_HEAD_TOO_LARGE);
        if (hit == NULL)
            return H1_OK;
        if (take_line(h, at, lf) != H1_OK)
            return H1_BAD;
        at = lf + 1;
    }
    return H1_OK;
}

/* ---- the second step: field lines ---- */

struct cursor {
    const char *at, *end; /* end: behind the last field line, where the empty line begins */
    struct head *head;
    struct fields *fields;
};

static void
add_field(struct cursor *c, struct span name, struct span value)
{
    struct fields *f = c->fields;

    CHECK(f->n < f->cap); /* there is room for each line that was counted */
    f->at[f->n++] = (struct field){.name = name, .value = value, .id = field_id_of(name)};
}

static void
make_room(struct head *h, struct fields *f)
{
    f->n = 0;
    f->cap = h->n_lines + ROOM_FOR_OURS;
    if (f->cap < 16)
        f->cap = 16;
    f->at = arena_alloc(h->arena, f->cap * sizeof *f->at);
}

/* Steps over a value to the end of its line; *value is trimmed. Requests: no control character at
 * all. Responses: others than NUL and CR go through, as they do in every browser (RFC 9110 section
 * 5.5). */
static enum h1_result
take_value(struct cursor *c, bool strict, struct span *value)
{
    const char *from = c->at, *p;

    while (is_blank(*from))
        from++;
    for (p = from; (p = find_control(p, c->end)), *p != '\r' && *p != '\n'; p++) {
        if (strict || *p == '\0')
            return bad(c->head, H1_CONTROL_IN_FIELD);
    }
    c->at = p + (*p == '\r');
    if (*c->at++ != '\n')
        return bad(c->head, H1_BARE_CR);
    while (p > from && is_blank(p[-1]))
        p--;
    *value = span_of(from, (size_t)(p - from));
    return H1_OK;
}

static enum h1_reason
why_no_name(struct cursor *c, const char *p)
{
    if (is_blank(*c->at))
        return H1_FOLDED_LINE;
    if (p > c->at && is_blank(*p))
        return H1_SPACE_BEFORE_COLON;
    return H1_BAD_FIELD_LINE;
}

/* RFC 9112 section 5, for requests: nothing is mended. */
static enum h1_result
request_field(struct cursor *c)
{
    const char *p = c->at;
    struct span name, value;

    while (is_class(*p, TOKEN))
        p++;
    if (*p != ':' || p == c->at)
        return bad(c->head, why_no_name(c, p));
    name = span_of(c->at, (size_t)(p - c->at));
    c->at = p + 1;
    if (take_value(c, true, &value) != H1_OK)
        return H1_BAD;
    add_field(c, name, value);
    return H1_OK;
}

static bool
is_folded(const struct cursor *c)
{
    return is_blank(*c->at); /* at most the CR or LF of the empty line */
}

static char *
put_segment(char *to, const char *start, struct span segment)
{
    if (segment.n == 0)
        return to;
    if (to != start)
        *to++ = ' ';
    memcpy(to, segment.at, segment.n);
    return to + segment.n;
}

/* RFC 9112 section 5.2: each fold becomes one space. The room is measured before, so that many
 * short lines cost what one long line costs. */
static enum h1_result
unfold(struct cursor *c, struct span *value)
{
    struct cursor ahead = *c;
    size_t n = value->n;
    struct span segment;
    char *text, *to;

    while (is_folded(&ahead)) {
        if (take_value(&ahead, false, &segment) != H1_OK)
            return H1_BAD;
        n += segment.n + 1;
    }
    text = arena_alloc(c->head->arena, n);
    to = put_segment(text, text, *value);
    while (is_folded(c)) {
        if (take_value(c, false, &segment) != H1_OK)
            return H1_BAD;
        to = put_segment(to, text, segment);
    }
    *value = span_of(text, (size_t)(to - text));
    return H1_OK;
}

/* For responses: a space before the colon is dropped (5.1), and so is a line that is no field,
 * with what is folded to it. A NUL or a bare CR is never passed over. */
static enum h1_result
response_field(struct cursor *c)
{
    const char *p = c->at;
    struct span name = {c->at, 0}, value;

    while (is_class(*p, TOKEN))
        p++;
    name.n = (size_t)(p - c->at);
    while (is_blank(*p))
        p++;
    if (*p == ':')
        c->at = p + 1;
    else
        name.n = 0;
    if (take_value(c, false, &value) != H1_OK || (is_folded(c) && unfold(c, &value) != H1_OK))
        return H1_BAD;
    if (name.n > 0)
        add_field(c, name, value);
    return H1_OK;
}

static enum h1_result
parse_fields(struct head *h, struct fields *fields, enum h1_result (*parse)(struct cursor *c))
{
    struct cursor c = {.at = h->bytes.at + h->fields_at,
                       .end = h->bytes.at + h->fields_end,
                       .head = h,
                       .fields = fields};

    make_room(h, fields);
    while (c.at < c.end) {
        if (parse(&c) != H1_OK)
            return H1_BAD;
    }
    return H1_OK;
}

/* ---- request line ---- */

static size_t
skip_class(struct span s, unsigned class)
{
    size_t i = 0;

    while (i < s.n && is_class(s.at[i], class))
        i++;
    return i;
}

/* RFC 9112 section 2.3: the name in capitals, one digit each. A higher minor version is ours. */
static enum h1_reason
parse_version(struct span s, unsigned *minor)
{
    if (s.n != VERSION_BYTES || !span_starts(s, SPAN("HTTP/")) || s.at[6] != '.' || s.at[5] < '0' ||
        s.at[5] > '9' || s.at[7] < '0' || s.at[7] > '9')
        return H1_BAD_VERSION;
    if (s.at[5] == '0')
        return H1_HTTP09;
    if (s.at[5] != '1')
        return H1_VERSION_UNSUPPORTED;
    *minor = s.at[7] != '0';
    return H1_FINE;
}

/* What stands behind the target; whole: the line is all there. */
static enum h1_reason
parse_behind_target(struct span s, bool whole, unsigned *minor)
{
    if (s.n == 0)
        return whole ? H1_HTTP09 : H1_FINE;
    if (s.at[0] == ' ')
        return whole ? parse_version(span_skip(s, 1), minor) : H1_FINE;
    if (!whole && span_eq(s, SPAN("\r"))) /* its LF has not come yet */
        return H1_FINE;
    return s.at[0] == '\t' ? H1_BAD_REQUEST_LINE : H1_BAD_TARGET;
}

/* RFC 9112 section 3, as far as the line is there: one space each, and nothing is mended. */
static enum h1_reason
parse_request_line(struct span line, bool whole, size_t target_max, struct request_head *r)
{
    size_t n = skip_class(line, TOKEN);
    struct span rest = span_skip(line, n);

    r->method_text = span_first(line, n);
    if (rest.n == 0)
        return !whole ? H1_FINE : n == 0 ? H1_BAD_REQUEST_LINE : H1_HTTP09;
    if (n == 0 || rest.at[0] != ' ')
        return is_blank(rest.at[0]) ? H1_BAD_REQUEST_LINE : H1_BAD_METHOD;
    rest = span_skip(rest, 1);
    n = skip_class(rest, TARGET);
    r->target = span_first(rest, n);
    if (n > target_max)
        return H1_TARGET_TOO_LONG;
    if (n == 0 && rest.n > 0)
        return is_blank(rest.at[0]) ? H1_BAD_REQUEST_LINE : H1_BAD_TARGET;
    return parse_behind_target(span_skip(rest, n), whole, &r->minor);
}

/* RFC 9112 section 2.2: a client may send an empty line too many after a body. */
static size_t
skip_empty_lines(struct span bytes)
{
    size_t at = 0;

    while (at < 2 * EMPTY_LINES_MAX && bytes.n - at >= 2 && memcmp(bytes.at + at, "\r\n", 2) == 0)
        at += 2;
    return at;
}

/* ---- Host ---- */

/* The usual case beside an absolute URI: Host repeats its authority byte for byte, which was found
 * valid already. With userinfo there it would be a Host with userinfo. */
static bool
repeats_authority(const struct request_head *r, struct span host)
{
    size_t at = r->uri.scheme.n + 3;
    struct span rest;

    if (r->uri.form != URI_ABSOLUTE || r->uri.had_userinfo)
        return false;
    rest = span_skip(r->target, at);
    return host.n > 0 && span_starts(rest, host) && (rest.n == host.n || rest.at[host.n] == '/');
}

static void
take_host(struct uri *u, const struct uri *host)
{
    u->scheme = SPAN("http");
    u->host = host->host;
    u->literal = host->literal;
    u->port = host->port;
    u->port_given = host->port_given;
}

/* RFC 9112 section 3.2: exactly one in HTTP/1.1, and valid, beside an absolute URI too. */
static enum h1_reason
check_host(struct request_head *r, struct arena *a)
{
    const struct field *host = fields_find(&r->fields, FIELD_HOST);
    struct uri parsed;
    const char *why;

    if (host == NULL)
        return r->minor == 0 ? H1_FINE : H1_BAD_HOST;
    if (fields_next(&r->fields, FIELD_HOST, host))
        return H1_BAD_HOST;
    if (repeats_authority(r, host->value))
        return H1_FINE;
    if (!uri_parse_authority(host->value, 80, a, &parsed, &why))
        return H1_BAD_HOST;
    if (r->uri.form == URI_ORIGIN || r->uri.form == URI_ASTERISK)
        take_host(&r->uri, &parsed);
    return H1_FINE;
}

/* ---- requests ---- */

/* The request line is fine, and the head is all there. */
static enum h1_result
parse_whole_request(struct head *h, struct request_head *r)
{
    const char *sentence;
    enum h1_reason host;

    r->method = method_of(r->method_text);
    if (!uri_parse_target(r->target, r->method, h->arena, &r->uri, &sentence))
        return bad(h, H1_BAD_TARGET);
    if (r->uri.path.n > h->limits->target_bytes) /* it grew when it was percent-encoded */
        return bad(h, H1_TARGET_TOO_LONG);
    if (parse_fields(h, &r->fields, request_field) != H1_OK)
        return H1_BAD;
    host = check_host(r, h->arena);
    return host == H1_FINE ? H1_OK : bad(h, host);
}

/* RFC 9112 sections 3 and 5 */
enum h1_result
h1_parse_request(struct span bytes, const struct h1_limits *limits, struct arena *a,
                 struct request_head *out, size_t *used, enum h1_reason *why)
{
    size_t skipped = skip_empty_lines(bytes);
    struct head h = {bytes, .limits = limits, .arena = a, .bad_first = H1_BAD_REQUEST_LINE,
                     .why = why};
    enum h1_result found;
    enum h1_reason line;

    *why = H1_FINE;
    *out = (struct request_head){0};
    if (skipped > 0)
        h.bytes = span_skip(bytes, skipped);
    if (h.bytes.n == 0 || span_eq(h.bytes, SPAN("\r")))
        return H1_MORE;
    found = find_end(&h);
    /* A broken first line is the better reason than what its length or its LF would give. */
    line =
        parse_request_line(h.first.at ? h.first : h.bytes, h.first.at, limits->target_bytes, out);
    if (line != H1_FINE)
        return bad(&h, line);
    if (found != H1_OK || h.n == 0)
        return found == H1_OK ? H1_MORE : found;
    *used = skipped + h.n;
    return parse_whole_request(&h, out);
}

/* ---- responses ---- */

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HTTP/1.1 200 OK"; the reason, and the space in front of it, may be missing. Codes from 600 on
 * are no classes of the standard, but sites do send them (RFC 9110 section 15). */
static bool
parse_status_line(struct span s, struct response_head *r)
{
    if (s.n < 12 || !span_starts(s, SPAN("HTTP/1.")) || !is_digit(s.at[7]) || s.at[8] != ' ' ||
        !is_digit(s.at[9]) || s.at[9] == '0' || !is_digit(s.at[10]) || !is_digit(s.at[11]))
        return false;
    r->minor = s.at[7] != '0';
    r->status = (unsigned)((s.at[9] - '0') * 100 + (s.at[10] - '0') * 10 + (s.at[11] - '0'));
    r->reason = span_skip(s, 13);
    if (s.n > 12 && s.at[12] != ' ')
        return false;
    return find_control(r->reason.at, r->reason.at + r->reason.n) == r->reason.at + r->reason.n;
}

/* Whatever does not begin like HTTP/1 will never become it: no need to wait for its line to end. */
static bool
begins_like_http(struct span s)
{
    struct span name = SPAN("HTTP/1.");

    return span_starts(s, span_first(name, s.n));
}

/* RFC 9112 sections 4 and 5 */
enum h1_result
h1_parse_response(struct span bytes, const struct h1_limits *limits, struct arena *a,
                  struct response_head *out, size_t *used, enum h1_reason *why)
{
    struct head h = {
        bytes,      .limits = limits, .arena = a, .takes_lf = true, .bad_first = H1_BAD_STATUS_LINE,
        .why = why,
    };
    enum h1_result found;

    *why = H1_FINE;
    *out = (struct response_head){0};
    if (bytes.n == 0)
        return H1_MORE;
    found = find_end(&h);
    if (!begins_like_http(bytes) || (h.first.at && !parse_status_line(h.first, out)))
        return bad(&h, H1_BAD_STATUS_LINE);
    if (found != H1_OK || h.n == 0)
        return found == H1_OK ? H1_MORE : found;
    if (parse_fields(&h, &out->fields, response_field) != H1_OK)
        return H1_BAD;
    out->bare_lf = h.bare_lf;
    *used = h.n;
    return H1_OK;
}

/* ---- reasons ---- */

static const struct {
    const char *text;
    unsigned status;
} reasons[H1_REASONS] = {
    [H1_FINE] = {"fine", 200},
    [H1_BAD_REQUEST_LINE] = {"the request line is malformed", 400},
    [H1_BAD_METHOD] = {"the method is not a token", 400},
    [H1_BAD_TARGET] = {"the request target is not valid", 400},
    [H1_BAD_VERSION] = {"the protocol version is malformed", 400},
    [H1_VERSION_UNSUPPORTED] = {"the protocol version is not HTTP/1", 505},
    [H1_HTTP09] = {"the request has no protocol version, or is HTTP/0.9", 400},
    [H1_TARGET_TOO_LONG] = {"the request target is too long", 414},
    [H1_HEAD_TOO_LARGE] = {"the head is too large", 431},
    [H1_TOO_MANY_FIELDS] = {"the head has too many fields", 431},
    [H1_BAD_FIELD_LINE] = {"a field line is malformed", 400},
    [H1_SPACE_BEFORE_COLON] = {"a space stands between a field name and its colon", 400},
    [H1_FOLDED_LINE] = {"a field line is folded", 400},
    [H1_BARE_CR] = {"a field contains a CR without LF", 400},
    [H1_CONTROL_IN_FIELD] = {"a field contains a control character", 400},
    [H1_BAD_HOST] = {"Host is missing, repeated or not valid", 400},
    [H1_BAD_STATUS_LINE] = {"the status line is malformed", 400},
    [H1_FRAMING_AMBIGUOUS] = {"the length of the body is ambiguous", 400},
    [H1_BAD_LENGTH] = {"Content-Length is not valid", 400},
    [H1_BAD_TRANSFER_ENCODING] = {"Transfer-Encoding is not valid", 400},
    [H1_UNKNOWN_TRANSFER_CODING] = {"the transfer coding is not supported", 501},
    [H1_BAD_CHUNK] = {"the chunked coding of the body is broken", 400},
    [H1_TRAILER_TOO_LARGE] = {"the trailer section is too large", 431},
};

const char *
h1_reason_text(enum h1_reason why)
{
    return why < H1_REASONS ? reasons[why].text : "unknown";
}

unsigned
h1_reason_status(enum h1_reason why)
{
    return why < H1_REASONS ? reasons[why].status : 400;
}
