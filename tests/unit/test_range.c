/* test_range - Range and Content-Range of RFC 9110 section 14. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/range.h"

enum { MOST = 4 };

static struct byte_range got[MOST];
static unsigned n_got;

static enum range_result
parse(const char *value, uint64_t length)
{
    return range_parse(span_str(value), length, got, MOST, &n_got);
}

#define assert_range(i, a, b)                                                                      \
    (assert_int_equal(got[i].first, (a)), assert_int_equal(got[i].last, (b)))

/* RFC 9110 section 14.1.2, its examples for 10000 bytes. */
static void
the_examples_of_the_standard(void **state)
{
    assert_int_equal(parse("bytes=0-499", 10000), RANGE_OK);
    assert_range(0, 0, 499);
    assert_int_equal(parse("bytes=-500", 10000), RANGE_OK);
    assert_range(0, 9500, 9999);
    assert_int_equal(parse("bytes=9500-", 10000), RANGE_OK);
    assert_range(0, 9500, 9999);
    assert_int_equal(parse("bytes=0-0,-1", 10000), RANGE_OK);
    assert_int_equal(n_got, 2);
    assert_range(0, 0, 0);
    assert_range(1, 9999, 9999);
}

static void
ends_behind_the_representation_are_cut(void **state)
{
    assert_int_equal(parse("bytes=5-99999999999999999999999999", 10), RANGE_OK);
    assert_range(0, 5, 9);
    assert_int_equal(parse("bytes=-99999999999999999999999999", 10), RANGE_OK);
    assert_range(0, 0, 9);
    assert_int_equal(parse("bytes=-10", 10), RANGE_OK);
    assert_range(0, 0, 9);
}

static void
unsatisfiable_when_all_lie_behind_the_end(void **state)
{
    assert_int_equal(parse("bytes=10-", 10), RANGE_UNSATISFIABLE);
    assert_int_equal(parse("bytes=-0", 10), RANGE_UNSATISFIABLE);
    assert_int_equal(parse("bytes=99999999999999999999999999-", 10), RANGE_UNSATISFIABLE);
    assert_int_equal(parse("bytes=10-,20-30", 10), RANGE_UNSATISFIABLE);
    assert_int_equal(parse("bytes=10-,9-", 10), RANGE_OK);
    assert_int_equal(n_got, 1);
    assert_range(0, 9, 9);
}

static void
bad_syntax_and_unknown_units_are_ignored(void **state)
{
    static const char *const wrong[] = {
        "",
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes=-",
        "bytes=a-b",
        "bytes=5-4",
        "bytes=1-2-3",
        "bytes=--1",
        "bytes=1",
        "bytes=+1-2",
        "bytes=0x1-2",
        "bytes= 1 - 2",
        "bytes=0-1;2-3",
        "bytes 0-1",
        "bytes=0-1,x",
        "seconds=0-1",
        "none",
        "bytes=0-1, 5-4",
        "bytes=-1x",
        " bytes=0-1",
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (parse(wrong[i], 10) != RANGE_IGNORE || n_got != 0)
            fail_msg("not ignored: \"%s\"", wrong[i]);
    }
}

static void
blanks_and_empty_members_belong_to_a_list(void **state)
{
    assert_int_equal(parse("Bytes=, 0-1 ,\t,3-4,", 10), RANGE_OK);
    assert_int_equal(n_got, 2);
    assert_range(1, 3, 4);
}

/* RFC 9110 section 14.2: many or overlapping ranges are somebody's attack. */
static void
too_many_and_overlapping_ranges_are_ignored(void **state)
{
    assert_int_equal(parse("bytes=0-0,2-2,4-4,6-6", 10), RANGE_OK);
    assert_int_equal(n_got, 4);
    assert_int_equal(parse("bytes=0-0,2-2,4-4,6-6,8-8", 10), RANGE_IGNORE);
    assert_int_equal(parse("bytes=20-,21-,22-,23-,24-", 10), RANGE_IGNORE);
    assert_int_equal(parse("bytes=0-,0-,0-", 10), RANGE_IGNORE);
    assert_int_equal(parse("bytes=0-4,5-9", 10), RANGE_OK);
}

static void
an_empty_representation_is_sent_whole(void **state)
{
    assert_int_equal(parse("bytes=0-0", 0), RANGE_IGNORE);
    assert_int_equal(parse("bytes=-1", 0), RANGE_IGNORE);
}

/* RFC 9110 section 14.4 */
static void
content_range_is_read_strictly(void **state)
{
    static const char *const wrong[] = {
        "",
        "bytes",
        "bytes 0-9",
        "bytes 0-9/",
        "bytes */100",
        "bytes 9-0/100",
        "bytes 0-100/100",
        "bytes 0-9/x",
        "bytes=0-9/100",
        "bytes  0-9/100",
        "bytes 0-9/100 ",
        "bytes -9/100",
        "bytes 0-/100",
        "items 0-9/100",
        "bytes 0-9/99999999999999999999",
        "bytes 0-9/100/100",
    };
    struct byte_range r;
    uint64_t length;
    bool known;

    assert_true(content_range_parse(SPAN("bytes 0-9/100"), &r, &known, &length));
    assert_int_equal(r.first, 0);
    assert_int_equal(r.last, 9);
    assert_true(known);
    assert_int_equal(length, 100);
    assert_true(content_range_parse(SPAN("BYTES 5-5/*"), &r, &known, &length));
    assert_int_equal(r.first, 5);
    assert_false(known);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (content_range_parse(span_str(wrong[i]), &r, &known, &length))
            fail_msg("accepted: \"%s\"", wrong[i]);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_standard),
        cmocka_unit_test(ends_behind_the_representation_are_cut),
        cmocka_unit_test(unsatisfiable_when_all_lie_behind_the_end),
        cmocka_unit_test(bad_syntax_and_unknown_units_are_ignored),
        cmocka_unit_test(blanks_and_empty_members_belong_to_a_list),
        cmocka_unit_test(too_many_and_overlapping_ranges_are_ignored),
        cmocka_unit_test(an_empty_representation_is_sent_whole),
        cmocka_unit_test(content_range_is_read_strictly),
    };

    return cmocka_run_group_tests_name("range", tests, NULL, NULL);
}
