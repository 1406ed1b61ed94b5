/* dns/sockets.c - the sockets of one name server. Knows nothing of c-ares but the shape of the
 * calls that it makes. */
#include "dns/sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/addr.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/fds.h"

/* ---- c-ares opens and closes, the census counts ---- */

int
dns_socket_open(int family, int type, int protocol, void *sockets)
{
    struct dns_sockets *set = sockets;
    int64_t from_ns = clock_exact_mono_ns();
    int one = 1, fd;

    fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
    if (fd < 0) {
        ++*set->local_failures;
        return -1;
    }
    fds_open_took(clock_exact_mono_ns() - from_ns);
    fds_adopt(fd, FD_DNS);
    if (type == SOCK_STREAM)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

int
dns_socket_close(int fd, void *sockets)
{
    fds_close(fd);
    return 0;
}

/* Without a refusal nobody has heard the question: no memory, no route, a firewall of our own. */
static void
count_if_local(struct dns_sockets *set)
{
    if (errno != ECONNREFUSED)
        ++*set->local_failures;
}

int
dns_socket_connect(int fd, const struct sockaddr *to, socklen_t n, void *sockets)
{
    char text[ADDR_TEXT_MAX];
    struct addr a = addr_from_sockaddr(to);
    int error;

    fds_note(fd, span_of(text, addr_format_port(&a, text)));
    error = connect(fd, to, n);
    if (error < 0 && errno != EINPROGRESS)
        count_if_local(sockets);
    return error;
}

ssize_t
dns_socket_receive(int fd, void *to, size_t n, int flags, struct sockaddr *from, socklen_t *from_n,
                   void *sockets)
{
    return recvfrom(fd, to, n, flags, from, from_n);
}

/* A refusal met while sending was meant for an earlier question, whose own end c-ares would then
 * not see before its timeout. Sent again, this one brings a refusal that is read, and moves both on
 * to the next server. */
ssize_t
dns_socket_send(int fd, const struct iovec *parts, int n, void *sockets)
{
    struct msghdr m = {.msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)n};
    ssize_t sent = sendmsg(fd, &m, MSG_NOSIGNAL);

    if (sent < 0 && errno == ECONNREFUSED)
        sent = sendmsg(fd, &m, MSG_NOSIGNAL);
    if (sent < 0)
        count_if_local(sockets);
    return sent;
}

/* ---- the loop watches ---- */

void
dns_sockets_init(struct dns_sockets *set)
{
    list_init(&set->watched);
    list_init(&set->spare);
}

static struct dns_socket *
socket_find(struct dns_sockets *set, int fd)
{
    for (struct list *at = set->watched.next; at != &set->watched; at = at->next) {
        struct dns_socket *s = LIST_OWNER(at, struct dns_socket, link);

        if (s->io.fd == fd)
            return s;
    }
    return NULL;
}

/* There are two at most; they come and go with the questions, so they are kept. */
static struct dns_socket *
socket_make(struct dns_sockets *set, int fd)
{
    struct dns_socket *s;

    if (list_empty(&set->spare)) {
        s = mem_zalloc(sizeof(*s));
        list_init(&s->link);
    } else {
        s = LIST_OWNER(set->spare.next, struct dns_socket, link);
        list_remove(&s->link);
    }
    s->set = set;
    loop_io_init(&s->io, set->loop, fd, LOOP_DNS, set->ready, s);
    list_push_back(&set->watched, &s->link);
    return s;
}

void
dns_sockets_watch(struct dns_sockets *set, int fd, int events)
{
    struct dns_socket *s = socket_find(set, fd);

    if (events) {
        s = s ? s : socket_make(set, fd);
        loop_io_want(&s->io, events);
    } else if (s) {
        loop_io_stop(&s->io);
        list_remove(&s->link);
        list_push_back(&set->spare, &s->link);
    }
}

static void
free_all(struct list *sockets)
{
    while (!list_empty(sockets)) {
        struct dns_socket *s = LIST_OWNER(sockets->next, struct dns_socket, link);

        loop_io_stop(&s->io);
        list_remove(&s->link);
        mem_free(s);
    }
}

void
dns_sockets_free(struct dns_sockets *set)
{
    free_all(&set->watched);
    free_all(&set->spare);
}
