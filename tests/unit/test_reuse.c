/* tests/unit/test_reuse.c - RFC 9111 section 4 and RFC 5861: verdicts on literal heads. */
#include "cache/reuse.h"
#include "tests/unit/heads.h"

static const struct reuse_policy week = {.max_stale_s = 7 * 86400};

struct asked {
    const char *method, *fields;
    int64_t at_s; /* after the arrival */
    const struct refresh_rule *rule;
    const struct reuse_policy *policy;
};

static struct reuse
decide_for(const struct head *h, struct asked x)
{
    struct request_head q = request(.method = x.method, .fields = x.fields);
    struct cache_control cc = cache_control_parse(&q.fields);

    return reuse_decide(&q, &cc, h, x.rule, x.policy ? x.policy : &week, AT(x.at_s));
}

#define decide(head, ...) decide_for(head, (struct asked){__VA_ARGS__})
#define assert_verdict(expected, head, ...)                                                        \
    assert_int_equal(decide(head, __VA_ARGS__).verdict, expected)
#define assert_asks(expected, word, head, ...)                                                     \
    do {                                                                                           \
        struct reuse asks = decide(head, __VA_ARGS__);                                             \
                                                                                                   \
        assert_int_equal(asks.verdict, expected);                                                  \
        assert_string_equal(asks.why, word);                                                       \
    } while (0)

static struct head *
with_cc(const char *cache_control)
{
    struct span line = arena_printf(&heads_arena, DATE_T0 "Cache-Control: %s\r\n", cache_control);

    return stored_response(.fields = arena_str(&heads_arena, line));
}

#define CC(text) "Cache-Control: " text "\r\n"

static void
fresh_is_served_and_stale_is_validated(void **state)
{
    struct head *h = with_cc("max-age=60");

    assert_verdict(REUSE_SERVE, h, .at_s = 59);
    assert_verdict(REUSE_SERVE, h, .at_s = 59, .method = "HEAD");
    assert_asks(REUSE_VALIDATE, "stale", h, .at_s = 60);
    assert_asks(REUSE_VALIDATE, "stale", stored_response(), .at_s = 0);
}

/* ---- collapsed requests (section 4) ---- */

static bool
collapsed_for(const struct head *h, bool by_anonymous, const char *fields)
{
    struct request_head q = request(.fields = fields);
    struct cache_control cc = cache_control_parse(&q.fields);

    return reuse_collapsed(&q, &cc, h, by_anonymous, NULL, &week, AT(0));
}

static void
who_waited_gets_what_is_fresh(void **state)
{
    assert_true(collapsed_for(with_cc("max-age=60"), false, "Cookie: a\r\n"));
    assert_true(collapsed_for(with_cc("max-age=60, must-revalidate"), false, NULL));
    assert_true(collapsed_for(
        stored_response(.fields = DATE_T0 CC("max-age=60") "Set-Cookie: a=b\r\n"), false, NULL));
    assert_true(
        collapsed_for(with_cc("max-age=0, stale-while-revalidate=9"), false, "Cookie: a\r\n"));
    assert_true(collapsed_for(with_cc("max-age=0"), false, "Cookie: a\r\n" CC("max-stale")));
}

static void
who_waited_gets_what_is_stale_on_arrival_without_credentials_alone(void **state)
{
    static const char *const stale[] = {
        DATE_T0 CC("max-age=0"),        DATE_T0 "Expires: 0\r\n",
        DATE_T0 "Pragma: no-cache\r\n", DATE_T0,
        DATE_T0 "ETag: \"a\"\r\n",      "Expires: Thu, 01 Jan 1970 00:00:00 GMT\r\n",
    };

    for (unsigned i = 0; i < sizeof stale / sizeof stale[0]; i++) {
        struct head *h = stored_response(.fields = stale[i]);

        assert_true(collapsed_for(h, true, NULL));
        assert_false(collapsed_for(h, false, NULL));
        assert_false(collapsed_for(h, true, "Cookie: a\r\n"));
        assert_false(collapsed_for(h, true, "Authorization: a\r\n"));
    }
}

