/* fuzz_trace - a log's line: what is borrowed lies in the line, and no figure is out of range;
 * what it asks for can be asked for, and names no address. */
#include "base/check.h"
#include "http/uri.h"
#include "tools/trace/trace_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_inside(struct span text, struct span line)
{
    if (text.n > 0)
        CHECK(text.at >= line.at && text.at + text.n <= line.at + line.n);
}

static void
check_texts(const struct trace_line *t, struct span line)
{
    check_inside(t->client, line);
    check_inside(t->word, line);
    check_inside(t->url, line);
    check_inside(t->user, line);
    check_inside(t->hierarchy, line);
    check_inside(t->peer, line);
    check_inside(t->type, line);
    if (t->format == TRACE_NATIVE || t->format == TRACE_COMMON)
        check_inside(t->method, line);
}

static void
check_read(const struct trace_line *t)
{
    CHECK(t->url.n > 0 && t->method.n > 0);
    CHECK(t->end_us >= -1 && t->duration_us >= -1 && t->bytes >= -1);
    CHECK(t->status == 0 || (t->status >= 100 && t->status <= 999));
    CHECK(trace_line_arrival_us(t) >= -1 && trace_line_arrival_us(t) <= t->end_us);
    trace_line_is_cacheable(t);
    trace_line_is_hit(t);
}

/* The strict parser of requests takes it as we mean it. */
static void
check_target(const struct trace_line *t)
{
    struct buf room = {0}, text = {0};
    struct trace_target target;
    struct arena a;
    struct uri uri;
    const char *why;

    arena_init(&a, NULL, 0);
    if (trace_target(t, SPAN("www.example"), &room, &target)) {
        buf_addf(&text, "http://%.*s%.*s", SPAN_ARG(target.host), SPAN_ARG(target.path));
        CHECK(uri_parse_target(buf_span(&text), METHOD_GET, &a, &uri, &why));
        CHECK(span_eq(uri.host, target.host) && uri.literal.sa.sa_family == AF_UNSPEC);
        CHECK(target.tunnel ? target.path.n == 0 : span_eq(uri.path, target.path));
    }
    arena_free(&a);
    buf_free(&text);
    buf_free(&room);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span rest = span_of(data, size);

    while (rest.n > 0) {
        size_t n = span_index(rest, '\n');
        struct span line = span_first(rest, n);
        struct trace_line t;
        enum trace_verdict v = trace_line_parse(line, &t);

        CHECK(v < TRACE_VERDICTS);
        check_texts(&t, line);
        if (v == TRACE_OK) {
            check_read(&t);
            check_target(&t);
        }
        rest = span_skip(rest, n + 1);
    }
    return 0;
}
