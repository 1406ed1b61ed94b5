/* tests/unit/test_fds.c - the census of descriptors (base/fds.h).
 *
 * The census is the process's, so each test looks at what changes. The fake clock begins at the
 * process's start_ms, set by fds_start in the first test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"

enum { WALL_MS = 1000000, START_MS = 5000 };

static struct fd_census_row
row(enum fd_purpose p)
{
    struct fd_census_row rows[FD_PURPOSES];

    fds_census(rows);
    return rows[p];
}

static int
open_as(enum fd_purpose p)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    fds_adopt(fd, p);
    return fd;
}

static void
start_counts_the_standard_ones_and_the_reserve(void **state)
{
    int standard = 0;

    for (int fd = 0; fd <= 2; fd++)
        standard += fcntl(fd, F_GETFD) >= 0;
    fds_start(0);
    assert_int_equal(row(FD_OTHER).now, standard + 1);
    assert_int_equal(fds_in_use(), standard + 1);
    fds_start(0); /* again changes nothing */
    assert_int_equal(fds_in_use(), standard + 1);
}

static void
a_descriptor_is_counted_from_adoption_to_close(void **state)
{
    uint64_t before = fds_in_use();
    struct fd_census_row was = row(FD_CLIENT_ACTIVE);
    int fd = open_as(FD_CLIENT_ACTIVE);

    assert_true(fds_has(fd));
    assert_int_equal(fds_in_use(), before + 1);
    assert_int_equal(row(FD_CLIENT_ACTIVE).now, was.now + 1);
    assert_int_equal(row(FD_CLIENT_ACTIVE).opened, was.opened + 1);
    fds_close(fd);
    assert_false(fds_has(fd));
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(fds_in_use(), before);
    assert_int_equal(row(FD_CLIENT_ACTIVE).now, was.now);
    assert_int_equal(row(FD_CLIENT_ACTIVE).closed, was.closed + 1);
    fds_close(-1);
    assert_int_equal(fds_in_use(), before);
}

static void
a_purpose_changes_without_opening_or_closing(void **state)
{
    int fd = open_as(FD_CLIENT_ACTIVE);
    uint64_t in_use = fds_in_use();
    struct fd_census_row active = row(FD_CLIENT_ACTIVE), idle = row(FD_CLIENT_IDLE);

    fds_purpose(fd, FD_CLIENT_IDLE);
    fds_purpose(fd, FD_CLIENT_IDLE);
    assert_int_equal(row(FD_CLIENT_ACTIVE).now, active.now - 1);
    assert_int_equal(row(FD_CLIENT_IDLE).now, idle.now + 1);
    assert_int_equal(row(FD_CLIENT_IDLE).opened, idle.opened);
    assert_int_equal(row(FD_CLIENT_ACTIVE).closed, active.closed);
    assert_int_equal(fds_in_use(), in_use);
    fds_close(fd);
    assert_int_equal(row(FD_CLIENT_IDLE).closed, idle.closed + 1);
}

static void
the_peak_remembers_when(void **state)
{
    int fds[5];

    clock_fake(7777000, START_MS);
    for (unsigned i = 0; i < 5; i++)
        fds[i] = open_as(FD_TUNNEL);
    clock_fake(9999000, START_MS);
    for (unsigned i = 0; i < 5; i++)
        fds_close(fds[i]);
    fds_close(open_as(FD_TUNNEL));
    assert_int_equal(row(FD_TUNNEL).peak, 5);
    assert_int_equal(row(FD_TUNNEL).peak_at_wall_s, 7777);
    assert_int_equal(row(FD_TUNNEL).now, 0);
    assert_true(fds_peak() >= 5);
}

/* Two descriptors for a quarter and one for half of 1000 s: 0.25 * 2 + 0.5 * 1 = 1. */
static void
the_mean_is_over_the_time_since_start(void **state)
{
    int a, b;

    clock_fake(WALL_MS, START_MS);
    a = open_as(FD_DNS);
    b = open_as(FD_DNS);
    clock_fake(WALL_MS, START_MS + 250000);
    fds_purpose(a, FD_LOG);
    clock_fake(WALL_MS, START_MS + 750000);
    fds_close(b);
    clock_fake(WALL_MS, START_MS + 1000000);
    assert_true(row(FD_DNS).mean > 0.999 && row(FD_DNS).mean < 1.001);
    assert_true(row(FD_LOG).mean > 0.749 && row(FD_LOG).mean < 0.751);
    fds_close(a);
    clock_fake(WALL_MS, START_MS + 2000000);
    assert_true(row(FD_DNS).mean > 0.499 && row(FD_DNS).mean < 0.501);
    clock_fake(WALL_MS, START_MS);
}

