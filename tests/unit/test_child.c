/* tests/unit/test_child.c - child processes and pools of them (base/child.h, base/child_pool.h).
 *
 * The children are tests/unit/child_program.c, which behaves as its arguments say. Time is real,
 * but waits are for what has happened, not for how long it takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/child_lines.h"
#include "base/child_pool.h"
#include "base/child_process.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"

enum { ASKED_MOST = 1000, TEXT_BYTES = 300, LINE_MOST = 1000 };

/* ---- calls that fail on demand ---- */

static struct {
    int socketpair, pipe2, posix_spawn, pidfd_open; /* errno, or 0 */
} failing;

int __real_socketpair(int family, int type, int protocol, int fds[2]);
int __wrap_socketpair(int family, int type, int protocol, int fds[2]);
int __real_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags);
int __real_pidfd_open(pid_t pid, unsigned flags);
int __wrap_pidfd_open(pid_t pid, unsigned flags);
typedef int spawn_fn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                     const posix_spawnattr_t *attributes, char *const argv[],
                     char *const environment[]);
spawn_fn __real_posix_spawn, __wrap_posix_spawn;

static int
failed_with(int error)
{
    errno = error;
    return -1;
}

int
__wrap_socketpair(int family, int type, int protocol, int fds[2])
{
    return failing.socketpair ? failed_with(failing.socketpair)
                              : __real_socketpair(family, type, protocol, fds);
}

int
__wrap_pipe2(int fds[2], int flags)
{
    return failing.pipe2 ? failed_with(failing.pipe2) : __real_pipe2(fds, flags);
}

int
__wrap_pidfd_open(pid_t pid, unsigned flags)
{
    return failing.pidfd_open ? failed_with(failing.pidfd_open) : __real_pidfd_open(pid, flags);
}

int
__wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                   const posix_spawnattr_t *attributes, char *const argv[],
                   char *const environment[])
{
    return failing.posix_spawn
               ? failing.posix_spawn
               : __real_posix_spawn(pid, path, actions, attributes, argv, environment);
}

/* ---- one test's world ---- */

struct asked {
    struct world *world;
    struct child_request *request; /* NULL once answered */
    unsigned answers;
    enum child_result result;
    char text[TEXT_BYTES];
};

struct world {
    struct loop *loop;
    struct loop_timer look, guard;
    bool (*claim)(const struct world *w);
    struct child_pool *pool;
    const char *argv[5];
    struct child_pool_options o;
    struct asked asked[ASKED_MOST];
    unsigned n_asked, n_answered;
    unsigned order[ASKED_MOST]; /* numbers of the requests, as the answers came */
    bool in_a_call;             /* of ours: nothing may be answered now */
    unsigned n_stopped;
    void (*at_answer)(struct world *w); /* the next one */
    uint64_t fds_before;
    char log_path[64];
};

static void
too_long(void *owner)
{
    fail_msg("nothing happened for twenty seconds");
}

static void
on_look(void *owner)
{
    struct world *w = owner;

    if (w->claim(w))
        loop_stop(w->loop);
    else
        loop_timer_set(&w->look, 1);
}

static void
run_until(struct world *w, bool (*claim)(const struct world *w))
{
    w->claim = claim;
    loop_timer_set(&w->guard, 20000);
    loop_timer_set(&w->look, 0);
    loop_run(w->loop);
}

static void
stop_loop(void *owner)
{
    loop_stop(((struct world *)owner)->loop);
}

static void
run_for(struct world *w, int64_t ms)
{
    struct loop_timer t;

    loop_timer_init(&t, w->loop, stop_loop, w);
    loop_timer_set(&t, ms);
    loop_run(w->loop);
    loop_timer_close(&t);
}

/* Options for a child that is started with up to three arguments. */
#define WORLD_OPEN(w, ...) world_open((w), (const char *[5]){CHILD_PROGRAM, __VA_ARGS__})

static void
world_open(struct world *w, const char *const argv[5])
{
    memset(w, 0, sizeof *w);
    memset(&failing, 0, sizeof failing);
    snprintf(w->log_path, sizeof w->log_path, "/tmp/cuttle_test_child_%d", (int)getpid());
    unlink(w->log_path);
    log_open(w->log_path);
    w->fds_before = fds_in_use();
    w->loop = loop_new(LOOP_AUTO);
    loop_timer_init(&w->look, w->loop, on_look, w);
    loop_timer_init(&w->guard, w->loop, too_long, w);
    memcpy(w->argv, argv, sizeof w->argv);
    w->o = (struct child_pool_options){.name = "helper",
                                       .argv = w->argv,
                                       .most = 1,
                                       .queue_most = 100,
                                       .line_most = LINE_MOST,
                                       .timeout_ms = 15000,
                                       .restart_first_ms = 5,
                                       .restart_most_ms = 40,
                                       .broken_after = 1000000,
                                       .settle_ms = 60000,
                                       .term_after_ms = 10000,
                                       .kill_after_ms = 10000};
}

static void
pool_open(struct world *w)
{
    w->pool = child_pool_new(w->loop, &w->o);
}

