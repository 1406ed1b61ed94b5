/* proxy/net/body_writer.h - a head and a body onto a transport, framed as the receiver needs it.
 *
 * Used in both directions: responses to clients, requests to origins. One writev takes what is left
 * of the head, the frame and as many runs of the source as fit; nothing is copied. A body that ends
 * before its announced length is a fault, never a shorter message. */
#ifndef PROXY_NET_BODY_WRITER_H
#define PROXY_NET_BODY_WRITER_H

#include "base/buf.h"
#include "http/source.h"
#include "proxy/net/transport.h"

#define LENGTH_UNKNOWN UINT64_MAX

enum writer_result {
    WRITER_DONE,  /* all is with the kernel */
    WRITER_AGAIN, /* wants LOOP_WRITE */
    WRITER_WAIT,  /* the source wakes us; what it gave so far is sent */
    WRITER_FAULT, /* the source failed or ended early: source fault in `fault` */
    WRITER_ERROR  /* the transport failed: -errno in `error` */
};

struct body_writer {
    struct span head; /* what is left of it; borrowed, or from `spill` */
    struct buf spill;
    struct source *body; /* borrowed; NULL: no body */
    bool chunked, ended, frame_open;
    uint64_t left; /* of the announced length, or LENGTH_UNKNOWN */
    uint64_t chunk_left;
    char frame[32];
    uint8_t frame_at, frame_n;
    uint64_t sent, body_sent;
    enum fault fault;
    int error;
};

/* head must stay valid until the first pump returns; what is left then is copied. */
void body_writer_start(struct body_writer *w, struct span head, struct source *body, bool chunked,
                       uint64_t length);
/* A body that was held back joins a writer that was started without one. */
void body_writer_add_body(struct body_writer *w, struct source *body, bool chunked,
                          uint64_t length);
enum writer_result body_writer_pump(struct body_writer *w, struct transport *t);
void body_writer_free(struct body_writer *w);

#endif
