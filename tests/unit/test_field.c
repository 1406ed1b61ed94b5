/* test_field - field names, field lines and lists of RFC 9110 section 5. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>

#include "http/field.h"

static struct arena arena;

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

#define assert_span(is, want)                                                                      \
    do {                                                                                           \
        struct span got_ = (is);                                                                   \
        if (!span_eq(got_, span_str(want)))                                                        \
            fail_msg("\"%.*s\" is not \"%s\"", SPAN_ARG(got_), want);                              \
    } while (0)

static void
every_name_is_found_in_any_case(void **state)
{
    for (unsigned id = 1; id < FIELDS; id++) {
        struct span name = field_name((enum field_id)id);
        char other[64];

        for (size_t i = 0; i < name.n; i++)
            other[i] = (char)(i % 2 ? toupper(name.at[i]) : tolower(name.at[i]));
        assert_int_equal(field_id_of(name), id);
        assert_int_equal(field_id_of(span_of(other, name.n)), id);
        assert_int_not_equal(field_id_of(span_of(other, name.n - 1)), id);
    }
}

/* Folding case by one bit would take these for letters or for the hyphen. */
static void
near_misses_are_other_names(void **state)
{
    for (unsigned id = 1; id < FIELDS; id++) {
        struct span name = field_name((enum field_id)id);
        char near[64];

        for (size_t i = 0; i < name.n; i++) {
            for (int bit = 0; bit < 8; bit++) {
                memcpy(near, name.at, name.n);
                near[i] = (char)(near[i] ^ (1 << bit));
                if (span_eq_ci(span_of(near, name.n), name))
                    continue;
                assert_int_not_equal(field_id_of(span_of(near, name.n)), id);
            }
        }
    }
    assert_int_equal(field_id_of(SPAN("")), FIELD_OTHER);
    assert_int_equal(field_id_of(SPAN_NONE), FIELD_OTHER);
    assert_int_equal(field_id_of(SPAN("Hos")), FIELD_OTHER);
    assert_int_equal(field_id_of(SPAN("Hostt")), FIELD_OTHER);
    assert_int_equal(field_id_of(SPAN("X-A-Name-Much-Longer-Than-Any-Of-Ours")), FIELD_OTHER);
}

/* RFC 9110 section 7.6.1 */
static void
the_table_knows_what_stays_on_this_hop(void **state)
{
    assert_true(field_is_hop_by_hop(FIELD_CONNECTION));
    assert_true(field_is_hop_by_hop(FIELD_PROXY_AUTHORIZATION));
    assert_true(field_is_hop_by_hop(FIELD_TE));
    assert_false(field_is_hop_by_hop(FIELD_HOST));
    assert_false(field_is_hop_by_hop(FIELD_OTHER));
    assert_true(field_is_framing(FIELD_CONTENT_LENGTH));
    assert_true(field_is_framing(FIELD_TRANSFER_ENCODING));
    assert_false(field_is_framing(FIELD_CONNECTION));
}

/* RFC 9110 section 5.6.2 */
static void
a_name_is_a_token(void **state)
{
    assert_true(field_name_is_token(SPAN("!#$%&'*+-.^_`|~09AZaz")));
    assert_false(field_name_is_token(SPAN("")));
    for (int c = 0; c < 256; c++) {
        char byte = (char)c;
        bool token = c != 0 && c < 128 && (isalnum(c) || strchr("!#$%&'*+-.^_`|~", c));

        assert_int_equal(field_name_is_token(span_of(&byte, 1)), token);
    }
}

static void
a_value_has_no_line_ends(void **state)
{
    assert_true(field_value_is_valid(SPAN("a b\t\xe9\x01")));
    assert_true(field_value_is_valid(SPAN("")));
    assert_false(field_value_is_valid(SPAN("a\rb")));
    assert_false(field_value_is_valid(SPAN("a\nb")));
    assert_false(field_value_is_valid(SPAN("a\0b")));
}

static struct fields
some_fields(void)
{
    struct fields f = {0};

    fields_add(&f, &arena, SPAN("via"), SPAN("1.1 a"));
    fields_add(&f, &arena, SPAN("X-A"), SPAN("1"));
    fields_add(&f, &arena, SPAN("Via"), SPAN("1.0 b, 1.1 c"));
    fields_add(&f, &arena, SPAN("x-a"), SPAN(""));
    fields_add_id(&f, &arena, FIELD_HOST, SPAN("h"));
    fields_add(&f, &arena, SPAN("X-A"), SPAN("3"));
    return f;
}

