/* The reading side: one read into the worker's scratch memory, the head copied into the exchange's
 * arena, the rest kept only when there is a rest. Pipelined requests are taken one after the other;
 * while one is answered, at most 64 KB are read ahead. */
#include "proxy/client/client_h1.h"

#include <errno.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "http/h1_frame.h"
#include "proxy/client/client_private.h"

#define LINGER_MS 2000
#define LINGER_BYTES (4u << 20) /* who sends more after the end is not owed the answer */
#define REQUESTS_A_TURN 32

static void client_io(void *owner, int events);

/* ---- life ---- */

static void
client_free(void *owner)
{
    struct client *c = owner;

    buf_free(&c->in);
    buf_free(&c->out);
    FREE_OBJ(c);
}

void
client_close(struct client *c)
{
    if (c->phase == CLIENT_CLOSED)
        return;
    CHECK(c->x == NULL);
    c->phase = CLIENT_CLOSED;
    idle_close_bound(c->env->exchanges->upstream->idle, c->connection);
    transport_close(&c->transport);
    loop_timer_close(&c->timer);
    loop_task_cancel(c->env->loop, &c->go_on);
    body_writer_free(&c->writer);
    client_body_free(&c->body);
    list_remove(&c->link);
    c->env->n_clients--;
    loop_defer(c->env->loop, &c->free_later);
}

void
client_abort(struct client *c, bool timed_out)
{
    struct exchange *x = c->x;
    uint64_t sent = c->writer.sent;

    c->x = NULL;
    if (x)
        exchange_abort(x, timed_out, sent);
    client_close(c);
}

static void
move_to(struct client *c, struct list *where)
{
    list_remove(&c->link);
    list_push_back(where, &c->link);
}

static struct policy *
policy_of(const struct client *c)
{
    return c->env->exchanges->policy;
}

/* client_lifetime runs from the accept on, and no byte in either direction sets it back. */
int64_t
client_wait_ms(const struct client *c, int64_t wish_ms)
{
    const struct policy *p = c->x ? exchange_policy(c->x) : policy_of(c);
    int64_t left_ms = c->born_ms + p->client.lifetime_ms - clock_mono_ms();

    return wish_ms < left_ms ? wish_ms : left_ms;
}

static void
go_busy(struct client *c)
{
    if (c->phase == CLIENT_BUSY)
        return;
    c->phase = CLIENT_BUSY;
    transport_purpose(&c->transport, FD_CLIENT_ACTIVE);
    move_to(c, &c->env->busy);
    loop_timer_set(&c->timer, client_wait_ms(c, INT64_MAX));
}

static struct exchange *
exchange_for(struct client *c)
{
    struct exchange_client to = {&client_responder, c, &c->go_on};
    struct asker from = {.connection = c->connection,
                         .peer = c->from.peer,
                         .local = *c->from.local,
                         .port_name = c->from.port_name,
                         .intercepts = c->from.intercepts,
                         .destination = c->from.destination};

    return exchange_new(c->env->exchanges, &to, &from);
}

static void
client_refuse(struct client *c, enum fault why, const char *detail)
{
    c->keep_alive = false;
    c->refused = true;
    if (!c->x)
        c->x = exchange_for(c);
    go_busy(c);
    exchange_refuse(c->x, why, detail);
}

static void
client_timer(void *owner)
{
    struct client *c = owner;

    switch ((enum client_phase)c->phase) {
    case CLIENT_HEAD:
        buf_free(&c->in);
        client_refuse(c, FAULT_REQUEST_TIMEOUT, "the head did not arrive in time");
        return;
    case CLIENT_BUSY:
        client_abort(c, true);
        return;
    default:
        client_close(c);
        return;
    }
}

