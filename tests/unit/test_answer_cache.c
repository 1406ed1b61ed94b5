/* tests/unit/test_answer_cache.c - what is kept of name servers' answers, and for how long. The
 * clock stands still unless a test moves it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/clock.h"
#include "dns/answer_cache.h"

enum { T0_MS = 1000000 };

static const struct resolver_options usual = {.positive_ttl_s = 3600, .negative_ttl_s = 60};

static void
at_second(int64_t s)
{
    clock_fake(T0_MS + s * 1000, T0_MS + s * 1000);
}

static struct dns_name
name(const char *text)
{
    struct dns_name n;

    assert_true(name_read(span_str(text), &n));
    return n;
}

static struct half_answer
one(const char *address, int64_t ttl_s)
{
    struct half_answer h = {.kind = HALF_ADDRESSES, .ttl_s = ttl_s};
    struct addr a;

    assert_true(addr_parse(span_str(address), &a));
    half_add(&h, &a);
    return h;
}

static struct half_answer
none(enum half_kind kind, int64_t ttl_s)
{
    return (struct half_answer){.kind = kind, .ttl_s = ttl_s};
}

static void
put(struct answer_cache *c, const char *host, struct half_answer v6, struct half_answer v4)
{
    struct half_answer h[HALVES] = {v6, v4};
    struct dns_name n = name(host);

    answer_cache_put(c, &n, h);
}

static bool
find(struct answer_cache *c, const char *host, struct dns_answer *a)
{
    struct dns_name n = name(host);

    return answer_cache_find(c, &n, a);
}

static bool
has(struct answer_cache *c, const char *host)
{
    struct dns_answer a;

    return find(c, host, &a);
}

static void
assert_first(struct answer_cache *c, const char *host, const char *address)
{
    char text[ADDR_TEXT_MAX];
    struct dns_answer a;

    assert_true(find(c, host, &a));
    assert_true(a.from_cache);
    assert_int_equal(a.status, DNS_OK);
    addr_format(&a.at[0], text);
    assert_string_equal(text, address);
}

static void
assert_kept_for(struct answer_cache *c, const char *host, int64_t s)
{
    at_second(s - 1);
    assert_true(has(c, host));
    at_second(s);
    assert_false(has(c, host));
    at_second(0);
}

static int
fresh_cache(void **state)
{
    at_second(0);
    *state = answer_cache_new(&usual);
    return 0;
}

static int
free_cache(void **state)
{
    struct answer_cache *c = *state;

    answer_cache_free(&c);
    clock_fake(-1, -1);
    return 0;
}

static void
an_answer_lives_as_long_as_its_shorter_ttl(void **state)
{
    struct answer_cache *c = *state;
    struct dns_answer a;

    put(c, "a.test", one("2001:db8::1", 30), one("192.0.2.1", 300));
    at_second(10);
    assert_true(find(c, "A.TEST", &a));
    assert_int_equal(a.n, 2);
    assert_int_equal(a.ttl_s, 20);
    assert_kept_for(c, "a.test", 30);
}

static void
the_operator_bounds_the_ttl(void **state)
{
    struct answer_cache *c = *state;

    put(c, "a.test", one("2001:db8::1", 86400), one("192.0.2.1", 86400));
    assert_kept_for(c, "a.test", 3600);
}

/* RFC 1035 section 3.2.1: zero TTL means "only for the transaction in progress". */
static void
addresses_with_ttl_0_are_not_kept(void **state)
{
    struct answer_cache *c = *state;

    put(c, "a.test", none(HALF_NO_DATA, 60), one("192.0.2.1", 0));
    assert_false(has(c, "a.test"));
    put(c, "a.test", none(HALF_NO_DATA, 60), one("192.0.2.1", 60));
    assert_first(c, "a.test", "192.0.2.1");
    put(c, "a.test", none(HALF_NO_DATA, 60), one("192.0.2.2", 0));
    assert_false(has(c, "a.test"));
}

