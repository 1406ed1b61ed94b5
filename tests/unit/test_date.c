/* test_date - the three date formats of RFC 9110 section 5.6.7, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/date.h"

#define NOW INT64_C(1796083200) /* Tue, 01 Dec 2026 00:00:00 GMT */
#define RFC_EXAMPLE 784111777   /* of section 5.6.7 */

static int64_t
read_at(const char *text, int64_t now_s)
{
    int64_t at_s = -7;

    return date_parse(span_str(text), now_s, &at_s) ? at_s : -1;
}

static int64_t
read(const char *text)
{
    return read_at(text, NOW);
}

/* RFC 9110 section 5.6.7: a recipient must accept all three. */
static void
the_three_formats_give_one_time(void **state)
{
    assert_int_equal(read("Sun, 06 Nov 1994 08:49:37 GMT"), RFC_EXAMPLE);
    assert_int_equal(read("Sunday, 06-Nov-94 08:49:37 GMT"), RFC_EXAMPLE);
    assert_int_equal(read("Sun Nov  6 08:49:37 1994"), RFC_EXAMPLE);
    assert_int_equal(read("Sun Nov 06 08:49:37 1994"), RFC_EXAMPLE);
}

static void
names_are_read_in_any_case(void **state)
{
    assert_int_equal(read("sUN, 06 nOV 1994 08:49:37 gmt"), RFC_EXAMPLE);
    assert_int_equal(read("SUNDAY, 06-NOV-94 08:49:37 Gmt"), RFC_EXAMPLE);
}

static void
a_day_name_that_does_not_fit_is_not_held_against_a_date(void **state)
{
    assert_int_equal(read("Mon, 06 Nov 1994 08:49:37 GMT"), RFC_EXAMPLE);
    assert_int_equal(read("Xyz, 06 Nov 1994 08:49:37 GMT"), -1);
}

/* RFC 9111 section 5.3: such an Expires means "already expired", so nothing may be guessed. */
static void
what_is_a_byte_off_is_no_date(void **state)
{
    static const char *const wrong[] = {
        "",
        "0",
        "-1",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 AEST",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun 06 Nov 1994 08:49:37 GMT",
        "Sun,  06 Nov 1994 08:49:37 GMT",
        "Sun, 06  Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08.49.37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        " Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 06 Nov 1994 08:49:37 GMTx",
        "Sun, 06 Nov 1994 08:49:37\tGMT",
        "Sun, 06 Nov 19x4 08:49:37 GMT",
        "Sun, -6 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sunday, 06 Nov 94 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Someday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov  6 08:49:37 94",
        "Sun Nov  6 08:49:37 1994 GMT",
        "Sun Nov 1  08:49:37 1994",
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (read(wrong[i]) != -1)
            fail_msg("accepted: \"%s\"", wrong[i]);
    }
}

static void
a_day_that_the_calendar_lacks_is_no_date(void **state)
{
    assert_int_equal(read("Sat, 00 Nov 1994 08:49:37 GMT"), -1);
    assert_int_equal(read("Sat, 31 Nov 1994 08:49:37 GMT"), -1);
    assert_int_equal(read("Sat, 29 Feb 2023 00:00:00 GMT"), -1);
    assert_int_equal(read("Sat, 29 Feb 1900 00:00:00 GMT"), -1);
    assert_int_equal(read("Thu, 29 Feb 2024 00:00:00 GMT"), 1709164800);
    assert_int_equal(read("Tue, 29 Feb 2000 00:00:00 GMT"), 951782400);
    assert_int_equal(read("Sun, 06 Nov 1994 24:00:00 GMT"), -1);
    assert_int_equal(read("Sun, 06 Nov 1994 23:60:00 GMT"), -1);
    assert_int_equal(read("Sun, 06 Nov 1994 23:59:61 GMT"), -1);
}

static void
a_leap_second_is_the_second_after(void **state)
{
    assert_int_equal(read("Sat, 31 Dec 2016 23:59:60 GMT"), 1483228800);
}

static void
years_before_1970_read_as_1970(void **state)
{
    assert_int_equal(read("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
    assert_int_equal(read("Wed, 31 Dec 1969 23:59:59 GMT"), 0);
    assert_int_equal(read("Mon, 01 Jan 0000 00:00:00 GMT"), 0);
}

static void
far_years_do_not_wrap(void **state)
{
    assert_int_equal(read("Tue, 19 Jan 2038 03:14:08 GMT"), INT64_C(2147483648));
    assert_int_equal(read("Fri, 31 Dec 9999 23:59:59 GMT"), INT64_C(253402300799));
}

/* RFC 9110 section 5.6.7: more than 50 years in the future means the past century. */
static void
a_two_digit_year_is_at_most_fifty_years_ahead(void **state)
{
    assert_int_equal(read("Thursday, 18-Aug-50 02:01:18 GMT"), INT64_C(2544400878));
    assert_int_equal(read("Tuesday, 01-Dec-76 00:00:00 GMT"), INT64_C(3374006400));
    assert_int_equal(read("Tuesday, 02-Dec-76 00:00:00 GMT"), INT64_C(218332800));
    assert_int_equal(read("Saturday, 01-Jan-77 00:00:00 GMT"), INT64_C(220924800));
    assert_int_equal(read_at("Friday, 01-Jan-99 00:00:00 GMT", 915148800), 915148800);
}

static void
a_formatted_date_reads_back(void **state)
{
    static const int64_t times[] = {0,
                                    1,
                                    86399,
                                    951782399,
                                    951782400,
                                    RFC_EXAMPLE,
                                    NOW,
                                    INT64_C(4107542400),
                                    INT64_C(253402300799)};
    char text[DATE_TEXT_MAX];

    assert_int_equal(date_format(RFC_EXAMPLE, text), 29);
    assert_string_equal(text, "Sun, 06 Nov 1994 08:49:37 GMT");
    date_format(NOW, text);
    assert_string_equal(text, "Tue, 01 Dec 2026 00:00:00 GMT");
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        assert_int_equal(date_format(times[i], text), 29);
        assert_int_equal(read(text), times[i]);
    }
}

static void
times_that_no_date_can_say_are_clamped(void **state)
{
    char text[DATE_TEXT_MAX];

    assert_int_equal(date_format(INT64_MAX, text), 29);
    assert_string_equal(text, "Fri, 31 Dec 9999 23:59:59 GMT");
    assert_int_equal(date_format(INT64_MIN, text), 29);
    assert_string_equal(text, "Thu, 01 Jan 1970 00:00:00 GMT");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_three_formats_give_one_time),
        cmocka_unit_test(names_are_read_in_any_case),
        cmocka_unit_test(a_day_name_that_does_not_fit_is_not_held_against_a_date),
        cmocka_unit_test(what_is_a_byte_off_is_no_date),
        cmocka_unit_test(a_day_that_the_calendar_lacks_is_no_date),
        cmocka_unit_test(a_leap_second_is_the_second_after),
        cmocka_unit_test(years_before_1970_read_as_1970),
        cmocka_unit_test(far_years_do_not_wrap),
        cmocka_unit_test(a_two_digit_year_is_at_most_fifty_years_ahead),
        cmocka_unit_test(a_formatted_date_reads_back),
        cmocka_unit_test(times_that_no_date_can_say_are_clamped),
    };

    return cmocka_run_group_tests_name("date", tests, NULL, NULL);
}
