/* test_descriptors - the model of tools/predict on intervals made by hand, and against a plain one.
 *
 * Times are seconds here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/check.h"
#include "tools/predict.d/descriptors.h"

#define S(seconds) ((int64_t)((seconds)*1000000))
#define GET(from, until, who, where)                                                               \
    {                                                                                              \
        .start_us = S(from), .end_us = S(until), .client = (who), .server = (where)                \
    }
#define HIT(from, until, who) GET(from, until, who, FD_NO_SERVER)
#define POST(from, until, who, where)                                                              \
    {                                                                                              \
        .start_us = S(from), .end_us = S(until), .client = (who), .server = (where), .fresh = 1    \
    }
#define TUNNEL(from, until, who, where)                                                            \
    {                                                                                              \
        .start_us = S(from), .end_us = S(until), .client = (who), .server = (where), .tunnel = 1   \
    }

#define PREDICT(client_s, server_s, ...)                                                           \
    predict((struct fd_request[]){__VA_ARGS__},                                                    \
            sizeof((struct fd_request[]){__VA_ARGS__}) / sizeof(struct fd_request), S(client_s),   \
            S(server_s))

static struct fd_need
predict(struct fd_request *requests, size_t n, int64_t client_us, int64_t server_us)
{
    struct fd_plan *p = fd_plan_new(requests, n);
    struct fd_model m = {client_us, server_us};
    struct fd_need need = fd_plan_predict(p, &m, NULL, NULL);

    fd_plan_free(&p);
    assert_null(p);
    return need;
}

static void
assert_about(double a, double b)
{
    assert_true(a - b < 1e-9 && b - a < 1e-9);
}

static void
a_miss_holds_two_descriptors_and_a_hit_one(void **state)
{
    struct fd_need n = PREDICT(0, 0, GET(0, 10, 0, 0), HIT(0, 10, 1));

    assert_int_equal(n.peak, 3);
    assert_about(n.mean, 3);
    assert_about(n.client_mean, 2);
    assert_about(n.server_mean, 1);
}

static void
the_peak_is_where_most_overlap(void **state)
{
    struct fd_need n = PREDICT(0, 0, HIT(0, 4, 0), HIT(3, 6, 1), HIT(3.5, 10, 2), HIT(8, 10, 3));

    assert_int_equal(n.peak, 3);
    assert_int_equal(n.peak_at_us, S(3.5));
    assert_int_equal(n.at_peak.requests, 3);
    assert_about(n.mean, (4 + 3 + 6.5 + 2) / 10);
}

static void
the_order_of_the_log_does_not_matter(void **state)
{
    struct fd_need n = PREDICT(0, 0, HIT(8, 10, 3), HIT(3, 6, 1), HIT(3.5, 10, 2), HIT(0, 4, 0));

    assert_int_equal(n.peak_at_us, S(3.5));
}

static void
who_ends_when_another_comes_does_not_overlap_it(void **state)
{
    assert_int_equal(PREDICT(0, 0, HIT(0, 5, 0), HIT(5, 10, 1)).peak, 1);
}

static void
a_request_of_no_duration_counts_for_a_moment(void **state)
{
    struct fd_need n = PREDICT(0, 0, HIT(0, 10, 0), HIT(5, 5, 1), HIT(5, 5, 2));

    assert_int_equal(n.peak, 3);
    assert_about(n.mean, 1);
}

static void
an_idle_connection_is_taken_by_the_clients_next_request(void **state)
{
    struct fd_need n = PREDICT(5, 0, HIT(0, 1, 0), HIT(3, 4, 0), HIT(9.5, 10, 0));

    assert_int_equal(n.client_opened, 2); /* from 4 it stays until 9 only */
    assert_int_equal(n.client_asked, 3);
    assert_int_equal(n.peak, 1);
    assert_about(n.mean, 0.95);
}

static void
an_idle_connection_is_no_other_clients(void **state)
{
    struct fd_need n = PREDICT(60, 0, HIT(0, 1, 0), HIT(2, 3, 1));

    assert_int_equal(n.client_opened, 2);
    assert_int_equal(n.peak, 2);
    assert_int_equal(n.at_peak.client_idle, 1);
    assert_int_equal(n.peak_at_us, S(2));
}

