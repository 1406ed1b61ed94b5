/* test_log_format - one record of literals, one line to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/log.h"
#include "proxy/log/access_log.h"

static struct field request_lines[] = {
    {SPAN("User-Agent"), SPAN("Mozilla/5.0 (X11; \"q\" ~\\)"), FIELD_USER_AGENT},
    {SPAN("Referer"), SPAN("http://a.example/?x=1"), FIELD_REFERER},
    {SPAN("X-Two"), SPAN("one"), FIELD_OTHER},
    {SPAN("x-two"), SPAN("[two]%"), FIELD_OTHER},
};
static struct fields request_fields = {request_lines, 4, 4};
static struct field response_lines[] = {
    {SPAN("Server"), SPAN("Tokyo \xe6\x9d\xb1\xff"), FIELD_SERVER}};
static struct fields response_fields = {response_lines, 1, 1};

static struct addr
address(const char *text, uint16_t port)
{
    struct addr a;

    assert_true(addr_parse(span_str(text), &a));
    addr_set_port(&a, port);
    return a;
}

static struct log_record
record(void)
{
    struct log_record r = {
        .end_wall_ms = 1767571201007,
        .elapsed_us = 42999,
        .result = "TCP_MISS",
        .status = 200,
        .server_status = 200,
        .bytes_out = 10482,
        .bytes_in = 310,
        .body_bytes_out = 10000,
        .method = SPAN("GET"),
        .url = SPAN("http://www.example.com:8080/~a/b?q=1"),
        .path = SPAN("/~a/b?q=1"),
        .minor = 1,
        .hierarchy = "HIER_DIRECT",
        .server_host = SPAN("www.example.com"),
        .content_type = SPAN("text/html; charset=utf-8"),
        .request_fields = &request_fields,
        .response_fields = &response_fields,
        .dns_us = -1,
        .server_us = 40999,
        .sequence = 77,
    };

    r.client = address("192.0.2.7", 40123);
    r.local = address("192.0.2.1", 3128);
    r.server = address("2001:db8::80", 8080);
    return r;
}

static void
assert_line_of(const struct conf *c, const char *name, const struct log_record *r,
               const char *expected)
{
    struct buf errors = {0}, out = {0};
    struct log_format *f;

    if (log_format_new(c, name, &errors, &f) != 0)
        fail_msg("%.*s", (int)errors.n, errors.at);
    log_format_write(f, r, &out);
    buf_add_char(&out, '\0');
    assert_string_equal(out.at, expected);
    buf_free(&out);
    buf_free(&errors);
    log_format_free(&f);
    assert_null(f);
}

static void
assert_line(const char *text, const struct log_record *r, const char *expected)
{
    struct conf_logformat lf = {"mine", text, {"t.conf", 3}};
    struct conf c = {.logformats = &lf, .n_logformats = 1};

    assert_line_of(&c, "mine", r, expected);
}

static void
squid_native_to_the_byte(void **state)
{
    struct log_record r = record();
    struct conf c = {0};

    assert_line_of(&c, "squid", &r,
                   "1767571201.007     42 192.0.2.7 TCP_MISS/200 10482 GET "
                   "http://www.example.com:8080/~a/b?q=1 - HIER_DIRECT/2001:db8::80 text/html\n");
    c.strip_query_terms = true;
    assert_line_of(&c, "squid", &r,
                   "1767571201.007     42 192.0.2.7 TCP_MISS/200 10482 GET "
                   "http://www.example.com:8080/~a/b? - HIER_DIRECT/2001:db8::80 text/html\n");
}

static void
squid_native_of_a_tunnel_an_abort_and_a_long_wait(void **state)
{
    struct log_record r = record();
    struct conf c = {0};

    r.result = "TCP_TUNNEL", r.method = SPAN("CONNECT"), r.url = SPAN("example.com:443");
    r.content_type = SPAN_NONE, r.elapsed_us = 1234567890123;
    assert_line_of(
        &c, "squid", &r,
        "1767571201.007 1234567890 192.0.2.7 TCP_TUNNEL/200 10482 CONNECT example.com:443 - "
        "HIER_DIRECT/2001:db8::80 -\n");
    r.result = "NONE_ABORTED", r.status = 0, r.bytes_out = 0, r.hierarchy = "HIER_NONE",
    r.server = ADDR_NONE;
    r.elapsed_us = 0, r.url = SPAN("error:invalid-request"), r.method = SPAN("NONE"),
    r.end_wall_ms = 999;
    assert_line_of(
        &c, "squid", &r,
        "0.999      0 192.0.2.7 NONE_ABORTED/000 0 NONE error:invalid-request - HIER_NONE/- -\n");
}

static void
common_and_combined_to_the_byte(void **state)
{
    struct log_record r = record();
    struct conf c = {0};

    assert_line_of(
        &c, "common", &r,
        "192.0.2.7 - - [05/Jan/2026:01:00:01 +0100] \"GET http://www.example.com:8080/~a/b?q=1 "
        "HTTP/1.1\" 200 10482 TCP_MISS:HIER_DIRECT\n");
    assert_line_of(
        &c, "combined", &r,
        "192.0.2.7 - - [05/Jan/2026:01:00:01 +0100] \"GET http://www.example.com:8080/~a/b?q=1 "
        "HTTP/1.1\" 200 10482 "
        "\"http://a.example/?x=1\" \"Mozilla/5.0 (X11; \\\"q\\\" ~\\\\)\" TCP_MISS:HIER_DIRECT\n");
    assert_line_of(
        &c, "referrer", &r,
        "1767571201.007 192.0.2.7 http://a.example/?x=1 http://www.example.com:8080/~a/b?q=1\n");
    r.request_fields = NULL;
    assert_line_of(&c, "useragent", &r, "192.0.2.7 [05/Jan/2026:01:00:01 +0100] \"-\"\n");
}

static void
json_is_valid_whatever_was_sent(void **state)
{
    struct log_record r = record();
    struct conf c = {0};

    r.response_fields = NULL;
    request_lines[1].value = SPAN("a\x01\t\xe6\x9d\xb1\xff\"");
    assert_line_of(
        &c, "json", &r,
        "{\"@timestamp\":\"2026-01-05T00:00:01.007Z\",\"event.duration\":42999000,\"source.ip\":"
        "\"192.0.2.7\","
        "\"source.port\":40123,\"url.full\":\"http://www.example.com:8080/~a/"
        "b?q=1\",\"http.request.method\":\"GET\","
        "\"http.request.bytes\":310,\"http.request.referrer\":"
        "\"a\\u0001\\t\xe6\x9d\xb1\\ufffd\\\"\","
        "\"user_agent.original\":\"Mozilla/5.0 (X11; \\\"q\\\" ~\\\\)\",\"http.version\":\"1.1\","
        "\"http.response.status_code\":200,\"http.response.bytes\":10482,\"http.response.body."
        "bytes\":10000,"
        "\"http.response.mime_type\":\"text/"
        "html\",\"server.ip\":\"2001:db8::80\",\"cuttle.result\":\"TCP_MISS\","
        "\"cuttle.hierarchy\":\"HIER_DIRECT\"}\n");
    request_lines[1].value = SPAN("http://a.example/?x=1");
}

static void
each_code_gives_its_value(void **state)
{
    struct log_record r = record();

    assert_line("%>a %>A %>p %<a %<A %<p %la %lp %>la %>lp", &r,
                "192.0.2.7 192.0.2.7 40123 2001:db8::80 www.example.com 8080 192.0.2.1 3128 "
                "192.0.2.1 3128\n");
    r.server = address("255.10.0.100", 1);
    assert_line("%<a", &r, "255.10.0.100\n");
    r.server = ADDR_NONE;
    assert_line("%<a %<p", &r, "- -\n");
    assert_line("%ts %tu %tS %tr %dt %<tt %tg", &r,
                "1767571201 7 1767571200.965 42 - 40 05/Jan/2026:00:00:01 +0000\n");
    assert_line("%.6tu %.1tu %{%Y}tl %tl{%H}", &r, "7000 0 2026 01\n");
    assert_line("%rm %>rm %ru %>ru %rp %rv %rs %>rd %>rP", &r,
                "GET GET http://www.example.com:8080/~a/b?q=1 http://www.example.com:8080/~a/b?q=1 "
                "/~a/b?q=1 1.1 http "
                "www.example.com 8080\n");
    assert_line("%Hs %>Hs %<Hs %st %<st %>st %<sh %Ss %Sh %mt", &r,
                "200 200 200 10792 10482 310 482 TCP_MISS HIER_DIRECT text/html\n");
    assert_line("%un %ul %ui %us %[un %ea %err_code %err_detail %sn %%", &r,
                "- - - - - - - - 77 %\n");
    r.error_page = "ERR_DNS_FAIL", r.error_detail = "no name", r.dns_us = 1999, r.server_status = 0;
    assert_line("%err_code/%err_detail %dt %03<Hs", &r, "ERR_DNS_FAIL/no%20name 1 -\n");
}

static void
the_parts_of_other_urls(void **state)
{
    struct log_record r = record();

    r.url = SPAN("https://[2001:db8::1]/x");
    assert_line("%rs %rd %rP", &r, "https 2001:db8::1 443\n");
    r.url = SPAN("example.com:8443");
    assert_line("%rs %rd %rP", &r, "- example.com 8443\n");
    r.url = SPAN("ftp://f.example?x:y/z");
    assert_line("%rs %rd %rP", &r, "ftp f.example 21\n");
    r.url = SPAN("[");
    assert_line("%rs %rd %rP", &r, "- - -\n");
}

static void
width_precision_zeros_and_sides(void **state)
{
    struct log_record r = record();

    assert_line("[%6rm|%-6rm|%.2rm|%-6.1rm|%05>Hs|%5>Hs|%-5>Hs|%9un|%2<st]", &r,
                "[   GET|GET   |GE|G     |00200|  200|200  |-|10482]\n");
}

/* In quotes and brackets of the text the encoding follows by itself; else it is named. */
static void
encodings_keep_one_record_on_one_line(void **state)
{
    struct log_record r = record();

    assert_line("%{Referer}>h %{User-Agent}>h", &r,
                "http://a.example/?x=1 Mozilla/5.0%20(X11;%20%22q%22%20%7E%5C)\n");
    assert_line("\"%{User-Agent}>h\" %\"{User-Agent}>h", &r,
                "\"Mozilla/5.0 (X11; \\\"q\\\" ~\\\\)\" Mozilla/5.0 (X11; \\\"q\\\" ~\\\\)\n");
    assert_line("[%{X-Two}>h] %#{X-Two}>h %'{X-Two}>h", &r,
                "[one, %5btwo%5d%25] one,%20%5Btwo%5D%25 one, [two]%\n");
    assert_line("[%<h] %'<h", &r,
                "[Server: Tokyo %e6%9d%b1%ff\\r\\n] Server: Tokyo \xe6\x9d\xb1\xff\\r\\n\n");
    assert_line("%{Server}<h %{Via}<h", &r, "Tokyo%20%E6%9D%B1%FF -\n");
    r.method = SPAN("G T\x7f\n");
    assert_line("%rm \"%rm\"", &r, "G%20T%7F%0A \"G T\\x7f\\n\"\n");
}