/* No child is left, dead or alive, and no descriptor. */
static void
world_close(struct world *w)
{
    if (w->pool)
        child_pool_free(&w->pool);
    run_for(w, 0); /* what was put off to the end of the turn */
    loop_timer_close(&w->look);
    loop_timer_close(&w->guard);
    loop_free(w->loop);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(fds_in_use(), w->fds_before);
    log_open("stderr");
    unlink(w->log_path);
}

static unsigned
times_logged(const struct world *w, const char *words)
{
    static char text[1 << 18];
    FILE *f = fopen(w->log_path, "r");
    unsigned times = 0;

    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
        times++;
    return times;
}

static void
on_reply(void *owner, enum child_result result, struct span line)
{
    struct asked *a = owner;
    struct world *w = a->world;
    void (*then)(struct world * w) = w->at_answer;

    assert_false(w->in_a_call);
    assert_ptr_equal(loop_current(), w->loop);
    assert_true(result == CHILD_REPLIED || line.n == 0);
    a->answers++;
    a->request = NULL;
    a->result = result;
    snprintf(a->text, sizeof a->text, "%.*s", SPAN_ARG(line));
    w->order[w->n_answered++] = (unsigned)(a - w->asked);
    w->at_answer = NULL;
    if (then)
        then(w);
}

static int
try_ask(struct world *w, const char *text)
{
    struct asked *a = &w->asked[w->n_asked];
    int error;

    a->world = w;
    w->in_a_call = true;
    error = child_pool_ask(w->pool, span_str(text), on_reply, a, &a->request);
    w->in_a_call = false;
    w->n_asked += error == 0;
    return error;
}

static struct asked *
ask(struct world *w, const char *text)
{
    assert_int_equal(try_ask(w, text), 0);
    return &w->asked[w->n_asked - 1];
}

static void
ask_numbers(struct world *w, unsigned n)
{
    char text[20];

    for (unsigned i = 0; i < n; i++) {
        snprintf(text, sizeof text, "line %u", w->n_asked);
        ask(w, text);
    }
}

static bool
all_are_answered(const struct world *w)
{
    return w->n_answered == w->n_asked;
}

static void
run_until_answered(struct world *w)
{
    run_until(w, all_are_answered);
}

static void
expect_numbers(const struct world *w)
{
    char text[20];

    for (unsigned i = 0; i < w->n_asked; i++) {
        snprintf(text, sizeof text, "line %u", i);
        assert_int_equal(w->asked[i].result, CHILD_REPLIED);
        assert_int_equal(w->asked[i].answers, 1);
        assert_string_equal(w->asked[i].text, text);
    }
}

static void
expect_result(const struct asked *a, enum child_result result)
{
    assert_int_equal(a->answers, 1);
    assert_int_equal(a->result, result);
}

static struct child_pool_figures
figures(const struct world *w)
{
    return child_pool_figures(w->pool);
}

static void
on_stopped(void *owner)
{
    struct world *w = owner;

    assert_false(w->in_a_call);
    w->n_stopped++;
}

static void
stop_pool(struct world *w)
{
    w->in_a_call = true;
    child_pool_stop(w->pool, on_stopped, w);
    w->in_a_call = false;
}

static bool
is_stopped(const struct world *w)
{
    return w->n_stopped > 0;
}

static bool
is_broken(const struct world *w)
{
    return figures(w).broken;
}

static bool
works(const struct world *w)
{
    return !figures(w).broken;
}

static bool
has_a_child(const struct world *w)
{
    return figures(w).children > 0;
}

static bool
has_ended_one(const struct world *w)
{
    return figures(w).ended > 0;
}

static bool
has_started_two(const struct world *w)
{
    return figures(w).started > 1;
}

/* ---- lines ---- */

static void
add_text(struct child_lines *l, const char *text)
{
    memcpy(child_lines_reserve(l, strlen(text)), text, strlen(text));
    child_lines_add(l, strlen(text));
}

static void
expect_line(struct child_lines *l, enum child_line expected, const char *text)
{
    struct span line;

    assert_int_equal(child_lines_next(l, &line), expected);
    if (expected != CHILD_LINE_NONE)
        assert_true(span_eq(line, span_str(text)));
}

static void
lines_come_whole_however_the_bytes_come(void **state)
{
    struct child_lines l = {.most = 5};

    expect_line(&l, CHILD_LINE_NONE, NULL);
    add_text(&l, "on");
    expect_line(&l, CHILD_LINE_NONE, NULL);
    add_text(&l, "e\ntwo\r\n\nfi");
    expect_line(&l, CHILD_LINE_WHOLE, "one");
    expect_line(&l, CHILD_LINE_WHOLE, "two");
    expect_line(&l, CHILD_LINE_WHOLE, "");
    expect_line(&l, CHILD_LINE_NONE, NULL);
    add_text(&l, "ve5\n");
    expect_line(&l, CHILD_LINE_WHOLE, "five5");
    expect_line(&l, CHILD_LINE_NONE, NULL);
    child_lines_free(&l);
}

