/* tests/unit/test_loop.c - the loop on each of its backends (base/loop.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/readiness.h"

/* One test's world: a loop, a pair of connected sockets, and what has happened. */
struct world {
    struct loop *loop;
    struct loop_io io, other;
    struct loop_timer timer, guard;
    struct loop_task task, more;
    int near, far;
    int events, calls, late_calls;
    int64_t at_ms;
    char order[64];
};

static enum loop_backend backend;

static void
too_long(void *owner)
{
    fail_msg("nothing happened for ten seconds");
}

static void
pair_open(int *near, int *far)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    *near = fds[0];
    *far = fds[1];
    fds_adopt(*near, FD_OTHER);
    fds_adopt(*far, FD_OTHER);
}

static void
world_open(struct world *w)
{
    memset(w, 0, sizeof *w);
    w->loop = loop_new(backend);
    pair_open(&w->near, &w->far);
    loop_timer_init(&w->guard, w->loop, too_long, w);
    loop_timer_set(&w->guard, 10000);
}

static void
world_close(struct world *w)
{
    loop_timer_close(&w->guard);
    fds_close(w->near);
    fds_close(w->far);
    loop_free(w->loop);
}

static void
note(struct world *w, char c)
{
    size_t n = strlen(w->order);

    if (n + 1 < sizeof w->order)
        w->order[n] = c;
}

static void
stop(void *owner)
{
    loop_stop(((struct world *)owner)->loop);
}

static void
stop_after(struct world *w, int64_t ms)
{
    loop_timer_init(&w->timer, w->loop, stop, w);
    loop_timer_set(&w->timer, ms);
    loop_run(w->loop);
    loop_timer_close(&w->timer);
}

/* ---- making one ---- */

static void
the_backend_is_the_one_asked_for(void **state)
{
    static const char *const names[] = {"epoll", "epoll", "poll", "select", "io_uring"};
    struct loop *l = loop_new(backend);

    if (backend == LOOP_IO_URING && strcmp(loop_backend_name(l), "epoll") == 0)
        print_message("no io_uring on this system: its tests run on epoll\n");
    else
        assert_string_equal(loop_backend_name(l), names[backend]);
    assert_null(loop_current());
    loop_free(l);
}

static void
names_of_backends_are_read(void **state)
{
    enum loop_backend b;

    assert_true(loop_backend_parse("auto", &b) && b == LOOP_AUTO);
    assert_true(loop_backend_parse("epoll", &b) && b == LOOP_EPOLL);
    assert_true(loop_backend_parse("poll", &b) && b == LOOP_POLL);
    assert_true(loop_backend_parse("select", &b) && b == LOOP_SELECT);
    assert_true(loop_backend_parse("io_uring", &b) && b == LOOP_IO_URING);
    assert_false(loop_backend_parse("kqueue", &b));
    assert_false(loop_backend_parse("", &b));
}

static int
count_open_fds(void)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void
the_loops_own_descriptors_are_in_the_census(void **state)
{
    uint64_t before = fds_in_use();
    int open_before = count_open_fds();
    struct loop *l = loop_new(backend);

    assert_int_equal(fds_in_use() - before, count_open_fds() - open_before);
    loop_free(l);
    assert_int_equal(fds_in_use(), before);
    assert_int_equal(count_open_fds(), open_before);
}

/* ---- descriptors ---- */

static void
on_event(void *owner, int events)
{
    struct world *w = owner;

    w->calls++;
    w->events = events;
    assert_ptr_equal(loop_current(), w->loop);
    loop_io_stop(&w->io);
    loop_stop(w->loop);
}

static void
expect_events(struct world *w, int wanted, int expected)
{
    w->events = 0;
    loop_io_want(&w->io, wanted);
    loop_run(w->loop);
    assert_int_equal(w->events, expected);
    assert_int_equal(w->io.wanted, 0);
}

static void
only_what_is_wanted_is_reported(void **state)
{
    struct world w;

    world_open(&w);
    loop_io_init(&w.io, w.loop, w.near, LOOP_CLIENT, on_event, &w);
    expect_events(&w, LOOP_WRITE, LOOP_WRITE);
    assert_int_equal(write(w.far, "x", 1), 1);
    expect_events(&w, LOOP_READ, LOOP_READ);
    expect_events(&w, LOOP_READ | LOOP_WRITE, LOOP_READ | LOOP_WRITE);
    expect_events(&w, LOOP_WRITE, LOOP_WRITE);
    expect_events(&w, LOOP_READ, LOOP_READ);
    assert_int_equal(w.calls, 5);
    loop_io_stop(&w.io);
    world_close(&w);
}

