/* proxy/net/dial.h - a connection to the first of several addresses that answers (RFC 8305 section
 * 5).
 *
 * Attempts start in order, the next one stagger_ms (250 as a rule) after the last or as soon as it
 * fails; the first to connect wins and the others are closed. The callback comes once, from the
 * loop. */
#ifndef PROXY_NET_DIAL_H
#define PROXY_NET_DIAL_H

#include "base/addr.h"
#include "base/loop.h"

#define DIAL_ADDRESSES 32

struct dial;
/* fd >= 0: connected, non-blocking, TCP_NODELAY, counted as server active; `to` says where. fd < 0:
 * -errno of the last failure, -ETIMEDOUT when time ran out. */
typedef void dial_fn(void *owner, int fd, const struct addr *to);

struct dial *dial_start(struct loop *l, const struct addr *to, unsigned n, uint16_t port,
                        int64_t timeout_ms, int64_t stagger_ms, dial_fn *fn, void *owner);
void dial_cancel(struct dial **d); /* no callback after this; NULL is fine */

#endif
