/* load - clients for tools/bench: at a fixed rate or as fast as the proxy can, or silent.
 *
 *   load idle PROXY ORIGIN N USED          opens N connections, each of which has made a request
 *                                          when USED is 1; holds them until standard input ends
 *   load run PROXY ORIGIN CONNS MIX RATE SECONDS MAX
 *                                          MIX hit, unique or soak; RATE 0: saturated; MAX 0: none
 *
 * It says `ready` when the connections stand and what is to be hit is stored, waits for a line on
 * standard input, so that an observer can take its place, and ends with one line of JSON. One
 * thread, one request at a time on a connection. At a fixed rate the requests are evenly spaced and
 * a latency counts from the moment the request was due: a proxy that falls behind does not get away
 * with it. It knows its origin's answers and is no client in general. */
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
#include <time.h>
#include <unistd.h>

#define HEAD_MAX 2048
#define LATENCIES (1u << 21)
#define PER_SOURCE 20000 /* connections from one of our addresses: there are 28,000 ports */
#define HIT_PATHS 1000
#define TIMEOUT_S 20

enum kind { HIT, UNIQUE, PASS, CHUNKED, POST, TUNNEL, GONE_AT_ONCE, GONE_IN_HEAD, GONE_IN_BODY };
#define KINDS 9
static const char *const kind_names[KINDS] = {"hit",          "miss",         "pass",
                                              "chunked",      "post",         "tunnel",
                                              "gone at once", "gone in head", "gone in body"};

struct client {
    int fd;
    enum kind kind;
    bool busy, opening; /* opening: CONNECT is not answered yet */
    bool head_done, chunked, close_after;
    size_t head_n;
    uint64_t left;
    double due_s;
    char tail[5]; /* the last bytes of a chunked body */
    char head[HEAD_MAX + 1];
};

static struct {
    int proxy, origin, ep;
    const char *mix;
    uint64_t sent, done, errors, bad, by_kind[KINDS];
    float *us;
    uint32_t n_us;
} run;

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
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- connections ---- */

static struct sockaddr_in
loopback(uint32_t host, int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host)};
}

static int
dial(unsigned source)
{
    struct sockaddr_in from = loopback(source, 0), to = loopback(1, run.proxy);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        die("socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&from, sizeof from) < 0)
        die("bind");
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        die("connect to the proxy");
    return fd;
}

static void
client_open(struct client *c)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};

    c->fd = dial(1);
    c->busy = c->opening = false;
    if (epoll_ctl(run.ep, EPOLL_CTL_ADD, c->fd, &e) < 0)
        die("epoll_ctl");
}

/* Who leaves in the middle of an answer resets the connection, as a browser's stop button does;
 * half a head ends in an orderly close. */
static void
client_reopen(struct client *c)
{
    struct linger hard = {1, 0};

    if (c->busy && (c->kind == GONE_AT_ONCE || c->kind == GONE_IN_BODY))
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(c->fd);
    client_open(c);
}

/* ---- what is asked for ---- */

/* Of twenty: ten hits, three misses that are stored, two that are not, one chunked, one POST, one
 * tunnel, two clients that leave: at once, within the head or within a large body, in turn. */
static enum kind
soak_kind(uint64_t n)
{
    static const uint8_t kinds[18] = {HIT,  HIT, UNIQUE,  HIT, PASS, HIT,    HIT, UNIQUE, HIT,
                                      POST, HIT, CHUNKED, HIT, HIT,  TUNNEL, HIT, UNIQUE, PASS};
    unsigned at = (unsigned)(n % 20);

    if (at < 18)
        return kinds[at];
    return (enum kind)(GONE_AT_ONCE + (n / 20 + at) % 3);
}

static enum kind
next_kind(void)
{
    switch (run.mix[0]) {
    case 'h':
        return HIT;
    case 'u':
        return UNIQUE;
    default:
        return soak_kind(run.sent);
    }
}

static int
request_of(enum kind kind, char *out, size_t room)
{
    static const char *const fields = "User-Agent: load\r\nAccept: */*\r\n";
    char path[64];

    if (kind == TUNNEL)
        return snprintf(out, room, "CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
                        run.origin, run.origin);
    if (kind == UNIQUE)
        snprintf(path, sizeof path, "hu-%x-%llx", (unsigned)getpid(), (unsigned long long)run.sent);
    else
        snprintf(path, sizeof path, "%c%u",
                 kind == HIT            ? 'h'
                 : kind == CHUNKED      ? 'c'
                 : kind == GONE_IN_BODY ? 'b'
                                        : 'n',
                 (unsigned)(run.sent % HIT_PATHS));
    return snprintf(out, room, "%s http://127.0.0.1:%d/%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s%s",
                    kind == POST ? "POST" : "GET", run.origin, path, run.origin, fields,
                    kind == POST ? "Content-Length: 5\r\n\r\nhello" : "\r\n");
}

static void
expect_head(struct client *c)
{
    c->head_n = 0;
    c->head_done = c->chunked = c->close_after = false;
}

