/* tests/unit/test_body.c - one writer, many readers, chunks that come and go (cache/body.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/loop.h"
#include "cache/body.h"

#define UNKNOWN UINT64_MAX
#define KB 1024u

static struct loop *loop;

/* A task that counts how often it ran. */
struct waker {
    struct loop_task task;
    int runs;
};

static void
count_run(void *owner)
{
    ((struct waker *)owner)->runs++;
}

static void
waker_init(struct waker *w)
{
    w->runs = 0;
    loop_task_init(&w->task, count_run, w);
}

static void
stop(void *owner)
{
    loop_stop(loop);
}

/* Runs whatever was queued on the loop until now. */
static int
runs_of(struct waker *w)
{
    struct loop_task stopper;

    loop_task_init(&stopper, stop, NULL);
    loop_post(loop, &stopper);
    loop_run(loop);
    return w->runs;
}

static int
loop_make(void **state)
{
    loop = loop_new(LOOP_AUTO);
    return 0;
}

static int
loop_unmake(void **state)
{
    loop_free(loop);
    return 0;
}

/* What byte stands at an offset: a pattern without a period of any chunk size. */
static unsigned char
byte_at(uint64_t at)
{
    return (unsigned char)((at * 2654435761u) >> 13 ^ at);
}

static void
pattern(char *to, uint64_t at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (char)byte_at(at + i);
}

static bool
is_pattern(const char *bytes, uint64_t at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)bytes[i] != byte_at(at + i))
            return false;
    }
    return true;
}

static void
grow(struct body *b, size_t n)
{
    while (n) {
        size_t room, some;
        char *to = body_room(b, &room);

        some = room < n ? room : n;
        pattern(to, body_published(b), some);
        body_commit(b, some);
        n -= some;
    }
}

/* Reads and checks up to n bytes; returns how many there were. */
static uint64_t
take(struct body_reader *r, uint64_t n)
{
    uint64_t taken = 0;
    struct iovec run;
    int runs;

    while (taken < n && body_reader_peek(r, &run, 1, &runs) == SOURCE_DATA) {
        size_t some = run.iov_len < n - taken ? run.iov_len : (size_t)(n - taken);

        assert_int_equal(runs, 1);
        assert_true(some > 0);
        assert_true(is_pattern(run.iov_base, r->at, some));
        body_reader_consume(r, some);
        taken += some;
    }
    return taken;
}

static enum source_state
peek(struct body_reader *r)
{
    struct iovec runs[4];
    int n;

    return body_reader_peek(r, runs, 4, &n);
}

/* ---- bytes ---- */

static void
bytes_come_out_in_order_across_all_chunk_sizes(void **state)
{
    struct body *b = body_new(BODY_KEEP, UNKNOWN, NULL, NULL);
    struct body_reader r = {0};

    assert_true(body_reader_open(&r, b, 0, NULL, NULL));
    for (size_t n = 1; body_published(b) < 300 * KB; n = n * 3 + 1) {
        grow(b, n);
        assert_int_equal(take(&r, UINT64_MAX), n);
    }
    body_complete(b, SPAN_NONE);
    assert_int_equal(peek(&r), SOURCE_END);
    body_reader_close(&r);
    body_unref(&b);
}

static void
append_copies_over_several_chunks(void **state)
{
    struct body *b = body_new(BODY_KEEP, UNKNOWN, NULL, NULL);
    struct body_reader r = {0};
    static char bytes[150 * KB];

    pattern(bytes, 0, sizeof bytes);
    body_append(b, span_of(bytes, sizeof bytes));
    body_append(b, SPAN_NONE);
    assert_int_equal(body_published(b), sizeof bytes);
    assert_true(body_reader_open(&r, b, 0, NULL, NULL));
    assert_int_equal(take(&r, UINT64_MAX), sizeof bytes);
    body_reader_close(&r);
    body_unref(&b);
}

static void
peek_lends_several_runs_but_no_more_than_max(void **state)
{
    struct body *b = body_new(BODY_KEEP, UNKNOWN, NULL, NULL);
    struct body_reader r = {0};
    struct iovec runs[8];
    uint64_t at = 0;
    int n;

    grow(b, 200 * KB);
    assert_true(body_reader_open(&r, b, 0, NULL, NULL));
    assert_int_equal(body_reader_peek(&r, runs, 2, &n), SOURCE_DATA);
    assert_int_equal(n, 2);
    assert_int_equal(body_reader_peek(&r, runs, 8, &n), SOURCE_DATA);
    assert_in_range(n, 4, 8);
    for (int i = 0; i < n; at += runs[i++].iov_len)
        assert_true(is_pattern(runs[i].iov_base, at, runs[i].iov_len));
    assert_int_equal(at, 200 * KB);
    body_reader_consume(&r, at);
    assert_int_equal(peek(&r), SOURCE_WAIT);
    body_reader_close(&r);
    body_unref(&b);
}