static void
what_needs_validation_is_for_no_waiter(void **state)
{
    assert_false(collapsed_for(with_cc("no-cache"), true, NULL));
    assert_false(collapsed_for(with_cc("max-age=60, no-cache"), true, NULL));
    assert_false(collapsed_for(with_cc("max-age=0, must-revalidate"), true, NULL));
    assert_false(collapsed_for(with_cc("max-age=0, proxy-revalidate"), true, NULL));
    assert_false(collapsed_for(with_cc("s-maxage=0"), true, NULL));
    assert_false(collapsed_for(
        stored_response(.fields = DATE_T0 CC("max-age=0") "Set-Cookie: a=b\r\n"), true, NULL));
}

static void
the_waiters_own_cache_control_counts(void **state)
{
    struct head *aged = stored_response(.fields = DATE_T0 CC("max-age=60") "Age: 10\r\n");

    assert_true(collapsed_for(aged, true, CC("max-age=10")));
    assert_false(collapsed_for(aged, true, CC("max-age=9")));
    assert_false(collapsed_for(aged, true, CC("min-fresh=55")));
    assert_false(collapsed_for(aged, true, CC("no-cache")));
    assert_false(collapsed_for(with_cc("max-age=0"), true, CC("max-age=9")));
    assert_false(collapsed_for(with_cc("max-age=0"), true, CC("only-if-cached")));
}

static void
who_wants_the_origin_asked_does_not_wait(void **state)
{
    static const struct {
        const char *fields;
        bool wants;
    } asked[] = {{NULL, false},
                 {CC("no-cache"), true},
                 {CC("max-age=0"), true},
                 {CC("max-age=1"), false},
                 {"Pragma: no-cache\r\n", true},
                 {"Pragma: no-cache\r\n" CC("max-age=9"), false}};
    struct refresh_rule ignoring = REFRESH_RULE_DEFAULT;

    ignoring.ignore_reload = true;
    for (unsigned i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        struct request_head q = request(.fields = asked[i].fields);
        struct cache_control cc = cache_control_parse(&q.fields);

        assert_int_equal(reuse_wants_origin(&q, &cc, NULL), asked[i].wants);
        assert_false(reuse_wants_origin(&q, &cc, &ignoring));
    }
}

static void
nothing_stored_is_a_miss(void **state)
{
    assert_asks(REUSE_NONE, "uri-miss", NULL, .at_s = 0);
    assert_asks(REUSE_NONE, "method", with_cc("max-age=60"), .method = "POST");
}

/* Squid's habit: what HEAD would have to validate goes through. */
static void
head_goes_through_when_the_stored_one_is_stale(void **state)
{
    assert_asks(REUSE_NONE, "stale", with_cc("max-age=2"), .method = "HEAD", .at_s = 3);
}

/* RFC 9111 section 5.2.2.4; names after it make no difference. */
static void
no_cache_of_the_origin_is_validated_each_time(void **state)
{
    assert_verdict(REUSE_VALIDATE, with_cc("max-age=60, No-CaChE"), .at_s = 0);
    assert_verdict(REUSE_VALIDATE, with_cc("max-age=60, no-cache=\"a\""), .at_s = 0);
    assert_verdict(REUSE_VALIDATE, with_cc("no-cache"), .fields = CC("max-stale"));
}

