/* proxy/net/splice.h - bytes from one socket to another through a pipe, without entering user space
 * (splice(2)). Only between transports that are plain sockets. */
#ifndef PROXY_NET_SPLICE_H
#define PROXY_NET_SPLICE_H

#include "proxy/net/transport.h"

struct splice {
    int ends[2]; /* of the pipe; -1: closed */
    size_t held; /* bytes in it */
};

void splice_init(struct splice *s); /* closed */
/* false: not between these two, or there is no pipe to be had. Counted with purpose. */
bool splice_open(struct splice *s, const struct transport *from, const struct transport *to,
                 enum fd_purpose purpose);
void splice_close(struct splice *s); /* what it holds is lost; closing twice is fine */
static inline bool
splice_is_open(const struct splice *s)
{
    return s->ends[0] >= 0;
}

/* Bytes moved; 0: end of stream (in); -errno, -EAGAIN included. Into an empty pipe only. */
ssize_t splice_in(struct splice *s, const struct transport *from);
ssize_t splice_out(struct splice *s, const struct transport *to);

/* The socket of a transport that is nothing but one; else -1. For net/ alone. */
int transport_plain_socket(const struct transport *t);

#endif
