/* tests/unit/test_freshness.c - RFC 9111 section 4.2 on literal heads. */
#include "cache/freshness.h"
#include "tests/unit/heads.h"

static int64_t
lifetime_by(const struct head *h, struct refresh_rule rule)
{
    return freshness_at(h, &rule, M0).lifetime_s;
}

static int64_t
lifetime(const char *fields)
{
    return freshness_at(stored_response(.fields = fields), NULL, M0).lifetime_s;
}

static bool
is_fresh_at(const struct head *h, int64_t seconds)
{
    struct freshness f = freshness_at(h, NULL, AT(seconds));

    return freshness_is_fresh(&f);
}

#define LM_100S "Last-Modified: Mon, 31 Dec 2029 23:58:20 GMT\r\n"
#define LM_DAY "Last-Modified: Mon, 31 Dec 2029 00:00:00 GMT\r\n"

/* RFC 9111 section 4.2: fresh as long as the lifetime exceeds the age. */
static void
fresh_ends_when_the_age_reaches_the_lifetime(void **state)
{
    struct head *h = stored_response(.fields = DATE_T0 "Cache-Control: max-age=60\r\n");

    assert_true(is_fresh_at(h, 59));
    assert_false(is_fresh_at(h, 60));
    assert_false(is_fresh_at(stored_response(.fields = "Cache-Control: max-age=0\r\n"), 0));
}

/* RFC 9111 section 4.2.1 */
static void
s_maxage_comes_before_max_age_before_expires(void **state)
{
    const char *all = DATE_T0 "Expires: Tue, 01 Jan 2030 00:05:00 GMT\r\n"
                              "Cache-Control: max-age=10\r\nCache-Control: s-maxage=60\r\n";
    struct freshness f = freshness_at(stored_response(.fields = all), NULL, M0);

    assert_int_equal(f.lifetime_s, 60);
    assert_int_equal(f.origin, LIFETIME_S_MAXAGE);
    assert_int_equal(lifetime("Expires: 0\r\nCache-Control: max-age=10\r\n"), 10);
    assert_int_equal(lifetime("Cache-Control: max-age=0, s-maxage=15\r\n"), 15);
    assert_int_equal(lifetime("Cache-Control: max-age=900, s-maxage=0\r\n"), 0);
    assert_int_equal(lifetime(DATE_T0 "Expires: Tue, 01 Jan 2030 00:05:00 GMT\r\n"), 300);
}

/* RFC 9111 section 4.2.1: Expires minus Date, whatever our own clock says. */
static void
expires_counts_from_date_not_from_our_clock(void **state)
{
    const char *both_ahead = "Date: Tue, 01 Jan 2030 00:06:40 GMT\r\n"
                             "Expires: Tue, 01 Jan 2030 00:05:00 GMT\r\n";
    const char *fast = "Date: Tue, 01 Jan 2030 00:00:10 GMT\r\n"
                       "Expires: Tue, 01 Jan 2030 00:00:20 GMT\r\nAge: 15\r\n";

    assert_int_equal(lifetime(both_ahead), -100);
    assert_false(is_fresh_at(stored_response(.fields = both_ahead), 0));
    assert_int_equal(lifetime(fast), 10);
    assert_false(is_fresh_at(stored_response(.fields = fast), 0));
}

static void
expires_without_a_date_counts_from_the_arrival(void **state)
{
    assert_int_equal(lifetime("Date: foo\r\nExpires: Tue, 01 Jan 2030 00:00:10 GMT\r\n"), 10);
}

/* RFC 9111 section 5.3; it is explicit, so Last-Modified gives no lifetime. */
static void
an_unreadable_expires_is_in_the_past(void **state)
{
    struct head *h = stored_response(.fields = DATE_T0 LM_DAY "Expires: 0\r\n");

    assert_true(freshness_is_explicit(h));
    assert_false(is_fresh_at(h, 0));
    assert_int_equal(freshness_at(h, NULL, M0).origin, LIFETIME_EXPIRES);
}

/* RFC 9111 section 4.2.3 */
static void
age_grows_with_resident_time_and_never_below_zero(void **state)
{
    struct head *h = stored_response(.fields = DATE_T0 "Age: 30\r\nCache-Control: max-age=60\r\n");

    assert_int_equal(freshness_at(h, NULL, M0 + 2999).age_s, 32);
    assert_int_equal(freshness_at(h, NULL, M0 - 500000).age_s, 30);
    assert_true(is_fresh_at(h, 29));
    assert_false(is_fresh_at(h, 30));
}

static void
a_huge_age_is_stale_even_for_a_huge_lifetime(void **state)
{
    assert_false(is_fresh_at(stored_response(.fields = "Age: 2147483647\r\n"
                                                       "Cache-Control: max-age=3600\r\n"),
                             0));
    assert_false(is_fresh_at(stored_response(.fields = "Age: 99999999999\r\n"
                                                       "Cache-Control: max-age=99999999999\r\n"),
                             0));
    assert_true(
        is_fresh_at(stored_response(.fields = "Cache-Control: max-age=99999999999\r\n"), 9));
}

/* RFC 9111 section 4.2.2 */
static void
a_share_of_the_unchanged_time_is_the_heuristic(void **state)
{
    struct freshness f = freshness_at(stored_response(.fields = DATE_T0 LM_100S), NULL, M0);

    assert_int_equal(f.lifetime_s, 20);
    assert_int_equal(f.origin, LIFETIME_HEURISTIC);
    assert_int_equal(lifetime(DATE_T0 LM_DAY), 17280);
    assert_int_equal(lifetime(DATE_T0 "Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT\r\n"),
                     3 * 86400);
    assert_int_equal(lifetime(DATE_T0), 0);
    assert_int_equal(lifetime(DATE_T0 "Last-Modified: Wed, 02 Jan 2030 00:00:00 GMT\r\n"), 0);
}

