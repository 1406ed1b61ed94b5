/* HTTP/1.1 towards the next hop: one request out, one response in, on one connection.
 *
 * The head is parsed where it was read (the worker's scratch memory); only an incomplete one is
 * copied. Bodies with a length are read straight into the entry's body. An answer may come before
 * the request is sent whole: it is passed on, and the connection is not used again. */
#include <errno.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "http/auth.h"
#include "proxy/upstream/fill_private.h"

#define READS_A_TURN 4
#define CONTINUE_MS 1000
#define INTERIM_MAX 64 /* before one final head: each takes memory of the exchange */

/* ---- sending ---- */

static bool
may_retry(const struct fill *f)
{
    return f->reused && !f->retried && f->phase == FILL_HEAD && f->bytes_in == 0 &&
           !f->request_body && method_is_idempotent(f->method);
}

/* The kept connection was dead: once more, on a new one. */
static void
retry(struct fill *f)
{
    counter_add(COUNTER_SERVER_RETRIES, 1);
    f->retried = true;
    f->reused = false;
    conn_close(&f->conn);
    f->phase = FILL_ROUTE;
    f->request_sent = false;
    body_writer_free(&f->writer);
    route_again(&f->route);
}

static void
connection_broke(struct fill *f, enum fault why, int error)
{
    if (may_retry(f))
        retry(f);
    else
        fill_fail(f, why, error);
}

/* The origin stopped reading. Its answer may be on the way all the same: go on reading, but never
 * use the connection again. */
static void
sending_failed(struct fill *f, int error)
{
    if (may_retry(f)) {
        retry(f);
        return;
    }
    if (error != -EPIPE && error != -ECONNRESET) {
        fill_fail(f, FAULT_SERVER_WRITE, -error);
        return;
    }
    f->keep_alive = false;
    transport_want(&f->conn->transport, LOOP_READ);
    loop_timer_set(&f->conn->timer, f->policy->upstream.read_timeout_ms);
}

void
fill_send(struct fill *f)
{
    struct transport *t = &f->conn->transport;
    uint64_t before = f->writer.sent;
    enum writer_result r;

    if (f->request_sent)
        return;
    r = body_writer_pump(&f->writer, t);
    counter_add(COUNTER_SERVER_BYTES_OUT, f->writer.sent - before);
    switch (r) {
    case WRITER_DONE:
        f->request_sent = !f->body_held;
        transport_want(t, transport_wanted(t) & ~LOOP_WRITE);
        break;
    case WRITER_AGAIN:
        transport_want(t, LOOP_READ | LOOP_WRITE);
        break;
    case WRITER_WAIT:
        transport_want(t, LOOP_READ);
        break;
    case WRITER_FAULT:
        fill_fail(f, f->writer.fault, 0);
        return;
    case WRITER_ERROR:
        sending_failed(f, f->writer.error);
        return;
    }
    if (f->conn)
        loop_timer_set(&f->conn->timer, f->policy->upstream.read_timeout_ms);
}

/* Without a client there is nobody to keep it for. */
static void
bind_to_client(struct fill *f)
{
    if (f->client_connection)
        conn_bind(f->conn, f->client_connection);
    else
        f->keep_alive = false;
}

/* The body follows the head at once, or waits for a 100 when the client waits for one too. */
static void
start_request(struct fill *f)
{
    f->body_held = f->expects_continue && f->request_body;
    body_writer_start(&f->writer, f->events->compose(f->owner, &f->conn->hop),
                      f->body_held ? NULL : f->request_body, f->body_chunked && !f->body_held,
                      f->body_length);
    if (f->body_held)
        loop_timer_set(&f->continue_timer, CONTINUE_MS);
}

void
fill_release_body(struct fill *f)
{
    f->body_held = false;
    loop_timer_stop(&f->continue_timer);
    body_writer_add_body(&f->writer, f->request_body, f->body_chunked, f->body_length);
    fill_send(f);
}

