/* tests/unit/test_buf.c - owned, growing bytes (base/buf.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"

static void
assert_holds(const struct buf *b, const char *text)
{
    assert_int_equal(b->n, strlen(text));
    assert_memory_equal(b->at ? b->at : "", text, b->n);
}

static void
a_zeroed_buf_is_empty_and_holds_no_memory(void **state)
{
    struct buf b = {0};

    assert_int_equal(buf_span(&b).n, 0);
    buf_add(&b, SPAN_NONE);
    buf_add(&b, SPAN(""));
    assert_null(b.at);
    buf_free(&b);
    buf_free(&b);
}

static void
what_is_added_comes_in_order(void **state)
{
    struct buf b = {0};

    BUF_ADD(&b, "GET ");
    buf_add_char(&b, '/');
    buf_add_uint(&b, 0);
    buf_add_uint(&b, UINT64_MAX);
    buf_addf(&b, " %s/%d", "HTTP", 1);
    buf_addf(&b, "%s", "");
    assert_holds(&b, "GET /018446744073709551615 HTTP/1");
    buf_free(&b);
}

static void
it_grows_without_losing_a_byte(void **state)
{
    struct buf b = {0};

    for (unsigned i = 0; i < 100000; i++)
        buf_add_char(&b, (char)('a' + i % 26));
    assert_int_equal(b.n, 100000);
    assert_true(b.cap < 300000);
    for (unsigned i = 0; i < 100000; i++)
        assert_int_equal(b.at[i], 'a' + i % 26);
    buf_free(&b);
}

static void
a_long_format_fits(void **state)
{
    struct buf b = {0};
    char *text = test_malloc(5001);

    memset(text, 'x', 5000);
    text[5000] = '\0';
    BUF_ADD(&b, "<");
    buf_addf(&b, "%s>", text);
    assert_int_equal(b.n, 5002);
    assert_int_equal(b.at[5001], '>');
    test_free(text);
    buf_free(&b);
}

static void
reserved_room_can_be_filled_to_the_last_byte(void **state)
{
    struct buf b = {0};
    char *room;

    BUF_ADD(&b, "ab");
    room = buf_reserve(&b, 1000);
    assert_ptr_equal(room, b.at + 2);
    assert_true(b.cap - b.n >= 1000);
    memset(room, 'c', 1000);
    b.n += 1000;
    assert_ptr_equal(buf_reserve(&b, 0), b.at + b.n);
    assert_memory_equal(b.at, "abccc", 5);
    buf_free(&b);
}

static void
dropping_from_the_front_keeps_the_rest_and_frees_when_nothing_is_left(void **state)
{
    struct buf b = {0};

    BUF_ADD(&b, "0123456789");
    buf_drop_front(&b, 0);
    assert_holds(&b, "0123456789");
    buf_drop_front(&b, 4);
    assert_holds(&b, "456789");
    BUF_ADD(&b, "!");
    assert_holds(&b, "456789!");
    buf_drop_front(&b, 7);
    assert_null(b.at);
    assert_int_equal(b.cap, 0);
    buf_drop_front(&b, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zeroed_buf_is_empty_and_holds_no_memory),
        cmocka_unit_test(what_is_added_comes_in_order),
        cmocka_unit_test(it_grows_without_losing_a_byte),
        cmocka_unit_test(a_long_format_fits),
        cmocka_unit_test(reserved_room_can_be_filled_to_the_last_byte),
        cmocka_unit_test(dropping_from_the_front_keeps_the_rest_and_frees_when_nothing_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
