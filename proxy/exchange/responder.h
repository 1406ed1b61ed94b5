/* proxy/exchange/responder.h - how an exchange answers: an interface, so that HTTP/2 can plug in
 * beside client_h1.
 *
 * An answer is a status, a head with edits, and a body to pull; how it looks on the wire is the
 * responder's matter. respond() is called once. The responder adds framing and connection fields
 * itself, pulls the body, and reports with exchange_sent(). */
#ifndef PROXY_EXCHANGE_RESPONDER_H
#define PROXY_EXCHANGE_RESPONDER_H

#include "cache/head.h"
#include "http/edits.h"
#include "http/source.h"
#include "proxy/net/transport.h"

struct outgoing {
    unsigned status;
    struct span reason;
    const struct head *head;   /* its fields; NULL: none but those of edits */
    const struct edits *edits; /* both borrowed until respond() returns */
    struct source *body;       /* NULL: none; stays the exchange's */
    uint64_t length;           /* Content-Length, UINT64_MAX: not known */
    bool bodyless; /* HEAD, 304, 204: no body whatever length says; length is still announced (not
                      for 204) */
    bool close;    /* the connection ends with this response */
};

struct responder_ops {
    void (*interim)(void *responder, unsigned status, const struct fields *fields);
    void (*respond)(void *responder, const struct outgoing *o);
    /* Hands over the client's connection for a tunnel, with bytes it has sent already; the
     * responder is gone afterwards. false: it has closed. */
    bool (*steal)(void *responder, struct transport *t, struct buf *early);
};

#endif