static void
mime_headers_follow_a_builtin_format_when_asked(void **state)
{
    struct log_record r = record();
    struct conf c = {.log_mime_hdrs = true};

    request_fields.n = 2;
    assert_line_of(
        &c, "useragent", &r,
        "192.0.2.7 [05/Jan/2026:01:00:01 +0100] \"Mozilla/5.0 (X11; \\\"q\\\" ~\\\\)\" "
        "[User-Agent: Mozilla/5.0 (X11; \"q\" ~\\\\)\\r\\nReferer: http://a.example/?x=1\\r\\n] "
        "[Server: Tokyo %e6%9d%b1%ff\\r\\n]\n");
    request_fields.n = 4;
}

static void
what_a_record_does_not_carry_is_a_dash(void **state)
{
    struct log_record r = record();

    log_show(LOG_ERROR);
    assert_line("%<bs %6icap::tr %03icap::Hs %ssl::>sni %{x}note %>eui %{A:;b}>h.", &r,
                "- - - - - - -.\n");
    log_show(LOG_NOTE);
}

static void
unknown_codes_and_formats_are_told_with_their_line(void **state)
{
    struct conf_logformat lf = {"mine", "%>a %zz %99999rm %", {"t.conf", 3}};
    struct conf_access_log al = {.where = "x", .format = "nothere", .place = {"t.conf", 9}};
    struct conf c = {.logformats = &lf, .n_logformats = 1, .access_logs = &al, .n_access_logs = 1};
    struct buf errors = {0};
    struct log_format *f;

    assert_int_equal(log_format_new(&c, "mine", &errors, &f), 3);
    log_format_free(&f);
    assert_int_equal(log_format_new(&c, "nothere", &errors, &f), 1);
    log_format_free(&f);
    buf_add_char(&errors, '\0');
    assert_string_equal(errors.at, "t.conf:3: logformat: %zz %99999rm %: there is no such code\n"
                                   "t.conf:3: logformat: %99999rm: the width is too large\n"
                                   "t.conf:3: logformat: %: there is no such code\n"
                                   "t.conf:9: logformat: nothere: there is no such format\n");
    buf_free(&errors);
}

static void
an_own_format_may_bear_a_builtin_name(void **state)
{
    struct conf_logformat lf = {"squid", "%Ss", {"t.conf", 3}};
    struct conf c = {.logformats = &lf, .n_logformats = 1};
    struct log_record r = record();

    assert_line_of(&c, "squid", &r, "TCP_MISS\n");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(squid_native_to_the_byte),
        cmocka_unit_test(squid_native_of_a_tunnel_an_abort_and_a_long_wait),
        cmocka_unit_test(common_and_combined_to_the_byte),
        cmocka_unit_test(json_is_valid_whatever_was_sent),
        cmocka_unit_test(each_code_gives_its_value),
        cmocka_unit_test(the_parts_of_other_urls),
        cmocka_unit_test(width_precision_zeros_and_sides),
        cmocka_unit_test(encodings_keep_one_record_on_one_line),
        cmocka_unit_test(mime_headers_follow_a_builtin_format_when_asked),
        cmocka_unit_test(what_a_record_does_not_carry_is_a_dash),
        cmocka_unit_test(unknown_codes_and_formats_are_told_with_their_line),
        cmocka_unit_test(an_own_format_may_bear_a_builtin_name),
    };

    setenv("TZ", "CET-1", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
