/* test_h1_parse - the strict parser for heads, RFC 9112 sections 2 to 5. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "http/h1_parse.h"
#include "http/h1_write.h"

static const struct h1_limits limits = {.head_bytes = 65536, .target_bytes = 32768, .fields = 1000};
static struct arena arena;
static struct request_head request;
static struct response_head response;
static size_t used;
static enum h1_reason why;

static int
open_arena(void **state)
{
    arena_init(&arena, NULL, 0);
    return 0;
}

static int
close_arena(void **state)
{
    arena_free(&arena);
    return 0;
}

/* From an allocation of just the size, so that a sanitizer sees a read behind it. */
static struct span
exact(struct span s)
{
    static char *copy;

    free(copy);
    copy = malloc(s.n ? s.n : 1);
    memcpy(copy, s.at, s.n);
    return span_of(copy, s.n);
}

static enum h1_result
parse_request(struct span bytes)
{
    return h1_parse_request(exact(bytes), &limits, &arena, &request, &used, &why);
}

static enum h1_result
parse_response(struct span bytes)
{
    return h1_parse_response(exact(bytes), &limits, &arena, &response, &used, &why);
}

#define assert_span(is, want)                                                                      \
    do {                                                                                           \
        struct span got_ = (is);                                                                   \
        if (!span_eq(got_, span_str(want)))                                                        \
            fail_msg("\"%.*s\" is not \"%s\"", SPAN_ARG(got_), want);                              \
    } while (0)

#define assert_request_bad(text, reason)                                                           \
    do {                                                                                           \
        assert_int_equal(parse_request(SPAN(text)), H1_BAD);                                       \
        assert_int_equal(why, reason);                                                             \
    } while (0)

#define assert_response_bad(text, reason)                                                          \
    do {                                                                                           \
        assert_int_equal(parse_response(SPAN(text)), H1_BAD);                                      \
        assert_int_equal(why, reason);                                                             \
    } while (0)

#define GET "GET http://a/ HTTP/1.1\r\n"
#define HOST "Host: a\r\n"
#define OK "HTTP/1.1 200 OK\r\n"

/* ---- requests ---- */

static void
a_request_is_taken_apart(void **state)
{
    struct span text = SPAN("POST http://A.example:81/x?y HTTP/1.1\r\nHost: A.example:81\r\n"
                            "content-length:\t 5 \t\r\nX-Empty:\r\nx-o: caf\xe9\r\n\r\nhello");

    assert_int_equal(parse_request(text), H1_OK);
    assert_int_equal(used, text.n - 5);
    assert_int_equal(request.method, METHOD_POST);
    assert_int_equal(request.minor, 1);
    assert_span(request.target, "http://A.example:81/x?y");
    assert_span(request.uri.host, "a.example");
    assert_int_equal(request.fields.n, 4);
    assert_int_equal(request.fields.at[1].id, FIELD_CONTENT_LENGTH);
    assert_span(request.fields.at[1].name, "content-length");
    assert_span(request.fields.at[1].value, "5");
    assert_span(request.fields.at[2].value, "");
    assert_span(request.fields.at[3].value, "caf\xe9");
}

static void
every_cut_of_a_head_asks_for_more(void **state)
{
    struct span text = SPAN("\r\nGET http://a/x HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n");

    for (size_t n = 0; n < text.n; n++)
        assert_int_equal(parse_request(span_first(text, n)), H1_MORE);
    assert_int_equal(parse_request(text), H1_OK);
    text = SPAN("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n");
    for (size_t n = 0; n < text.n; n++)
        assert_int_equal(parse_response(span_first(text, n)), H1_MORE);
    assert_int_equal(parse_response(text), H1_OK);
}