static void
a_stopped_io_is_silent_and_can_be_wanted_again(void **state)
{
    struct world w;

    world_open(&w);
    loop_io_init(&w.io, w.loop, w.near, LOOP_CLIENT, on_event, &w);
    loop_io_want(&w.io, LOOP_READ);
    stop_after(&w, 5);
    loop_io_stop(&w.io);
    assert_int_equal(write(w.far, "x", 1), 1);
    stop_after(&w, 20);
    assert_int_equal(w.calls, 0);
    expect_events(&w, LOOP_READ, LOOP_READ);
    world_close(&w);
}

static void
an_end_of_stream_is_readable(void **state)
{
    struct world w;
    char c;

    world_open(&w);
    loop_io_init(&w.io, w.loop, w.near, LOOP_CLIENT, on_event, &w);
    shutdown(w.far, SHUT_WR);
    expect_events(&w, LOOP_READ, LOOP_READ);
    assert_int_equal(read(w.near, &c, 1), 0);
    world_close(&w);
}

/* accept gives the lowest free number: in a busy proxy each number is someone else's soon. */
static void
a_number_closed_and_opened_in_one_turn_is_another_file(void **state)
{
    struct world w;
    int old_near, old_far;

    world_open(&w);
    for (unsigned i = 0; i < 20; i++) {
        loop_io_init(&w.io, w.loop, w.near, LOOP_CLIENT, on_event, &w);
        loop_io_want(&w.io, i % 2 ? LOOP_READ : LOOP_READ | LOOP_WRITE);
        if (i % 4 < 2)
            loop_io_want(&w.io, LOOP_READ);
        if (i % 3)
            stop_after(&w, 2);
        old_near = w.near;
        old_far = w.far;
        loop_io_stop(&w.io);
        fds_close(w.near);
        fds_close(w.far);
        pair_open(&w.near, &w.far);
        assert_true(w.near == old_near && w.far == old_far);
        loop_io_init(&w.io, w.loop, w.near, LOOP_CLIENT, on_event, &w);
        w.calls = 0;
        assert_int_equal(write(w.far, "x", 1), 1);
        expect_events(&w, LOOP_READ, LOOP_READ);
        assert_int_equal(w.calls, 1);
    }
    world_close(&w);
}

static void
on_event_stops_the_other(void *owner, int events)
{
    struct world *w = owner;

    w->calls++;
    loop_io_stop(&w->io);
    loop_io_stop(&w->other);
    loop_stop(w->loop);
}

static void
an_io_stopped_by_a_callback_of_the_same_turn_is_not_called(void **state)
{
    struct world w;

    world_open(&w);
    loop_io_init(&w.io, w.loop, w.near, LOOP_CLIENT, on_event_stops_the_other, &w);
    loop_io_init(&w.other, w.loop, w.far, LOOP_SERVER, on_event_stops_the_other, &w);
    loop_io_want(&w.io, LOOP_WRITE);
    loop_io_want(&w.other, LOOP_WRITE);
    loop_run(w.loop);
    stop_after(&w, 5);
    assert_int_equal(w.calls, 1);
    world_close(&w);
}

/* A peer must learn of our close at once, also from a backend that holds on to files. */
static void
a_close_reaches_the_peer(void **state)
{
    struct world w;
    char c;

    world_open(&w);
    loop_io_init(&w.io, w.loop, w.near, LOOP_CLIENT, on_event, &w);
    loop_io_want(&w.io, LOOP_READ);
    stop_after(&w, 2);
    loop_io_stop(&w.io);
    fds_close(w.near);
    stop_after(&w, 2);
    assert_int_equal(read(w.far, &c, 1), 0);
    w.near = -1;
    world_close(&w);
}