void
client_open(struct client_env *env, struct transport *t, const struct client_arrival *from)
{
    struct client *c = mem_zalloc(sizeof *c);
    char text[ADDR_TEXT_MAX];

    c->magic = CLIENT_MAGIC;
    c->env = env;
    c->from = *from;
    c->connection = ++env->last_connection;
    transport_take(&c->transport, t, LOOP_CLIENT, client_io, c);
    c->born_ms = clock_mono_ms();
    loop_timer_init(&c->timer, env->loop, client_timer, c);
    loop_task_init(&c->go_on, client_go_on, c);
    loop_task_init(&c->free_later, client_free, c);
    list_push_back(&env->idle, &c->link);
    env->n_clients++;
    transport_note(&c->transport, span_of(text, addr_format_port(&from->peer, text)));
    transport_purpose(&c->transport, FD_CLIENT_IDLE);
    loop_timer_set(&c->timer, policy_of(c)->client.request_start_timeout_ms);
    transport_want(&c->transport, LOOP_READ);
}

/* ---- requests ---- */

static enum fault
fault_of_reason(enum h1_reason why)
{
    switch (h1_reason_status(why)) {
    case 414:
        return FAULT_URI_TOO_LONG;
    case 431:
        return FAULT_HEAD_TOO_LARGE;
    case 501:
        return FAULT_UNSUPPORTED;
    case 505:
        return FAULT_VERSION;
    default:
        return why == H1_BAD_TARGET ? FAULT_BAD_URL : FAULT_BAD_REQUEST;
    }
}

/* The head's bytes: up to the empty line, or all there is. Leading empty lines belong to it. */
static struct span
head_bytes(struct span bytes)
{
    size_t lead = 0;
    const char *end;

    while (lead < bytes.n && lead < 4 && (bytes.at[lead] == '\r' || bytes.at[lead] == '\n'))
        lead++;
    end = bytes.n > lead ? memmem(bytes.at + lead, bytes.n - lead, "\r\n\r\n", 4) : NULL;
    return end ? span_first(bytes, (size_t)(end + 4 - bytes.at)) : bytes;
}

static void
keep_rest(struct client *c, struct span rest)
{
    struct buf in = {0};

    if (c->in.at && rest.at >= c->in.at && rest.at <= c->in.at + c->in.n) {
        buf_drop_front(&c->in, c->in.n - rest.n);
        return;
    }
    buf_add(&in, rest);
    buf_free(&c->in);
    c->in = in;
}

static bool
wants_continue(const struct request_head *r)
{
    return r->minor >= 1 && fields_find(&r->fields, FIELD_EXPECT) != NULL;
}

static void
start_exchange(struct client *c, struct span rest, size_t head_size, const struct framed *framing)
{
    struct exchange *x = c->x;
    const struct request_head *r = exchange_request(x);
    bool has_body =
        framing->how == FRAMING_CHUNKED || (framing->how == FRAMING_LENGTH && framing->length > 0);
    struct framed body = *framing;

    if (!has_body && body.how == FRAMING_LENGTH && r->method != METHOD_POST &&
        r->method != METHOD_PUT && r->method != METHOD_PATCH)
        body.how = FRAMING_NONE;
    c->keep_alive =
        h1_keeps_alive_request(r) && !framing->must_close && exchange_policy(x)->client.persistent;
    c->minor0 = r->minor == 0;
    keep_rest(c, rest);
    if (has_body)
        c->body = client_body_new(c, framing, wants_continue(r) && rest.n == 0);
    exchange_start(x, c->body ? &c->body->source : NULL, &body, head_size);
}

static void
parse_failed(struct client *c, enum h1_reason why)
{
    log_event_every(1000, LOG_INFO, "bad request: %s", h1_reason_text(why));
    buf_free(&c->in);
    client_refuse(c, fault_of_reason(why), h1_reason_text(why));
}

static void
broke_off(struct client *c)
{
    buf_free(&c->in);
    client_refuse(c, FAULT_BAD_REQUEST, "the head broke off");
}

static void
head_incomplete(struct client *c, struct span bytes)
{
    exchange_drop(c->x);
    c->x = NULL;
    keep_rest(c, bytes);
    if (c->half_closed) {
        broke_off(c);
        return;
    }
    if (c->phase == CLIENT_BUSY) { /* it came in behind the request before: nothing is on now */
        transport_purpose(&c->transport, FD_CLIENT_IDLE);
        move_to(c, &c->env->idle);
    }
    if (c->phase !=
        CLIENT_HEAD) /* the clock runs from the first byte; later bytes do not set it back */
        loop_timer_set(&c->timer, policy_of(c)->client.request_timeout_ms);
    c->phase = CLIENT_HEAD;
    client_interest(c);
}

