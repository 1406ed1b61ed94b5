/* CONNECT, and what is left of an exchange after a 101: two transports and a tunnel between them.
 */
#include "http/h1_write.h"
#include "proxy/exchange/states.h"

static void
tunnel_ended(void *owner, uint64_t up, uint64_t down, int error)
{
    struct exchange *x = owner;

    x->tally.bytes_in += up;
    x->tally.sent_bytes = x->tally.body_sent = down;
    x->tally.ending = ENDING_WHOLE;
    x->tunnel.tunnel = NULL; /* frees itself */
    x->answer.error = error;
    exchange_finish(x);
}

static void
client_has_gone(struct exchange *x, struct buf *early)
{
    conn_close(&x->tunnel.server);
    buf_free(early);
    x->tally.ending = ENDING_ABORTED;
    exchange_finish(x);
}

/* head: what the client reads first. */
static enum step
open_tunnel(struct exchange *x, struct span head, unsigned status)
{
    struct buf early = {0};
    struct transport client, server;
    bool open = x->client.ops->steal(x->client.responder, &client, &early);

    x->client.ops = NULL;
    x->answer.status = status;
    x->answer.how = HOW_TUNNEL;
    if (!open) {
        client_has_gone(x, &early);
        return STEP_DONE;
    }
    conn_release(&x->tunnel.server, &server);
    x->tunnel.tunnel =
        tunnel_start(x->env->loop,
                     &(struct tunnel_options){.client = &client,
                                              .server = &server,
                                              .to_server = buf_span(&early),
                                              .to_client = head,
                                              .idle_ms = x->context->policy->request.tunnel_idle_ms,
                                              .scratch = x->env->upstream->scratch,
                                              .scratch_bytes = x->env->upstream->scratch_bytes,
                                              .ended = tunnel_ended,
                                              .owner = x});
    buf_free(&early);
    return STEP_WAIT;
}

static void
note_route(struct exchange *x)
{
    const struct route *r = &x->tunnel.route;

    x->hop.server = r->server;
    x->hop.took.dns_us = r->dns_us;
    x->hop.took.connect_us = r->connect_us;
}

static void
connect_found(void *owner, struct conn *c, bool reused)
{
    struct exchange *x = owner;

    (void)reused;
    note_route(x);
    x->tunnel.server = c;
    exchange_resume(x);
}

static void
connect_failed(void *owner, enum fault why, int error)
{
    struct exchange *x = owner;

    note_route(x);
    (void)exchange_fail(x, why, error);
    exchange_resume(x);
}

static void
find_way(struct exchange *x)
{
    const struct context *c = x->context;

    x->hop.asked = true;
    x->answer.how = HOW_TUNNEL;
    route_start(&x->tunnel.route, x->env->upstream,
                &(struct route_order){.policy = &c->policy->upstream,
                                      .host = c->request.uri.host,
                                      .port = c->request.uri.port,
                                      .judged = c->dst ? c->dst->at : NULL,
                                      .n_judged = c->dst ? c->dst->n : 0,
                                      .deny_local = context_denies_local(c),
                                      .deadline_ms = x->tally.started_ns / 1000000 +
                                                     c->policy->upstream.forward_timeout_ms,
                                      .found = connect_found,
                                      .failed = connect_failed,
                                      .owner = x});
}

enum step
step_connect(struct exchange *x)
{
    enum fault why = exchange_dst_fault(x);

    if (why)
        return exchange_fail(x, why, 0);
    if (x->tunnel.server)
        return exchange_next(x, TUNNEL);
    if (!x->tunnel.route.up)
        find_way(x);
    return STEP_WAIT;
}

/* The origin's 101 goes out with its own fields; from then on the bytes are not HTTP. */
static struct span
switching_head(struct exchange *x)
{
    struct buf b = {0};
    struct fields f = x->hop.response->fields;
    struct span protocols = fields_join(&f, &x->context->arena, FIELD_UPGRADE), out;

    forwarding_clean(&f);
    h1_write_status_line(&b, 101, SPAN("Switching Protocols"));
    h1_write_fields(&b, &f);
    h1_write_field(&b, SPAN("Upgrade"), protocols);
    BUF_ADD(&b, "Connection: Upgrade\r\n\r\n");
    buf_add(&b, buf_span(&x->tunnel.early));
    out = arena_copy(&x->context->arena, buf_span(&b));
    buf_free(&b);
    return out;
}

enum step
step_tunnel(struct exchange *x)
{
    bool connect = x->context->request.method == METHOD_CONNECT;

    if (x->tunnel.tunnel)
        return STEP_WAIT;
    return connect ? open_tunnel(x, SPAN("HTTP/1.1 200 Connection established\r\n\r\n"), 200)
                   : open_tunnel(x, switching_head(x), 101);
}
