/* test_h1_write - a head with edits as HTTP/1.1 text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

/* RFC 9112 section 3.2: Host first; section 6: one framing, or none. */
static void
a_request_has_host_first_and_its_framing_last(void **state)
{
    static const struct {
        struct framed body;
        const char *framing;
    } rows[] = {{{.how = FRAMING_NONE}, ""},
                {{.how = FRAMING_CHUNKED}, "Transfer-Encoding: chunked\r\n"},
                {{.how = FRAMING_LENGTH, .length = 18446744073709551ULL},
                 "Content-Length: 18446744073709551\r\n"},
                {{.how = FRAMING_LENGTH}, "Content-Length: 0\r\n"}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct request_to_send r = {SPAN("POST"), SPAN("/a?b"), SPAN("o:81"), STORED, rows[i].body};
        struct buf b = {0};
        char expected[300];

        snprintf(expected, sizeof expected,
                 "POST /a?b HTTP/1.1\r\nHost: o:81\r\nServer: o\r\nSet-Cookie: a=1\r\n"
                 "set-cookie: b=2\r\nX-Own: v\r\n%s\r\n",
                 rows[i].framing);
        h1_write_request(&b, &r);
        assert_int_equal(b.n, strlen(expected));
        assert_memory_equal(b.at, expected, b.n);
        buf_free(&b);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_removals_the_serialized_fields_are_copied_whole),
        cmocka_unit_test(all_lines_of_a_removed_kind_go_and_the_others_keep_their_order_and_case),
        cmocka_unit_test(what_was_removed_may_be_added_anew),
        cmocka_unit_test(a_request_has_host_first_and_its_framing_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
