/* tests/unit/test_record.c - records on disk (cache/disk/record.h). */
#include "cache/disk/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const uint64_t sums[3] = {1, 2, UINT64_MAX};

static struct record
example(void)
{
    return (struct record){
        .digest = {0x1122334455667788, 0x99aabbccddeeff00},
        .generation = 7,
        .sequence = 9,
        .status = 404,
        .response_wall_ms = INT64_C(1893456000123),
        .initial_age_s = 17,
        .had_authorization = true,
        .is_part = true,
        .part_from = 100,
        .part_whole = UINT64_MAX >> 1,
        .body_bytes = 2 * RECORD_BLOCK + 1,
        .uri = SPAN("http://o.example/x"),
        .vary = SPAN("accept: a\n"),
        .reason = SPAN("Gone fishing"),
        .block = SPAN("A: b\r\nC: d\r\n"),
        .range = SPAN("bytes=1-2"),
        .trailer = SPAN("X: y\r\n"),
    };
}

static char *
encoded(const struct record *r, size_t *n)
{
    char *bytes = malloc(record_head_bytes(r));

    *n = record_head_bytes(r);
    record_encode(r, sums, bytes);
    return bytes;
}

static void
assert_same(struct span a, struct span b)
{
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.at, b.at, a.n);
}

static void
what_is_encoded_is_decoded(void **state)
{
    struct record r = example(), got;
    size_t n, head_bytes;
    char *bytes = encoded(&r, &n);

    assert_int_equal(record_decode(span_of(bytes, n), &got, &head_bytes), RECORD_OK);
    assert_int_equal(head_bytes, n);
    assert_int_equal(got.digest[1], r.digest[1]);
    assert_int_equal(got.sequence, 9);
    assert_int_equal(got.status, 404);
    assert_int_equal(got.response_wall_ms, r.response_wall_ms);
    assert_int_equal(got.part_whole, r.part_whole);
    assert_true(got.had_authorization && got.is_part && !got.date_given);
    assert_same(got.uri, r.uri);
    assert_same(got.vary, r.vary);
    assert_same(got.reason, r.reason);
    assert_same(got.block, r.block);
    assert_same(got.range, r.range);
    assert_same(got.trailer, r.trailer);
    assert_int_equal(got.sums.n, sizeof sums);
    assert_memory_equal(got.sums.at, sums, sizeof sums);
    free(bytes);
}

static void
a_ban_has_a_prefix_and_nothing_else(void **state)
{
    struct record r = {.kind = RECORD_BAN, .sequence = 9, .uri = SPAN("http://o.example/a/")}, got;
    size_t n, head_bytes;
    char *bytes = encoded(&r, &n);

    assert_int_equal(record_decode(span_of(bytes, n), &got, &head_bytes), RECORD_OK);
    assert_int_equal(got.kind, RECORD_BAN);
    assert_int_equal(got.status, 0);
    assert_int_equal(record_bytes(&got), n);
    assert_same(got.uri, r.uri);
    free(bytes);
}

static void
sizes_are_aligned(void **state)
{
    struct record r = example();

    assert_int_equal(record_head_bytes(&r) % RECORD_ALIGN, 0);
    assert_int_equal(record_bytes(&r), record_head_bytes(&r) + 2 * RECORD_BLOCK + RECORD_ALIGN);
    assert_int_equal(record_blocks(0), 0);
    assert_int_equal(record_blocks(1), 1);
    assert_int_equal(record_blocks(RECORD_BLOCK), 1);
}

static void
every_flipped_bit_is_noticed(void **state)
{
    struct record r = example(), got;
    size_t n, head_bytes;
    char *bytes = encoded(&r, &n);

    for (size_t bit = 0; bit < n * 8; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        assert_int_not_equal(record_decode(span_of(bytes, n), &got, &head_bytes), RECORD_OK);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    free(bytes);
}

static void
what_ends_too_early_is_no_record_yet(void **state)
{
    struct record r = example(), got;
    size_t n, head_bytes;
    char *bytes = encoded(&r, &n);

    for (size_t i = 0; i < n; i++) {
        char *exact = malloc(i + 1); /* a read behind the end is found */

        memcpy(exact, bytes, i);
        assert_int_equal(record_decode(span_of(exact, i), &got, &head_bytes), RECORD_MORE);
        assert_true(head_bytes == 0 || head_bytes == n);
        free(exact);
    }
    free(bytes);
}

static void
blocks_have_their_own_sums(void **state)
{
    uint64_t sum = record_sum(SPAN("hello"));
    struct record r = {.sums = span_of(&sum, sizeof sum)};

    assert_true(record_block_is_sound(&r, 0, SPAN("hello")));
    assert_false(record_block_is_sound(&r, 0, SPAN("hellp")));
    assert_false(record_block_is_sound(&r, 1, SPAN("hello")));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_encoded_is_decoded),
        cmocka_unit_test(a_ban_has_a_prefix_and_nothing_else),
        cmocka_unit_test(sizes_are_aligned),
        cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(what_ends_too_early_is_no_record_yet),
        cmocka_unit_test(blocks_have_their_own_sums),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
