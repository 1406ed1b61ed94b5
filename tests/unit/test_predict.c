/* test_predict - levels over time, the curve of LRU, and what a log is made into. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/check.h"
#include "tools/predict.d/study.h"

#define S(seconds) ((int64_t)((seconds)*1000000))

static void
assert_about(double a, double b)
{
    assert_true(a - b < 1e-9 && b - a < 1e-9);
}

/* ---- levels ---- */

static void
percentiles_are_over_time(void **state)
{
    struct level_times t = {0};

    level_times_add(&t, 3, S(98));
    level_times_add(&t, 500, S(1));
    level_times_add(&t, 7, S(1));
    assert_int_equal(level_times_percentile(&t, 0.5), 3);
    assert_int_equal(level_times_percentile(&t, 0.99), 7);
    assert_int_equal(level_times_percentile(&t, 1), 500);
    level_times_free(&t);
}

static void
a_peak_of_no_length_is_a_peak(void **state)
{
    struct level_track t = {0};
    struct level_summary s;

    level_track_add(&t, S(0), S(10), 1);
    level_track_add(&t, S(10), S(10), 5);
    level_track_add(&t, S(10), S(20), 2);
    s = level_track_end(&t);
    assert_int_equal(s.peak, 5);
    assert_int_equal(s.peak_at_us, S(10));
    assert_int_equal(s.p99, 2);
    assert_about(s.mean, 1.5);
}

static void
minutes_cut_what_goes_over_their_border(void **state)
{
    struct fd_levels one = {.tunnels = 1, .client_active = 1, .server_active = 1}, none = {0};
    struct fd_request q = {.start_us = S(30), .end_us = S(90)};
    struct minutes m = {0};

    minutes_add(&m, S(30), S(90), &one);
    minutes_add(&m, S(90), S(1e9), &none);
    minutes_end(&m);
    minutes_count(&m, &q, 1);
    assert_int_equal(m.n, 2);
    assert_int_equal(m.rows[1].minute, 1);
    assert_about(m.rows[0].open_mean, 0.5);
    assert_about(m.rows[1].open_mean, 0.5);
    assert_int_equal(m.rows[1].tunnels_peak, 1);
    assert_int_equal(m.rows[1].descriptors_peak, 2);
    assert_int_equal(m.rows[0].came, 1);
    assert_int_equal(m.rows[1].came, 0);
    assert_about(m.rows[0].duration_s, 60);
    assert_int_equal(minutes_busiest_hour(&m).came, 1);
    assert_about(minutes_busiest_hour(&m).open_mean, 1 / 60.0);
    minutes_free(&m);
}

/* ---- scale ---- */

static void
steps_are_below_half_a_percent(void **state)
{
    for (uint64_t v = 1; v < UINT64_MAX / 3; v += v / 3 + 1) {
        uint32_t step = scale_step(v);

        assert_true(step < SCALE_STEPS);
        assert_true(scale_least(step) <= v && scale_least(step + 1) > v);
        assert_true((double)(v - scale_least(step)) <= (double)v * 0.004);
    }
    assert_true(scale_step(UINT64_MAX) < SCALE_STEPS);
}

static void
percentiles_of_small_values_are_exact(void **state)
{
    static struct scale s;

    for (unsigned i = 1; i <= 100; i++)
        scale_add(&s, i);
    assert_int_equal(scale_percentile(&s, 0.5), 51);
    assert_int_equal(scale_percentile(&s, 0.99), 100);
    assert_int_equal(s.most, 100);
}

/* ---- names ---- */

static void
names_are_numbered_as_they_appear(void **state)
{
    struct names t = {0};
    char text[20];

    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < 5000; i++) {
            bool is_new;

            snprintf(text, sizeof(text), "name %u", i);
            assert_int_equal(names_number(&t, span_str(text), &is_new), i);
            assert_int_equal(is_new, round == 0);
        }
    assert_true(names_has(&t, SPAN("name 7")));
    assert_false(names_has(&t, SPAN("nobody")));
    names_free(&t);
}

/* ---- reuse ---- */

static uint64_t
lru_hits(const struct reuse *r, uint64_t bytes)
{
    uint64_t hits, hit_bytes;

    reuse_lru_at(r, bytes, &hits, &hit_bytes);
    return hits;
}

static void
a_distance_is_what_was_used_since(void **state)
{
    struct reuse *r = reuse_new();

    assert_false(reuse_cacheable(r, SPAN("a"), 100, false));
    assert_false(reuse_cacheable(r, SPAN("b"), 20, false));
    assert_true(reuse_cacheable(r, SPAN("b"), 20, false));  /* 20 */
    assert_true(reuse_cacheable(r, SPAN("a"), 100, false)); /* 120 */
    assert_int_equal(lru_hits(r, 19), 0);
    assert_int_equal(lru_hits(r, 20), 1);
    assert_int_equal(lru_hits(r, 119), 1);
    assert_int_equal(lru_hits(r, 120), 2);
    assert_int_equal(r->unique_bytes, 120);
    reuse_free(&r);
    assert_null(r);
}

