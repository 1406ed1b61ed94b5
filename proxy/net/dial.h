/* proxy/net/dial.h - a connection to the first of several addresses that answers (RFC 8305 section
 * 5).
 *
 * Attempts start in order, the next one stagger_ms after the last or as soon as one fails; the
 * first to connect wins and the others are closed. Each has attempt_ms to come about, and all of
 * them together have until deadline_ms. The callback comes once, from the loop. */
#ifndef PROXY_NET_DIAL_H
#define PROXY_NET_DIAL_H

#include "base/addr.h"
#include "proxy/net/transport.h"

#define DIAL_ADDRESSES 32

struct dial;
/* t: connected, TCP_NODELAY, counted as server active, to be taken before returning; `to` says
 * where. NULL: error is -errno of the last failure, -ETIMEDOUT when time ran out. */
typedef void dial_fn(void *owner, struct transport *t, int error, const struct addr *to);

struct dial_options {
    const struct addr *to; /* copied */
    unsigned n;
    uint16_t port;
    int64_t stagger_ms;  /* 250 as a rule */
    int64_t attempt_ms;  /* connect_timeout */
    int64_t deadline_ms; /* of clock_mono_ms */
    dial_fn *fn;
    void *owner;
};

struct dial *dial_start(struct loop *l, const struct dial_options *o);
void dial_cancel(struct dial **d); /* no callback after this; NULL is fine */

#endif
