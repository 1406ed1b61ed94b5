/* tests/unit/test_counters.c - counters, histograms and the sums of the stopwatch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "base/counters.h"
#include "base/readiness.h"

static void *
count_a_thousand(void *arg)
{
    for (unsigned i = 0; i < 1000; i++) {
        counter_add(COUNTER_CLIENT_REQUESTS, 1);
        counter_add(COUNTER_CLIENT_KBYTES_OUT, 3);
        histogram_add(HISTOGRAM_HIT_US, 100);
    }
    return NULL;
}

static void
counts_of_all_threads_are_summed_also_of_ended_ones(void **state)
{
    struct counters_sum before, after;
    pthread_t threads[4];

    counters_read(&before);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_a_thousand, NULL), 0);
    count_a_thousand(NULL);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    counters_read(&after);
    assert_int_equal(after.at[COUNTER_CLIENT_REQUESTS] - before.at[COUNTER_CLIENT_REQUESTS], 5000);
    assert_int_equal(after.at[COUNTER_CLIENT_KBYTES_OUT], 15000);
    assert_int_equal(after.at[COUNTER_EVICTED], 0);
    assert_int_equal(after.histogram[HISTOGRAM_HIT_US][histogram_bucket(100)], 5000);
    assert_int_equal(after.histogram[HISTOGRAM_MISS_US][histogram_bucket(100)], 0);
}

static void
every_counter_has_a_name_of_its_own_and_a_text(void **state)
{
    for (unsigned i = 0; i < COUNTERS; i++) {
        assert_true(strlen(counter_text(i)) > 0);
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(counter_name(i), counter_name(k));
    }
    assert_string_equal(counter_name(COUNTER_CLIENT_REQUESTS), "client_http.requests");
}

static void
buckets_partition_the_numbers(void **state)
{
    for (unsigned b = 0; b < HISTOGRAM_BUCKETS; b++) {
        uint64_t low = histogram_bucket_low(b);

        assert_int_equal(histogram_bucket(low), b);
        if (b > 0)
            assert_int_equal(histogram_bucket(low - 1), b - 1);
    }
    for (uint64_t v = 0; v < 16; v++)
        assert_int_equal(histogram_bucket_low(histogram_bucket(v)), v);
    assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

static void
a_bucket_is_at_most_an_eighth_of_its_value_wide(void **state)
{
    for (unsigned b = 8; b + 1 < HISTOGRAM_BUCKETS; b++) {
        uint64_t low = histogram_bucket_low(b);

        assert_true((histogram_bucket_low(b + 1) - low) * 8 <= low);
    }
}

static void
quantiles_of_nothing_and_of_one_value(void **state)
{
    uint64_t buckets[HISTOGRAM_BUCKETS] = {0};

    assert_int_equal(histogram_quantile(buckets, 0.5), 0);
    buckets[5] = 100;
    assert_int_equal(histogram_quantile(buckets, 0), 5);
    assert_int_equal(histogram_quantile(buckets, 0.5), 5);
    assert_int_equal(histogram_quantile(buckets, 1), 5);
    assert_int_equal(histogram_quantile(buckets, 7), 5);
    assert_int_equal(histogram_quantile(buckets, -1), 5);
}

static void
quantiles_lie_within_an_eighth(void **state)
{
    uint64_t buckets[HISTOGRAM_BUCKETS] = {0};
    static const double shares[] = {0.01, 0.25, 0.5, 0.75, 0.95, 0.999};

    for (uint64_t v = 1; v <= 100000; v++)
        buckets[histogram_bucket(v)]++;
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        double q = (double)histogram_quantile(buckets, shares[i]), exact = shares[i] * 100000;

        assert_true(q > exact * 0.875 - 1 && q < exact * 1.125 + 1);
    }
    buckets[HISTOGRAM_BUCKETS - 1] = 1000000000;
    assert_true(histogram_quantile(buckets, 1) >= histogram_bucket_low(HISTOGRAM_BUCKETS - 1));
}

static void
readiness_buckets_double(void **state)
{
    static const struct {
        uint64_t events;
        unsigned bucket;
    } rows[] = {{0, 0},  {1, 1},  {2, 2},  {3, 3},   {4, 3},   {5, 4},    {8, 4},
                {9, 5},  {16, 5}, {17, 6}, {32, 6},  {33, 7},  {8192, 14}, {8193, 15},
                {UINT64_MAX, 15}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(readiness_bucket(rows[i].events), rows[i].bucket);
}

static void
the_share_is_formed_over_all_loops(void **state)
{
    struct readiness a = {.cpu_ns = 440, .thread_cpu_ns = 1000, .calls = 3, .watched = 5};
    struct readiness b = {.cpu_ns = 0, .thread_cpu_ns = 1000, .calls = 4, .watched = -1};
    struct readiness_sum sum = {0};

    a.kind_ns[LOOP_CLIENT] = b.kind_ns[LOOP_CLIENT] = 7;
    assert_true(readiness_share(&sum) == 0);
    readiness_add(&sum, &a);
    assert_true(readiness_share(&sum) > 0.4399 && readiness_share(&sum) < 0.4401);
    readiness_add(&sum, &b);
    assert_true(readiness_share(&sum) > 0.2199 && readiness_share(&sum) < 0.2201);
    assert_int_equal(sum.calls, 7);
    assert_int_equal(sum.watched, 4);
    assert_int_equal(sum.kind_ns[LOOP_CLIENT], 14);
    assert_int_equal(sum.elapsed_ns, 0); /* neither has run */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_all_threads_are_summed_also_of_ended_ones),
        cmocka_unit_test(every_counter_has_a_name_of_its_own_and_a_text),
        cmocka_unit_test(buckets_partition_the_numbers),
        cmocka_unit_test(a_bucket_is_at_most_an_eighth_of_its_value_wide),
        cmocka_unit_test(quantiles_of_nothing_and_of_one_value),
        cmocka_unit_test(quantiles_lie_within_an_eighth),
        cmocka_unit_test(readiness_buckets_double),
        cmocka_unit_test(the_share_is_formed_over_all_loops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
