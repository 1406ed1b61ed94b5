/* A context's life, and the few questions that need no more than it. */
#include "proxy/exchange/context.h"

#include <stddef.h>
#include <string.h>

#include "base/check.h"

#define CONTEXT_MAGIC 0xc047e874u
#define SPARES 64

void
context_pool_init(struct context_pool *p)
{
    list_init(&p->spare);
    p->n_spare = 0;
}

static struct context *
take_spare(struct context_pool *p)
{
    struct context *c = LIST_OWNER(p->spare.next, struct context, link);

    list_remove(&c->link);
    p->n_spare--;
    return c;
}

void
context_pool_free(struct context_pool *p)
{
    while (!list_empty(&p->spare))
        mem_free(take_spare(p));
}

struct context *
context_new(struct context_pool *p, struct policy *policy, const struct asker *a)
{
    struct context *c = list_empty(&p->spare) ? mem_alloc(sizeof(struct context)) : take_spare(p);

    memset(c, 0, offsetof(struct context, lent));
    c->magic = CONTEXT_MAGIC;
    c->refs = 1;
    c->pool = p;
    c->policy = policy;
    policy_ref(policy);
    c->from = *a;
    c->cc = CACHE_CONTROL_NONE;
    arena_init(&c->arena, c->lent, sizeof c->lent);
    return c;
}

struct context *
context_ref(struct context *c)
{
    CHECK_OBJ(c, CONTEXT_MAGIC);
    c->refs++;
    return c;
}

void
context_unref(struct context **held)
{
    struct context *c = *held;

    CHECK_OBJ(c, CONTEXT_MAGIC);
    *held = NULL;
    if (--c->refs > 0)
        return;
    policy_unref(&c->policy);
    arena_free(&c->arena);
    c->magic = 0;
    if (c->pool->n_spare == SPARES) {
        mem_free(c);
        return;
    }
    list_push_front(&c->pool->spare, &c->link);
    c->pool->n_spare++;
}

void
context_take_dst(struct context *c, const struct dns_answer *a)
{
    c->dst = arena_alloc(&c->arena, sizeof *c->dst);
    *c->dst = *a;
}

bool
context_denies_local(const struct context *c)
{
    return !c->policy->request.local_ruled && !addr_is_loopback(&c->from.peer);
}

bool
context_was_diverted(const struct context *c)
{
    return c->from.destination.sa.sa_family != AF_UNSPEC;
}