/* A password for this proxy is nobody else's business: no log, no store and no origin sees it, of a
 * request that is refused neither (RFC 9110 section 11.7.2). */
static enum h1_result
parse_head(struct exchange *x, struct span head, size_t *used, enum h1_reason *why)
{
    enum h1_result result = h1_parse_request(head, &exchange_policy(x)->client.head_limits,
                                             exchange_arena(x), exchange_request(x), used, why);

    exchange_hide_credentials(x);
    return result;
}

static void
client_parse(struct client *c, struct span bytes)
{
    struct exchange *x = exchange_for(c);
    struct span head = arena_copy(exchange_arena(x), head_bytes(bytes));
    struct framed framing;
    enum h1_reason why;
    size_t used;

    c->x = x;
    switch (parse_head(x, head, &used, &why)) {
    case H1_MORE:
        head_incomplete(c, bytes);
        return;
    case H1_BAD:
        parse_failed(c, why);
        return;
    case H1_OK:
        break;
    }
    go_busy(c);
    if (h1_frame_request(exchange_request(x), &framing, &why) != H1_OK) {
        parse_failed(c, why);
        return;
    }
    start_exchange(c, span_skip(bytes, used), used, &framing);
}

static void
go_idle(struct client *c)
{
    if (c->half_closed || c->env->stopping) {
        client_close(c);
        return;
    }
    c->phase = CLIENT_IDLE;
    buf_free(&c->in);
    transport_purpose(&c->transport, FD_CLIENT_IDLE);
    move_to(c, &c->env->idle);
    loop_timer_set(&c->timer, client_wait_ms(c, policy_of(c)->client.idle_ms));
    client_interest(c);
}

/* After a response: the next request that is already here, else idle. Not from inside a request's
 * own call chain. */
void
client_next(struct client *c)
{
    if (c->nested)
        return;
    c->nested = true;
    for (int i = 0; c->phase == CLIENT_BUSY && !c->x; i++) {
        if (c->in.n == 0) {
            go_idle(c);
            break;
        }
        if (i == REQUESTS_A_TURN) {
            loop_defer(c->env->loop, &c->go_on);
            break;
        }
        client_parse(c, buf_span(&c->in));
    }
    c->nested = false;
}

/* ---- readiness ---- */

/* Reads on as long as somebody may want it: a head, a body that is asked for, or up to 64 KB ahead.
 */
void
client_interest(struct client *c)
{
    int want = 0;

    if (c->phase == CLIENT_CLOSED)
        return;
    if (!c->half_closed && c->in.n < CLIENT_IN_MAX)
        want |= LOOP_READ;
    if (c->x && (transport_wanted(&c->transport) & LOOP_WRITE))
        want |= LOOP_WRITE;
    transport_want(&c->transport, want);
}

static void
first_bytes(struct client *c, struct span bytes)
{
    c->nested = true;
    if (c->in.n) {
        buf_add(&c->in, bytes);
        client_parse(c, buf_span(&c->in));
    } else
        client_parse(c, bytes);
    c->nested = false;
    client_next(c);
}

static void
read_ahead(struct client *c, struct span bytes)
{
    buf_add(&c->in, bytes);
    if (c->body)
        client_body_arrived(c->body);
    client_interest(c);
}

static void
client_ended(struct client *c)
{
    c->half_closed = true;
    if (c->phase == CLIENT_HEAD) {
        broke_off(c);
        return;
    }
    if (c->phase != CLIENT_BUSY) {
        client_close(c);
        return;
    }
    /* It may still want its answer (RFC 9112 section 9.6). */
    client_interest(c);
    if (c->body)
        client_body_arrived(c->body);
}

static void
thrown_away(struct client *c, size_t n_bytes)
{
    c->lingered_bytes += (uint32_t)n_bytes;
    if (c->lingered_bytes > LINGER_BYTES)
        client_close(c);
}

