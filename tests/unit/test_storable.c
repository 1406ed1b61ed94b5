/* tests/unit/test_storable.c - RFC 9111 section 3: what is stored, and why something is not. */
#include "cache/storable.h"
#include "http/cache_control.h"
#include "tests/unit/heads.h"

struct exchange_text {
    const char *method;
    struct response_text response;
};

static struct storable
verdict_by(struct exchange_text x, const struct refresh_rule *rule)
{
    struct request_head q = request(.method = x.method, .fields = x.response.request_fields);
    struct cache_control cc = cache_control_parse(&q.fields);

    return response_storable(&q, &cc, stored_of(x.response), rule);
}

#define verdict(...) verdict_by((struct exchange_text){.response = {__VA_ARGS__}}, NULL)
#define assert_stored(...) assert_true(verdict(__VA_ARGS__).yes)
#define assert_refused(word, ...)                                                                  \
    do {                                                                                           \
        struct storable refused = verdict(__VA_ARGS__);                                            \
                                                                                                   \
        assert_false(refused.yes);                                                                 \
        assert_int_equal(refused.share, SHARE_NONE);                                               \
        assert_string_equal(refused.why, word);                                                    \
    } while (0)

#define FRESH "Cache-Control: max-age=60\r\n"
#define LM "Last-Modified: Mon, 31 Dec 2029 00:00:00 GMT\r\n"

/* A HEAD answer never stands in for a GET (RFC 9110 section 9.3.2). */
static void
only_answers_to_get_are_stored(void **state)
{
    static const char *const others[] = {"HEAD", "POST", "PUT", "OPTIONS", "FROB", "QUERY"};
    struct exchange_text x = {.response = {.fields = FRESH}};

    assert_true(verdict_by(x, NULL).yes);
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
        x.method = others[i];
        assert_string_equal(verdict_by(x, NULL).why, "method");
    }
}

static void
any_final_status_with_explicit_freshness_is_stored(void **state)
{
    static const unsigned statuses[] = {200, 201, 203, 204, 299, 301, 302, 303, 307, 308,
                                        400, 403, 404, 410, 499, 500, 502, 503, 504, 599};

    for (unsigned i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        assert_stored(.status = statuses[i], .fields = FRESH);
        assert_stored(.status = statuses[i], .fields = DATE_T0 LM "Expires: 0\r\n");
    }
}