/* RFC 9112 section 2.2 */
static void
two_empty_lines_in_front_are_skipped(void **state)
{
    assert_int_equal(parse_request(SPAN("\r\n\r\n" GET HOST "\r\n")), H1_OK);
    assert_int_equal(used, sizeof("\r\n\r\n" GET HOST "\r\n") - 1);
    assert_request_bad("\r\n\r\n\r\n" GET HOST "\r\n", H1_BAD_REQUEST_LINE);
    assert_int_equal(parse_request(SPAN("\r\n\r\n")), H1_MORE);
    assert_request_bad("\n" GET HOST "\r\n", H1_BAD_METHOD);
}

/* RFC 9112 section 3: one space each, nothing is mended. */
static void
a_malformed_request_line_is_refused_at_once(void **state)
{
    assert_request_bad("GET  http://a/ HTTP/1.1\r\n", H1_BAD_REQUEST_LINE);
    assert_request_bad("GET http://a/  HTTP/1.1\r\n", H1_BAD_VERSION);
    assert_request_bad("GET\thttp://a/\tHTTP/1.1\r\n", H1_BAD_REQUEST_LINE);
    assert_request_bad("GET http://a/\tHTTP/1.1\r\n", H1_BAD_REQUEST_LINE);
    assert_request_bad(" GET http://a/ HTTP/1.1\r\n", H1_BAD_REQUEST_LINE);
    assert_request_bad("GET http://a/ b HTTP/1.1\r\n", H1_BAD_VERSION);
    assert_request_bad("GE(T http://a/ HTTP/1.1\r\n", H1_BAD_METHOD);
    assert_request_bad("\x16\x03\x01", H1_BAD_METHOD);
    assert_request_bad("GET http://a/\0 HTTP/1.1\r\n", H1_BAD_TARGET);
    assert_request_bad("GET http://a/\rb HTTP/1.1\r\n", H1_BAD_TARGET);
    assert_request_bad("GET http://a/\x7f HTTP/1.1\r\n", H1_BAD_TARGET);
    assert_request_bad("GET http://a/ HTTP/1.1 \r\n", H1_BAD_VERSION);
    assert_request_bad("GET http://a/ HTTP/1.1\n", H1_BAD_REQUEST_LINE);
}

/* Encoded before anything else looks at it; the host stays strict. */
static void
a_raw_path_is_percent_encoded(void **state)
{
    struct span text = SPAN("GET http://a/\xe9\\?\xff HTTP/1.1\r\n" HOST "\r\n");

    for (size_t n = 0; n < text.n; n++)
        assert_int_equal(parse_request(span_first(text, n)), H1_MORE);
    assert_int_equal(parse_request(text), H1_OK);
    assert_span(request.uri.path, "/%E9%5C?%FF");
    assert_int_equal(parse_request(SPAN("GET /\xe9 HTTP/1.1\r\n" HOST "\r\n")), H1_OK);
    assert_span(request.uri.path, "/%E9");
    assert_request_bad("GET http://a\xe9/ HTTP/1.1\r\n" HOST "\r\n", H1_BAD_TARGET);
    assert_request_bad("GET http://b\\@a/ HTTP/1.1\r\n" HOST "\r\n", H1_BAD_TARGET);
    assert_request_bad(GET "Host: a\xe9\r\n\r\n", H1_BAD_HOST);
}

