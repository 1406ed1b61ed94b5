/* test_cache_control - Cache-Control of RFC 9111 section 5.2, with Squid's habits where it is
 * silent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/cache_control.h"

#define TWO_TO_31 (INT64_C(1) << 31)

static struct cache_control
parse_two(const char *first, const char *second)
{
    struct field lines[2] = {
        {SPAN("Cache-Control"), span_str(first), FIELD_CACHE_CONTROL},
        {SPAN("Cache-Control"), span_str(second), FIELD_CACHE_CONTROL},
    };
    struct fields f = {lines, second ? 2 : 1, 2};

    return cache_control_parse(&f);
}

static struct cache_control
parse(const char *value)
{
    return parse_two(value, NULL);
}

#define assert_names(span, text) assert_true(span_eq((span), SPAN(text)))

static void
nothing_is_set_without_the_field(void **state)
{
    struct fields f = {0};
    struct cache_control cc = cache_control_parse(&f);

    assert_false(cc.present);
    assert_int_equal(cc.max_age_s, -1);
    assert_int_equal(cc.stale_if_error_s, -1);
    assert_true(parse("").present);
    assert_int_equal(parse("").max_age_s, -1);
}

static void
every_directive_is_known(void **state)
{
    struct cache_control cc = parse(
        "no-store, no-cache, private, public, must-revalidate, proxy-revalidate, must-understand,"
        "no-transform, only-if-cached, immutable, max-age=1, s-maxage=2, min-fresh=3, max-stale=4,"
        "stale-while-revalidate=5, stale-if-error=6");

    assert_true(cc.no_store && cc.no_cache && cc.private_ && cc.public_ && cc.must_revalidate);
    assert_true(cc.proxy_revalidate && cc.must_understand && cc.no_transform);
    assert_true(cc.only_if_cached && cc.immutable && !cc.max_stale_any);
    assert_int_equal(cc.max_age_s, 1);
    assert_int_equal(cc.s_maxage_s, 2);
    assert_int_equal(cc.min_fresh_s, 3);
    assert_int_equal(cc.max_stale_s, 4);
    assert_int_equal(cc.stale_while_revalidate_s, 5);
    assert_int_equal(cc.stale_if_error_s, 6);
}

/* RFC 9111 section 5.2: names are case-insensitive; whoever misses No-CaChE serves what it must
 * not. */
static void
directive_names_fold_case(void **state)
{
    assert_int_equal(parse("MaX-AgE=60").max_age_s, 60);
    assert_true(parse("No-CaChE").no_cache);
    assert_true(parse("NO-STORE").no_store);
}

/* RFC 9111 section 1.2.2 */
static void
large_numbers_are_clamped(void **state)
{
    assert_int_equal(parse("max-age=2147483647").max_age_s, TWO_TO_31 - 1);
    assert_int_equal(parse("max-age=2147483648").max_age_s, TWO_TO_31);
    assert_int_equal(parse("max-age=2147483649").max_age_s, TWO_TO_31);
    assert_int_equal(parse("max-age=99999999999999999999999999").max_age_s, TWO_TO_31);
    assert_int_equal(parse("max-age=000000000000000000000000060").max_age_s, 60);
}

static void
the_first_of_two_counts(void **state)
{
    assert_int_equal(parse("max-age=1800, max-age=1").max_age_s, 1800);
    assert_int_equal(parse_two("max-age=1", "max-age=1800").max_age_s, 1);
    assert_int_equal(parse("max-age=x, max-age=5").max_age_s, 0);
}

static void
lifetimes_are_read_leniently_and_what_is_none_is_0(void **state)
{
    assert_int_equal(parse("max-age=100a").max_age_s, 100);
    assert_int_equal(parse("max-age=3600.5").max_age_s, 3600);
    assert_int_equal(parse("max-age =100").max_age_s, 100);
    assert_int_equal(parse("max-age= 100").max_age_s, 0);
    assert_int_equal(parse("max-age=a100").max_age_s, 0);
    assert_int_equal(parse("max-age=\"100\"").max_age_s, 100);
    assert_int_equal(parse("max-age='100'").max_age_s, 0);
    assert_int_equal(parse("max-age").max_age_s, 0);
    assert_int_equal(parse("max-age=").max_age_s, 0);
    assert_int_equal(parse("max-age=-1").max_age_s, 0);
}

static void
quoted_text_holds_no_directives(void **state)
{
    struct cache_control cc = parse("extension=\"max-age=1, no-store\", max-age=60");

    assert_int_equal(cc.max_age_s, 60);
    assert_false(cc.no_store);
    cc = parse("x=\"a\\\", no-store, \", max-age=60");
    assert_int_equal(cc.max_age_s, 60);
    assert_false(cc.no_store);
}

/* RFC 9111 sections 5.2.2.4 and 5.2.2.7 */
static void
field_names_come_with_no_cache_and_private(void **state)
{
    struct cache_control cc = parse("no-cache=\"Set-Cookie, X-A\", private=\" X-B \", max-age=9");

    assert_true(cc.no_cache && cc.no_cache_fields);
    assert_names(cc.no_cache_names, "Set-Cookie, X-A");
    assert_true(cc.private_ && cc.private_fields);
    assert_names(cc.private_names, "X-B");
    assert_int_equal(cc.max_age_s, 9);
    cc = parse("private=X-B");
    assert_names(cc.private_names, "X-B");
}

static void
the_strict_form_wins_over_field_names(void **state)
{
    assert_false(parse("no-cache=\"a\", no-cache").no_cache_fields);
    assert_false(parse("no-cache, no-cache=\"a\"").no_cache_fields);
    assert_false(parse("private=\"a\", private=\"b\"").private_fields);
    assert_false(parse("private=\"\"").private_fields);
    assert_true(parse("private=\"\"").private_);
}

static void
max_stale_without_a_value_means_any(void **state)
{
    assert_true(parse("max-stale").max_stale_any);
    assert_false(parse("max-stale=5").max_stale_any);
    assert_int_equal(parse("max-stale=5").max_stale_s, 5);
    assert_false(parse("max-stale=x").max_stale_any);
}

static void
unknown_directives_and_odd_commas_are_skipped(void **state)
{
    struct cache_control cc = parse(",, foo, bar=1 ,=5, \"no-store\", max-age=7,");

    assert_int_equal(cc.max_age_s, 7);
    assert_false(cc.no_store);
    assert_int_equal(parse("max-ages=7, xmax-age=8").max_age_s, -1);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_set_without_the_field),
        cmocka_unit_test(every_directive_is_known),
        cmocka_unit_test(directive_names_fold_case),
        cmocka_unit_test(large_numbers_are_clamped),
        cmocka_unit_test(the_first_of_two_counts),
        cmocka_unit_test(lifetimes_are_read_leniently_and_what_is_none_is_0),
        cmocka_unit_test(quoted_text_holds_no_directives),
        cmocka_unit_test(field_names_come_with_no_cache_and_private),
        cmocka_unit_test(the_strict_form_wins_over_field_names),
        cmocka_unit_test(max_stale_without_a_value_means_any),
        cmocka_unit_test(unknown_directives_and_odd_commas_are_skipped),
    };

    return cmocka_run_group_tests_name("cache_control", tests, NULL, NULL);
}
