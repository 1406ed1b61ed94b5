/* From plain data to a policy: what can be wrong is found here, before anything runs. */
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "conf/conf.h"
#include "proxy/policy/policy.h"

static struct refresh_rule
rule_of(const struct conf_refresh *r)
{
    return (struct refresh_rule){
        .min_s = r->min_s,
        .max_s = r->max_s,
        .percent = r->percent,
        .max_stale_s = r->max_stale_s,
        .override_expire = r->override_expire,
        .override_lastmod = r->override_lastmod,
        .reload_into_ims = r->reload_into_ims,
        .ignore_reload = r->ignore_reload,
        .ignore_no_store = r->ignore_no_store,
        .ignore_private = r->ignore_private,
        .ignore_auth = r->ignore_auth,
        .ignore_must_revalidate = r->ignore_must_revalidate,
        .store_stale = r->store_stale,
        .refresh_ims = r->refresh_ims,
    };
}

static void
policy_rules(struct policy *p, const struct conf *c)
{
    p->request.rules = mem_zalloc((c->n_refresh + 1) * sizeof *p->request.rules);
    for (unsigned i = 0; i < c->n_refresh; i++)
        p->request.rules[i] = rule_of(&c->refresh[i]);
    p->request.rules[c->n_refresh] = REFRESH_RULE_DEFAULT;
    for (unsigned i = 0; i <= c->n_refresh; i++)
        p->request.rules[i].negative_s = c->negative_ttl_ms / 1000;
}

/* The name that is given, or the machine's. */
static struct span
name_of(const char *given)
{
    char host[256] = "localhost";

    if (given)
        return span_str(mem_strdup(given));
    (void)gethostname(host, sizeof host - 1);
    return span_str(mem_strdup(host));
}

/* PURGE is refused unless the configuration speaks of it by name, as in Squid. */
static bool
speaks_of_purge(const struct conf *c)
{
    for (unsigned i = 0; i < c->n_acls; i++)
        for (unsigned k = 0; strcmp(c->acls[i].type, "method") == 0 && k < c->acls[i].n_values; k++)
            if (strcmp(c->acls[i].values[k], "PURGE") == 0)
                return true;
    return false;
}

static bool
rules_name(const struct conf_rules *rules, const char *acl)
{
    for (unsigned i = 0; i < rules->n; i++)
        for (unsigned k = 0; k < rules->at[i].n; k++)
            if (strcmp(rules->at[i].terms[k].acl, acl) == 0)
                return true;
    return false;
}

/* What the page cache has is sent from there; only small bodies are cheaper from our own memory. */
static uint64_t
promoted(const struct conf *c, uint64_t keep)
{
    uint64_t most = (uint64_t)c->maximum_object_size_in_memory;

    return most < keep ? most : keep;
}

static void
policy_sizes(struct policy *p, const struct conf *c)
{
    int64_t keep = c->maximum_object_size_in_memory;

    if (c->n_cache_dirs && keep < c->cache_mem / 8) /* it is in memory on its way to the disk */
        keep = c->cache_mem / 8;
    if (keep > c->maximum_object_size)
        keep = c->maximum_object_size;
    p->request.keep_bytes = c->memory_cache_off ? 0 : (uint64_t)keep;
    p->request.promote_bytes = promoted(c, p->request.keep_bytes);
    p->request.spool_bytes = c->n_cache_dirs ? (uint64_t)c->maximum_object_size : 0;
    p->request.minimum_bytes = c->minimum_object_size;
    p->request.sendfile = c->sendfile;
    p->client.head_limits = (struct h1_limits){(size_t)c->request_header_max_size, 32768, 1000};
    p->upstream.head_limits = (struct h1_limits){(size_t)c->reply_header_max_size, 32768, 1000};
    p->request.body_max_bytes = (uint64_t)c->request_body_max_size;
    p->upstream.quick_abort_min =
        c->quick_abort_min < 0 ? UINT64_MAX : (uint64_t)c->quick_abort_min;
    p->upstream.quick_abort_max =
        c->quick_abort_max < 0 ? UINT64_MAX : (uint64_t)c->quick_abort_max;
    p->upstream.quick_abort_pct = (unsigned)c->quick_abort_pct;
}

