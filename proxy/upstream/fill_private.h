/* proxy/upstream/fill_private.h - what fill.c (life and decisions) and upstream_h1.c (bytes) share.
 */
#ifndef PROXY_UPSTREAM_FILL_PRIVATE_H
#define PROXY_UPSTREAM_FILL_PRIVATE_H

#include "proxy/net/body_writer.h"
#include "proxy/upstream/fill.h"

#define FILL_MAGIC 0xf111f111u

enum fill_phase { FILL_ROUTE, FILL_HEAD, FILL_BODY, FILL_OVER };

struct fill {
    uint32_t magic;
    enum fill_phase phase;
    struct list link;   /* of upstream.fills */
    struct fill **held; /* the owner's pointer to us */
    struct upstream *up;
    struct policy *policy;
    const struct fill_events *events; /* NULL: the owner is gone, or has had its last event */
    void *owner;
    struct arena *arena; /* the owner's, until the head event */
    /* the order */
    enum method method;
    uint64_t client_connection;
    bool logs_in;
    struct source *request_body;
    bool body_chunked, expects_continue, wants_upgrade;
    uint64_t body_length;
    /* the way there */
    struct route route;
    struct conn *conn;
    bool reused, retried, body_held, request_sent;
    unsigned interims;
    /* the exchange of bytes */
    struct body_writer writer;
    struct span early; /* body bytes that came with the head; valid during the head event */
    struct buf in;     /* an incomplete head */
    struct framed framing;
    struct chunked chunked;
    struct buf trailer;
    uint64_t left; /* of a body with a length */
    bool keep_alive, awaiting_room;
    struct entry *entry;
    struct fill_keeping keeping;
    bool spooled;  /* it is on its way to the disk */
    bool starting; /* inside fill_start: a failure is told later, from the loop */
    enum fault late_fault;
    int late_error;
    struct loop_task room, body_ready, fail_later, free_later;
    struct loop_timer continue_timer;
    /* times and counts */
    int64_t started_ns, asked_ns;
    int64_t request_wall_s;
    int64_t first_byte_us; /* -1: none yet */
    uint64_t bytes_in;
};

void fill_connected(void *owner, struct conn *c, bool reused);
void fill_fail(struct fill *f, enum fault why,
               int error);        /* before the head: event; after it: body_fail */
void fill_finish(struct fill *f); /* the response is whole */
void fill_send(struct fill *f);   /* upstream_h1.c */
void fill_start_body(struct fill *f);
void fill_io(void *owner, int events);
void fill_release_body(struct fill *f); /* the held request body may go */
void fill_timed_out(void *owner);
bool fill_is_live(const struct fill *f);
bool fill_is_unwanted(const struct fill *f); /* nobody reads its body, and it isn't worth keeping */

void fill_spool(struct fill *f);

#endif