/* RFC 9111 sections 5.2.1.4 and 5.4; Squid fetches plainly. */
static void
a_reload_fetches_anew(void **state)
{
    struct head *h = with_cc("max-age=60, immutable");
    struct refresh_rule rule = REFRESH_RULE_DEFAULT;
    struct reuse_policy ims = {.reload_into_ims = true, .max_stale_s = 9};

    assert_asks(REUSE_NONE, "request", h, .fields = CC("no-cache"));
    assert_asks(REUSE_NONE, "request", h, .fields = "Pragma: no-cache\r\n");
    assert_verdict(REUSE_SERVE, h, .fields = "Pragma: x\r\n");
    assert_verdict(REUSE_SERVE, h, .fields = "Pragma: no-cache\r\n" CC("max-age=60"));
    assert_verdict(REUSE_VALIDATE, h, .fields = CC("no-cache"), .policy = &ims);
    rule.ignore_reload = true;
    assert_verdict(REUSE_SERVE, h, .fields = CC("no-cache"), .rule = &rule);
    assert_verdict(REUSE_SERVE, h, .fields = CC("max-age=0"), .rule = &rule);
}

/* RFC 9111 section 5.2.1.5: it is about storing. */
static void
no_store_of_a_request_is_still_answered(void **state)
{
    assert_verdict(REUSE_SERVE, with_cc("max-age=60"), .fields = CC("no-store"));
}

/* RFC 9111 section 5.2.1.1 */
static void
max_age_of_a_request_bounds_the_age(void **state)
{
    struct head *h = with_cc("max-age=3600");
    struct head *aged = stored_response(.fields = DATE_T0 "Age: 1800\r\n" CC("max-age=3600"));

    assert_verdict(REUSE_SERVE, h, .fields = CC("max-age=10"), .at_s = 10);
    assert_asks(REUSE_VALIDATE, "request", h, .fields = CC("max-age=10"), .at_s = 11);
    assert_verdict(REUSE_VALIDATE, aged, .fields = CC("max-age=600"));
    assert_verdict(REUSE_VALIDATE, h, .fields = CC("max-age=0"), .at_s = 0);
}

/* RFC 9111 section 5.2.1.3 */
static void
min_fresh_wants_some_lifetime_left(void **state)
{
    struct head *h = with_cc("max-age=60");

    assert_verdict(REUSE_SERVE, h, .fields = CC("min-fresh=30"), .at_s = 30);
    assert_asks(REUSE_VALIDATE, "request", h, .fields = CC("min-fresh=30"), .at_s = 31);
    assert_asks(REUSE_VALIDATE, "stale", h, .fields = CC("min-fresh=1, max-stale"), .at_s = 61);
}

/* RFC 9111 section 5.2.1.2 */
static void
max_stale_accepts_what_is_not_too_stale(void **state)
{
    struct head *h = with_cc("max-age=10");

    assert_verdict(REUSE_SERVE_STALE, h, .fields = CC("max-stale=5"), .at_s = 15);
    assert_verdict(REUSE_VALIDATE, h, .fields = CC("max-stale=5"), .at_s = 16);
    assert_verdict(REUSE_SERVE_STALE, h, .fields = CC("max-stale"), .at_s = 86400);
    assert_verdict(REUSE_VALIDATE, h, .fields = CC("max-stale"), .at_s = 8 * 86400);
    assert_verdict(REUSE_SERVE_STALE,
                   stored_response(.fields = DATE_T0 "Age: 2000\r\n" CC("max-age=1500")),
                   .fields = CC("max-stale=1000"));
}

/* RFC 9111 section 4.2.4: the client cannot lift what the origin forbade. */
static void
max_stale_does_not_lift_a_prohibition(void **state)
{
    assert_verdict(REUSE_VALIDATE, with_cc("max-age=1, must-revalidate"),
                   .fields = CC("max-stale=100"), .at_s = 2);
    assert_verdict(REUSE_VALIDATE, with_cc("max-age=1, proxy-revalidate"),
                   .fields = CC("max-stale=100"), .at_s = 2);
    assert_verdict(REUSE_VALIDATE, with_cc("s-maxage=1"), .fields = CC("max-stale=100"), .at_s = 2);
}