static void
a_reader_may_start_anywhere(void **state)
{
    static const uint64_t starts[] = {0, 1, 4063, 4064, 4065, 100000, 199999};
    struct body *b = body_new(BODY_KEEP, UNKNOWN, NULL, NULL);

    grow(b, 200000);
    for (int ended = 0; ended < 2; ended++) {
        for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
            struct body_reader r = {0};

            assert_true(body_reader_open(&r, b, starts[i], NULL, NULL));
            assert_int_equal(take(&r, UINT64_MAX), 200000 - starts[i]);
            assert_int_equal(peek(&r), ended ? SOURCE_END : SOURCE_WAIT);
            body_reader_close(&r);
        }
        if (!ended)
            body_complete(b, SPAN_NONE);
    }
    body_unref(&b);
}

static void
a_reader_ahead_of_the_writer_sleeps_until_its_first_byte(void **state)
{
    struct body *b = body_new(BODY_KEEP, UNKNOWN, NULL, NULL);
    struct body_reader r = {0};
    struct waker w;

    waker_init(&w);
    assert_true(body_reader_open(&r, b, 50000, loop, &w.task));
    assert_int_equal(peek(&r), SOURCE_WAIT);
    grow(b, 50000);
    assert_int_equal(runs_of(&w), 0);
    grow(b, 10);
    assert_int_equal(runs_of(&w), 1);
    assert_int_equal(take(&r, UINT64_MAX), 10);
    body_reader_close(&r);
    body_unref(&b);
}

static void
an_empty_body_ends_at_once(void **state)
{
    struct body *b = body_new(BODY_KEEP, 0, NULL, NULL);
    struct body_reader before = {0}, after = {0};

    assert_true(body_reader_open(&before, b, 0, NULL, NULL));
    assert_int_equal(peek(&before), SOURCE_WAIT);
    body_complete(b, SPAN_NONE);
    assert_int_equal(peek(&before), SOURCE_END);
    assert_true(body_reader_open(&after, b, 0, NULL, NULL));
    assert_int_equal(peek(&after), SOURCE_END);
    body_reader_close(&before);
    body_reader_close(&after);
    body_reader_close(&after); /* twice is harmless */
    body_unref(&b);
}

static void
a_failed_body_gives_its_bytes_and_then_the_fault(void **state)
{
    struct body *b = body_new(BODY_KEEP, 100, NULL, NULL);
    struct body_reader r = {0};

    assert_true(body_reader_open(&r, b, 0, NULL, NULL));
    grow(b, 60);
    assert_int_equal(body_fault(b), FAULT_NONE);
    body_fail(b, FAULT_SERVER_INCOMPLETE);
    assert_int_equal(take(&r, UINT64_MAX), 60);
    assert_int_equal(peek(&r), SOURCE_FAULT);
    assert_int_equal(body_fault(b), FAULT_SERVER_INCOMPLETE);
    assert_int_equal(body_state(b), BODY_FAILED);
    body_reader_close(&r);
    body_unref(&b);
}

static void
the_trailer_is_there_when_complete(void **state)
{
    struct body *b = body_new(BODY_KEEP, UNKNOWN, NULL, NULL);
    char text[] = "X-Sum: 1\r\n";

    assert_int_equal(body_trailer(b).n, 0);
    body_complete(b, span_str(text));
    text[0] = '?';
    assert_true(span_eq(body_trailer(b), SPAN("X-Sum: 1\r\n")));
    body_unref(&b);
}

/* ---- memory ---- */

static void
a_known_length_is_held_exactly(void **state)
{
    static const size_t lengths[] = {1, 1000, 4096, 65535, 65536};

    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct body *b = body_new(BODY_KEEP, lengths[i], NULL, NULL);
        size_t room;

        assert_non_null(body_room(b, &room));
        assert_int_equal(room, lengths[i]);
        grow(b, lengths[i]);
        body_complete(b, SPAN_NONE);
        assert_in_range(body_bytes_held(b), lengths[i], lengths[i] + 320);
        body_unref(&b);
    }
}

static void
a_large_known_length_leaves_no_spare_room_at_its_end(void **state)
{
    struct body *b = body_new(BODY_KEEP, 200001, NULL, NULL);

    grow(b, 200001);
    body_complete(b, SPAN_NONE);
    assert_in_range(body_bytes_held(b), 200001, 200001 + 600);
    body_unref(&b);
}

static void
there_is_always_room_for_a_byte(void **state)
{
    struct body *b = body_new(BODY_KEEP, 0, NULL, NULL), *c = body_new(BODY_PASS, 5, NULL, NULL);
    size_t room;

    body_room(b, &room);
    assert_true(room >= 1);
    grow(c, 5);
    body_room(c, &room);
    assert_true(room >= 1);
    body_unref(&b);
    body_unref(&c);
}