/* The limit is that of what goes on: a few raw bytes must not become three times as many. */
static void
a_target_is_measured_as_it_goes_on(void **state)
{
    struct h1_limits small = {.head_bytes = 100, .target_bytes = 20, .fields = 2};
    struct span head = SPAN("GET http://a/\xe9\xe9\xe9\xe9\xe9\xe9 HTTP/1.1\r\n" HOST "\r\n");

    assert_int_equal(h1_parse_request(head, &small, &arena, &request, &used, &why), H1_OK);
    assert_int_equal(request.uri.path.n, 19);
    head = SPAN("GET http://a/\xe9\xe9\xe9\xe9\xe9\xe9\xe9 HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(h1_parse_request(head, &small, &arena, &request, &used, &why), H1_BAD);
    assert_int_equal(why, H1_TARGET_TOO_LONG);
}

/* RFC 9112 section 2.3 */
static void
versions_other_than_1_are_refused(void **state)
{
    assert_request_bad("GET http://a/ HTTP/2.0\r\n", H1_VERSION_UNSUPPORTED);
    assert_request_bad("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", H1_VERSION_UNSUPPORTED);
    assert_int_equal(h1_reason_status(why), 505);
    assert_request_bad("GET http://a/ HTTP/0.9\r\n", H1_HTTP09);
    assert_request_bad("GET http://a/\r\n", H1_HTTP09);
    assert_request_bad("GET\r\n", H1_HTTP09);
    assert_request_bad("GET http://a/ http/1.1\r\n", H1_BAD_VERSION);
    assert_request_bad("GET http://a/ HTTP/1.10\r\n", H1_BAD_VERSION);
    assert_request_bad("GET http://a/ HTTP/1.1x\r\n", H1_BAD_VERSION);
    assert_request_bad("GET http://a/ HTTP/1,1\r\n", H1_BAD_VERSION);
    assert_request_bad("GET http://a/ HTTP/1.\r\n", H1_BAD_VERSION);
    assert_request_bad("GET http://a/ \r\n", H1_BAD_VERSION);
}

static void
a_higher_minor_version_is_ours(void **state)
{
    assert_int_equal(parse_request(SPAN("GET http://a/ HTTP/1.7\r\n" HOST "\r\n")), H1_OK);
    assert_int_equal(request.minor, 1);
    assert_int_equal(parse_request(SPAN("GET http://a/ HTTP/1.0\r\n\r\n")), H1_OK);
    assert_int_equal(request.minor, 0);
}

/* RFC 9110 section 9.1: methods are case-sensitive. */
static void
unknown_methods_are_kept_as_they_are(void **state)
{
    assert_int_equal(parse_request(SPAN("get http://a/ HTTP/1.1\r\n" HOST "\r\n")), H1_OK);
    assert_int_equal(request.method, METHOD_OTHER);
    assert_span(request.method_text, "get");
    assert_int_equal(parse_request(SPAN("M-SEARCH http://a/ HTTP/1.1\r\n" HOST "\r\n")), H1_OK);
    assert_span(request.method_text, "M-SEARCH");
}

/* RFC 9112 sections 5.1, 5.2 and 2.2; RFC 9110 section 5.5. */
static void
malformed_field_lines_are_refused(void **state)
{
    assert_request_bad(GET HOST "Foo : x\r\n\r\n", H1_SPACE_BEFORE_COLON);
    assert_request_bad(GET HOST "Foo\t: x\r\n\r\n", H1_SPACE_BEFORE_COLON);
    assert_request_bad(GET HOST "Foo: a\r\n b\r\n\r\n", H1_FOLDED_LINE);
    assert_request_bad(GET HOST "Foo:\r\n\tb\r\n\r\n", H1_FOLDED_LINE);
    assert_request_bad(GET " Foo: a\r\n" HOST "\r\n", H1_FOLDED_LINE);
    assert_request_bad(GET HOST ": x\r\n\r\n", H1_BAD_FIELD_LINE);
    assert_request_bad(GET HOST "Foo\r\n\r\n", H1_BAD_FIELD_LINE);
    assert_request_bad(GET HOST "Fo(o: x\r\n\r\n", H1_BAD_FIELD_LINE);
    assert_request_bad(GET HOST "Foo\x85: x\r\n\r\n", H1_BAD_FIELD_LINE);
    assert_request_bad(GET HOST "Foo: a\rb\r\n\r\n", H1_BARE_CR);
    assert_request_bad(GET HOST "Foo: a\r\r\n\r\n", H1_BARE_CR);
    assert_request_bad(GET HOST "Foo: a\0b\r\n\r\n", H1_CONTROL_IN_FIELD);
    assert_request_bad(GET HOST "Foo: a\x0b\r\n\r\n", H1_CONTROL_IN_FIELD);
    assert_request_bad(GET HOST "Foo: a long value with \x7f in it\r\n\r\n", H1_CONTROL_IN_FIELD);
    assert_request_bad(GET "Host: a\n\n", H1_BAD_FIELD_LINE);
    assert_request_bad(GET HOST "Foo: a\nBar: b\r\n\r\n", H1_BAD_FIELD_LINE);
    assert_int_equal(
        parse_request(SPAN(GET HOST "Foo:\ta\tb \xff\x80 longer than eight\t\r\n\r\n")), H1_OK);
    assert_span(request.fields.at[1].value, "a\tb \xff\x80 longer than eight");
}

/* A control character is seen at every place of the eight bytes that are looked at together. */
static void
no_control_character_hides_in_a_word(void **state)
{
    for (unsigned c = 0; c < 0x80; c++) {
        bool control = (c < 0x20 && c != '\t') || c == 0x7f;

        for (size_t at = 1; at < 18; at++) {
            char text[] = GET HOST "F: vaaaaaaaaaaaaaaaaaav\r\n\r\n";

            text[sizeof(GET HOST "F: ") - 1 + at] = (char)c;
            assert_int_equal(parse_request(SPAN(text)), control ? H1_BAD : H1_OK);
        }
    }
}

/* RFC 9112 section 3.2 */
static void
host_is_there_once_and_valid(void **state)
{
    assert_request_bad(GET "\r\n", H1_BAD_HOST);
    assert_request_bad("GET / HTTP/1.1\r\n\r\n", H1_BAD_HOST);
    assert_request_bad(GET HOST HOST "\r\n", H1_BAD_HOST);
    assert_request_bad(GET "Host: a b\r\n\r\n", H1_BAD_HOST);
    assert_request_bad(GET "Host: x@a\r\n\r\n", H1_BAD_HOST);
    assert_request_bad(GET "Host: a, b\r\n\r\n", H1_BAD_HOST);
    assert_request_bad(GET "Host: a/x\r\n\r\n", H1_BAD_HOST);
    assert_request_bad(GET "Host:\r\n\r\n", H1_BAD_HOST);
    assert_request_bad("GET http://x@a/ HTTP/1.1\r\nHost: x@a\r\n\r\n", H1_BAD_HOST);
    assert_request_bad("GET http://a/ HTTP/1.0\r\n" HOST HOST "\r\n", H1_BAD_HOST);
    assert_request_bad("CONNECT a:443 HTTP/1.1\r\n\r\n", H1_BAD_HOST);
    assert_request_bad("GET http://a/ HTTP/1.0\r\nHost: a b\r\n\r\n", H1_BAD_HOST);
}

/* RFC 9112 section 3.2.2 */
static void
an_absolute_url_wins_over_host(void **state)
{
    assert_int_equal(parse_request(SPAN(GET "Host: evil.invalid:99\r\n\r\n")), H1_OK);
    assert_span(request.uri.host, "a");
    assert_int_equal(request.uri.port, 80);
}

static void
an_origin_form_takes_its_host_from_the_field(void **state)
{
    assert_int_equal(parse_request(SPAN("GET /x HTTP/1.1\r\nHost: B:81\r\n\r\n")), H1_OK);
    assert_int_equal(request.uri.form, URI_ORIGIN);
    assert_span(request.uri.scheme, "http");
    assert_span(request.uri.host, "b");
    assert_int_equal(request.uri.port, 81);
    assert_span(request.uri.path, "/x");
    assert_int_equal(parse_request(SPAN("GET /x HTTP/1.0\r\n\r\n")), H1_OK);
    assert_int_equal(request.uri.host.n, 0);
}

static void
limits_hold_before_the_head_ends(void **state)
{
    static char text[200000];
    struct h1_limits small = {.head_bytes = 100, .target_bytes = 20, .fields = 2};
    struct span head;

    memset(text, 'a', sizeof text);
    memcpy(text, "GET http://", 11);
    assert_int_equal(parse_request(span_of(text, sizeof text)), H1_BAD);
    assert_int_equal(why, H1_TARGET_TOO_LONG);
    memcpy(text, GET "X: ", sizeof(GET "X: ") - 1);
    assert_int_equal(parse_request(span_of(text, 65536)), H1_BAD);
    assert_int_equal(why, H1_HEAD_TOO_LARGE);
    assert_int_equal(parse_request(span_of(text, 65535)), H1_MORE);

    head = SPAN(GET HOST "A: b\r\nC: d\r\n");
    assert_int_equal(h1_parse_request(head, &small, &arena, &request, &used, &why), H1_BAD);
    assert_int_equal(why, H1_TOO_MANY_FIELDS);
    head = SPAN(GET HOST "A: b\r\n\r\n");
    assert_int_equal(h1_parse_request(head, &small, &arena, &request, &used, &why), H1_OK);
    head = SPAN("GET http://a/45678901234567890 HTTP/1.1\r\n");
    assert_int_equal(h1_parse_request(head, &small, &arena, &request, &used, &why), H1_BAD);
    assert_int_equal(why, H1_TARGET_TOO_LONG);
    assert_int_equal(h1_reason_status(H1_TARGET_TOO_LONG), 414);
    assert_int_equal(h1_reason_status(H1_HEAD_TOO_LARGE), 431);
}

/* A body behind the head does not count, however large. */
static void
the_limit_is_for_the_head_alone(void **state)
{
    static char text[100000];

    memset(text, '\n', sizeof text);
    memcpy(text, GET HOST "\r\n", sizeof(GET HOST "\r\n") - 1);
    assert_int_equal(parse_request(span_of(text, sizeof text)), H1_OK);
    assert_int_equal(used, sizeof(GET HOST "\r\n") - 1);
}

static void
a_thousand_fields_are_read(void **state)
{
    struct buf b = {0};

    BUF_ADD(&b, GET HOST);
    for (int i = 1; i < 1000; i++)
        buf_addf(&b, "X-%d: %d\r\n", i, i);
    BUF_ADD(&b, "\r\n");
    assert_int_equal(parse_request(buf_span(&b)), H1_OK);
    assert_int_equal(request.fields.n, 1000);
    assert_span(request.fields.at[999].value, "999");
    buf_free(&b);
}

/* ---- responses ---- */

/* RFC 9112 section 4 */
static void
status_lines_are_read(void **state)
{
    static const struct {
        const char *text;
        unsigned status, minor;
        const char *reason;
    } good[] = {
        {"HTTP/1.1 200 OK\r\n\r\n", 200, 1, "OK"},
        {"HTTP/1.0 404 Not  here \xe9\t\r\n\r\n", 404, 0, "Not  here \xe9\t"},
        {"HTTP/1.1 200 \r\n\r\n", 200, 1, ""},
        {"HTTP/1.1 200\r\n\r\n", 200, 1, ""},
        {"HTTP/1.3 599 x\r\n\r\n", 599, 1, "x"},
        {"HTTP/1.1 600 y\r\n\r\n", 600, 1, "y"},
        {"HTTP/1.1 999 Request denied\r\n\r\n", 999, 1, "Request denied"},
        {"HTTP/1.1 100 Continue\r\n\r\n", 100, 1, "Continue"},
    };

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(parse_response(span_str(good[i].text)), H1_OK);
        assert_int_equal(response.status, good[i].status);
        assert_int_equal(response.minor, good[i].minor);
        assert_span(response.reason, good[i].reason);
        assert_int_equal(response.fields.n, 0);
    }
}

