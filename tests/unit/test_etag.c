/* test_etag - entity tags of RFC 9110 section 8.8.3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/etag.h"

static void
only_quoted_tags_are_tags(void **state)
{
    assert_true(etag_is_valid(SPAN("\"abc\"")));
    assert_true(etag_is_valid(SPAN("\"\"")));
    assert_true(etag_is_valid(SPAN("W/\"abc\"")));
    assert_true(etag_is_valid(SPAN("\"a\\b\xe9,!\"")));
    assert_false(etag_is_valid(SPAN("abc")));
    assert_false(etag_is_valid(SPAN("w/\"abc\"")));
    assert_false(etag_is_valid(SPAN("W\"abc\"")));
    assert_false(etag_is_valid(SPAN("W\\\"abc\"")));
    assert_false(etag_is_valid(SPAN("\"abc")));
    assert_false(etag_is_valid(SPAN("\"a\"b\"")));
    assert_false(etag_is_valid(SPAN("\"a b\"")));
    assert_false(etag_is_valid(SPAN("\"")));
    assert_false(etag_is_valid(SPAN("W/")));
    assert_false(etag_is_valid(SPAN_NONE));
}

/* RFC 9110 section 8.8.3.2, its table of comparisons. */
static void
the_comparisons_are_those_of_the_table(void **state)
{
    static const struct {
        const char *a, *b;
        bool strong, weak;
    } rows[] = {
        {"W/\"1\"", "W/\"1\"", false, true},
        {"W/\"1\"", "W/\"2\"", false, false},
        {"W/\"1\"", "\"1\"", false, true},
        {"\"1\"", "\"1\"", true, true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct span a = span_str(rows[i].a), b = span_str(rows[i].b);

        assert_int_equal(etag_match_strong(a, b), rows[i].strong);
        assert_int_equal(etag_match_weak(a, b), rows[i].weak);
        assert_int_equal(etag_match_weak(b, a), rows[i].weak);
    }
}

static void
what_is_no_tag_equals_nothing(void **state)
{
    assert_false(etag_match_weak(SPAN("abc"), SPAN("abc")));
    assert_false(etag_match_strong(SPAN(""), SPAN("")));
    assert_false(etag_match_weak(SPAN_NONE, SPAN("\"a\"")));
}

static void
a_list_finds_its_members_at_any_place(void **state)
{
    struct span list = SPAN("\"a\", W/\"b\" ,\"c,d\"\t, \"e\"");

    assert_true(etag_list_has(list, SPAN("\"a\""), true));
    assert_true(etag_list_has(list, SPAN("\"b\""), false));
    assert_false(etag_list_has(list, SPAN("\"b\""), true));
    assert_true(etag_list_has(list, SPAN("\"c,d\""), true));
    assert_true(etag_list_has(list, SPAN("W/\"e\""), false));
    assert_false(etag_list_has(list, SPAN("\"c\""), false));
    assert_false(etag_list_has(list, SPAN("\"d\""), false));
}

/* A backslash does not escape in a tag: "a\" ends there. */
static void
a_backslash_is_a_byte_like_others(void **state)
{
    assert_true(etag_list_has(SPAN("\"a\\\", \"b\""), SPAN("\"b\""), true));
    assert_true(etag_list_has(SPAN("\"a\\\", \"b\""), SPAN("\"a\\\""), true));
}

static void
malformed_members_are_passed_over(void **state)
{
    assert_true(etag_list_has(SPAN("a, ,, w/\"b\", \"c\""), SPAN("\"c\""), true));
    assert_false(etag_list_has(SPAN("w/\"b\", b"), SPAN("\"b\""), false));
    assert_false(etag_list_has(SPAN("\"b\"x, \"c"), SPAN("\"b\""), false));
    assert_false(etag_list_has(SPAN("\"c"), SPAN("\"c\""), false));
    assert_false(etag_list_has(SPAN(",,, ,\t,"), SPAN("\"c\""), false));
    assert_false(etag_list_has(SPAN_NONE, SPAN("\"c\""), false));
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_quoted_tags_are_tags),
        cmocka_unit_test(the_comparisons_are_those_of_the_table),
        cmocka_unit_test(what_is_no_tag_equals_nothing),
        cmocka_unit_test(a_list_finds_its_members_at_any_place),
        cmocka_unit_test(a_backslash_is_a_byte_like_others),
        cmocka_unit_test(malformed_members_are_passed_over),
    };

    return cmocka_run_group_tests_name("etag", tests, NULL, NULL);
}
