/* dns/sockets.h - the sockets of one name server: c-ares opens and closes them, the census counts
 * them, the loop watches them.
 *
 * The functions with `void *sockets` have the form that c-ares wants of them; errno tells why one
 * failed. What fails for a reason on this machine is added to *local_failures: nobody has heard
 * the question then. */
#ifndef DNS_SOCKETS_H
#define DNS_SOCKETS_H

#include <sys/socket.h>
#include <sys/uio.h>

#include "base/list.h"
#include "base/loop.h"

struct dns_sockets {
    struct loop *loop;
    loop_io_fn *ready; /* owner: the io's, that is a struct dns_socket */
    void *owner;
    uint64_t *local_failures;
    struct list watched, spare;
};

struct dns_socket {
    struct list link;
    struct loop_io io;
    struct dns_sockets *set;
};

void dns_sockets_init(struct dns_sockets *set);
void dns_sockets_free(struct dns_sockets *set);
/* events: LOOP_READ | LOOP_WRITE; 0: no longer. */
void dns_sockets_watch(struct dns_sockets *set, int fd, int events);

int dns_socket_open(int family, int type, int protocol, void *sockets);
int dns_socket_close(int fd, void *sockets);
int dns_socket_connect(int fd, const struct sockaddr *to, socklen_t n, void *sockets);
ssize_t dns_socket_receive(int fd, void *to, size_t n, int flags, struct sockaddr *from,
                           socklen_t *from_n, void *sockets);
ssize_t dns_socket_send(int fd, const struct iovec *parts, int n, void *sockets);

#endif