static void
a_negative_answer_ends_with_its_soa_or_the_operators_bound(void **state)
{
    struct answer_cache *c = *state;
    struct dns_answer a;

    put(c, "short.test", none(HALF_NO_NAME, 20), none(HALF_NO_NAME, 25));
    put(c, "long.test", none(HALF_NO_NAME, 3600), none(HALF_NO_DATA, 3600));
    assert_true(find(c, "short.test", &a));
    assert_int_equal(a.status, DNS_NO_NAME);
    assert_int_equal(a.ttl_s, 20);
    assert_kept_for(c, "short.test", 20);
    assert_kept_for(c, "long.test", 60);
}

/* SERVFAIL or REFUSED says nothing of the name: asked again soon, whatever negative_dns_ttl is. */
static void
failures_are_kept_for_two_seconds_and_timeouts_for_ten(void **state)
{
    struct resolver_options brief = {.positive_ttl_s = 3600, .negative_ttl_s = 1};
    struct answer_cache *c = *state, *other = answer_cache_new(&brief);
    struct dns_answer a;

    put(c, "refused.test", none(HALF_FAILED, 0), none(HALF_FAILED, 0));
    assert_kept_for(c, "refused.test", 2);
    put(c, "a.test", none(HALF_TIMEOUT, 0), none(HALF_TIMEOUT, 0));
    assert_true(find(c, "a.test", &a));
    assert_int_equal(a.status, DNS_TIMEOUT);
    assert_kept_for(c, "a.test", 10);
    put(other, "a.test", none(HALF_FAILED, 0), none(HALF_FAILED, 0));
    assert_kept_for(other, "a.test", 1);
    answer_cache_free(&other);
}

static void
a_failure_does_not_displace_good_addresses_but_nxdomain_does(void **state)
{
    struct answer_cache *c = *state;
    struct dns_answer a;

    put(c, "a.test", none(HALF_NO_DATA, 60), one("192.0.2.1", 60));
    put(c, "a.test", none(HALF_TIMEOUT, 0), none(HALF_TIMEOUT, 0));
    assert_first(c, "a.test", "192.0.2.1");
    put(c, "a.test", none(HALF_NO_NAME, 60), none(HALF_NO_NAME, 60));
    assert_true(find(c, "a.test", &a));
    assert_int_equal(a.status, DNS_NO_NAME);
}

/* The address whose time is over is not used again, whatever the name server says now. */
static void
a_failure_after_expiry_does_not_revive_the_address(void **state)
{
    struct answer_cache *c = *state;
    struct dns_answer a;

    put(c, "a.test", none(HALF_NO_DATA, 30), one("192.0.2.1", 30));
    at_second(30);
    assert_false(has(c, "a.test"));
    put(c, "a.test", none(HALF_FAILED, 0), none(HALF_FAILED, 0));
    assert_true(find(c, "a.test", &a));
    assert_int_equal(a.status, DNS_FAILED);
    assert_int_equal(a.n, 0);
}

static void
a_family_without_addresses_does_not_shorten_the_other(void **state)
{
    struct answer_cache *c = *state;

    put(c, "a.test", none(HALF_NO_DATA, 5), one("192.0.2.1", 300));
    put(c, "b.test", one("2001:db8::1", 300), none(HALF_FAILED, 0));
    assert_kept_for(c, "a.test", 300);
    assert_kept_for(c, "b.test", 300);
}

static void
the_later_family_joins_the_earlier(void **state)
{
    struct answer_cache *c = *state;
    struct dns_answer a;

    put(c, "a.test", none(HALF_TIMEOUT, 0), one("192.0.2.1", 60));
    put(c, "a.test", one("2001:db8::1", 60), none(HALF_NONE, 0));
    assert_true(find(c, "a.test", &a));
    assert_int_equal(a.n, 2);
    assert_first(c, "a.test", "2001:db8::1");
}

static void
what_worked_stays_first_over_the_next_answer(void **state)
{
    struct answer_cache *c = *state;
    struct dns_name n = name("a.test");
    struct half_answer v4 = one("192.0.2.2", 60);

    put(c, "a.test", one("2001:db8::1", 60), one("192.0.2.2", 60));
    assert_first(c, "a.test", "2001:db8::1");
    answer_cache_prefer(c, &n, &v4.at[0]);
    assert_first(c, "a.test", "192.0.2.2");
    at_second(60);
    put(c, "a.test", one("2001:db8::1", 60), one("192.0.2.2", 60));
    assert_first(c, "a.test", "192.0.2.2");
}