void
fill_connected(void *owner, struct conn *c, bool reused)
{
    struct fill *f = owner;

    f->conn = c;
    f->reused = reused;
    f->phase = FILL_HEAD;
    f->keep_alive = true;
    f->asked_ns = clock_mono_ns();
    f->request_wall_s = clock_wall_s();
    c->requests++;
    counter_add(COUNTER_SERVER_REQUESTS, 1);
    conn_use(c, fill_io, fill_timed_out, f);
    if (f->logs_in)
        bind_to_client(f);
    start_request(f);
    transport_want(&c->transport, LOOP_READ);
    fill_send(f);
}

/* The rest of an upload is waited for, and the server has taken all that came. */
static bool
client_is_silent(const struct fill *f)
{
    return !f->entry && !f->request_sent && f->request_body && !f->body_held &&
           !(transport_wanted(&f->conn->transport) & LOOP_WRITE);
}

/* One reader may take its time; it may not take that of another. */
static void
wait_for_room(struct fill *f)
{
    bool shared = body_readers(f->entry->body) > 1;

    f->awaiting_room = true;
    transport_want(&f->conn->transport, transport_wanted(&f->conn->transport) & ~LOOP_READ);
    loop_timer_set(&f->conn->timer, shared ? BODY_LAGGARD_MS : f->policy->upstream.read_timeout_ms);
}

void
fill_timed_out(void *owner)
{
    struct fill *f = owner;

    if (f->awaiting_room) { /* we are the ones who do not read */
        body_outrun_laggards(f->entry->body);
        wait_for_room(f);
        return;
    }
    if (client_is_silent(f))
        fill_fail(f, FAULT_REQUEST_TIMEOUT, ETIMEDOUT);
    else
        fill_fail(f, f->entry ? FAULT_SERVER_INCOMPLETE : FAULT_SERVER_TIMEOUT, ETIMEDOUT);
}

/* ---- the head ---- */

static bool
pass_interim(struct fill *f, const struct response_head *r)
{
    if (++f->interims > INTERIM_MAX) {
        fill_fail(f, FAULT_SERVER_BAD_HEAD, 0);
        return false;
    }
    f->keep_alive = f->keep_alive && !r->bare_lf;
    if (r->status == 100 && f->body_held)
        fill_release_body(f);
    else if (r->status != 100 && f->events)
        f->events->interim(f->owner, r);
    return fill_is_live(f) && f->phase == FILL_HEAD;
}

static void
hand_over_upgraded(struct fill *f, const struct response_head *r, struct span early)
{
    struct conn *c = f->conn;
    const struct fill_events *events = f->events;
    void *owner = f->owner;

    f->conn = NULL;
    f->keep_alive = false;
    f->events = NULL;
    conn_use(c, NULL, NULL, NULL);
    loop_timer_stop(&c->timer);
    transport_want(&c->transport, 0);
    events->upgraded(owner, r, &c, early);
    conn_close(&c); /* NULL when it was taken */
    fill_finish(f);
}

static void
take_head(struct fill *f, const struct response_head *r, struct span rest)
{
    struct head_times t = {f->request_wall_s, clock_wall_s(), clock_mono_ms()};
    enum h1_reason why;
    const struct fill_events *events = f->events;

    if (r->status == 101) {
        if (f->wants_upgrade && f->request_sent && events)
            hand_over_upgraded(f, r, rest);
        else
            fill_fail(f, FAULT_UPGRADE_FAILED, 0);
        return;
    }
    if (h1_frame_response(r, f->method, &f->framing, &why) != H1_OK) {
        fill_fail(f, FAULT_SERVER_BAD_HEAD, 0);
        return;
    }
    f->keep_alive = f->keep_alive && h1_keeps_alive_response(r) && !f->framing.must_close &&
                    f->framing.how != FRAMING_CLOSE;
    if (auth_binds_response(&r->fields))
        bind_to_client(f);
    f->left = f->framing.how == FRAMING_LENGTH ? f->framing.length : 0;
    chunked_start(&f->chunked, H1_ORIGIN);
    f->body_held = false;
    f->early = rest;
    events->head(f->owner, r, &f->framing, &t);
}