static void
a_small_body_of_unknown_length_is_put_in_one_piece_at_the_end(void **state)
{
    static const size_t lengths[] = {0, 1, 700, 5000, 30000, 65536};

    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct body *b = body_new(BODY_KEEP, UNKNOWN, NULL, NULL);
        struct body_reader r = {0};
        size_t room;

        body_room(b, &room);
        grow(b, lengths[i]);
        body_complete(b, SPAN_NONE);
        assert_in_range(body_bytes_held(b), lengths[i], lengths[i] + lengths[i] / 3 + 320);
        assert_true(body_reader_open(&r, b, 0, NULL, NULL));
        assert_int_equal(take(&r, UINT64_MAX), lengths[i]);
        assert_int_equal(peek(&r), SOURCE_END);
        body_reader_close(&r);
        body_unref(&b);
    }
}

static void
readers_in_the_old_chunks_read_on_while_it_is_put_in_one_piece(void **state)
{
    struct body *b = body_new(BODY_KEEP, UNKNOWN, NULL, NULL);
    struct body_reader early = {0}, middle = {0}, lent = {0};
    struct iovec run;
    int n;

    assert_true(body_reader_open(&early, b, 0, NULL, NULL));
    assert_true(body_reader_open(&middle, b, 0, NULL, NULL));
    assert_true(body_reader_open(&lent, b, 0, NULL, NULL));
    grow(b, 30000);
    assert_int_equal(take(&middle, 10000), 10000);
    assert_int_equal(body_reader_peek(&lent, &run, 1, &n), SOURCE_DATA);
    body_complete(b, SPAN_NONE);
    assert_true(is_pattern(run.iov_base, 0, run.iov_len)); /* lent until consume or close */
    assert_int_equal(take(&early, UINT64_MAX), 30000);
    assert_int_equal(take(&middle, UINT64_MAX), 20000);
    assert_int_equal(peek(&middle), SOURCE_END);
    body_reader_close(&early);
    body_reader_close(&middle);
    body_reader_close(&lent);
    body_unref(&b);
}

static void
a_passing_body_holds_only_its_tail(void **state)
{
    struct body *b = body_new(BODY_PASS, UNKNOWN, NULL, NULL);
    struct body_reader r = {0};

    assert_true(body_reader_open(&r, b, 0, NULL, NULL));
    for (int i = 0; i < 50; i++) {
        grow(b, 50000);
        assert_int_equal(take(&r, UINT64_MAX), 50000);
        assert_in_range(body_bytes_held(b), 1, 66 * KB);
    }
    body_complete(b, SPAN_NONE);
    assert_int_equal(peek(&r), SOURCE_END);
    body_reader_close(&r);
    body_unref(&b);
}

static void
a_passing_body_can_be_joined_until_something_was_dropped(void **state)
{
    struct body *b = body_new(BODY_PASS, UNKNOWN, NULL, NULL);
    struct body_reader first = {0}, second = {0}, late = {0}, tail = {0};

    assert_true(body_reader_open(&first, b, 0, NULL, NULL));
    grow(b, 1000);
    assert_true(body_reader_open(&second, b, 0, NULL, NULL));
    grow(b, 200 * KB);
    assert_false(body_reader_open(&late, b, 0, NULL, NULL));
    assert_null(late.body);
    body_reader_close(&late);
    assert_true(body_reader_open(&tail, b, body_published(b), NULL, NULL));
    assert_int_equal(take(&first, UINT64_MAX), 1000 + 200 * KB);
    assert_int_equal(take(&second, UINT64_MAX), 1000 + 200 * KB);
    assert_int_equal(peek(&tail), SOURCE_WAIT);
    body_complete(b, SPAN_NONE);
    assert_false(body_reader_open(&late, b, 0, NULL, NULL));
    body_reader_close(&first);
    body_reader_close(&second);
    body_reader_close(&tail);
    body_unref(&b);
}

static void
a_body_too_large_to_keep_passes_on_what_its_readers_still_need(void **state)
{
    struct body *b = body_new(BODY_KEEP, UNKNOWN, NULL, NULL);
    struct body_reader slow = {0}, fast = {0}, late = {0};

    assert_true(body_reader_open(&slow, b, 0, NULL, NULL));
    assert_true(body_reader_open(&fast, b, 0, NULL, NULL));
    grow(b, 500 * KB);
    assert_int_equal(take(&fast, UINT64_MAX), 500 * KB);
    assert_true(body_bytes_held(b) > 500 * KB);
    body_pass(b);
    assert_int_equal(body_mode(b), BODY_PASS);
    assert_in_range(body_bytes_held(b), 1, 66 * KB);
    assert_false(body_reader_open(&late, b, 0, NULL, NULL));
    grow(b, 100 * KB);
    assert_int_equal(take(&fast, UINT64_MAX), 100 * KB);
    assert_int_equal(take(&slow, UINT64_MAX), 600 * KB);
    body_complete(b, SPAN_NONE);
    body_reader_close(&slow);
    body_reader_close(&fast);
    body_unref(&b);
}