static void
a_304_confirms_but_stores_nothing(void **state)
{
    struct reuse *r = reuse_new();

    assert_false(reuse_cacheable(r, SPAN("a"), 5, true));
    assert_false(reuse_cacheable(r, SPAN("a"), 100, false));
    assert_true(reuse_cacheable(r, SPAN("a"), 5, true));
    assert_int_equal(r->unique_bytes, 100);
    assert_int_equal(r->hit_bytes, 5);
    assert_int_equal(lru_hits(r, 99), 0);
    assert_int_equal(lru_hits(r, 100), 1);
    reuse_free(&r);
}

static void
a_new_size_counts_from_then_on(void **state)
{
    struct reuse *r = reuse_new();

    reuse_cacheable(r, SPAN("a"), 100, false);
    reuse_cacheable(r, SPAN("a"), 40, false);
    reuse_cacheable(r, SPAN("a"), 40, false);
    assert_int_equal(r->unique_bytes, 40);
    assert_int_equal(lru_hits(r, 40), 1);
    assert_int_equal(lru_hits(r, 100), 2);
    reuse_free(&r);
}

/* An LRU stack as a list, the newest first. */
static uint64_t
plain_lru(const unsigned *asked, unsigned n, const unsigned *sizes, uint64_t room)
{
    static unsigned stack[20000];
    unsigned depth = 0;
    uint64_t hits = 0;

    for (unsigned i = 0; i < n; i++) {
        uint64_t above = 0;
        unsigned at = 0;

        while (at < depth && stack[at] != asked[i])
            above += sizes[stack[at++]];
        if (at < depth)
            hits += above + sizes[asked[i]] <= room;
        else
            depth++;
        memmove(stack + 1, stack, at * sizeof(*stack));
        stack[0] = asked[i];
    }
    return hits;
}

/* Enough uses that the slots are packed again and again; sizes small enough to be exact steps. */
static void
the_curve_agrees_with_a_plain_stack(void **state)
{
    enum { USES = 20000, OBJECTS = 300 };
    static unsigned asked[USES], sizes[OBJECTS];
    struct reuse *r = reuse_new();

    srand(3);
    for (unsigned i = 0; i < OBJECTS; i++)
        sizes[i] = (unsigned)rand() % 3;
    for (unsigned i = 0; i < USES; i++) {
        char name[20];

        asked[i] = (unsigned)(rand() % OBJECTS) * (unsigned)(rand() % OBJECTS) / OBJECTS;
        snprintf(name, sizeof(name), "%u", asked[i]);
        reuse_cacheable(r, span_str(name), sizes[asked[i]], false);
    }
    assert_int_equal(r->hits, USES - r->cacheable.n);
    for (uint64_t room = 0; room < 400; room += 7)
        assert_int_equal(lru_hits(r, room), plain_lru(asked, USES, sizes, room));
    reuse_free(&r);
}

/* ---- a log ---- */

static struct gathered *
gathered_from(const char *text, const struct gather_options *o)
{
    char path[] = "/tmp/cuttle-predict-XXXXXX", why[200];
    int fd = mkstemp(path);
    struct trace_reader *reader;
    struct gathered *g;

    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    reader = trace_reader_open(path, why, sizeof(why));
    unlink(path);
    assert_non_null(reader);
    g = gather(reader, o);
    trace_reader_close(&reader);
    return g;
}

#define LOG                                                                                        \
    "1500000010.000  1000 c1 TCP_MISS/200 500 GET http://a/1 - HIER_DIRECT/192.0.2.1 -\n"          \
    "1500000011.000  1000 c2 TCP_HIT/200 500 GET http://a/1 - HIER_NONE/- -\n"                     \
    "1500000012.000  1000 c1 TCP_REFRESH_UNMODIFIED/200 500 GET http://a/1 - HIER_DIRECT/x -\n"    \
    "1500000013.000  1000 c1 TCP_MISS/200 9 POST https://a/2 - HIER_DIRECT/192.0.2.1 -\n"          \
    "1500000014.000  1000 c1 TCP_TUNNEL/200 9 CONNECT b:443 - HIER_DIRECT/192.0.2.2 -\n"           \
    "1500000015.000  1000 c1 TCP_DENIED/403 9 GET http://b/ - HIER_NONE/- -\n"

static const struct gather_options AS_LOGGED = {.delay_us = -1, .hit_delay_us = -1, .limit = -1};

