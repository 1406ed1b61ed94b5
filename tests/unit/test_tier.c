/* tests/unit/test_tier.c - the store on disk from within: what scenarios cannot time
 * (cache/tier.h).
 */
#include "tests/unit/heads.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/loop.h"
#include "cache/tier.h"

enum { N = 500 };

/* ---- a disk that takes its time ---- */

static _Atomic int read_takes_ms;
static _Atomic bool nothing_at_once, writes_are_held_up, a_write_waits;

static void
pause_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* What the program defines comes before the C library's. */
ssize_t
pread(int fd, void *to, size_t n, off_t at)
{
    if (atomic_load(&read_takes_ms))
        pause_ms(atomic_load(&read_takes_ms));
    return syscall(SYS_pread64, fd, to, n, at);
}

ssize_t
preadv2(int fd, const struct iovec *to, int n, off_t at, int flags)
{
    if (!atomic_load(&nothing_at_once))
        return syscall(SYS_preadv2, fd, to, (long)n, (long)at, 0L, (long)flags);
    errno = EAGAIN;
    return -1;
}

ssize_t
pwrite(int fd, const void *from, size_t n, off_t at)
{
    while (atomic_load(&writes_are_held_up)) {
        atomic_store(&a_write_waits, true);
        pause_ms(1);
    }
    return syscall(SYS_pwrite64, fd, from, n, at);
}

static int64_t
now_ms(void)
{
    return clock_exact_mono_ns() / 1000000;
}

/* ---- a store ---- */

static char folder[] = "/tmp/cuttle-tier-XXXXXX", other_folder[64];
static struct tiers *tiers;

static struct span
uri_of(unsigned i)
{
    return arena_printf(&heads_arena, "http://o.example/%u", i);
}

static void
add_store(const struct tier_options *o)
{
    char why[256];

    assert_true(tiers_add(tiers, o, why, sizeof why));
}

static void
open_store(void)
{
    tiers = tiers_new();
    add_store(&(struct tier_options){.path = folder, .bytes = 16 << 20});
}

static struct tier_stats
stats_of(unsigned i)
{
    struct tier_stats s;

    tiers_stats(tiers, i, &s);
    return s;
}

static void
wait_ready(void)
{
    for (unsigned i = 0; i < tiers_count(tiers); i++) {
        for (int ms = 0; ms < 10000 && !stats_of(i).ready; ms++)
            pause_ms(1);
        assert_true(stats_of(i).ready);
    }
}

static void
remove_from(const char *where, const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", where, name);
    unlink(path);
}

