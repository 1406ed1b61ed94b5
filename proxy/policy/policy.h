/* proxy/policy/policy.h - one configuration, compiled for use. Immutable and counted: what runs
 * keeps its own, a reload swaps.
 *
 * In three parts, by who asks: clients' connections, requests, connections to next hops. */
#ifndef PROXY_POLICY_POLICY_H
#define PROXY_POLICY_POLICY_H

#include "base/ref.h"
#include "proxy/policy/client_policy.h"
#include "proxy/policy/request_policy.h"
#include "proxy/policy/upstream_policy.h"

#define POLICY_MAGIC 0x90110137u

struct policy {
    uint32_t magic;
    struct ref refs;
    struct conf *conf;        /* owned reference; everything below borrows from it */
    struct span pseudonym;    /* unique_hostname: Via, Cache-Status, Proxy-Status */
    struct span visible_name; /* visible_hostname: pages */
    struct client_policy client;
    struct request_policy request;
    struct upstream_policy upstream;
};

/* NULL when anything does not compile; errors has why, with file and line. Takes a reference on c.
 */
struct policy *policy_new(struct conf *c, struct buf *errors);
void policy_ref(struct policy *p);
void policy_unref(struct policy **held);
unsigned policy_tries(const struct policy *p, unsigned n_addresses); /* forward_max_tries */
/* How far in a range may start for the whole to be fetched; 0: not at all, -1: anywhere. */
int64_t policy_range_offset_limit(const struct policy *p, const struct acl_facts *f);
/* Of the policy: it lives as long. */
const struct refresh_rule *policy_refresh_rule(const struct policy *p, struct span url);

#endif
