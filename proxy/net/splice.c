/* The pipe is made as large as is useful at once: each move then takes what both sockets can. */
#include "proxy/net/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define SPLICE_BYTES (1024 * 1024)

void
splice_init(struct splice *s)
{
    s->ends[0] = s->ends[1] = -1;
    s->held = 0;
}

bool
splice_open(struct splice *s, const struct transport *from, const struct transport *to,
            enum fd_purpose purpose)
{
    if (transport_plain_socket(from) < 0 || transport_plain_socket(to) < 0)
        return false;
    if (pipe2(s->ends, O_NONBLOCK | O_CLOEXEC) < 0) {
        splice_init(s);
        return false;
    }
    fds_adopt(s->ends[0], purpose);
    fds_adopt(s->ends[1], purpose);
    (void)fcntl(s->ends[1], F_SETPIPE_SZ, SPLICE_BYTES);
    return true;
}

void
splice_close(struct splice *s)
{
    fds_close(s->ends[0]);
    fds_close(s->ends[1]);
    splice_init(s);
}

ssize_t
splice_in(struct splice *s, const struct transport *from)
{
    ssize_t got = splice(transport_plain_socket(from), NULL, s->ends[1], NULL, SPLICE_BYTES,
                         SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

    if (got < 0)
        return -errno;
    s->held += (size_t)got;
    return got;
}

ssize_t
splice_out(struct splice *s, const struct transport *to)
{
    ssize_t sent = splice(s->ends[0], NULL, transport_plain_socket(to), NULL, s->held,
                          SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

    if (sent < 0)
        return -errno;
    s->held -= (size_t)sent;
    return sent;
}
