/* dns/name_server.h - one name server, asked on this loop over a channel of its own.
 * name_server.c is the only file that knows c-ares.
 *
 * Each server has its own channel, so that the resolver decides which is asked, and when the next:
 * within one channel, c-ares begins each question with the first of its list, and turns to the
 * second only when it has given up on the first. A channel's question is sent again at growing
 * intervals for as long as the resolver's time lasts.
 *
 * A flight is one question on its way: the asker's memory, until landed is called, once. That may
 * happen inside name_server_ask. */
#ifndef DNS_NAME_SERVER_H
#define DNS_NAME_SERVER_H

#include "base/loop.h"
#include "dns/order.h"

struct name_server;

struct flight {
    struct name_server *server;
    enum half half;
    /* reply: of this half; kind is never HALF_NONE. NULL: the server is being freed. */
    void (*landed)(struct flight *f, const struct half_answer *reply);
};

struct name_server_options {
    struct loop *loop;
    const char *address;      /* "192.0.2.1", "192.0.2.1:5353", "[2001:db8::1]:53" */
    int64_t timeout_ms;       /* of a whole question */
    int64_t retransmit_ms;    /* from the first sending to the second */
    uint64_t *local_failures; /* counts up what failed on this machine; outlives the server */
};

/* NULL, and a line in the log: c-ares does not start, or takes the address for none. */
struct name_server *name_server_new(const struct name_server_options *o);
/* Not from inside landed. Lands what is in the air, with NULL. */
void name_server_free(struct name_server **s);
/* f->half and f->landed are set. false: it has all it can take, and f stays on the ground. */
bool name_server_ask(struct name_server *s, const char *name, struct flight *f);

#endif