static void
client_finish(struct client *c)
{
    double took_s = now_s() - c->due_s;

    run.done++;
    run.by_kind[c->kind]++;
    if (run.n_us < LATENCIES && c->kind < GONE_AT_ONCE)
        run.us[run.n_us++] = (float)(took_s * 1e6);
    if (c->kind >= TUNNEL || c->close_after)
        client_reopen(c);
    c->busy = false;
}

static void
client_fail(struct client *c)
{
    run.errors += c->busy;
    client_reopen(c);
}

static void
client_send(struct client *c, double due_s)
{
    char out[512];
    int n;

    c->kind = next_kind();
    n = request_of(c->kind, out, sizeof out);
    if (c->kind == GONE_IN_HEAD)
        n /= 2;
    c->busy = true;
    c->opening = c->kind == TUNNEL;
    c->due_s = due_s;
    expect_head(c);
    run.sent++;
    if (send(c->fd, out, (size_t)n, MSG_NOSIGNAL) != n)
        client_fail(c);
    else if (c->kind == GONE_AT_ONCE || c->kind == GONE_IN_HEAD)
        client_finish(c);
}

/* ---- what comes back ---- */

/* Through the tunnel goes a plain request, in place of the TLS a browser would speak. */
static void
tunnel_send(struct client *c)
{
    static const char request[] = "GET /n1 HTTP/1.1\r\nHost: origin\r\n\r\n";

    c->opening = false;
    expect_head(c);
    if (send(c->fd, request, sizeof request - 1, MSG_NOSIGNAL) != (ssize_t)sizeof request - 1)
        client_fail(c);
}

static void
read_head(struct client *c)
{
    char *length = strcasestr(c->head, "\r\ncontent-length:");

    run.bad += memcmp(c->head, "HTTP/1.1 200", 12) != 0;
    c->chunked = strcasestr(c->head, "\r\ntransfer-encoding: chunked") != NULL;
    c->close_after = strcasestr(c->head, "\r\nconnection: close") != NULL;
    c->left = length ? strtoull(length + 17, NULL, 10) : 0;
    c->head_done = true;
    memset(c->tail, 0, sizeof c->tail);
}

/* How many of these bytes belong to the head; the head is read when they end it. */
static size_t
take_head(struct client *c, const char *at, size_t n)
{
    size_t had = c->head_n, from = had > 3 ? had - 3 : 0;
    size_t taken = n < HEAD_MAX - had ? n : HEAD_MAX - had;
    char *end;

    memcpy(c->head + had, at, taken);
    c->head_n += taken;
    c->head[c->head_n] = '\0';
    end = memmem(c->head + from, c->head_n - from, "\r\n\r\n", 4);
    if (!end)
        return taken;
    taken = (size_t)(end + 4 - c->head) - had;
    end[2] = '\0';
    read_head(c);
    return taken;
}

/* True when the body has ended. A chunked one ends in a last chunk: our bodies are all x. */
static bool
take_body(struct client *c, const char *at, size_t n)
{
    if (!c->chunked) {
        c->left -= n < c->left ? n : c->left;
        return c->left == 0;
    }
    if (n >= 5) {
        memcpy(c->tail, at + n - 5, 5);
    } else {
        memmove(c->tail, c->tail + n, 5 - n);
        memcpy(c->tail + 5 - n, at, n);
    }
    return memcmp(c->tail, "0\r\n\r\n", 5) == 0;
}

static void
client_take(struct client *c, const char *at, size_t n)
{
    size_t used = c->head_done ? 0 : take_head(c, at, n);

    if (!c->head_done) {
        if (used < n)
            client_fail(c);
        return;
    }
    if (c->opening) {
        tunnel_send(c);
        return;
    }
    if (take_body(c, at + used, n - used) || c->kind == GONE_IN_BODY)
        client_finish(c);
}

static void
client_read(struct client *c)
{
    static char in[65536];
    ssize_t n = recv(c->fd, in, sizeof in, MSG_DONTWAIT);

    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0 || !c->busy)
        client_fail(c);
    else
        client_take(c, in, (size_t)n);
}

/* ---- driving ---- */

static void
wait_and_read(double until_s)
{
    struct epoll_event got[256];
    double wait_s = until_s - now_s();
    struct timespec t = {0, 0};
    int n;

    if (wait_s > 0.1)
        wait_s = 0.1;
    if (wait_s > 0)
        t.tv_nsec = (long)(wait_s * 1e9);
    n = epoll_pwait2(run.ep, got, 256, &t, NULL);
    for (int i = 0; i < n; i++)
        client_read(got[i].data.ptr);
}

/* Those that wait longest are let go, so that one lost answer does not end the measurement. */
static void
drop_overdue(struct client *clients, unsigned n, double t)
{
    for (unsigned i = 0; i < n; i++)
        if (clients[i].busy && t - clients[i].due_s > TIMEOUT_S)
            client_fail(&clients[i]);
}

static bool
any_busy(const struct client *clients, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (clients[i].busy)
            return true;
    return false;
}

struct plan {
    double rate, seconds;
    uint64_t max; /* requests; UINT64_MAX: none */
};

