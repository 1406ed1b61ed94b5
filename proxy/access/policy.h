/* proxy/access/policy.h - one configuration, compiled for use by exchanges. Immutable and counted:
 * a running exchange keeps its own, a reload swaps. */
#ifndef PROXY_ACCESS_POLICY_H
#define PROXY_ACCESS_POLICY_H

#include "base/ref.h"
#include "cache/reuse.h"
#include "http/forwarding.h"
#include "http/h1_parse.h"
#include "proxy/access/acl.h"

struct policy {
    uint32_t magic;
    struct ref refs;
    struct conf *conf; /* owned reference; everything below borrows from it */
    struct acl_set *acls;
    struct acl_list *http_access, *cache, *send_hit, *store_miss;
    struct refresh_set *refresh;
    struct refresh_rule *rules; /* one per conf->refresh, and the default behind them */
    struct span pseudonym;      /* unique_hostname: Via, Cache-Status, Proxy-Status */
    struct span visible_name;   /* visible_hostname: pages */
    struct h1_limits request_limits, response_limits;
    struct reuse_policy reuse;
    enum forwarded_for forwarded_for;
    uint64_t promote_bytes; /* bodies up to it come from the disk into memory */
    bool sendfile;
    uint64_t spool_bytes;      /* larger ones than keep_bytes, up to it, go to the disk alone */
    uint64_t keep_bytes;       /* larger bodies are not kept: the smaller of maximum_object_size and
                                  .._in_memory */
    uint64_t request_body_max; /* 0: no limit */
    bool via, collapse, client_persistent, server_persistent, purge_enabled;
    bool host_strict;   /* a diverted request whose host is elsewhere is refused */
    bool local_ruled;   /* http_access speaks of to_localhost or to_linklocal; else they are for
                           clients of this machine only */
    bool manager_ruled; /* http_access speaks of the acl manager; else our pages are for this
                           machine only */
    int64_t connect_timeout_ms, read_timeout_ms, write_timeout_ms, request_timeout_ms,
        request_start_timeout_ms, lifetime_ms, client_idle_ms, server_idle_ms, tunnel_idle_ms,
        stagger_ms, server_life_ms, forward_timeout_ms;
    unsigned max_tries;
    uint64_t quick_abort_min, quick_abort_max;
    unsigned quick_abort_pct;
    struct range_limit {
        int64_t bytes;              /* -1: none */
        struct acl_cond *condition; /* NULL: always */
    } * range_limits;
    unsigned n_range_limits;
};

struct policy *policy_alloc(void); /* empty; setup fills it in */
void policy_ref(struct policy *p);
unsigned policy_tries(const struct policy *p, unsigned n_addresses); /* forward_max_tries */
void policy_unref(struct policy **held);
/* How far in a range may start for the whole to be fetched; 0: not at all, -1: anywhere. */
int64_t policy_range_offset_limit(const struct policy *p, const struct acl_facts *f);
const struct refresh_rule *policy_refresh_rule(const struct policy *p, struct span url);

#endif