static void
of_a_line_that_is_too_long_the_beginning_is_kept_and_the_next_line_comes(void **state)
{
    struct child_lines l = {.most = 5};

    add_text(&l, "sixsix\nok\nlonger and");
    expect_line(&l, CHILD_LINE_TOO_LONG, "sixsi");
    expect_line(&l, CHILD_LINE_WHOLE, "ok");
    expect_line(&l, CHILD_LINE_TOO_LONG, "longe");
    for (unsigned i = 0; i < 100; i++) {
        add_text(&l, " longer still, without an end in sight");
        expect_line(&l, CHILD_LINE_NONE, NULL);
        assert_true(l.in.n < 100);
    }
    add_text(&l, ", there it is\nnext\n");
    expect_line(&l, CHILD_LINE_WHOLE, "next");
    child_lines_free(&l);
}

/* ---- what a child is given ---- */

/* Also when we block and ignore signals, and hold a descriptor that would be inherited. */
static void
a_child_gets_three_descriptors_no_blocked_or_ignored_signal_and_a_group_of_its_own(void **state)
{
    struct world w;
    sigset_t blocked, before;
    int leaking = dup(STDERR_FILENO);

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    setenv("KRB5_KTNAME", "/a/keytab", 1);
    setenv("NOTIFY_SOCKET", "/a/socket", 1);
    WORLD_OPEN(&w, "tells of itself");
    w.o.startup = w.o.most = 2;
    pool_open(&w);
    ask(&w, "well?");
    ask(&w, "and you?");
    run_until_answered(&w);
    for (unsigned i = 0; i < 2; i++)
        assert_string_equal(w.asked[i].text, "fds 0 1 2; SigBlk 0; SigIgn 0; leads its group: 1; "
                                             "KRB5_KTNAME /a/keytab; NOTIFY_SOCKET 0");
    world_close(&w);
    unsetenv("KRB5_KTNAME");
    unsetenv("NOTIFY_SOCKET");
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(leaking);
}

static void
our_ends_are_counted_as_a_helpers(void **state)
{
    struct fd_census_row before[FD_PURPOSES], now[FD_PURPOSES];
    struct world w;

    WORLD_OPEN(&w, "echo");
    w.o.startup = w.o.most = 4;
    fds_census(before);
    pool_open(&w);
    run_until(&w, has_a_child);
    fds_census(now);
    assert_int_equal(now[FD_CHILD].now - before[FD_CHILD].now, 4 * 3);
    world_close(&w);
}

static void
nothing(void *owner)
{
}

static void
no_line(void *owner, struct span line)
{
}

static void
a_start_that_fails_says_why_and_leaves_nothing(void **state)
{
    static const struct child_ops ops = {no_line, nothing};
    static int *const calls[] = {&failing.socketpair, &failing.pipe2, &failing.posix_spawn};
    char *argv[] = {CHILD_PROGRAM, "echo", NULL}, *no_program[] = {"/no/such/program", NULL};
    struct child_options o = {.name = "helper", .argv = argv, .line_most = LINE_MOST};
    struct world w;
    uint64_t fds;
    int error;

    WORLD_OPEN(&w, "echo");
    fds = fds_in_use();
    for (unsigned i = 0; i < 3; i++) {
        *calls[i] = EMFILE;
        assert_null(child_start(w.loop, &o, &ops, NULL, &error));
        assert_int_equal(error, -EMFILE);
        *calls[i] = 0;
    }
    o.argv = no_program;
    assert_null(child_start(w.loop, &o, &ops, NULL, &error));
    assert_int_equal(error, -ENOENT);
    assert_int_equal(fds_in_use(), fds);
    world_close(&w);
}

struct closing {
    struct child *child;
    unsigned n_lines;
};

static void
close_at_line(void *owner, struct span line)
{
    struct closing *c = owner;

    c->n_lines++;
    child_close(&c->child);
    assert_true(span_eq(line, SPAN("nobody asked me"))); /* it lasts until we return */
}

static void
a_child_can_be_closed_by_its_own_line(void **state)
{
    static const struct child_ops ops = {close_at_line, too_long};
    char *argv[] = {CHILD_PROGRAM, "babbles", NULL};
    struct child_options o = {.name = "helper", .argv = argv, .line_most = LINE_MOST};
    struct closing c = {0};
    struct world w;
    int error;

    WORLD_OPEN(&w, "babbles");
    c.child = child_start(w.loop, &o, &ops, &c, &error);
    while (c.n_lines == 0)
        run_for(&w, 1);
    run_for(&w, 10);
    assert_int_equal(c.n_lines, 1);
    world_close(&w);
}

/* ---- requests and replies ---- */

static void
a_child_without_ids_answers_in_order(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "echo");
    pool_open(&w);
    ask_numbers(&w, 50);
    run_until_answered(&w);
    expect_numbers(&w);
    for (unsigned i = 0; i < 50; i++)
        assert_int_equal(w.order[i], i);
    assert_int_equal(figures(&w).started, 1);
    assert_int_equal(figures(&w).replies, 50);
    world_close(&w);
}

static void
with_ids_replies_come_in_any_order(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "backwards", "10");
    w.o.concurrency = 10;
    pool_open(&w);
    ask_numbers(&w, 100);
    run_until_answered(&w);
    expect_numbers(&w);
    assert_int_equal(w.order[0], 9);
    assert_int_equal(w.order[9], 0);
    world_close(&w);
}

