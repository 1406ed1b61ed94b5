/* The order on the wire is: head, then per chunk a frame ("\r\n" of the one before, size line) and
 * its data, then the last chunk with the trailer. Whatever a writev leaves unsent is exactly
 * described by head, frame_at and chunk_left, so resuming needs no other state. */
#include "proxy/net/body_writer.h"

#include <errno.h>
#include <stdio.h>

#include "base/check.h"
#include "http/h1_write.h"

#define RUNS 16
#define ROUNDS 8 /* a fast pair leaves the turn to the others after this many calls */

void
body_writer_add_body(struct body_writer *w, struct source *body, bool chunked, uint64_t length)
{
    w->body = body;
    w->chunked = chunked;
    w->left = chunked ? LENGTH_UNKNOWN : length;
    w->ended = body == NULL || (!chunked && length == 0);
}

void
body_writer_start(struct body_writer *w, struct span head, struct source *body, bool chunked,
                  uint64_t length)
{
    memset(w, 0, sizeof *w);
    w->head = head;
    body_writer_add_body(w, body, chunked, length);
}

void
body_writer_free(struct body_writer *w)
{
    buf_free(&w->spill);
    memset(w, 0, sizeof *w); /* the counts too: the next message has sent nothing yet */
}

/* The head is borrowed from scratch memory that others will use: keep what is left. */
static void
keep_head(struct body_writer *w)
{
    struct span left = w->head;

    if (left.n == 0 ||
        (w->spill.at && left.at >= w->spill.at && left.at < w->spill.at + w->spill.cap))
        return;
    w->spill.n = 0;
    buf_add(&w->spill, left);
    w->head = buf_span(&w->spill);
}

static void
frame_set(struct body_writer *w, uint64_t n_bytes)
{
    size_t n = 0;

    if (w->frame_open) {
        w->frame[n++] = '\r';
        w->frame[n++] = '\n';
    }
    n += h1_chunk_head(w->frame + n, n_bytes);
    w->frame_at = 0;
    w->frame_n = (uint8_t)n;
    w->frame_open = true;
    w->chunk_left = n_bytes;
}

/* The end of a chunked body: "\r\n0\r\n", the trailer, an empty line; goes where a head would go.
 */
static void
frame_end(struct body_writer *w)
{
    size_t at;

    keep_head(w);
    if (w->head.n == 0)
        w->spill.n = 0;
    at = w->spill.n - w->head.n;
    if (w->frame_open)
        BUF_ADD(&w->spill, "\r\n");
    BUF_ADD(&w->spill, "0\r\n");
    buf_add(&w->spill, w->body->trailer);
    BUF_ADD(&w->spill, "\r\n");
    w->head = span_skip(buf_span(&w->spill), at);
    w->ended = true;
}

static size_t
runs_total(const struct iovec *runs, int n)
{
    size_t total = 0;

    for (int i = 0; i < n; i++)
        total += runs[i].iov_len;
    return total;
}

/* Cuts the runs to at most `most` bytes; returns how many runs remain. */
static int
runs_cut(struct iovec *runs, int n, uint64_t most)
{
    for (int i = 0; i < n; i++) {
        if (runs[i].iov_len >= most) {
            runs[i].iov_len = (size_t)most;
            return most ? i + 1 : i;
        }
        most -= runs[i].iov_len;
    }
    return n;
}

static enum source_state
body_end(struct body_writer *w)
{
    if (w->left != LENGTH_UNKNOWN && w->left > 0) {
        w->fault = FAULT_SERVER_INCOMPLETE;
        return SOURCE_FAULT;
    }
    if (w->chunked)
        frame_end(w);
    w->ended = true;
    return SOURCE_END;
}