static void
what_is_no_status_line_is_refused_at_once(void **state)
{
    static const char *const wrong[] = {
        "h",
        "hello",
        "ICY 200 OK\r\n",
        "HTTP/2.0 200 OK\r\n",
        "HTTP/1.10 200 OK\r\n",
        "HTTP/1.1  200 OK\r\n",
        "HTTP/1.1 20 OK\r\n",
        "HTTP/1.1 2000 OK\r\n",
        "HTTP/1.1 abc OK\r\n",
        "HTTP/1.1 099 OK\r\n",
        "HTTP/1.1 000 OK\r\n",
        "HTTP/1.1 :00 OK\r\n",
        "HTTP/1.1 200\tOK\r\n",
        "HTTP/1.1 200OK\r\n",
        "HTTP/1.1 200 O\x01K\r\n",
        "HTTP/1.1 200 O\rK\r\n",
        "HTTP/1.1\r\n",
        "http/1.1 200 OK\r\n",
        "\r\nHTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\r\n",
        "HTTP/1.1 200 OK\r\r\n\r\n",
        "HTTP/1.1 20 OK\n",
        "HTTP/1.1 -20 OK\r\n",
        "HTTP/1.1\n\n",
        "\r\n",
        "\n",
        "\nHTTP/1.1 200 OK\n",
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (parse_response(span_str(wrong[i])) != H1_BAD)
            fail_msg("not refused: %s", wrong[i]);
        assert_int_equal(why, H1_BAD_STATUS_LINE);
    }
}

