/* log_write.c - one record to one line.
 *
 * A value is a number, a text of ours (clean by construction) or bytes from outside, which are
 * encoded straight into the line; width is applied to what then stands there. Nothing is formatted
 * through printf: this runs once per request, and a stock line has to cost a fraction of a
 * microsecond. Empty values are "-", without padding, as Squid writes them. */
#include <stdio.h>
#include <time.h>

#include "base/check.h"
#include "proxy/log/log_op.h"

enum { ROOM_BYTES = 256, LINE_LIKELY_BYTES = 512 };

enum value_kind { VALUE_NONE, VALUE_NUMBER, VALUE_OURS, VALUE_OUTSIDE, VALUE_FIELDS };

struct value {
    enum value_kind kind;
    uint64_t number;
    struct span text;
    const struct fields *fields;
    char room[ROOM_BYTES];
};

static void
value_number(struct value *v, uint64_t n)
{
    v->kind = VALUE_NUMBER;
    v->number = n;
}

static void
value_ours(struct value *v, struct span s)
{
    v->kind = s.n ? VALUE_OURS : VALUE_NONE;
    v->text = s;
}

static void
value_outside(struct value *v, struct span s)
{
    v->kind = s.n ? VALUE_OUTSIDE : VALUE_NONE;
    v->text = s;
}

static void
value_ms(struct value *v, int64_t us)
{
    if (us >= 0)
        value_number(v, (uint64_t)us / 1000);
}

/* By hand: libc formats a dotted quad with printf, which would be a third of the whole line. */
static size_t
format_ipv4(const struct addr *a, char *out)
{
    const unsigned char *octets = (const unsigned char *)&a->v4.sin_addr;
    size_t n = 0;

    for (int i = 0; i < 4; i++) {
        unsigned v = octets[i];

        if (v >= 100)
            out[n++] = (char)('0' + v / 100);
        if (v >= 10)
            out[n++] = (char)('0' + v / 10 % 10);
        out[n++] = (char)('0' + v % 10);
        out[n++] = '.';
    }
    return n - 1;
}

static void
value_address(struct value *v, const struct addr *a)
{
    if (a->sa.sa_family == AF_INET)
        value_ours(v, span_of(v->room, format_ipv4(a, v->room)));
    else if (a->sa.sa_family != AF_UNSPEC)
        value_ours(v, span_of(v->room, addr_format(a, v->room)));
}

static void
value_port(struct value *v, const struct addr *a)
{
    if (a->sa.sa_family != AF_UNSPEC)
        value_number(v, addr_port(a));
}

/* What a local time costs is asked of libc once a second and thread: localtime_r takes a lock. */
static struct span
default_time(int64_t wall_s, bool local)
{
    static _Thread_local struct {
        int64_t wall_s;
        size_t n;
        char text[64];
    } known[2] = {{.wall_s = INT64_MIN}, {.wall_s = INT64_MIN}};
    struct tm t = {0};
    time_t at = (time_t)wall_s;

    if (known[local].wall_s != wall_s) {
        if (local)
            localtime_r(&at, &t);
        else
            gmtime_r(&at, &t);
        known[local].n =
            strftime(known[local].text, sizeof known[local].text, "%d/%b/%Y:%H:%M:%S %z", &t);
        known[local].wall_s = wall_s;
    }
    return span_of(known[local].text, known[local].n);
}

static void
value_time(struct value *v, const struct log_op *op, int64_t wall_s, bool local)
{
    char format[ROOM_BYTES];
    struct tm t = {0};
    time_t at = (time_t)wall_s;

    if (op->text.n == 0) {
        value_ours(v, default_time(wall_s, local));
        return;
    }
    if (local)
        localtime_r(&at, &t);
    else
        gmtime_r(&at, &t);
    snprintf(format, sizeof format, "%.*s", SPAN_ARG(op->text));
    value_outside(v, span_of(v->room, strftime(v->room, sizeof v->room, format, &t)));
}

/* %tu: milliseconds, or as many digits as .most says. */
static uint64_t
part_of_second(const struct log_op *op, int64_t wall_ms)
{
    uint64_t part = (uint64_t)(wall_ms % 1000) * 1000, divisor = 1000;

    if (op->most) {
        divisor = 1000000;
        for (unsigned i = 0; i < op->most && divisor > 1; i++)
            divisor /= 10;
    }
    return part / divisor;
}

static void
value_start(struct value *v, const struct log_record *r)
{
    int64_t ms = r->end_wall_ms - r->elapsed_us / 1000;
    int n;

    if (ms < 0)
        ms = 0;
    n = snprintf(v->room, sizeof v->room, "%lld.%03d", (long long)(ms / 1000), (int)(ms % 1000));
    value_ours(v, span_of(v->room, (size_t)n));
}

struct url_parts {
    struct span scheme, host, port;
};

