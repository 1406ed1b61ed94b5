/* test_trace - lines of access logs, one oddity each, and files of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/check.h"
#include "tools/trace/trace_target.h"

#define T0_US INT64_C(1500000000000000) /* 2017-07-14 02:40:00 UTC */

#define assert_span(s, text) assert_true(span_eq((s), SPAN(text)))

static struct trace_line
read_line(const char *text)
{
    struct trace_line t;

    assert_int_equal(trace_line_parse(span_str(text), &t), TRACE_OK);
    return t;
}

static void
assert_skipped(const char *text, enum trace_verdict wanted)
{
    struct trace_line t;

    assert_string_equal(trace_verdict_text(trace_line_parse(span_str(text), &t)),
                        trace_verdict_text(wanted));
}

/* ---- Squid's own ---- */

static void
a_native_line_is_read(void **state)
{
    struct trace_line t = read_line("1500000000.250    100 10.0.0.1 TCP_MISS/200 7890 GET "
                                    "http://a.example/b ann HIER_DIRECT/192.0.2.1 text/html");

    assert_int_equal(t.format, TRACE_NATIVE);
    assert_true(t.end_us == T0_US + 250000 && t.duration_us == 100000 && t.bytes == 7890);
    assert_true(trace_line_arrival_us(&t) == T0_US + 150000);
    assert_int_equal(t.status, 200);
    assert_span(t.client, "10.0.0.1");
    assert_span(t.word, "TCP_MISS");
    assert_span(t.method, "GET");
    assert_span(t.url, "http://a.example/b");
    assert_span(t.user, "ann");
    assert_span(t.hierarchy, "HIER_DIRECT");
    assert_span(t.peer, "192.0.2.1");
    assert_span(t.type, "text/html");
}

static void
a_dash_is_nothing(void **state)
{
    struct trace_line t = read_line("1500000000.250 100 10.0.0.1 TCP_HIT/200 - GET "
                                    "http://a.example/b - HIER_NONE/- -");

    assert_true(t.user.n == 0 && t.peer.n == 0 && t.type.n == 0 && t.bytes == -1);
}

static void
bars_between_fields_do_not_matter(void **state)
{
    struct trace_line t = read_line("1500000000.250 |    100 | 10.0.0.1 | TCP_MISS/200 | 7890 | GET"
                                    " | http://a.example/ | ann | HIER_DIRECT/192.0.2.1 | text/css"
                                    " | 3128 | \"Agent 1\" | http://b.example/");

    assert_span(t.url, "http://a.example/");
    assert_span(t.user, "ann");
    assert_span(t.type, "text/css");
}

static void
fields_in_front_are_passed_over(void **state)
{
    struct trace_line t = read_line("cache1.example -12 2017-07-14T02:40:00.250 100 2001:db8::2 "
                                    "TCP_MISS/504 36 GET http://a.example/x CARP/192.0.2.1 "
                                    "text/html - - agent");

    assert_true(t.end_us == T0_US + 250000 && t.duration_us == 100000);
    assert_span(t.client, "2001:db8::2");
    assert_span(t.hierarchy, "CARP");
    assert_true(t.user.n == 0);
    assert_span(t.type, "text/html");
}

static void
times_are_read_in_all_their_layouts(void **state)
{
    static const char *const times[] = {"1500000000",           "1500000000.000",
                                        "2017-07-14T02:40:00",  "2017-07-14-02:40:00",
                                        "2017/07/14 02:40:00",  "14/Jul/2017:02:40:00",
                                        "14/Jul/2017 02:40:00", "[14/Jul/2017:04:40:00 +0200]",
                                        "2017-07-14T02:40:00Z"};

    for (unsigned i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        char line[200];

        snprintf(line, sizeof(line), "%s 7 10.0.0.1 TCP_MISS/200 1 GET http://a/ - NONE/- -",
                 times[i]);
        assert_true(read_line(line).end_us == T0_US);
        assert_true(read_line(line).duration_us == 7000);
    }
}

static void
days_that_cannot_be_are_no_times(void **state)
{
    assert_skipped("2017-02-29T02:40:00 7 c TCP_MISS/200 1 GET http://a/ - NONE/- -",
                   TRACE_BAD_TIME);
    assert_skipped("yesterday 7 c TCP_MISS/200 1 GET http://a/ - NONE/- -", TRACE_BAD_TIME);
    assert_skipped("TCP_MISS/200 1 GET http://a/ - NONE/- -", TRACE_BAD_TIME);
}