/* RFC 9112 section 5.1 */
static void
a_space_before_the_colon_is_dropped_in_responses(void **state)
{
    assert_int_equal(parse_response(SPAN(OK "Content-Length \t: 5\r\n\r\n")), H1_OK);
    assert_int_equal(response.fields.at[0].id, FIELD_CONTENT_LENGTH);
    assert_span(response.fields.at[0].name, "Content-Length");
    assert_span(response.fields.at[0].value, "5");
}

/* RFC 9112 section 5.2 */
static void
folds_become_spaces_in_responses(void **state)
{
    assert_int_equal(
        parse_response(SPAN(OK "A: a\r\n\t b \r\n \r\n c\r\nB:\r\n d\r\nC: e\r\n\r\n")), H1_OK);
    assert_int_equal(response.fields.n, 3);
    assert_span(response.fields.at[0].value, "a b c");
    assert_span(response.fields.at[1].value, "d");
    assert_span(response.fields.at[2].value, "e");
}

static void
lines_that_are_no_fields_are_dropped_from_responses(void **state)
{
    assert_int_equal(
        parse_response(SPAN(OK " X: lead\r\nA: 1\r\ndigest in image header\r\n: x\r\n"
                               "Fo(o: x\r\n folded to it\r\nF\x85: 1\r\nB: 2\r\n\r\n")),
        H1_OK);
    assert_int_equal(response.fields.n, 2);
    assert_span(response.fields.at[0].name, "A");
    assert_span(response.fields.at[0].value, "1");
    assert_span(response.fields.at[1].name, "B");
}