static void
the_hierarchy_says_what_went_to_a_server(void **state)
{
    struct gathered *g = gathered_from(LOG, &AS_LOGGED);

    assert_int_equal(g->n, 6);
    assert_int_equal(g->to_server, 4); /* a validation did, a denied request did not */
    assert_int_equal(g->requests[1].server, FD_NO_SERVER);
    assert_int_equal(g->requests[0].server, g->requests[2].server);
    assert_int_not_equal(g->requests[0].server, g->requests[3].server); /* https has its own */
    assert_true(g->requests[3].fresh && g->requests[4].tunnel);
    assert_int_equal(g->clients.n, 2);
    assert_int_equal(g->requests[0].start_us, INT64_C(1500000009000000));
    gathered_free(&g);
    assert_null(g);
}

static void
other_rules_for_hits_can_be_chosen(void **state)
{
    struct gather_options o = AS_LOGGED;
    struct gathered *g;

    o.hits = HITS_NONE;
    g = gathered_from(LOG, &o);
    assert_int_equal(g->to_server, 6);
    gathered_free(&g);
    o.hits = HITS_IDEAL;
    g = gathered_from(LOG, &o);
    assert_int_equal(g->to_server, 4); /* both repeats of a/1 are answered here */
    gathered_free(&g);
    o.hits = HITS_SHARE;
    o.hit_share = 0.4;
    g = gathered_from(LOG, &o);
    assert_int_equal(g->to_server, 4); /* two of the five that are no tunnels */
    gathered_free(&g);
}

static void
hits_can_be_given_a_duration(void **state)
{
    struct gather_options o = AS_LOGGED;
    struct gathered *g;

    o.hit_delay_us = 5000;
    g = gathered_from(LOG, &o);
    assert_int_equal(g->requests[1].end_us - g->requests[1].start_us, 5000);
    assert_int_equal(g->requests[0].end_us - g->requests[0].start_us, 1000000);
    gathered_free(&g);
}

static void
overhead_is_added_to_all_but_tunnels(void **state)
{
    struct gather_options o = AS_LOGGED;
    struct gathered *g;

    o.overhead_us = 2000;
    g = gathered_from(LOG, &o);
    assert_int_equal(g->requests[0].end_us - g->requests[0].start_us, 1002000);
    assert_int_equal(g->requests[4].end_us - g->requests[4].start_us, 1000000);
    gathered_free(&g);
}

static void
a_log_without_durations_needs_a_model(void **state)
{
    struct study_options o = {.gather = AS_LOGGED};
    const char *log = "c - - [14/Jul/2017:02:40:00 +0000] \"GET /a HTTP/1.1\" 200 5\n"
                      "c - - [14/Jul/2017:02:40:01 +0000] \"GET /b HTTP/1.1\" 200 5\n";
    struct gathered *g = gathered_from(log, &o.gather);
    struct study *s = study_make(g, &o);

    assert_true(s->has_times && !s->has_durations);
    assert_int_equal(s->n_arms, 0);
    study_free(&s);
    gathered_free(&g);
    o.gather.delay_us = S(3);
    g = gathered_from(log, &o.gather);
    s = study_make(g, &o);
    assert_int_equal(s->n_arms, 1);
    assert_int_equal(s->all.peak, 2);
    assert_int_equal(s->arms[0].held.peak, 4);
    study_free(&s);
    gathered_free(&g);
}

static void
a_first_column_that_counts_is_no_time(void **state)
{
    struct study_options o = {.gather = AS_LOGGED};
    struct gathered *g = gathered_from("1 a 5\n2 b 5\n3 a 5\n", &o.gather);
    struct study *s;

    o.gather.delay_us = 1;
    s = study_make(g, &o);
    assert_true(g->is_ordered && !s->has_times);
    assert_int_equal(g->reuse->any_hits, 1);
    study_free(&s);
    gathered_free(&g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_over_time),
        cmocka_unit_test(a_peak_of_no_length_is_a_peak),
        cmocka_unit_test(minutes_cut_what_goes_over_their_border),
        cmocka_unit_test(steps_are_below_half_a_percent),
        cmocka_unit_test(percentiles_of_small_values_are_exact),
        cmocka_unit_test(names_are_numbered_as_they_appear),
        cmocka_unit_test(a_distance_is_what_was_used_since),
        cmocka_unit_test(a_304_confirms_but_stores_nothing),
        cmocka_unit_test(a_new_size_counts_from_then_on),
        cmocka_unit_test(the_curve_agrees_with_a_plain_stack),
        cmocka_unit_test(the_hierarchy_says_what_went_to_a_server),
        cmocka_unit_test(other_rules_for_hits_can_be_chosen),
        cmocka_unit_test(hits_can_be_given_a_duration),
        cmocka_unit_test(overhead_is_added_to_all_but_tunnels),
        cmocka_unit_test(a_log_without_durations_needs_a_model),
        cmocka_unit_test(a_first_column_that_counts_is_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