static void
a_rule_has_its_own_limit_of_staleness(void **state)
{
    struct refresh_rule rule = REFRESH_RULE_DEFAULT;
    struct head *h = with_cc("max-age=10");

    rule.max_stale_s = 20;
    assert_verdict(REUSE_SERVE_STALE, h, .fields = CC("max-stale"), .at_s = 30, .rule = &rule);
    assert_verdict(REUSE_VALIDATE, h, .fields = CC("max-stale"), .at_s = 31, .rule = &rule);
}

/* RFC 5861 section 3 */
static void
stale_while_revalidate_serves_within_its_window(void **state)
{
    struct head *h = with_cc("max-age=1, stale-while-revalidate=4");

    assert_verdict(REUSE_SERVE, h, .at_s = 0);
    assert_verdict(REUSE_SERVE_AND_VALIDATE, h, .at_s = 5);
    assert_verdict(REUSE_VALIDATE, h, .at_s = 6);
    assert_verdict(REUSE_VALIDATE, h, .at_s = 3, .fields = CC("max-age=0"));
    assert_verdict(REUSE_VALIDATE, h, .at_s = 3, .fields = CC("max-stale=1"));
    assert_verdict(REUSE_VALIDATE, with_cc("max-age=1, must-revalidate, stale-while-revalidate=4"),
                   .at_s = 3);
}

/* RFC 9111 section 5.2.1.7 */
static void
only_if_cached_refuses_to_ask(void **state)
{
    struct head *h = with_cc("max-age=60");

    assert_verdict(REUSE_REFUSE, NULL, .fields = CC("only-if-cached"));
    assert_verdict(REUSE_SERVE, h, .fields = CC("only-if-cached"));
    assert_verdict(REUSE_REFUSE, h, .fields = CC("only-if-cached"), .at_s = 61);
    assert_verdict(REUSE_SERVE_STALE, h, .fields = CC("only-if-cached, max-stale"), .at_s = 61);
    assert_verdict(REUSE_REFUSE, h, .fields = CC("only-if-cached, no-cache"));
}

static void
offline_serves_whatever_there_is(void **state)
{
    struct reuse_policy offline = {.offline = true};

    assert_verdict(REUSE_SERVE_STALE, with_cc("no-cache"), .fields = CC("no-cache"), .at_s = 9,
                   .policy = &offline);
    assert_verdict(REUSE_NONE, NULL, .policy = &offline);
}

static void
refresh_ims_asks_when_the_client_has_a_copy(void **state)
{
    struct refresh_rule rule = REFRESH_RULE_DEFAULT;
    struct head *h = with_cc("max-age=60");
    const char *ims = "If-Modified-Since: Tue, 01 Jan 2030 00:00:00 GMT\r\n";

    assert_verdict(REUSE_SERVE, h, .fields = ims, .rule = &rule);
    rule.refresh_ims = true;
    assert_verdict(REUSE_VALIDATE, h, .fields = ims, .rule = &rule);
    assert_verdict(REUSE_SERVE, h, .rule = &rule);
}

static void
the_clock_set_back_or_forward_does_no_harm(void **state)
{
    assert_verdict(REUSE_SERVE, with_cc("max-age=60"), .at_s = -86400);
    assert_verdict(REUSE_VALIDATE, with_cc("max-age=60"), .at_s = INT64_C(2) << 40);
}

static bool
bridged(const char *cache_control, const char *request_fields, unsigned status, int64_t at_s)
{
    struct fields f = fields_of(request_fields);
    struct cache_control cc = cache_control_parse(&f);

    return reuse_after_failure(&cc, with_cc(cache_control), NULL, &week, status, AT(at_s));
}

/* RFC 9111 section 4.2.4: disconnected. */
static void
stale_goes_out_when_the_origin_gives_no_answer(void **state)
{
    assert_true(bridged("max-age=2", NULL, 0, 3));
    assert_true(bridged("max-age=2", NULL, 0, 2 + 7 * 86400));
    assert_false(bridged("max-age=2", NULL, 0, 3 + 7 * 86400));
    assert_true(
        bridged("max-age=2", NULL, 503, 3)); /* taken for no answer: RFC 9111 section 4.3.3 */
    assert_false(bridged("max-age=2", NULL, 501, 3));
    assert_false(bridged("max-age=2", CC("max-stale=5"), 0, 8));
    assert_true(bridged("max-age=2", CC("max-stale"), 0, 8));
}

