/* tests/unit/test_vary.c - RFC 9111 section 4.1: specs and who selects by them. */
#include <stdio.h>

#include "cache/vary.h"
#include "tests/unit/heads.h"

static struct span
spec(const char *response_fields, const char *request_fields)
{
    struct fields response = fields_of(response_fields), request = fields_of(request_fields);
    bool never;
    struct span made = vary_spec(&response, &request, &heads_arena, &never);

    assert_false(never);
    assert_false(vary_is_never(&response));
    return made;
}

static bool
never(const char *response_fields)
{
    struct fields response = fields_of(response_fields), request = fields_of("Foo: 1\r\n");
    bool is_never;
    struct span made = vary_spec(&response, &request, &heads_arena, &is_never);

    assert_int_equal(is_never, vary_is_never(&response));
    assert_true(!is_never || made.n == 0);
    return is_never;
}

static bool
matches(const char *vary, const char *stored_request, const char *request_fields)
{
    struct fields request = fields_of(request_fields);

    return vary_matches(spec(vary, stored_request), &request, &heads_arena);
}

static void
a_spec_is_sorted_lower_case_and_names_each_field_once(void **state)
{
    assert_span(spec("Vary: Foo, BAR\r\nVary: foo,Accept-Language\r\n",
                     "foo: A b\r\nBar: X\r\nAccept-Language: eN, De\r\n"),
                "accept-language: en,de\nbar: X\nfoo: A b\n");
}

static void
without_vary_everybody_selects_it(void **state)
{
    assert_int_equal(spec("X: y\r\n", "Foo: 1\r\n").n, 0);
    assert_int_equal(spec("Vary:\r\nVary: ,,,\r\n", "Foo: 1\r\n").n, 0);
    assert_true(matches("X: y\r\n", "Foo: 1\r\n", "Foo: 2\r\n"));
}

static void
all_selecting_fields_must_match(void **state)
{
    const char *vary = "Vary: Foo, Bar\r\n";

    assert_true(matches(vary, "Foo: 1\r\nBar: abc\r\n", "Other: 3\r\nBAR: abc\r\nFoo: 1\r\n"));
    assert_false(matches(vary, "Foo: 1\r\nBar: abc\r\n", "Foo: 2\r\nBar: abc\r\n"));
    assert_false(matches(vary, "Foo: 1\r\nBar: abc\r\n", "Foo: 1\r\nBar: abcde\r\n"));
    assert_false(matches(vary, "Foo: 1\r\nBar: abcde\r\n", "Foo: 1\r\nBar: abc\r\n"));
    assert_false(matches(vary, "Foo: 1\r\nBar: abc\r\n", "Foo: 1\r\nBar: ABC\r\n"));
}

/* RFC 9111 section 4.1: an absent field only matches an absent one. */
static void
absent_matches_absent_only(void **state)
{
    assert_true(matches("Vary: Foo, Bar\r\n", "Foo: 1\r\n", "Foo: 1\r\n"));
    assert_false(matches("Vary: Foo\r\n", NULL, "Foo: 1\r\n"));
    assert_false(matches("Vary: Foo\r\n", "Foo: 1\r\n", NULL));
    assert_false(matches("Vary: Foo\r\n", "Foo:\r\n", NULL));
    assert_false(matches("Vary: Foo\r\n", NULL, "Foo:\r\n"));
}

static void
lines_and_white_space_around_commas_do_not_count(void **state)
{
    const char *vary = "Vary: Foo\r\n";

    assert_true(matches(vary, "Foo: 1,2\r\n", "Foo:  1 ,\t2 \r\n"));
    assert_true(matches(vary, "Foo: 1, 2\r\n", "Foo: 1\r\nX: y\r\nFoo: 2\r\n"));
    assert_false(matches(vary, "Foo: 1, 2\r\n", "Foo: 2, 1\r\n"));
    assert_false(matches(vary, "Foo: 1 2\r\n", "Foo: 1  2\r\n"));
    assert_false(matches(vary, "Foo: 1,,2\r\n", "Foo: 1,2\r\n"));
    assert_false(matches(vary, "Foo: 12\r\n", "Foo: 1,2\r\n"));
}

