/* tests/unit/test_directory.c - what lies where on disk (cache/disk/directory.h). */
#include "cache/disk/directory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define N 20000

static struct directory *d;

static int
make(void **state)
{
    d = directory_new();
    return 0;
}

static int
unmake(void **state)
{
    directory_free(&d);
    return 0;
}

static uint64_t
hash_of(uint64_t i)
{
    i = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return i ^ i >> 29;
}

static void
put(uint64_t hash, uint64_t at, uint32_t tag)
{
    directory_put(
        d, &(struct directory_row){.hash = hash, .at = at, .bytes = 160, .tag = tag, .used_s = 5});
}

static uint64_t
place_of(uint64_t hash)
{
    struct directory_row row;

    return directory_find(d, hash, &row, 1) ? row.at : 0;
}

static void
many_are_found_again_and_cost_32_bytes_at_most(void **state)
{
    for (uint64_t i = 0; i < N; i++)
        put(hash_of(i), 16 + i * 160, 0);
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(place_of(hash_of(i)), 16 + i * 160);
    assert_int_equal(place_of(hash_of(N)), 0);
    assert_int_equal(directory_count(d), N);
    assert_int_equal(directory_live_bytes(d), N * 160);
    assert_true(directory_memory(d) <= N * 32 + 8192);
}

static void
a_variant_takes_the_place_of_itself_alone(void **state)
{
    struct directory_row rows[4];

    put(7, 160, 1);
    put(7, 320, 2);
    put(7, 480, 1);
    assert_int_equal(directory_find(d, 7, rows, 4), 2);
    assert_int_equal(rows[0].at + rows[1].at, 320 + 480);
    assert_int_equal(directory_remove_all(d, 7), 2);
    assert_int_equal(directory_count(d), 0);
}

static void
what_is_removed_leaves_the_others(void **state)
{
    for (uint64_t i = 0; i < N; i++)
        put(hash_of(i), 16 + i * 160, 0);
    for (uint64_t i = 0; i < N; i += 3)
        assert_true(directory_remove(d, hash_of(i), 16 + i * 160));
    assert_false(directory_remove(d, hash_of(1), 16)); /* it does not lie there */
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(place_of(hash_of(i)), i % 3 ? 16 + i * 160 : 0);
}

struct kept {
    unsigned n, used;
    uint64_t sum;
};

static void
keep(void *arg, const struct directory_row *row)
{
    struct kept *k = arg;

    k->n++;
    k->used += row->uses;
    k->sum += row->at;
}

static void
a_range_is_taken_out_and_told_with_its_uses(void **state)
{
    struct kept kept = {0};

    for (uint64_t i = 0; i < N; i++)
        put(hash_of(i), 16 + i * 160, 0);
    for (uint64_t i = 0; i < N; i += 10) {
        struct directory_row row;

        assert_int_equal(directory_find(d, hash_of(i), &row, 1), 1);
        directory_touch(d, &row, 9);
    }
    directory_take_range(d, 16 + 1000 * 160, 16 + 2000 * 160, keep, &kept);
    assert_int_equal(kept.n, 1000);
    assert_int_equal(kept.used, 100);
    assert_int_equal(directory_count(d), N - 1000);
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(place_of(hash_of(i)), i >= 1000 && i < 2000 ? 0 : 16 + i * 160);
}

/* Against a plain array, at random. */
static void
any_order_of_changes_is_right(void **state)
{
    static uint64_t at[256];
    unsigned seed = 3;

    memset(at, 0, sizeof at);
    for (int i = 0; i < 200000; i++) {
        unsigned k = (unsigned)rand_r(&seed) % 256;

        if (rand_r(&seed) % 3) {
            at[k] = 16 * (1 + (uint64_t)i);
            put(hash_of(k % 64) + k / 64, at[k], 0);
        } else {
            assert_int_equal(directory_remove(d, hash_of(k % 64) + k / 64, at[k]), at[k] != 0);
            at[k] = 0;
        }
        k = (unsigned)rand_r(&seed) % 256;
        assert_int_equal(place_of(hash_of(k % 64) + k / 64), at[k]);
    }
    directory_clear(d);
    assert_int_equal(directory_count(d), 0);
}

#define test(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        test(many_are_found_again_and_cost_32_bytes_at_most),
        test(a_variant_takes_the_place_of_itself_alone),
        test(what_is_removed_leaves_the_others),
        test(a_range_is_taken_out_and_told_with_its_uses),
        test(any_order_of_changes_is_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
