/* http/forwarding.h - a head as it must leave us (RFC 9110 section 7.6). Works on struct fields in
 * place. */
#ifndef HTTP_FORWARDING_H
#define HTTP_FORWARDING_H

#include "http/message.h"

/* Drops Connection, every field it names (not Host, Content-Length, Transfer-Encoding,
 * Cache-Control, Authorization... by that way only end-to-end framing and routing fields are
 * protected), known hop-by-hop fields, and framing fields (the writer makes them anew). */
void forwarding_clean(struct fields *f);

enum forwarded_for {
    FORWARDED_ON,
    FORWARDED_OFF,
    FORWARDED_TRANSPARENT,
    FORWARDED_DELETE,
    FORWARDED_TRUNCATE
};
/* X-Forwarded-For as Squid's forwarded_for: on appends the client, off appends "unknown",
 * transparent leaves it, delete removes, truncate replaces. */
void forwarding_add_client(struct fields *f, struct arena *a, enum forwarded_for mode,
                           struct span client);
/* Via: "1.1 name (cuttle)" appended to what is there, as one more member. */
void forwarding_add_via(struct fields *f, struct arena *a, unsigned minor, struct span pseudonym);
bool forwarding_is_loop(const struct fields *f,
                        struct span pseudonym); /* our name in a received Via */
/* Max-Forwards for OPTIONS and TRACE (7.6.2): false when it is 0 (answer here); decrements else.
 * Unparsable values count as absent and are dropped. */
bool forwarding_step(struct request_head *r, struct arena *a);

#endif
