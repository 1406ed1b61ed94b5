/* proxy/upstream/fill.h - brings one response from the next hop: address, connection, request,
 * head, then the body into an entry.
 *
 * A fill belongs to one worker. Its owner (an exchange) hears of interim responses, of the head and
 * of a failure before the head; in the head event it must say what becomes of the body: fill_into()
 * or fill_cancel(). From then on the fill works alone: it feeds the entry's body, and ends by
 * itself, with or without its owner. A failure after the head is the body's fault (body_fail).
 *
 * A kept connection that dies before the first byte of an answer is replaced by a new one once, for
 * requests that may be sent twice (idempotent method, no body: RFC 9110 section 9.2.2). Requests
 * that may not be are never sent on a kept connection, so that this question does not arise; but
 * for one that is bound to the client: a log-in is worth more than the small risk.
 *
 * A log-in by NTLM or Negotiate holds for a connection, not for a request (RFC 4559 section 6). One
 * over which such fields pass, in either direction, is bound to the connection of the client: all
 * its requests to there go over it, nobody else's do, and it is closed with it. */
#ifndef PROXY_UPSTREAM_FILL_H
#define PROXY_UPSTREAM_FILL_H

#include "base/arena.h"
#include "cache/store.h"
#include "dns/resolver.h"
#include "http/h1_frame.h"
#include "proxy/policy/policy.h"
#include "proxy/upstream/route.h"

struct upstream { /* one per worker */
    struct loop *loop;
    struct resolver *resolver;
    struct idle_pool *idle;
    struct store *store;
    struct tier_reader *disk; /* where bodies go that memory does not keep; NULL: nowhere */
    char *scratch;            /* shared by all readers of this worker, within one callback */
    size_t scratch_bytes;
    const struct addr *self; /* our own listening addresses: going there is a loop */
    unsigned n_self;
    struct list fills; /* all of this worker */
    unsigned (*shed)(
        void *owner); /* descriptors have run out: closes idle connections, returns how many */
    void *owner;
};


struct fill;
struct fill_times {
    int64_t dns_us, connect_us, first_byte_us;
}; /* -1: did not happen */

struct fill_events {
    /* The request head as it goes to this next hop; in the order's arena. Comes again when the
     * request is sent again. */
    struct span (*compose)(void *owner, const struct hop *hop);
    void (*interim)(void *owner, const struct response_head *r);
    /* The final head. Decide with fill_into or fill_cancel before returning. r borrows from scratch
     * and the order's arena. */
    void (*head)(void *owner, const struct response_head *r, const struct framed *body,
                 const struct head_times *t);
    /* 101: the connection is no longer HTTP. *conn and the bytes already read are the owner's; the
     * fill is gone afterwards. */
    void (*upgraded)(void *owner, const struct response_head *r, struct conn **conn,
                     struct span early);
    void (*failed)(void *owner, const struct fill *f, enum fault why, int error);
};

struct fill_order {
    struct policy *policy; /* a reference is taken */
    struct arena *arena;   /* the owner's; used up to the head event only */
    enum method method;
    struct span host;
    uint16_t port;
    const struct addr *judged; /* the only addresses it may go to; NULL: those the host has */
    unsigned n_judged;
    uint64_t connection; /* of the client; 0: nobody waits */
    bool logs_in;        /* the request carries a log-in that holds for a whole connection */
    struct source *body; /* borrowed, wakes the fill; NULL: none */
    bool body_chunked;
    uint64_t body_length;
    bool expects_continue; /* hold the body back until 100 or a second has passed */
    bool wants_upgrade;
    bool deny_local; /* the client may not reach this machine's own or link-local addresses */
    const struct fill_events *events;
    void *owner;
};

/* *held is the owner's pointer to the fill: cleared when the fill ends by itself. No event comes
 * before fill_start has returned. */
void fill_start(struct upstream *u, const struct fill_order *order, struct fill **held);
struct loop_task *
fill_room_task(struct fill *f); /* what the body wakes when there is room: for body_new */
struct fill_keeping {
    bool stored; /* it is findable in the store, is charged when complete and withdrawn when it
                    fails or outgrows keep_bytes */
    bool alone;  /* goes on without any reader (validation in the background) */
    bool spool;  /* goes to the disk as it comes, if it is not kept in memory */
    uint64_t keep_bytes;
    struct span uri; /* with stored or spool; copied */
};
/* entry gets the body, what came with the head at once (the fill may have ended, and *held be NULL,
 * on return). */
void fill_into(struct fill *f, struct entry *e, const struct fill_keeping *keeping);
void fill_cancel(struct fill **f);  /* closes the connection; no event after this */
void fill_release(struct fill **f); /* the owner goes; before the head this cancels, after it the
                                       fill goes on as quick_abort says */
void fill_cancel_all(struct upstream *u); /* the worker ends */
/* It goes over a connection that is one client's alone: what it brings is for nobody else. */
bool fill_is_bound(const struct fill *f);
const struct addr *fill_server(const struct fill *f); /* AF_UNSPEC until connected */
struct fill_times fill_times_of(const struct fill *f);
uint64_t fill_bytes_in(const struct fill *f);

#endif