static void
the_least_recently_used_name_goes_first(void **state)
{
    struct resolver_options three = usual;
    struct answer_cache *c;
    struct answer_cache_stats stats;

    three.cache_entries = 3;
    c = answer_cache_new(&three);
    put(c, "a.test", none(HALF_NO_DATA, 60), one("192.0.2.1", 60));
    put(c, "b.test", none(HALF_NO_DATA, 60), one("192.0.2.2", 60));
    put(c, "c.test", none(HALF_NO_NAME, 60), none(HALF_NO_NAME, 60));
    assert_true(has(c, "a.test"));
    put(c, "d.test", none(HALF_NO_DATA, 60), one("192.0.2.4", 60));
    assert_false(has(c, "b.test"));
    assert_true(has(c, "a.test") && has(c, "c.test") && has(c, "d.test"));
    answer_cache_stats(c, &stats);
    assert_int_equal(stats.entries, 3);
    assert_int_equal(stats.hits, 4);
    assert_int_equal(stats.negative_hits, 1);
    assert_int_equal(stats.misses, 1);
    answer_cache_free(&c);
}

static void
it_never_grows_beyond_its_bound(void **state)
{
    struct resolver_options small = usual;
    struct answer_cache_stats stats;
    struct answer_cache *c;

    small.cache_entries = 2000;
    c = answer_cache_new(&small);
    for (unsigned i = 0; i < 10000; i++) {
        char host[32];

        snprintf(host, sizeof(host), "host%u.test", i);
        put(c, host, one("2001:db8::1", 60), one("192.0.2.1", 60));
        assert_true(has(c, host));
    }
    answer_cache_stats(c, &stats);
    assert_in_range(stats.entries, 1500, 2000);
    answer_cache_free(&c);
}

static void
note_each(void *arg, struct span host, const struct dns_answer *a, int64_t left_s)
{
    char *to = arg;

    sprintf(to + strlen(to), "%.*s %d %u %d;", SPAN_ARG(host), (int)a->status, a->n, (int)left_s);
}

static void
a_report_sees_what_still_holds(void **state)
{
    struct answer_cache *c = *state;
    struct resolver_options one_shard = usual;
    char text[256] = "";

    one_shard.cache_entries = 100;
    c = answer_cache_new(&one_shard);
    put(c, "old.test", none(HALF_NO_DATA, 5), one("192.0.2.1", 5));
    put(c, "a.test", one("2001:db8::1", 60), one("192.0.2.1", 30));
    put(c, "no.test", none(HALF_NO_NAME, 60), none(HALF_NO_NAME, 60));
    at_second(10);
    answer_cache_each(c, note_each, text);
    assert_string_equal(text, "no.test 1 0 50;a.test 0 2 20;");
    answer_cache_free(&c);
}

/* RFC 6761 section 6.3: never asked of a name server. */
static void
localhost_needs_no_name_server(void **state)
{
    struct answer_cache *c = *state;
    struct dns_answer a;

    assert_first(c, "localhost", "::1");
    assert_first(c, "App.LocalHost.", "::1");
    assert_true(find(c, "localhost", &a));
    assert_int_equal(a.n, 2);
    assert_false(has(c, "notlocalhost"));
    assert_false(has(c, "localhost.test"));
}

static void
write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void
the_hosts_file_rules_and_is_followed_within_a_second(void **state)
{
    char path[] = "/tmp/test_answer_cache.XXXXXX";
    struct resolver_options o = usual;
    struct answer_cache *c;
    struct answer_cache_stats stats;

    close(mkstemp(path));
    write_file(path, "127.0.0.1 localhost\n192.0.2.7 a.test b\n");
    o.hosts_file = path;
    c = answer_cache_new(&o);
    put(c, "a.test", none(HALF_NO_DATA, 60), one("192.0.2.1", 60));
    assert_first(c, "a.test", "192.0.2.7");
    assert_first(c, "b.", "192.0.2.7");
    assert_first(c, "localhost", "127.0.0.1");
    answer_cache_stats(c, &stats);
    assert_int_equal(stats.hosts_entries, 3);
    write_file(path, "192.0.2.8 another.test\n");
    assert_first(c, "b", "192.0.2.7"); /* not yet looked at */
    at_second(1);
    assert_first(c, "a.test", "192.0.2.1");
    assert_first(c, "another.test", "192.0.2.8");
    assert_false(has(c, "b"));
    unlink(path);
    answer_cache_free(&c);
}

