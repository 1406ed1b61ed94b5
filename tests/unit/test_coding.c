/* test_coding - gzip and deflate undone, whole and in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/coding.h"

/* "hello, hello, hello\n" in four wrappings. */
#define BARE "\xcb\x48\xcd\xc9\xc9\xd7\x51\xc8\x40\xa2\xb8\x00"
#define TAIL "\xe7\x42\x6e\x52\x14\x00\x00\x00"
#define GZIP "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff" BARE TAIL
#define HELLO "hello, hello, hello\n"

static enum coding_state
decode_in_pieces(enum coding_kind kind, struct span in, size_t piece, size_t room, char *out,
                 size_t *n)
{
    struct coding *c = coding_new(kind);
    enum coding_state state;
    size_t made;

    *n = 0;
    do {
        struct span some = span_first(in, piece);
        size_t before = some.n;

        state = coding_decode(c, &some, out + *n, room, &made);
        *n += made;
        in = span_skip(in, before - some.n);
        if (made == 0 && before == some.n)
            break;
    } while (state != CODING_BAD);
    coding_free(&c);
    assert_null(c);
    return state;
}

static void
assert_says_hello(enum coding_kind kind, struct span in, unsigned times)
{
    static const size_t sizes[] = {1, 2, 7, 1000};
    char out[2000];
    size_t n;

    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < 4; j++) {
            assert_int_equal(decode_in_pieces(kind, in, sizes[i], sizes[j], out, &n), CODING_END);
            assert_int_equal(n, times * 20);
            for (unsigned k = 0; k < times; k++)
                assert_memory_equal(out + 20 * k, HELLO, 20);
        }
}

static void
gzip_is_unpacked(void **state)
{
    assert_says_hello(CODING_GZIP, SPAN(GZIP), 1);
}

static void
members_one_behind_the_other_are_one_stream(void **state)
{
    assert_says_hello(CODING_GZIP, SPAN(GZIP GZIP GZIP), 3);
}

static void
zeros_behind_a_member_are_padding(void **state)
{
    assert_says_hello(CODING_GZIP, SPAN(GZIP "\0\0\0"), 1);
    assert_says_hello(CODING_GZIP, SPAN(GZIP "\0\0\0" GZIP), 2);
}

static void
deflate_is_unpacked_with_and_without_its_wrapping(void **state)
{
    assert_says_hello(CODING_DEFLATE, SPAN(BARE), 1);
    assert_says_hello(CODING_DEFLATE, SPAN("\x78\xda" BARE "\x4b\x07\x06\xdf"), 1);
}

static void
what_follows_the_stream_is_left(void **state)
{
    struct coding *c = coding_new(CODING_GZIP);
    struct span in = SPAN(GZIP "rest");
    char out[100];
    size_t made;

    assert_int_equal(coding_decode(c, &in, out, sizeof(out), &made), CODING_END);
    assert_int_equal(made, 20);
    assert_true(span_eq(in, SPAN("rest")));
    coding_free(&c);
}

static void
a_cut_stream_does_not_end(void **state)
{
    char out[100];
    size_t n;

    for (size_t cut = 0; cut < sizeof(GZIP) - 1; cut++)
        assert_int_equal(
            decode_in_pieces(CODING_GZIP, span_of(GZIP, cut), 5, sizeof(out) - 20, out, &n),
            CODING_MORE);
}

static void
damage_is_bad(void **state)
{
    char bytes[] = GZIP, out[100];
    size_t n;

    bytes[sizeof(GZIP) - 8] ^= 1; /* the checksum */
    assert_int_equal(
        decode_in_pieces(CODING_GZIP, span_of(bytes, sizeof(bytes) - 1), 100, 50, out, &n),
        CODING_BAD);
    assert_int_equal(n, 20);
    assert_int_equal(decode_in_pieces(CODING_GZIP, SPAN("plain text"), 100, 50, out, &n),
                     CODING_BAD);
}

static void
no_more_than_the_room_is_written(void **state)
{
    struct coding *c = coding_new(CODING_GZIP);
    struct span in = SPAN(GZIP);
    char out[4] = "...!";
    size_t made;

    assert_int_equal(coding_decode(c, &in, out, 3, &made), CODING_MORE);
    assert_int_equal(made, 3);
    assert_memory_equal(out, "hel!", 4);
    coding_free(&c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gzip_is_unpacked),
        cmocka_unit_test(members_one_behind_the_other_are_one_stream),
        cmocka_unit_test(zeros_behind_a_member_are_padding),
        cmocka_unit_test(deflate_is_unpacked_with_and_without_its_wrapping),
        cmocka_unit_test(what_follows_the_stream_is_left),
        cmocka_unit_test(a_cut_stream_does_not_end),
        cmocka_unit_test(damage_is_bad),
        cmocka_unit_test(no_more_than_the_room_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
