/* The request body as a source over the connection's input buffer. Offsets, not pointers, are kept:
 * the buffer moves when it grows. A client that waits for a 100 gets it when the body is first
 * asked for and nothing of it has come. */
#include "base/buf.h"
#include "base/check.h"
#include "proxy/client/client_private.h"

static struct client_body *
body_of(struct source *s)
{
    return LIST_OWNER(s, struct client_body, source);
}

static void
take_length(struct client_body *b)
{
    size_t n = b->client->in.n;

    b->ready_at = 0;
    b->ready_n = n < b->left ? n : (size_t)b->left;
    b->used = b->ready_n;
}

static void
take_chunked(struct client_body *b)
{
    struct span in = buf_span(&b->client->in), data = SPAN_NONE;

    switch (chunked_next(&b->chunked, &in, &data, &b->trailer)) {
    case CHUNKED_DATA:
        b->ready_at = (size_t)(data.at - b->client->in.at);
        b->ready_n = data.n;
        break;
    case CHUNKED_END:
        b->ended = true;
        b->source.trailer = buf_span(&b->trailer);
        break;
    case CHUNKED_BAD:
        b->bad = true;
        break;
    case CHUNKED_MORE:
        break;
    }
    b->used = b->client->in.n - in.n;
    if (b->ready_n == 0) {
        buf_drop_front(&b->client->in, b->used);
        b->used = 0;
    }
}

static void
decode(struct client_body *b)
{
    if (b->ready_n || b->ended || b->bad || b->client->in.n == 0)
        return;
    if (b->framing.how == FRAMING_LENGTH)
        take_length(b);
    else
        take_chunked(b);
}

static enum source_state
nothing_yet(struct client_body *b)
{
    if (b->bad || b->client->half_closed) {
        b->source.fault = b->bad ? FAULT_BAD_REQUEST : FAULT_CLIENT_GONE;
        return SOURCE_FAULT;
    }
    b->wanted = true;
    if (b->continue_due) {
        b->continue_due = false;
        client_responder.interim(b->client, 100, NULL);
    }
    client_interest(b->client);
    return SOURCE_WAIT;
}

static enum source_state
client_body_peek(struct source *s, struct iovec *runs, int max, int *n)
{
    struct client_body *b = body_of(s);

    *n = 0;
    decode(b);
    if (b->ended)
        return SOURCE_END;
    if (b->ready_n == 0)
        return nothing_yet(b);
    runs[0] = (struct iovec){b->client->in.at + b->ready_at, b->ready_n};
    *n = 1;
    return SOURCE_DATA;
}

static void
client_body_consume(struct source *s, size_t n_bytes)
{
    struct client_body *b = body_of(s);

    CHECK(n_bytes <= b->ready_n);
    b->ready_at += n_bytes;
    b->ready_n -= n_bytes;
    if (b->framing.how == FRAMING_LENGTH) {
        b->left -= n_bytes;
        b->ended = b->left == 0;
    }
    if (b->ready_n)
        return;
    buf_drop_front(&b->client->in, b->used);
    b->used = b->ready_at = 0;
    client_interest(b->client);
}

static void
client_body_close(struct source *s)
{
    s->wake = NULL; /* the client frees it with the request */
}

static const struct source_ops CLIENT_BODY = {"request body", client_body_peek, client_body_consume,
                                              client_body_close};

struct client_body *
client_body_new(struct client *c, const struct framed *f, bool continue_due)
{
    struct client_body *b = mem_zalloc(sizeof *b);

    b->source.ops = &CLIENT_BODY;
    b->source.loop = c->env->loop;
    b->client = c;
    b->framing = *f;
    b->left = f->length;
    b->continue_due = continue_due;
    chunked_start(&b->chunked, H1_CLIENT);
    return b;
}

void
client_body_arrived(struct client_body *b)
{
    b->continue_due = false;
    if (!b->wanted || !b->source.wake)
        return;
    b->wanted = false;
    loop_wake(b->source.loop, b->source.wake);
}

bool
client_body_is_done(const struct client_body *b)
{
    return b->ended || b->bad;
}

void
client_body_free(struct client_body **held)
{
    struct client_body *b = *held;

    *held = NULL;
    if (!b)
        return;
    buf_free(&b->trailer);
    mem_free(b);
}