static void
a_custom_line_may_have_no_duration(void **state)
{
    struct trace_line t = read_line("1500000000.250 c TCP_MISS/200 1 GET http://a/ - NONE/- -");

    assert_true(t.end_us == T0_US + 250000 && t.duration_us == -1);
    assert_span(t.client, "c");
}

static void
a_status_is_three_digits_from_100(void **state)
{
    assert_int_equal(read_line("1500000000 1 c TCP_MISS/50 1 GET http://a/ - NONE/- -").status, 0);
    assert_int_equal(read_line("1500000000 1 c TCP_MISS/000 1 GET http://a/ - NONE/- -").status, 0);
    assert_int_equal(read_line("1500000000 1 c TCP_MISS/603 1 GET http://a/ - NONE/- -").status,
                     603);
    assert_int_equal(read_line("1500000000 1 c NONE_NONE/-/200 1 GET http://a/ -").status, 200);
}

static void
sizes_below_nothing_are_not_told(void **state)
{
    assert_true(read_line("1500000000 1 c TCP_MISS/303 -1 GET http://a/ - NONE/- -").bytes == -1);
    assert_skipped("1500000000 1 c TCP_MISS/200 many GET http://a/ - NONE/- -", TRACE_BAD_SIZE);
    assert_skipped("1500000000 1 c TCP_MISS/200 99999999999999999999 GET http://a/ - NONE/- -",
                   TRACE_BAD_SIZE);
}

static void
a_clock_set_back_makes_no_negative_duration(void **state)
{
    assert_true(read_line("1500000000 -5 c TCP_MISS/200 1 GET http://a/ - NONE/- -").duration_us ==
                0);
}

static void
a_url_may_have_blanks(void **state)
{
    struct trace_line t = read_line(
        "1500000000 1 c TCP_MISS/200 1 GET http://a/b c d ann HIER_DIRECT/192.0.2.1 text/html");

    assert_span(t.url, "http://a/b c d");
    assert_span(t.user, "ann");
}

static void
two_lines_run_together_give_the_first(void **state)
{
    struct trace_line t =
        read_line("1500000000.1 221 c1 TCP_HIT/200 23 GET http://a/b u NONE/-1500000009 164 c2 "
                  "TCP_MISS/404 291 GET http://d/ - NONE/- text/html");

    assert_span(t.url, "http://a/b");
    assert_span(t.client, "c1");
    assert_true(t.peer.n == 0 && t.type.n == 0);
}

static void
a_tunnel_has_a_host_and_a_port(void **state)
{
    struct trace_line t =
        read_line("1500000000 1 c TCP_TUNNEL/200 1 CONNECT [2001:db8::1]:443 - HIER_DIRECT/x -");

    assert_true(trace_line_is_tunnel(&t));
    assert_skipped("1500000000 1 c NONE/400 1 CONNECT 192.0.2.1:0 - NONE/- -", TRACE_NO_URL);
    assert_skipped("1500000000 1 c NONE/400 1 CONNECT a.example - NONE/- -", TRACE_NO_URL);
}

static void
what_is_no_request_is_skipped_with_its_reason(void **state)
{
    assert_skipped("", TRACE_EMPTY);
    assert_skipped("  \t\r", TRACE_EMPTY);
    assert_skipped("# Fields: time", TRACE_EMPTY);
    assert_skipped("All work and no play makes Jack a dull boy", TRACE_PROSE);
    assert_skipped("1500000000 0 c UDP_MISS/000 38 ICP_QUERY http://a/ - NONE/- -", TRACE_NOT_HTTP);
    assert_skipped("1500000000 0 c NONE/000 0 NONE error:no-request - NONE/- -", TRACE_NO_METHOD);
    assert_skipped("1500000000 0 c NONE/000 0 - error:no-request - NONE/- -", TRACE_NO_METHOD);
    assert_skipped("1500000000 0 c NONE/400 0 GET error:bad-url - NONE/- -", TRACE_NO_METHOD);
    assert_skipped("1500000000 0 c TCP_MISS/200/200 45 https://a/t? 192.0.2.1", TRACE_NO_METHOD);
    assert_skipped("1500000000 0 c TCP_MISS/200 45 GET /a - NONE/- -", TRACE_NO_URL);
    assert_skipped("1500000000 0 c TCP_MISS/200 45 GET http: - NONE/- -", TRACE_NO_URL);
    assert_skipped("1500000000 0 c TCP_MISS/200 45 GET cache_object://a/b - N/- -", TRACE_NO_URL);
}

