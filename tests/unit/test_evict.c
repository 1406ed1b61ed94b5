/* tests/unit/test_evict.c - replacement policies and the memory of what was dropped (cache/evict.h,
 * cache/ghost.h). */
#include "tests/unit/heads.h"

#include <stdlib.h>

#include "cache/evict.h"
#include "cache/ghost.h"

enum { N = 1000, ROOM = 200 };

static struct entry entries[N];
static bool there[N];
static unsigned held;

static void
drop_one(struct evict_order *o)
{
    struct entry *e = o->policy->victim(o);

    assert_non_null(e);
    evict_remember(o, e, (uint64_t)(e - entries) << 32);
    evict_remove(o, e);
    there[e - entries] = false;
    held--;
}

/* true: a hit. */
static bool
ask(struct evict_order *o, unsigned i)
{
    if (there[i]) {
        o->policy->touch(o, &entries[i]);
        return true;
    }
    entries[i].charged = 1000;
    o->policy->insert(o, &entries[i], (uint64_t)i << 32);
    (void)evict_size(o, ROOM * 1000, ROOM);
    there[i] = true;
    if (++held > ROOM)
        drop_one(o);
    return false;
}

static void
order_make(struct evict_order *o, const struct evict_policy *policy)
{
    evict_init(o, policy);
    memset(entries, 0, sizeof entries);
    memset(there, 0, sizeof there);
    held = 0;
}

static unsigned
hot_ones_left(const struct evict_policy *policy)
{
    struct evict_order o;
    unsigned left = 0;

    order_make(&o, policy);
    for (int round = 0; round < 4; round++)
        for (unsigned i = 0; i < 100; i++)
            ask(&o, i);
    for (unsigned i = 100; i < N; i++) /* a scan */
        ask(&o, i);
    for (unsigned i = 0; i < 100; i++)
        left += there[i];
    evict_free(&o);
    return left;
}

static void
a_scan_drives_out_what_lru_keeps_and_not_what_s3fifo_keeps(void **state)
{
    assert_int_equal(hot_ones_left(&evict_lru), 0);
    assert_int_equal(hot_ones_left(&evict_s3fifo), 100);
}

static void
what_comes_back_soon_after_it_was_dropped_stays(void **state)
{
    struct evict_order o;

    order_make(&o, &evict_s3fifo);
    for (unsigned i = 0; i < 300; i++)
        ask(&o, i);
    assert_false(there[50]);
    assert_false(ask(&o, 50));
    assert_false(entries[50].in_small);
    for (unsigned i = 300; i < 400; i++)
        ask(&o, i);
    assert_true(there[50]);
    evict_free(&o);
}

static void
bytes_are_counted_whatever_happens(void **state)
{
    const struct evict_policy *policies[] = {&evict_lru, &evict_s3fifo};
    unsigned seed = 7;

    for (int p = 0; p < 2; p++) {
        struct evict_order o;

        order_make(&o, policies[p]);
        for (int i = 0; i < 100000; i++) {
            unsigned k = (unsigned)rand_r(&seed) % N;
            uint64_t bytes = 0, small = 0;

            ask(&o, k);
            if (there[k] && i % 3 == 0)
                evict_recharge(&o, &entries[k], 500 + (size_t)rand_r(&seed) % 1000);
            for (unsigned e = 0; i % 1000 == 0 && e < N; e++) {
                bytes += there[e] ? entries[e].charged : 0;
                small += there[e] && entries[e].in_small ? entries[e].charged : 0;
            }
            if (i % 1000)
                continue;
            assert_int_equal(o.bytes, bytes);
            assert_int_equal(o.small_bytes, small);
        }
        while (held)
            drop_one(&o);
        assert_null(o.policy->victim(&o));
        assert_int_equal(o.bytes, 0);
        evict_free(&o);
    }
}

static void
lru_is_the_exact_order_of_use(void **state)
{
    struct evict_order o;

    order_make(&o, &evict_lru);
    for (unsigned i = 0; i < ROOM; i++)
        ask(&o, i);
    ask(&o, 0);
    assert_ptr_equal(evict_coldest(&o), &entries[1]);
    ask(&o, 500);
    assert_true(there[0]);
    assert_false(there[1]);
    evict_free(&o);
}

/* ---- the ghost ---- */

static uint64_t
hash_of(uint64_t i)
{
    return (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void
a_ghost_remembers_so_many_bytes_and_each_once(void **state)
{
    struct ghost *g = ghost_new();
    unsigned known = 0;

    ghost_size(g, 1000 * 4096, 4000);
    for (uint64_t i = 0; i < 5000; i++)
        ghost_add(g, hash_of(i), 4096);
    for (uint64_t i = 0; i < 3900; i++)
        assert_false(ghost_take(g, hash_of(i)));
    for (uint64_t i = 4100; i < 5000; i++)
        known += ghost_take(g, hash_of(i));
    assert_in_range(known, 850, 900);
    for (uint64_t i = 4100; i < 5000; i++)
        assert_false(ghost_take(g, hash_of(i)));
    ghost_free(&g);
}

static void
a_ghost_that_grows_forgets_nothing(void **state)
{
    struct ghost *g = ghost_new();
    unsigned known = 0;

    ghost_size(g, 1 << 30, 256);
    for (uint64_t i = 0; i < 100; i++)
        ghost_add(g, hash_of(i), 4096);
    ghost_size(g, 1 << 30, 100000);
    assert_in_range(ghost_memory(g), 100000 * 8, 200000 * 8 + 64000);
    for (uint64_t i = 0; i < 100; i++)
        known += ghost_take(g, hash_of(i));
    assert_in_range(known, 95, 100);
    ghost_free(&g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scan_drives_out_what_lru_keeps_and_not_what_s3fifo_keeps),
        cmocka_unit_test(what_comes_back_soon_after_it_was_dropped_stays),
        cmocka_unit_test(bytes_are_counted_whatever_happens),
        cmocka_unit_test(lru_is_the_exact_order_of_use),
        cmocka_unit_test(a_ghost_remembers_so_many_bytes_and_each_once),
        cmocka_unit_test(a_ghost_that_grows_forgets_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