static void
no_stale_after_failure_where_it_is_forbidden(void **state)
{
    static const char *const forbid[] = {
        "max-age=2, must-revalidate", "max-age=2, proxy-revalidate", "max-age=2, no-cache",
        "max-age=2, s-maxage=2", "max-age=2, stale-if-error=60, must-revalidate"};

    for (unsigned i = 0; i < sizeof forbid / sizeof forbid[0]; i++)
        assert_false(bridged(forbid[i], NULL, 0, 3));
    assert_false(bridged("max-age=2", CC("no-cache"), 0, 1));
}

/* RFC 5861 section 4: of either side, for its time only. */
static void
stale_if_error_covers_errors_for_its_time(void **state)
{
    assert_true(bridged("max-age=2, stale-if-error=60", NULL, 503, 62));
    assert_false(bridged("max-age=2, stale-if-error=60", NULL, 503, 63));
    assert_false(bridged("max-age=2, stale-if-error=60", NULL, 0, 63));
    assert_true(bridged("max-age=2", CC("stale-if-error=60"), 500, 5));
    assert_false(bridged("max-age=2, stale-if-error=60", NULL, 404, 3));
    assert_false(bridged("max-age=2, stale-if-error=60", NULL, 501, 3));
}

/* A client's max-age=0 sent us to the origin; the response itself is still fresh. */
static void
what_is_fresh_goes_out_when_the_origin_fails(void **state)
{
    assert_true(bridged("max-age=60, must-revalidate", CC("max-age=0"), 0, 3));
    assert_false(bridged("max-age=60, no-cache", CC("max-age=0"), 0, 3));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fresh_is_served_and_stale_is_validated),
        cmocka_unit_test(who_waited_gets_what_is_fresh),
        cmocka_unit_test(who_waited_gets_what_is_stale_on_arrival_without_credentials_alone),
        cmocka_unit_test(what_needs_validation_is_for_no_waiter),
        cmocka_unit_test(the_waiters_own_cache_control_counts),
        cmocka_unit_test(who_wants_the_origin_asked_does_not_wait),
        cmocka_unit_test(nothing_stored_is_a_miss),
        cmocka_unit_test(head_goes_through_when_the_stored_one_is_stale),
        cmocka_unit_test(no_cache_of_the_origin_is_validated_each_time),
        cmocka_unit_test(a_reload_fetches_anew),
        cmocka_unit_test(no_store_of_a_request_is_still_answered),
        cmocka_unit_test(max_age_of_a_request_bounds_the_age),
        cmocka_unit_test(min_fresh_wants_some_lifetime_left),
        cmocka_unit_test(max_stale_accepts_what_is_not_too_stale),
        cmocka_unit_test(max_stale_does_not_lift_a_prohibition),
        cmocka_unit_test(a_rule_has_its_own_limit_of_staleness),
        cmocka_unit_test(stale_while_revalidate_serves_within_its_window),
        cmocka_unit_test(only_if_cached_refuses_to_ask),
        cmocka_unit_test(offline_serves_whatever_there_is),
        cmocka_unit_test(refresh_ims_asks_when_the_client_has_a_copy),
        cmocka_unit_test(the_clock_set_back_or_forward_does_no_harm),
        cmocka_unit_test(stale_goes_out_when_the_origin_gives_no_answer),
        cmocka_unit_test(no_stale_after_failure_where_it_is_forbidden),
        cmocka_unit_test(stale_if_error_covers_errors_for_its_time),
        cmocka_unit_test(what_is_fresh_goes_out_when_the_origin_fails),
    };

    return cmocka_run_group_tests(tests, heads_init, heads_free);
}