static void
parallel_requests_need_parallel_connections_which_all_stay(void **state)
{
    struct fd_need n = PREDICT(60, 0, HIT(0, 1, 0), HIT(0, 2, 0), HIT(0, 3, 0), HIT(10, 20, 0));

    assert_int_equal(n.client_opened, 3);
    assert_about(n.mean, 3);
}

/* Of two idle ones the later is taken, so the older one runs out. */
static void
the_last_one_to_become_idle_is_taken(void **state)
{
    struct fd_need n =
        PREDICT(5, 0, HIT(0, 1, 0), HIT(0, 2, 0), HIT(5, 6, 0), HIT(7, 8, 0), HIT(9, 10, 0));

    assert_int_equal(n.client_opened, 2);
    assert_about(n.mean, (6 + 10) / 10.0); /* the first until 1 + 5, the second throughout */
}

static void
a_timeout_at_the_moment_of_arrival_has_struck(void **state)
{
    assert_int_equal(PREDICT(5, 0, HIT(0, 1, 0), HIT(6, 7, 0)).client_opened, 2);
    assert_int_equal(PREDICT(5.001, 0, HIT(0, 1, 0), HIT(6, 7, 0)).client_opened, 1);
}

static void
server_connections_are_shared_between_clients(void **state)
{
    struct fd_need n = PREDICT(0, 60, GET(0, 1, 0, 0), GET(2, 3, 1, 0), GET(4, 5, 1, 7));

    assert_int_equal(n.server_opened, 2);
    assert_int_equal(n.client_opened, 3);
    assert_int_equal(n.peak, 3); /* at 4: one client, one server active, one idle */
}

static void
what_must_not_be_repeated_goes_out_on_a_fresh_connection(void **state)
{
    struct fd_need n = PREDICT(60, 60, GET(0, 1, 0, 0), POST(2, 3, 0, 0), GET(4, 5, 0, 0));

    assert_int_equal(n.server_opened, 2);
    assert_int_equal(n.client_opened, 1);
    assert_int_equal(n.at_peak.server_idle + n.at_peak.server_active, 2);
}

static void
a_tunnel_takes_no_idle_connection_and_leaves_none(void **state)
{
    struct fd_need n =
        PREDICT(60, 60, GET(0, 1, 0, 0), TUNNEL(2, 3, 0, 0), GET(4, 5, 0, 0), GET(6, 10, 0, 0));

    assert_int_equal(n.client_opened, 2);
    assert_int_equal(n.server_opened, 2);
    assert_int_equal(n.peak, 4);
    assert_int_equal(n.at_peak.tunnels, 1);
    assert_about(n.mean, 2 + 2 / 10.0);
}

static void
nothing_needs_nothing(void **state)
{
    struct fd_request none;
    struct fd_need n = predict(&none, 0, S(5), S(5));

    assert_int_equal(n.peak, 0);
    assert_about(n.mean, 0);
}

/* ---- against a plain model: a list of connections, searched ---- */

enum { CONNS = 200 };

struct plain_conn {
    uint32_t pool;
    int64_t since_us; /* idle from then on */
    int64_t busy_until_us;
    bool stays, open;
};

struct plain_side {
    struct plain_conn conns[CONNS];
    unsigned n, opened;
    int64_t idle_us;
    double area;
};

static int64_t
closed_at(const struct plain_side *s, const struct plain_conn *c)
{
    return c->busy_until_us + (c->stays ? s->idle_us : 0);
}

