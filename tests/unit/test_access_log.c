/* test_access_log - lines of several workers in one destination: none lost, torn or doubled. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/fds.h"
#include "base/log.h"
#include "proxy/log/access_log.h"

static char folder[64];

static const char *
in_folder(const char *name)
{
    static char path[8][128];
    static unsigned turn;
    char *p = path[turn++ % 8];

    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static int
make_folder(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/test_access_log.XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int
remove_folder(void **state)
{
    static const char *const names[] = {"log", "log.0", "log.1", "log.2", "pipe"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unlink(in_folder(names[i]));
    return rmdir(folder);
}

static struct buf
read_file(const char *path)
{
    struct buf b = {0};
    ssize_t n;
    int fd = open(path, O_RDONLY);

    assert_true(fd >= 0);
    while ((n = read(fd, buf_reserve(&b, 65536), 65536)) > 0)
        b.n += (size_t)n;
    close(fd);
    buf_add_char(&b, '\0');
    b.n--;
    return b;
}

static void
assert_file(const char *name, const char *expected)
{
    struct buf b = read_file(in_folder(name));

    assert_string_equal(b.at, expected);
    buf_free(&b);
}

static struct access_log *
open_log(const char *name)
{
    char error[200] = "";
    struct access_log *l = access_log_open(in_folder(name), error, sizeof error);

    if (l == NULL)
        fail_msg("%s", error);
    return l;
}

static void
add_line(struct access_log_buffer *b, const char *line)
{
    buf_add(access_log_buffer_lines(b), span_str(line));
    access_log_buffer_wrote(b);
}

static void
lines_wait_for_a_block_or_a_flush(void **state)
{
    struct access_log *l = open_log("log");
    struct access_log_buffer *b = access_log_buffer_new(l);

    add_line(b, "one\n");
    add_line(b, "two\n");
    assert_file("log", "");
    access_log_buffer_free(&b);
    assert_null(b);
    access_log_close(&l);
    assert_null(l);
    assert_file("log", "one\ntwo\n");
}

static void
a_log_is_appended_to_never_cut(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct access_log *l = open_log("log");
        struct access_log_buffer *b = access_log_buffer_new(l);

        add_line(b, i ? "new\n" : "old\n");
        access_log_close(&l); /* the buffer still holds the log */
        access_log_buffer_free(&b);
    }
    assert_file("log", "old\nnew\n");
}

static void
rotation_parts_the_lines_where_it_was_asked_for(void **state)
{
    struct access_log *l = open_log("log");
    struct access_log_buffer *b = access_log_buffer_new(l);

    add_line(b, "first\n");
    access_log_buffer_flush(b);
    assert_true(access_log_rotate(l, 2));
    add_line(b, "second\n");
    access_log_buffer_flush(b);
    assert_true(access_log_rotate(l, 2));
    add_line(b, "third\n");
    access_log_buffer_flush(b);
    assert_true(access_log_rotate(l, 2));
    add_line(b, "fourth\n");
    access_log_buffer_free(&b);
    access_log_close(&l);
    assert_file("log", "fourth\n");
    assert_file("log.0", "third\n");
    assert_file("log.1", "second\n");
    assert_int_equal(access(in_folder("log.2"), F_OK), -1);
}

static void
reopening_follows_a_rename_by_somebody_else(void **state)
{
    struct access_log *l = open_log("log");
    struct access_log_buffer *b = access_log_buffer_new(l);

    add_line(b, "before\n");
    access_log_buffer_flush(b);
    assert_int_equal(rename(in_folder("log"), in_folder("log.1")), 0);
    assert_true(access_log_rotate(l, 0)); /* logfile_rotate 0: others rename */
    add_line(b, "after\n");
    access_log_buffer_free(&b);
    access_log_close(&l);
    assert_file("log.1", "before\n");
    assert_file("log", "after\n");
}

