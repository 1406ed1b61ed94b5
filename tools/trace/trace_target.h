/* tools/trace/trace_target.h - what a logged request asks for, in a form that can be asked for here.
 *
 * A log has bytes no request line may carry, addresses that are somebody's, and bare paths. replay
 * and origin both name an object by what stands here, so that the one finds what the other means. */
#ifndef TOOLS_TRACE_TRACE_TARGET_H
#define TOOLS_TRACE_TRACE_TARGET_H

#include "base/buf.h"
#include "tools/trace/trace.h"

struct trace_target {
    struct span key;  /* host and path without anything between: what the object is known by */
    struct span host; /* a name in lower case, without port */
    struct span path; /* path and query, "/" at least; empty for a tunnel */
    bool tunnel;
};

/* Pure but for *room, which is overwritten and lent to *out until its next use.
 *
 * An address as host becomes a name (192.0.2.1 is a192-0-2-1.v4.test), so that every request goes
 * where names lead: to the origin beside the replay, never to that address. A path without a host,
 * and the object of a list, is of default_host. What a request line may not carry is escaped as
 * percent and two digits; a fragment is cut off. https is asked for as http: what the proxy saw of
 * it had been opened. false: ftp and other schemes, no host, a host no resolver takes. */
bool trace_target(const struct trace_line *t, struct span default_host, struct buf *room,
                  struct trace_target *out);

#endif
