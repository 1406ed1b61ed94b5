/* proxy/tunnel/tunnel.h - bytes between two transports, both ways, until both have ended (RFC 9110
 * section 9.3.6).
 *
 * Half-close is kept: an end of stream on one side becomes a FIN on the other while the other
 * direction goes on. A reset ends both at once. Memory: nothing while bytes flow freely; what one
 * side cannot take is kept (at most one read) and the other side is not read meanwhile. */
#ifndef PROXY_TUNNEL_TUNNEL_H
#define PROXY_TUNNEL_TUNNEL_H

#include "base/span.h"
#include "proxy/net/transport.h"

struct tunnel;
struct tunnel_options {
    struct transport *client, *server; /* taken over */
    struct span to_server, to_client;  /* bytes already read from the other side; copied */
    int64_t idle_ms; /* no traffic in either direction for so long ends it; 0: never */
    char *scratch;   /* the worker's */
    size_t scratch_bytes;
    void (*ended)(void *owner, uint64_t up, uint64_t down,
                  int error); /* once, from the loop; error: errno, 0 when both ended in peace */
    void *owner;
};

struct tunnel *tunnel_start(struct loop *l, const struct tunnel_options *o);
void tunnel_close(struct tunnel **t); /* closes both, no callback */
void tunnel_bytes(const struct tunnel *t, uint64_t *up, uint64_t *down);

#endif