static void
bad_head(struct fill *f, enum h1_reason why)
{
    bool large = why == H1_HEAD_TOO_LARGE || why == H1_TOO_MANY_FIELDS;

    log_event_every(1000, LOG_INFO, "%.*s: bad response head: %s", SPAN_ARG(f->route.o.host),
                    h1_reason_text(why));
    fill_fail(f, large ? FAULT_SERVER_HEAD_TOO_LARGE : FAULT_SERVER_BAD_HEAD, 0);
}

static void
keep_incomplete(struct fill *f, struct span bytes)
{
    struct buf rest = {0};

    if (f->in.n && bytes.at >= f->in.at && bytes.at <= f->in.at + f->in.n) {
        buf_drop_front(&f->in, f->in.n - bytes.n);
        return;
    }
    buf_add(&rest, bytes);
    buf_free(&f->in);
    f->in = rest;
}

static void
fill_parse(struct fill *f, struct span bytes)
{
    struct response_head r;
    enum h1_reason why;
    size_t used;
    struct buf own;

    while (f->phase == FILL_HEAD) {
        switch (
            h1_parse_response(bytes, &f->policy->upstream.head_limits, f->arena, &r, &used, &why)) {
        case H1_BAD:
            bad_head(f, why);
            return;
        case H1_MORE:
            keep_incomplete(f, bytes);
            return;
        case H1_OK:
            break;
        }
        bytes = span_skip(bytes, used);
        if (r.status >= 200 || r.status == 101)
            break;
        if (!pass_interim(f, &r))
            return;
    }
    own = f->in; /* the spans may borrow from it until we are done */
    f->in = (struct buf){0};
    f->first_byte_us = (clock_mono_ns() - f->asked_ns) / 1000;
    take_head(f, &r, bytes);
    buf_free(&own);
}

/* ---- the body ---- */

static bool
too_large_to_keep(struct fill *f)
{
    return body_mode(f->entry->body) == BODY_KEEP &&
           body_published(f->entry->body) > f->keeping.keep_bytes;
}

/* More came than may be kept in memory: the readers that are there get it, and the disk. */
static void
stop_keeping(struct fill *f)
{
    if (f->keeping.stored) {
        store_withdraw(f->up->store, f->entry);
        fill_spool(f);
    }
    f->keeping.stored = false;
    body_pass(f->entry->body);
}

static void
after_commit(struct fill *f)
{
    if (too_large_to_keep(f))
        stop_keeping(f);
}

/* By address: the host's name was the owner's, who may have gone. */
static void
body_bad(struct fill *f, enum fault why)
{
    char text[ADDR_TEXT_MAX];

    (void)addr_format_port(&f->route.server, text);
    log_event_every(1000, LOG_INFO, "%s: %s", text, fault_sentence(why));
    fill_fail(f, why, 0);
}

static void
take_length(struct fill *f, struct span bytes)
{
    if (bytes.n > f->left) { /* bytes nobody announced: never the next answer */
        f->keep_alive = false;
        bytes.n = (size_t)f->left;
    }
    f->left -= bytes.n;
    body_append(f->entry->body, bytes);
    if (f->left == 0)
        fill_finish(f);
    else
        after_commit(f);
}

static void
take_chunked(struct fill *f, struct span bytes)
{
    struct span data;

    while (fill_is_live(f)) {
        switch (chunked_next(&f->chunked, &bytes, &data, &f->trailer)) {
        case CHUNKED_DATA:
            body_append(f->entry->body, data);
            break;
        case CHUNKED_MORE:
            after_commit(f);
            return;
        case CHUNKED_BAD:
            body_bad(f, FAULT_SERVER_BAD_BODY);
            return;
        case CHUNKED_END:
            if (bytes.n)
                f->keep_alive = false;
            fill_finish(f);
            return;
        }
    }
}

/* Body bytes that were read together with the head, or chunked ones. */
static void
take_bytes(struct fill *f, struct span bytes)
{
    switch (f->framing.how) {
    case FRAMING_NONE:
        f->keep_alive = f->keep_alive && bytes.n == 0;
        fill_finish(f);
        return;
    case FRAMING_LENGTH:
        take_length(f, bytes);
        return;
    case FRAMING_CHUNKED:
        take_chunked(f, bytes);
        return;
    case FRAMING_CLOSE:
        body_append(f->entry->body, bytes);
        after_commit(f);
        return;
    }
}

