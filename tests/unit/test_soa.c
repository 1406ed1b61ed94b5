/* tests/unit/test_soa.c - how long a negative answer may be kept (RFC 2308 section 5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dns/soa.h"

#define HEADER(questions, answers, authorities)                                                    \
    "\x12\x34\x81\x83\0" questions "\0" answers "\0" authorities "\0\0"
#define QUESTION "\4nope\4test\0\0\1\0\1"
#define NUMBERS(minimum) "\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4" minimum
/* MNAME a pointer, RNAME "root" and a pointer: 2 + 7 + 20 bytes. */
#define SOA(ttl, minimum)                                                                          \
    "\xc0\x11\0\6\0\1" ttl "\0\x1d\xc0\x11\4root\xc0\x11" NUMBERS(minimum)
#define ALIAS "\xc0\x0c\0\5\0\1\0\0\0\5\0\2\xc0\x11"
#define NS "\xc0\x11\0\2\0\1\0\0\0\5\0\2\xc0\x11"

static void
assert_ttl(struct span message, uint32_t expected_s)
{
    uint32_t ttl_s = 4711;

    assert_true(soa_negative_ttl(message, &ttl_s));
    assert_int_equal(ttl_s, expected_s);
}

/* "the minimum of the SOA.MINIMUM field and SOA's TTL" */
static void
the_smaller_of_ttl_and_minimum_counts(void **state)
{
    assert_ttl(SPAN(HEADER("\1", "\0", "\1") QUESTION SOA("\0\0\0\x3c", "\0\0\0\x1e")), 30);
    assert_ttl(SPAN(HEADER("\1", "\0", "\1") QUESTION SOA("\0\0\0\x14", "\0\0\0\x1e")), 20);
    assert_ttl(SPAN(HEADER("\1", "\0", "\1") QUESTION SOA("\0\1\0\0", "\0\2\0\0")), 65536);
}

/* RFC 2308 section 2.1: an alias may come first, NS records may stand beside the SOA. */
static void
answers_and_other_authorities_are_passed_over(void **state)
{
    assert_ttl(SPAN(HEADER("\1", "\1", "\2") QUESTION ALIAS NS SOA("\0\0\0\7", "\0\0\0\x1e")), 7);
}

/* RFC 2181 section 8: the highest bit set is to be taken for zero. */
static void
a_negative_ttl_is_zero(void **state)
{
    assert_ttl(SPAN(HEADER("\1", "\0", "\1") QUESTION SOA("\x80\0\0\0", "\0\0\0\x1e")), 0);
    assert_ttl(SPAN(HEADER("\1", "\0", "\1") QUESTION SOA("\0\0\0\x1e", "\xff\xff\xff\xff")), 0);
}

static void
a_message_without_soa_says_nothing(void **state)
{
    uint32_t ttl_s;

    assert_false(soa_negative_ttl(SPAN(HEADER("\1", "\0", "\0") QUESTION), &ttl_s));
    assert_false(soa_negative_ttl(SPAN(HEADER("\1", "\0", "\1") QUESTION NS), &ttl_s));
    assert_false(soa_negative_ttl(SPAN_NONE, &ttl_s));
    /* The SOA must stand in the authority section, not among the answers. */
    assert_false(soa_negative_ttl(
        SPAN(HEADER("\1", "\1", "\0") QUESTION SOA("\0\0\0\7", "\0\0\0\7")), &ttl_s));
}

static void
a_message_cut_anywhere_says_nothing(void **state)
{
    struct span whole =
        SPAN(HEADER("\1", "\1", "\2") QUESTION ALIAS NS SOA("\0\0\0\7", "\0\0\0\7"));
    uint32_t ttl_s;

    for (size_t n = 0; n < whole.n; n++)
        assert_false(soa_negative_ttl(span_first(whole, n), &ttl_s));
}

/* Counts may say 65535 of everything; labels longer than 63 are no labels (RFC 1035 4.1.4). */
static void
lies_in_the_counts_and_labels_are_harmless(void **state)
{
    uint32_t ttl_s;

    assert_false(soa_negative_ttl(SPAN("\0\0\0\0\xff\xff\xff\xff\xff\xff\0\0" QUESTION), &ttl_s));
    assert_false(soa_negative_ttl(SPAN(HEADER("\0", "\0", "\1") "\x40"), &ttl_s));
    assert_false(soa_negative_ttl(SPAN(HEADER("\0", "\0", "\1") "\xc0"), &ttl_s));
    /* RDATA too short for its five numbers, though the message goes on. */
    assert_false(soa_negative_ttl(
        SPAN(HEADER("\0", "\0", "\1") "\0\0\6\0\1\0\0\0\1\0\5\0\0\1\2\3" NUMBERS("\0\0\0\1")),
        &ttl_s));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smaller_of_ttl_and_minimum_counts),
        cmocka_unit_test(answers_and_other_authorities_are_passed_over),
        cmocka_unit_test(a_negative_ttl_is_zero),
        cmocka_unit_test(a_message_without_soa_says_nothing),
        cmocka_unit_test(a_message_cut_anywhere_says_nothing),
        cmocka_unit_test(lies_in_the_counts_and_labels_are_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
