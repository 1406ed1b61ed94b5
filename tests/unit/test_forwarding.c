/* test_forwarding - a head as it must leave us, RFC 9110 section 7.6. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/forwarding.h"

static struct arena arena;
static struct request_head request;

static int
open_arena(void **state)
{
    arena_init(&arena, NULL, 0);
    request = (struct request_head){.method = METHOD_GET, .minor = 1};
    return 0;
}

static int
close_arena(void **state)
{
    arena_free(&arena);
    return 0;
}

static void
with(const char *name, const char *value)
{
    fields_add(&request.fields, &arena, span_str(name), span_str(value));
}

static const struct field *
left(const char *name)
{
    return fields_find_name(&request.fields, span_str(name));
}

#define assert_span(is, want)                                                                      \
    do {                                                                                           \
        struct span got_ = (is);                                                                   \
        if (!span_eq(got_, span_str(want)))                                                        \
            fail_msg("\"%.*s\" is not \"%s\"", SPAN_ARG(got_), want);                              \
    } while (0)

static void
hop_by_hop_and_framing_fields_do_not_go_on(void **state)
{
    static const char *const gone[] = {
        "Connection",        "Keep-Alive",
        "Proxy-Connection",  "TE",
        "Trailer",           "Upgrade",
        "Transfer-Encoding", "Content-Length",
        "HTTP2-Settings",    "Proxy-Authorization",
    };

    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
        with(gone[i], "x");
    with("Accept", "*/*");
    with("X-Own", "1");
    forwarding_clean(&request.fields);
    assert_int_equal(request.fields.n, 2);
    assert_span(request.fields.at[0].name, "Accept");
    assert_span(request.fields.at[1].name, "X-Own");
}

static void
fields_named_in_connection_do_not_go_on(void **state)
{
    with("x-secret", "1");
    with("Connection", "close, X-Secret");
    with("X-Other", "2");
    with("Connection", ", X-Third ,");
    with("X-Third", "3");
    with("X-Secret", "4");
    forwarding_clean(&request.fields);
    assert_int_equal(request.fields.n, 1);
    assert_span(request.fields.at[0].name, "X-Other");
}

/* Section 7.6.1: a connection option must not stand for a field that is meant for all recipients.
 */
static void
connection_cannot_strip_what_is_meant_end_to_end(void **state)
{
    with("Connection", "Host, Cookie, Authorization, Cache-Control, X-Forwarded-For, Via");
    with("Host", "h");
    with("Cookie", "a=b");
    with("Authorization", "Basic eDp5");
    with("Cache-Control", "no-store");
    with("X-Forwarded-For", "10.0.0.1");
    with("Via", "1.1 a");
    forwarding_clean(&request.fields);
    assert_int_equal(request.fields.n, 6);
}

static void
a_flood_of_connection_options_drops_every_field_without_a_meaning(void **state)
{
    for (int i = 0; i < 200; i++)
        fields_add(&request.fields, &arena, SPAN("Connection"), arena_printf(&arena, "n%d", i));
    with("N199", "1");
    with("X-Own", "1");
    with("Accept", "*/*");
    forwarding_clean(&request.fields);
    assert_int_equal(request.fields.n, 1);
    assert_span(request.fields.at[0].name, "Accept");
}

static void
a_hundred_connection_options_are_taken_one_by_one(void **state)
{
    for (int i = 0; i < 100; i++)
        fields_add(&request.fields, &arena, SPAN("Connection"), arena_printf(&arena, "n%d", i));
    with("N99", "1");
    with("X-Own", "1");
    forwarding_clean(&request.fields);
    assert_int_equal(request.fields.n, 1);
}

static void
add_client(enum forwarded_for mode)
{
    forwarding_add_client(&request.fields, &arena, mode, SPAN("10.0.0.9"));
}

static void
the_client_is_appended_over_all_lines(void **state)
{
    with("X-Forwarded-For", "10.0.0.1");
    with("x-forwarded-for", "10.0.0.2, 10.0.0.3");
    add_client(FORWARDED_ON);
    assert_int_equal(request.fields.n, 1);
    assert_span(left("X-Forwarded-For")->value, "10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.9");
}

static void
forwarded_for_has_squids_modes(void **state)
{
    add_client(FORWARDED_TRANSPARENT);
    assert_null(left("X-Forwarded-For"));
    add_client(FORWARDED_ON);
    assert_span(left("X-Forwarded-For")->value, "10.0.0.9");
    add_client(FORWARDED_OFF);
    assert_span(left("X-Forwarded-For")->value, "10.0.0.9, unknown");
    add_client(FORWARDED_TRANSPARENT);
    assert_span(left("X-Forwarded-For")->value, "10.0.0.9, unknown");
    add_client(FORWARDED_TRUNCATE);
    assert_span(left("X-Forwarded-For")->value, "10.0.0.9");
    add_client(FORWARDED_DELETE);
    assert_null(left("X-Forwarded-For"));
}

