/* proxy/client/client_private.h - what client_h1.c (reading), client_answer.c (writing) and
 * client_body.c share. */
#ifndef PROXY_CLIENT_CLIENT_PRIVATE_H
#define PROXY_CLIENT_CLIENT_PRIVATE_H

#include "proxy/client/client_h1.h"
#include "proxy/net/body_writer.h"

#define CLIENT_MAGIC 0xc11e4701u
#define CLIENT_IN_MAX (64 * 1024) /* read ahead of pipelined requests and bodies */

enum client_phase {
    CLIENT_FRESH,  /* nothing was read yet */
    CLIENT_IDLE,   /* between two requests */
    CLIENT_HEAD,   /* a part of a head is here */
    CLIENT_BUSY,   /* an exchange is on */
    CLIENT_LINGER, /* we have said FIN and read what is still coming, so that it does not turn into
                      a reset */
    CLIENT_CLOSED
};

struct client_body {
    struct source source;
    struct client *client;
    struct framed framing;
    struct chunked chunked;
    uint64_t left;            /* FRAMING_LENGTH */
    size_t ready_at, ready_n; /* decoded bytes in client.in, lent to the consumer */
    size_t used;              /* bytes of client.in that were decoded */
    struct buf trailer;       /* of a chunked body: checked, and passed on as a trailer */
    bool ended, bad, wanted;
    bool continue_due; /* the client waits for a 100 */
};

struct client {
    uint32_t magic;
    uint8_t phase;
    bool keep_alive, half_closed, nested, minor0, close_delimited;
    bool refused;            /* the head was no request: what follows it is unknown */
    uint32_t lingered_bytes; /* read and thrown away after the last answer */
    struct client_env *env;
    struct transport transport;
    struct list link;
    struct client_arrival from;
    uint64_t connection; /* its number */
    struct exchange *x;
    struct client_body *body;
    struct buf in;  /* read, not yet used */
    struct buf out; /* an interim response the socket did not take at once */
    struct body_writer writer;
    struct loop_timer timer;
    int64_t born_ms;
    struct loop_task go_on, free_later;
};

extern const struct responder_ops client_responder;

void client_next(struct client *c); /* more requests in the buffer, or idle */
void client_close(struct client *c);
void client_go_on(void *owner); /* with the answer, or with the next request that is here */
void client_abort(struct client *c, bool timed_out); /* the connection is of no use any more */
void client_answered(struct client *c, bool whole);
void client_interest(struct client *c);
/* A wait of so long, cut to what is left of client_lifetime. */
int64_t client_wait_ms(const struct client *c, int64_t wish_ms);

/* client_body.c */
struct client_body *client_body_new(struct client *c, const struct framed *f, bool continue_due);
void client_body_arrived(struct client_body *b);       /* client.in has more, or the end came */
bool client_body_is_done(const struct client_body *b); /* nothing of it will come any more */
void client_body_free(struct client_body **b);

#endif