static void
remove_file(const char *name)
{
    remove_from(folder, name);
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
put_as(struct span uri, struct span bytes)
{
    struct head *h = stored_response(.fields = "Cache-Control: max-age=60\r\n");
    struct body *b = body_new(BODY_KEEP, bytes.n, NULL, NULL);
    struct entry *e;

    head_ref(h);
    body_append(b, bytes);
    body_complete(b, SPAN_NONE);
    e = entry_new(&h, &b, SPAN_NONE, bytes.n);
    tiers_put(tiers, uri, e);
    entry_unref(&e);
}

static void
put(unsigned i)
{
    put_as(uri_of(i), SPAN("hello"));
}

static uint64_t
objects(void)
{
    return stats_of(0).objects;
}

static bool
wait_until(bool (*is_so)(void), int within_ms)
{
    int64_t until_ms = now_ms() + within_ms;

    while (!is_so() && now_ms() < until_ms)
        pause_ms(1);
    return is_so();
}

static int
make(void **state)
{
    atomic_store(&read_takes_ms, 0);
    atomic_store(&nothing_at_once, false);
    atomic_store(&writes_are_held_up, false);
    open_store();
    wait_ready();
    for (unsigned i = 0; i < N; i++)
        put(i);
    tiers_sync(tiers);
    return 0;
}

static void
heads_forget(void)
{
    while (heads_n)
        head_unref(&heads_made[--heads_n]);
}

static int
unmake(void **state)
{
    tiers_close(&tiers);
    remove_file("cuttle.index");
    remove_file("cuttle.store");
    heads_forget();
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

/* ---- purges ---- */

static bool
the_new_one_is_there(void)
{
    return tiers_have(tiers, SPAN("http://new.example/"));
}

static bool
the_new_one_is_alone(void)
{
    return objects() == 1;
}

/* Reading the heads of all takes 2.5 seconds here, and hours on a large disk. */
static void
a_purge_holds_up_neither_what_is_stored_nor_the_end(void **state)
{
    int64_t from_ms;

    atomic_store(&read_takes_ms, 5);
    tiers_purge_prefix(tiers, SPAN("http://o.example/"));
    pause_ms(20);
    put_as(SPAN("http://new.example/"), SPAN("new"));
    assert_true(wait_until(the_new_one_is_there, 1000));
    assert_true(objects() > 1 && stats_of(0).dropped == 0);
    from_ms = now_ms();
    tiers_close(&tiers);
    assert_true(now_ms() - from_ms < 1000);
    atomic_store(&read_takes_ms, 0);
}

/* The start after it knows what was asked for. */
static void
a_purge_that_did_not_come_to_its_end_goes_on_at_the_next_start(void **state)
{
    for (int crash = 0; crash < 2; crash++) {
        a_purge_holds_up_neither_what_is_stored_nor_the_end(state);
        if (crash)
            remove_file("cuttle.index");
        open_store();
        wait_ready();
        assert_true(wait_until(the_new_one_is_alone, 10000));
        assert_true(the_new_one_is_there());
        tiers_remove(tiers, SPAN("http://new.example/"));
        for (unsigned i = 0; crash == 0 && i < N / 2; i++)
            put(i);
        tiers_sync(tiers);
    }
}

static void
more_purges_than_are_kept_apart_all_come_to_pass(void **state)
{
    atomic_store(&read_takes_ms, 1);
    for (unsigned i = 100; i < 300; i++)
        tiers_purge_prefix(tiers, uri_of(i));
    atomic_store(&read_takes_ms, 0);
    tiers_sync(tiers);
    for (int again = 0; again < 2; again++) {
        for (unsigned i = 100; i < 300; i++)
            assert_false(tiers_have(tiers, uri_of(i)));
        open_again();
        wait_ready();
        tiers_sync(tiers);
    }
}

static void
what_is_stored_after_a_purge_stays(void **state)
{
    tiers_purge_prefix(tiers, SPAN("http://o.example/"));
    put(7);
    tiers_sync(tiers);
    assert_int_equal(objects(), 1);
    open_again();
    wait_ready();
    tiers_sync(tiers);
    assert_int_equal(objects(), 1);
    assert_true(tiers_have(tiers, uri_of(7)));
}

/* ---- removals ---- */

static bool
some_write_waits(void)
{
    return atomic_load(&a_write_waits);
}

/* What was made invalid may not come back; what waits to be told to the disk has a bound. */
static void
a_disk_that_does_not_take_the_removals_is_emptied(void **state)
{
    enum { REMOVED = 70000 };

    atomic_store(&a_write_waits, false);
    atomic_store(&writes_are_held_up, true);
    put(N);
    assert_true(wait_until(some_write_waits, 5000));
    put(N + 1); /* from now on everything may be on its way */
    for (unsigned i = 0; i < REMOVED; i++)
        tiers_remove(tiers, uri_of(2 * N + i));
    put(N + 2);
    atomic_store(&writes_are_held_up, false);
    tiers_sync(tiers);
    assert_int_equal(objects(), 0);
    put(N + 3);
    tiers_sync(tiers);
    open_again();
    wait_ready();
    assert_int_equal(objects(), 1);
    assert_true(tiers_have(tiers, uri_of(N + 3)));
}

/* ---- several stores ---- */

static int
unmake_both(void **state)
{
    int failed = unmake(state);

    remove_from(other_folder, "cuttle.index");
    remove_from(other_folder, "cuttle.store");
    rmdir(other_folder);
    return failed;
}

static void
put_many(unsigned from, unsigned n)
{
    char *large = mem_zalloc(60000);

    for (unsigned i = from; i < from + n; i++) {
        put_as(uri_of(i), span_of(large, 60000));
        if (i % 50 == 0)
            tiers_sync(tiers);
    }
    tiers_sync(tiers);
    mem_free(large);
}

static void
a_store_that_was_added_is_filled_before_the_others_give_way(void **state)
{
    uint64_t puts;

    put_many(N, 320); /* more than fits */
    puts = stats_of(0).puts;
    add_store(&(struct tier_options){.path = other_folder, .bytes = 16 << 20});
    wait_ready();
    put_many(2 * N, 100);
    assert_int_equal(stats_of(0).puts, puts);
    assert_int_equal(stats_of(1).objects, 100);
    heads_forget();
    put_many(3 * N, 240);
    heads_forget();
    put_many(4 * N, 240); /* both are full by now: they share */
    assert_in_range(stats_of(0).puts - puts, 60, 240);
}

static void
a_newer_version_in_one_store_takes_away_the_older_one_in_another(void **state)
{
    tiers_close(&tiers);
    for (int crash = 0; crash < 2; crash++) {
        remove_from(folder, "cuttle.index");
        remove_from(other_folder, "cuttle.index");
        tiers = tiers_new();
        add_store(&(struct tier_options){.path = folder, .bytes = 16 << 20, .max_bytes = 1000});
        add_store(
            &(struct tier_options){.path = other_folder, .bytes = 16 << 20, .min_bytes = 1001});
        wait_ready();
        if (!crash)
            put_many(7, 1);
        assert_int_equal(stats_of(0).objects, N - 1);
        assert_int_equal(stats_of(1).objects, 1);
        tiers_close(&tiers);
    }
    open_store();
}

/* ---- the end ---- */

static void
an_end_while_the_file_is_being_read_leaves_it_for_the_next_start(void **state)
{
    char *large = mem_zalloc(60000);
    uint64_t all;
    int64_t from_ms;

    for (unsigned i = 0; i < 100; i++) {
        put_as(uri_of(N + i), span_of(large, 60000));
        tiers_sync(tiers);
    }
    all = objects();
    tiers_close(&tiers);
    remove_file("cuttle.index");
    atomic_store(&read_takes_ms, 300); /* a megabyte */
    open_store();
    from_ms = now_ms();
    tiers_close(&tiers);
    assert_true(now_ms() - from_ms < 1500);
    atomic_store(&read_takes_ms, 0);
    open_store();
    wait_ready();
    assert_int_equal(objects(), all);
    mem_free(large);
}

static void *
let_writes_go_after_the_deadline(void *arg)
{
    pause_ms(5500);
    atomic_store(&writes_are_held_up, false);
    return NULL;
}

/* A disk that hangs for some seconds costs what was to be written, and older versions of it. */
static void
what_cannot_be_written_in_time_is_left_out_at_the_end(void **state)
{
    char *large = mem_zalloc(100000);
    pthread_t thread;

    atomic_store(&a_write_waits, false);
    atomic_store(&writes_are_held_up, true);
    put(N);
    assert_true(wait_until(some_write_waits, 5000));
    for (unsigned i = 0; i < 100; i++)
        put_as(uri_of(i), span_of(large, 100000));
    assert_int_equal(pthread_create(&thread, NULL, let_writes_go_after_the_deadline, NULL), 0);
    tiers_close(&tiers);
    pthread_join(thread, NULL);
    open_store();
    wait_ready();
    assert_false(tiers_have(tiers, uri_of(7)));
    assert_int_equal(objects(), N + 1 - 100);
    mem_free(large);
}

/* ---- reads ---- */

struct reading {
    struct loop *loop;
    struct tier_reader *reader;
    struct tier_read *read;
    struct loop_task found;
    struct loop_timer pause;
    struct request_head request;
    unsigned i, n_found;
    bool cancels;
};

static void reading_next(void *owner);

static void
reading_over(void *owner)
{
    struct reading *g = owner;

    loop_stop(g->loop);
}

static void
reading_found(void *owner)
{
    struct reading *g = owner;
    struct entry *e = tier_read_entry(g->read);

    assert_non_null(e);
    g->n_found++;
    tier_read_release(&g->read);
    entry_unref(&e);
    reading_next(g);
}

/* Its bytes are being read by a thread when half of them are given up. */
static void
reading_pause(void *owner)
{
    struct reading *g = owner;

    if (g->read == NULL)
        return;
    loop_task_cancel(g->loop, &g->found);
    tier_read_cancel(&g->read);
    reading_next(g);
}

static void
reading_next(void *owner)
{
    struct reading *g = owner;
    struct tier_wish wish = {.keep_bytes = 1 << 20, .to = UINT64_MAX};

    g->read = NULL;
    if (g->i == N) {
        loop_timer_init(&g->pause, g->loop, reading_over, g);
        loop_timer_set(&g->pause, 50);
        return;
    }
    g->read = tier_read_start(g->reader, uri_of(g->i), &g->request, &wish, &g->found);
    assert_non_null(g->read);
    if (g->i++ % 2)
        loop_timer_set(&g->pause, 1);
}

static void
a_read_may_be_given_up_while_a_thread_reads_for_it(void **state)
{
    struct reading g = {.loop = loop_new(LOOP_AUTO), .request = request(.uri = NULL)};
    struct loop_task first;

    atomic_store(&nothing_at_once, true);
    atomic_store(&read_takes_ms, 2);
    g.reader = tier_reader_new(tiers, g.loop, NULL, NULL);
    loop_task_init(&g.found, reading_found, &g);
    loop_task_init(&first, reading_next, &g);
    loop_timer_init(&g.pause, g.loop, reading_pause, &g);
    loop_post(g.loop, &first);
    loop_run(g.loop);
    assert_true(g.n_found >= N / 2);
    tier_reader_free(&g.reader);
    loop_timer_close(&g.pause);
    loop_free(g.loop);
}

#define test(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        test(what_was_put_is_known_after_a_crash),
        test(what_is_removed_while_the_file_is_being_read_does_not_come_back),
        test(what_was_queued_before_a_clear_is_not_there_after_it),
        test(a_purge_holds_up_neither_what_is_stored_nor_the_end),
        test(a_purge_that_did_not_come_to_its_end_goes_on_at_the_next_start),
        test(more_purges_than_are_kept_apart_all_come_to_pass),
        test(what_is_stored_after_a_purge_stays),
        test(a_disk_that_does_not_take_the_removals_is_emptied),
        cmocka_unit_test_setup_teardown(a_store_that_was_added_is_filled_before_the_others_give_way,
                                        make, unmake_both),
        cmocka_unit_test_setup_teardown(
            a_newer_version_in_one_store_takes_away_the_older_one_in_another, make, unmake_both),
        test(an_end_while_the_file_is_being_read_leaves_it_for_the_next_start),
        test(what_cannot_be_written_in_time_is_left_out_at_the_end),
        test(a_read_may_be_given_up_while_a_thread_reads_for_it),
    };
    int failed;

    fds_start(0);
    clock_tick();
    if (!mkdtemp(folder))
        return 1;
    snprintf(other_folder, sizeof other_folder, "%s-other", folder);
    failed = cmocka_run_group_tests(tests, heads_init, heads_free);
    rmdir(folder);
    return failed;
}