static void
body_ended_early(struct fill *f, ssize_t got)
{
    if (got == 0 && f->framing.how == FRAMING_CLOSE) {
        f->keep_alive = false;
        fill_finish(f);
        return;
    }
    fill_fail(f, FAULT_SERVER_INCOMPLETE, got < 0 ? (int)-got : 0);
}

/* One read, straight into the body where the framing allows it. false: nothing more for now. */
static bool
read_once(struct fill *f)
{
    bool direct = f->framing.how != FRAMING_CHUNKED;
    size_t room = f->up->scratch_bytes;
    char *at = direct ? body_room(f->entry->body, &room) : f->up->scratch;
    ssize_t got;

    if (f->framing.how == FRAMING_LENGTH && room > f->left)
        room = (size_t)f->left;
    got = transport_read(&f->conn->transport, at, room);
    if (got == -EAGAIN)
        return false;
    if (got <= 0) {
        body_ended_early(f, got);
        return false;
    }
    f->bytes_in += (size_t)got;
    counter_add(COUNTER_SERVER_BYTES_IN, (size_t)got);
    loop_timer_set(&f->conn->timer, f->policy->upstream.read_timeout_ms);
    if (!direct) {
        take_chunked(f, span_of(at, (size_t)got));
        return fill_is_live(f) && (size_t)got == room;
    }
    body_commit(f->entry->body, (size_t)got);
    f->left -= f->framing.how == FRAMING_LENGTH ? (uint64_t)got : 0;
    if (f->framing.how == FRAMING_LENGTH && f->left == 0)
        fill_finish(f);
    else
        after_commit(f);
    return fill_is_live(f) && (size_t)got == room;
}

/* Bytes that came with the head; a body without any ends here. More of it is waited for. */
void
fill_start_body(struct fill *f)
{
    struct span early = f->early;
    bool none =
        f->framing.how == FRAMING_NONE || (f->framing.how == FRAMING_LENGTH && f->left == 0);

    if (early.n || none)
        take_bytes(f, early);
}

static void
read_body(struct fill *f)
{
    if (fill_is_unwanted(f)) { /* the last of those that joined later told nobody */
        fill_fail(f, FAULT_CLIENT_GONE, 0);
        return;
    }
    for (int i = 0; i < READS_A_TURN && fill_is_live(f); i++) {
        if (!body_wants(f->entry->body)) {
            wait_for_room(f);
            return;
        }
        if (!read_once(f))
            return;
    }
}

/* ---- readiness ---- */

static void
read_head(struct fill *f)
{
    ssize_t got = transport_read(&f->conn->transport, f->up->scratch, f->up->scratch_bytes);

    if (got == -EAGAIN)
        return;
    if (got <= 0) {
        connection_broke(f,
                         f->bytes_in ? FAULT_SERVER_BAD_HEAD
                         : got       ? FAULT_SERVER_READ
                                     : FAULT_SERVER_CLOSED,
                         got < 0 ? (int)-got : 0);
        return;
    }
    f->bytes_in += (size_t)got;
    counter_add(COUNTER_SERVER_BYTES_IN, (size_t)got);
    loop_timer_set(&f->conn->timer, f->policy->upstream.read_timeout_ms);
    if (f->in.n) {
        buf_add(&f->in, span_of(f->up->scratch, (size_t)got));
        fill_parse(f, buf_span(&f->in));
    } else
        fill_parse(f, span_of(f->up->scratch, (size_t)got));
}

void
fill_io(void *owner, int events)
{
    struct fill *f = owner;

    if ((events & LOOP_WRITE) && fill_is_live(f) && f->conn)
        fill_send(f);
    if (!(events & LOOP_READ) || !fill_is_live(f) || !f->conn)
        return;
    if (f->phase == FILL_HEAD)
        read_head(f);
    else if (f->phase == FILL_BODY)
        read_body(f);
}