static void
requests_are_spread_over_the_children(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "backwards", "10");
    w.o.concurrency = 10;
    w.o.startup = w.o.most = 4;
    pool_open(&w);
    ask_numbers(&w, 40);
    run_until_answered(&w);
    expect_numbers(&w);
    assert_int_equal(figures(&w).started, 4);
    world_close(&w);
}

static void
an_empty_line_is_a_reply_and_cr_before_its_end_is_not_part_of_it(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "answers in crlf");
    pool_open(&w);
    ask(&w, "");
    ask(&w, "OK user=alice");
    run_until_answered(&w);
    expect_result(&w.asked[0], CHILD_REPLIED);
    assert_string_equal(w.asked[0].text, "");
    assert_string_equal(w.asked[1].text, "OK user=alice");
    world_close(&w);
}

static void
what_is_not_one_line_is_not_asked(void **state)
{
    char too_long[LINE_MOST + 2];
    struct world w;

    memset(too_long, 'x', sizeof too_long);
    WORLD_OPEN(&w, "echo");
    pool_open(&w);
    assert_int_equal(try_ask(&w, "one\ntwo"), -EINVAL);
    assert_int_equal(try_ask(&w, "one\rtwo"), -EINVAL);
    assert_int_equal(child_pool_ask(w.pool, SPAN("a\0b"), on_reply, NULL, NULL), -EINVAL);
    too_long[LINE_MOST + 1] = '\0';
    assert_int_equal(try_ask(&w, too_long), -EINVAL);
    too_long[LINE_MOST] = '\0';
    assert_int_equal(try_ask(&w, too_long), 0);
    run_until_answered(&w);
    expect_result(&w.asked[0], CHILD_REPLIED);
    world_close(&w);
}

static void
ask_another(struct world *w)
{
    ask_numbers(w, 1);
    if (w->n_asked < 20)
        w->at_answer = ask_another;
}

static void
one_may_ask_when_answered(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "echo");
    w.o.queue_most = 0;
    pool_open(&w);
    w.at_answer = ask_another;
    ask_numbers(&w, 1);
    run_until_answered(&w);
    assert_int_equal(w.n_asked, 20);
    expect_numbers(&w);
    world_close(&w);
}

/* ---- how many ---- */

static void
children_are_started_when_requests_find_no_room(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "slow", "30");
    w.o.most = 5;
    w.o.idle = 2;
    pool_open(&w);
    run_for(&w, 5);
    assert_int_equal(figures(&w).started, 0);
    ask_numbers(&w, 1);
    run_until(&w, has_a_child);
    assert_int_equal(figures(&w).started, 2);
    ask_numbers(&w, 9);
    run_until_answered(&w);
    expect_numbers(&w);
    assert_int_equal(figures(&w).started, 5);
    world_close(&w);
}

static void
a_full_queue_is_an_immediate_refusal(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "silent");
    w.o.most = 2;
    w.o.queue_most = 3;
    pool_open(&w);
    ask_numbers(&w, 5);
    assert_int_equal(try_ask(&w, "one too many"), -EAGAIN);
    run_for(&w, 5);
    assert_int_equal(figures(&w).waiting, 3);
    assert_int_equal(figures(&w).asked, 2);
    assert_int_equal(try_ask(&w, "one too many"), -EAGAIN);
    child_request_cancel(&w.asked[4].request);
    assert_int_equal(try_ask(&w, "there is room again"), 0);
    assert_true(times_logged(&w, "helper: the queue is full") <= 1);
    world_close(&w);
}

/* What the system does not take stays here, and that is bounded by the number of requests. */
static void
a_child_that_does_not_read_is_ended_and_all_are_answered(void **state)
{
    char text[LINE_MOST + 1];
    struct world w;

    memset(text, 'x', sizeof text);
    text[LINE_MOST] = '\0';
    WORLD_OPEN(&w, "reads nothing");
    w.o.concurrency = 300;
    w.o.queue_most = 20;
    w.o.timeout_ms = 50;
    pool_open(&w);
    while (try_ask(&w, text) == 0)
        continue;
    assert_int_equal(w.n_asked, 320);
    run_until_answered(&w);
    for (unsigned i = 0; i < w.n_asked; i++)
        expect_result(&w.asked[i], CHILD_TIMED_OUT);
    run_until(&w, has_ended_one);
    assert_int_equal(figures(&w).asked, 0);
    assert_int_equal(times_logged(&w, "was ended by SIGKILL: it left a request unanswered"), 1);
    world_close(&w);
}

/* ---- time-outs and cancelling ---- */

static void
a_late_reply_is_dropped_and_not_taken_for_another(void **state)
{
    struct world w;

    for (unsigned concurrency = 0; concurrency < 4; concurrency += 3) {
        WORLD_OPEN(&w, "slow", "750");
        w.o.concurrency = concurrency;
        w.o.timeout_ms = 500;
        pool_open(&w);
        ask_numbers(&w, 1);
        run_until_answered(&w);
        expect_result(&w.asked[0], CHILD_TIMED_OUT);
        assert_int_equal(figures(&w).timed_out, 1);
        ask(&w, "another");
        run_until_answered(&w);
        expect_result(&w.asked[0], CHILD_TIMED_OUT);
        expect_result(&w.asked[1], CHILD_REPLIED);
        assert_string_equal(w.asked[1].text, "another");
        assert_int_equal(figures(&w).started, 1);
        world_close(&w);
    }
}

