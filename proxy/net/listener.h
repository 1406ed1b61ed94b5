/* proxy/net/listener.h - accepts connections for one worker (SO_REUSEPORT: every worker has its own
 * queue).
 *
 * Out of descriptors or memory it pauses for a moment instead of spinning, asks its owner to shed
 * idle connections, and spends the reserve descriptor to turn a waiting client away; the log hears
 * of it at most every few seconds. It never stops for good. */
#ifndef PROXY_NET_LISTENER_H
#define PROXY_NET_LISTENER_H

#include "base/addr.h"
#include "proxy/net/intercept.h"
#include "proxy/net/transport.h"

struct listener;
struct listener_options {
    struct addr address; /* with port */
    bool both_families;  /* an IPv6 wildcard that takes IPv4 as well */
    enum diversion diversion;
    /* t: counted as client active; taken, or closed when it is not. destination: where a diverted
     * connection was going, AF_UNSPEC when nothing has diverted it. */
    void (*accepted)(void *owner, struct listener *l, struct transport *t, const struct addr *peer,
                     const struct addr *destination);
    unsigned (*shed)(void *owner); /* close some idle connections; returns how many */
    void *owner;
};

/* A bound, listening socket, or -errno. Made before the workers start, so that errors are seen at
 * once. */
int listener_bind(const struct listener_options *o);
struct listener *listener_start(struct loop *l, int fd, const struct listener_options *o);
const struct addr *listener_address(const struct listener *l);
void listener_stop(struct listener **l); /* closes the socket */

#endif
