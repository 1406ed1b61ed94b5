/* tests/unit/test_order.c - the order of addresses (RFC 8305 section 4). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "dns/order.h"

static struct addr
at(const char *text)
{
    struct addr a;

    assert_true(addr_parse(span_str(text), &a));
    return a;
}

static struct half_answer
found(int64_t ttl_s, const char *a, const char *b, const char *c)
{
    struct half_answer h = {.kind = HALF_ADDRESSES, .ttl_s = ttl_s};
    const char *all[] = {a, b, c};

    for (unsigned i = 0; i < 3 && all[i]; i++) {
        struct addr one = at(all[i]);

        half_add(&h, &one);
    }
    return h;
}

static void
assert_order(const struct dns_answer *a, const char *expected)
{
    char text[DNS_ADDRESSES * (ADDR_TEXT_MAX + 1)] = "", *to = text;

    for (unsigned i = 0; i < a->n; i++) {
        if (i > 0)
            *to++ = ' ';
        to += addr_format(&a->at[i], to);
    }
    *to = '\0';
    assert_string_equal(text, expected);
    assert_int_equal(a->status, DNS_OK);
}

static void
families_alternate_ipv6_first(void **state)
{
    struct half_answer h[HALVES] = {found(60, "2001:db8::1", "2001:db8::2", "2001:db8::3"),
                                    found(30, "192.0.2.1", "192.0.2.2", NULL)};
    struct dns_answer a;

    order_answer(h, NULL, false, &a);
    assert_order(&a, "2001:db8::1 192.0.2.1 2001:db8::2 192.0.2.2 2001:db8::3");
    assert_int_equal(a.ttl_s, 30);
    order_answer(h, NULL, true, &a);
    assert_order(&a, "192.0.2.1 2001:db8::1 192.0.2.2 2001:db8::2 2001:db8::3");
}

/* "addresses ... previously used successfully SHOULD be prioritized", the second try still being
 * of the other family. */
static void
what_worked_comes_first(void **state)
{
    struct half_answer h[HALVES] = {found(60, "2001:db8::1", "2001:db8::2", "2001:db8::3"),
                                    found(60, "192.0.2.1", "192.0.2.2", NULL)};
    struct addr worked = at("192.0.2.2"), third = at("2001:db8::3");
    struct dns_answer a;

    order_answer(h, &worked, false, &a);
    assert_order(&a, "192.0.2.2 2001:db8::1 192.0.2.1 2001:db8::2 2001:db8::3");
    order_answer(h, &third, true, &a);
    assert_order(&a, "2001:db8::3 192.0.2.1 2001:db8::1 192.0.2.2 2001:db8::2");
}

static void
the_family_that_worked_outlives_the_address(void **state)
{
    struct half_answer h[HALVES] = {found(60, "2001:db8::1", NULL, NULL),
                                    found(60, "192.0.2.1", NULL, NULL)};
    struct addr gone = at("192.0.2.99");
    struct dns_answer a;

    order_answer(h, &gone, false, &a);
    assert_order(&a, "192.0.2.1 2001:db8::1");
}

static void
one_failing_family_does_not_fail_the_name(void **state)
{
    struct half_answer h[HALVES] = {{.kind = HALF_FAILED, .ttl_s = 1},
                                    found(60, "192.0.2.1", NULL, NULL)};
    struct addr worked = at("2001:db8::1");
    struct dns_answer a;

    order_answer(h, &worked, false, &a);
    assert_order(&a, "192.0.2.1");
    assert_int_equal(a.ttl_s, 60);
}

static void
an_address_is_listed_once_and_without_port(void **state)
{
    struct half_answer h = {.kind = HALF_ADDRESSES};
    struct addr a = at("192.0.2.1");

    addr_set_port(&a, 80);
    half_add(&h, &a);
    half_add(&h, &a);
    assert_int_equal(h.n, 1);
    assert_int_equal(addr_port(&h.at[0]), 0);
}

static struct half_answer
many(const char *format)
{
    struct half_answer h = {.kind = HALF_ADDRESSES, .ttl_s = 60};

    for (unsigned i = 1; i <= DNS_ADDRESSES + 8; i++) {
        char text[64];
        struct addr a;

        snprintf(text, sizeof(text), format, i);
        a = at(text);
        half_add(&h, &a);
    }
    return h;
}

/* Too many of both: each keeps half of the places. */
static void
a_long_list_does_not_push_the_other_family_out(void **state)
{
    struct half_answer h[HALVES] = {many("2001:db8::%x"), many("192.0.2.%u")};
    struct dns_answer a;
    unsigned v4 = 0;

    assert_int_equal(h[HALF_V4].n, DNS_ADDRESSES);
    order_answer(h, NULL, false, &a);
    assert_int_equal(a.n, DNS_ADDRESSES);
    for (unsigned i = 0; i < a.n; i++)
        v4 += half_of(&a.at[i]) == HALF_V4;
    assert_int_equal(v4, DNS_ADDRESSES / 2);
}

static void
assert_status(enum half_kind v6, enum half_kind v4, enum dns_status expected)
{
    struct half_answer h[HALVES] = {{.kind = v6, .ttl_s = 20}, {.kind = v4, .ttl_s = 10}};
    struct dns_answer a;

    order_answer(h, NULL, false, &a);
    assert_int_equal(a.status, expected);
    assert_int_equal(a.n, 0);
    assert_int_equal(a.ttl_s, 10);
    order_answer((struct half_answer[]){h[1], h[0]}, NULL, false, &a);
    assert_int_equal(a.status, expected);
}

/* RFC 2308 section 2.1: NXDOMAIN is said of the name, NODATA of one type. */
static void
without_addresses_the_two_reasons_become_one(void **state)
{
    assert_status(HALF_NO_NAME, HALF_NO_NAME, DNS_NO_NAME);
    assert_status(HALF_NO_DATA, HALF_NO_DATA, DNS_NO_NAME);
    assert_status(HALF_NO_NAME, HALF_TIMEOUT, DNS_NO_NAME);
    assert_status(HALF_NO_DATA, HALF_FAILED, DNS_FAILED);
    assert_status(HALF_NO_DATA, HALF_TIMEOUT, DNS_TIMEOUT);
    assert_status(HALF_FAILED, HALF_TIMEOUT, DNS_TIMEOUT);
    assert_status(HALF_FAILED, HALF_FAILED, DNS_FAILED);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_alternate_ipv6_first),
        cmocka_unit_test(what_worked_comes_first),
        cmocka_unit_test(the_family_that_worked_outlives_the_address),
        cmocka_unit_test(one_failing_family_does_not_fail_the_name),
        cmocka_unit_test(an_address_is_listed_once_and_without_port),
        cmocka_unit_test(a_long_list_does_not_push_the_other_family_out),
        cmocka_unit_test(without_addresses_the_two_reasons_become_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