/* Asks the source; *n runs, framed and cut to what may be sent now. */
static enum source_state
body_runs(struct body_writer *w, struct iovec *runs, int *n)
{
    enum source_state state;

    *n = 0;
    if (w->ended)
        return SOURCE_END;
    state = source_peek(w->body, runs, RUNS, n);
    if (state == SOURCE_FAULT)
        w->fault = w->body->fault;
    if (state == SOURCE_END)
        return body_end(w);
    if (state != SOURCE_DATA)
        return state;
    if (w->chunked) {
        if (w->chunk_left == 0 && w->frame_at == w->frame_n)
            frame_set(w, runs_total(runs, *n));
        *n = runs_cut(runs, *n, w->chunk_left);
    } else if (w->left != LENGTH_UNKNOWN)
        *n = runs_cut(runs, *n, w->left);
    return state;
}

/* Books what the kernel took, in wire order; the rest of `sent` is body. */
static void
account(struct body_writer *w, size_t sent)
{
    size_t part = sent < w->head.n ? sent : w->head.n;

    w->sent += sent;
    w->head = span_skip(w->head, part);
    sent -= part;
    part = sent < (size_t)(w->frame_n - w->frame_at) ? sent : (size_t)(w->frame_n - w->frame_at);
    w->frame_at = (uint8_t)(w->frame_at + part);
    sent -= part;
    if (sent == 0)
        return;
    w->body_sent += sent;
    if (w->chunked)
        w->chunk_left -= sent;
    else if (w->left != LENGTH_UNKNOWN)
        w->left -= sent;
    source_consume(w->body, sent);
    if (!w->chunked && w->left == 0)
        w->ended = true;
}

static int
gather(struct body_writer *w, struct iovec *out, const struct iovec *runs, int n)
{
    int k = 0;

    if (w->head.n)
        out[k++] = (struct iovec){(void *)w->head.at, w->head.n};
    if (w->frame_at < w->frame_n)
        out[k++] = (struct iovec){w->frame + w->frame_at, (size_t)(w->frame_n - w->frame_at)};
    for (int i = 0; i < n; i++)
        out[k++] = runs[i];
    return k;
}

static enum writer_result
finished_as(struct body_writer *w, enum source_state state)
{
    if (state == SOURCE_FAULT)
        return WRITER_FAULT;
    if (state == SOURCE_WAIT)
        return WRITER_WAIT;
    return w->ended && w->head.n == 0 ? WRITER_DONE : WRITER_AGAIN;
}

/* What lies in a file goes when all before it has gone. */
static ssize_t
send_some(struct body_writer *w, struct transport *t, struct iovec *runs, int n, size_t *asked)
{
    bool in_file = n == 1 && runs->iov_base == NULL;
    struct iovec out[RUNS + 2];
    int k = gather(w, out, runs, in_file ? 0 : n);

    if (in_file && k == 0) {
        *asked = runs->iov_len;
        return transport_sendfile(t, w->body->file_fd, w->body->file_at, *asked);
    }
    *asked = runs_total(out, k);
    return k ? transport_writev(t, out, k) : 0;
}

static enum writer_result
pump_once(struct body_writer *w, struct transport *t, bool *more)
{
    struct iovec runs[RUNS];
    int n;
    size_t asked;
    ssize_t sent;
    enum source_state state = body_runs(w, runs, &n);

    *more = false;
    sent = send_some(w, t, runs, n, &asked);
    if (asked == 0)
        return finished_as(w, state);
    if (sent == -EAGAIN)
        return WRITER_AGAIN;
    if (sent < 0) {
        w->error = (int)sent;
        return WRITER_ERROR;
    }
    account(w, (size_t)sent);
    if ((size_t)sent < asked)
        return WRITER_AGAIN;
    *more = state == SOURCE_DATA && !w->ended;
    return finished_as(w, state);
}

enum writer_result
body_writer_pump(struct body_writer *w, struct transport *t)
{
    enum writer_result r = WRITER_AGAIN;
    bool more = true;

    for (int i = 0; i < ROUNDS && more; i++)
        r = pump_once(w, t, &more);
    keep_head(w);
    return r;
}