static void
a_line_cut_off_anywhere_is_read_or_skipped_but_never_a_lists(void **state)
{
    const char *whole = "1500000000.250    100 10.0.0.1 TCP_MISS/200 7890 GET http://a.example/";

    /* "time 100 10" would be a list's */
    for (size_t n = strlen("1500000000.250    100 10."); n < strlen(whole); n++) {
        struct trace_line t;
        enum trace_verdict v = trace_line_parse(span_of(whole, n), &t);

        if (n < strlen("1500000000.250    100 10.0.0.1 TCP_MISS/200 7890 GET http://a"))
            assert_true(v == TRACE_NO_URL || v == TRACE_NO_METHOD);
        else
            assert_int_equal(v, TRACE_OK);
    }
}

/* ---- web servers' ---- */

static void
a_combined_line_is_read(void **state)
{
    struct trace_line t = read_line("10.0.0.1 - ann [14/Jul/2017:11:40:00 +0900] \"GET /a?b "
                                    "HTTP/1.1\" 404 580 \"-\" \"Agent \\\"x\\\" 1\"");

    assert_int_equal(t.format, TRACE_COMMON);
    assert_true(t.end_us == T0_US && t.duration_us == -1 && t.bytes == 580);
    assert_int_equal(t.status, 404);
    assert_span(t.client, "10.0.0.1");
    assert_span(t.user, "ann");
    assert_span(t.url, "/a?b");
    assert_true(t.word.n == 0);
}

static void
squids_word_is_found_in_a_common_line(void **state)
{
    struct trace_line t = read_line("c - - [14/Jul/2017:02:40:00.850 +0000] \"GET http://a/ "
                                    "HTTP/1.1\" 200 977 TCP_MISS:HIER_DIRECT 25 \"- -\"");

    assert_span(t.word, "TCP_MISS");
    assert_span(t.hierarchy, "HIER_DIRECT");
    assert_true(t.duration_us == 25000 && t.end_us == T0_US + 850000);
    t = read_line("c - - [14/Jul/2017:02:40:00 +0000] \"GET http://a/ HTTP/1.1\" 200 977 \"-\" "
                  "\"Agent 1\" TCP_MEM_HIT:HIER_NONE");
    assert_span(t.word, "TCP_MEM_HIT");
    t = read_line("[2017/07/14 02:40:00] c TCP_HIT:NONE \"GET http://a/ HTTP/1.1\" 200 6 \"-\"");
    assert_true(trace_line_is_hit(&t));
    assert_span(t.client, "c");
}

static void
bytes_that_are_no_request_line_are_not_http(void **state)
{
    assert_skipped("c - - [14/Jul/2017:02:40:00 +0000] \"\\x16\\x03\\x01\" 400 0", TRACE_NOT_HTTP);
    assert_skipped("c - - [14/Jul/2017:02:40:00 +0000] \"\" 400 0", TRACE_NOT_HTTP);
    assert_skipped("c - - [14/Jul/2017:02:40:00 +0000] \"-\" 408 0", TRACE_NOT_HTTP);
    assert_skipped("c - - [14/Jul/2017:02:40:00 +0000] \"PRI * HTTP/2.0\" 400 0", TRACE_NOT_HTTP);
    assert_skipped("c - - [14/Jul/2017:02:40:00 +0000] \"GET /a", TRACE_NO_URL);
    assert_skipped("c - - [14/Jul/2017:02:40:00 +0000] \"GET / HTTP/1.1\" 200", TRACE_NO_URL);
    assert_skipped("c - - [32/Jul/2017:02:40:00 +0000] \"GET / HTTP/1.1\" 200 1", TRACE_BAD_TIME);
}

/* ---- lists ---- */

static void
lists_are_read(void **state)
{
    struct trace_line t = read_line("17 300");

    assert_int_equal(t.format, TRACE_LIST);
    assert_span(t.url, "17");
    assert_true(t.bytes == 300 && t.end_us == -1);
    t = read_line("1.5\t17\t300");
    assert_int_equal(t.format, TRACE_TIMED_LIST);
    assert_true(t.end_us == 1500000 && trace_line_arrival_us(&t) == 1500000);
    assert_true(trace_line_is_cacheable(&t));
    assert_skipped("17 -300", TRACE_BAD_SIZE);
    assert_skipped("three blind mice", TRACE_PROSE);
}