static void
plain_request(struct plain_side *s, uint32_t pool, const struct fd_request *q, bool reuse,
              int64_t last_us)
{
    struct plain_conn *best = NULL;
    int64_t end_us;

    for (unsigned i = 0; i < s->n && reuse && s->idle_us > 0; i++) {
        struct plain_conn *c = &s->conns[i];

        if (c->open && c->stays && c->pool == pool && c->busy_until_us <= q->start_us &&
            closed_at(s, c) > q->start_us && (!best || c->busy_until_us > best->busy_until_us))
            best = c;
    }
    if (best) { /* counted until its own end already */
        int64_t was_us = closed_at(s, best) < last_us ? closed_at(s, best) : last_us;

        s->area -= (double)(was_us - q->start_us);
        best->open = false;
    } else {
        s->opened++;
    }
    s->conns[s->n] = (struct plain_conn){pool, 0, q->end_us, !q->tunnel && s->idle_us > 0, true};
    end_us = closed_at(s, &s->conns[s->n++]);
    s->area += (double)((end_us < last_us ? end_us : last_us) - q->start_us);
}

static int
by_start(const void *a, const void *b)
{
    const struct fd_request *x = a, *y = b;

    return (x->start_us > y->start_us) - (x->start_us < y->start_us);
}

/* All starts differ and all ends differ, so that no tie needs a rule. */
static void
random_requests(struct fd_request *q, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        int64_t start_us = S(rand() % 100) + 2 * i;

        q[i] = (struct fd_request){.start_us = start_us,
                                   .end_us = start_us + S(1 + rand() % 9) + 1,
                                   .client = (uint32_t)rand() % 4,
                                   .server = rand() % 3 ? (uint32_t)rand() % 3 : FD_NO_SERVER,
                                   .tunnel = rand() % 6 == 0,
                                   .fresh = rand() % 5 == 0};
    }
    qsort(q, n, sizeof(*q), by_start);
}

static void
the_model_agrees_with_a_plain_one(void **state)
{
    static struct plain_side client, server;

    srand(17);
    for (unsigned round = 0; round < 300; round++) {
        struct fd_request q[CONNS];
        unsigned n = 1 + (unsigned)rand() % (CONNS - 1);
        int64_t last_us = 0, idle_us = rand() % 4 ? S(rand() % 20) : 0;
        struct fd_need need;

        random_requests(q, n);
        for (unsigned i = 0; i < n; i++)
            last_us = q[i].end_us > last_us ? q[i].end_us : last_us;
        client = server = (struct plain_side){.idle_us = idle_us};
        for (unsigned i = 0; i < n; i++) {
            plain_request(&client, q[i].client, &q[i], !q[i].tunnel, last_us);
            if (q[i].server != FD_NO_SERVER)
                plain_request(&server, q[i].server, &q[i], !q[i].tunnel && !q[i].fresh, last_us);
        }
        need = predict(q, n, idle_us, idle_us);
        assert_int_equal(need.client_opened, client.opened);
        assert_int_equal(need.server_opened, server.opened);
        assert_true(need.mean * (double)(last_us - q[0].start_us) - client.area - server.area < 1);
        assert_true(need.mean * (double)(last_us - q[0].start_us) - client.area - server.area > -1);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_miss_holds_two_descriptors_and_a_hit_one),
        cmocka_unit_test(the_peak_is_where_most_overlap),
        cmocka_unit_test(the_order_of_the_log_does_not_matter),
        cmocka_unit_test(who_ends_when_another_comes_does_not_overlap_it),
        cmocka_unit_test(a_request_of_no_duration_counts_for_a_moment),
        cmocka_unit_test(an_idle_connection_is_taken_by_the_clients_next_request),
        cmocka_unit_test(an_idle_connection_is_no_other_clients),
        cmocka_unit_test(parallel_requests_need_parallel_connections_which_all_stay),
        cmocka_unit_test(the_last_one_to_become_idle_is_taken),
        cmocka_unit_test(a_timeout_at_the_moment_of_arrival_has_struck),
        cmocka_unit_test(server_connections_are_shared_between_clients),
        cmocka_unit_test(what_must_not_be_repeated_goes_out_on_a_fresh_connection),
        cmocka_unit_test(a_tunnel_takes_no_idle_connection_and_leaves_none),
        cmocka_unit_test(nothing_needs_nothing),
        cmocka_unit_test(the_model_agrees_with_a_plain_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
