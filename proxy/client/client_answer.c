/* The writing side: the response head in one piece of scratch memory, framing as this client
 * understands it, and sending on when there is room. */
#include <errno.h>

#include "base/check.h"
#include "base/counters.h"
#include "http/h1_write.h"
#include "http/status.h"
#include "proxy/client/client_private.h"

static void
add_framing(struct client *c, struct buf *b, const struct outgoing *o, bool *chunked)
{
    *chunked = false;
    c->close_delimited = false;
    if (o->status == 204 || o->status < 200)
        return;
    if (o->length != LENGTH_UNKNOWN) {
        BUF_ADD(b, "Content-Length: ");
        buf_add_uint(b, o->length);
        BUF_ADD(b, "\r\n");
    } else if (o->bodyless)
        return;
    else if (!c->minor0) {
        BUF_ADD(b, "Transfer-Encoding: chunked\r\n");
        *chunked = true;
    } else {
        c->keep_alive =
            false; /* an HTTP/1.0 client knows the end by the close (RFC 9112 section 6.3) */
        c->close_delimited = true;
    }
}

static void
add_connection(struct client *c, struct buf *b)
{
    if (!c->keep_alive)
        BUF_ADD(b, "Connection: close\r\n");
    else if (c->minor0)
        BUF_ADD(b, "Connection: keep-alive\r\n");
}

/* A request body that nobody will read makes this the last response. */
static bool
must_close(const struct client *c, const struct outgoing *o)
{
    return o->close || c->half_closed || c->env->stopping ||
           (c->body && !client_body_is_done(c->body));
}

static void
client_respond(void *responder, const struct outgoing *o)
{
    struct client *c = responder;
    struct buf *b = &c->env->out;
    bool chunked;

    c->keep_alive = c->keep_alive && !must_close(c, o);
    b->n = 0;
    buf_add(b, buf_span(&c->out));
    buf_free(&c->out);
    h1_write_status_line(b, o->status, o->reason);
    h1_write_edited(b, o->head ? o->head->block : SPAN_NONE, o->head ? &o->head->fields : NULL,
                    o->edits);
    add_framing(c, b, o, &chunked);
    add_connection(c, b);
    BUF_ADD(b, "\r\n");
    body_writer_start(&c->writer, buf_span(b), o->bodyless ? NULL : o->body, chunked, o->length);
    client_go_on(c);
}

static void
write_timeout(struct client *c)
{
    loop_timer_set(&c->timer, client_wait_ms(c, exchange_policy(c->x)->client.write_timeout_ms));
}

static void
after_sending(struct client *c, enum writer_result r)
{
    struct transport *t = &c->transport;

    switch (r) {
    case WRITER_DONE:
        transport_want(t, transport_wanted(t) & ~LOOP_WRITE);
        client_answered(c, true);
        return;
    case WRITER_AGAIN:
        transport_want(t, transport_wanted(t) | LOOP_WRITE);
        write_timeout(c);
        return;
    case WRITER_WAIT:
        transport_want(t, transport_wanted(t) & ~LOOP_WRITE);
        loop_timer_set(&c->timer, client_wait_ms(c, INT64_MAX));
        return;
    case WRITER_FAULT:
        client_answered(c, false);
        return;
    case WRITER_ERROR:
        client_abort(c, false);
        return;
    }
}

void
client_go_on(void *owner)
{
    struct client *c = owner;

    if (c->phase != CLIENT_BUSY)
        return;
    if (!c->x) /* a turn's worth of pipelined requests is done; on with the next */
        client_next(c);
    else if (c->writer.sent || c->writer.head.n || c->writer.body) /* it is answered */
        after_sending(c, body_writer_pump(&c->writer, &c->transport));
}

/* 1xx goes out at once when the socket takes it whole; else in front of the next head. */
static void
client_interim(void *responder, unsigned status, const struct fields *fields)
{
    struct client *c = responder;
    struct buf b = {0};
    ssize_t sent = 0;

    h1_write_status_line(&b, status, status_reason(status));
    if (fields)
        h1_write_fields(&b, fields);
    BUF_ADD(&b, "\r\n");
    if (c->out.n == 0)
        sent = transport_write(&c->transport, b.at, b.n);
    if (sent < 0)
        sent = 0; /* a broken connection shows itself soon enough */
    buf_add(&c->out, span_skip(buf_span(&b), (size_t)sent));
    buf_free(&b);
}

static bool
client_steal(void *responder, struct transport *t, struct buf *early)
{
    struct client *c = responder;
    bool open = transport_is_open(&c->transport);

    if (open)
        transport_take(t, &c->transport, LOOP_TUNNEL, NULL, NULL);
    *early = c->in;
    c->in = (struct buf){0};
    c->x = NULL;
    client_close(c);
    return open;
}

const struct responder_ops client_responder = {client_interim, client_respond, client_steal};