static void
a_forgotten_descriptor_stays_open(void **state)
{
    uint64_t before = fds_in_use();
    int fd = open_as(FD_DNS);

    fds_forget(fd);
    fds_forget(fd);
    fds_forget(-1);
    fds_forget(1 << 30);
    assert_int_equal(fds_in_use(), before);
    assert_true(fcntl(fd, F_GETFD) >= 0);
    close(fd);
}

/* A library closed it behind our back and its number came back. */
static void
adopting_a_known_number_counts_it_once(void **state)
{
    uint64_t before = fds_in_use();
    int fd = open_as(FD_DNS);

    fds_note(fd, SPAN("old"));
    fds_adopt(fd, FD_DISK);
    assert_int_equal(fds_in_use(), before + 1);
    assert_int_equal(row(FD_DNS).now, 0);
    assert_int_equal(row(FD_DISK).now, 1);
    fds_close(fd);
}

struct seen {
    int fd, times, last;
    enum fd_purpose purpose;
    char note[64];
    int64_t open_ms;
};

static void
look(void *arg, int fd, enum fd_purpose p, const char *note, int64_t open_ms)
{
    struct seen *s = arg;

    assert_true(fd > s->last);
    s->last = fd;
    if (fd != s->fd)
        return;
    s->times++;
    s->purpose = p;
    s->open_ms = open_ms;
    assert_true(strlen(note) < sizeof s->note);
    strcpy(s->note, note);
}

static struct seen
seen(int fd)
{
    struct seen s = {.fd = fd, .last = -1};

    fds_each(look, &s);
    return s;
}

static void
notes_are_kept_cut_and_harmless(void **state)
{
    char longer[200];
    int fd;

    clock_fake(WALL_MS, START_MS + 77);
    fd = open_as(FD_SERVER_ACTIVE);
    assert_string_equal(seen(fd).note, "");
    fds_note(fd, SPAN("192.0.2.1:80 example.org"));
    assert_string_equal(seen(fd).note, "192.0.2.1:80 example.org");
    assert_int_equal(seen(fd).purpose, FD_SERVER_ACTIVE);
    assert_int_equal(seen(fd).open_ms, START_MS + 77);
    assert_int_equal(seen(fd).times, 1);
    memset(longer, 'x', sizeof longer);
    fds_note(fd, span_of(longer, sizeof longer));
    assert_int_equal(strlen(seen(fd).note), 63);
    fds_note(fd, SPAN("a\r\nb\x7f\xc3\xa9"));
    assert_string_equal(seen(fd).note, "a??b?\xc3\xa9");
    fds_close(fd);
    fds_adopt(fd, FD_OTHER);
    assert_string_equal(seen(fd).note, "");
    fds_forget(fd);
    fds_note(fd, SPAN("nobody's"));
    assert_int_equal(seen(fd).times, 0);
    clock_fake(WALL_MS, START_MS);
}

static void
large_numbers_get_their_slots_when_they_come(void **state)
{
    uint64_t in_use = fds_in_use();

    fds_adopt(1000000, FD_CLIENT_IDLE);
    assert_int_equal(fds_largest(), 1000000);
    assert_int_equal(seen(1000000).times, 1);
    fds_adopt(5000, FD_CLIENT_IDLE);
    fds_forget(1000000);
    assert_int_equal(fds_largest(), 5000);
    fds_forget(5000);
    assert_true(fds_largest() < 100);
    assert_int_equal(fds_in_use(), in_use);
}

static void
the_reserve_is_spent_once_and_refilled(void **state)
{
    uint64_t before = fds_in_use();

    assert_true(fds_reserve_use());
    assert_int_equal(fds_in_use(), before - 1);
    assert_false(fds_reserve_use());
    fds_reserve_refill();
    fds_reserve_refill();
    assert_int_equal(fds_in_use(), before);
    assert_true(fds_reserve_use());
    fds_reserve_refill();
}

