/* test_uri - request targets (RFC 9112 section 3.2) and the target URI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/uri.h"

static struct arena arena;
static struct uri uri;
static const char *why;

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

static bool
parse(const char *target, enum method m)
{
    why = NULL;
    return uri_parse_target(span_str(target), m, &arena, &uri, &why);
}

#define assert_span(is, want)                                                                      \
    do {                                                                                           \
        struct span got_ = (is);                                                                   \
        if (!span_eq(got_, span_str(want)))                                                        \
            fail_msg("\"%.*s\" is not \"%s\"", SPAN_ARG(got_), want);                              \
    } while (0)

#define assert_text(text) assert_span(uri_text(&uri, &arena), text)

static void
an_absolute_url_has_all_its_parts(void **state)
{
    assert_true(parse("http://www.example.org:8080/a/b?c=d", METHOD_GET));
    assert_int_equal(uri.form, URI_ABSOLUTE);
    assert_span(uri.scheme, "http");
    assert_span(uri.host, "www.example.org");
    assert_int_equal(uri.port, 8080);
    assert_true(uri.port_given);
    assert_span(uri.path, "/a/b?c=d");
    assert_int_equal(uri.literal.sa.sa_family, AF_UNSPEC);
    assert_text("http://www.example.org:8080/a/b?c=d");
    assert_span(uri_host_field(&uri, &arena), "www.example.org:8080");
}

/* RFC 9110 section 4.2.3 */
static void
equal_urls_have_one_text(void **state)
{
    static const char *const same[] = {"http://example.org/",    "HTTP://EXAMPLE.org",
                                       "http://example.org:80/", "http://example.org:0080/",
                                       "http://example.org:",    "http://u:p@Example.Org:/"};

    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        assert_true(parse(same[i], METHOD_GET));
        assert_text("http://example.org/");
        assert_span(uri_host_field(&uri, &arena), "example.org");
    }
    assert_true(parse("http://example.org?q", METHOD_GET));
    assert_text("http://example.org/?q");
    assert_true(parse("http://example.org/%7e/%zz/../x", METHOD_GET));
    assert_text("http://example.org/%7e/%zz/../x");
}

static void
other_schemes_are_kept_with_their_ports(void **state)
{
    assert_true(parse("https://a/", METHOD_GET));
    assert_int_equal(uri.port, 443);
    assert_text("https://a/");
    assert_true(parse("ftp://a/x", METHOD_GET));
    assert_int_equal(uri.port, 21);
    assert_true(parse("https://a:80/", METHOD_GET));
    assert_text("https://a:80/");
    assert_true(parse("gopher://a:70/x", METHOD_GET));
    assert_text("gopher://a:70/x");
    assert_false(parse("gopher://a:/x", METHOD_GET));
}

/* RFC 9112 section 3.2.1 */
static void
an_origin_form_has_only_a_path(void **state)
{
    assert_true(parse("/x?y", METHOD_GET));
    assert_int_equal(uri.form, URI_ORIGIN);
    assert_span(uri.path, "/x?y");
    assert_int_equal(uri.host.n, 0);
    assert_true(parse("//evil.example/x", METHOD_GET));
    assert_int_equal(uri.form, URI_ORIGIN);
    assert_span(uri.path, "//evil.example/x");
}

/* RFC 9112 section 3.2.3 */
static void
connect_wants_host_and_port(void **state)
{
    static const char *const wrong[] = {
        "example.org",
        "example.org:",
        "example.org:0",
        "example.org:65536",
        "example.org:443/",
        "http://example.org:443",
        "u@example.org:443",
        ":443",
        "example.org:4 43",
        "[::1]",
        "example.org:+443",
        "example.org:443:443",
        "/",
        "*",
        "::1:443",
    };

    assert_true(parse("Example.org:443", METHOD_CONNECT));
    assert_int_equal(uri.form, URI_AUTHORITY);
    assert_span(uri.host, "example.org");
    assert_int_equal(uri.port, 443);
    assert_text("example.org:443");
    assert_true(parse("[::1]:65535", METHOD_CONNECT));
    assert_text("[::1]:65535");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (parse(wrong[i], METHOD_CONNECT))
            fail_msg("accepted: CONNECT %s", wrong[i]);
        assert_non_null(why);
    }
    assert_false(parse("example.org:443", METHOD_GET));
    assert_false(parse("127.0.0.1:80", METHOD_GET));
}