static void
one_that_waits_too_long_never_reaches_a_child(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "slow", "750");
    w.o.timeout_ms = 500;
    pool_open(&w);
    ask_numbers(&w, 2);
    run_until_answered(&w);
    expect_result(&w.asked[0], CHILD_TIMED_OUT);
    expect_result(&w.asked[1], CHILD_TIMED_OUT);
    ask(&w, "another");
    run_until_answered(&w);
    assert_string_equal(w.asked[2].text, "another");
    assert_int_equal(figures(&w).replies, 2);
    world_close(&w);
}

static void
a_child_that_hangs_is_replaced(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "silent");
    w.o.startup = 1;
    w.o.timeout_ms = 20;
    pool_open(&w);
    ask_numbers(&w, 1);
    run_until(&w, has_started_two);
    expect_result(&w.asked[0], CHILD_TIMED_OUT);
    assert_int_equal(times_logged(&w, "it left a request unanswered"), 1);
    world_close(&w);
}

static void
a_cancelled_request_is_not_answered(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "slow", "300");
    pool_open(&w);
    ask(&w, "with the child");
    ask(&w, "waiting");
    ask(&w, "wanted");
    run_until(&w, has_a_child);
    assert_int_equal(figures(&w).asked, 1);
    child_request_cancel(&w.asked[0].request);
    child_request_cancel(&w.asked[1].request);
    child_request_cancel(&w.asked[1].request);
    assert_int_equal(figures(&w).waiting, 1);
    w.n_answered = 2;
    run_until_answered(&w);
    assert_int_equal(w.asked[0].answers + w.asked[1].answers, 0);
    assert_string_equal(w.asked[2].text, "wanted");
    assert_int_equal(figures(&w).replies, 2);
    world_close(&w);
}

/* ---- children that end ---- */

static void
what_a_child_that_ended_had_is_told_and_the_rest_is_answered(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "chokes", "3");
    pool_open(&w);
    ask_numbers(&w, 8);
    run_until_answered(&w);
    for (unsigned i = 0; i < 8; i++)
        expect_result(&w.asked[i], i % 4 == 3 ? CHILD_ENDED : CHILD_REPLIED);
    assert_int_equal(figures(&w).ended, 2);
    assert_int_equal(times_logged(&w, "] exited with status 8"), 2);
    world_close(&w);
}

static void
what_a_child_said_before_it_ended_counts(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "dies", "5");
    w.o.concurrency = 10;
    pool_open(&w);
    ask_numbers(&w, 10);
    run_until_answered(&w);
    for (unsigned i = 0; i < 10; i++)
        expect_result(&w.asked[i], i < 5 ? CHILD_REPLIED : CHILD_ENDED);
    world_close(&w);
}

/* 10 + 20 + 40 + 80 + 80...: in 400 ms there is time for seven starts. */
static void
restarts_come_slower_and_slower(void **state)
{
    struct world w;
    int64_t from_ms = clock_exact_mono_ns() / 1000000;

    WORLD_OPEN(&w, "dies", "0");
    w.o.startup = 1;
    w.o.restart_first_ms = 10;
    w.o.restart_most_ms = 80;
    pool_open(&w);
    run_for(&w, 400);
    assert_in_range(figures(&w).started, 2,
                    3 + (clock_exact_mono_ns() / 1000000 - from_ms - 70) / 80 + 1);
    world_close(&w);
}

static void
many_that_end_at_once_are_one_failure(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "dies", "0");
    w.o.startup = w.o.most = 8;
    w.o.restart_first_ms = w.o.restart_most_ms = 1000;
    w.o.broken_after = 2;
    pool_open(&w);
    run_until(&w, has_started_two);
    while (figures(&w).children)
        run_for(&w, 5);
    assert_int_equal(figures(&w).ended, 8);
    assert_false(is_broken(&w));
    run_until(&w, is_broken);
    world_close(&w);
}

static void
a_broken_pool_refuses_says_so_and_works_again(void **state)
{
    char path[80];
    struct world w;

    snprintf(path, sizeof path, "/tmp/cuttle_test_child_%d.needed", (int)getpid());
    unlink(path);
    WORLD_OPEN(&w, "needs", path);
    w.o.broken_after = 3;
    w.o.settle_ms = 100;
    pool_open(&w);
    ask_numbers(&w, 4); /* three kill a child each */
    run_until(&w, is_broken);
    run_until_answered(&w);
    expect_result(&w.asked[2], CHILD_ENDED);
    expect_result(&w.asked[3], CHILD_UNAVAILABLE);
    while (figures(&w).children) /* the one that is tried */
        run_for(&w, 1);
    assert_int_equal(try_ask(&w, "anybody there?"), -EIO);
    assert_int_equal(times_logged(&w, "helper: broken: 3 failures in a row"), 1);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    run_until(&w, works);
    assert_int_equal(times_logged(&w, "helper: works again"), 1);
    ask(&w, "now?");
    run_until_answered(&w);
    assert_string_equal(w.asked[w.n_asked - 1].text, "now?");
    unlink(path);
    world_close(&w);
}

