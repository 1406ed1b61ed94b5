/* A policy is made by setup and only counted and asked here. */
#include "proxy/access/policy.h"

#include "base/check.h"

#define POLICY_MAGIC 0x90110137u

void
policy_ref(struct policy *p)
{
    CHECK_OBJ(p, POLICY_MAGIC);
    ref_take(&p->refs);
}

void
policy_unref(struct policy **held)
{
    struct policy *p = *held;

    *held = NULL;
    if (!p)
        return;
    CHECK_OBJ(p, POLICY_MAGIC);
    if (ref_drop(&p->refs) > 0)
        return;
    acl_list_free(&p->http_access);
    acl_list_free(&p->cache);
    acl_list_free(&p->send_hit);
    acl_list_free(&p->store_miss);
    for (unsigned i = 0; i < p->n_range_limits; i++)
        if (p->range_limits[i].condition)
            acl_cond_free(&p->range_limits[i].condition);
    mem_free(p->range_limits);
    acl_set_free(&p->acls);
    refresh_set_free(&p->refresh);
    mem_free(p->rules);
    mem_free((char *)p->pseudonym.at);
    mem_free((char *)p->visible_name.at);
    conf_unref(&p->conf);
    FREE_OBJ(p);
}

struct policy *
policy_alloc(void)
{
    struct policy *p = mem_zalloc(sizeof *p);

    p->magic = POLICY_MAGIC;
    ref_init(&p->refs);
    return p;
}

int64_t
policy_range_offset_limit(const struct policy *p, const struct acl_facts *f)
{
    for (unsigned i = 0; i < p->n_range_limits; i++)
        if (!p->range_limits[i].condition || acl_cond_holds(p->range_limits[i].condition, f))
            return p->range_limits[i].bytes;
    return 0;
}

const struct refresh_rule *
policy_refresh_rule(const struct policy *p, struct span url)
{
    int i = refresh_set_match(p->refresh, url);

    return i < 0 ? &p->rules[p->conf->n_refresh] : &p->rules[i];
}

unsigned
policy_tries(const struct policy *p, unsigned n_addresses)
{
    return n_addresses < p->max_tries ? n_addresses : p->max_tries;
}