static void
a_reopen_that_fails_keeps_the_old_file(void **state)
{
    struct access_log *l = open_log("log");
    struct access_log_buffer *b = access_log_buffer_new(l);

    assert_int_equal(rename(in_folder("log"), in_folder("log.1")), 0);
    assert_int_equal(mkdir(in_folder("log"), 0755), 0);
    log_show(LOG_FATAL);
    assert_false(access_log_reopen(l));
    log_show(LOG_NOTE);
    add_line(b, "kept\n");
    access_log_buffer_free(&b);
    access_log_close(&l);
    rmdir(in_folder("log"));
    assert_file("log.1", "kept\n");
}

static void
what_cannot_be_opened_is_said(void **state)
{
    char error[200] = "";

    assert_null(access_log_open("/nowhere/at/all", error, sizeof error));
    assert_string_equal(error,
                        "cannot open the access log /nowhere/at/all: No such file or directory");
}

enum { WORKERS = 4, LINES = 20000 };

static void *
worker(void *arg)
{
    static _Atomic unsigned next;
    struct access_log_buffer *b = access_log_buffer_new(arg);
    unsigned me = next++ % WORKERS;
    char line[64];

    for (unsigned i = 0; i < LINES; i++) {
        snprintf(line, sizeof line, "%u %06u the quick brown fox\n", me, i);
        add_line(b, line);
        if (i % 1000 == 999)
            access_log_buffer_flush(b);
    }
    access_log_buffer_free(&b);
    return NULL;
}

/* The lines of each worker are all there, whole and in order, over the files in their order. */
static void
check_lines(struct buf all)
{
    unsigned next[WORKERS] = {0}, me, number;
    char *rest = all.at, *line;

    while ((line = strsep(&rest, "\n")) != NULL && *line) {
        assert_int_equal(strlen(line), 28);
        assert_int_equal(sscanf(line, "%u %u the", &me, &number), 2);
        assert_true(me < WORKERS);
        assert_int_equal(number, next[me]++);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        assert_int_equal(next[i], LINES);
}

static void
workers_and_rotations_lose_tear_and_double_nothing(void **state)
{
    struct access_log *l = open_log("log");
    pthread_t threads[WORKERS];
    struct buf all = {0};
    static const char *const names[] = {"log.2", "log.1", "log.0", "log"};

    for (unsigned i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, worker, l), 0);
    for (unsigned i = 0; i < 3; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        assert_true(access_log_rotate(l, 3));
    }
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    access_log_close(&l);
    for (size_t i = 0; i < 4; i++) {
        struct buf b = read_file(in_folder(names[i]));

        buf_add(&all, buf_span(&b));
        buf_free(&b);
    }
    buf_add_char(&all, '\0');
    check_lines(all);
    buf_free(&all);
}

/* The reader of a pipe has stopped: writers go on at once, and so does the stop. */
static void
a_pipe_nobody_reads_stops_nobody(void **state)
{
    struct access_log *pipe_log, *file_log;
    struct access_log_buffer *b;
    struct timespec t0, t1;
    char line[1024];
    int reader;

    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    reader = open(in_folder("pipe"), O_RDONLY | O_NONBLOCK);
    pipe_log = open_log("pipe");
    file_log = open_log("log");
    memset(line, 'x', sizeof line);
    line[sizeof line - 2] = '\n', line[sizeof line - 1] = '\0';
    clock_gettime(CLOCK_MONOTONIC, &t0);
    b = access_log_buffer_new(pipe_log);
    for (unsigned i = 0; i < 20 * 1024; i++) /* 20 MB, more than the queue holds */
        add_line(b, line);
    clock_gettime(CLOCK_MONOTONIC, &t1);
    assert_true(t1.tv_sec - t0.tv_sec < 5);

    struct access_log_buffer *other = access_log_buffer_new(file_log);
    add_line(other, "not held up\n");
    access_log_buffer_free(&other);
    access_log_close(&file_log);
    assert_file("log", "not held up\n");

    log_show(LOG_FATAL);
    access_log_close(&pipe_log);
    access_log_buffer_free(&b);
    log_show(LOG_NOTE);
    clock_gettime(CLOCK_MONOTONIC, &t1);
    assert_true(t1.tv_sec - t0.tv_sec < 10);
    close(reader);
}

