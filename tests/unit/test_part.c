/* tests/unit/test_part.c - parts of representations (cache/part.h). */
#include "cache/part.h"

#include "tests/unit/heads.h"

static struct part
part_of(const char *fields, uint64_t body_bytes)
{
    struct response_head r = response(.status = 206, .fields = fields);
    struct part p;

    assert_true(part_of_response(&r, body_bytes, SPAN("bytes=1-2"), &p));
    return p;
}

static bool
answers(struct part p, uint64_t n_bytes, const char *range)
{
    struct byte_range cut;

    return part_answers(&p, n_bytes, span_str(range), &cut);
}

/* RFC 9110 section 15.3.7: Content-Range says which bytes these are. */
static void
content_range_and_length_place_a_part(void **state)
{
    struct part p = part_of("Content-Range: bytes 10-19/100\r\n", 10);

    assert_int_equal(p.from, 10);
    assert_int_equal(p.whole, 100);
}

static void
a_part_whose_place_is_in_doubt_is_not_placed(void **state)
{
    static const char *const fields[] = {
        "Content-Range: bytes 10-20/100\r\n",
        "Content-Range: bytes 10-19/*\r\n",
        "Content-Range: bytes 10-19/15\r\n",
        "Content-Range: lines 10-19/100\r\n",
        "Content-Range: bytes 10-19/100\r\nContent-Range: bytes 10-19/100\r\n",
        "Content-Type: multipart/byteranges; boundary=x\r\n"};

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        struct part p = part_of(fields[i], 10);

        assert_int_equal(p.whole, 0);
        assert_span(p.range, "bytes=1-2");
    }
    assert_int_equal(part_of("Content-Range: bytes 10-19/100\r\n", UINT64_MAX).whole, 0);
}

static void
what_is_no_part_is_none(void **state)
{
    struct response_head whole =
        response(.status = 200, .fields = "Content-Range: bytes 0-9/10\r\n");
    struct response_head odd = response(.status = 206, .fields = "Content-Type: text/plain\r\n");
    struct part p;

    assert_false(part_of_response(&whole, 10, SPAN("bytes=0-9"), &p));
    assert_false(part_of_response(&odd, 10, SPAN("bytes=0-9"), &p));
}

/* RFC 9111 section 3.3: for the bytes it has. */
static void
a_placed_part_answers_what_lies_within_it(void **state)
{
    struct part p = {.from = 10, .whole = 100};
    struct byte_range cut;

    assert_true(part_answers(&p, 10, SPAN("bytes=12-15"), &cut));
    assert_int_equal(cut.first, 12);
    assert_int_equal(cut.last, 15);
    assert_true(answers(p, 10, "bytes=10-19"));
    assert_false(answers(p, 10, "bytes=9-19"));
    assert_false(answers(p, 10, "bytes=10-20"));
    assert_false(answers(p, 10, "bytes=10-"));
    assert_false(answers(p, 10, "bytes=11-12,14-15"));
    assert_false(answers(p, 10, "bytes=100-"));
    assert_true(answers((struct part){.from = 90, .whole = 100}, 10, "bytes=-3"));
    assert_true(answers((struct part){.from = 90, .whole = 100}, 10, "bytes=95-200"));
}

static void
a_part_without_a_place_answers_the_same_range_alone(void **state)
{
    struct part p = {.range = SPAN("bytes=-5")};

    assert_true(answers(p, 10, "bytes=-5"));
    assert_false(answers(p, 10, "bytes=-4"));
}

/* RFC 9110 section 15.3.7.3. */
static void
only_equal_strong_validators_make_parts_the_same(void **state)
{
    const char *lm = DATE_T0 "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    const char *same_second = DATE_T0 "Last-Modified: Tue, 01 Jan 2030 00:00:00 GMT\r\n";
    struct head *a = stored_response(.fields = "ETag: \"a\"\r\n");
    struct head *b = stored_response(.fields = "ETag: \"b\"\r\n");
    struct head *weak = stored_response(.fields = "ETag: W/\"a\"\r\n");
    struct head *dated = stored_response(.fields = lm);
    struct head *young = stored_response(.fields = same_second);
    struct head *nothing = stored_response(.fields = "");

    assert_true(part_is_same(a, a));
    assert_false(part_is_same(a, b));
    assert_false(part_is_same(weak, weak));
    assert_true(part_is_same(dated, dated));
    assert_false(part_is_same(young, young));
    assert_false(part_is_same(a, dated));
    assert_false(part_is_same(nothing, nothing));
    assert_true(part_may_grow(a) && part_may_grow(dated));
    assert_false(part_may_grow(weak) || part_may_grow(young) || part_may_grow(nothing));
    assert_span(part_validator(a), "\"a\"");
    assert_span(part_validator(dated), "Sun, 06 Nov 1994 08:49:37 GMT");
}

/* RFC 9111 section 3.4. */
static void
a_part_joins_what_it_touches_and_what_goes_further(void **state)
{
    struct part p = {.from = 10, .whole = 100};

    assert_true(part_joins(&p, 10, 20, 30));
    assert_true(part_joins(&p, 10, 15, 30));
    assert_true(part_joins(&p, 10, 10, 30));
    assert_false(part_joins(&p, 10, 21, 30));
    assert_false(part_joins(&p, 10, 9, 30));
    assert_false(part_joins(&p, 10, 12, 20));
    assert_false(part_joins(&(struct part){.range = SPAN("x")}, 10, 0, 30));
}

static void
a_newer_part_replaces_what_it_holds(void **state)
{
    struct part wide = {.from = 10, .whole = 100}, narrow = {.from = 15, .whole = 100};
    struct part other = {.from = 15, .whole = 99}, once = {.range = SPAN("bytes=1-2")};

    assert_true(part_replaces(&wide, 20, &narrow, 5));
    assert_true(part_replaces(&wide, 20, &narrow, 15));
    assert_false(part_replaces(&wide, 20, &narrow, 16));
    assert_false(part_replaces(&narrow, 5, &wide, 20));
    assert_true(part_replaces(&other, 1, &wide, 20));
    assert_true(part_replaces(&once, 5, &once, 9));
    assert_false(part_replaces(&once, 5, &wide, 5));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(content_range_and_length_place_a_part),
        cmocka_unit_test(a_part_whose_place_is_in_doubt_is_not_placed),
        cmocka_unit_test(what_is_no_part_is_none),
        cmocka_unit_test(a_placed_part_answers_what_lies_within_it),
        cmocka_unit_test(a_part_without_a_place_answers_the_same_range_alone),
        cmocka_unit_test(only_equal_strong_validators_make_parts_the_same),
        cmocka_unit_test(a_part_joins_what_it_touches_and_what_goes_further),
        cmocka_unit_test(a_newer_part_replaces_what_it_holds),
    };

    return cmocka_run_group_tests(tests, heads_init, heads_free);
}
