/* origin - an origin of canned answers for tools/bench.
 *
 *   origin PORT [BODY_BYTES]
 *
 *   /h...  fresh for an hour       /c...  not stored, chunked
 *   /b...  not stored, 1 MB        else   not stored
 *
 * It reads what it is sent to its end (a POST's body may come apart from its head), since an answer
 * too many would be taken for that of the next request. One thread; what a slow reader leaves is
 * sent when there is room, so that a client gone in the middle costs nothing but its connection. It
 * ends with its parent. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_MAX 8192
#define BIG_BYTES (1024 * 1024)

struct answer {
    char *at;
    size_t n;
};

struct conn {
    int fd;
    size_t n;            /* bytes of the head so far */
    uint64_t body_left;  /* of the request */
    struct answer reply; /* what is still to be sent */
    char head[HEAD_MAX];
};

static struct answer stored, plain, chunked, big;

static void
die(const char *what)
{
    perror(what);
    exit(1);
}

static struct answer
answer_of(const char *fields, size_t body_bytes, bool in_chunks)
{
    struct answer a = {malloc(body_bytes + 512), 0};
    char line[32];

    if (!a.at)
        die("malloc");
    snprintf(line, sizeof line, in_chunks ? "%zx\r\n" : "%zu\r\n\r\n", body_bytes);
    a.n = (size_t)sprintf(
        a.at, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n%s%s%s", fields,
        in_chunks ? "Transfer-Encoding: chunked\r\n\r\n" : "Content-Length: ", line);
    memset(a.at + a.n, 'x', body_bytes);
    a.n += body_bytes;
    if (in_chunks) {
        memcpy(a.at + a.n, "\r\n0\r\n\r\n", 7);
        a.n += 7;
    }
    return a;
}

static void
conn_close(struct conn *c)
{
    close(c->fd);
    free(c);
}

static struct answer
choose(const char *head)
{
    const char *path = strchr(head, '/');

    switch (path ? path[1] : 0) {
    case 'h':
        return stored;
    case 'c':
        return chunked;
    case 'b':
        return big;
    default:
        return plain;
    }
}

static bool
send_reply(struct conn *c)
{
    while (c->reply.n) {
        ssize_t sent = send(c->fd, c->reply.at, c->reply.n, MSG_NOSIGNAL);

        if (sent < 0)
            return errno == EAGAIN;
        c->reply.at += sent;
        c->reply.n -= (size_t)sent;
    }
    return true;
}

static uint64_t
content_length(const char *head)
{
    const char *field = strcasestr(head, "\r\ncontent-length:");

    return field ? strtoull(field + 17, NULL, 10) : 0;
}

/* Takes in what was read; false when this is no client of ours. */
static bool
take(struct conn *c)
{
    char *end;
    size_t head_n, rest;

    c->head[c->n] = '\0';
    end = strstr(c->head, "\r\n\r\n");
    if (!end)
        return c->n < HEAD_MAX - 1;
    end[2] = '\0';
    head_n = (size_t)(end + 4 - c->head);
    rest = c->n - head_n;
    c->body_left = content_length(c->head);
    c->reply = choose(c->head);
    c->n = 0;
    if (rest > c->body_left)
        return false; /* the proxy does not pipeline */
    c->body_left -= rest;
    return c->body_left || send_reply(c);
}

/* 1: more may be there; 0: not now; -1: gone, or not one of ours. */
static int
read_some(struct conn *c)
{
    char body[HEAD_MAX], *to = c->body_left ? body : c->head + c->n;
    size_t room = c->body_left ? sizeof body : HEAD_MAX - 1 - c->n;
    ssize_t n = read(c->fd, to, c->body_left && c->body_left < room ? c->body_left : room);

    if (n <= 0)
        return n < 0 && errno == EAGAIN ? 0 : -1;
    if (!c->body_left) {
        c->n += (size_t)n;
        return take(c) ? 1 : -1;
    }
    c->body_left -= (uint64_t)n;
    return c->body_left || send_reply(c) ? 1 : -1;
}

static void
conn_ready(struct conn *c, uint32_t events)
{
    int more = events & (EPOLLERR | EPOLLHUP) ? -1 : 1;

    if (more > 0 && c->reply.n && !c->body_left && !send_reply(c))
        more = -1;
    while (more > 0)
        more = read_some(c);
    if (more < 0)
        conn_close(c);
}

/* Edge-triggered: readiness to write is asked for once and costs nothing while replies fit. */
static void
conn_open(int ep, int listener)
{
    int on = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET};
    struct conn *c;

    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c = calloc(1, sizeof *c);
    if (!c)
        die("calloc");
    c->fd = fd;
    e.data.ptr = c;
    if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) < 0)
        die("epoll_ctl");
}

static int
listen_at(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 4096) < 0)
        die("origin: listen");
    return fd;
}

static void
serve(int ep, int listener)
{
    struct epoll_event got[64];

    for (;;) {
        int n = epoll_wait(ep, got, 64, -1);

        for (int i = 0; i < n; i++) {
            if (got[i].data.ptr)
                conn_ready(got[i].data.ptr, got[i].events);
            else
                conn_open(ep, listener);
        }
    }
}

static void
answers_make(size_t body_bytes)
{
    stored = answer_of("Cache-Control: max-age=3600\r\n", body_bytes, false);
    plain = answer_of("Cache-Control: no-store\r\n", body_bytes, false);
    chunked = answer_of("Cache-Control: no-store\r\n", body_bytes, true);
    big = answer_of("Cache-Control: no-store\r\n", BIG_BYTES, false);
}

int
main(int argc, char **argv)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    struct rlimit limit;
    int listener, ep = epoll_create1(EPOLL_CLOEXEC);

    if (argc < 2) {
        fputs("usage: origin PORT [BODY_BYTES]\n", stderr);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    answers_make(argc > 2 ? strtoul(argv[2], NULL, 10) : 1024);
    listener = listen_at(atoi(argv[1]));
    if (epoll_ctl(ep, EPOLL_CTL_ADD, listener, &e) < 0)
        die("epoll_ctl");
    serve(ep, listener);
}