/* Section 7.6.3 */
static void
via_gains_one_member_at_its_end(void **state)
{
    forwarding_add_via(&request.fields, &arena, 1, SPAN("proxy.example"));
    assert_span(left("Via")->value, "1.1 proxy.example (cuttle)");
    with("Via", "1.1 b");
    forwarding_add_via(&request.fields, &arena, 0, SPAN("c"));
    assert_int_equal(request.fields.n, 1);
    assert_span(left("Via")->value, "1.1 proxy.example (cuttle), 1.1 b, 1.0 c (cuttle)");
}

static void
our_own_name_in_via_is_a_loop(void **state)
{
    struct span name = SPAN("proxy.example");

    assert_false(forwarding_is_loop(&request.fields, name));
    with("Via", "1.1 other (proxy.example), 1.0 proxy.example.org");
    with("Via", "proxy.example");
    assert_false(forwarding_is_loop(&request.fields, name));
    with("Via", "1.1 a,  HTTP/1.1   Proxy.Example (cuttle)");
    assert_true(forwarding_is_loop(&request.fields, name));
}

/* There are no quoted strings in these lists: an open quote must not swallow what stands behind it.
 */
static void
a_quote_hides_nothing(void **state)
{
    with("Via", "1.1 a (\"");
    forwarding_add_via(&request.fields, &arena, 1, SPAN("me"));
    assert_true(forwarding_is_loop(&request.fields, SPAN("me")));
    with("Connection", "\"x, X-Secret");
    with("X-Secret", "1");
    forwarding_clean(&request.fields);
    assert_null(left("X-Secret"));
}

static void
what_we_add_to_via_is_recognised(void **state)
{
    forwarding_add_via(&request.fields, &arena, 1, SPAN("me"));
    assert_true(forwarding_is_loop(&request.fields, SPAN("me")));
}

/* Section 7.6.2 */
static void
max_forwards_is_counted_down(void **state)
{
    request.method = METHOD_TRACE;
    assert_true(forwarding_step(&request, &arena));
    with("Max-Forwards", "10");
    assert_true(forwarding_step(&request, &arena));
    assert_span(left("Max-Forwards")->value, "9");
}

static void
a_large_max_forwards_is_capped(void **state)
{
    request.method = METHOD_TRACE;
    with("Max-Forwards", "999999999999999999999");
    assert_true(forwarding_step(&request, &arena));
    assert_span(left("Max-Forwards")->value, "999999");
    assert_true(forwarding_step(&request, &arena));
    assert_span(left("Max-Forwards")->value, "999998");
    fields_remove(&request.fields, FIELD_MAX_FORWARDS);
    with("Max-Forwards", "012");
    assert_true(forwarding_step(&request, &arena));
    assert_span(left("Max-Forwards")->value, "11");
}

static void
at_zero_we_are_the_end(void **state)
{
    request.method = METHOD_OPTIONS;
    with("Max-Forwards", "1");
    assert_true(forwarding_step(&request, &arena));
    assert_false(forwarding_step(&request, &arena));
}

static void
max_forwards_means_nothing_to_other_methods(void **state)
{
    with("Max-Forwards", "0");
    assert_true(forwarding_step(&request, &arena));
    assert_span(left("Max-Forwards")->value, "0");
}

static void
a_max_forwards_that_is_no_number_is_dropped(void **state)
{
    static const char *const wrong[] = {"", "-1", "1x", "1, 2"};

    request.method = METHOD_OPTIONS;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        with("Max-Forwards", wrong[i]);
        assert_true(forwarding_step(&request, &arena));
        assert_null(left("Max-Forwards"));
    }
    with("Max-Forwards", "5");
    with("Max-Forwards", "0");
    assert_true(forwarding_step(&request, &arena));
    assert_null(left("Max-Forwards"));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, open_arena, close_arena)

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(hop_by_hop_and_framing_fields_do_not_go_on),
        CASE(fields_named_in_connection_do_not_go_on),
        CASE(connection_cannot_strip_what_is_meant_end_to_end),
        CASE(a_flood_of_connection_options_drops_every_field_without_a_meaning),
        CASE(a_hundred_connection_options_are_taken_one_by_one),
        CASE(the_client_is_appended_over_all_lines),
        CASE(forwarded_for_has_squids_modes),
        CASE(via_gains_one_member_at_its_end),
        CASE(our_own_name_in_via_is_a_loop),
        CASE(a_quote_hides_nothing),
        CASE(what_we_add_to_via_is_recognised),
        CASE(max_forwards_is_counted_down),
        CASE(a_large_max_forwards_is_capped),
        CASE(at_zero_we_are_the_end),
        CASE(max_forwards_means_nothing_to_other_methods),
        CASE(a_max_forwards_that_is_no_number_is_dropped),
    };

    return cmocka_run_group_tests_name("forwarding", tests, NULL, NULL);
}