/* With all descriptors taken, the reserve is what an accept can still use. */
static void
the_reserve_gives_room_at_the_limit(void **state)
{
    struct rlimit before, tight;
    int fds[64], n = 0, last;

    getrlimit(RLIMIT_NOFILE, &before);
    tight = (struct rlimit){32, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &tight);
    while (n < 64 && (fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        fds_adopt(fds[n++], FD_CLIENT_ACTIVE);
    assert_int_equal(errno, EMFILE);
    assert_true(fds_reserve_use());
    last = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(last >= 0);
    fds_reserve_refill(); /* cannot, and says nothing */
    assert_false(fds_reserve_use());
    close(last);
    fds_reserve_refill();
    assert_true(fds_reserve_use());
    while (n > 0)
        fds_close(fds[--n]);
    fds_reserve_refill();
    setrlimit(RLIMIT_NOFILE, &before);
}

static void
the_limit_can_be_set(void **state)
{
    struct rlimit before, now;

    getrlimit(RLIMIT_NOFILE, &before);
    fds_start(256);
    assert_int_equal(fds_limit(), 256);
    getrlimit(RLIMIT_NOFILE, &now);
    assert_int_equal(now.rlim_cur, 256);
    assert_int_equal(now.rlim_max, before.rlim_max);
    setrlimit(RLIMIT_NOFILE, &before);
}

static void
closing_is_timed(void **state)
{
    uint64_t ns, calls, ns_after, calls_after;

    fds_cost(&ns, &calls);
    fds_close(open_as(FD_OTHER));
    fds_cost(&ns_after, &calls_after);
    assert_int_equal(calls_after, calls + 1);
    assert_true(ns_after > ns);
    fds_open_cost(&ns, &calls);
    fds_open_took(500);
    fds_open_cost(&ns_after, &calls_after);
    assert_int_equal(ns_after - ns, 500);
    assert_int_equal(calls_after - calls, 1);
}

static void *
churn(void *arg)
{
    for (unsigned i = 0; i < 2000; i++) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

        fds_adopt(fd, FD_CLIENT_ACTIVE);
        fds_note(fd, SPAN("0123456789012345678901234567890123456789"));
        fds_purpose(fd, FD_CLIENT_IDLE);
        fds_purpose(fd, FD_CLIENT_ACTIVE);
        fds_close(fd);
    }
    return NULL;
}

static void
whole_note(void *arg, int fd, enum fd_purpose p, const char *note, int64_t open_ms)
{
    if (p == FD_CLIENT_ACTIVE || p == FD_CLIENT_IDLE)
        assert_true(strlen(note) == 40 || strlen(note) == 0);
}

static void
the_sums_are_right_after_a_storm_and_notes_are_never_torn(void **state)
{
    uint64_t before = fds_in_use();
    struct fd_census_row was = row(FD_CLIENT_ACTIVE);
    pthread_t threads[4];

    for (unsigned i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, NULL);
    for (unsigned i = 0; i < 200; i++)
        fds_each(whole_note, NULL);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(fds_in_use(), before);
    assert_int_equal(row(FD_CLIENT_ACTIVE).now, was.now);
    assert_int_equal(row(FD_CLIENT_IDLE).now, 0);
    assert_int_equal(row(FD_CLIENT_ACTIVE).opened, was.opened + 8000);
    assert_in_range(row(FD_CLIENT_IDLE).peak, 1, 4);
}

static void
every_purpose_has_its_name(void **state)
{
    assert_string_equal(fd_purpose_name(FD_CLIENT_ACTIVE), "client active");
    assert_string_equal(fd_purpose_name(FD_CHILD), "helper");
    assert_string_equal(fd_purpose_name(FD_OTHER), "other");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_counts_the_standard_ones_and_the_reserve),
        cmocka_unit_test(a_descriptor_is_counted_from_adoption_to_close),
        cmocka_unit_test(a_purpose_changes_without_opening_or_closing),
        cmocka_unit_test(the_peak_remembers_when),
        cmocka_unit_test(the_mean_is_over_the_time_since_start),
        cmocka_unit_test(a_forgotten_descriptor_stays_open),
        cmocka_unit_test(adopting_a_known_number_counts_it_once),
        cmocka_unit_test(notes_are_kept_cut_and_harmless),
        cmocka_unit_test(large_numbers_get_their_slots_when_they_come),
        cmocka_unit_test(the_reserve_is_spent_once_and_refilled),
        cmocka_unit_test(the_reserve_gives_room_at_the_limit),
        cmocka_unit_test(the_limit_can_be_set),
        cmocka_unit_test(closing_is_timed),
        cmocka_unit_test(the_sums_are_right_after_a_storm_and_notes_are_never_torn),
        cmocka_unit_test(every_purpose_has_its_name),
    };

    clock_fake(WALL_MS, START_MS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
