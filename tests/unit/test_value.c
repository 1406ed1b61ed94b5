/* test_value - sizes, times, numbers and switches as people write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conf/value.h"

static unsigned
size_of(const char *text, int64_t unit, int64_t *value)
{
    struct buf words = {0};
    unsigned n = lexer_words(span_str(text), &words);
    unsigned used = value_size((const struct word *)words.at, n, unit, value);

    buf_free(&words);
    return used;
}

static unsigned
time_of(const char *text, int64_t unit_ms, int64_t *value)
{
    struct buf words = {0};
    unsigned n = lexer_words(span_str(text), &words);
    unsigned used = value_time((const struct word *)words.at, n, unit_ms, value);

    buf_free(&words);
    return used;
}

#define assert_size(text, words_used, bytes)                                                       \
    do {                                                                                           \
        int64_t value_ = -77;                                                                      \
        assert_int_equal(size_of(text, 1, &value_), words_used);                                   \
        assert_int_equal(value_, bytes);                                                           \
    } while (0)

#define assert_time(text, words_used, ms)                                                          \
    do {                                                                                           \
        int64_t value_ = -77;                                                                      \
        assert_int_equal(time_of(text, 1000, &value_), words_used);                                \
        assert_int_equal(value_, ms);                                                              \
    } while (0)

static void
sizes_have_a_unit_in_the_same_word_or_the_next(void **state)
{
    assert_size("256 MB", 2, 256 << 20);
    assert_size("256MB", 1, 256 << 20);
    assert_size("8 GB", 2, INT64_C(8) << 30);
    assert_size("1 bytes", 2, 1);
    assert_size("0", 1, 0);
    assert_size("0 KB", 2, 0);
    assert_size("64 kb", 2, 64 << 10);
    assert_size("2 TB", 2, INT64_C(2) << 40);
    assert_size("1.5 GB", 2, INT64_C(3) << 29);
    assert_size("512", 1, 512);
    assert_size("512 allow", 1, 512); /* the second word is not a unit: it is the caller's */
}

static void
a_bare_number_counts_in_the_unit_of_the_directive(void **state)
{
    int64_t value;

    assert_int_equal(size_of("16", 1024, &value), 1);
    assert_int_equal(value, 16384);
    assert_int_equal(time_of("250", 1, &value), 1);
    assert_int_equal(value, 250);
}

static void
minus_one_and_none_mean_no_limit_whatever_the_unit(void **state)
{
    assert_size("-1", 1, -1);
    assert_size("-1 KB", 2, -1);
    assert_size("none", 1, -1);
}

static void
what_is_no_size_takes_no_word(void **state)
{
    int64_t value;

    assert_int_equal(size_of("", 1, &value), 0);
    assert_int_equal(size_of("MB", 1, &value), 0);
    assert_int_equal(size_of("-2 MB", 1, &value), 0);
    assert_int_equal(size_of("-10", 1, &value), 0);
    assert_int_equal(size_of("10XB", 1, &value), 0);
    assert_int_equal(size_of("0x10", 1, &value), 0);
    assert_int_equal(size_of("100%", 1, &value), 0);
    assert_int_equal(size_of("${CACHEMEM} MB", 1, &value), 0);
}

static void
what_does_not_fit_is_no_size(void **state)
{
    int64_t value;

    assert_int_equal(size_of("9999999999 GB", 1, &value), 0);
    assert_int_equal(size_of("9223372036854775808", 1, &value), 0);
    assert_int_equal(size_of("999999999999999999", 1, &value), 1);
    assert_int_equal(size_of("8388608 TB", 1, &value), 0); /* one too many: 2^63 */
    assert_int_equal(size_of("8388607 TB", 1, &value), 2);
}

static void
times_take_squids_units_in_singular_and_plural(void **state)
{
    assert_time("30 seconds", 2, 30000);
    assert_time("1 second", 2, 1000);
    assert_time("1 minute", 2, 60000);
    assert_time("2 hours", 2, 7200000);
    assert_time("1 days", 2, 86400000);
    assert_time("1 week", 2, INT64_C(604800000));
    assert_time("5 month", 2, INT64_C(150) * 86400000);
    assert_time("250 milliseconds", 2, 250);
    assert_time("1.5 hours", 2, 5400000);
    assert_time("30", 1, 30000);
    assert_time("30s", 1, 30000);
    assert_time("0 seconds", 2, 0);
}

static void
what_is_no_time_takes_no_word(void **state)
{
    int64_t value;

    assert_int_equal(time_of("soon", 1000, &value), 0);
    assert_int_equal(time_of("3 parsecs", 1000, &value), 1);
    assert_int_equal(time_of("3parsecs", 1000, &value), 0);
    assert_int_equal(time_of("99999999999999 weeks", 1000, &value), 0);
}

static void
switches_are_on_or_off(void **state)
{
    bool on = false;

    assert_true(value_flag(SPAN("on"), &on) && on);
    assert_true(value_flag(SPAN("OFF"), &on) && !on);
    assert_true(value_flag(SPAN("enable"), &on) && on);
    assert_false(value_flag(SPAN("maybe"), &on));
    assert_false(value_flag(SPAN(""), &on));
}

static void
numbers_are_decimal(void **state)
{
    int64_t n;

    assert_true(value_number(SPAN("-12"), &n) && n == -12);
    assert_true(value_number(SPAN("9223372036854775807"), &n) && n == INT64_MAX);
    assert_false(value_number(SPAN("9223372036854775808"), &n));
    assert_false(value_number(SPAN("12a"), &n));
    assert_false(value_number(SPAN("-"), &n));
    assert_false(value_number(SPAN(""), &n));
    assert_true(value_octal(SPAN("0027"), &n) && n == 027);
    assert_false(value_octal(SPAN("028"), &n));
    assert_false(value_octal(SPAN("00027"), &n));
    assert_false(value_octal(SPAN(""), &n));
}

static void
values_are_written_in_the_largest_whole_unit(void **state)
{
    char text[VALUE_TEXT_MAX];

    value_size_text(256 << 20, text);
    assert_string_equal(text, "256 MB");
    value_size_text((1 << 20) + 1, text);
    assert_string_equal(text, "1048577 bytes");
    value_size_text(0, text);
    assert_string_equal(text, "0");
    value_size_text(-1, text);
    assert_string_equal(text, "-1");
    value_time_text(60000, text);
    assert_string_equal(text, "1 minute");
    value_time_text(90000, text);
    assert_string_equal(text, "90 seconds");
    value_time_text(250, text);
    assert_string_equal(text, "250 milliseconds");
    value_time_text(0, text);
    assert_string_equal(text, "0 seconds");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_have_a_unit_in_the_same_word_or_the_next),
        cmocka_unit_test(a_bare_number_counts_in_the_unit_of_the_directive),
        cmocka_unit_test(minus_one_and_none_mean_no_limit_whatever_the_unit),
        cmocka_unit_test(what_is_no_size_takes_no_word),
        cmocka_unit_test(what_does_not_fit_is_no_size),
        cmocka_unit_test(times_take_squids_units_in_singular_and_plural),
        cmocka_unit_test(what_is_no_time_takes_no_word),
        cmocka_unit_test(switches_are_on_or_off),
        cmocka_unit_test(numbers_are_decimal),
        cmocka_unit_test(values_are_written_in_the_largest_whole_unit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