/* Of a canonical URL or "host:port"; anything else gives empty parts. */
static struct url_parts
url_split(struct span url)
{
    struct url_parts p = {SPAN_NONE, SPAN_NONE, SPAN_NONE};
    size_t colon = span_index(url, ':');
    struct span rest = url, authority;

    if (span_starts(span_skip(url, colon), SPAN("://"))) {
        p.scheme = span_first(url, colon);
        rest = span_skip(url, colon + 3);
    }
    authority = span_first(rest, span_index(rest, '/'));
    authority = span_first(authority, span_index(authority, '?'));
    if (authority.n && authority.at[0] == '[') {
        size_t end = span_index(authority, ']');

        p.host = span_first(span_skip(authority, 1), end ? end - 1 : 0);
        p.port = span_skip(authority, end + 2);
    } else {
        p.host = span_first(authority, span_index(authority, ':'));
        p.port = span_skip(authority, p.host.n + 1);
    }
    return p;
}

static struct span
url_port(const struct url_parts *p)
{
    if (p->port.n)
        return p->port;
    if (span_eq(p->scheme, SPAN("http")))
        return SPAN("80");
    if (span_eq(p->scheme, SPAN("https")))
        return SPAN("443");
    return span_eq(p->scheme, SPAN("ftp")) ? SPAN("21") : SPAN_NONE;
}

static void
value_of_address(struct value *v, const struct log_op *op, const struct log_record *r)
{
    switch (op->code) {
    case LOG_CLIENT_IP:
        value_address(v, &r->client);
        break;
    case LOG_CLIENT_PORT:
        value_port(v, &r->client);
        break;
    case LOG_SERVER_IP:
        value_address(v, &r->server);
        break;
    case LOG_SERVER_PORT:
        value_port(v, &r->server);
        break;
    case LOG_SERVER_NAME:
        value_outside(v, r->server_host);
        break;
    case LOG_LOCAL_IP:
        value_address(v, &r->local);
        break;
    default:
        value_port(v, &r->local);
    }
}

static void
value_of_time(struct value *v, const struct log_op *op, const struct log_record *r)
{
    int64_t wall_ms = r->end_wall_ms > 0 ? r->end_wall_ms : 0;

    switch (op->code) {
    case LOG_TIME_S:
        value_number(v, (uint64_t)wall_ms / 1000);
        break;
    case LOG_TIME_PART:
        value_number(v, part_of_second(op, wall_ms));
        break;
    case LOG_TIME_START:
        value_start(v, r);
        break;
    case LOG_TIME_LOCAL:
        value_time(v, op, wall_ms / 1000, true);
        break;
    case LOG_TIME_GMT:
        value_time(v, op, wall_ms / 1000, false);
        break;
    case LOG_DNS_MS:
        value_ms(v, r->dns_us);
        break;
    case LOG_SERVER_MS:
        value_ms(v, r->server_us);
        break;
    default:
        value_ms(v, r->elapsed_us > 0 ? r->elapsed_us : 0);
    }
}

static void
value_of_url(struct value *v, const struct log_op *op, const struct log_record *r)
{
    struct url_parts p = url_split(r->url);

    if (op->code == LOG_SCHEME)
        value_outside(v, p.scheme);
    else if (op->code == LOG_HOST)
        value_outside(v, p.host);
    else
        value_outside(v, url_port(&p));
}

static void
value_of_request(struct value *v, const struct log_op *op, const struct log_format *f,
                 const struct log_record *r)
{
    switch (op->code) {
    case LOG_METHOD:
        value_outside(v, r->method);
        break;
    case LOG_URL_LOGGED:
        value_outside(v, log_url_logged(f, r->url));
        break;
    case LOG_URL:
        value_outside(v, r->url);
        break;
    case LOG_PATH:
        value_outside(v, r->path);
        break;
    case LOG_VERSION:
        v->room[0] = '1', v->room[1] = '.', v->room[2] = (char)('0' + r->minor % 10);
        value_ours(v, span_of(v->room, 3));
        break;
    default:
        value_of_url(v, op, r);
    }
}

static void
value_of_result(struct value *v, const struct log_op *op, const struct log_record *r)
{
    switch (op->code) {
    case LOG_STATUS:
        value_number(v, r->status);
        break;
    case LOG_SERVER_STATUS:
        if (r->server_status)
            value_number(v, r->server_status);
        break;
    case LOG_BYTES_BOTH:
        value_number(v, r->bytes_in + r->bytes_out);
        break;
    case LOG_BYTES_OUT:
        value_number(v, r->bytes_out);
        break;
    case LOG_BYTES_IN:
        value_number(v, r->bytes_in);
        break;
    case LOG_HEAD_BYTES_OUT:
        value_number(v, r->bytes_out > r->body_bytes_out ? r->bytes_out - r->body_bytes_out : 0);
        break;
    case LOG_RESULT:
        value_ours(v, r->result ? span_str(r->result) : SPAN("NONE"));
        break;
    case LOG_HIERARCHY:
        value_ours(v, r->hierarchy ? span_str(r->hierarchy) : SPAN("HIER_NONE"));
        break;
    default:
        value_outside(v, log_media_type(r->content_type));
    }
}