static void
a_pipe_without_reader_is_refused_and_a_dead_one_is_survived(void **state)
{
    char error[200];
    struct access_log *l;
    struct access_log_buffer *b;
    int reader;

    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_null(access_log_open(in_folder("pipe"), error, sizeof error));
    reader = open(in_folder("pipe"), O_RDONLY | O_NONBLOCK);
    l = open_log("pipe");
    close(reader);
    b = access_log_buffer_new(l);
    add_line(b, "into the void\n");
    log_show(LOG_FATAL);
    access_log_buffer_free(&b);
    access_log_close(&l);
    log_show(LOG_NOTE);
}

static void
files_may_grow_to(rlim_t n_bytes)
{
    struct rlimit r;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &r), 0);
    r.rlim_cur = n_bytes == RLIM_INFINITY ? r.rlim_max : n_bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

static void
wait_until_it_has(const char *name, off_t n_bytes)
{
    struct stat s = {0};

    for (int i = 0; i < 5000 && s.st_size < n_bytes; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        assert_int_equal(stat(in_folder(name), &s), 0);
    }
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL); /* and its writer has given up */
}

/* It is full in the middle of a line, and then there is room again. */
static void
a_full_disk_is_survived(void **state)
{
    struct access_log *l = open_log("log");
    struct access_log_buffer *b = access_log_buffer_new(l);

    files_may_grow_to(13);
    log_show(LOG_FATAL);
    add_line(b, "whole\n");
    add_line(b, "cut short, and the rest is lost\n");
    access_log_buffer_flush(b);
    wait_until_it_has("log", 13);
    add_line(b, "lost\n");
    access_log_buffer_flush(b);
    wait_until_it_has("log", 13);
    files_may_grow_to(RLIM_INFINITY);
    add_line(b, "kept\n");
    access_log_buffer_free(&b);
    access_log_close(&l);
    log_show(LOG_NOTE);
    assert_file("log", "whole\ncut sho\nkept\n");
}

static void
none_takes_everything(void **state)
{
    char error[200];
    struct access_log *l = access_log_open("none", error, sizeof error);
    struct access_log_buffer *b = access_log_buffer_new(l);

    add_line(b, "nowhere\n");
    access_log_buffer_flush(b);
    assert_true(access_log_rotate(l, 3));
    access_log_buffer_free(&b);
    access_log_close(&l);
}

static void
every_descriptor_is_given_back(void **state)
{
    struct fd_census_row rows[FD_PURPOSES];

    fds_census(rows);
    assert_int_equal(rows[FD_LOG].now, 0);
    assert_true(rows[FD_LOG].opened > 10);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(lines_wait_for_a_block_or_a_flush),
        IN_FOLDER(a_log_is_appended_to_never_cut),
        IN_FOLDER(rotation_parts_the_lines_where_it_was_asked_for),
        IN_FOLDER(reopening_follows_a_rename_by_somebody_else),
        IN_FOLDER(a_reopen_that_fails_keeps_the_old_file),
        cmocka_unit_test(what_cannot_be_opened_is_said),
        IN_FOLDER(workers_and_rotations_lose_tear_and_double_nothing),
        IN_FOLDER(a_pipe_nobody_reads_stops_nobody),
        IN_FOLDER(a_pipe_without_reader_is_refused_and_a_dead_one_is_survived),
        IN_FOLDER(a_full_disk_is_survived),
        cmocka_unit_test(none_takes_everything),
        cmocka_unit_test(every_descriptor_is_given_back),
    };

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    fds_start(0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