static void
nul_and_bare_cr_spoil_a_response_too(void **state)
{
    assert_response_bad(OK "A: a\0b\r\n\r\n", H1_CONTROL_IN_FIELD);
    assert_response_bad(OK "A: a\rb\r\n\r\n", H1_BARE_CR);
    assert_response_bad(OK "no field\0\r\n\r\n", H1_CONTROL_IN_FIELD);
    assert_response_bad(OK "A: a\r\n b\rc\r\n\r\n", H1_BARE_CR);
    assert_int_equal(parse_response(SPAN(OK "A: a\x01z\r\n\r\n")), H1_OK);
    assert_span(response.fields.at[0].value, "a\x01z");
}

/* However it arrives, a head of two fields is OK at its last byte and no earlier. */
static void
assert_head_of_two(const char *head, bool bare_lf)
{
    struct span body = SPAN("\n\r\n\nC: 3\n\n");
    size_t n = strlen(head);
    char text[200];

    for (size_t i = 0; i < n; i++) {
        if (parse_response(span_of(head, i)) != H1_MORE)
            fail_msg("not asked for more: %.*s", (int)i, head);
    }
    memcpy(text, head, n);
    memcpy(text + n, body.at, body.n);
    for (size_t i = n; i <= n + body.n; i++) {
        assert_int_equal(parse_response(span_of(text, i)), H1_OK);
        assert_int_equal(used, n);
    }
    assert_int_equal(response.bare_lf, bare_lf);
    assert_span(response.reason, "OK");
    assert_int_equal(response.fields.n, 2);
    assert_span(response.fields.at[0].value, "1");
    assert_span(response.fields.at[1].name, "B");
    assert_span(response.fields.at[1].value, "2");
}