static void
a_child_that_answered_enough_before_it_ended_is_no_sign_of_trouble(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "dies", "40");
    w.o.broken_after = 2;
    w.o.restart_first_ms = 1;
    pool_open(&w);
    for (unsigned i = 0; i < 8; i++) {
        ask_numbers(&w, 40);
        run_until_answered(&w);
        while (figures(&w).children) /* else it may be given the next one, and not read it */
            run_for(&w, 1);
    }
    expect_numbers(&w);
    assert_false(is_broken(&w));
    assert_int_equal(times_logged(&w, "broken"), 0);
    world_close(&w);
}

static void
a_program_that_cannot_be_started_breaks_the_pool(void **state)
{
    struct world w;

    world_open(&w, (const char *[5]){"/no/such/program"});
    w.o.broken_after = 3;
    pool_open(&w);
    ask_numbers(&w, 2);
    run_until_answered(&w);
    expect_result(&w.asked[0], CHILD_UNAVAILABLE);
    assert_true(is_broken(&w));
    assert_int_equal(times_logged(&w, "helper: cannot start /no/such/program: No such file"), 3);
    world_close(&w);
}

static bool
has_failed_thrice(const struct world *w)
{
    return times_logged(w, "cannot start") >= 3;
}

static void
when_the_system_has_nothing_left_requests_wait_until_it_has(void **state)
{
    static int *const calls[] = {&failing.socketpair, &failing.pipe2, &failing.posix_spawn};
    struct world w;

    for (unsigned i = 0; i < 3; i++) {
        WORLD_OPEN(&w, "echo");
        *calls[i] = i < 2 ? EMFILE : EAGAIN;
        pool_open(&w);
        ask_numbers(&w, 5);
        run_until(&w, has_failed_thrice);
        assert_int_equal(w.n_answered, 0);
        *calls[i] = 0;
        run_until_answered(&w);
        expect_numbers(&w);
        world_close(&w);
    }
}

static void
two_hundred_restarts_leave_no_descriptor_and_no_zombie(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "dies", "1");
    w.o.startup = w.o.most = 2;
    w.o.restart_first_ms = w.o.restart_most_ms = 0;
    pool_open(&w);
    while (figures(&w).ended < 200) {
        ask(&w, "one"); /* of a child that is about to end, in part */
        run_until_answered(&w);
    }
    assert_true(fds_in_use() - w.fds_before < 20);
    world_close(&w);
}

/* ---- children that misbehave ---- */

static void
expect_killed(const char *mode, const char *argument, unsigned concurrency, const char *why)
{
    struct world w;

    WORLD_OPEN(&w, mode, argument);
    w.o.concurrency = concurrency;
    w.o.restart_first_ms = w.o.restart_most_ms = 60000;
    pool_open(&w);
    ask(&w, "a request");
    run_until(&w, has_ended_one);
    expect_result(&w.asked[0], CHILD_ENDED);
    assert_int_equal(times_logged(&w, why), 1);
    world_close(&w);
}

static void
a_line_without_end_ends_the_child(void **state)
{
    expect_killed("endless", NULL, 0, "] was ended by SIGKILL: it sent too long a line");
}

static void
lines_that_nobody_asked_for_end_the_child(void **state)
{
    struct world w;

    expect_killed("babbles", NULL, 3, ": it sent a line without a channel-id");
    expect_killed("closes input", NULL, 1, ": it sent a line without a channel-id");
    WORLD_OPEN(&w, "babbles");
    w.o.startup = 1;
    pool_open(&w);
    run_until(&w, has_ended_one);
    assert_true(times_logged(&w, ": it sent a line that answers no request") > 0);
    world_close(&w);
}

static void
a_closed_output_ends_the_child(void **state)
{
    expect_killed("closes output", NULL, 0, "] was ended by SIGKILL: it closed its output");
}

static void
a_child_that_shuts_its_input_is_ended_when_it_is_written_to(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "closes input");
    pool_open(&w);
    ask(&w, "first");
    ask(&w, "second");
    run_until_answered(&w);
    assert_string_equal(w.asked[0].text, "deaf now");
    expect_result(&w.asked[1], CHILD_ENDED);
    assert_int_equal(times_logged(&w, "was ended by SIGKILL: it does not read"), 1);
    world_close(&w);
}

static void
stderr_goes_to_the_event_log_with_the_name(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "complains", "2", "of the weather");
    pool_open(&w);
    ask_numbers(&w, 1);
    run_until_answered(&w);
    stop_pool(&w);
    run_until(&w, is_stopped);
    assert_int_equal(times_logged(&w, "]: complaint 0: of the weather"), 1);
    assert_int_equal(times_logged(&w, "]: complaint 1: of the weather"), 1);
    assert_int_equal(times_logged(&w, "cuttle| helper["), 2);
    world_close(&w);
}

static void
of_a_flood_on_stderr_the_log_gets_a_little(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "complains", "20000", "again");
    pool_open(&w);
    ask_numbers(&w, 1);
    run_until_answered(&w);
    stop_pool(&w);
    run_until(&w, is_stopped);
    assert_in_range(times_logged(&w, "complaint"), 50, 500);
    assert_true(times_logged(&w, " more lines") > 0);
    world_close(&w);
}