/* ---- reloads ---- */

static void
new_bounds_hold_for_what_is_kept_too(void **state)
{
    struct answer_cache *c = *state;
    struct resolver_options o = usual;

    put(c, "a.test", one("2001:db8::1", 300), one("192.0.2.1", 300));
    put(c, "no.test", none(HALF_NO_NAME, 60), none(HALF_NO_NAME, 60));
    o.positive_ttl_s = 20;
    o.negative_ttl_s = 5;
    o.v4_first = true;
    answer_cache_reconfigure(c, &o);
    assert_first(c, "a.test", "192.0.2.1");
    assert_kept_for(c, "a.test", 20);
    assert_kept_for(c, "no.test", 5);
    put(c, "b.test", none(HALF_NO_NAME, 60), none(HALF_NO_NAME, 60));
    assert_kept_for(c, "b.test", 5);
    answer_cache_reconfigure(c, &usual); /* a longer bound revives nothing */
    assert_kept_for(c, "b.test", 5);
}

static void
answers_of_other_servers_or_completions_are_forgotten(void **state)
{
    struct answer_cache *c = *state;
    struct resolver_options o = usual;
    struct dns_answer a;

    put(c, "printer", none(HALF_NO_NAME, 60), none(HALF_NO_NAME, 60));
    answer_cache_answered(c, 1);
    o.cache_entries = 100;
    answer_cache_reconfigure(c, &o);
    assert_true(find(c, "printer", &a));
    assert_int_equal(answer_cache_first_server(c), 1);
    o.append_domain = ".corp.test";
    answer_cache_reconfigure(c, &o);
    assert_false(find(c, "printer", &a));
    put(c, "printer", none(HALF_NO_DATA, 60), one("192.0.2.1", 60));
    o.nameservers = "192.0.2.53";
    answer_cache_reconfigure(c, &o);
    assert_false(find(c, "printer", &a));
    assert_int_equal(answer_cache_first_server(c), 0);
}

static void
another_size_lets_the_oldest_go(void **state)
{
    struct resolver_options o = usual;
    struct answer_cache_stats stats;
    struct answer_cache *c;

    o.cache_entries = 100;
    c = answer_cache_new(&o);
    for (unsigned i = 0; i < 100; i++) {
        char host[32];

        snprintf(host, sizeof(host), "host%u.test", i);
        put(c, host, none(HALF_NO_DATA, 60), one("192.0.2.1", 60));
    }
    o.cache_entries = 16;
    answer_cache_reconfigure(c, &o);
    answer_cache_stats(c, &stats);
    assert_int_equal(stats.entries, 16);
    assert_false(has(c, "host83.test"));
    assert_true(has(c, "host84.test"));
    o.cache_entries = 17;
    answer_cache_reconfigure(c, &o);
    put(c, "a.test", none(HALF_NO_DATA, 60), one("192.0.2.1", 60));
    put(c, "b.test", none(HALF_NO_DATA, 60), one("192.0.2.1", 60));
    answer_cache_stats(c, &stats);
    assert_int_equal(stats.entries, 17);
    answer_cache_free(&c);
}

