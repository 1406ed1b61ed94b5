/* tests/fuzz/fuzz_logformat.c - a logformat of any text, writing a record of any bytes: it is
 * refused with a message, or each record becomes one line. The first line of the input is the
 * format, the rest is what the client sent. */
#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"
#include "proxy/log/access_log.h"

static void
must(bool claim)
{
    if (!claim)
        abort();
}

/* Field values hold no line ends, which the parser of heads sees to. */
static struct log_record
record_of(struct span sent, struct field *line, struct fields *fields)
{
    struct log_record r = {
        .end_wall_ms = 1767571201007,
        .elapsed_us = (int64_t)sent.n * 997,
        .result = "TCP_MISS",
        .status = 200,
        .method = SPAN("GET"),
        .url = sent,
        .path = sent,
        .content_type = sent,
        .server_host = sent,
        .hierarchy = "HIER_DIRECT",
        .dns_us = -1,
        .server_us = -1,
        .request_fields = fields,
        .response_fields = fields,
    };

    *line = (struct field){SPAN("User-Agent"), sent, FIELD_USER_AGENT};
    *fields = (struct fields){line, 1, 1};
    addr_parse(SPAN("192.0.2.7"), &r.client);
    return r;
}

static void
write_with(const struct conf *c, const char *name, struct span sent)
{
    struct buf errors = {0}, out = {0};
    struct log_format *f;
    struct field line;
    struct fields fields;
    struct log_record r = record_of(sent, &line, &fields);
    unsigned n = log_format_new(c, name, &errors, &f);

    must((n == 0) == (errors.n == 0));
    if (n == 0) {
        log_format_write(f, &r, &out);
        must(out.n > 0 && span_index(buf_span(&out), '\n') == out.n - 1);
    }
    log_format_free(&f);
    buf_free(&out);
    buf_free(&errors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span all = span_of(data, size);
    size_t n = span_index(all, '\n');
    char *text = mem_zalloc(n + 1);
    struct conf_logformat lf = {"mine", text, {"fuzz.conf", 1}};
    struct conf c = {.logformats = &lf, .n_logformats = 1, .strip_query_terms = size & 1};

    log_show(LOG_ERROR);
    memcpy(text, size ? (const char *)data : "", n);
    write_with(&c, "mine", span_skip(all, n + 1));
    write_with(&c, "squid", span_skip(all, n + 1));
    write_with(&c, "combined", span_skip(all, n + 1));
    write_with(&c, "json", span_skip(all, n + 1));
    mem_free(text);
    return 0;
}