/* ---- claims ---- */

static struct trace_line
line_of(struct span method, int status, struct span word)
{
    return (struct trace_line){.method = method, .status = status, .word = word};
}

static void
hits_are_told_by_the_word(void **state)
{
    static const char *const hits[] = {"TCP_HIT",         "TCP_MEM_HIT",
                                       "TCP_IMS_HIT",     "TCP_NEGATIVE_HIT",
                                       "TCP_REFRESH_HIT", "TCP_REFRESH_UNMODIFIED"};
    static const char *const misses[] = {"TCP_MISS", "TCP_REFRESH_MODIFIED",    "TCP_DENIED",
                                         "NONE",     "TCP_CLIENT_REFRESH_MISS", "TCP_TUNNEL"};

    for (unsigned i = 0; i < 6; i++) {
        struct trace_line hit = line_of(SPAN("GET"), 200, span_str(hits[i]));
        struct trace_line miss = line_of(SPAN("GET"), 200, span_str(misses[i]));

        assert_true(trace_line_is_hit(&hit));
        assert_false(trace_line_is_hit(&miss));
    }
}

static void
only_answers_to_get_are_cacheable(void **state)
{
    static const int kept[] = {200, 203, 300, 301, 304, 308, 404, 410};
    struct trace_line t;

    for (unsigned i = 0; i < 8; i++) {
        t = line_of(SPAN("GET"), kept[i], SPAN("TCP_MISS"));
        assert_true(trace_line_is_cacheable(&t));
        t = line_of(SPAN("POST"), kept[i], SPAN("TCP_MISS"));
        assert_false(trace_line_is_cacheable(&t));
    }
    t = line_of(SPAN("GET"), 407, SPAN("TCP_DENIED"));
    assert_false(trace_line_is_cacheable(&t));
}

/* ---- files ---- */

#define LINE_A "1500000000 1 c TCP_MISS/200 1 GET http://a/ - NONE/- -\n"
#define LINE_B "1500000001 1 c TCP_MISS/200 1 GET http://b/ - NONE/- -"

/* LINE_A and LINE_B, packed by gzip */
static const char PACKED[] =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x33\x34\x35\x80\x02\x05\x43\x85\x64\x85"
    "\x10\xe7\x80\x78\x5f\xcf\xe0\x60\x7d\x23\xb0\x80\xbb\x6b\x88\x42\x46\x49\x49\x81"
    "\x95\xbe\x7e\xa2\xbe\x82\xae\x82\x9f\xbf\x9f\xab\xbe\xae\x82\x2e\x97\x21\x4c\x9b"
    "\x21\x01\x6d\x49\xc8\xda\x00\x42\x9b\x65\xf2\x6d\x00\x00\x00";

static struct trace_reader *
reader_of(const void *bytes, size_t n)
{
    char path[] = "/tmp/cuttle-trace-XXXXXX", why[200];
    int fd = mkstemp(path);
    struct trace_reader *r;

    assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
    r = trace_reader_open(path, why, sizeof(why));
    unlink(path);
    return r;
}

static void
assert_two_requests(struct trace_reader *r)
{
    struct trace_line t;

    assert_non_null(r);
    assert_true(trace_reader_next(r, &t));
    assert_span(t.url, "http://a/");
    assert_true(trace_reader_next(r, &t));
    assert_span(t.url, "http://b/");
    assert_false(trace_reader_next(r, &t));
    assert_false(trace_reader_next(r, &t));
}

static void
a_plain_file_is_read_to_its_end_without_a_newline(void **state)
{
    struct trace_reader *r = reader_of(LINE_A LINE_B, strlen(LINE_A LINE_B));
    uint64_t size;

    assert_two_requests(r);
    assert_int_equal(trace_reader_lines(r), 2);
    assert_int_equal(trace_reader_bytes(r, &size), strlen(LINE_A LINE_B));
    assert_int_equal(size, strlen(LINE_A LINE_B));
    assert_null(trace_reader_fault(r));
    trace_reader_close(&r);
    assert_null(r);
}