static void
another_hosts_file_takes_the_place_of_the_first(void **state)
{
    char first[] = "/tmp/test_answer_cache.XXXXXX", second[] = "/tmp/test_answer_cache.XXXXXX";
    struct answer_cache *c = *state;
    struct resolver_options o = usual;

    close(mkstemp(first));
    close(mkstemp(second));
    write_file(first, "192.0.2.7 a.test\n");
    write_file(second, "192.0.2.8 b.test\n");
    o.hosts_file = first;
    answer_cache_reconfigure(c, &o);
    assert_first(c, "a.test", "192.0.2.7");
    write_file(first, "192.0.2.70 a.test again.test\n");
    answer_cache_reconfigure(c, &o); /* at once, and not only within a second */
    assert_first(c, "a.test", "192.0.2.70");
    o.hosts_file = second;
    answer_cache_reconfigure(c, &o);
    assert_first(c, "b.test", "192.0.2.8");
    assert_false(has(c, "a.test"));
    unlink(second);
    at_second(2);
    assert_false(has(c, "b.test"));
    o.hosts_file = first;
    answer_cache_reconfigure(c, &o);
    o.hosts_file = NULL;
    answer_cache_reconfigure(c, &o);
    assert_false(has(c, "a.test"));
    unlink(first);
}

struct crowd {
    struct answer_cache *c;
    char path[32];
};

static void *
use_it_all(void *arg)
{
    struct crowd *crowd = arg;
    struct half_answer h[HALVES] = {one("2001:db8::1", 60), one("192.0.2.1", 60)};

    for (unsigned i = 0; i < 2000; i++) {
        char host[32];
        struct dns_name n;
        struct dns_answer a;

        snprintf(host, sizeof(host), "host%u.test", i % 64);
        if (!name_read(span_str(host), &n))
            abort();
        clock_fake(T0_MS, T0_MS + (int64_t)i * 100);
        answer_cache_put(crowd->c, &n, h);
        answer_cache_prefer(crowd->c, &n, &h[HALF_V4].at[0]);
        if (answer_cache_find(crowd->c, &n, &a) && (a.n == 0 || a.status != DNS_OK))
            abort();
        if (i % 100 == 0)
            write_file(crowd->path, i % 200 ? "192.0.2.9 host1.test\n" : "192.0.2.9 b x\n");
    }
    return NULL;
}

static void
workers_share_it_through_reloads(void **state)
{
    struct crowd crowd = {.path = "/tmp/test_answer_cache.XXXXXX"};
    struct resolver_options o = usual;
    pthread_t threads[3];

    close(mkstemp(crowd.path));
    o.hosts_file = crowd.path;
    crowd.c = answer_cache_new(&o);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_it_all, &crowd), 0);
    for (unsigned i = 0; i < 200; i++) {
        o.cache_entries = i % 2 ? 16 : 4096;
        o.positive_ttl_s = i % 3 ? 3600 : 1;
        o.v4_first = i % 2;
        o.hosts_file = i % 5 ? crowd.path : NULL;
        o.nameservers = i % 7 ? "192.0.2.1" : "192.0.2.2";
        answer_cache_reconfigure(crowd.c, &o);
    }
    for (unsigned i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    unlink(crowd.path);
    answer_cache_free(&crowd.c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fresh_cache, free_cache)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_answer_lives_as_long_as_its_shorter_ttl),
        TEST(the_operator_bounds_the_ttl),
        TEST(addresses_with_ttl_0_are_not_kept),
        TEST(a_negative_answer_ends_with_its_soa_or_the_operators_bound),
        TEST(failures_are_kept_for_two_seconds_and_timeouts_for_ten),
        TEST(a_failure_does_not_displace_good_addresses_but_nxdomain_does),
        TEST(a_failure_after_expiry_does_not_revive_the_address),
        TEST(a_family_without_addresses_does_not_shorten_the_other),
        TEST(the_later_family_joins_the_earlier),
        TEST(what_worked_stays_first_over_the_next_answer),
        TEST(the_least_recently_used_name_goes_first),
        TEST(it_never_grows_beyond_its_bound),
        TEST(a_report_sees_what_still_holds),
        TEST(localhost_needs_no_name_server),
        TEST(the_hosts_file_rules_and_is_followed_within_a_second),
        TEST(new_bounds_hold_for_what_is_kept_too),
        TEST(answers_of_other_servers_or_completions_are_forgotten),
        TEST(another_size_lets_the_oldest_go),
        TEST(another_hosts_file_takes_the_place_of_the_first),
        TEST(workers_share_it_through_reloads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
