/* test_h1_write - a head with edits as HTTP/1.1 text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/h1_write.h"

static struct field lines[] = {
    {{"Server", 6}, {"o", 1}, FIELD_SERVER},
    {{"Set-Cookie", 10}, {"a=1", 3}, FIELD_SET_COOKIE},
    {{"set-cookie", 10}, {"b=2", 3}, FIELD_SET_COOKIE},
    {{"X-Own", 5}, {"v", 1}, FIELD_OTHER},
};
static const struct fields STORED = {lines, 4, 4};

static void
assert_written(const struct edits *e, const char *expected)
{
    struct buf b = {0};

    h1_write_edited(&b, SPAN("the block as it is\r\n"), &STORED, e);
    assert_int_equal(b.n, strlen(expected));
    assert_memory_equal(b.at, expected, b.n);
    buf_free(&b);
}

static void
without_removals_the_serialized_fields_are_copied_whole(void **state)
{
    struct edits e = {.n_removed = 0};
    struct arena a;

    arena_init(&a, NULL, 0);
    fields_add_id(&e.added, &a, FIELD_AGE, SPAN("7"));
    assert_written(&e, "the block as it is\r\nAge: 7\r\n");
    arena_free(&a);
}

static void
all_lines_of_a_removed_kind_go_and_the_others_keep_their_order_and_case(void **state)
{
    struct edits e = {.n_removed = 0};

    edits_remove(&e, FIELD_SET_COOKIE);
    assert_written(&e, "Server: o\r\nX-Own: v\r\n");
    edits_remove(&e, FIELD_SERVER);
    assert_written(&e, "X-Own: v\r\n");
}

static void
what_was_removed_may_be_added_anew(void **state)
{
    struct edits e = {.n_removed = 0};
    struct arena a;

    arena_init(&a, NULL, 0);
    edits_remove(&e, FIELD_SERVER);
    edits_remove(&e, FIELD_SET_COOKIE);
    fields_add_id(&e.added, &a, FIELD_SERVER, SPAN("cuttle"));
    assert_written(&e, "X-Own: v\r\nServer: cuttle\r\n");
    arena_free(&a);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_removals_the_serialized_fields_are_copied_whole),
        cmocka_unit_test(all_lines_of_a_removed_kind_go_and_the_others_keep_their_order_and_case),
        cmocka_unit_test(what_was_removed_may_be_added_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
