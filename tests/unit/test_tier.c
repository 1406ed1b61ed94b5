/* tests/unit/test_tier.c - the store on disk from within: what scenarios cannot time
 * (cache/tier.h).
 */
#include "tests/unit/heads.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "cache/tier.h"

enum { N = 500 };

static char folder[] = "/tmp/cuttle-tier-XXXXXX";
static struct tiers *tiers;

static struct span
uri_of(unsigned i)
{
    return arena_printf(&heads_arena, "http://o.example/%u", i);
}

static void
open_store(void)
{
    char why[256];

    tiers = tiers_new();
    assert_true(tiers_add(tiers, &(struct tier_options){.path = folder, .bytes = 16 << 20}, why,
                          sizeof why));
}

static void
wait_ready(void)
{
    struct tier_stats s = {0};

    for (int i = 0; i < 10000 && !s.ready; i++) {
        tiers_stats(tiers, 0, &s);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_true(s.ready);
}

static void
remove_file(const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

/* As after a crash: without the snapshot of an orderly end. */
static void
open_again(void)
{
    tiers_close(&tiers);
    remove_file("cuttle.index");
    open_store();
}

static void
put(unsigned i)
{
    struct head *h = stored_response(.fields = "Cache-Control: max-age=60\r\n");
    struct body *b = body_new(BODY_KEEP, 5, NULL, NULL);
    struct entry *e;

    head_ref(h);
    body_append(b, SPAN("hello"));
    body_complete(b, SPAN_NONE);
    e = entry_new(&h, &b, SPAN_NONE, 5);
    tiers_put(tiers, uri_of(i), e);
    entry_unref(&e);
}

static uint64_t
objects(void)
{
    struct tier_stats s;

    tiers_stats(tiers, 0, &s);
    return s.objects;
}

static int
make(void **state)
{
    open_store();
    wait_ready();
    for (unsigned i = 0; i < N; i++)
        put(i);
    tiers_sync(tiers);
    return 0;
}

static int
unmake(void **state)
{
    tiers_close(&tiers);
    remove_file("cuttle.index");
    remove_file("cuttle.store");
    while (heads_n)
        head_unref(&heads_made[--heads_n]);
    return 0;
}

static void
what_was_put_is_known_after_a_crash(void **state)
{
    open_again();
    wait_ready();
    assert_int_equal(objects(), N);
    assert_true(tiers_have(tiers, uri_of(7)));
    assert_false(tiers_have(tiers, uri_of(N)));
}

/* RFC 9111 section 4.4 does not wait until the file has been read. */
static void
what_is_removed_while_the_file_is_being_read_does_not_come_back(void **state)
{
    for (unsigned i = 0; i < 20; i++) {
        open_again();
        assert_true(tiers_have(tiers, uri_of(i))); /* being read, or known: it may be there */
        tiers_remove(tiers, uri_of(i));
        wait_ready();
        assert_false(tiers_have(tiers, uri_of(i)));
        assert_int_equal(objects(), N - 1 - i);
    }
    open_again();
    wait_ready();
    assert_int_equal(objects(), N - 20);
}

static void
what_was_queued_before_a_clear_is_not_there_after_it(void **state)
{
    for (unsigned i = 0; i < 100; i++)
        put(N + i);
    tiers_clear(tiers);
    put(2 * N);
    tiers_sync(tiers);
    assert_int_equal(objects(), 1);
    open_again();
    wait_ready();
    assert_int_equal(objects(), 1);
    assert_true(tiers_have(tiers, uri_of(2 * N)));
}

#define test(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        test(what_was_put_is_known_after_a_crash),
        test(what_is_removed_while_the_file_is_being_read_does_not_come_back),
        test(what_was_queued_before_a_clear_is_not_there_after_it),
    };
    int failed;

    fds_start(0);
    clock_tick();
    if (!mkdtemp(folder))
        return 1;
    failed = cmocka_run_group_tests(tests, heads_init, heads_free);
    rmdir(folder);
    return failed;
}
