/* proxy/net/body_writer: what is on the wire does not depend on how much the socket takes at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <errno.h>

#include "base/buf.h"
#include "proxy/net/body_writer.h"

/* A transport that takes at most `step` bytes a call, and says EAGAIN after every `calls` calls. */
struct wire {
    struct transport t;
    struct buf got;
    size_t step;
    unsigned calls, made;
    int error; /* -errno instead of taking anything; 0: none */
};

static ssize_t
wire_writev(struct transport *t, const struct iovec *runs, int n)
{
    struct wire *w = (struct wire *)t;
    size_t left = w->step, took = 0;

    if (w->error)
        return w->error;
    if (w->calls && ++w->made % (w->calls + 1) == 0)
        return -EAGAIN;
    for (int i = 0; i < n && left; i++) {
        size_t part = runs[i].iov_len < left ? runs[i].iov_len : left;

        buf_add(&w->got, span_of(runs[i].iov_base, part));
        left -= part;
        took += part;
    }
    return (ssize_t)took;
}

static const struct transport_ops WIRE = {.name = "wire", .writev = wire_writev};

/* A source that gives its pieces one peek after the other, then ends, waits or fails. */
struct pieces {
    struct source s;
    const char *const *at;
    unsigned n, now;
    size_t from;
    enum source_state then;
};

static enum source_state
pieces_peek(struct source *s, struct iovec *runs, int max, int *n)
{
    struct pieces *p = (struct pieces *)s;

    *n = 0;
    if (p->now == p->n)
        return p->then;
    runs[0] = (struct iovec){(char *)p->at[p->now] + p->from, strlen(p->at[p->now]) - p->from};
    *n = 1;
    return SOURCE_DATA;
}

static void
pieces_consume(struct source *s, size_t n_bytes)
{
    struct pieces *p = (struct pieces *)s;

    p->from += n_bytes;
    if (p->from < strlen(p->at[p->now]))
        return;
    p->now++;
    p->from = 0;
}

static const struct source_ops PIECES = {"pieces", pieces_peek, pieces_consume, NULL};
static const char *const THREE[] = {"hello ", "wide and cold ", "world"};
#define BODY "hello wide and cold world"
#define HEAD "HTTP/1.1 200 OK\r\n\r\n"
#define CHUNKS "6\r\nhello \r\ne\r\nwide and cold \r\n5\r\nworld\r\n0\r\n"

static struct pieces
three(enum source_state then)
{
    return (struct pieces){.s.ops = &PIECES, .at = THREE, .n = 3, .then = then};
}

/* Pumps until it is through, at most a thousand times; the head's memory changes after the first. */
static enum writer_result
pump(struct wire *w, struct pieces *p, bool chunked, uint64_t length)
{
    char head[] = HEAD;
    struct body_writer b;
    enum writer_result r = WRITER_AGAIN;

    w->t.ops = &WIRE;
    body_writer_start(&b, span_str(head), p ? &p->s : NULL, chunked, length);
    for (int i = 0; i < 1000 && r == WRITER_AGAIN; i++) {
        r = body_writer_pump(&b, &w->t);
        memset(head, '#', sizeof head - 1);
    }
    body_writer_free(&b);
    return r;
}

static void
assert_wire(struct wire *w, const char *text)
{
    assert_int_equal(w->got.n, strlen(text));
    assert_memory_equal(w->got.at, text, w->got.n);
    buf_free(&w->got);
}

/* RFC 9112 section 7.1, whatever the socket takes. */
static void
chunks_are_the_same_for_every_step(void **state)
{
    for (size_t step = 1; step < 64; step++)
        for (unsigned calls = 0; calls < 4; calls++) {
            struct wire w = {.step = step, .calls = calls};
            struct pieces p = three(SOURCE_END);

            assert_int_equal(pump(&w, &p, true, LENGTH_UNKNOWN), WRITER_DONE);
            assert_wire(&w, HEAD CHUNKS "\r\n");
        }
}