static void
passing_after_the_end_changes_nothing(void **state)
{
    struct body *b = body_new(BODY_KEEP, UNKNOWN, NULL, NULL);

    grow(b, 100);
    body_complete(b, SPAN_NONE);
    body_pass(b);
    assert_int_equal(body_mode(b), BODY_KEEP);
    body_unref(&b);
}

static void
run_is_gone(const struct body_file *f)
{
    ++*(unsigned *)f->owner;
}

static void *
body_release(void *arg)
{
    struct body_reader *r = arg;

    body_reader_close(r);
    return NULL;
}

/* On a stack that has no room for a call for each. */
static void
on_a_small_stack(void *(*fn)(void *arg), void *arg)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, 128 * KB), 0);
    assert_int_equal(pthread_create(&thread, &attributes, fn, arg), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

static void
a_body_of_thousands_of_chunks_is_freed_in_a_loop(void **state)
{
    enum { CHUNKS = 100000 };
    struct body *b = body_new(BODY_PASS, UNKNOWN, NULL, NULL);
    struct body_reader slow = {0};
    struct waker w;
    unsigned n_gone = 0;

    waker_init(&w);
    assert_true(body_reader_open(&slow, b, 0, loop, &w.task));
    for (int i = 0; i < CHUNKS; i++)
        body_append_file(
            b, &(struct body_file){.n_bytes = 1, .owner = &n_gone, .release = run_is_gone});
    body_complete(b, SPAN_NONE);
    body_unref(&b); /* the reader holds it */
    assert_true(n_gone < 2);
    on_a_small_stack(body_release, &slow);
    assert_int_equal(n_gone, CHUNKS);
}

/* ---- waking ---- */

static void
a_waiting_reader_is_woken_once(void **state)
{
    struct body *b = body_new(BODY_KEEP, UNKNOWN, NULL, NULL);
    struct body_reader r = {0};
    struct waker w;

    waker_init(&w);
    assert_true(body_reader_open(&r, b, 0, loop, &w.task));
    grow(b, 10);
    assert_int_equal(runs_of(&w), 0); /* it has not asked */
    assert_int_equal(take(&r, UINT64_MAX), 10);
    assert_int_equal(peek(&r), SOURCE_WAIT);
    grow(b, 10);
    assert_int_equal(runs_of(&w), 1);
    grow(b, 10);
    assert_int_equal(runs_of(&w), 1); /* nor again */
    assert_int_equal(take(&r, UINT64_MAX), 20);
    assert_int_equal(peek(&r), SOURCE_WAIT);
    body_complete(b, SPAN_NONE);
    assert_int_equal(runs_of(&w), 2);
    assert_int_equal(peek(&r), SOURCE_END);
    body_reader_close(&r);
    body_unref(&b);
}

static void
a_waiting_reader_is_woken_by_a_failure(void **state)
{
    struct body *b = body_new(BODY_PASS, UNKNOWN, NULL, NULL);
    struct body_reader r = {0};
    struct waker w;

    waker_init(&w);
    assert_true(body_reader_open(&r, b, 0, loop, &w.task));
    assert_int_equal(peek(&r), SOURCE_WAIT);
    body_fail(b, FAULT_SERVER_READ);
    assert_int_equal(runs_of(&w), 1);
    assert_int_equal(peek(&r), SOURCE_FAULT);
    body_reader_close(&r);
    body_unref(&b);
}

static void
a_closed_reader_is_not_woken(void **state)
{
    struct body *b = body_new(BODY_KEEP, UNKNOWN, NULL, NULL);
    struct body_reader r = {0}, other = {0};
    struct waker w;

    waker_init(&w);
    assert_true(body_reader_open(&r, b, 0, loop, &w.task));
    assert_true(body_reader_open(&other, b, 0, NULL, NULL));
    assert_int_equal(peek(&r), SOURCE_WAIT);
    assert_int_equal(body_readers(b), 2);
    body_reader_close(&r);
    assert_int_equal(body_readers(b), 1);
    grow(b, 10);
    body_complete(b, SPAN_NONE);
    assert_int_equal(runs_of(&w), 0);
    body_reader_close(&other);
    body_unref(&b);
}

static void
a_reader_of_a_complete_body_registers_nowhere(void **state)
{
    struct body *b = body_new(BODY_KEEP, UNKNOWN, NULL, NULL);
    struct body_reader r = {0};

    grow(b, 100);
    body_complete(b, SPAN_NONE);
    assert_true(body_reader_open(&r, b, 0, NULL, NULL));
    assert_int_equal(body_readers(b), 0);
    body_unref(&b); /* the reader has a reference of its own */
    assert_int_equal(take(&r, UINT64_MAX), 100);
    body_reader_close(&r);
}

/* ---- back-pressure ---- */

static void
a_kept_body_is_read_a_window_ahead_of_the_fastest(void **state)
{
    struct waker fill;
    struct body *b;
    struct body_reader slow = {0}, fast = {0};

    waker_init(&fill);
    b = body_new(BODY_KEEP, UNKNOWN, loop, &fill.task);
    assert_true(body_reader_open(&slow, b, 0, NULL, NULL));
    assert_true(body_reader_open(&fast, b, 0, NULL, NULL));
    grow(b, BODY_WINDOW - 1);
    assert_true(body_wants(b));
    grow(b, 1);
    assert_false(body_wants(b));
    take(&fast, BODY_WINDOW / 2 - 1);
    take(&slow, 10);
    assert_int_equal(runs_of(&fill), 0);
    take(&fast, 1);
    assert_int_equal(runs_of(&fill), 1);
    take(&fast, 1000);
    assert_int_equal(runs_of(&fill), 1); /* once */
    assert_true(body_wants(b));
    body_reader_close(&slow);
    body_reader_close(&fast);
    body_unref(&b);
}

/* Two readers of a passing body; its fill is woken through `fill`. */
struct pair {
    struct waker fill, slow_task;
    struct body *b;
    struct body_reader slow, fast;
};

static void
pair_open(struct pair *p, enum body_mode mode, bool can_resume)
{
    memset(p, 0, sizeof *p);
    waker_init(&p->fill);
    waker_init(&p->slow_task);
    p->b = body_new(mode, UNKNOWN, loop, &p->fill.task);
    p->slow.can_resume = can_resume;
    assert_true(body_reader_open(&p->slow, p->b, 0, loop, &p->slow_task.task));
    assert_true(body_reader_open(&p->fast, p->b, 0, NULL, NULL));
}

/* The fast one takes all that comes, for as long as the fill is let on; how much that was. */
static uint64_t
read_fast(struct pair *p, uint64_t most)
{
    uint64_t from = body_published(p->b);

    while (body_published(p->b) - from < most && body_wants(p->b)) {
        grow(p->b, 32 * KB);
        take(&p->fast, UINT64_MAX);
    }
    return body_published(p->b) - from;
}

static void
pair_close(struct pair *p)
{
    body_reader_close(&p->slow);
    body_reader_close(&p->fast);
    body_unref(&p->b);
    loop_task_cancel(loop, &p->fill.task);
    loop_task_cancel(loop, &p->slow_task.task);
}

static void
a_passing_body_is_read_a_window_ahead_of_the_fastest(void **state)
{
    struct pair p;

    pair_open(&p, BODY_PASS, false);
    grow(p.b, BODY_WINDOW);
    assert_false(body_wants(p.b));
    take(&p.fast, BODY_WINDOW / 2 - 1);
    assert_int_equal(runs_of(&p.fill), 0);
    take(&p.fast, 1);
    assert_int_equal(runs_of(&p.fill), 1);
    assert_true(body_wants(p.b));
    pair_close(&p);
}

/* What it is behind is all that is held for it. */
static void
a_slow_reader_of_a_passing_body_may_be_behind_up_to_a_bound(void **state)
{
    struct pair p;

    pair_open(&p, BODY_PASS, false);
    assert_int_equal(read_fast(&p, UINT64_MAX), BODY_LAG);
    assert_false(body_reader_is_outrun(&p.slow));
    assert_int_equal(runs_of(&p.fill), 0);
    take(&p.slow, BODY_WINDOW / 2);
    assert_int_equal(runs_of(&p.fill), 1);
    assert_int_equal(read_fast(&p, UINT64_MAX), BODY_WINDOW / 2);
    assert_int_equal(take(&p.slow, UINT64_MAX), BODY_LAG);
    body_complete(p.b, SPAN_NONE);
    assert_int_equal(peek(&p.slow), SOURCE_END);
    pair_close(&p);
}

static void
a_laggard_that_makes_no_room_in_time_is_outrun(void **state)
{
    struct pair p;

    pair_open(&p, BODY_PASS, false);
    read_fast(&p, UINT64_MAX);
    take(&p.slow, BODY_WINDOW / 2 - 1);
    assert_int_equal(runs_of(&p.fill), 0);
    take(&p.slow, 1); /* just enough: the time starts again */
    read_fast(&p, UINT64_MAX);
    take(&p.slow, 1);
    body_outrun_laggards(p.b); /* it is not at the bound */
    assert_false(body_reader_is_outrun(&p.slow));
    read_fast(&p, UINT64_MAX);
    body_outrun_laggards(p.b);
    assert_true(body_reader_is_outrun(&p.slow));
    assert_int_equal(runs_of(&p.slow_task), 1);
    assert_false(body_reader_is_outrun(&p.fast));
    assert_int_equal(read_fast(&p, 8 * BODY_LAG), 8 * BODY_LAG);
    pair_close(&p);
}

static void
one_that_can_get_the_rest_by_itself_is_outrun_at_once(void **state)
{
    struct pair p;

    pair_open(&p, BODY_PASS, true);
    assert_int_equal(read_fast(&p, 8 * BODY_LAG), 8 * BODY_LAG);
    assert_true(body_reader_is_outrun(&p.slow));
    assert_int_equal(runs_of(&p.slow_task), 1);
    pair_close(&p);
}

/* What was held before it turned out too large is held for the slow one on. */
static void
a_body_that_turned_from_keep_has_the_bound_it_had_reached(void **state)
{
    struct pair p;

    pair_open(&p, BODY_KEEP, true);
    assert_int_equal(read_fast(&p, 3 * BODY_LAG), 3 * BODY_LAG);
    body_pass(p.b);
    assert_true(body_wants(p.b) || body_reader_is_outrun(&p.slow));
    take(&p.slow, BODY_LAG);
    pair_close(&p);

    pair_open(&p, BODY_KEEP, false);
    read_fast(&p, 3 * BODY_LAG);
    take(&p.slow, BODY_LAG);
    body_pass(p.b);
    assert_int_equal(read_fast(&p, UINT64_MAX), BODY_LAG);
    assert_int_equal(take(&p.slow, UINT64_MAX), 3 * BODY_LAG);
    pair_close(&p);
}

static void
who_is_left_alone_is_in_nobodys_way(void **state)
{
    struct pair p;

    pair_open(&p, BODY_PASS, true);
    read_fast(&p, BODY_LAG - 32 * KB);
    grow(p.b, 32 * KB);
    body_reader_close(&p.fast);
    assert_false(body_wants(p.b)); /* its own window */
    body_outrun_laggards(p.b);
    assert_false(body_reader_is_outrun(&p.slow));
    assert_int_equal(take(&p.slow, UINT64_MAX), BODY_LAG);
    assert_int_equal(runs_of(&p.fill), 1);
    pair_close(&p);
}

static void
a_body_is_quiet_while_nothing_comes_though_there_is_room(void **state)
{
    struct body_reader r = {0};
    struct body *b;

    clock_fake(0, 1000);
    b = body_new(BODY_KEEP, UNKNOWN, NULL, NULL);
    assert_true(body_reader_open(&r, b, 0, NULL, NULL));
    clock_fake(0, 4000);
    assert_int_equal(body_quiet_ms(b), 3000);
    grow(b, BODY_WINDOW);
    assert_int_equal(body_quiet_ms(b), 0);
    assert_false(body_wants(b));
    assert_false(body_reader_is_at_end(&r));
    clock_fake(0, 9000);
    assert_int_equal(body_quiet_ms(b), 0); /* the reader is the one who is slow */
    take(&r, UINT64_MAX);
    assert_true(body_reader_is_at_end(&r));
    clock_fake(0, 9500);
    assert_int_equal(body_quiet_ms(b), 500);
    body_complete(b, SPAN_NONE);
    assert_int_equal(body_quiet_ms(b), 0);
    body_reader_close(&r);
    body_unref(&b);
    clock_fake(-1, -1);
}

static void
bytes_are_compared_with_what_a_body_still_holds(void **state)
{
    struct body *b = body_new(BODY_KEEP, UNKNOWN, NULL, NULL);
    static char bytes[100 * KB];

    assert_true(body_matches(b, 0, SPAN_NONE));
    assert_false(body_matches(b, 0, SPAN("x")));
    grow(b, sizeof bytes);
    pattern(bytes, 0, sizeof bytes);
    assert_true(body_matches(b, 0, span_of(bytes, sizeof bytes)));
    assert_true(body_matches(b, 70000, span_of(bytes + 70000, 20000)));
    assert_false(body_matches(b, 70001, span_of(bytes + 70000, 20000)));
    assert_false(body_matches(b, sizeof bytes - 9, span_of(bytes, 10)));
    body_pass(b);
    grow(b, 200 * KB);
    assert_false(body_matches(b, 0, span_of(bytes, 10)));
    body_unref(&b);
}

static void
without_readers_the_fill_is_not_held_up(void **state)
{
    for (enum body_mode mode = BODY_KEEP; mode <= BODY_PASS; mode++) {
        struct waker fill;
        struct body_reader r = {0};
        struct body *b;

        waker_init(&fill);
        b = body_new(mode, UNKNOWN, loop, &fill.task);
        grow(b, 3 * BODY_WINDOW);
        assert_true(body_wants(b));
        assert_true(body_reader_open(&r, b, mode == BODY_KEEP ? 0 : body_published(b), NULL, NULL));
        grow(b, 2 * BODY_WINDOW);
        assert_false(body_wants(b));
        body_reader_close(&r);
        assert_int_equal(runs_of(&fill), 1);
        assert_true(body_wants(b));
        body_unref(&b);
    }
}

static void
a_fill_that_has_left_is_not_woken(void **state)
{
    struct waker fill;
    struct body_reader r = {0};
    struct body *b;

    waker_init(&fill);
    b = body_new(BODY_KEEP, UNKNOWN, loop, &fill.task);
    assert_true(body_reader_open(&r, b, 0, NULL, NULL));
    grow(b, 2 * BODY_WINDOW);
    assert_false(body_wants(b));
    body_detach_fill(b);
    take(&r, UINT64_MAX);
    body_reader_close(&r);
    assert_int_equal(runs_of(&fill), 0);
    body_unref(&b);
}

/* ---- threads ---- */

enum { READERS = 4, ROUNDS = 6 };
#define TOTAL (3u * 1024 * KB)

struct actor {
    struct loop *loop;
    struct loop_task task;
    struct body *body;
    struct body_reader reader;
    pthread_t thread;
    uint64_t total, pass_at;
    unsigned seed;
    bool fails;
    enum source_state ended;
};

static size_t
some_of(struct actor *a, size_t most)
{
    size_t n = (size_t)rand_r(&a->seed) % (size_t)(96 * KB) + 1;

    return n < most ? n : most;
}

static void
writer_ends(struct actor *a)
{
    if (a->fails)
        body_fail(a->body, FAULT_SERVER_READ);
    else
        body_complete(a->body, SPAN_NONE);
    loop_stop(a->loop);
}

static void
writer_runs(void *owner)
{
    struct actor *a = owner;

    for (int turns = 0; body_published(a->body) < a->total; turns++) {
        uint64_t at = body_published(a->body);
        size_t room, n;
        char *to;

        if (!body_wants(a->body))
            return;
        if (turns == 8) {
            loop_defer(a->loop, &a->task);
            return;
        }
        to = body_room(a->body, &room);
        n = some_of(a, room);
        n = n < a->total - at ? n : (size_t)(a->total - at);
        pattern(to, at, n);
        body_commit(a->body, n);
        if (at + n > a->pass_at)
            body_pass(a->body);
    }
    writer_ends(a);
}

static void
reader_ends(struct actor *a)
{
    body_reader_close(&a->reader);
    loop_task_cancel(a->loop, &a->task);
    loop_stop(a->loop);
}

static void
reader_runs(void *owner)
{
    struct actor *a = owner;
    struct iovec runs[3];
    int n;

    for (;;) {
        uint64_t at = a->reader.at;

        a->ended = body_reader_peek(&a->reader, runs, 3, &n);
        if (a->ended == SOURCE_WAIT)
            return;
        if (a->ended != SOURCE_DATA)
            break;
        for (int i = 0; i < n; i++) {
            size_t some = some_of(a, runs[i].iov_len);

            CHECK(is_pattern(runs[i].iov_base, at, some));
            at += some;
            if (some < runs[i].iov_len)
                break;
        }
        body_reader_consume(&a->reader, at - a->reader.at);
        if (rand_r(&a->seed) % 8 == 0) {
            loop_defer(a->loop, &a->task);
            return;
        }
    }
    CHECK(a->reader.at == a->total);
    reader_ends(a);
}

static void *
actor_thread(void *arg)
{
    struct actor *a = arg;

    loop_post(a->loop, &a->task);
    loop_run(a->loop);
    return NULL;
}

static void
actor_init(struct actor *a, loop_fn *fn, unsigned seed)
{
    *a = (struct actor){.loop = loop_new(LOOP_AUTO), .total = TOTAL, .seed = seed};
    loop_task_init(&a->task, fn, a);
    a->pass_at = UINT64_MAX;
}

/* Readers on threads of their own, each with its own pace, see every byte and the end. */
static void
run_threads(enum body_mode mode, uint64_t pass_at, bool fails, unsigned seed)
{
    struct actor writer, readers[READERS];
    struct body *b;

    actor_init(&writer, writer_runs, seed);
    b = writer.body = body_new(mode, UNKNOWN, writer.loop, &writer.task);
    writer.pass_at = pass_at;
    writer.fails = fails;
    for (unsigned i = 0; i < READERS; i++) {
        actor_init(&readers[i], reader_runs, seed * 31 + i);
        assert_true(body_reader_open(&readers[i].reader, b, 0, readers[i].loop, &readers[i].task));
        pthread_create(&readers[i].thread, NULL, actor_thread, &readers[i]);
    }
    pthread_create(&writer.thread, NULL, actor_thread, &writer);
    for (unsigned i = 0; i < READERS; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_int_equal(readers[i].ended, fails ? SOURCE_FAULT : SOURCE_END);
        loop_free(readers[i].loop);
    }
    pthread_join(writer.thread, NULL);
    loop_free(writer.loop);
    assert_int_equal(body_readers(b), 0);
    body_unref(&b);
}

static void
threads_read_a_kept_body(void **state)
{
    for (unsigned i = 0; i < ROUNDS; i++)
        run_threads(BODY_KEEP, UINT64_MAX, i % 2, i + 1);
}

static void
threads_read_a_passing_body(void **state)
{
    for (unsigned i = 0; i < ROUNDS; i++)
        run_threads(BODY_PASS, UINT64_MAX, i % 2, i + 100);
}

static void
threads_read_a_body_that_turns_too_large(void **state)
{
    for (unsigned i = 0; i < ROUNDS; i++)
        run_threads(BODY_KEEP, TOTAL / 8 * i, false, i + 200);
}

static void *
opens_and_closes(void *arg)
{
    struct body *b = arg;

    for (int i = 0; i < 3000; i++) {
        struct body_reader r = {0};
        struct iovec run;
        uint64_t from = body_published(b) / 3;
        int n;

        CHECK(body_reader_open(&r, b, from, NULL, NULL));
        if (body_reader_peek(&r, &run, 1, &n) == SOURCE_DATA) {
            CHECK(is_pattern(run.iov_base, from, run.iov_len < 64 ? run.iov_len : 64));
            body_reader_consume(&r, run.iov_len);
        }
        body_reader_close(&r);
    }
    return NULL;
}

/* Also across the moment where a small body is put in one piece. */
static void
readers_come_and_go_while_a_body_is_written_and_ends(void **state)
{
    for (int round = 0; round < 20; round++) {
        struct body *b = body_new(BODY_KEEP, UNKNOWN, NULL, NULL);
        pthread_t threads[2];

        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, opens_and_closes, b);
        for (int i = 0; i < 500; i++)
            grow(b, 97);
        body_complete(b, SPAN_NONE);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(body_published(b), 500 * 97);
        body_unref(&b);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_out_in_order_across_all_chunk_sizes),
        cmocka_unit_test(append_copies_over_several_chunks),
        cmocka_unit_test(peek_lends_several_runs_but_no_more_than_max),
        cmocka_unit_test(a_reader_may_start_anywhere),
        cmocka_unit_test(a_reader_ahead_of_the_writer_sleeps_until_its_first_byte),
        cmocka_unit_test(an_empty_body_ends_at_once),
        cmocka_unit_test(a_failed_body_gives_its_bytes_and_then_the_fault),
        cmocka_unit_test(the_trailer_is_there_when_complete),
        cmocka_unit_test(a_known_length_is_held_exactly),
        cmocka_unit_test(a_large_known_length_leaves_no_spare_room_at_its_end),
        cmocka_unit_test(there_is_always_room_for_a_byte),
        cmocka_unit_test(a_small_body_of_unknown_length_is_put_in_one_piece_at_the_end),
        cmocka_unit_test(readers_in_the_old_chunks_read_on_while_it_is_put_in_one_piece),
        cmocka_unit_test(a_passing_body_holds_only_its_tail),
        cmocka_unit_test(a_passing_body_can_be_joined_until_something_was_dropped),
        cmocka_unit_test(a_body_too_large_to_keep_passes_on_what_its_readers_still_need),
        cmocka_unit_test(passing_after_the_end_changes_nothing),
        cmocka_unit_test(a_body_of_thousands_of_chunks_is_freed_in_a_loop),
        cmocka_unit_test(a_waiting_reader_is_woken_once),
        cmocka_unit_test(a_waiting_reader_is_woken_by_a_failure),
        cmocka_unit_test(a_closed_reader_is_not_woken),
        cmocka_unit_test(a_reader_of_a_complete_body_registers_nowhere),
        cmocka_unit_test(a_kept_body_is_read_a_window_ahead_of_the_fastest),
        cmocka_unit_test(a_passing_body_is_read_a_window_ahead_of_the_fastest),
        cmocka_unit_test(a_slow_reader_of_a_passing_body_may_be_behind_up_to_a_bound),
        cmocka_unit_test(a_laggard_that_makes_no_room_in_time_is_outrun),
        cmocka_unit_test(one_that_can_get_the_rest_by_itself_is_outrun_at_once),
        cmocka_unit_test(a_body_that_turned_from_keep_has_the_bound_it_had_reached),
        cmocka_unit_test(who_is_left_alone_is_in_nobodys_way),
        cmocka_unit_test(a_body_is_quiet_while_nothing_comes_though_there_is_room),
        cmocka_unit_test(bytes_are_compared_with_what_a_body_still_holds),
        cmocka_unit_test(without_readers_the_fill_is_not_held_up),
        cmocka_unit_test(a_fill_that_has_left_is_not_woken),
        cmocka_unit_test(threads_read_a_kept_body),
        cmocka_unit_test(threads_read_a_passing_body),
        cmocka_unit_test(threads_read_a_body_that_turns_too_large),
        cmocka_unit_test(readers_come_and_go_while_a_body_is_written_and_ends),
    };

    return cmocka_run_group_tests(tests, loop_make, loop_unmake);
}