static void
a_gzip_file_is_told_by_its_first_bytes(void **state)
{
    struct trace_reader *r = reader_of(PACKED, sizeof(PACKED) - 1);

    assert_two_requests(r);
    assert_null(trace_reader_fault(r));
    trace_reader_close(&r);
}

static void
a_cut_gzip_file_gives_what_it_has_and_says_so(void **state)
{
    struct trace_reader *r = reader_of(PACKED, sizeof(PACKED) - 5);

    assert_two_requests(r);
    assert_non_null(trace_reader_fault(r));
    trace_reader_close(&r);
}

static void
skipped_lines_are_counted_with_the_first_one(void **state)
{
    static const char text[] = "\n" LINE_A "no such thing here\n\nanother thing like it\n" LINE_B;
    struct trace_reader *r = reader_of(text, sizeof(text) - 1);

    assert_two_requests(r);
    assert_int_equal(trace_reader_lines(r), 6);
    assert_int_equal(trace_reader_skipped(r, TRACE_EMPTY), 2);
    assert_int_equal(trace_reader_first_skipped(r, TRACE_EMPTY), 1);
    assert_int_equal(trace_reader_skipped(r, TRACE_PROSE), 2);
    assert_int_equal(trace_reader_first_skipped(r, TRACE_PROSE), 3);
    assert_int_equal(trace_reader_first_skipped(r, TRACE_BAD_SIZE), 0);
    trace_reader_close(&r);
}

/* Longer than a line may be, and longer than the buffer. */
static void
an_overlong_line_is_skipped_once(void **state)
{
    static const size_t lengths[] = {(64 << 10) + 1, 600 << 10, 2 << 20};

    for (unsigned i = 0; i < 3; i++) {
        size_t n = lengths[i] + strlen(LINE_A LINE_B) + 1;
        char *text = mem_alloc(n);
        struct trace_reader *r;

        memcpy(text, LINE_A, strlen(LINE_A));
        memset(text + strlen(LINE_A), 'x', lengths[i]);
        text[strlen(LINE_A) + lengths[i]] = '\n';
        memcpy(text + n - strlen(LINE_B), LINE_B, strlen(LINE_B));
        r = reader_of(text, n);
        assert_two_requests(r);
        assert_int_equal(trace_reader_skipped(r, TRACE_PROSE), 1);
        assert_int_equal(trace_reader_lines(r), 3);
        trace_reader_close(&r);
        mem_free(text);
    }
}

/* Every line is cut by the end of some read. */
static void
a_long_file_loses_no_line(void **state)
{
    unsigned n = 30000;
    size_t one = strlen(LINE_A);
    char *text = mem_alloc(n * one);
    struct trace_reader *r;
    struct trace_line t;
    unsigned seen = 0;

    for (unsigned i = 0; i < n; i++)
        memcpy(text + i * one, LINE_A, one);
    r = reader_of(text, n * one);
    while (trace_reader_next(r, &t))
        seen += span_eq(t.url, SPAN("http://a/"));
    assert_int_equal(seen, n);
    trace_reader_close(&r);
    mem_free(text);
}

static void
what_cannot_be_opened_says_why(void **state)
{
    char why[200] = "";

    assert_null(trace_reader_open("/nonexistent/log", why, sizeof(why)));
    assert_non_null(strstr(why, "/nonexistent/log: "));
    assert_null(trace_reader_open("/", why, sizeof(why)));
    assert_non_null(strstr(why, "folder"));
    assert_null(reader_of("\x28\xb5\x2f\xfd....", 8));
}

static void
an_empty_file_has_no_lines(void **state)
{
    struct trace_reader *r = reader_of("", 0);
    struct trace_line t;

    assert_false(trace_reader_next(r, &t));
    assert_int_equal(trace_reader_lines(r), 0);
    trace_reader_close(&r);
}

/* ---- what a line asks for ---- */

static void
assert_asks(const char *line, const char *wanted)
{
    struct trace_line t = read_line(line);
    struct buf room = {0};
    struct trace_target target;
    char got[256] = "nothing";

    if (trace_target(&t, SPAN("Www.Example:81"), &room, &target))
        snprintf(got, sizeof(got), "%.*s %.*s%s", SPAN_ARG(target.host), SPAN_ARG(target.path),
                 target.tunnel ? "tunnel" : "");
    assert_string_equal(got, wanted);
    buf_free(&room);
}

