/* The driver: an exchange moves in small steps, and only exchange_resume() runs them. Asked for
 * from inside a step it notes the wish and the driver goes round again, so that no step is nested
 * in another. Memory is recycled per worker, arena block included. */
#include "proxy/exchange/exchange.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "http/status.h"
#include "proxy/exchange/states.h"

#define SPARES 64

/* Without a rule of the operator, what listens on this machine alone is for clients of this
 * machine. */
bool
exchange_denies_local(const struct exchange *x)
{
    return !x->policy->request.local_ruled && !x->background && !addr_is_loopback(&x->client.peer);
}

/* Only compared with marks of this process. */
uint32_t
exchange_client_mark(const struct exchange *x)
{
    char text[ADDR_TEXT_MAX];
    struct cache_key key = cache_key_of(span_of(text, addr_format(&x->client.peer, text)));

    return (uint32_t)key.digest[0] | 1;
}

bool
exchange_is_head(const struct exchange *x)
{
    return x->request.method == METHOD_HEAD;
}

static void
exchange_resume_task(void *owner)
{
    exchange_resume(owner);
}

static struct exchange *
exchange_memory(struct exchange_env *env)
{
    struct exchange *x;

    if (list_empty(&env->spare))
        return mem_alloc(sizeof *x);
    x = LIST_OWNER(env->spare.next, struct exchange, link);
    list_remove(&x->link);
    env->n_spare--;
    return x;
}

struct exchange *
exchange_new(struct exchange_env *env, const struct exchange_client *c)
{
    struct exchange *x = exchange_memory(env);

    memset(x, 0, offsetof(struct exchange, lent));
    x->magic = EXCHANGE_MAGIC;
    x->env = env;
    x->policy = env->policy;
    policy_ref(x->policy);
    if (c)
        x->client = *c;
    x->state = &ADMIT;
    arena_init(&x->arena, x->lent, sizeof x->lent);
    loop_task_init(&x->resume, exchange_resume_task, x);
    list_init(&x->waiter.link);
    x->cc = CACHE_CONTROL_NONE;
    x->server = ADDR_NONE;
    x->times = (struct fill_times){-1, -1, -1};
    x->started_ns = clock_exact_mono_ns(); /* a hit begins and ends within one turn */
    list_push_back(&env->all, &x->link);
    env->n_alive++;
    return x;
}

struct arena *
exchange_arena(struct exchange *x)
{
    return &x->arena;
}

struct request_head *
exchange_request(struct exchange *x)
{
    return &x->request;
}

struct policy *
exchange_policy(struct exchange *x)
{
    return x->policy;
}

void
exchange_drop_store(struct exchange *x)
{
    struct store *s = x->env->store;

    if (x->waited)
        store_wait_cancel(s, &x->waiter);
    x->waited = false;
    if (x->ticket)
        store_abandon(s, &x->ticket, x->fault != FAULT_NONE,
                      NULL); /* a dead origin: the others need not queue */
    if (x->stored)
        entry_unref(&x->stored);
    tier_read_cancel(&x->disk);
    if (x->part)
        entry_unref(&x->part);
    while (x->n_variants)
        entry_unref(&x->variants[--x->n_variants]);
}

static void
exchange_release(struct exchange *x)
{
    struct exchange_env *env = x->env;

    CHECK_OBJ(x, EXCHANGE_MAGIC);
    resolver_cancel(&x->query);
    dial_cancel(&x->dial);
    tunnel_close(&x->tunnel);
    conn_close(&x->upgraded);
    exchange_drop_store(x);
    entry_source_close(&x->out);
    fill_release(&x->fill);
    if (x->entry)
        entry_unref(&x->entry);
    buf_free(&x->early);
    loop_task_cancel(env->loop, &x->resume);
    policy_unref(&x->policy);
    arena_free(&x->arena);
    list_remove(&x->link);
    env->n_alive--;
    x->magic = 0;
    if (env->n_spare < SPARES) {
        list_push_front(&env->spare, &x->link);
        env->n_spare++;
    } else
        mem_free(x);
}

