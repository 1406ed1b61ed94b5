/* proxy/net/intercept.h - where was a connection going before the packet filter diverted it here?
 *
 * Two ways lead to such a port. REDIRECT (nft redirect, iptables REDIRECT) rewrites the
 * destination, and connection tracking remembers the one before. TPROXY rewrites nothing: our end
 * of the connection has the destination's address. A client that names the port itself was not
 * diverted, and its destination is us: going there would be a loop. */
#ifndef PROXY_NET_INTERCEPT_H
#define PROXY_NET_INTERCEPT_H

#include "base/addr.h"

enum diversion { DIVERSION_NONE, DIVERSION_REDIRECT, DIVERSION_TPROXY };

/* fd: accepted. With port; AF_UNSPEC: nothing has diverted it. */
struct addr intercept_destination(int fd, enum diversion how, const struct addr *listening);
/* Pure. original: before REDIRECT; end: our end of the connection; both with port. */
bool intercept_is_diverted(enum diversion how, const struct addr *original, const struct addr *end,
                           const struct addr *listening);
/* Before bind: a TPROXY port takes connections to addresses that are not ours. 0 or -errno; -EPERM
 * without CAP_NET_ADMIN. */
int intercept_make_transparent(int fd, sa_family_t family);

#endif