static void
large_numbers_work(void **state)
{
    struct rlimit before, limit;
    struct world w;
    int high;

    world_open(&w);
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = before.rlim_max < 5000 ? before.rlim_max : 5000;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    high = fcntl(w.near, F_DUPFD_CLOEXEC, (int)limit.rlim_cur - 10);
    assert_true(high >= (int)limit.rlim_cur - 10);
    fds_adopt(high, FD_OTHER);
    assert_int_equal(fds_largest(), high);
    loop_io_init(&w.io, w.loop, high, LOOP_CLIENT, on_event, &w);
    assert_int_equal(write(w.far, "x", 1), 1);
    expect_events(&w, LOOP_READ, LOOP_READ);
    stop_after(&w, 1);
    fds_close(high);
    world_close(&w);
    setrlimit(RLIMIT_NOFILE, &before);
}

/* ---- timers ---- */

static void
on_timer_note_and_stop(void *owner)
{
    struct world *w = owner;

    w->calls++;
    w->at_ms = clock_mono_ms();
    loop_stop(w->loop);
}

static void
a_timer_fires_once_and_never_early(void **state)
{
    struct world w;
    int64_t from_ms;

    world_open(&w);
    for (int64_t after_ms = 0; after_ms < 30; after_ms += 7) {
        loop_timer_init(&w.timer, w.loop, on_timer_note_and_stop, &w);
        w.calls = 0;
        loop_timer_set(&w.timer, after_ms);
        from_ms = clock_mono_ms();
        loop_run(w.loop);
        assert_in_range(w.at_ms - from_ms, after_ms, after_ms + 500);
        assert_int_equal(w.timer.deadline_ms, 0);
        loop_timer_close(&w.timer);
        stop_after(&w, 3);
        assert_int_equal(w.calls, 1);
    }
    world_close(&w);
}

static void
set_later(void *owner)
{
    struct world *w = owner;

    loop_timer_set(&w->timer, 60);
}

static void
a_deadline_moved_later_is_kept(void **state)
{
    struct loop_timer mover;
    struct world w;
    int64_t from_ms;

    world_open(&w);
    loop_timer_init(&w.timer, w.loop, on_timer_note_and_stop, &w);
    loop_timer_init(&mover, w.loop, set_later, &w);
    loop_timer_set(&w.timer, 30);
    loop_timer_set(&mover, 10);
    from_ms = clock_mono_ms();
    loop_run(w.loop);
    assert_in_range(w.at_ms - from_ms, 70, 600);
    assert_int_equal(w.calls, 1);
    loop_timer_close(&mover);
    loop_timer_close(&w.timer);
    world_close(&w);
}

static void
a_deadline_moved_earlier_is_kept(void **state)
{
    struct world w;
    int64_t from_ms;

    world_open(&w);
    loop_timer_init(&w.timer, w.loop, on_timer_note_and_stop, &w);
    loop_timer_set(&w.timer, INT64_MAX);
    loop_timer_set(&w.timer, 9000);
    loop_timer_set(&w.timer, -5);
    loop_timer_set(&w.timer, 15);
    from_ms = clock_mono_ms();
    loop_run(w.loop);
    assert_in_range(w.at_ms - from_ms, 15, 500);
    loop_timer_close(&w.timer);
    world_close(&w);
}

static void
a_stopped_timer_is_silent_until_set_again(void **state)
{
    struct loop_timer t;
    struct world w;

    world_open(&w);
    loop_timer_init(&t, w.loop, on_timer_note_and_stop, &w);
    loop_timer_set(&t, 5);
    loop_timer_stop(&t);
    stop_after(&w, 15);
    assert_int_equal(w.calls, 0);
    loop_timer_set(&t, 5);
    loop_run(w.loop);
    assert_int_equal(w.calls, 1);
    loop_timer_set(&t, 1);
    loop_timer_close(&t);
    stop_after(&w, 5);
    assert_int_equal(w.calls, 1);
    world_close(&w);
}

static void
free_own_timer(void *owner)
{
    struct loop_timer *t = owner;

    loop_timer_close(t);
    test_free(t);
}

static void
a_timer_may_go_in_its_own_callback(void **state)
{
    struct loop_timer *t = test_malloc(sizeof *t);
    struct world w;

    world_open(&w);
    loop_timer_init(t, w.loop, free_own_timer, t);
    loop_timer_set(t, 1);
    stop_after(&w, 10);
    world_close(&w);
}

/* ---- tasks ---- */

static void
task_a(void *owner)
{
    note(owner, 'a');
}

