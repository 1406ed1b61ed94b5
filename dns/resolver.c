/* dns/resolver.c - the front door: what needs no question is answered here, the rest is a query
 * (queries.c) under the setting of the day (setting.c). */
#include "base/check.h"
#include "base/counters.h"
#include "dns/resolver_private.h"

#define RESOLVER_MAGIC 0xd2501e01u

enum { LITERAL_TTL_S = 86400 };

/* ---- life ---- */

struct resolver *
resolver_new(struct loop *loop, struct answer_cache *shared, const struct resolver_options *o)
{
    struct resolver *r = mem_zalloc(sizeof(*r));

    r->magic = RESOLVER_MAGIC;
    r->loop = loop;
    r->cache = shared;
    list_init(&r->retired);
    list_init(&r->due);
    list_init(&r->lingering);
    for (unsigned i = 0; i < LOOKUP_BUCKETS; i++)
        list_init(&r->buckets[i]);
    loop_task_init(&r->task, queries_tell, r);
    r->setting = setting_new(loop, o, &r->local_failures);
    return r;
}

/* The old setting goes when all who asked under it have been told: in a task, for this may come
 * from inside an asker's callback. */
void
resolver_reconfigure(struct resolver *r, const struct resolver_options *o)
{
    CHECK_OBJ(r, RESOLVER_MAGIC);
    queries_detach(r);
    list_push_back(&r->retired, &r->setting->link);
    r->setting = setting_new(r->loop, o, &r->local_failures);
    loop_defer(r->loop, &r->task);
}

void
resolver_free(struct resolver **held)
{
    struct resolver *r = *held;

    *held = NULL;
    if (r == NULL)
        return;
    CHECK_OBJ(r, RESOLVER_MAGIC);
    while (!list_empty(&r->retired)) {
        struct setting *s = LIST_OWNER(r->retired.next, struct setting, link);

        setting_free(&s);
    }
    setting_free(&r->setting);
    queries_end(r);
    loop_task_cancel(r->loop, &r->task);
    FREE_OBJ(r);
}

/* ---- the front door ---- */

static bool
literal_answer(struct span host, struct dns_answer *now)
{
    if (host.n > 2 && host.at[0] == '[' && host.at[host.n - 1] == ']')
        host = span_of(host.at + 1, host.n - 2);
    if (!addr_parse(host, &now->at[0]))
        return false;
    now->status = DNS_OK;
    now->n = 1;
    now->ttl_s = LITERAL_TTL_S;
    now->from_cache = true;
    return true;
}

static void
bad_name_answer(struct dns_answer *now)
{
    now->status = DNS_BAD_NAME;
    now->n = 0;
    now->ttl_s = 0;
    now->from_cache = false;
    counter_add(COUNTER_DNS_FAILURES, 1);
}

bool
resolver_ask(struct resolver *r, struct span host, dns_fn *fn, void *owner, struct dns_answer *now,
             struct dns_query **q)
{
    struct dns_name name;

    CHECK_OBJ(r, RESOLVER_MAGIC);
    *q = NULL;
    if (literal_answer(host, now))
        return true;
    if (!name_read(host, &name)) {
        bad_name_answer(now);
        return true;
    }
    if (answer_cache_find(r->cache, &name, now)) {
        counter_add(COUNTER_DNS_HITS, 1);
        return true;
    }
    *q = query_join(r, &name, fn, owner);
    return false;
}

/* The lookup goes on: its answer is of use to the cache, and perhaps to the next asker. */
void
resolver_cancel(struct dns_query **held)
{
    if (*held)
        dns_query_free(held);
}

void
resolver_prefer(struct resolver *r, struct span host, const struct addr *worked)
{
    struct dns_name name;

    if (name_read(host, &name))
        answer_cache_prefer(r->cache, &name, worked);
}

const char *
resolver_status_text(enum dns_status s)
{
    switch (s) {
    case DNS_OK:
        return "found";
    case DNS_NO_NAME:
        return "no such name, or no address for it";
    case DNS_FAILED:
        return "the name server could not answer";
    case DNS_TIMEOUT:
        return "no name server answered in time";
    case DNS_BAD_NAME:
        return "not a valid host name";
    }
    return "unknown";
}