/* RFC 9112 section 3.2.4 */
static void
the_asterisk_is_for_options(void **state)
{
    assert_true(parse("*", METHOD_OPTIONS));
    assert_int_equal(uri.form, URI_ASTERISK);
    assert_false(parse("*", METHOD_GET));
    assert_true(parse("http://a", METHOD_OPTIONS));
    assert_span(uri.path, "*");
    assert_text("http://a");
    assert_true(parse("http://a/", METHOD_OPTIONS));
    assert_span(uri.path, "/");
    assert_true(parse("http://a?", METHOD_OPTIONS));
    assert_span(uri.path, "/?");
}

/* RFC 9110 section 4.2.4 */
static void
userinfo_is_dropped_and_told(void **state)
{
    assert_true(parse("http://trusted.example:80@evil.example/x@y", METHOD_GET));
    assert_true(uri.had_userinfo);
    assert_text("http://evil.example/x@y");
    assert_true(parse("http://u%zz@a/", METHOD_GET));
    assert_text("http://a/");
    assert_true(parse("http://a/b@c", METHOD_GET));
    assert_false(uri.had_userinfo);
    assert_false(parse("http://a@b@c/", METHOD_GET));
    assert_false(parse("http://a@/", METHOD_GET));
}

static void
what_is_no_url_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "http:",
        "http:/",
        "http://",
        "http:///x",
        "http://:80/",
        "http:O",
        "://O/",
        "x",
        "urn:x:y",
        "file:///etc/hosts",
        "http//a/",
        "1http://a/",
        "http://a:b/",
        "http://a:0/",
        "http://a:65536/",
        "http://a:-1/",
        "http://a:80:80/",
        "http://a b/",
        "http://a/ b",
        "http://a/\x01",
        "http://a/\x7f",
        "http://a/x#f",
        "http://a/\xe9#f",
        "http://a\\b/",
        "http://a\\",
        "http://a\xe9/",
        "http://a:8\xb2/",
        "http://u\xe9@a/",
        "http://evil.example\\@a/",
        "h\xe9://a/",
        "\\x",
        "\xe9",
        "http://a%41/",
        "http://a,b/",
        "http://a;b/",
        "http://(a)/",
        "http://a..b/",
        "http://.a/",
        "http://./",
        "http://../",
        "http://a.../",
        "http://[::1/",
        "http://[]/",
        "http://[::1]x/",
        "http://[::1]:x/",
        "http://[127.0.0.1]/",
        "http://[::1%25lo]/",
        "http://[v1.a]/",
        "http://::1/",
        "http://]/",
        "http://[/",
        "http://a]/",
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (parse(wrong[i], METHOD_GET))
            fail_msg("accepted: %s", wrong[i]);
        assert_non_null(why);
    }
}

/* By curl, by links in Latin-1 or UTF-8, by old browsers: one URL for rules, key, log and origin.
 */
static void
what_is_raw_in_a_path_is_percent_encoded(void **state)
{
    static const char *const rows[][2] = {
        {"http://a/caf\xe9", "http://a/caf%E9"},
        {"http://a/\xc3\xa9?q=\xff\x80&r", "http://a/%C3%A9?q=%FF%80&r"},
        {"http://a/b\\c?d\\", "http://a/b%5Cc?d%5C"},
        {"http://a?\xe9", "http://a/?%E9"},
        {"http://a/\\@b", "http://a/%5C@b"},
        {"http://u@a/%5c%zz\xe9", "http://a/%5c%zz%E9"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_true(parse(rows[i][0], METHOD_GET));
        assert_text(rows[i][1]);
        assert_true(parse(rows[i][1], METHOD_GET));
        assert_text(rows[i][1]);
    }
    assert_true(parse("//\xe9\\x", METHOD_GET));
    assert_int_equal(uri.form, URI_ORIGIN);
    assert_span(uri.path, "//%E9%5Cx");
    assert_false(parse("a\xe9:443", METHOD_CONNECT));
    assert_false(parse("a\\:443", METHOD_CONNECT));
}

/* RFC 9110 section 7.7: what can stand in a request line is left as it came. */
static void
other_visible_characters_are_not_touched(void **state)
{
    static const char target[] = "/!\"$%&'()*+,-./0:;<=>?@A[]^_`a{|}~?!\"$%&'()*+<>?@[]^`{|}~";

    assert_true(parse(target, METHOD_GET));
    assert_span(uri.path, target);
}

/* Every byte of a path is passed on, encoded or refused. */
static void
each_byte_in_a_path_has_one_treatment(void **state)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char target[] = {'/', (char)byte};
        bool refused = byte <= ' ' || byte == '#' || byte == 0x7f;
        size_t n = byte == '\\' || byte > 0x7f ? 4 : 2;

        assert_int_equal(uri_parse_target(span_of(target, 2), METHOD_GET, &arena, &uri, &why),
                         !refused);
        assert_true(refused || uri.path.n == n);
    }
}