static void
task_b(void *owner)
{
    note(owner, 'b');
}

static void
on_event_defer(void *owner, int events)
{
    struct world *w = owner;

    note(w, 'e');
    loop_io_stop(&w->io);
    loop_defer(w->loop, &w->task);
    loop_defer(w->loop, &w->more);
    loop_defer(w->loop, &w->task);
    note(w, '.');
}

static void
deferred_tasks_run_once_in_order_after_the_callback(void **state)
{
    struct world w;

    world_open(&w);
    loop_task_init(&w.task, task_a, &w);
    loop_task_init(&w.more, task_b, &w);
    loop_io_init(&w.io, w.loop, w.near, LOOP_CLIENT, on_event_defer, &w);
    loop_io_want(&w.io, LOOP_WRITE);
    stop_after(&w, 5);
    assert_string_equal(w.order, "e.ab");
    world_close(&w);
}

static void
defer_itself(void *owner)
{
    struct world *w = owner;

    if (++w->calls < 1000)
        loop_defer(w->loop, &w->task);
    else
        loop_stop(w->loop);
}

static void
on_event_count_late(void *owner, int events)
{
    struct world *w = owner;

    if (w->calls < 1000)
        w->late_calls++;
}

/* A task that always defers itself shares the loop with the sockets and does not let it sleep. */
static void
a_self_deferring_task_starves_nobody(void **state)
{
    struct world w;
    int64_t from_ns = clock_exact_mono_ns();

    world_open(&w);
    loop_task_init(&w.task, defer_itself, &w);
    loop_io_init(&w.io, w.loop, w.near, LOOP_CLIENT, on_event_count_late, &w);
    loop_io_want(&w.io, LOOP_WRITE);
    loop_defer(w.loop, &w.task);
    loop_run(w.loop);
    loop_io_stop(&w.io);
    assert_int_equal(w.calls, 1000);
    assert_in_range(w.late_calls, 1000 / 16 - 2, 1000 / 16 + 2);
    assert_true(clock_exact_mono_ns() - from_ns < INT64_C(5000000000));
    world_close(&w);
}

static void
cancel_more(void *owner)
{
    struct world *w = owner;

    note(w, 'c');
    loop_task_cancel(w->loop, &w->more);
    loop_task_cancel(w->loop, &w->more);
}

static void
a_cancelled_task_does_not_run_wherever_it_waits(void **state)
{
    struct world w;

    world_open(&w);
    loop_task_init(&w.task, cancel_more, &w);
    loop_task_init(&w.more, task_b, &w);
    loop_defer(w.loop, &w.task); /* of the same round */
    loop_defer(w.loop, &w.more);
    stop_after(&w, 2);
    assert_string_equal(w.order, "c");
    loop_post(w.loop, &w.more);
    loop_task_cancel(w.loop, &w.more);
    stop_after(&w, 2);
    assert_string_equal(w.order, "c");
    loop_post(w.loop, &w.more); /* usable again */
    stop_after(&w, 2);
    assert_string_equal(w.order, "cb");
    world_close(&w);
}

static void
free_own_task(void *owner)
{
    test_free(owner);
}

static void
a_task_may_go_in_its_own_callback(void **state)
{
    struct loop_task *t = test_malloc(sizeof *t);
    struct world w;

    world_open(&w);
    loop_task_init(t, free_own_task, t);
    loop_wake(w.loop, t);
    stop_after(&w, 2);
    world_close(&w);
}

static void
a_loop_with_waiting_tasks_can_be_freed(void **state)
{
    struct world w;

    world_open(&w);
    loop_task_init(&w.task, task_a, &w);
    loop_task_init(&w.more, task_b, &w);
    loop_defer(w.loop, &w.task);
    loop_post(w.loop, &w.more);
    world_close(&w);
    assert_string_equal(w.order, "");
    assert_true(list_empty(&w.task.link) && list_empty(&w.more.link));
}

static void
a_stop_before_the_run_counts_for_that_run(void **state)
{
    struct world w;

    world_open(&w);
    loop_stop(w.loop);
    loop_run(w.loop);
    loop_stop(w.loop);
    loop_stop(w.loop);
    loop_run(w.loop);
    stop_after(&w, 5);
    world_close(&w);
}

/* ---- threads ---- */

