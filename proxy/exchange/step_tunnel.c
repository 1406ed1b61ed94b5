/* CONNECT, and what is left of an exchange after a 101: two sockets and a tunnel between them. */
#include <errno.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
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

/* head: what the client reads first. Takes the server's descriptor. */
static enum step
open_tunnel(struct exchange *x, int server_fd, struct span head, unsigned status)
{
    struct buf early = {0};
    int client_fd = x->client.ops->steal(x->client.responder, &early);

    x->client.ops = NULL;
    x->answer.status = status;
    x->answer.how = HOW_TUNNEL;
    x->state = TUNNEL;
    if (client_fd < 0) {
        fds_close(server_fd);
        buf_free(&early);
        x->tally.ending = ENDING_ABORTED;
        exchange_finish(x);
        return STEP_DONE;
    }
    x->tunnel.tunnel =
        tunnel_start(x->env->loop,
                     &(struct tunnel_options){.client_fd = client_fd,
                                              .server_fd = server_fd,
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
connect_dialled(void *owner, int fd, const struct addr *to)
{
    struct exchange *x = owner;

    x->tunnel.dial = NULL;
    x->hop.server = *to;
    x->hop.took.connect_us = (clock_mono_ns() - x->tally.started_ns) / 1000;
    x->tunnel.dialled = true;
    x->tunnel.dialled_fd = fd;
    exchange_resume(x);
}

static enum step dial_target(struct exchange *x);

static enum step
connected(struct exchange *x)
{
    x->tunnel.dialled = false;
    if ((x->tunnel.dialled_fd == -EMFILE || x->tunnel.dialled_fd == -ENFILE) &&
        !x->tunnel.redialled && x->env->upstream->shed(x->env->upstream->owner) > 0) {
        x->tunnel.redialled = true;
        return dial_target(x);
    }
    if (x->tunnel.dialled_fd < 0)
        return exchange_fail(x, upstream_connect_fault(x->tunnel.dialled_fd),
                             -x->tunnel.dialled_fd);
    return open_tunnel(x, x->tunnel.dialled_fd, SPAN("HTTP/1.1 200 Connection established\r\n\r\n"),
                       200);
}

static void
connect_resolved(void *owner, const struct dns_answer *a)
{
    struct exchange *x = owner;

    x->query = NULL;
    x->hop.took.dns_us = (clock_mono_ns() - x->tally.started_ns) / 1000;
    x->context->dst = arena_alloc(&x->context->arena, sizeof *x->context->dst);
    *x->context->dst = *a;
    exchange_resume(x);
}

static enum step
dial_target(struct exchange *x)
{
    if (x->context->dst->status != DNS_OK || x->context->dst->n == 0)
        return exchange_fail(x, upstream_dns_fault(x->context->dst->status), 0);
    if (context_denies_local(x->context) &&
        upstream_is_local(x->context->dst->at, x->context->dst->n))
        return exchange_fail(x, FAULT_ADDRESS_DENIED, 0);
    for (unsigned i = 0; i < x->context->dst->n; i++)
        if (upstream_is_self(x->env->upstream, &x->context->dst->at[i],
                             x->context->request.uri.port))
            return exchange_fail(x, FAULT_LOOP, 0);
    x->hop.asked = true;
    x->answer.how = HOW_TUNNEL;
    x->tunnel.dial = dial_start(x->env->loop,
                         &(struct dial_options){.to = x->context->dst->at,
                                                .n = policy_tries(x->context->policy, x->context->dst->n),
                                                .port = x->context->request.uri.port,
                                                .stagger_ms = x->context->policy->upstream.stagger_ms,
                                                .attempt_ms = x->context->policy->upstream.connect_timeout_ms,
                                                .deadline_ms = x->tally.started_ns / 1000000 +
                                                               x->context->policy->upstream.forward_timeout_ms,
                                                .fn = connect_dialled,
                                                .owner = x});
    return STEP_WAIT;
}

enum step
step_connect(struct exchange *x)
{
    struct dns_answer now;

    if (x->tunnel.dialled)
        return connected(x);
    if (x->tunnel.dial || x->query)
        return STEP_WAIT;
    if (x->context->dst)
        return dial_target(x);
    if (!resolver_ask(x->env->upstream->resolver, x->context->request.uri.host, connect_resolved, x,
                      &now, &x->query))
        return STEP_WAIT;
    x->context->dst = arena_alloc(&x->context->arena, sizeof *x->context->dst);
    *x->context->dst = now;
    return STEP_NEXT;
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
    int fd;

    if (x->tunnel.tunnel || !x->tunnel.upgraded)
        return STEP_WAIT;
    fd = transport_release(&x->tunnel.upgraded->transport);
    conn_close(&x->tunnel.upgraded);
    return open_tunnel(x, fd, switching_head(x), 101);
}