/* RFC 1035 section 2.3.4 */
static void
names_have_their_limits(void **state)
{
    char label[80], name[300];

    memset(label, 'a', sizeof label);
    assert_true(uri_host_is_name(span_of(label, 63)));
    assert_false(uri_host_is_name(span_of(label, 64)));
    for (size_t i = 0; i < sizeof name; i++)
        name[i] = i % 50 == 49 ? '.' : 'b';
    assert_true(uri_host_is_name(span_of(name, 253)));
    assert_false(uri_host_is_name(span_of(name, 254)));
    name[253] = '.';
    assert_true(uri_host_is_name(span_of(name, 254)));
    assert_true(uri_host_is_name(SPAN("a_b-C.9x.")));
    assert_true(uri_host_is_name(SPAN("-")));
    assert_false(uri_host_is_name(SPAN("")));
    assert_false(uri_host_is_name(SPAN(".")));
    assert_false(uri_host_is_name(SPAN("a..")));
    assert_false(uri_host_is_name(SPAN("a\0b")));
}

/* Access lists must see an address as the one it is. */
static void
numbers_are_dotted_quads_or_refused(void **state)
{
    static const char *const wrong[] = {
        "0x7f.1",    "2130706433",  "127.1", "0177.0.0.1", "0",          "127.0.0.1.", "1.2.3.4.5",
        "256.0.0.1", "127.0.0.0x1", "0x",    "a.1",        "0X7F000001", "1.2.3.08"};

    assert_true(parse("http://127.0.0.1:8000/", METHOD_GET));
    assert_int_equal(uri.literal.sa.sa_family, AF_INET);
    assert_true(addr_is_loopback(&uri.literal));
    assert_text("http://127.0.0.1:8000/");
    assert_true(parse("http://1.2.3.com/", METHOD_GET));
    assert_true(parse("http://0x1.de/", METHOD_GET));
    assert_int_equal(uri.literal.sa.sa_family, AF_UNSPEC);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (uri_parse_authority(span_str(wrong[i]), 80, &arena, &uri, &why))
            fail_msg("accepted: %s", wrong[i]);
    }
}

/* RFC 3986 section 3.2.2, RFC 5952 */
static void
ipv6_addresses_have_one_form(void **state)
{
    assert_true(parse("http://[2001:DB8:0::0:1]:80/", METHOD_GET));
    assert_span(uri.host, "2001:db8::1");
    assert_int_equal(uri.literal.sa.sa_family, AF_INET6);
    assert_text("http://[2001:db8::1]/");
    assert_true(parse("http://[::1]:8080/", METHOD_GET));
    assert_span(uri_host_field(&uri, &arena), "[::1]:8080");
    assert_true(parse("http://[::FFFF:127.0.0.1]/", METHOD_GET));
    assert_span(uri.host, "127.0.0.1");
    assert_int_equal(uri.literal.sa.sa_family, AF_INET);
    assert_text("http://127.0.0.1/");
}

/* RFC 9110 section 7.2 */
static void
an_authority_has_no_userinfo_and_no_path(void **state)
{
    static const char *const wrong[] = {"",      "a b", "x@a", "a,b", "a, b", "a/x",    "a?x",
                                        "a:80a", "a:0", ":80", "a#",  "[::1", "a:99999"};

    assert_true(uri_parse_authority(SPAN("A.example"), 80, &arena, &uri, &why));
    assert_span(uri.host, "a.example");
    assert_int_equal(uri.port, 80);
    assert_false(uri.port_given);
    assert_true(uri_parse_authority(SPAN("a:"), 80, &arena, &uri, &why));
    assert_false(uri_parse_authority(SPAN("a:"), 0, &arena, &uri, &why));
    assert_false(uri_parse_authority(SPAN("a"), 0, &arena, &uri, &why));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (uri_parse_authority(span_str(wrong[i]), 80, &arena, &uri, &why))
            fail_msg("accepted: %s", wrong[i]);
    }
}