/* ---- ending ---- */

static void
a_pool_that_stops_lets_its_children_answer_and_end_by_themselves(void **state)
{
    struct world w;
    int64_t from_ns = clock_exact_mono_ns();

    WORLD_OPEN(&w, "slow", "300");
    w.o.startup = w.o.most = 2;
    pool_open(&w);
    ask_numbers(&w, 3);
    run_until(&w, has_a_child);
    stop_pool(&w);
    assert_int_equal(try_ask(&w, "late"), -ESHUTDOWN);
    run_until(&w, is_stopped);
    expect_result(&w.asked[0], CHILD_REPLIED);
    expect_result(&w.asked[1], CHILD_REPLIED);
    expect_result(&w.asked[2], CHILD_UNAVAILABLE);
    run_for(&w, 10);
    assert_int_equal(w.n_stopped, 1);
    assert_int_equal(figures(&w).started, 2);
    assert_int_equal(times_logged(&w, "WARNING"), 0);
    assert_true(clock_exact_mono_ns() - from_ns < INT64_C(5000000000)); /* before any SIGTERM */
    world_close(&w);
}

static void
a_pool_without_children_stops_at_once(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "echo");
    pool_open(&w);
    stop_pool(&w);
    assert_int_equal(w.n_stopped, 0);
    run_until(&w, is_stopped);
    world_close(&w);
}

static void
children_that_stay_get_sigterm_and_then_sigkill(void **state)
{
    struct world w;

    for (unsigned stubborn = 0; stubborn < 2; stubborn++) {
        WORLD_OPEN(&w, stubborn ? "stubborn" : "lingers");
        w.o.startup = w.o.most = 3;
        w.o.term_after_ms = 30;
        w.o.kill_after_ms = stubborn ? 30 : 10000;
        pool_open(&w);
        ask_numbers(&w, 3); /* they are all at work: SIGTERM is ignored by now */
        run_until_answered(&w);
        stop_pool(&w);
        run_until(&w, is_stopped);
        assert_int_equal(times_logged(&w, "was ended by SIGKILL: SIGTERM did not end it"),
                         stubborn ? 3 : 0);
        world_close(&w);
    }
}

static void
a_child_with_unread_requests_is_stopped_too(void **state)
{
    char text[LINE_MOST + 1];
    struct world w;

    memset(text, 'x', sizeof text);
    text[LINE_MOST] = '\0';
    WORLD_OPEN(&w, "reads nothing");
    w.o.concurrency = 300;
    w.o.term_after_ms = 30;
    pool_open(&w);
    for (unsigned i = 0; i < 300; i++)
        ask(&w, text);
    run_until(&w, has_a_child);
    stop_pool(&w);
    run_until(&w, is_stopped);
    assert_int_equal(w.n_answered, 300);
    expect_result(&w.asked[0], CHILD_ENDED);
    world_close(&w);
}

static void
a_pool_can_be_freed_with_children_at_work(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "silent");
    w.o.startup = w.o.most = 4;
    pool_open(&w);
    ask_numbers(&w, 20);
    run_until(&w, has_a_child);
    assert_int_equal(figures(&w).asked, 4);
    world_close(&w);
    assert_int_equal(w.n_answered, 0);
}

static void
free_pool(struct world *w)
{
    child_pool_free(&w->pool);
}

static bool
pool_is_gone(const struct world *w)
{
    return w->pool == NULL;
}

/* With replies and deaths of the same moment behind the one that is told. */
static void
a_pool_can_be_freed_by_one_who_is_answered(void **state)
{
    static const char *const modes[][2] = {{"backwards", "10"}, {"chokes", "9"}, {"dies", "0"}};
    struct world w;

    for (unsigned i = 0; i < 3; i++) {
        WORLD_OPEN(&w, modes[i][0], modes[i][1]);
        w.o.concurrency = 10;
        w.at_answer = free_pool;
        pool_open(&w);
        ask_numbers(&w, 15);
        run_until(&w, pool_is_gone);
        run_for(&w, 5);
        assert_int_equal(w.n_answered, 1);
        world_close(&w);
    }
}

static void
a_pool_can_be_stopped_by_one_whose_child_ended(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "dies", "0");
    w.o.concurrency = 10;
    w.at_answer = stop_pool;
    pool_open(&w);
    ask_numbers(&w, 15);
    run_until(&w, is_stopped);
    assert_int_equal(w.n_answered, 15);
    world_close(&w);
}

static bool
process_is_gone(const struct world *w)
{
    char path[40], text[512] = "";
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/stat", atoi(w->asked[0].text));
    f = fopen(path, "r");
    if (f == NULL)
        return true;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return strstr(text, ") Z ") != NULL; /* dead; whoever inherited it has not looked yet */
}

static void
what_a_child_has_started_goes_with_it(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "has offspring");
    pool_open(&w);
    ask_numbers(&w, 1);
    run_until_answered(&w);
    assert_false(process_is_gone(&w));
    stop_pool(&w);
    run_until(&w, is_stopped);
    run_until(&w, process_is_gone);
    world_close(&w);
}

