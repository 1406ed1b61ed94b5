/* tests/unit/test_addr.c - addresses and networks (base/addr.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "base/addr.h"

static struct addr
addr(const char *text)
{
    struct addr a;

    if (!addr_parse(span_str(text), &a))
        fail_msg("not an address: %s", text);
    return a;
}

static struct net
net(const char *text)
{
    struct net n;

    if (!net_parse(span_str(text), &n))
        fail_msg("not a network: %s", text);
    return n;
}

static void
assert_text(const char *text, const char *expected)
{
    struct addr a = addr(text);
    char out[ADDR_TEXT_MAX];

    assert_int_equal(addr_format(&a, out), strlen(expected));
    assert_string_equal(out, expected);
}

static void
assert_in(const char *network, const char *address, bool expected)
{
    struct net n = net(network);
    struct addr a = addr(address);

    if (net_has(&n, &a) != expected)
        fail_msg("%s in %s: expected %d", address, network, expected);
}

static void
strict_addresses_are_read_and_written(void **state)
{
    assert_text("0.0.0.0", "0.0.0.0");
    assert_text("255.255.255.255", "255.255.255.255");
    assert_text("192.168.1.10", "192.168.1.10");
    assert_text("::", "::");
    assert_text("::1", "::1");
    assert_text("64:ff9b::1.2.3.4", "64:ff9b::102:304");
}

/* RFC 5952 section 4: lower case, no leading zeros, the longest run of zeros is cut. */
static void
ipv6_is_written_in_its_canonical_form(void **state)
{
    assert_text("2001:0DB8:0000:0000:0008:0800:200C:417A", "2001:db8::8:800:200c:417a");
    assert_text("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1");
    assert_text("2001:0:0:1:0:0:0:1", "2001:0:0:1::1");
}

/* What inet_aton would take for 127.0.0.1 must not get past an access list as a host name. */
static void
lax_forms_are_no_addresses(void **state)
{
    static const char *const bad[] = {
        "",
        "1",
        "127.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "127.0.0.01",
        "00.0.0.0",
        "256.0.0.1",
        "1.2.3",
        "1.2.3.4.5",
        "1.2.3.4.",
        ".1.2.3.4",
        "1..2.3",
        " 1.2.3.4",
        "1.2.3.4 ",
        "1.2.3.4:80",
        "1.2.3.-4",
        "+1.2.3.4",
        "1.2.3.4/32",
        "::1%lo",
        "fe80::1%1",
        "[::1]",
        ":",
        ":::",
        "1::2::3",
        "1:2:3:4:5:6:7",
        "::12345",
        "::g",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7::8:9",
        "::1.2.3",
        "::1.2.3.256",
        "::01.2.3.4",
        "1.2.3.4::",
        "::1.2.3.4:5",
        "localhost",
        "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000",
    };
    struct addr a;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (addr_parse(span_str(bad[i]), &a))
            fail_msg("taken for an address: %s", bad[i]);
    }
    assert_false(addr_parse(SPAN("127.0.0.1\0.example"), &a));
    assert_false(addr_parse(SPAN("::1\0"), &a));
    assert_false(addr_parse(SPAN_NONE, &a));
}

static void
only_the_span_is_read(void **state)
{
    struct addr a;
    char out[ADDR_TEXT_MAX];

    assert_true(addr_parse(span_of("10.0.0.123456", 10), &a));
    addr_format(&a, out);
    assert_string_equal(out, "10.0.0.123");
}

/* RFC 4291 section 2.5.5.2: ::ffff:a.b.c.d is the IPv4 address a.b.c.d. */
static void
mapped_addresses_are_unmapped(void **state)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(3128)};
    struct addr a;

    assert_text("::ffff:127.0.0.1", "127.0.0.1");
    assert_text("::FFFF:7f00:1", "127.0.0.1");
    inet_pton(AF_INET6, "::ffff:10.1.2.3", &six.sin6_addr);
    a = addr_from_sockaddr((struct sockaddr *)&six);
    assert_int_equal(a.sa.sa_family, AF_INET);
    assert_int_equal(addr_port(&a), 3128);
    assert_int_equal(addr_len(&a), sizeof(struct sockaddr_in));
    assert_int_equal(addr_compare(&a, &(struct addr){.v4 = addr("10.1.2.3").v4}), 0);
}

static void
other_families_are_no_address(void **state)
{
    struct sockaddr other = {.sa_family = AF_UNIX};
    struct addr a = addr_from_sockaddr(&other);
    char out[ADDR_TEXT_MAX];

    assert_int_equal(a.sa.sa_family, AF_UNSPEC);
    assert_int_equal(addr_from_sockaddr(NULL).sa.sa_family, AF_UNSPEC);
    assert_int_equal(addr_len(&a), 0);
    addr_set_port(&a, 80);
    assert_int_equal(addr_port(&a), 0);
    addr_format(&a, out);
    assert_string_equal(out, "-");
    addr_format_port(&a, out);
    assert_string_equal(out, "-");
}

