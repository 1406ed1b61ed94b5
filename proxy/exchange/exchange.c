/* The driver: an exchange moves in small steps, and only exchange_resume() runs them. Asked for
 * from inside a step it notes the wish and the driver goes round again, so that no step is nested
 * in another. Memory is recycled per worker. */
#include "proxy/exchange/exchange.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "http/status.h"
#include "proxy/exchange/states.h"

#define SPARES 64

bool
exchange_is_head(const struct exchange *x)
{
    return x->context->request.method == METHOD_HEAD;
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

/* Takes the context over. */
static struct exchange *
exchange_in(struct exchange_env *env, struct context *c)
{
    struct exchange *x = exchange_memory(env);

    memset(x, 0, sizeof *x);
    x->magic = EXCHANGE_MAGIC;
    x->env = env;
    x->context = c;
    loop_task_init(&x->resume, exchange_resume_task, x);
    list_init(&x->look.waiter.link);
    x->hop.server = ADDR_NONE;
    x->hop.took = (struct fill_times){-1, -1, -1};
    x->tally.started_ns = clock_exact_mono_ns(); /* a hit begins and ends within one turn */
    list_push_back(&env->all, &x->link);
    env->n_alive++;
    return x;
}

struct exchange *
exchange_new(struct exchange_env *env, const struct exchange_client *c, const struct asker *from)
{
    struct exchange *x = exchange_in(env, context_new(&env->contexts, env->policy, from));

    x->client = *c;
    return x;
}

struct exchange *
exchange_new_in_background(struct exchange *x)
{
    struct exchange *y = exchange_in(x->env, context_ref(x->context));

    y->cause = CAUSE_BACKGROUND;
    return y;
}

struct arena *
exchange_arena(struct exchange *x)
{
    return &x->context->arena;
}

struct request_head *
exchange_request(struct exchange *x)
{
    return &x->context->request;
}

struct policy *
exchange_policy(struct exchange *x)
{
    return x->context->policy;
}

void
exchange_hide_credentials(struct exchange *x)
{
    struct context *c = x->context;
    const enum field_id id = FIELD_PROXY_AUTHORIZATION;

    for (const struct field *f = fields_find(&c->request.fields, id); f;
         f = fields_next(&c->request.fields, id, f))
        fields_add_id(&c->facts.proxy_authorization, &c->arena, id, f->value);
    fields_remove(&c->request.fields, id);
}

void
exchange_drop_store(struct exchange *x)
{
    struct store *s = x->env->store;

    if (x->look.sharing == SHARING_WAITS) {
        store_wait_cancel(s, &x->look.waiter);
        x->look.sharing = SHARING_NOT;
    }
    if (x->look.ticket)
        store_abandon(s, &x->look.ticket, /* a dead origin: the others need not queue */
                      x->answer.fault != FAULT_NONE ? SHARE_NONE : SHARE_ALL);
    if (x->look.stored)
        entry_unref(&x->look.stored);
    tier_read_cancel(&x->look.disk);
    if (x->look.part)
        entry_unref(&x->look.part);
    exchange_drop_variants(x);
}

void
exchange_drop_variants(struct exchange *x)
{
    while (x->hop.n_variants)
        entry_unref(&x->hop.variants[--x->hop.n_variants]);
    if (x->hop.conditions == CONDITIONS_OURS)
        x->hop.conditions = CONDITIONS_NONE;
}

static void
exchange_release(struct exchange *x)
{
    struct exchange_env *env = x->env;

    CHECK_OBJ(x, EXCHANGE_MAGIC);
    resolver_cancel(&x->query);
    route_close(&x->tunnel.route);
    tunnel_close(&x->tunnel.tunnel);
    conn_close(&x->tunnel.server);
    exchange_drop_store(x);
    entry_source_close(&x->answer.out);
    fill_release(&x->hop.fill);
    if (x->answer.entry)
        entry_unref(&x->answer.entry);
    buf_free(&x->tunnel.early);
    loop_task_cancel(env->loop, &x->resume);
    if (x->patience.loop)
        loop_timer_close(&x->patience);
    context_unref(&x->context);
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
    if (x->life == LIFE_FINISHED)
        return;
    x->life = LIFE_FINISHED;
    if (x->cause == CAUSE_CLIENT)
        outcome_log(x);
    rest_end(x);
    fill_release(&x->hop.fill); /* it borrows the request body, which the client frees now */
    x->body = NULL;
    if (x->drive == DRIVE_STILL)
        exchange_release(x);
}

/* ---- the driver ---- */

static const struct {
    const char *name;
    enum step (*step)(struct exchange *x);
    uint32_t may_follow; /* a bit for each state */
} STATE_TABLE[STATES] = {
#define MAY(id) (1u << (id))
#define STATE(id, name, function, may_follow) {name, function, may_follow},
#include "proxy/exchange/states.def"
#undef STATE
#undef MAY
};

const char *
state_name(enum exchange_state s)
{
    return STATE_TABLE[s].name;
}

enum step
exchange_next(struct exchange *x, enum exchange_state s)
{
    CHECK(STATE_TABLE[x->state].may_follow & (1u << s));
    x->state = s;
    return STEP_NEXT;
}

void
exchange_resume(struct exchange *x)
{
    enum step r = STEP_NEXT;

    CHECK_OBJ(x, EXCHANGE_MAGIC);
    if (x->drive != DRIVE_STILL) {
        x->drive = DRIVE_AGAIN;
        return;
    }
    x->drive = DRIVE_AGAIN;
    while ((r == STEP_NEXT || x->drive == DRIVE_AGAIN) && x->life != LIFE_FINISHED) {
        x->drive = DRIVE_RUNNING;
        r = STATE_TABLE[x->state].step(x);
    }
    x->drive = DRIVE_STILL;
    if (x->life == LIFE_FINISHED)
        exchange_release(x);
}

void
exchange_wait_at_most(struct exchange *x, int64_t ms, loop_fn *give_up)
{
    if (!x->patience.loop)
        loop_timer_init(&x->patience, x->env->loop, give_up, x);
    x->patience.fn = give_up;
    loop_timer_set(&x->patience, ms);
}

void
exchange_start(struct exchange *x, struct source *body, const struct framed *framing,
               uint64_t bytes_in)
{
    x->body = body;
    x->context->framing = *framing;
    x->tally.bytes_in = bytes_in;
    exchange_resume(x);
}

void
exchange_refuse(struct exchange *x, enum fault why, const char *detail)
{
    x->answer.fault_detail = detail;
    exchange_fail(x, why, 0);
    exchange_resume(x);
}

enum step
exchange_fail(struct exchange *x, enum fault why, int error)
{
    x->answer.fault = why;
    x->answer.error = error;
    x->answer.failed_in = x->state;
    return exchange_next(x, FAIL);
}

void
exchange_respond(struct exchange *x, const struct outgoing *o)
{
    x->life = LIFE_RESPONDED;
    x->answer.status = o->status;
    (void)exchange_next(x, ANSWERED);
    if (x->client.ops)
        x->client.ops->respond(x->client.responder, o);
    else
        exchange_finish(x);
}

void
exchange_sent(struct exchange *x, uint64_t bytes, uint64_t body_bytes, bool whole)
{
    CHECK_OBJ(x, EXCHANGE_MAGIC);
    x->tally.sent_bytes = bytes;
    x->tally.body_sent = body_bytes;
    x->tally.ending = whole ? ENDING_WHOLE : ENDING_ABORTED;
    exchange_finish(x);
}

void
exchange_abort(struct exchange *x, bool timed_out, uint64_t bytes)
{
    CHECK_OBJ(x, EXCHANGE_MAGIC);
    x->tally.ending = timed_out ? ENDING_TIMED_OUT : ENDING_ABORTED;
    x->tally.sent_bytes = bytes;
    x->client.ops = NULL;
    exchange_finish(x);
}

void
exchange_drop(struct exchange *x)
{
    x->life = LIFE_FINISHED;
    exchange_release(x);
}

const char *
exchange_state_name(const struct exchange *x)
{
    return state_name(x->state);
}

struct span
exchange_url(const struct exchange *x)
{
    return x->context->url;
}

int64_t
exchange_started_ms(const struct exchange *x)
{
    return x->tally.started_ns / 1000000;
}

void
exchange_bytes_in(struct exchange *x, uint64_t n_bytes)
{
    x->tally.bytes_in += n_bytes;
}

unsigned
exchange_env_tunnels(const struct exchange_env *env)
{
    unsigned n = 0;

    for (const struct list *l = env->all.next; l != &env->all; l = l->next)
        n += LIST_OWNER(l, struct exchange, link)->tunnel.tunnel != NULL;
    return n;
}

void
exchange_env_close(struct exchange_env *env)
{
    while (!list_empty(&env->all)) {
        struct exchange *x = LIST_OWNER(env->all.next, struct exchange, link);

        x->tally.ending = ENDING_ABORTED;
        if (x->tunnel.tunnel)
            tunnel_bytes(x->tunnel.tunnel, &x->tally.bytes_in, &x->tally.sent_bytes);
        exchange_finish(x);
    }
    while (!list_empty(&env->spare)) {
        struct exchange *x = LIST_OWNER(env->spare.next, struct exchange, link);

        list_remove(&x->link);
        mem_free(x);
    }
    env->n_spare = 0;
    context_pool_free(&env->contexts);
    buf_free(&env->head);
}