enum { POSTERS = 4, POSTS = 5000 };

struct storm {
    struct world *w;
    struct loop_task task;
    _Atomic int wanted;
    int seen; /* the largest `wanted` the task has met */
    _Atomic int *left;
    pthread_t thread;
};

static void
storm_seen(void *owner)
{
    struct storm *s = owner;

    s->seen = atomic_load_explicit(&s->wanted, memory_order_relaxed);
    s->w->calls++;
    if (s->seen == POSTS && atomic_fetch_sub(s->left, 1) == 1)
        loop_stop(s->w->loop);
}

/* After the last post the task must run once more and see the last value. */
static void *
storm_post(void *arg)
{
    struct storm *s = arg;

    for (int i = 1; i <= POSTS; i++) {
        atomic_store_explicit(&s->wanted, i, memory_order_relaxed);
        loop_post(s->w->loop, &s->task);
    }
    return NULL;
}

static void
no_post_is_lost(void **state)
{
    static struct storm storms[POSTERS];
    _Atomic int left = POSTERS;
    struct world w;

    world_open(&w);
    for (unsigned i = 0; i < POSTERS; i++) {
        storms[i] = (struct storm){.w = &w, .left = &left};
        loop_task_init(&storms[i].task, storm_seen, &storms[i]);
        pthread_create(&storms[i].thread, NULL, storm_post, &storms[i]);
    }
    loop_run(w.loop);
    for (unsigned i = 0; i < POSTERS; i++) {
        pthread_join(storms[i].thread, NULL);
        loop_task_cancel(w.loop, &storms[i].task);
        assert_int_equal(storms[i].seen, POSTS);
    }
    world_close(&w);
}

/* The task is posted by another thread while its own thread defers and cancels it. */
static void
defer_and_cancel(void *owner)
{
    struct storm *s = owner;

    if (++s->w->calls % 3 == 0)
        loop_task_cancel(s->w->loop, &s->task);
    loop_defer(s->w->loop, &s->task);
    if (atomic_load(&s->wanted) == POSTS) {
        loop_task_cancel(s->w->loop, &s->task);
        loop_stop(s->w->loop);
    }
}

static void
posting_deferring_and_cancelling_do_not_collide(void **state)
{
    struct world w;
    struct storm s = {.w = &w};

    world_open(&w);
    loop_task_init(&s.task, defer_and_cancel, &s);
    loop_defer(w.loop, &s.task);
    pthread_create(&s.thread, NULL, storm_post, &s);
    loop_run(w.loop);
    pthread_join(s.thread, NULL);
    loop_task_cancel(w.loop, &s.task);
    assert_true(list_empty(&s.task.link));
    world_close(&w);
}

static void *
stop_from_thread(void *arg)
{
    struct world *w = arg;

    usleep(10000);
    loop_stop(w->loop);
    return NULL;
}

static void
another_thread_can_stop_a_sleeping_loop(void **state)
{
    struct world w;
    pthread_t thread;

    world_open(&w);
    pthread_create(&thread, NULL, stop_from_thread, &w);
    loop_run(w.loop);
    pthread_join(thread, NULL);
    world_close(&w);
}

/* ---- the measurement ---- */

static void
on_event_busy(void *owner, int events)
{
    struct world *w = owner;
    int64_t until_ns = clock_exact_mono_ns() + 3000000;

    while (clock_exact_mono_ns() < until_ns)
        ;
    if (++w->calls == 5)
        loop_io_stop(&w->io);
}