/* Parts, answers to conditions or credentials, and those of RFC 6585. */
static void
what_speaks_about_one_request_is_not_stored(void **state)
{
    static const unsigned statuses[] = {101, 103, 304, 401, 407, 412, 416, 417, 428, 429, 431, 511};

    for (unsigned i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        assert_refused("status", .status = statuses[i], .fields = FRESH);
}

/* RFC 9110 section 15 */
static void
a_status_that_is_none_is_not_stored(void **state)
{
    assert_refused("status", .status = 600, .fields = FRESH);
    assert_refused("status", .status = 999, .fields = FRESH);
}

/* RFC 9111 section 3, last bullet: a status allows heuristics, or something explicit does. */
static void
without_explicit_freshness_the_status_decides(void **state)
{
    assert_stored(.status = 200);
    assert_stored(.status = 404);
    assert_refused("no-freshness", .status = 302);
    assert_refused("no-freshness", .status = 503, .fields = LM);
    assert_refused("no-freshness", .status = 599, .fields = LM);
    assert_stored(.status = 599, .fields = LM "Cache-Control: public\r\n");
}

/* RFC 9111 section 5.2.2.5, section 5.2.1.5 */
static void
no_store_of_either_side_counts(void **state)
{
    struct refresh_rule rule = REFRESH_RULE_DEFAULT;
    struct exchange_text x = {.response = {.fields = "Cache-Control: no-store, max-age=9\r\n"}};

    assert_refused("no-store", .fields = "Cache-Control: max-age=9, No-StOrE\r\n");
    assert_refused("request-no-store", .fields = FRESH,
                   .request_fields = "Cache-Control: no-store\r\n");
    rule.ignore_no_store = true;
    assert_true(verdict_by(x, &rule).yes);
    x.response.request_fields = "Cache-Control: no-store\r\n";
    assert_false(verdict_by(x, &rule).yes);
}

/* RFC 9111 section 5.2.2.3 */
static void
must_understand_overrides_no_store_for_known_statuses_only(void **state)
{
    const char *both = "Cache-Control: max-age=60, no-store, must-understand\r\n";

    assert_stored(.fields = both);
    assert_refused("must-understand", .status = 599, .fields = both);
    assert_refused("must-understand", .status = 599,
                   .fields = "Cache-Control: max-age=60, must-understand\r\n");
}

/* RFC 9111 section 5.2.2.7 */
static void
private_is_not_stored_with_or_without_names(void **state)
{
    struct refresh_rule rule = REFRESH_RULE_DEFAULT;
    struct exchange_text x = {.response = {.fields = "Cache-Control: private, max-age=9\r\n"}};

    assert_refused("private", .fields = "Cache-Control: private, max-age=60\r\n");
    assert_refused("private", .fields = "Cache-Control: private=\"Set-Cookie\", max-age=60\r\n");
    rule.ignore_private = true;
    assert_true(verdict_by(x, &rule).yes);
}

/* RFC 9111 section 3.5 */
static void
authorization_needs_a_permission(void **state)
{
#define AUTHORIZED(cc)                                                                             \
    .fields = "Cache-Control: " cc "\r\n", .request_fields = "Authorization: Basic eDp5\r\n"
    assert_refused("authorization", AUTHORIZED("max-age=60"));
    assert_refused("authorization", AUTHORIZED("max-age=60, proxy-revalidate"));
    assert_stored(AUTHORIZED("max-age=60, public"));
    assert_stored(AUTHORIZED("max-age=60, must-revalidate"));
    assert_stored(AUTHORIZED("s-maxage=60"));
#undef AUTHORIZED
}

static void
a_cookie_is_stored_when_the_origin_gave_it_a_lifetime(void **state)
{
    struct storable stale = verdict(.fields = "Cache-Control: max-age=0\r\nSet-Cookie: a=b\r\n");

    assert_stored(.fields = FRESH "Set-Cookie: a=b\r\n");
    assert_int_equal(verdict(.fields = FRESH "Set-Cookie: a=b\r\n").share, SHARE_ALL);
    assert_stored(.fields = LM "Cache-Control: public\r\nSet-Cookie: a=b\r\n");
    assert_refused("set-cookie", .fields = DATE_T0 LM "Set-Cookie: a=b\r\n");
    assert_refused("set-cookie", .fields = "Set-Cookie: a=b\r\n");
    assert_true(stale.yes);
    assert_int_equal(stale.share, SHARE_NONE);
}

/* RFC 9111 section 4.1 */
static void
vary_star_is_not_stored(void **state)
{
    assert_refused("vary", .fields = FRESH "Vary: X, *\r\n");
    assert_refused("vary", .fields = FRESH "Vary: X\r\nVary: ,*\r\n");
    assert_refused("vary", .fields = FRESH "Vary: Other:\r\n");
    assert_stored(.fields = FRESH "Vary: X, Accept-Encoding\r\n");
}

/* RFC 9111 section 4, collapsed requests: what is stale on arrival is for those who sent no
 * credentials at most, and not if it must not be used stale. */
static void
who_waits_may_use_it(void **state)
{
#define assert_shared(with, ...) assert_int_equal(verdict(__VA_ARGS__).share, with)
    assert_shared(SHARE_ALL, .fields = FRESH);
    assert_shared(SHARE_ALL, .fields = "Cache-Control: max-age=9, must-revalidate\r\n");
    assert_shared(SHARE_ANONYMOUS, .fields = "Cache-Control: max-age=0\r\n");
    assert_shared(SHARE_ANONYMOUS, .fields = "Expires: 0\r\n");
    assert_shared(SHARE_ANONYMOUS, .fields = DATE_T0 "Pragma: no-cache\r\n");
    assert_shared(SHARE_ANONYMOUS, .fields = "ETag: \"e\"\r\n");
    assert_shared(SHARE_ANONYMOUS, .status = 404);
    assert_shared(SHARE_NONE, .fields = "ETag: \"e\"\r\nCache-Control: no-cache\r\n");
    assert_shared(SHARE_NONE, .fields = "ETag: \"e\"\r\nCache-Control: s-maxage=0\r\n");
    assert_shared(SHARE_NONE,
                  .fields = "ETag: \"e\"\r\nCache-Control: max-age=0, must-revalidate\r\n");
    assert_shared(SHARE_NONE,
                  .fields = "ETag: \"e\"\r\nCache-Control: max-age=0\r\nSet-Cookie: a=b\r\n");
#undef assert_shared
}

static void
what_could_never_be_served_again_is_not_kept(void **state)
{
    assert_refused("no-validator", .fields = "Cache-Control: no-cache\r\n");
    assert_refused("no-validator", .fields = "Cache-Control: s-maxage=0\r\n");
    assert_stored(.fields = "ETag: \"e\"\r\nCache-Control: no-cache\r\n");
    assert_stored(.fields = LM "Cache-Control: no-cache=\"a\"\r\n");
    assert_stored(.fields = "Cache-Control: max-age=0\r\n");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_answers_to_get_are_stored),
        cmocka_unit_test(any_final_status_with_explicit_freshness_is_stored),
        cmocka_unit_test(what_speaks_about_one_request_is_not_stored),
        cmocka_unit_test(a_status_that_is_none_is_not_stored),
        cmocka_unit_test(without_explicit_freshness_the_status_decides),
        cmocka_unit_test(no_store_of_either_side_counts),
        cmocka_unit_test(must_understand_overrides_no_store_for_known_statuses_only),
        cmocka_unit_test(private_is_not_stored_with_or_without_names),
        cmocka_unit_test(authorization_needs_a_permission),
        cmocka_unit_test(a_cookie_is_stored_when_the_origin_gave_it_a_lifetime),
        cmocka_unit_test(vary_star_is_not_stored),
        cmocka_unit_test(who_waits_may_use_it),
        cmocka_unit_test(what_could_never_be_served_again_is_not_kept),
    };

    return cmocka_run_group_tests(tests, heads_init, heads_free);
}
