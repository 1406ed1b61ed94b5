/* load - the two ends of a measurement: an origin of canned answers, and clients at a fixed rate or
 * as fast as they can.
 *
 *   load origin PORT                                     answers GET and POST; /h... is fresh for
 * an hour, all else is no-store load clients PROXY ORIGIN CONNS IDLE RATE SECONDS MIX [MAX] CONNS
 * busy connections, IDLE silent ones, RATE requests a second (0: saturated), MIX hit, unique, pass
 * or soak; ends after SECONDS or MAX requests. Prints one line of JSON.
 *
 * One thread, one epoll each; it is written for the loopback and for known answers, not as a client
 * in general. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BODY 1024
#define LATENCIES (1 << 20)

static double
now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
die(const char *what)
{
    perror(what);
    exit(1);
}

static int
tcp_socket(void)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        die("socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return fd;
}

static struct sockaddr_in
loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* ---- the origin ---- */

static void
origin_answer(int fd, const char *request)
{
    char out[BODY + 256];
    bool fresh = strstr(request, " /h") != NULL;
    int n = snprintf(out, sizeof out,
                     "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: "
                     "%d\r\nCache-Control: %s\r\n\r\n",
                     BODY, fresh ? "max-age=3600" : "no-store");

    memset(out + n, 'x', BODY);
    if (write(fd, out, (size_t)n + BODY) < 0)
        close(fd);
}

static void
origin_read(int fd)
{
    char in[8192];
    ssize_t n = read(fd, in, sizeof in - 1);

    if (n <= 0) {
        close(fd);
        return;
    }
    in[n] = 0;
    origin_answer(fd, in);
}

static int
origin(int port)
{
    struct sockaddr_in at = loopback(port);
    struct epoll_event e = {.events = EPOLLIN}, got[64];
    int fd = tcp_socket(), ep = epoll_create1(0);

    if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 1024) < 0)
        die("origin");
    e.data.fd = fd;
    epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
    for (;;) {
        int n = epoll_wait(ep, got, 64, -1);

        for (int i = 0; i < n; i++) {
            if (got[i].data.fd != fd) {
                origin_read(got[i].data.fd);
                continue;
            }
            e.data.fd = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (e.data.fd >= 0)
                epoll_ctl(ep, EPOLL_CTL_ADD, e.data.fd, &e);
        }
    }
}

/* ---- the clients ---- */

struct client {
    int fd;
    bool busy, drop; /* drop: leave in the middle, as clients do */
    size_t got, want;
    double sent_s;
};

static struct {
    int proxy, origin, ep;
    char mix;
    uint64_t sent, done, errors, bad;
    float *us;
    uint64_t n_us;
} run;

static int
dial(void)
{
    struct sockaddr_in to = loopback(run.proxy);
    int fd = tcp_socket();

    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        die("connect to the proxy");
    return fd;
}

static void
open_client(struct client *c)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};

    c->fd = dial();
    c->busy = false;
    epoll_ctl(run.ep, EPOLL_CTL_ADD, c->fd, &e);
}

static void
reopen(struct client *c)
{
    close(c->fd);
    open_client(c);
}

/* The path, and whether this one is a POST or an abandoned request. */
static void
choose(char *path, bool *post, struct client *c)
{
    unsigned kind = (unsigned)(run.sent % 20);

    *post = false;
    c->drop = false;
    if (run.mix == 'h' || (run.mix == 's' && kind < 12))
        sprintf(path, "/h%u", (unsigned)(run.sent % 1000));
    else if (run.mix == 'u' || (run.mix == 's' && kind < 15))
        sprintf(path, "/hu%d-%llu", (int)getpid(), (unsigned long long)run.sent);
    else
        sprintf(path, "/n%u", (unsigned)(run.sent % 100));
    if (run.mix == 's') {
        *post = kind == 18;
        c->drop = kind == 19;
    }
}