static struct span
resolve(const char *reference)
{
    struct uri base, out;

    assert_true(uri_parse_target(SPAN("http://a/b/c/d;p?q"), METHOD_GET, &arena, &base, &why));
    return uri_resolve(&base, span_str(reference), &arena, &out) ? uri_text(&out, &arena)
                                                                 : SPAN("none");
}

/* RFC 3986 section 5.4, its examples, without fragments and for http. */
static void
references_resolve_as_in_the_standard(void **state)
{
    static const char *const rows[][2] = {
        {"g", "http://a/b/c/g"},
        {"./g", "http://a/b/c/g"},
        {"g/", "http://a/b/c/g/"},
        {"/g", "http://a/g"},
        {"//g", "http://g/"},
        {"?y", "http://a/b/c/d;p?y"},
        {"g?y", "http://a/b/c/g?y"},
        {"#s", "http://a/b/c/d;p?q"},
        {"g#s", "http://a/b/c/g"},
        {";x", "http://a/b/c/;x"},
        {"g;x?y#s", "http://a/b/c/g;x?y"},
        {"", "http://a/b/c/d;p?q"},
        {".", "http://a/b/c/"},
        {"./", "http://a/b/c/"},
        {"..", "http://a/b/"},
        {"../", "http://a/b/"},
        {"../g", "http://a/b/g"},
        {"../..", "http://a/"},
        {"../../g", "http://a/g"},
        {"../../../g", "http://a/g"},
        {"/./g", "http://a/g"},
        {"/../g", "http://a/g"},
        {"g.", "http://a/b/c/g."},
        {"..g", "http://a/b/c/..g"},
        {"./../g", "http://a/b/g"},
        {"./g/.", "http://a/b/c/g/"},
        {"g/./h", "http://a/b/c/g/h"},
        {"g/../h", "http://a/b/c/h"},
        {"g;x=1/../y", "http://a/b/c/y"},
        {"g?y/../x", "http://a/b/c/g?y/../x"},
        {"http://B:80/x/../y", "http://b/y"},
        {"https://b", "https://b/"},
        {"\xc3\xa9", "http://a/b/c/%C3%A9"},
        {"//g/\xe9", "http://g/%E9"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_span(resolve(rows[i][0]), rows[i][1]);
}

static void
references_that_make_no_url_are_none(void **state)
{
    assert_span(resolve("http:g"), "none");
    assert_span(resolve("mailto:a@b"), "none");
    assert_span(resolve("/a b"), "none");
    assert_span(resolve("//"), "none");
    assert_span(resolve("http://[x]/"), "none");
    assert_span(resolve("//\xc3\xa9/"), "none");
}

static void
an_origin_is_scheme_host_and_port(void **state)
{
    struct uri a, b;

    parse("http://A:80/x", METHOD_GET);
    a = uri;
    parse("http://a/y", METHOD_GET);
    b = uri;
    assert_true(uri_same_origin(&a, &b));
    parse("https://a/y", METHOD_GET);
    assert_false(uri_same_origin(&a, &uri));
    parse("http://a:81/y", METHOD_GET);
    assert_false(uri_same_origin(&a, &uri));
    parse("http://b/y", METHOD_GET);
    assert_false(uri_same_origin(&a, &uri));
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_absolute_url_has_all_its_parts),
        cmocka_unit_test(equal_urls_have_one_text),
        cmocka_unit_test(other_schemes_are_kept_with_their_ports),
        cmocka_unit_test(an_origin_form_has_only_a_path),
        cmocka_unit_test(connect_wants_host_and_port),
        cmocka_unit_test(the_asterisk_is_for_options),
        cmocka_unit_test(userinfo_is_dropped_and_told),
        cmocka_unit_test(what_is_no_url_is_refused),
        cmocka_unit_test(what_is_raw_in_a_path_is_percent_encoded),
        cmocka_unit_test(other_visible_characters_are_not_touched),
        cmocka_unit_test(each_byte_in_a_path_has_one_treatment),
        cmocka_unit_test(names_have_their_limits),
        cmocka_unit_test(numbers_are_dotted_quads_or_refused),
        cmocka_unit_test(ipv6_addresses_have_one_form),
        cmocka_unit_test(an_authority_has_no_userinfo_and_no_path),
        cmocka_unit_test(references_resolve_as_in_the_standard),
        cmocka_unit_test(references_that_make_no_url_are_none),
        cmocka_unit_test(an_origin_is_scheme_host_and_port),
    };

    return cmocka_run_group_tests_name("uri", tests, open_arena, close_arena);
}
