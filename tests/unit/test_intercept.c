/* test_intercept - was a connection diverted, and where was it going? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

#include "proxy/net/intercept.h"

static struct addr
at(const char *text, uint16_t port)
{
    struct addr a;

    assert_true(addr_parse(span_str(text), &a));
    addr_set_port(&a, port);
    return a;
}

static void
assert_redirected(bool expected, struct addr original, struct addr end)
{
    struct addr listening = at("::", 3129);

    assert_int_equal(intercept_is_diverted(DIVERSION_REDIRECT, &original, &end, &listening),
                     expected);
}

static void
assert_tproxied(bool expected, struct addr end, struct addr listening)
{
    assert_int_equal(intercept_is_diverted(DIVERSION_TPROXY, &end, &end, &listening), expected);
}

static void
redirect_changes_the_address_or_the_port(void **state)
{
    assert_redirected(true, at("192.0.2.1", 80), at("10.0.0.1", 3129));
    assert_redirected(true, at("10.0.0.1", 80), at("10.0.0.1", 3129));
    assert_redirected(true, at("192.0.2.1", 3129), at("10.0.0.1", 3129));
    assert_redirected(true, at("2001:db8::1", 80), at("fd00::1", 3129));
}

/* Connection tracking gives what the client named, also when no rule has changed it. */
static void
who_names_the_port_itself_was_not_redirected(void **state)
{
    assert_redirected(false, at("10.0.0.1", 3129), at("10.0.0.1", 3129));
    assert_redirected(false, at("fd00::1", 3129), at("fd00::1", 3129));
}

static void
tproxy_leaves_the_destination_as_our_end(void **state)
{
    assert_tproxied(true, at("192.0.2.1", 80), at("::", 3130));
    assert_tproxied(true, at("2001:db8::1", 80), at("::", 3130));
    assert_tproxied(true, at("192.0.2.1", 80), at("10.0.0.1", 3130));
    assert_tproxied(true, at("192.0.2.1", 3130), at("10.0.0.1", 3130));
    assert_tproxied(true, at("10.0.0.1", 80), at("10.0.0.1", 3130));
}

static void
who_names_the_tproxy_port_itself_was_not_diverted(void **state)
{
    assert_tproxied(false, at("10.0.0.1", 3130), at("10.0.0.1", 3130));
    assert_tproxied(false, at("10.0.0.1", 3130), at("::", 3130));
    assert_tproxied(false, at("10.0.0.1", 3130), at("0.0.0.0", 3130));
    assert_tproxied(false, at("fd00::1", 3130), at("::", 3130));
}

/* The client has gone before we asked. */
static void
a_socket_without_an_end_has_no_destination(void **state)
{
    struct addr listening = at("::", 3129), found;
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    found = intercept_destination(fd[0], DIVERSION_REDIRECT, &listening);
    assert_int_equal(found.sa.sa_family, AF_UNSPEC);
    found = intercept_destination(fd[0], DIVERSION_TPROXY, &listening);
    assert_int_equal(found.sa.sa_family, AF_UNSPEC);
    close(fd[0]);
    close(fd[1]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redirect_changes_the_address_or_the_port),
        cmocka_unit_test(who_names_the_port_itself_was_not_redirected),
        cmocka_unit_test(tproxy_leaves_the_destination_as_our_end),
        cmocka_unit_test(who_names_the_tproxy_port_itself_was_not_diverted),
        cmocka_unit_test(a_socket_without_an_end_has_no_destination),
    };

    return cmocka_run_group_tests_name("intercept", tests, NULL, NULL);
}