static void
a_body_with_a_length_is_the_same_for_every_step(void **state)
{
    for (size_t step = 1; step < 64; step++) {
        struct wire w = {.step = step, .calls = step % 3};
        struct pieces p = three(SOURCE_END);

        assert_int_equal(pump(&w, &p, false, strlen(BODY)), WRITER_DONE);
        assert_wire(&w, HEAD BODY);
    }
}

/* RFC 9112 section 7.1.2 */
static void
trailers_stand_before_the_last_empty_line(void **state)
{
    for (size_t step = 1; step < 64; step++) {
        struct wire w = {.step = step};
        struct pieces p = three(SOURCE_END);

        p.s.trailer = SPAN("X-Sum: 1\r\n");
        assert_int_equal(pump(&w, &p, true, LENGTH_UNKNOWN), WRITER_DONE);
        assert_wire(&w, HEAD CHUNKS "X-Sum: 1\r\n\r\n");
    }
}

static void
an_empty_chunked_body_is_the_last_chunk_alone(void **state)
{
    struct wire w = {.step = 3};
    struct pieces p = {.s.ops = &PIECES, .then = SOURCE_END};

    assert_int_equal(pump(&w, &p, true, LENGTH_UNKNOWN), WRITER_DONE);
    assert_wire(&w, HEAD "0\r\n\r\n");
}

static void
a_head_alone_is_done_when_it_is_sent(void **state)
{
    struct wire w = {.step = 5, .calls = 1};

    assert_int_equal(pump(&w, NULL, false, 0), WRITER_DONE);
    assert_wire(&w, HEAD);
}

/* RFC 9112 section 8: a shorter body must not look complete. */
static void
a_body_that_ends_early_is_a_fault(void **state)
{
    struct wire w = {.step = 1000};
    struct pieces p = three(SOURCE_END);

    assert_int_equal(pump(&w, &p, false, strlen(BODY) + 1), WRITER_FAULT);
    assert_wire(&w, HEAD BODY);
}

static void
a_failing_source_sends_no_last_chunk(void **state)
{
    struct wire w = {.step = 1000};
    struct pieces p = three(SOURCE_FAULT);

    p.s.fault = FAULT_SERVER_READ;
    assert_int_equal(pump(&w, &p, true, LENGTH_UNKNOWN), WRITER_FAULT);
    assert_wire(&w, HEAD "6\r\nhello \r\ne\r\nwide and cold \r\n5\r\nworld");
}

static void
more_than_was_announced_is_not_sent(void **state)
{
    struct wire w = {.step = 4};
    struct pieces p = three(SOURCE_END);

    assert_int_equal(pump(&w, &p, false, 8), WRITER_DONE);
    assert_wire(&w, HEAD "hello wi");
}

static void
waiting_for_the_source_leaves_nothing_unsent(void **state)
{
    struct wire w = {.step = 1000};
    struct pieces p = three(SOURCE_WAIT);

    assert_int_equal(pump(&w, &p, false, LENGTH_UNKNOWN), WRITER_WAIT);
    assert_wire(&w, HEAD BODY);
}

static void
a_broken_transport_is_told_as_such(void **state)
{
    struct wire w = {.error = -EPIPE};
    struct pieces p = three(SOURCE_END);

    assert_int_equal(pump(&w, &p, false, strlen(BODY)), WRITER_ERROR);
    assert_int_equal(w.got.n, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_are_the_same_for_every_step),
        cmocka_unit_test(a_body_with_a_length_is_the_same_for_every_step),
        cmocka_unit_test(trailers_stand_before_the_last_empty_line),
        cmocka_unit_test(an_empty_chunked_body_is_the_last_chunk_alone),
        cmocka_unit_test(a_head_alone_is_done_when_it_is_sent),
        cmocka_unit_test(a_body_that_ends_early_is_a_fault),
        cmocka_unit_test(a_failing_source_sends_no_last_chunk),
        cmocka_unit_test(more_than_was_announced_is_not_sent),
        cmocka_unit_test(waiting_for_the_source_leaves_nothing_unsent),
        cmocka_unit_test(a_broken_transport_is_told_as_such),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