static void
policy_times(struct policy *p, const struct conf *c)
{
    p->upstream.connect_timeout_ms = c->connect_timeout_ms;
    p->upstream.forward_timeout_ms = c->forward_timeout_ms;
    p->upstream.stagger_ms = c->happy_eyeballs_connect_timeout_ms;
    p->upstream.life_ms = c->pconn_lifetime_ms;
    p->upstream.read_timeout_ms = c->read_timeout_ms;
    p->client.write_timeout_ms = c->write_timeout_ms;
    p->client.request_timeout_ms = c->request_timeout_ms;
    p->client.request_start_timeout_ms = c->request_start_timeout_ms;
    p->client.lifetime_ms = c->client_lifetime_ms;
    p->client.idle_ms = c->client_idle_pconn_timeout_ms;
    p->upstream.idle_ms = c->server_idle_pconn_timeout_ms;
    p->request.tunnel_idle_ms = c->tunnel_idle_timeout_ms;
}

static void
policy_plain(struct policy *p, const struct conf *c)
{
    p->pseudonym = name_of(c->unique_hostname ? c->unique_hostname : c->visible_hostname);
    p->visible_name = name_of(c->visible_hostname);
    p->request.reuse =
        (struct reuse_policy){c->offline_mode, c->reload_into_ims, c->max_stale_ms / 1000};
    p->request.cache_mgr = c->cache_mgr;
    p->request.forwarded_for = (enum forwarded_for)c->forwarded_for;
    p->request.via = c->via;
    p->request.collapse = c->collapsed_forwarding;
    p->request.host_strict = c->host_verify_strict;
    p->client.persistent = c->client_persistent_connections;
    p->upstream.persistent = c->server_persistent_connections;
    p->request.purge_enabled = speaks_of_purge(c);
    p->request.manager_ruled = rules_name(&c->http_access, "manager");
    p->request.local_ruled =
        rules_name(&c->http_access, "to_localhost") || rules_name(&c->http_access, "to_linklocal");
    p->upstream.max_tries = (unsigned)c->forward_max_tries;
    policy_sizes(p, c);
    policy_times(p, c);
}

static unsigned
policy_range_limits(struct policy *p, const struct conf *c, struct buf *errors)
{
    unsigned bad = 0;

    p->request.range_limits = mem_zalloc((c->n_range_limits + 1) * sizeof *p->request.range_limits);
    p->request.n_range_limits = c->n_range_limits;
    for (unsigned i = 0; i < c->n_range_limits; i++) {
        p->request.range_limits[i].bytes = c->range_limits[i].bytes;
        if (c->range_limits[i].condition.n)
            bad +=
                acl_cond_new(p->request.acls, &c->range_limits[i].condition, "range_offset_limit",
                             errors, &p->request.range_limits[i].condition);
    }
    return bad;
}

struct policy *
policy_new(struct conf *c, struct buf *errors)
{
    struct policy *p = mem_zalloc(sizeof *p);
    unsigned bad = 0;

    p->magic = POLICY_MAGIC;
    ref_init(&p->refs);
    conf_ref(c);
    p->conf = c;
    policy_plain(p, c);
    policy_rules(p, c);
    bad += acl_set_new(c, errors, &p->request.acls);
    bad += refresh_set_new(c, errors, &p->request.refresh);
    if (!bad) {
        bad += acl_list_new(p->request.acls, &c->http_access, "http_access", false, errors,
                            &p->request.http_access);
        bad += acl_list_new(p->request.acls, &c->cache, "cache", true, errors, &p->request.cache);
        bad += acl_list_new(p->request.acls, &c->send_hit, "send_hit", true, errors,
                            &p->request.send_hit);
        bad += acl_list_new(p->request.acls, &c->store_miss, "store_miss", true, errors,
                            &p->request.store_miss);
        bad += policy_range_limits(p, c, errors);
    }
    if (bad)
        policy_unref(&p);
    return p;
}