/* RFC 9112 section 2.2: as devices and CGI programs send it, and mixed as by those and the server
 * in front of them. */
static void
a_response_line_may_end_in_lf_alone(void **state)
{
    static const char *const ends[] = {"\r\n", "\n"};
    char head[100];

    for (unsigned mix = 0; mix < 16; mix++) {
        snprintf(head, sizeof head, "HTTP/1.1 200 OK%sA: 1%sB: 2%s%s", ends[mix & 1],
                 ends[mix >> 1 & 1], ends[mix >> 2 & 1], ends[mix >> 3]);
        assert_head_of_two(head, mix != 0);
    }
    assert_head_of_two("HTTP/1.1 200 OK\nA:1 \t\nno field\n: x\nB : 2\n\n", true);
    assert_head_of_two("HTTP/1.1 200 OK\nA:\n 1\nB:\r\n\t2\n \n\n", true);
    assert_head_of_two("HTTP/1.1 200 OK\n X: lead\nA: 1\nB: 2\n\n", true);
    assert_int_equal(parse_response(SPAN("HTTP/1.1 200\n\n")), H1_OK);
    assert_int_equal(used, 14);
    assert_int_equal(response.fields.n, 0);
    assert_int_equal(parse_response(SPAN("HTTP/1.1 200 \n\r\n")), H1_OK);
    assert_int_equal(used, 16);
}

/* A CR belongs to a line end only right in front of the LF, and only one of them. */
static void
a_cr_elsewhere_ends_no_line(void **state)
{
    assert_int_equal(parse_response(SPAN("HTTP/1.1 200 OK\nA: 1\n\r")), H1_MORE);
    assert_int_equal(parse_response(SPAN("HTTP/1.1 200 OK\nA: 1\n\r\r\n")), H1_MORE);
    assert_response_bad("HTTP/1.1 200 OK\nA: 1\n\r\r\n\n", H1_BARE_CR);
    assert_response_bad("HTTP/1.1 200 OK\nA: 1\r\r\n\n", H1_BARE_CR);
    assert_response_bad("HTTP/1.1 200 OK\nA: 1\n\rB: 2\n\n", H1_BARE_CR);
    assert_response_bad("HTTP/1.1 200 OK\nA: 1\rB: 2\n\n", H1_BARE_CR);
    assert_response_bad("HTTP/1.1 200 OK\nA: 1\r \n\n", H1_BARE_CR);
    assert_response_bad("HTTP/1.1 200 OK\nA: 1\n \r2\n\n", H1_BARE_CR);
    assert_response_bad("HTTP/1.1 200 OK\nA: 1\0\n\n", H1_CONTROL_IN_FIELD);
}

static void
limits_hold_for_lines_that_end_in_lf(void **state)
{
    struct h1_limits small = {.head_bytes = 27, .fields = 2};
    struct span head = SPAN("HTTP/1.1 200 OK\nA: 1\nB: 2\n\n");

    for (int i = 0; i < 2; i++, small.head_bytes--) {
        assert_int_equal(h1_parse_response(head, &small, &arena, &response, &used, &why),
                         head.n > small.head_bytes ? H1_BAD : H1_OK);
    }
    assert_int_equal(why, H1_HEAD_TOO_LARGE);
    small = (struct h1_limits){.head_bytes = 65536, .fields = 1};
    assert_int_equal(h1_parse_response(head, &small, &arena, &response, &used, &why), H1_BAD);
    assert_int_equal(why, H1_TOO_MANY_FIELDS);
}

