/* test_auth - schemes that log a connection in (RFC 4559 section 6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/auth.h"

static bool
binds(enum field_id id, const char *value)
{
    struct field line = {field_name(id), span_str(value), id};
    struct fields f = {&line, 1, 1};

    return auth_binds_request(&f) || auth_binds_response(&f);
}

static void
ntlm_negotiate_and_kerberos_bind_with_or_without_a_token(void **state)
{
    static const char *const values[] = {"NTLM", "ntlm TlRMTVNTUAAB", "Negotiate\tYII=", "Kerberos",
                                         "NEGOTIATE"};

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        assert_true(binds(FIELD_AUTHORIZATION, values[i]));
        assert_true(binds(FIELD_WWW_AUTHENTICATE, values[i]));
    }
}

static void
schemes_of_each_request_do_not(void **state)
{
    static const char *const values[] = {
        "Basic YTpi", "Bearer Negotiate", "NTLMv2 x", "Digest username=\"NTLM\"", "Negotiated", ""};

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        assert_false(binds(FIELD_AUTHORIZATION, values[i]));
        assert_false(binds(FIELD_WWW_AUTHENTICATE, values[i]));
    }
}

static void
one_among_several_challenges_is_enough(void **state)
{
    assert_true(binds(FIELD_WWW_AUTHENTICATE, "Basic realm=\"a, b\", Negotiate"));
    assert_true(binds(FIELD_WWW_AUTHENTICATE, "Negotiate, Basic realm=\"a\""));
    assert_false(binds(FIELD_WWW_AUTHENTICATE, "Basic realm=\"a, NTLM, b\", Digest qop=x"));
}

static void
a_token_in_another_field_says_nothing(void **state)
{
    assert_false(binds(FIELD_PROXY_AUTHENTICATE, "NTLM"));
    assert_false(binds(FIELD_PROXY_AUTHORIZATION, "NTLM TlRM"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ntlm_negotiate_and_kerberos_bind_with_or_without_a_token),
        cmocka_unit_test(schemes_of_each_request_do_not),
        cmocka_unit_test(one_among_several_challenges_is_enough),
        cmocka_unit_test(a_token_in_another_field_says_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