static void
white_space_inside_quotes_counts(void **state)
{
    const char *vary = "Vary: Foo\r\n";

    assert_false(matches(vary, "Foo: \"1, 2\"\r\n", "Foo: \"1,2\"\r\n"));
    assert_false(matches(vary, "Foo: \"a\\\" , b\"\r\n", "Foo: \"a\\\",b\"\r\n"));
    assert_true(matches(vary, "Foo: \"a\" , b\r\n", "Foo: \"a\",b\r\n"));
}

/* RFC 4647 section 2, RFC 9110 section 8.4.1: without regard to case. */
static void
languages_and_codings_have_no_case(void **state)
{
    assert_true(matches("Vary: Accept-Language\r\n", "Accept-Language: en, de\r\n",
                        "accept-language: eN,De\r\n"));
    assert_true(matches("Vary: Accept-Encoding\r\n", "Accept-Encoding: GZIP\r\n",
                        "Accept-Encoding: gzip\r\n"));
    assert_false(matches("Vary: User-Agent\r\n", "User-Agent: X\r\n", "User-Agent: x\r\n"));
}

/* However it is written: a star, or what is no field name, never matches. */
static void
a_star_or_no_field_name_never_matches(void **state)
{
    static const char *const stars[] = {
        "Vary: *\r\n",          "Vary:  * \r\n",    "Vary: *,\r\n",   "Vary: X, *\r\n",
        "Vary: *, *\r\n",       "Vary: , *\r\n",    "Vary: *, X\r\n", "Vary: X\r\nVary: *\r\n",
        "Vary:\r\nVary: *\r\n", "Vary: Other:\r\n", "Vary: :\r\n",    "Vary: a b\r\n",
        "Vary: \"\r\n",         "Vary: a;q=1\r\n",  "Vary: \"*\"\r\n"};

    for (unsigned i = 0; i < sizeof stars / sizeof stars[0]; i++)
        assert_true(never(stars[i]));
    assert_false(never("Vary: x*\r\n"));
}

static const char *
vary_of(unsigned n)
{
    char *text = arena_alloc(&heads_arena, 16 + (size_t)n * 16), *end = text;

    end += sprintf(end, "Vary: Foo");
    for (unsigned i = 1; i < n; i++)
        end += sprintf(end, ", n%u", i);
    sprintf(end, "\r\n");
    return text;
}

static void
too_many_names_never_match(void **state)
{
    assert_false(never(vary_of(64)));
    assert_true(never(vary_of(65)));
    assert_true(never(vary_of(10000)));
    assert_true(matches(vary_of(64), "Foo: 1\r\nn9: a\r\n", "n9: a\r\nFoo: 1\r\n"));
    assert_false(matches(vary_of(64), "Foo: 1\r\nn9: a\r\n", "n8: a\r\nFoo: 1\r\n"));
}

/* Each byte is looked at a fixed number of times, blanks too. */
static void
long_runs_of_blanks_cost_nothing_special(void **state)
{
    char *text = arena_alloc(&heads_arena, 400100), *end = text;

    end += sprintf(end, "Foo: a");
    memset(end, ' ', 400000);
    sprintf(end + 400000, "b\r\n");
    assert_true(matches("Vary: Foo\r\n", text, text));
    assert_false(matches("Vary: Foo\r\n", text, "Foo: a b\r\n"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_is_sorted_lower_case_and_names_each_field_once),
        cmocka_unit_test(without_vary_everybody_selects_it),
        cmocka_unit_test(all_selecting_fields_must_match),
        cmocka_unit_test(absent_matches_absent_only),
        cmocka_unit_test(lines_and_white_space_around_commas_do_not_count),
        cmocka_unit_test(white_space_inside_quotes_counts),
        cmocka_unit_test(languages_and_codings_have_no_case),
        cmocka_unit_test(a_star_or_no_field_name_never_matches),
        cmocka_unit_test(too_many_names_never_match),
        cmocka_unit_test(long_runs_of_blanks_cost_nothing_special),
    };

    return cmocka_run_group_tests(tests, heads_init, heads_free);
}
