/* proxy/upstream/route.h - from a name to a connection: addresses, rules about them, an idle
 * connection or the race of dial.
 *
 * The one way there, for fetches and for CONNECT. Where parents and siblings are to come, a route
 * has more than one next hop to try; whoever wants to know which was taken looks at the
 * connection's hop.
 *
 * A route lives inside its owner. It ends by found or failed, once; either may come from inside
 * route_start and route_again. */
#ifndef PROXY_UPSTREAM_ROUTE_H
#define PROXY_UPSTREAM_ROUTE_H

#include "dns/resolver.h"
#include "http/fault.h"
#include "proxy/policy/upstream_policy.h"
#include "proxy/upstream/idle.h"

struct upstream;

struct route_order {
    const struct upstream_policy *policy; /* outlives the route */
    struct span host;                     /* so do its bytes */
    uint16_t port;
    const struct addr *judged; /* the only ones it may go to (copied); NULL: those the name has */
    unsigned n_judged;
    bool deny_local;     /* not to this machine's own or link-local addresses */
    bool reuse;          /* an idle connection will do */
    uint64_t connection; /* the client's: those bound to it come first; 0: there is none */
    int64_t deadline_ms; /* of clock_mono_ms */
    void (*found)(void *owner, struct conn *c, bool reused); /* c is the owner's now */
    void (*failed)(void *owner, enum fault why, int error);  /* error: errno, or 0 */
    void *owner;
};

struct route {
    struct upstream *up; /* NULL: not started */
    struct route_order o;
    struct dns_query *query;
    struct dial *dial;
    struct dns_answer *answer; /* they may be needed again */
    struct addr server;        /* connected to, or tried last; AF_UNSPEC: none */
    bool made_room;            /* once is enough */
    int64_t dialled_ns;
    int64_t dns_us, connect_us; /* -1: did not happen */
};

enum fault upstream_dns_fault(enum dns_status s);
void route_start(struct route *r, struct upstream *up, const struct route_order *o);
void route_again(struct route *r); /* a new connection, to the same addresses */
void route_close(struct route *r); /* nothing comes after this; closing twice is fine */

#endif