/* A link-local peer can only be answered with its scope. */
static void
a_scope_survives(void **state)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_scope_id = 3, .sin6_flowinfo = 9};

    inet_pton(AF_INET6, "fe80::1", &six.sin6_addr);
    assert_int_equal(addr_from_sockaddr((struct sockaddr *)&six).v6.sin6_scope_id, 3);
    assert_int_equal(addr_from_sockaddr((struct sockaddr *)&six).v6.sin6_flowinfo, 0);
}

/* RFC 3986 section 3.2.2: an IPv6 address stands in brackets before a port. */
static void
ports_are_set_and_written(void **state)
{
    struct addr four = addr("1.2.3.4"), six = addr("2001:db8::1"),
                longest = addr("2001:1db8:1111:2222:3333:4444:5555:6666");
    char out[ADDR_TEXT_MAX];

    assert_int_equal(addr_port(&four), 0);
    addr_set_port(&four, 80);
    addr_set_port(&six, 65535);
    addr_set_port(&longest, 65535);
    assert_int_equal(addr_format_port(&four, out), strlen("1.2.3.4:80"));
    assert_string_equal(out, "1.2.3.4:80");
    addr_format_port(&six, out);
    assert_string_equal(out, "[2001:db8::1]:65535");
    addr_format_port(&longest, out);
    assert_string_equal(out, "[2001:1db8:1111:2222:3333:4444:5555:6666]:65535");
}

static void
addresses_have_an_order_that_ignores_ports(void **state)
{
    struct addr a = addr("10.0.0.2"), b = addr("10.0.0.10"), six = addr("::1"), none = ADDR_NONE;

    assert_true(addr_compare(&a, &b) < 0);
    assert_true(addr_compare(&b, &a) > 0);
    assert_true(addr_compare(&b, &six) < 0);
    assert_int_equal(addr_compare(&none, &none), 0);
    b = a;
    addr_set_port(&b, 80);
    assert_int_equal(addr_compare(&a, &b), 0);
}

/* RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3. */
static void
loopback_is_all_that_reaches_this_host(void **state)
{
    static const char *const yes[] = {"127.0.0.1", "127.255.255.255", "0.0.0.0", "0.1.2.3", "::1",
                                      "::",        "::ffff:127.0.0.1"};
    static const char *const no[] = {"126.255.255.255", "128.0.0.1", "1.0.0.0", "::2", "100::1"};
    struct addr by_hand = {.v6 = {.sin6_family = AF_INET6}};

    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
        assert_true(addr_is_loopback(&(struct addr){.v6 = addr(yes[i]).v6}));
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        assert_false(addr_is_loopback(&(struct addr){.v6 = addr(no[i]).v6}));
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &by_hand.v6.sin6_addr);
    assert_true(addr_is_loopback(&by_hand));
}

/* RFC 3927, RFC 4291 section 2.5.6. */
static void
link_local_is_recognised(void **state)
{
    static const char *const yes[] = {"169.254.169.254", "169.254.0.0", "fe80::1", "febf::1",
                                      "::ffff:169.254.1.1"};
    static const char *const no[] = {"169.253.1.1", "169.255.0.0", "fec0::1", "fe7f::1", "::1"};

    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
        assert_true(addr_is_linklocal(&(struct addr){.v6 = addr(yes[i]).v6}));
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        assert_false(addr_is_linklocal(&(struct addr){.v6 = addr(no[i]).v6}));
}

static void
a_network_holds_its_addresses(void **state)
{
    assert_in("10.0.0.0/8", "10.255.255.255", true);
    assert_in("10.0.0.0/8", "11.0.0.0", false);
    assert_in("192.168.1.128/25", "192.168.1.127", false);
    assert_in("192.168.1.128/25", "192.168.1.128", true);
    assert_in("0.0.0.0/0", "255.1.2.3", true);
    assert_in("10.0.0.1", "10.0.0.1", true);
    assert_in("10.0.0.1", "10.0.0.2", false);
    assert_in("2001:db8::/33", "2001:db8:7fff::1", true);
    assert_in("2001:db8::/33", "2001:db8:8000::1", false);
    assert_in("::1", "::1", true);
    assert_in("::1", "::2", false);
}

static void
families_do_not_mix(void **state)
{
    struct net n = net("::/0");

    assert_in("::/0", "1.2.3.4", false);
    assert_in("0.0.0.0/0", "::1", false);
    assert_false(net_has(&n, &(struct addr){.sa = {.sa_family = AF_UNSPEC}}));
}

static void
host_bits_are_cleared(void **state)
{
    struct net n = net("10.1.2.3/12");
    char out[ADDR_TEXT_MAX];

    addr_format(&n.first, out);
    assert_string_equal(out, "10.0.0.0");
    assert_int_equal(n.prefix, 12);
    assert_in("10.1.2.3/24", "10.1.2.200", true);
}