static void
send_request(struct client *c)
{
    char path[64], out[512];
    bool post;
    int n;

    choose(path, &post, c);
    n = snprintf(out, sizeof out,
                 "%s http://127.0.0.1:%d%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: "
                 "load\r\nAccept: */*\r\n%s\r\n%s",
                 post ? "POST" : "GET", run.origin, path, run.origin,
                 post ? "Content-Length: 5\r\n" : "", post ? "hello" : "");
    c->busy = true;
    c->got = c->want = 0;
    c->sent_s = now_s();
    run.sent++;
    if (write(c->fd, out, (size_t)n) != n) {
        run.errors++;
        reopen(c);
    } else if (c->drop) {
        run.done++;
        reopen(c);
    }
}

static void
finished(struct client *c)
{
    c->busy = false;
    run.done++;
    if (run.n_us < LATENCIES)
        run.us[run.n_us++] = (float)((now_s() - c->sent_s) * 1e6);
}

static void
read_response(struct client *c)
{
    char in[16384];
    ssize_t n = recv(c->fd, in, sizeof in, MSG_DONTWAIT);

    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        run.errors += c->busy;
        reopen(c);
        return;
    }
    if (c->want == 0) {
        char *end = memmem(in, (size_t)n, "\r\n\r\n", 4);

        run.bad += memcmp(in, "HTTP/1.1 200", 12) != 0;
        c->want = end ? (size_t)(end + 4 - in) + BODY : SIZE_MAX;
    }
    c->got += (size_t)n;
    if (c->got >= c->want)
        finished(c);
}

static int
by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static void
report(double took_s)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    qsort(run.us, run.n_us, sizeof *run.us, by_size);
    printf("{\"requests\": %llu, \"errors\": %llu, \"not_200\": %llu, \"seconds\": %.3f, "
           "\"p50_us\": %.0f, \"p99_us\": %.0f}\n",
           (unsigned long long)run.done, (unsigned long long)run.errors,
           (unsigned long long)run.bad, took_s, run.n_us ? (double)run.us[run.n_us / 2] : 0,
           run.n_us ? (double)run.us[run.n_us * 99 / 100] : 0);
}

static void
drive(struct client *clients, int n, double rate, double seconds, uint64_t max)
{
    struct epoll_event got[256];
    double began = now_s(), t = began;

    while (t - began < seconds && run.done < max) {
        uint64_t due = rate > 0 ? (uint64_t)((t - began) * rate) : UINT64_MAX;
        int k;

        for (int i = 0; i < n && run.sent < due; i++)
            if (!clients[i].busy)
                send_request(&clients[i]);
        k = epoll_wait(run.ep, got, 256, 1);
        for (int i = 0; i < k; i++)
            read_response(got[i].data.ptr);
        t = now_s();
    }
    report(t - began);
}

static int
clients(char **a, int n_a)
{
    int conns = atoi(a[2]), idle = atoi(a[3]);
    struct client *c = calloc((size_t)conns, sizeof *c);

    run.proxy = atoi(a[0]);
    run.origin = atoi(a[1]);
    run.mix = a[6][0];
    run.ep = epoll_create1(0);
    run.us = malloc(LATENCIES * sizeof *run.us);
    for (int i = 0; i < idle; i++)
        (void)dial();
    for (int i = 0; i < conns; i++)
        open_client(&c[i]);
    drive(c, conns, atof(a[4]), atof(a[5]), n_a > 7 ? strtoull(a[7], NULL, 10) : UINT64_MAX);
    free(c);
    free(run.us);
    return 0;
}

int
main(int argc, char **argv)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
    if (argc == 3 && strcmp(argv[1], "origin") == 0)
        return origin(atoi(argv[2]));
    if (argc >= 9 && strcmp(argv[1], "clients") == 0)
        return clients(argv + 2, argc - 2);
    fputs("usage: load origin PORT | load clients PROXY ORIGIN CONNS IDLE RATE SECONDS "
          "hit|unique|pass|soak [MAX]\n",
          stderr);
    return 2;
}
