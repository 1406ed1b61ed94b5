/* proxy/upstream/hop.h - the next hop of a request: what is connected to, and what an idle
 * connection is found by.
 *
 * Whatever tells two connections apart belongs in here: a TLS connection's server name and how it
 * was verified, the parent that it leads to. */
#ifndef PROXY_UPSTREAM_HOP_H
#define PROXY_UPSTREAM_HOP_H

#include "base/addr.h"

struct hop {
    struct addr at; /* with port */
    /* The client connection that alone may use it, because somebody's log-in passed over it and
     * the origin takes whatever comes next for his (NTLM, Negotiate); 0: anybody's. */
    uint64_t bound_to;
};

static inline bool
hop_is_same(const struct hop *a, const struct hop *b)
{
    return a->bound_to == b->bound_to && addr_port(&a->at) == addr_port(&b->at) &&
           addr_compare(&a->at, &b->at) == 0;
}

#endif