/* Tens of thousands of folds must cost what their bytes cost, in time and memory. */
static void
many_folds_are_joined_once(void **state)
{
    struct h1_limits wide = {.head_bytes = 65536, .fields = 65536};
    struct buf b = {0};

    BUF_ADD(&b, OK "A: a\r\n");
    while (b.n < 65000)
        BUF_ADD(&b, " b\r\n");
    BUF_ADD(&b, "\r\n");
    assert_int_equal(h1_parse_response(buf_span(&b), &wide, &arena, &response, &used, &why), H1_OK);
    assert_int_equal(response.fields.n, 1);
    assert_true(response.fields.at[0].value.n > 30000 && response.fields.at[0].value.n < 65536);
    buf_free(&b);
}

/* ---- writing ---- */

static void
what_is_written_reads_back(void **state)
{
    struct buf b = {0};

    assert_int_equal(parse_request(SPAN("GET /x HTTP/1.0\r\nA:1\r\nB:  \r\nc :\r\n\r\n")), H1_BAD);
    assert_int_equal(parse_request(SPAN("GET /x HTTP/1.0\r\nA:1\r\nB:  \r\n\r\n")), H1_OK);
    h1_write_request_line(&b, request.method_text, request.uri.path);
    h1_write_field(&b, SPAN("Host"), SPAN("h"));
    h1_write_fields(&b, &request.fields);
    BUF_ADD(&b, "\r\n");
    assert_span(buf_span(&b), "GET /x HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: \r\n\r\n");
    assert_int_equal(parse_request(buf_span(&b)), H1_OK);
    buf_free(&b);
    h1_write_status_line(&b, 404, SPAN("Not Found"));
    h1_write_status_line(&b, 200, SPAN(""));
    assert_span(buf_span(&b), "HTTP/1.1 404 Not Found\r\nHTTP/1.1 200 \r\n");
    buf_free(&b);
}

static void
every_reason_has_its_words(void **state)
{
    for (unsigned i = 0; i < H1_REASONS; i++) {
        assert_non_null(h1_reason_text((enum h1_reason)i));
        assert_true(h1_reason_status((enum h1_reason)i) >= 200);
    }
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, open_arena, close_arena)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(a_request_is_taken_apart),
        CASE(every_cut_of_a_head_asks_for_more),
        CASE(two_empty_lines_in_front_are_skipped),
        CASE(a_malformed_request_line_is_refused_at_once),
        CASE(a_raw_path_is_percent_encoded),
        CASE(a_target_is_measured_as_it_goes_on),
        CASE(versions_other_than_1_are_refused),
        CASE(a_higher_minor_version_is_ours),
        CASE(unknown_methods_are_kept_as_they_are),
        CASE(malformed_field_lines_are_refused),
        CASE(no_control_character_hides_in_a_word),
        CASE(host_is_there_once_and_valid),
        CASE(an_absolute_url_wins_over_host),
        CASE(an_origin_form_takes_its_host_from_the_field),
        CASE(limits_hold_before_the_head_ends),
        CASE(the_limit_is_for_the_head_alone),
        CASE(a_thousand_fields_are_read),
        CASE(status_lines_are_read),
        CASE(what_is_no_status_line_is_refused_at_once),
        CASE(a_space_before_the_colon_is_dropped_in_responses),
        CASE(folds_become_spaces_in_responses),
        CASE(lines_that_are_no_fields_are_dropped_from_responses),
        CASE(nul_and_bare_cr_spoil_a_response_too),
        CASE(a_response_line_may_end_in_lf_alone),
        CASE(a_cr_elsewhere_ends_no_line),
        CASE(limits_hold_for_lines_that_end_in_lf),
        CASE(many_folds_are_joined_once),
        CASE(what_is_written_reads_back),
        CASE(every_reason_has_its_words),
    };

    return cmocka_run_group_tests_name("h1_parse", tests, NULL, NULL);
}
