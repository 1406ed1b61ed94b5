/* proxy/policy/request_policy.h - what judging and answering a request needs of a configuration:
 * who may, what is stored, what is sent on.
 *
 * The lists and rules are owned by the policy that this is a part of. */
#ifndef PROXY_POLICY_REQUEST_POLICY_H
#define PROXY_POLICY_REQUEST_POLICY_H

#include "cache/reuse.h"
#include "http/forwarding.h"
#include "proxy/access/acl.h"

struct range_limit {
    int64_t bytes;              /* -1: none */
    struct acl_cond *condition; /* NULL: always */
};

struct request_policy {
    struct acl_set *acls;
    struct acl_list *http_access, *cache, *send_hit, *store_miss;
    struct refresh_set *refresh;
    struct refresh_rule *rules; /* one per refresh_pattern, and the default behind them */
    struct reuse_policy reuse;
    enum forwarded_for forwarded_for;
    uint64_t promote_bytes;  /* bodies up to it come from the disk into memory */
    uint64_t keep_bytes;     /* larger bodies are not kept in memory: the smaller of
                                maximum_object_size and .._in_memory */
    uint64_t spool_bytes;    /* larger ones than keep_bytes, up to it, go to the disk alone */
    int64_t minimum_bytes;   /* smaller bodies are not stored */
    const char *cache_mgr;   /* whom people may ask, named on error pages */
    uint64_t body_max_bytes; /* of the request; 0: no limit */
    bool sendfile, via, collapse, purge_enabled;
    bool host_strict;   /* a diverted request whose host is elsewhere is refused */
    bool local_ruled;   /* http_access speaks of to_localhost or to_linklocal; else they are for
                           clients of this machine only */
    bool manager_ruled; /* http_access speaks of the acl manager; else our pages are for this
                           machine only */
    int64_t tunnel_idle_ms;
    struct range_limit *range_limits;
    unsigned n_range_limits;
};

#endif