/* RFC 9111 section 4.2.2 and 5.2.2.9: by status (RFC 9110 section 15.1), or with public. */
static void
the_heuristic_needs_a_status_or_public(void **state)
{
    static const unsigned cacheable[] = {200, 203, 204, 301, 308, 404, 405, 410, 414, 501};
    static const unsigned others[] = {201, 202, 302, 403, 500, 502, 503, 504, 599};

    for (unsigned i = 0; i < sizeof cacheable / sizeof cacheable[0]; i++)
        assert_true(
            is_fresh_at(stored_response(.status = cacheable[i], .fields = DATE_T0 LM_DAY), 0));
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(
            is_fresh_at(stored_response(.status = others[i], .fields = DATE_T0 LM_DAY), 0));
        assert_true(is_fresh_at(stored_response(.status = others[i], .fields = DATE_T0 LM_DAY
                                                                     "Cache-Control: public\r\n"),
                                0));
    }
}

/* Squid's habit: Pragma in a response stops heuristics and nothing else. */
static void
pragma_in_a_response_stops_the_heuristic_only(void **state)
{
    assert_int_equal(lifetime(DATE_T0 LM_DAY "Pragma: no-cache\r\n"), 0);
    assert_int_equal(lifetime("Pragma: no-cache\r\nCache-Control: max-age=9\r\n"), 9);
    assert_int_equal(
        lifetime(DATE_T0 "Pragma: no-cache\r\nExpires: Tue, 01 Jan 2030 00:05:00 GMT\r\n"), 300);
}

/* refresh_pattern: the share first, the minimum where there is no Last-Modified, max above all. */
static void
a_rule_bounds_the_heuristic(void **state)
{
    struct head *lm = stored_response(.fields = DATE_T0 LM_100S);
    struct head *bare = stored_response(.fields = DATE_T0);
    struct refresh_rule rule = {.min_s = 50, .max_s = 70, .percent = 40, .max_stale_s = -1};

    assert_int_equal(lifetime_by(lm, rule), 40);
    assert_int_equal(lifetime_by(bare, rule), 50);
    rule.percent = 90;
    assert_int_equal(lifetime_by(lm, rule), 70);
    rule.percent = 0;
    assert_int_equal(lifetime_by(lm, rule), 0);
    rule.override_lastmod = true;
    assert_int_equal(lifetime_by(lm, rule), 50);
    rule.max_s = 30;
    assert_int_equal(lifetime_by(bare, rule), 30);
    rule.percent = UINT32_MAX;
    assert_int_equal(lifetime_by(lm, rule), 30);
}

static void
override_expire_lengthens_an_explicit_lifetime(void **state)
{
    struct head *h = stored_response(.fields = "Cache-Control: max-age=10\r\n");
    struct refresh_rule rule = {.min_s = 50, .max_s = 70, .max_stale_s = -1};

    assert_int_equal(lifetime_by(h, rule), 10);
    rule.override_expire = true;
    assert_int_equal(lifetime_by(h, rule), 50);
    assert_int_equal(freshness_at(h, &rule, M0).origin, LIFETIME_OVERRIDE);
    rule.min_s = 5;
    assert_int_equal(lifetime_by(h, rule), 10);
}

static bool
forbids(const char *cache_control)
{
    const char *line =
        arena_str(&heads_arena, arena_printf(&heads_arena, "Cache-Control: %s\r\n", cache_control));

    return freshness_forbids_stale(stored_response(.fields = line), NULL);
}

/* RFC 9111 section 4.2.4 */
static void
what_forbids_stale_use(void **state)
{
    struct refresh_rule lax = {.ignore_must_revalidate = true};

    assert_false(forbids("max-age=1"));
    assert_true(forbids("max-age=1, must-revalidate"));
    assert_true(forbids("max-age=1, Proxy-Revalidate"));
    assert_true(forbids("s-maxage=1"));
    assert_true(forbids("no-cache"));
    assert_true(forbids("no-cache=\"a\""));
    assert_false(freshness_forbids_stale(
        stored_response(.fields = "Cache-Control: must-revalidate\r\n"), &lax));
    assert_true(
        freshness_forbids_stale(stored_response(.fields = "Cache-Control: no-cache\r\n"), &lax));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fresh_ends_when_the_age_reaches_the_lifetime),
        cmocka_unit_test(s_maxage_comes_before_max_age_before_expires),
        cmocka_unit_test(expires_counts_from_date_not_from_our_clock),
        cmocka_unit_test(expires_without_a_date_counts_from_the_arrival),
        cmocka_unit_test(an_unreadable_expires_is_in_the_past),
        cmocka_unit_test(age_grows_with_resident_time_and_never_below_zero),
        cmocka_unit_test(a_huge_age_is_stale_even_for_a_huge_lifetime),
        cmocka_unit_test(a_share_of_the_unchanged_time_is_the_heuristic),
        cmocka_unit_test(the_heuristic_needs_a_status_or_public),
        cmocka_unit_test(pragma_in_a_response_stops_the_heuristic_only),
        cmocka_unit_test(a_rule_bounds_the_heuristic),
        cmocka_unit_test(override_expire_lengthens_an_explicit_lifetime),
        cmocka_unit_test(what_forbids_stale_use),
    };

    return cmocka_run_group_tests(tests, heads_init, heads_free);
}