static void
lines_are_found_in_their_order(void **state)
{
    struct fields f = some_fields();
    const struct field *via = fields_find(&f, FIELD_VIA);

    assert_ptr_equal(via, &f.at[0]);
    via = fields_next(&f, FIELD_VIA, via);
    assert_ptr_equal(via, &f.at[2]);
    assert_null(fields_next(&f, FIELD_VIA, via));
    assert_int_equal(fields_count(&f, FIELD_VIA), 2);
    assert_null(fields_find(&f, FIELD_AGE));
    assert_ptr_equal(fields_find_name(&f, SPAN("HOST")), &f.at[4]);
    assert_ptr_equal(fields_find_name(&f, SPAN("X-a")), &f.at[1]);
    assert_null(fields_find_name(&f, SPAN("X-B")));
    assert_span(f.at[4].name, "Host");
    assert_span(f.at[0].name, "via");
}

static void
removal_keeps_the_order_of_the_rest(void **state)
{
    struct fields f = some_fields();

    fields_remove_name(&f, SPAN("x-A"));
    assert_int_equal(f.n, 3);
    assert_int_equal(f.at[2].id, FIELD_HOST);
    fields_remove(&f, FIELD_VIA);
    assert_int_equal(f.n, 1);
    assert_span(f.at[0].value, "h");
    fields_remove(&f, FIELD_VIA);
    fields_remove_name(&f, SPAN("Host"));
    assert_int_equal(f.n, 0);
}

static void
the_array_grows(void **state)
{
    struct fields f = {0};

    for (int i = 0; i < 1000; i++)
        fields_add(&f, &arena, SPAN("X"), arena_printf(&arena, "%d", i));
    assert_int_equal(f.n, 1000);
    assert_span(f.at[0].value, "0");
    assert_span(f.at[999].value, "999");
}

/* RFC 9110 section 5.3 */
static void
lines_are_joined_with_a_comma(void **state)
{
    struct fields f = some_fields();

    assert_span(fields_join(&f, &arena, FIELD_VIA), "1.1 a, 1.0 b, 1.1 c");
    assert_span(fields_join_name(&f, &arena, SPAN("X-A")), "1, , 3");
    assert_ptr_equal(fields_join(&f, &arena, FIELD_HOST).at, f.at[4].value.at);
    assert_null(fields_join(&f, &arena, FIELD_AGE).at);
    assert_null(fields_join_name(&f, &arena, SPAN("X-B")).at);
}

static void
assert_members(const char *list, const char *const *want)
{
    struct span rest = span_str(list), member;

    for (; *want; want++) {
        assert_true(list_next(&rest, &member));
        assert_span(member, *want);
    }
    assert_false(list_next(&rest, &member));
    assert_false(list_next(&rest, &member));
}

/* RFC 9110 sections 5.6.1.2 and 5.6.4 */
static void
lists_are_cut_at_commas_outside_quotes(void **state)
{
    assert_members("a, b ,\tc", (const char *[]){"a", "b", "c", NULL});
    assert_members(",, ,a,, b,", (const char *[]){"a", "b", NULL});
    assert_members("", (const char *[]){NULL});
    assert_members(" , \t,", (const char *[]){NULL});
    assert_members("a=\"b,c\", d", (const char *[]){"a=\"b,c\"", "d", NULL});
    assert_members("\"a\\\",b\", c", (const char *[]){"\"a\\\",b\"", "c", NULL});
    assert_members("\"a\\\\\", b", (const char *[]){"\"a\\\\\"", "b", NULL});
    assert_members("a\\, b", (const char *[]){"a\\", "b", NULL});
    assert_members("a, \"open, b", (const char *[]){"a", "\"open, b", NULL});
    assert_members("a, \"open\\", (const char *[]){"a", "\"open\\", NULL});
}

static void
tokens_are_found_over_all_lines(void **state)
{
    struct fields f = {0};

    fields_add(&f, &arena, SPAN("Connection"), SPAN("foo"));
    fields_add(&f, &arena, SPAN("Connection"), SPAN("bar;q=1 , Close"));
    assert_true(fields_has_token(&f, FIELD_CONNECTION, SPAN("close")));
    assert_true(fields_has_token(&f, FIELD_CONNECTION, SPAN("bar")));
    assert_false(fields_has_token(&f, FIELD_CONNECTION, SPAN("clos")));
    assert_false(fields_has_token(&f, FIELD_CONNECTION, SPAN("q=1")));
    assert_false(fields_has_token(&f, FIELD_UPGRADE, SPAN("foo")));
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_is_found_in_any_case),
        cmocka_unit_test(near_misses_are_other_names),
        cmocka_unit_test(the_table_knows_what_stays_on_this_hop),
        cmocka_unit_test(a_name_is_a_token),
        cmocka_unit_test(a_value_has_no_line_ends),
        cmocka_unit_test(lines_are_found_in_their_order),
        cmocka_unit_test(removal_keeps_the_order_of_the_rest),
        cmocka_unit_test(the_array_grows),
        cmocka_unit_test(lines_are_joined_with_a_comma),
        cmocka_unit_test(lists_are_cut_at_commas_outside_quotes),
        cmocka_unit_test(tokens_are_found_over_all_lines),
    };

    return cmocka_run_group_tests_name("field", tests, open_arena, close_arena);
}