static void
value_of_fields(struct value *v, const struct fields *fields)
{
    if (fields == NULL || fields->n == 0)
        return;
    v->kind = VALUE_FIELDS;
    v->fields = fields;
}

static void
value_of_rest(struct value *v, const struct log_op *op, const struct log_record *r)
{
    switch (op->code) {
    case LOG_REQUEST_FIELDS:
        value_of_fields(v, r->request_fields);
        break;
    case LOG_RESPONSE_FIELDS:
        value_of_fields(v, r->response_fields);
        break;
    case LOG_ERROR_PAGE:
        value_ours(v, span_str(r->error_page));
        break;
    case LOG_ERROR_DETAIL:
        value_outside(v, span_str(r->error_detail));
        break;
    case LOG_SEQUENCE:
        value_number(v, r->sequence);
        break;
    default:
        break; /* NOBODY, MISSING: "-" */
    }
}

static void
number_add(struct buf *out, const struct log_op *op, uint64_t n)
{
    char digits[20];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + n % 10);
    while ((n /= 10) != 0);
    for (size_t length = sizeof digits - at; op->zero && length < op->width; length++)
        buf_add_char(out, '0');
    buf_add(out, span_of(digits + at, sizeof digits - at));
}

static bool
is_wanted(const struct field *field, const struct log_op *op)
{
    return op->field != FIELD_OTHER ? field->id == op->field : span_eq_ci(field->name, op->text);
}

/* One name: its lines joined (RFC 9110 section 5.3). No name: the whole section as it came. */
static void
fields_write(struct buf *out, const struct log_op *op, const struct fields *fields)
{
    bool first = true;

    for (unsigned i = 0; i < fields->n; i++) {
        const struct field *field = &fields->at[i];

        if (op->text.n == 0) {
            log_quote_add(out, op->quote, field->name);
            log_quote_add(out, op->quote, SPAN(": "));
            log_quote_add(out, op->quote, field->value);
            log_quote_add(out, op->quote, SPAN("\r\n"));
        } else if (is_wanted(field, op)) {
            if (!first)
                log_quote_add(out, op->quote, SPAN(", "));
            log_quote_add(out, op->quote, field->value);
            first = false;
        }
    }
}

static void
pad(struct buf *out, size_t start, const struct log_op *op)
{
    size_t n = out->n - start, missing;

    if (n >= op->width)
        return;
    missing = op->width - n;
    buf_reserve(out, missing);
    if (!op->left)
        memmove(out->at + start + missing, out->at + start, n);
    memset(out->at + (op->left ? out->n : start), ' ', missing);
    out->n += missing;
}

static void
value_write(struct buf *out, const struct log_op *op, const struct value *v)
{
    size_t start = out->n;

    switch (v->kind) {
    case VALUE_NONE:
        break;
    case VALUE_NUMBER:
        number_add(out, op, v->number);
        break;
    case VALUE_OURS:
        buf_add(out, v->text);
        break;
    case VALUE_OUTSIDE:
        log_quote_add(out, op->quote, v->text);
        break;
    case VALUE_FIELDS:
        fields_write(out, op, v->fields);
        break;
    }
    if (out->n == start) {
        buf_add_char(out, '-');
        return;
    }
    if (op->most && v->kind != VALUE_NUMBER && out->n - start > op->most)
        out->n = start + op->most;
    pad(out, start, op);
}

static void
op_write(const struct log_format *f, const struct log_op *op, const struct log_record *r,
         struct buf *out)
{
    struct value v;

    if (op->code == LOG_LITERAL) {
        buf_add(out, op->text);
        return;
    }
    v.kind = VALUE_NONE;
    if (op->code <= LOG_LOCAL_PORT)
        value_of_address(&v, op, r);
    else if (op->code <= LOG_SERVER_MS)
        value_of_time(&v, op, r);
    else if (op->code <= LOG_PORT)
        value_of_request(&v, op, f, r);
    else if (op->code <= LOG_MEDIA_TYPE && op->code != LOG_NOBODY)
        value_of_result(&v, op, r);
    else
        value_of_rest(&v, op, r);
    value_write(out, op, &v);
}

void
log_format_write(const struct log_format *f, const struct log_record *r, struct buf *out)
{
    buf_reserve(out, LINE_LIKELY_BYTES);
    if (f->json)
        log_json_write(f, r, out);
    for (unsigned i = 0; i < f->n; i++)
        op_write(f, &f->ops[i], r, out);
    buf_add_char(out, '\n');
}
