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

    x->bytes_in += up;
    x->sent_bytes = x->body_sent = down;
    x->sent_whole = true;
    x->tunnel = NULL; /* frees itself */
    x->error = error;
    exchange_finish(x);
}

/* head: what the client reads first. Takes the server's descriptor. */
static enum step
open_tunnel(struct exchange *x, int server_fd, struct span head, unsigned status)
{
    struct buf early = {0};
    int client_fd = x->client.ops->steal(x->client.responder, &early);

    x->client.ops = NULL;
    x->status = status;
    x->how = HOW_TUNNEL;
    x->state = &TUNNEL;
    if (client_fd < 0) {
        fds_close(server_fd);
        buf_free(&early);
        x->aborted = true;
        exchange_finish(x);
        return STEP_DONE;
    }
    x->tunnel = tunnel_start(
        x->env->loop, &(struct tunnel_options){.client_fd = client_fd,
                                               .server_fd = server_fd,
                                               .to_server = buf_span(&early),
                                               .to_client = head,
                                               .idle_ms = x->policy->tunnel_idle_ms,
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

    x->dial = NULL;
    x->server = *to;
    x->times.connect_us = (clock_mono_ns() - x->started_ns) / 1000;
    x->dialled = true;
    x->dialled_fd = fd;
    exchange_resume(x);
}

static enum step dial_target(struct exchange *x);

static enum step
connected(struct exchange *x)
{
    x->dialled = false;
    if ((x->dialled_fd == -EMFILE || x->dialled_fd == -ENFILE) && !x->redialled &&
        x->env->upstream->shed(x->env->upstream->owner) > 0) {
        x->redialled = true;
        return dial_target(x);
    }
    if (x->dialled_fd < 0)
        return exchange_fail(x, upstream_connect_fault(x->dialled_fd), -x->dialled_fd);
    return open_tunnel(x, x->dialled_fd, SPAN("HTTP/1.1 200 Connection established\r\n\r\n"), 200);
}

static void
connect_resolved(void *owner, const struct dns_answer *a)
{
    struct exchange *x = owner;

    x->query = NULL;
    x->times.dns_us = (clock_mono_ns() - x->started_ns) / 1000;
    x->dst = arena_alloc(&x->arena, sizeof *x->dst);
    *x->dst = *a;
    exchange_resume(x);
}

static enum step
dial_target(struct exchange *x)
{
    if (x->dst->status != DNS_OK || x->dst->n == 0)
        return exchange_fail(x, upstream_dns_fault(x->dst->status), 0);
    if (exchange_denies_local(x) && upstream_is_local(x->dst->at, x->dst->n))
        return exchange_fail(x, FAULT_ADDRESS_DENIED, 0);
    for (unsigned i = 0; i < x->dst->n; i++)
        if (upstream_is_self(x->env->upstream, &x->dst->at[i], x->request.uri.port))
            return exchange_fail(x, FAULT_LOOP, 0);
    x->asked_server = true;
    x->how = HOW_TUNNEL;
    x->dial = dial_start(x->env->loop,
                         &(struct dial_options){.to = x->dst->at,
                                                .n = policy_tries(x->policy, x->dst->n),
                                                .port = x->request.uri.port,
                                                .stagger_ms = x->policy->stagger_ms,
                                                .attempt_ms = x->policy->connect_timeout_ms,
                                                .deadline_ms = x->started_ns / 1000000 +
                                                               x->policy->forward_timeout_ms,
                                                .fn = connect_dialled,
                                                .owner = x});
    return STEP_WAIT;
}

static enum step
step_connect(struct exchange *x)
{
    struct dns_answer now;

    if (x->dialled)
        return connected(x);
    if (x->dial || x->query)
        return STEP_WAIT;
    if (x->dst)
        return dial_target(x);
    if (!resolver_ask(x->env->upstream->resolver, x->request.uri.host, connect_resolved, x, &now,
                      &x->query))
        return STEP_WAIT;
    x->dst = arena_alloc(&x->arena, sizeof *x->dst);
    *x->dst = now;
    return STEP_NEXT;
}

/* The origin's 101 goes out with its own fields; from then on the bytes are not HTTP. */
static struct span
switching_head(struct exchange *x)
{
    struct buf b = {0};
    struct fields f = x->response->fields;
    struct span protocols = fields_join(&f, &x->arena, FIELD_UPGRADE), out;

    forwarding_clean(&f);
    h1_write_status_line(&b, 101, SPAN("Switching Protocols"));
    h1_write_fields(&b, &f);
    h1_write_field(&b, SPAN("Upgrade"), protocols);
    BUF_ADD(&b, "Connection: Upgrade\r\n\r\n");
    buf_add(&b, buf_span(&x->early));
    out = arena_copy(&x->arena, buf_span(&b));
    buf_free(&b);
    return out;
}

static enum step
step_tunnel(struct exchange *x)
{
    int fd;

    if (x->tunnel || !x->upgraded)
        return STEP_WAIT;
    fd = transport_release(&x->upgraded->transport);
    conn_close(&x->upgraded);
    return open_tunnel(x, fd, switching_head(x), 101);
}

const struct exchange_state CONNECT = {"connecting", step_connect};
const struct exchange_state TUNNEL = {"tunnelling", step_tunnel};
