/* proxy/exchange/context.h - what belongs to a request and travels with it: who asks, for what,
 * under which rules, and where to.
 *
 * Made with the exchange of a client and filled in as the request is admitted and judged; from then
 * on it stays as it is. Whatever works for the request holds a reference and finds all of it there:
 * a validation in the background asks under the policy, the rules' verdicts and the judged
 * addresses of the request that caused it, without a field copied by hand.
 *
 * Belongs to one worker: the count is not atomic. Memory is recycled, the arena's first block
 * included. */
#ifndef PROXY_EXCHANGE_CONTEXT_H
#define PROXY_EXCHANGE_CONTEXT_H

#include "base/arena.h"
#include "base/list.h"
#include "cache/key.h"
#include "dns/answer_cache.h"
#include "http/cache_control.h"
#include "http/h1_frame.h"
#include "http/message.h"
#include "proxy/policy/policy.h"

#define CONTEXT_LENT 2048

struct asker {           /* the client, and the way it came in by */
    uint64_t connection; /* the client's, in this worker; 0: none */
    struct addr peer, local;
    const char *port_name;
    bool intercepts;         /* came in on a port for diverted connections */
    struct addr destination; /* where it was going, with port; AF_UNSPEC: nothing has diverted it */
};

struct context {
    uint32_t magic;
    unsigned refs;
    struct list link; /* while spare */
    struct context_pool *pool;
    struct policy *policy; /* a reference */
    struct asker from;
    struct arena arena; /* everything the spans below lie in */
    struct request_head request;
    struct framed framing; /* of its body */
    struct cache_control cc;
    struct span url; /* canonical target URI */
    struct cache_key key;
    struct acl_facts facts;          /* for the rules */
    const struct refresh_rule *rule; /* of the policy */
    /* What is connected to: judged by the rules, or where the client was going. NULL: no rule has
     * asked for it yet, then it is looked up when needed. */
    struct dns_answer *dst;
    bool host_elsewhere; /* diverted from an address that its host does not have */
    char lent[CONTEXT_LENT];
};

struct context_pool { /* one per worker */
    struct list spare;
    unsigned n_spare;
};

void context_pool_init(struct context_pool *p);
void context_pool_free(struct context_pool *p);
struct context *context_new(struct context_pool *p, struct policy *policy, const struct asker *a);
struct context *context_ref(struct context *c);
void context_unref(struct context **held);
/* Keeps the addresses that were found for the request's host. */
void context_take_dst(struct context *c, const struct dns_answer *a);
/* Without a rule of the operator, what listens on this machine alone, or is link-local, is for
 * clients of this machine. */
bool context_denies_local(const struct context *c);
bool context_was_diverted(const struct context *c);

#endif