/* Starts what is due on clients that are free, in turn; returns when the next one is due. */
static double
start_due(struct client *clients, unsigned n, const struct plan *p, double began, double t)
{
    static unsigned next;
    uint64_t due = p->rate > 0 ? (uint64_t)((t - began) * p->rate) + 1 : UINT64_MAX;

    for (unsigned tried = 0; tried < n && run.sent < due && run.sent < p->max; tried++) {
        struct client *c = &clients[next++ % n];

        if (!c->busy)
            client_send(c, p->rate > 0 ? began + (double)run.sent / p->rate : now_s());
    }
    return p->rate > 0 && run.sent >= due ? began + (double)run.sent / p->rate : t + 0.1;
}

/* Returns the time the requests took, the last answers included. */
static double
drive(struct client *clients, unsigned n, const struct plan *p)
{
    double began = now_s(), t = began, checked = began;

    while (t - began < p->seconds && run.sent < p->max) {
        wait_and_read(start_due(clients, n, p, began, t));
        t = now_s();
        if (t - checked > 1) {
            drop_overdue(clients, n, t);
            checked = t;
        }
    }
    while (any_busy(clients, n)) {
        wait_and_read(now_s() + 0.1);
        drop_overdue(clients, n, now_s());
    }
    return now_s() - began;
}

static void
forget_counts(void)
{
    run.sent = run.done = run.errors = run.bad = run.n_us = 0;
    memset(run.by_kind, 0, sizeof run.by_kind);
}

static void
ready_and_wait(void)
{
    char line[64];

    puts("ready");
    fflush(stdout);
    if (read(0, line, sizeof line) <= 0)
        exit(0);
}

/* ---- what came of it ---- */

static int
by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static void
report(double took_s)
{
    qsort(run.us, run.n_us, sizeof *run.us, by_size);
    printf("{\"requests\": %llu, \"errors\": %llu, \"not_200\": %llu, \"seconds\": %.4f, "
           "\"p50_us\": %.0f, \"p99_us\": %.0f, \"p999_us\": %.0f, \"kinds\": {",
           (unsigned long long)run.done, (unsigned long long)run.errors,
           (unsigned long long)run.bad, took_s, run.n_us ? (double)run.us[run.n_us / 2] : 0,
           run.n_us ? (double)run.us[(uint64_t)run.n_us * 99 / 100] : 0,
           run.n_us ? (double)run.us[(uint64_t)run.n_us * 999 / 1000] : 0);
    for (unsigned i = 0; i < KINDS; i++)
        printf("%s\"%s\": %llu", i ? ", " : "", kind_names[i], (unsigned long long)run.by_kind[i]);
    puts("}}");
}

/* ---- the two forms ---- */

static int
run_clients(unsigned n, const char *mix, const struct plan *p)
{
    struct client *clients = calloc(n, sizeof *clients);
    const struct plan first = {0, TIMEOUT_S, n > HIT_PATHS ? n : HIT_PATHS};
    double took_s;

    run.mix = "hit";
    run.us = malloc(LATENCIES * sizeof *run.us);
    if (!clients || !run.us)
        die("memory");
    for (unsigned i = 0; i < n; i++)
        client_open(&clients[i]);
    drive(clients, n, &first);
    if (run.errors)
        die("the first requests failed");
    ready_and_wait();
    forget_counts();
    run.mix = mix;
    took_s = drive(clients, n, p);
    report(took_s);
    return 0;
}

/* One small request, answered before the next: only that it was made counts. */
static void
use_once(int fd)
{
    char text[4096];
    int n = request_of(HIT, text, sizeof text);
    size_t got = 0;

    if (send(fd, text, (size_t)n, MSG_NOSIGNAL) != n)
        die("send");
    while (got < 1024) { /* the body alone has these */
        ssize_t more = recv(fd, text, sizeof text, 0);

        if (more <= 0)
            die("no answer");
        got += (size_t)more;
    }
}

static int
hold_idle(unsigned n, bool used)
{
    struct timeval patience = {TIMEOUT_S, 0};

    for (unsigned i = 0; i < n; i++) {
        int fd = dial(2 + i / PER_SOURCE);

        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        if (used)
            use_once(fd);
    }
    ready_and_wait();
    return 0;
}

static void
prepare(char **argv)
{
    struct rlimit limit;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1000);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    run.proxy = atoi(argv[2]);
    run.origin = atoi(argv[3]);
    run.ep = epoll_create1(EPOLL_CLOEXEC);
}

int
main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "idle") == 0) {
        prepare(argv);
        return hold_idle((unsigned)atoi(argv[4]), atoi(argv[5]) != 0);
    }
    if (argc == 9 && strcmp(argv[1], "run") == 0) {
        uint64_t max = strtoull(argv[8], NULL, 10);
        struct plan p = {atof(argv[6]), atof(argv[7]), max ? max : UINT64_MAX};

        prepare(argv);
        return run_clients((unsigned)atoi(argv[4]), argv[5], &p);
    }
    fputs("usage: load idle PROXY ORIGIN N USED | load run PROXY ORIGIN CONNS hit|unique|soak RATE "
          "SECONDS MAX\n",
          stderr);
    return 2;
}
