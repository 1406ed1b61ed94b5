/* log_json.c - the built-in json format: one object a line, keys as the Elastic Common Schema has
 * them.
 *
 * Keys are flat and dotted, which every shipper expands; what there is nothing to say about is left
 * out instead of being written as "-" or null. event.duration is in nanoseconds, as the schema
 * asks. */
#include <stdio.h>
#include <time.h>

#include "proxy/log/log_op.h"

static void
add_key(struct buf *out, const char *key)
{
    if (out->at[out->n - 1] != '{')
        buf_add_char(out, ',');
    buf_add_char(out, '"');
    buf_add(out, span_str(key));
    BUF_ADD(out, "\":");
}

static void
add_text(struct buf *out, const char *key, struct span value)
{
    if (value.n == 0)
        return;
    add_key(out, key);
    buf_add_char(out, '"');
    log_quote_add(out, QUOTE_JSON, value);
    buf_add_char(out, '"');
}

static void
add_number(struct buf *out, const char *key, uint64_t value)
{
    add_key(out, key);
    buf_add_uint(out, value);
}

static void
add_address(struct buf *out, const char *key, const struct addr *a)
{
    char text[ADDR_TEXT_MAX];

    if (a->sa.sa_family != AF_UNSPEC)
        add_text(out, key, span_of(text, addr_format(a, text)));
}

static void
add_time(struct buf *out, int64_t wall_ms)
{
    time_t at = (time_t)(wall_ms / 1000);
    char text[80];
    struct tm t = {0};
    size_t n;

    gmtime_r(&at, &t);
    n = strftime(text, sizeof text - 8, "%Y-%m-%dT%H:%M:%S", &t);
    n += (size_t)snprintf(text + n, sizeof text - n, ".%03dZ", (int)(wall_ms % 1000));
    add_text(out, "@timestamp", span_of(text, n));
}

static void
add_field(struct buf *out, const char *key, const struct fields *fields, enum field_id id)
{
    const struct field *f = fields ? fields_find(fields, id) : NULL;

    if (f)
        add_text(out, key, f->value);
}

static void
add_http(const struct log_format *f, const struct log_record *r, struct buf *out)
{
    char version[] = {'1', '.', (char)('0' + r->minor % 10)};

    add_text(out, "url.full", log_url_logged(f, r->url));
    add_text(out, "http.request.method", r->method);
    add_number(out, "http.request.bytes", r->bytes_in);
    add_field(out, "http.request.referrer", r->request_fields, FIELD_REFERER);
    add_field(out, "user_agent.original", r->request_fields, FIELD_USER_AGENT);
    add_text(out, "http.version", span_of(version, sizeof version));
    if (r->status)
        add_number(out, "http.response.status_code", r->status);
    add_number(out, "http.response.bytes", r->bytes_out);
    add_number(out, "http.response.body.bytes", r->body_bytes_out);
    add_text(out, "http.response.mime_type", log_media_type(r->content_type));
}

void
log_json_write(const struct log_format *f, const struct log_record *r, struct buf *out)
{
    buf_add_char(out, '{');
    add_time(out, r->end_wall_ms > 0 ? r->end_wall_ms : 0);
    add_number(out, "event.duration", r->elapsed_us > 0 ? (uint64_t)r->elapsed_us * 1000 : 0);
    add_address(out, "source.ip", &r->client);
    if (r->client.sa.sa_family != AF_UNSPEC)
        add_number(out, "source.port", addr_port(&r->client));
    add_http(f, r, out);
    add_address(out, "server.ip", &r->server);
    add_text(out, "cuttle.result", r->result ? span_str(r->result) : SPAN("NONE"));
    add_text(out, "cuttle.hierarchy", r->hierarchy ? span_str(r->hierarchy) : SPAN("HIER_NONE"));
    add_text(out, "error.code", span_str(r->error_page));
    add_text(out, "error.message", span_str(r->error_detail));
    buf_add_char(out, '}');
}
