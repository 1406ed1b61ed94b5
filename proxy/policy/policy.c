/* Counting a policy, and asking it. */
#include "proxy/policy/policy.h"

#include "base/check.h"

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
    acl_list_free(&p->request.http_access);
    acl_list_free(&p->request.cache);
    acl_list_free(&p->request.send_hit);
    acl_list_free(&p->request.store_miss);
    for (unsigned i = 0; i < p->request.n_range_limits; i++)
        if (p->request.range_limits[i].condition)
            acl_cond_free(&p->request.range_limits[i].condition);
    mem_free(p->request.range_limits);
    acl_set_free(&p->request.acls);
    refresh_set_free(&p->request.refresh);
    mem_free(p->request.rules);
    mem_free((char *)p->pseudonym.at);
    mem_free((char *)p->visible_name.at);
    conf_unref(&p->conf);
    FREE_OBJ(p);
}

int64_t
policy_range_offset_limit(const struct policy *p, const struct acl_facts *f)
{
    for (unsigned i = 0; i < p->request.n_range_limits; i++)
        if (!p->request.range_limits[i].condition ||
            acl_cond_holds(p->request.range_limits[i].condition, f))
            return p->request.range_limits[i].bytes;
    return 0;
}

const struct refresh_rule *
policy_refresh_rule(const struct policy *p, struct span url)
{
    int i = refresh_set_match(p->request.refresh, url);

    return i < 0 ? &p->request.rules[p->conf->n_refresh] : &p->request.rules[i];
}

unsigned
policy_tries(const struct policy *p, unsigned n_addresses)
{
    return n_addresses < p->upstream.max_tries ? n_addresses : p->upstream.max_tries;
}