/* ---- systems that tell less ---- */

static void
without_a_pidfd_deaths_are_found_all_the_same(void **state)
{
    struct world w;

    WORLD_OPEN(&w, "chokes", "1");
    failing.pidfd_open = ENOSYS;
    pool_open(&w);
    ask_numbers(&w, 4);
    run_until_answered(&w);
    expect_result(&w.asked[0], CHILD_REPLIED);
    expect_result(&w.asked[1], CHILD_ENDED);
    expect_result(&w.asked[3], CHILD_ENDED);
    assert_int_equal(times_logged(&w, "] exited with status 8"), 2);
    world_close(&w);
    WORLD_OPEN(&w, "stubborn");
    failing.pidfd_open = ENOSYS;
    w.o.startup = 1;
    w.o.term_after_ms = w.o.kill_after_ms = 20;
    pool_open(&w);
    ask_numbers(&w, 1);
    run_until_answered(&w);
    stop_pool(&w);
    run_until(&w, is_stopped);
    world_close(&w);
}

static void
a_death_is_found_when_its_report_is_lost(void **state)
{
    struct world w;

    signal(SIGCHLD, SIG_IGN);
    WORLD_OPEN(&w, "chokes", "1");
    pool_open(&w);
    ask_numbers(&w, 4);
    run_until_answered(&w);
    expect_result(&w.asked[3], CHILD_ENDED);
    assert_int_equal(times_logged(&w, "] ended"), 2);
    world_close(&w);
    signal(SIGCHLD, SIG_DFL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_whole_however_the_bytes_come),
        cmocka_unit_test(of_a_line_that_is_too_long_the_beginning_is_kept_and_the_next_line_comes),
        cmocka_unit_test(
            a_child_gets_three_descriptors_no_blocked_or_ignored_signal_and_a_group_of_its_own),
        cmocka_unit_test(our_ends_are_counted_as_a_helpers),
        cmocka_unit_test(a_start_that_fails_says_why_and_leaves_nothing),
        cmocka_unit_test(a_child_can_be_closed_by_its_own_line),
        cmocka_unit_test(a_child_without_ids_answers_in_order),
        cmocka_unit_test(with_ids_replies_come_in_any_order),
        cmocka_unit_test(requests_are_spread_over_the_children),
        cmocka_unit_test(an_empty_line_is_a_reply_and_cr_before_its_end_is_not_part_of_it),
        cmocka_unit_test(what_is_not_one_line_is_not_asked),
        cmocka_unit_test(one_may_ask_when_answered),
        cmocka_unit_test(children_are_started_when_requests_find_no_room),
        cmocka_unit_test(a_full_queue_is_an_immediate_refusal),
        cmocka_unit_test(a_child_that_does_not_read_is_ended_and_all_are_answered),
        cmocka_unit_test(a_late_reply_is_dropped_and_not_taken_for_another),
        cmocka_unit_test(one_that_waits_too_long_never_reaches_a_child),
        cmocka_unit_test(a_child_that_hangs_is_replaced),
        cmocka_unit_test(a_cancelled_request_is_not_answered),
        cmocka_unit_test(what_a_child_that_ended_had_is_told_and_the_rest_is_answered),
        cmocka_unit_test(what_a_child_said_before_it_ended_counts),
        cmocka_unit_test(restarts_come_slower_and_slower),
        cmocka_unit_test(many_that_end_at_once_are_one_failure),
        cmocka_unit_test(a_broken_pool_refuses_says_so_and_works_again),
        cmocka_unit_test(a_child_that_answered_enough_before_it_ended_is_no_sign_of_trouble),
        cmocka_unit_test(a_program_that_cannot_be_started_breaks_the_pool),
        cmocka_unit_test(when_the_system_has_nothing_left_requests_wait_until_it_has),
        cmocka_unit_test(two_hundred_restarts_leave_no_descriptor_and_no_zombie),
        cmocka_unit_test(a_line_without_end_ends_the_child),
        cmocka_unit_test(lines_that_nobody_asked_for_end_the_child),
        cmocka_unit_test(a_closed_output_ends_the_child),
        cmocka_unit_test(a_child_that_shuts_its_input_is_ended_when_it_is_written_to),
        cmocka_unit_test(stderr_goes_to_the_event_log_with_the_name),
        cmocka_unit_test(of_a_flood_on_stderr_the_log_gets_a_little),
        cmocka_unit_test(a_pool_that_stops_lets_its_children_answer_and_end_by_themselves),
        cmocka_unit_test(a_pool_without_children_stops_at_once),
        cmocka_unit_test(children_that_stay_get_sigterm_and_then_sigkill),
        cmocka_unit_test(a_child_with_unread_requests_is_stopped_too),
        cmocka_unit_test(a_pool_can_be_freed_with_children_at_work),
        cmocka_unit_test(a_pool_can_be_freed_by_one_who_is_answered),
        cmocka_unit_test(a_pool_can_be_stopped_by_one_whose_child_ended),
        cmocka_unit_test(what_a_child_has_started_goes_with_it),
        cmocka_unit_test(without_a_pidfd_deaths_are_found_all_the_same),
        cmocka_unit_test(a_death_is_found_when_its_report_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