static void
client_read(struct client *c)
{
    size_t room = c->phase == CLIENT_BUSY && c->in.n < CLIENT_IN_MAX ? CLIENT_IN_MAX - c->in.n
                                                                     : c->env->scratch_bytes;
    ssize_t got = transport_read(&c->transport, c->env->scratch,
                                 room < c->env->scratch_bytes ? room : c->env->scratch_bytes);
    struct span bytes = span_of(c->env->scratch, got > 0 ? (size_t)got : 0);

    if (got == -EAGAIN)
        return;
    if (got < 0)
        client_abort(c, false);
    else if (got == 0)
        client_ended(c);
    else if (c->phase == CLIENT_LINGER)
        thrown_away(c, bytes.n);
    else if (c->phase == CLIENT_BUSY)
        read_ahead(c, bytes);
    else
        first_bytes(c, bytes);
}

static void
client_io(void *owner, int events)
{
    struct client *c = owner;

    if (events & LOOP_WRITE)
        client_go_on(c);
    if ((events & LOOP_READ) && c->phase != CLIENT_CLOSED)
        client_read(c);
}

/* ---- the end of a connection ---- */

/* Bytes may still be on their way to us: closing now would turn them into a reset that can eat the
 * end of our response. */
static void
client_linger(struct client *c)
{
    c->phase = CLIENT_LINGER;
    buf_free(&c->in);
    if (transport_shutdown(&c->transport) < 0) {
        client_close(c);
        return;
    }
    loop_timer_set(&c->timer, LINGER_MS);
    transport_want(&c->transport, LOOP_READ);
}

void
client_answered(struct client *c, bool whole)
{
    struct exchange *x = c->x;
    uint64_t sent = c->writer.sent, body_sent = c->writer.body_sent;
    bool more_to_come = !c->half_closed &&
                        ((c->body && !client_body_is_done(c->body)) || c->in.n > 0 || c->refused);

    c->x = NULL;
    exchange_sent(x, sent, body_sent, whole);
    body_writer_free(&c->writer);
    if (!whole) {
        if (c->close_delimited)
            transport_reset(&c->transport);
        client_close(c);
        return;
    }
    if (c->body && !client_body_is_done(c->body))
        c->keep_alive = false;
    client_body_free(&c->body);
    if (c->keep_alive && !c->env->stopping)
        client_next(c);
    else if (more_to_come)
        client_linger(c);
    else
        client_close(c);
}

/* ---- all of a worker's ---- */

void
client_env_init(struct client_env *env, struct exchange_env *exchanges, char *scratch,
                size_t scratch_bytes)
{
    memset(env, 0, sizeof *env);
    env->exchanges = exchanges;
    env->loop = exchanges->loop;
    env->scratch = scratch;
    env->scratch_bytes = scratch_bytes;
    list_init(&env->busy);
    list_init(&env->idle);
}

static unsigned
shed_phase(struct client_env *env, unsigned n, enum client_phase phase)
{
    unsigned closed = 0;

    for (struct list *l = env->idle.next, *next; l != &env->idle && closed < n; l = next) {
        struct client *c = LIST_OWNER(l, struct client, link);

        next = l->next;
        if (c->phase != phase)
            continue;
        client_close(c);
        closed++;
    }
    return closed;
}

/* Those between two requests go first, then those that have not said anything yet. */
unsigned
client_shed(struct client_env *env, unsigned n)
{
    unsigned closed = shed_phase(env, n, CLIENT_IDLE);

    if (closed == 0)
        closed = shed_phase(env, n, CLIENT_FRESH);
    counter_add(COUNTER_CLIENT_SHED, closed);
    return closed;
}

void
client_env_stop(struct client_env *env)
{
    env->stopping = true;
    while (!list_empty(&env->idle))
        client_close(LIST_OWNER(env->idle.next, struct client, link));
}

void
client_env_close(struct client_env *env)
{
    client_env_stop(env);
    while (!list_empty(&env->busy))
        client_abort(LIST_OWNER(env->busy.next, struct client, link), false);
    buf_free(&env->out);
}

void
client_each(struct client_env *env,
            void (*fn)(void *arg, const struct addr *peer, const struct exchange *x), void *arg)
{
    for (struct list *l = env->busy.next; l != &env->busy; l = l->next) {
        struct client *c = LIST_OWNER(l, struct client, link);

        if (c->x)
            fn(arg, &c->from.peer, c->x);
    }
}