static void
assert_url_asks(const char *url, const char *wanted)
{
    char line[512];

    snprintf(line, sizeof(line), "1500000000.250 100 10.0.0.1 TCP_MISS/200 7890 %s - NONE/- -", url);
    assert_asks(line, wanted);
}

static void
a_request_asks_a_host_for_a_path(void **state)
{
    assert_url_asks("GET http://A.Example:8080/b?c", "a.example /b?c");
    assert_url_asks("GET https://user:word@a.example.", "a.example /");
    assert_url_asks("GET http://a.example?q", "a.example /?q");
    assert_url_asks("CONNECT A.example:443", "a.example tunnel");
}

static void
an_address_is_asked_for_as_a_name(void **state)
{
    assert_url_asks("GET http://192.0.2.1/x", "a192-0-2-1.v4.test /x");
    assert_url_asks("CONNECT 192.0.2.1:443", "a192-0-2-1.v4.test tunnel");
    assert_url_asks("CONNECT [2001:db8::1]:443", "a2001-db8--1.v6.test tunnel");
    assert_url_asks("GET http://[2001:db8::]/", "a2001-db8--0.v6.test /");
}

static void
bytes_that_no_request_line_carries_are_escaped(void **state)
{
    assert_url_asks("GET http://a.example/b\\c\xc3\xa9|d#e", "a.example /b%5Cc%C3%A9%7Cd");
}

static void
a_path_or_an_object_is_of_the_default_host(void **state)
{
    assert_asks("10.0.0.1 - - [14/Jul/2017:02:40:00 +0000] \"GET /a HTTP/1.1\" 200 5", "www.example /a");
    assert_asks("12345 678", "www.example /12345");
}

static void
what_no_resolver_takes_is_not_asked_for(void **state)
{
    assert_url_asks("GET ftp://a.example/b", "nothing");
    assert_url_asks("GET http://127.1/", "nothing");
    assert_url_asks("GET http://a..example/", "nothing");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_native_line_is_read),
        cmocka_unit_test(a_dash_is_nothing),
        cmocka_unit_test(bars_between_fields_do_not_matter),
        cmocka_unit_test(fields_in_front_are_passed_over),
        cmocka_unit_test(times_are_read_in_all_their_layouts),
        cmocka_unit_test(days_that_cannot_be_are_no_times),
        cmocka_unit_test(a_custom_line_may_have_no_duration),
        cmocka_unit_test(a_status_is_three_digits_from_100),
        cmocka_unit_test(sizes_below_nothing_are_not_told),
        cmocka_unit_test(a_clock_set_back_makes_no_negative_duration),
        cmocka_unit_test(a_url_may_have_blanks),
        cmocka_unit_test(two_lines_run_together_give_the_first),
        cmocka_unit_test(a_tunnel_has_a_host_and_a_port),
        cmocka_unit_test(what_is_no_request_is_skipped_with_its_reason),
        cmocka_unit_test(a_line_cut_off_anywhere_is_read_or_skipped_but_never_a_lists),
        cmocka_unit_test(a_combined_line_is_read),
        cmocka_unit_test(squids_word_is_found_in_a_common_line),
        cmocka_unit_test(bytes_that_are_no_request_line_are_not_http),
        cmocka_unit_test(lists_are_read),
        cmocka_unit_test(hits_are_told_by_the_word),
        cmocka_unit_test(only_answers_to_get_are_cacheable),
        cmocka_unit_test(a_request_asks_a_host_for_a_path),
        cmocka_unit_test(an_address_is_asked_for_as_a_name),
        cmocka_unit_test(bytes_that_no_request_line_carries_are_escaped),
        cmocka_unit_test(a_path_or_an_object_is_of_the_default_host),
        cmocka_unit_test(what_no_resolver_takes_is_not_asked_for),
        cmocka_unit_test(a_plain_file_is_read_to_its_end_without_a_newline),
        cmocka_unit_test(a_gzip_file_is_told_by_its_first_bytes),
        cmocka_unit_test(a_cut_gzip_file_gives_what_it_has_and_says_so),
        cmocka_unit_test(skipped_lines_are_counted_with_the_first_one),
        cmocka_unit_test(an_overlong_line_is_skipped_once),
        cmocka_unit_test(a_long_file_loses_no_line),
        cmocka_unit_test(what_cannot_be_opened_says_why),
        cmocka_unit_test(an_empty_file_has_no_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