static void
old_masks_are_prefixes_when_they_are_contiguous(void **state)
{
    struct net n;

    assert_int_equal(net("192.168.1.0/255.255.255.0").prefix, 24);
    assert_int_equal(net("1.2.3.4/255.255.255.255").prefix, 32);
    assert_int_equal(net("1.2.3.4/0.0.0.0").prefix, 0);
    assert_int_equal(net("1.2.3.4/128.0.0.0").prefix, 1);
    assert_false(net_parse(SPAN("10.0.0.0/255.0.255.0"), &n));
    assert_false(net_parse(SPAN("10.0.0.0/0.0.0.255"), &n));
    assert_false(net_parse(SPAN("10.0.0.0/255.255.255.1"), &n));
    assert_false(net_parse(SPAN("2001:db8::/255.255.0.0"), &n));
}

static void
a_range_includes_both_ends(void **state)
{
    assert_in("10.0.0.5-10.0.1.9", "10.0.0.5", true);
    assert_in("10.0.0.5-10.0.1.9", "10.0.0.255", true);
    assert_in("10.0.0.5-10.0.1.9", "10.0.1.9", true);
    assert_in("10.0.0.5-10.0.1.9", "10.0.0.4", false);
    assert_in("10.0.0.5-10.0.1.9", "10.0.1.10", false);
    assert_in("10.0.0.5-10.0.1.9", "::1", false);
    assert_in("10.0.0.1-10.0.0.9/32", "10.0.0.9", true);
    assert_in("10.0.0.1-10.0.0.9/32", "10.0.0.10", false);
    assert_in("10.0.1.0-10.0.3.0/24", "10.0.3.77", true);
    assert_in("10.0.1.0-10.0.3.0/24", "10.0.4.0", false);
    assert_in("2001:db8::1-2001:db8::ff", "2001:db8::80", true);
    assert_in("7.7.7.7-7.7.7.7", "7.7.7.7", true);
}

/* The prefix of a mapped network counts the 96 bits in front. */
static void
a_mapped_network_is_an_ipv4_network(void **state)
{
    struct net n;

    assert_int_equal(net("::ffff:10.0.0.0/104").prefix, 8);
    assert_int_equal(net("::ffff:0:0/96").prefix, 0);
    assert_in("::ffff:10.0.0.0/104", "10.9.9.9", true);
    assert_false(net_parse(SPAN("::ffff:10.0.0.0/8"), &n));
    assert_false(net_parse(SPAN("::ffff:10.0.0.0/255.0.0.0"), &n));
}

static void
what_is_no_network_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "/",
        "/8",
        "-",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/08",
        "10.0.0.0/-1",
        "10.0.0.0/8 ",
        "10.0.0.0/8/8",
        "10.0.0.0/+8",
        "10.0.0.0/1.",
        "::/129",
        "10/8",
        "10.0.0.0/18446744073709551616",
        "10.0.0.9-10.0.0.1",
        "10.0.0.1-",
        "-10.0.0.1",
        "10.0.0.1-::1",
        "1.1.1.1-2.2.2.2-3.3.3.3",
        "1.1.1.1/8-2.2.2.2",
        "example.org",
        "1.1.1.1/2-3",
        "1.2.3.4/256.0.0.0",
    };
    struct net n;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (net_parse(span_str(bad[i]), &n))
            fail_msg("taken for a network: %s", bad[i]);
    }
}

static void
any_address_is_told_from_others(void **state)
{
    static const char *const any[] = {"0.0.0.0", "::"}, *const one[] = {"0.0.0.1", "::1"};
    struct addr a;

    for (int i = 0; i < 2; i++) {
        assert_true(addr_parse(span_str(any[i]), &a) && addr_is_any(&a));
        assert_true(addr_parse(span_str(one[i]), &a) && !addr_is_any(&a));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_address_is_told_from_others),
        cmocka_unit_test(strict_addresses_are_read_and_written),
        cmocka_unit_test(ipv6_is_written_in_its_canonical_form),
        cmocka_unit_test(lax_forms_are_no_addresses),
        cmocka_unit_test(only_the_span_is_read),
        cmocka_unit_test(mapped_addresses_are_unmapped),
        cmocka_unit_test(other_families_are_no_address),
        cmocka_unit_test(a_scope_survives),
        cmocka_unit_test(ports_are_set_and_written),
        cmocka_unit_test(addresses_have_an_order_that_ignores_ports),
        cmocka_unit_test(loopback_is_all_that_reaches_this_host),
        cmocka_unit_test(link_local_is_recognised),
        cmocka_unit_test(a_network_holds_its_addresses),
        cmocka_unit_test(families_do_not_mix),
        cmocka_unit_test(host_bits_are_cleared),
        cmocka_unit_test(old_masks_are_prefixes_when_they_are_contiguous),
        cmocka_unit_test(a_range_includes_both_ends),
        cmocka_unit_test(a_mapped_network_is_an_ipv4_network),
        cmocka_unit_test(what_is_no_network_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