static void
the_stopwatch_tells_waiting_from_working(void **state)
{
    struct readiness_sum sum = {0};
    uint64_t in_histogram = 0;
    struct world w;

    world_open(&w);
    loop_io_init(&w.io, w.loop, w.near, LOOP_CLIENT, on_event_busy, &w);
    loop_io_kind(&w.io, LOOP_SERVER);
    loop_io_want(&w.io, LOOP_WRITE);
    loop_io_want(&w.io, LOOP_WRITE);
    assert_int_equal(atomic_load(&loop_readiness(w.loop)->watched), 1);
    stop_after(&w, 400); /* a busy machine takes its time for the five */
    readiness_add(&sum, loop_readiness(w.loop));
    assert_int_equal(sum.watched, 0);
    assert_int_equal(sum.interest_changes, 2);
    assert_int_equal(sum.events, 5);
    assert_int_equal(sum.events_histogram[1], 5);
    assert_int_equal(sum.kind_calls[LOOP_SERVER], 5);
    assert_int_equal(sum.kind_calls[LOOP_CLIENT], 0);
    assert_in_range(sum.kind_calls[LOOP_TIMER], 1, 2);
    for (unsigned i = 0; i < READINESS_BUCKETS; i++)
        in_histogram += sum.events_histogram[i];
    assert_int_equal(in_histogram, sum.calls);
    assert_true(sum.calls >= 6);
    assert_true(sum.kind_ns[LOOP_SERVER] >= 15000000);
    assert_true(sum.dispatch_ns >= 15000000);
    assert_true(sum.wall_ns >= 20000000);
    assert_true(sum.cpu_ns > 0 && sum.cpu_ns < sum.wall_ns);
    assert_true(sum.cpu_ns < sum.thread_cpu_ns);
    assert_true((int64_t)(sum.wall_ns + sum.dispatch_ns) <= sum.elapsed_ns);
    world_close(&w);
}

/* ---- without a backend ---- */

/* As in a container whose filter has no io_uring. */
static bool
io_uring_forbid(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum { FELL_BACK, DID_NOT, CANNOT_TEST };

static int
fall_back(void)
{
    struct loop *l;
    bool epoll;

    if (!io_uring_forbid())
        return CANNOT_TEST;
    log_show(LOG_FATAL);
    l = loop_new(LOOP_IO_URING);
    epoll = strcmp(loop_backend_name(l), "epoll") == 0;
    loop_stop(l);
    loop_run(l);
    loop_free(l);
    return epoll ? FELL_BACK : DID_NOT;
}

static void
what_is_not_available_falls_back_to_epoll(void **state)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0)
        _exit(fall_back());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT_TEST)
        skip();
    assert_int_equal(WEXITSTATUS(status), FELL_BACK);
}

static int
run_on(enum loop_backend b)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_backend_is_the_one_asked_for),
        cmocka_unit_test(the_loops_own_descriptors_are_in_the_census),
        cmocka_unit_test(only_what_is_wanted_is_reported),
        cmocka_unit_test(a_stopped_io_is_silent_and_can_be_wanted_again),
        cmocka_unit_test(an_end_of_stream_is_readable),
        cmocka_unit_test(a_number_closed_and_opened_in_one_turn_is_another_file),
        cmocka_unit_test(an_io_stopped_by_a_callback_of_the_same_turn_is_not_called),
        cmocka_unit_test(a_close_reaches_the_peer),
        cmocka_unit_test(large_numbers_work),
        cmocka_unit_test(a_timer_fires_once_and_never_early),
        cmocka_unit_test(a_deadline_moved_later_is_kept),
        cmocka_unit_test(a_deadline_moved_earlier_is_kept),
        cmocka_unit_test(a_stopped_timer_is_silent_until_set_again),
        cmocka_unit_test(a_timer_may_go_in_its_own_callback),
        cmocka_unit_test(deferred_tasks_run_once_in_order_after_the_callback),
        cmocka_unit_test(a_self_deferring_task_starves_nobody),
        cmocka_unit_test(a_cancelled_task_does_not_run_wherever_it_waits),
        cmocka_unit_test(a_task_may_go_in_its_own_callback),
        cmocka_unit_test(a_loop_with_waiting_tasks_can_be_freed),
        cmocka_unit_test(a_stop_before_the_run_counts_for_that_run),
        cmocka_unit_test(no_post_is_lost),
        cmocka_unit_test(posting_deferring_and_cancelling_do_not_collide),
        cmocka_unit_test(another_thread_can_stop_a_sleeping_loop),
        cmocka_unit_test(the_stopwatch_tells_waiting_from_working),
    };

    backend = b;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int
main(void)
{
    const struct CMUnitTest once[] = {
        cmocka_unit_test(names_of_backends_are_read),
        cmocka_unit_test(what_is_not_available_falls_back_to_epoll),
    };
    int failed = 0;

    for (enum loop_backend b = LOOP_EPOLL; b <= LOOP_IO_URING; b++)
        failed += run_on(b);
    return failed + cmocka_run_group_tests(once, NULL, NULL);
}