/* Inside a step the driver still looks at the exchange: it is released when the driver is through.
 */
void
exchange_finish(struct exchange *x)
{
    if (x->finished)
        return;
    x->finished = true;
    if (!x->background)
        outcome_log(x);
    fill_release(&x->fill); /* it borrows the request body, which the client frees now */
    x->body = NULL;
    if (!x->running)
        exchange_release(x);
}

void
exchange_resume(struct exchange *x)
{
    enum step r = STEP_NEXT;

    CHECK_OBJ(x, EXCHANGE_MAGIC);
    x->again = true;
    if (x->running)
        return;
    x->running = true;
    while ((r == STEP_NEXT || x->again) && !x->finished) {
        x->again = false;
        r = x->state->step(x);
    }
    x->running = false;
    if (x->finished)
        exchange_release(x);
}

void
exchange_start(struct exchange *x, struct source *body, const struct framed *framing,
               uint64_t bytes_in)
{
    x->body = body;
    x->framing = *framing;
    x->bytes_in = bytes_in;
    exchange_resume(x);
}

void
exchange_refuse(struct exchange *x, enum fault why, const char *detail)
{
    x->fault_detail = detail;
    exchange_fail(x, why, 0);
    exchange_resume(x);
}

enum step
exchange_fail(struct exchange *x, enum fault why, int error)
{
    x->fault = why;
    x->error = error;
    return exchange_next(x, &FAIL);
}

void
exchange_respond(struct exchange *x, const struct outgoing *o)
{
    x->responded = true;
    x->status = o->status;
    x->state = &ANSWERED;
    if (x->client.ops)
        x->client.ops->respond(x->client.responder, o);
    else
        exchange_finish(x);
}

void
exchange_sent(struct exchange *x, uint64_t bytes, uint64_t body_bytes, bool whole)
{
    CHECK_OBJ(x, EXCHANGE_MAGIC);
    x->sent_bytes = bytes;
    x->body_sent = body_bytes;
    x->sent_whole = whole;
    x->aborted = !whole;
    exchange_finish(x);
}

void
exchange_abort(struct exchange *x, bool timed_out, uint64_t bytes)
{
    CHECK_OBJ(x, EXCHANGE_MAGIC);
    x->aborted = true;
    x->timed_out = timed_out;
    x->sent_bytes = bytes;
    x->client.ops = NULL;
    exchange_finish(x);
}

void
exchange_drop(struct exchange *x)
{
    x->finished = true;
    exchange_release(x);
}

const char *
exchange_state_name(const struct exchange *x)
{
    return x->state->name;
}

struct span
exchange_url(const struct exchange *x)
{
    return x->url;
}

int64_t
exchange_started_ms(const struct exchange *x)
{
    return x->started_ns / 1000000;
}

void
exchange_bytes_in(struct exchange *x, uint64_t n_bytes)
{
    x->bytes_in += n_bytes;
}

unsigned
exchange_env_tunnels(const struct exchange_env *env)
{
    unsigned n = 0;

    for (const struct list *l = env->all.next; l != &env->all; l = l->next)
        n += LIST_OWNER(l, struct exchange, link)->tunnel != NULL;
    return n;
}

void
exchange_env_close(struct exchange_env *env)
{
    while (!list_empty(&env->all)) {
        struct exchange *x = LIST_OWNER(env->all.next, struct exchange, link);

        x->aborted = true;
        if (x->tunnel)
            tunnel_bytes(x->tunnel, &x->bytes_in, &x->sent_bytes);
        exchange_finish(x);
    }
    while (!list_empty(&env->spare)) {
        struct exchange *x = LIST_OWNER(env->spare.next, struct exchange, link);

        list_remove(&x->link);
        mem_free(x);
    }
    env->n_spare = 0;
    buf_free(&env->head);
}
