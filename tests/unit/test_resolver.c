/* tests/unit/test_resolver.c - the resolver against a scripted name server on a loopback port (UDP
 * and TCP). The first label of a name tells the server what to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fds.h"
#include "dns/resolver.h"

/* ---- the name server ---- */

enum { A = 1, AAAA = 28, MESSAGE_BYTES = 2048, LATER_MOST = 16, ASKED_MOST = 256, SLOW_MS = 500,
       LATER_MS = 1200 }; /* the next server is asked before */
enum { NXDOMAIN = 3, SERVFAIL = 2 };

struct question {
    char name[256];
    int type;
    bool tcp;
    unsigned before;             /* how often this was asked already */
};

struct later {
    int64_t at_ms;
    struct sockaddr_storage to;
    socklen_t to_n;
    unsigned char message[MESSAGE_BYTES];
    size_t n;
};

static struct server {
    int udp, tcp, stop[2];
    uint16_t port;
    pthread_t thread;
    pthread_mutex_t lock;
    struct question asked[ASKED_MOST];
    unsigned n_asked;
    struct later later[LATER_MOST];
} server;

struct reply {
    unsigned char at[MESSAGE_BYTES];
    size_t n;
    int64_t after_ms;
    bool silent;
};

static void
add(struct reply *r, const void *bytes, size_t n)
{
    memcpy(r->at + r->n, bytes, n);
    r->n += n;
}

static void
add_record(struct reply *r, int section, int type, uint32_t ttl, const void *data, size_t n)
{
    unsigned char head[12] = {0xc0, 12, 0, (unsigned char)type, 0, 1};

    for (unsigned i = 0; i < 4; i++)
        head[6 + i] = (unsigned char)(ttl >> (24 - 8 * i));
    head[11] = (unsigned char)n;
    add(r, head, sizeof(head));
    add(r, data, n);
    r->at[section]++;            /* low byte of the section's count */
}

static void
add_v4(struct reply *r, unsigned last, uint32_t ttl)
{
    add_record(r, 7, A, ttl, (unsigned char[]){192, 0, 2, (unsigned char)last}, 4);
}

static void
add_v6(struct reply *r, unsigned last, uint32_t ttl)
{
    unsigned char a[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = (unsigned char)last};

    add_record(r, 7, AAAA, ttl, a, 16);
}

static void
add_soa(struct reply *r, unsigned minimum)
{
    unsigned char data[22] = {[21] = (unsigned char)minimum};

    add_record(r, 9, 6, 3600, data, sizeof(data));
}

static void
negative(struct reply *r, int rcode, unsigned soa_minimum)
{
    r->at[3] = (unsigned char)(0x80 | rcode);
    if (soa_minimum)
        add_soa(r, soa_minimum);
}

static void
address(struct reply *r, const struct question *q, uint32_t ttl)
{
    if (q->type == A)
        add_v4(r, 1, ttl);
    else
        add_v6(r, 1, ttl);
}

/* What the server knows. */
static void
script(const struct question *q, struct reply *r)
{
    struct span name = span_str(q->name), label = span_first(name, span_index(name, '.'));
    bool v4 = q->type == A;

    if (span_eq(label, SPAN("both"))) {
        address(r, q, 60);
    } else if (span_eq(label, SPAN("zero"))) {
        v4 ? add_v4(r, q->before + 1, 0) : negative(r, 0, 60);
    } else if (span_eq(label, SPAN("brief"))) {
        q->before == 0 ? address(r, q, 1) : negative(r, SERVFAIL, 0);
    } else if (span_eq(label, SPAN("empty"))) {
        negative(r, 0, 60);
    } else if (span_eq(label, SPAN("slow6"))) {
        address(r, q, 60);
        r->after_ms = v4 ? 0 : SLOW_MS;
    } else if (span_eq(label, SPAN("later"))) {
        address(r, q, 60);
        r->after_ms = LATER_MS;
    } else if (span_eq(label, SPAN("slow"))) {
        address(r, q, 60);
        r->after_ms = 100;
    } else if (span_eq(label, SPAN("fail6"))) {
        v4 ? add_v4(r, 1, 60) : negative(r, SERVFAIL, 0);
    } else if (span_eq(label, SPAN("fail"))) {
        negative(r, SERVFAIL, 0);
    } else if (span_eq(label, SPAN("silent"))) {
        r->silent = true;
    } else if (span_eq(label, SPAN("once"))) {
        address(r, q, 60);
        r->silent = q->before == 0; /* the first packet is lost */
    } else if (span_eq(label, SPAN("big")) && v4) {
        for (unsigned i = 1; q->tcp && i <= 40; i++)
            add_v4(r, i, 60);
        r->at[2] |= q->tcp ? 0 : 2; /* TC */
    } else if (span_eq(label, SPAN("big"))) {
        negative(r, 0, 60);
    } else if (span_eq(label, SPAN("broken"))) {
        r->at[7] = 200;          /* 200 answers, none there */
    } else if (span_eq(label, SPAN("mapped"))) {
        unsigned char a[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

        v4 ? add_v4(r, 1, 60) : add_record(r, 7, AAAA, 60, a, 16);
    } else if (span_eq(name, SPAN("printer.corp.test"))) {
        address(r, q, 60);
    } else {
        negative(r, NXDOMAIN, 2);
    }
}

static size_t
read_question(const unsigned char *m, size_t n, struct question *q)
{
    size_t at = 12, to = 0;

    while (at < n && m[at] != 0 && at + m[at] + 5 < n && to + m[at] + 2 < sizeof(q->name)) {
        if (to > 0)
            q->name[to++] = '.';
        memcpy(q->name + to, m + at + 1, m[at]);
        to += m[at];
        at += m[at] + 1u;
    }
    q->name[to] = '\0';
    q->type = m[at + 2];
    return at + 5;
}

static void
answer(const unsigned char *m, size_t n, bool tcp, struct reply *r)
{
    struct question q = {.tcp = tcp};
    size_t head_n = read_question(m, n, &q);

    r->n = 0;
    r->after_ms = 0;
    r->silent = false;
    add(r, m, head_n);
    memset(r->at + 6, 0, 6);
    r->at[2] = 0x81;
    r->at[3] = 0x80;
    pthread_mutex_lock(&server.lock);
    for (unsigned i = 0; i < server.n_asked; i++) {
        if (strcmp(server.asked[i].name, q.name) == 0 && server.asked[i].type == q.type)
            q.before++;
    }
    if (server.n_asked < ASKED_MOST)
        server.asked[server.n_asked++] = q;
    pthread_mutex_unlock(&server.lock);
    script(&q, r);
}

static int64_t
now_ms(void)
{
    return clock_exact_mono_ns() / 1000000;
}

static void
keep_for_later(const struct reply *r, const struct sockaddr_storage *to, socklen_t to_n)
{
    for (unsigned i = 0; i < LATER_MOST; i++) {
        struct later *l = &server.later[i];

        if (l->n > 0)
            continue;
        *l = (struct later){.at_ms = now_ms() + r->after_ms, .to = *to, .to_n = to_n, .n = r->n};
        memcpy(l->message, r->at, r->n);
        return;
    }
}

static void
serve_udp(void)
{
    unsigned char m[MESSAGE_BYTES];
    struct sockaddr_storage from;
    socklen_t from_n = sizeof(from);
    ssize_t n = recvfrom(server.udp, m, sizeof(m), 0, (struct sockaddr *)&from, &from_n);
    struct reply r;

    if (n < 17)
        return;
    answer(m, (size_t)n, false, &r);
    if (!r.silent)
        keep_for_later(&r, &from, from_n);
}

static void
serve_later(void)
{
    for (unsigned i = 0; i < LATER_MOST; i++) {
        struct later *l = &server.later[i];

        if (l->n == 0 || l->at_ms > now_ms())
            continue;
        sendto(server.udp, l->message, l->n, 0, (struct sockaddr *)&l->to, l->to_n);
        l->n = 0;
    }
}

/* One question, written in two parts, and the connection is closed. */
static void
serve_tcp(void)
{
    int fd = accept(server.tcp, NULL, NULL);
    unsigned char m[MESSAGE_BYTES], head[2];
    ssize_t n = recv(fd, head, 2, MSG_WAITALL);
    struct reply r;

    n = n == 2 ? recv(fd, m, (size_t)(head[0] << 8 | head[1]), MSG_WAITALL) : -1;
    if (n > 16) {
        answer(m, (size_t)n, true, &r);
        head[0] = (unsigned char)(r.n >> 8);
        head[1] = (unsigned char)r.n;
        send(fd, head, 2, MSG_NOSIGNAL);
        send(fd, r.at, r.n / 2, MSG_NOSIGNAL);
        usleep(5000);
        send(fd, r.at + r.n / 2, r.n - r.n / 2, MSG_NOSIGNAL);
    }
    close(fd);
}

static void *
serve(void *arg)
{
    struct pollfd fds[3] = {{server.udp, POLLIN, 0}, {server.tcp, POLLIN, 0},
                            {server.stop[0], POLLIN, 0}};

    while (poll(fds, 3, 5) >= 0 && fds[2].revents == 0) {
        if (fds[0].revents)
            serve_udp();
        if (fds[1].revents)
            serve_tcp();
        serve_later();
    }
    return NULL;
}

static int
bind_to(int type, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    close(fd);
    return -1;
}

static int
server_start(void **state)
{
    struct sockaddr_in a;
    socklen_t n = sizeof(a);

    pthread_mutex_init(&server.lock, NULL);
    for (server.tcp = -1; server.tcp < 0;) {
        server.udp = bind_to(SOCK_DGRAM, 0);
        getsockname(server.udp, (struct sockaddr *)&a, &n);
        server.port = ntohs(a.sin_port);
        server.tcp = bind_to(SOCK_STREAM, server.port);
        if (server.tcp < 0)
            close(server.udp);
    }
    listen(server.tcp, 5);
    return pipe(server.stop) || pthread_create(&server.thread, NULL, serve, NULL);
}

static int
server_stop(void **state)
{
    close(server.stop[1]);
    pthread_join(server.thread, NULL);
    close(server.stop[0]);
    close(server.udp);
    close(server.tcp);
    return 0;
}

static unsigned
times_asked(const char *name, int type)
{
    unsigned n = 0;

    pthread_mutex_lock(&server.lock);
    for (unsigned i = 0; i < server.n_asked; i++)
        n += strcmp(server.asked[i].name, name) == 0 && server.asked[i].type == type;
    pthread_mutex_unlock(&server.lock);
    return n;
}

/* ---- the asker ---- */

struct asker {
    struct world *world;
    struct dns_answer answer;
    struct dns_query *query;
    unsigned answered;
    int64_t took_ms, asked_ms;
    bool at_once;
    struct dns_query **cancels;  /* another's, from inside the callback */
};

struct world {
    struct loop *loop;
    struct answer_cache *cache;
    struct resolver *resolver;
    struct loop_timer patience;
    unsigned waiting;
    char servers[64];
};

static void
on_patience(void *owner)
{
    loop_stop(((struct world *)owner)->loop);
}

static struct resolver_options
usual(struct world *w)
{
    snprintf(w->servers, sizeof(w->servers), "127.0.0.1:%u", server.port);
    return (struct resolver_options){
        .nameservers = w->servers,
        .timeout_ms = 3000,
        .retransmit_ms = 1000,
        .positive_ttl_s = 3600,
        .negative_ttl_s = 60,
    };
}

static void
world_make(struct world *w, const struct resolver_options *o)
{
    w->loop = loop_new(LOOP_AUTO);
    w->cache = answer_cache_new(o);
    w->resolver = resolver_new(w->loop, w->cache, o);
    loop_timer_init(&w->patience, w->loop, on_patience, w);
}

static int
world_open(void **state)
{
    static struct world w;
    struct resolver_options o = usual(&w);

    pthread_mutex_lock(&server.lock);
    server.n_asked = 0;
    pthread_mutex_unlock(&server.lock);
    w.waiting = 0;
    world_make(&w, &o);
    *state = &w;
    return 0;
}

static int
world_close(void **state)
{
    struct world *w = *state;
    struct fd_census_row rows[FD_PURPOSES];

    loop_timer_close(&w->patience);
    resolver_free(&w->resolver);
    answer_cache_free(&w->cache);
    loop_free(w->loop);
    fds_census(rows);
    return rows[FD_DNS].now != 0;
}

static void
world_again(struct world *w, const struct resolver_options *o)
{
    void *state = w;

    world_close(&state);
    world_make(w, o);
}

static void
on_answer(void *owner, const struct dns_answer *a)
{
    struct asker *k = owner;

    CHECK(!k->at_once && k->answered == 0);
    k->answered++;
    k->answer = *a;
    k->query = NULL;
    k->took_ms = now_ms() - k->asked_ms;
    if (k->cancels && *k->cancels) {
        resolver_cancel(k->cancels);
        k->world->waiting--;
    }
    if (--k->world->waiting == 0)
        loop_stop(k->world->loop);
}

static void
ask(struct world *w, struct asker *k, const char *host)
{
    *k = (struct asker){.world = w, .asked_ms = now_ms(), .cancels = k->cancels};
    k->at_once = resolver_ask(w->resolver, span_str(host), on_answer, k, &k->answer, &k->query);
    assert_int_equal(k->answered, 0); /* never from inside */
    assert_int_equal(k->at_once, k->query == NULL);
    w->waiting += !k->at_once;
}

static void
run_for(struct world *w, int64_t ms)
{
    loop_timer_set(&w->patience, ms);
    loop_run(w->loop);
    loop_timer_stop(&w->patience);
}

static struct asker
resolve(struct world *w, const char *host)
{
    struct asker k = {.cancels = NULL};

    ask(w, &k, host);
    if (!k.at_once)
        run_for(w, 10000);
    assert_true(k.at_once || k.answered == 1);
    return k;
}

static void
assert_addresses(const struct asker *k, const char *expected)
{
    char text[DNS_ADDRESSES * (ADDR_TEXT_MAX + 1)] = "", *to = text;

    for (unsigned i = 0; i < k->answer.n; i++) {
        if (i > 0)
            *to++ = ' ';
        to += addr_format(&k->answer.at[i], to);
    }
    *to = '\0';
    assert_string_equal(text, expected);
    assert_int_equal(k->answer.status, k->answer.n ? DNS_OK : k->answer.status);
}

/* ---- tests ---- */

static void
both_families_are_asked_and_the_answer_is_kept(void **state)
{
    struct asker k = resolve(*state, "both.test");

    assert_addresses(&k, "2001:db8::1 192.0.2.1");
    assert_false(k.answer.from_cache);
    assert_int_equal(k.answer.ttl_s, 60);
    k = resolve(*state, "BOTH.test.");
    assert_true(k.at_once && k.answer.from_cache);
    assert_addresses(&k, "2001:db8::1 192.0.2.1");
    assert_int_equal(times_asked("both.test", A), 1);
    assert_int_equal(times_asked("both.test", AAAA), 1);
}

static void
literals_and_localhost_are_answered_at_once(void **state)
{
    struct asker k = resolve(*state, "192.0.2.9");

    assert_true(k.at_once && k.answer.from_cache);
    assert_addresses(&k, "192.0.2.9");
    k = resolve(*state, "2001:db8::9");
    assert_addresses(&k, "2001:db8::9");
    k = resolve(*state, "[::1]");
    assert_addresses(&k, "::1");
    k = resolve(*state, "localhost");
    assert_true(k.at_once);
    assert_addresses(&k, "::1 127.0.0.1");
}

static void
a_name_no_resolver_accepts_is_refused_at_once(void **state)
{
    static const char *bad[] = {
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.test", "a..test", "",
        ".", "a b.test", "a\\.test", "[192.0.2.1", "a/b"};

    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct asker k = resolve(*state, bad[i]);

        assert_true(k.at_once);
        assert_int_equal(k.answer.status, DNS_BAD_NAME);
    }
    assert_int_equal(server.n_asked, 0);
}

/* RFC 2308 section 5: as long as the SOA says, here 2 s. */
static void
nxdomain_is_kept_as_long_as_its_soa_says(void **state)
{
    struct asker k = resolve(*state, "nope.test");

    assert_int_equal(k.answer.status, DNS_NO_NAME);
    assert_int_equal(k.answer.ttl_s, 2);
    k = resolve(*state, "nope.test");
    assert_true(k.at_once);
    assert_int_equal(k.answer.status, DNS_NO_NAME);
    usleep(2050000);
    clock_tick();
    k = resolve(*state, "nope.test");
    assert_false(k.at_once);
    assert_int_equal(times_asked("nope.test", A), 2);
}

static void
a_name_without_addresses_is_no_name(void **state)
{
    struct asker k = resolve(*state, "empty.test");

    assert_int_equal(k.answer.status, DNS_NO_NAME);
    assert_int_equal(k.answer.ttl_s, 60);
}

static void
ttl_0_is_for_those_who_asked_only(void **state)
{
    struct asker k = resolve(*state, "zero.test");

    assert_addresses(&k, "192.0.2.1");
    assert_int_equal(k.answer.ttl_s, 0);
    k = resolve(*state, "zero.test");
    assert_false(k.at_once);
    assert_addresses(&k, "192.0.2.2");
}

static void
after_its_ttl_an_address_is_not_used_though_the_server_fails(void **state)
{
    struct asker k = resolve(*state, "brief.test");

    assert_addresses(&k, "2001:db8::1 192.0.2.1");
    usleep(1050000);
    clock_tick();
    k = resolve(*state, "brief.test");
    assert_int_equal(k.answer.status, DNS_FAILED);
    assert_int_equal(k.answer.n, 0);
}

/* RFC 1035 section 4.2.1: a truncated answer is asked for again over TCP, on the same port. */
static void
a_truncated_answer_comes_over_tcp(void **state)
{
    struct asker k = resolve(*state, "big.test");

    assert_int_equal(k.answer.status, DNS_OK);
    assert_int_equal(k.answer.n, DNS_ADDRESSES);
    assert_int_equal(times_asked("big.test", A), 2);
}

/* RFC 8305 section 3: 50 ms after the first useful answer; the later one still enters the cache. */
static void
a_slow_family_is_not_waited_for(void **state)
{
    struct world *w = *state;
    struct asker k = resolve(w, "slow6.test");

    assert_addresses(&k, "192.0.2.1");
    assert_in_range(k.took_ms, 40, 200);
    k = resolve(w, "slow6.test");
    assert_true(k.at_once);
    assert_addresses(&k, "192.0.2.1");
    for (unsigned i = 0; i < 50 && k.answer.n < 2; i++) {
        run_for(w, 100);
        k = resolve(w, "slow6.test");
        assert_true(k.at_once);
    }
    assert_addresses(&k, "2001:db8::1 192.0.2.1");
    assert_int_equal(times_asked("slow6.test", AAAA), 1);
}

static void
one_family_that_fails_does_not_fail_the_name(void **state)
{
    struct asker k = resolve(*state, "fail6.test");

    assert_addresses(&k, "192.0.2.1");
    assert_true(resolve(*state, "fail6.test").at_once);
}

/* One name server: its SERVFAIL is the answer, and it is not asked again for a while. */
static void
a_failure_is_told_and_kept_for_a_while(void **state)
{
    struct asker k = resolve(*state, "fail.test");

    assert_int_equal(k.answer.status, DNS_FAILED);
    assert_in_range(k.took_ms, 0, 500);
    assert_int_equal(times_asked("fail.test", A), 1);
    k = resolve(*state, "fail.test");
    assert_true(k.at_once && k.answer.from_cache);
    assert_int_equal(k.answer.status, DNS_FAILED);
}

static void
a_broken_message_is_a_failure(void **state)
{
    struct asker k = resolve(*state, "broken.test");

    assert_int_equal(k.answer.status, DNS_FAILED);
    assert_int_equal(k.answer.n, 0);
}

static void
an_ipv4_address_in_ipv6_clothes_is_not_used(void **state)
{
    struct asker k = resolve(*state, "mapped.test");

    assert_addresses(&k, "192.0.2.1");
}

static void
a_lost_packet_is_sent_again(void **state)
{
    struct world *w = *state;
    struct resolver_options o = usual(w);
    struct asker k;

    o.retransmit_ms = 100;
    world_again(w, &o);
    k = resolve(w, "once.test");
    assert_addresses(&k, "2001:db8::1 192.0.2.1");
    assert_in_range(k.took_ms, 50, 800);
}

/* The others are answered meanwhile, and the whole question has its time. */
static void
a_silent_server_delays_only_those_who_asked_it(void **state)
{
    struct world *w = *state;
    struct resolver_options o = usual(w);
    struct asker silent = {.cancels = NULL}, k;

    o.timeout_ms = 600;
    o.retransmit_ms = 200;
    world_again(w, &o);
    ask(w, &silent, "silent.test");
    w->waiting = 0;
    k = resolve(w, "both.test");
    assert_in_range(k.took_ms, 0, 300);
    assert_int_equal(silent.answered, 0);
    w->waiting = 1;
    run_for(w, 10000);
    assert_int_equal(silent.answered, 1);
    assert_int_equal(silent.answer.status, DNS_TIMEOUT);
    assert_in_range(silent.took_ms, 590, 900);
    assert_in_range(times_asked("silent.test", A), 2, 4);
    k = resolve(w, "silent.test");
    assert_true(k.at_once);
    assert_int_equal(k.answer.status, DNS_TIMEOUT);
}

static void
equal_questions_are_one_on_the_wire(void **state)
{
    struct world *w = *state;
    struct asker k[5] = {{.cancels = NULL}};

    for (unsigned i = 0; i < 5; i++)
        ask(w, &k[i], i % 2 ? "SLOW.test" : "slow.test.");
    run_for(w, 10000);
    for (unsigned i = 0; i < 5; i++)
        assert_addresses(&k[i], "2001:db8::1 192.0.2.1");
    assert_int_equal(times_asked("slow.test", A), 1);
    assert_int_equal(times_asked("slow.test", AAAA), 1);
}

static void
cancelling_one_does_not_disturb_the_others(void **state)
{
    struct world *w = *state;
    struct asker k[4] = {{.cancels = NULL}};

    for (unsigned i = 0; i < 4; i++) {
        k[i].cancels = i == 1 ? &k[2].query : NULL;
        ask(w, &k[i], "slow.test");
    }
    resolver_cancel(&k[0].query);
    assert_null(k[0].query);
    w->waiting--;
    run_for(w, 10000);
    assert_int_equal(k[0].answered, 0);
    assert_int_equal(k[1].answered, 1);
    assert_int_equal(k[2].answered, 0); /* cancelled from inside the first one's callback */
    assert_int_equal(k[3].answered, 1);
    resolver_cancel(&k[0].query);
}

static void
a_cancelled_question_still_fills_the_cache(void **state)
{
    struct world *w = *state;
    struct asker k = {.cancels = NULL};

    ask(w, &k, "slow.test");
    resolver_cancel(&k.query);
    w->waiting = 0;
    run_for(w, 250);
    assert_int_equal(k.answered, 0);
    k = resolve(w, "slow.test");
    assert_true(k.at_once);
}

/* c-ares fails inside the call that asks: the callback comes from the loop all the same, and a lack
 * of descriptors here is no property of the name. */
static void
without_a_descriptor_the_question_fails_from_the_loop_and_is_not_kept(void **state)
{
    struct world *w = *state;
    struct rlimit usually, none;
    struct asker k = {.cancels = NULL};

    getrlimit(RLIMIT_NOFILE, &usually);
    none = (struct rlimit){3, usually.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    ask(w, &k, "both.test");
    setrlimit(RLIMIT_NOFILE, &usually);
    run_for(w, 10000);
    assert_int_equal(k.answered, 1);
    assert_int_equal(k.answer.status, DNS_FAILED);
    k = resolve(w, "both.test");
    assert_false(k.at_once);
    assert_addresses(&k, "2001:db8::1 192.0.2.1");
}

static void
a_server_that_refuses_leaves_it_to_the_next(void **state)
{
    struct world *w = *state;
    struct resolver_options o = usual(w);
    char servers[80];
    struct asker k;

    snprintf(servers, sizeof(servers), "127.0.0.1:1 %s", w->servers);
    o.nameservers = servers;
    world_again(w, &o);
    k = resolve(w, "both.test");
    assert_addresses(&k, "2001:db8::1 192.0.2.1");
    assert_in_range(k.took_ms, 0, 500);
    o.nameservers = "127.0.0.1:1";
    world_again(w, &o);
    k = resolve(w, "both.test");
    assert_int_equal(k.answer.status, DNS_FAILED);
    assert_in_range(k.took_ms, 0, 500);
}

/* A port where nobody answers; the system keeps what is sent there. */
static uint16_t
silent_port(int *fd)
{
    struct sockaddr_in a;
    socklen_t n = sizeof(a);

    *fd = bind_to(SOCK_DGRAM, 0);
    getsockname(*fd, (struct sockaddr *)&a, &n);
    return ntohs(a.sin_port);
}

static void
a_silent_first_server_costs_a_second_and_only_once(void **state)
{
    struct world *w = *state;
    struct resolver_options o = usual(w);
    char servers[96];
    struct asker k;
    int fd;

    snprintf(servers, sizeof(servers), "127.0.0.1:%u %s", silent_port(&fd), w->servers);
    o.nameservers = servers;
    o.retransmit_ms = 5000;
    o.timeout_ms = 30000;
    world_again(w, &o);
    k = resolve(w, "both.test");
    assert_addresses(&k, "2001:db8::1 192.0.2.1");
    assert_in_range(k.took_ms, 950, 1600);
    k = resolve(w, "both.other.test");
    assert_addresses(&k, "2001:db8::1 192.0.2.1");
    assert_in_range(k.took_ms, 0, 500);
    resolver_free(&w->resolver); /* another worker has been told by the cache */
    w->resolver = resolver_new(w->loop, w->cache, &o);
    k = resolve(w, "both.third.test");
    assert_in_range(k.took_ms, 0, 500);
    close(fd);
}

static void
a_third_server_is_asked_after_two_intervals(void **state)
{
    struct world *w = *state;
    struct resolver_options o = usual(w);
    char servers[128];
    struct asker k;
    int a, b;

    snprintf(servers, sizeof(servers), "127.0.0.1:%u,127.0.0.1:%u, %s", silent_port(&a),
             silent_port(&b), w->servers);
    o.nameservers = servers;
    o.retransmit_ms = 300; /* shorter than the second that a silent server has */
    world_again(w, &o);
    k = resolve(w, "nope.test");
    assert_int_equal(k.answer.status, DNS_NO_NAME);
    assert_in_range(k.took_ms, 550, 1000);
    close(a);
    close(b);
}

/* The first server's answer, when it comes after all, is taken. */
static void
the_first_server_is_listened_to_when_the_second_is_dead(void **state)
{
    struct world *w = *state;
    struct resolver_options o = usual(w);
    char servers[96];
    struct asker k;
    int fd;

    snprintf(servers, sizeof(servers), "%s 127.0.0.1:%u", w->servers, silent_port(&fd));
    o.nameservers = servers;
    o.retransmit_ms = 5000;
    world_again(w, &o);
    k = resolve(w, "later.test");
    assert_addresses(&k, "2001:db8::1 192.0.2.1");
    assert_in_range(k.took_ms, LATER_MS - 50, LATER_MS + 500);
    assert_int_equal(times_asked("later.test", A), 1);
    close(fd);
}

/* The name has failed as soon as all have had their time, and not after dns_timeout. */
static void
a_failure_does_not_wait_long_for_the_silent(void **state)
{
    struct world *w = *state;
    struct resolver_options o = usual(w);
    char servers[96];
    struct asker k;
    int fd;

    snprintf(servers, sizeof(servers), "%s 127.0.0.1:%u", w->servers, silent_port(&fd));
    o.nameservers = servers;
    o.retransmit_ms = 400;
    o.timeout_ms = 8000;
    world_again(w, &o);
    k = resolve(w, "fail.test");
    assert_int_equal(k.answer.status, DNS_FAILED);
    assert_in_range(k.took_ms, 350, 1500);
    close(fd);
}

/* The search list goes on while flights of the name before are still in the air. */
static void
a_search_list_goes_on_beside_a_silent_server(void **state)
{
    struct world *w = *state;
    struct resolver_options o = usual(w);
    char servers[96];
    struct asker k;
    int fd;

    snprintf(servers, sizeof(servers), "127.0.0.1:%u %s", silent_port(&fd), w->servers);
    o.nameservers = servers;
    o.retransmit_ms = 200;
    o.defnames = true;
    setenv("LOCALDOMAIN", "first.test corp.test", 1);
    world_again(w, &o);
    unsetenv("LOCALDOMAIN");
    k = resolve(w, "printer");
    assert_addresses(&k, "2001:db8::1 192.0.2.1");
    run_for(w, 4000); /* the silent one's flights land */
    k = resolve(w, "printer");
    assert_true(k.at_once);
    assert_addresses(&k, "2001:db8::1 192.0.2.1");
    close(fd);
}

/* ---- reloads ---- */

static void
a_question_under_way_ends_under_the_old_options(void **state)
{
    struct world *w = *state;
    struct resolver_options o = usual(w);
    struct asker old = {.cancels = NULL}, joined = old, fresh = old;

    ask(w, &old, "slow.test");
    ask(w, &joined, "slow.test");
    run_for(w, 20);
    o.nameservers = "127.0.0.1:1"; /* refuses */
    resolver_reconfigure(w->resolver, &o);
    ask(w, &fresh, "slow.test");
    run_for(w, 10000);
    assert_addresses(&old, "2001:db8::1 192.0.2.1");
    assert_addresses(&joined, "2001:db8::1 192.0.2.1");
    assert_int_equal(fresh.answer.status, DNS_FAILED);
    assert_int_equal(times_asked("slow.test", A), 1);
    run_for(w, 20);
    fresh = resolve(w, "slow.test"); /* the old servers' answer is not kept */
    assert_int_equal(fresh.answer.status, DNS_FAILED);
}

static void
each_reload_is_survived_with_questions_in_the_air(void **state)
{
    struct world *w = *state;
    struct resolver_options o = usual(w);
    struct asker k[8] = {{.cancels = NULL}};

    o.timeout_ms = 300;
    for (unsigned i = 0; i < 8; i++) {
        resolver_reconfigure(w->resolver, &o);
        ask(w, &k[i], i % 2 ? "silent.test" : "slow6.test");
        if (i % 3 == 0) {
            resolver_cancel(&k[i].query);
            w->waiting--;
        }
        run_for(w, 10);
    }
    run_for(w, 10000);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(k[i].answered, i % 3 != 0);
}

static void
a_resolver_ends_with_old_and_new_questions_in_the_air(void **state)
{
    struct world *w = *state;
    struct resolver_options o = usual(w);
    struct asker k[3] = {{.cancels = NULL}};

    ask(w, &k[0], "silent.test");
    ask(w, &k[1], "slow6.test");
    run_for(w, 200); /* told; its other family is in the air */
    resolver_reconfigure(w->resolver, &o);
    ask(w, &k[2], "silent.test");
    w->waiting = 0;
    assert_int_equal(k[0].answered, 0);
    assert_int_equal(k[1].answered, 1);
}

static void
append_domain_and_order_follow_a_reload(void **state)
{
    struct world *w = *state;
    struct resolver_options o = usual(w);
    struct asker k = resolve(w, "printer");

    assert_int_equal(k.answer.status, DNS_NO_NAME);
    o.append_domain = ".corp.test";
    o.v4_first = true;
    resolver_reconfigure(w->resolver, &o);
    answer_cache_reconfigure(w->cache, &o);
    k = resolve(w, "printer");
    assert_addresses(&k, "192.0.2.1 2001:db8::1");
    assert_true(resolve(w, "printer").at_once);
}

static void
pending_questions_are_dropped_with_the_resolver(void **state)
{
    struct world *w = *state;
    struct asker k[3] = {{.cancels = NULL}};

    ask(w, &k[0], "silent.test");
    ask(w, &k[1], "both.test");
    ask(w, &k[2], "big.test");
    run_for(w, 20);
    w->waiting = 0;
    assert_int_equal(k[0].answered, 0);
}

static void
what_worked_comes_first_next_time(void **state)
{
    struct world *w = *state;
    struct asker k = resolve(w, "both.test");
    struct addr worked = k.answer.at[1];

    resolver_prefer(w->resolver, SPAN("Both.test"), &worked);
    k = resolve(w, "both.test");
    assert_addresses(&k, "192.0.2.1 2001:db8::1");
}

static void
v4_first_is_an_order(void **state)
{
    struct world *w = *state;
    struct resolver_options o = usual(w);
    struct asker k;

    o.v4_first = true;
    world_again(w, &o);
    k = resolve(w, "both.test");
    assert_addresses(&k, "192.0.2.1 2001:db8::1");
    k = resolve(w, "both.test");
    assert_addresses(&k, "192.0.2.1 2001:db8::1");
}

static void
append_domain_completes_names_without_a_dot(void **state)
{
    struct world *w = *state;
    struct resolver_options o = usual(w);
    struct asker k;

    o.append_domain = ".corp.test";
    world_again(w, &o);
    k = resolve(w, "printer");
    assert_addresses(&k, "2001:db8::1 192.0.2.1");
    assert_int_equal(times_asked("printer", A), 0);
    k = resolve(w, "printer."); /* absolute */
    assert_int_equal(k.answer.status, DNS_NO_NAME);
    assert_int_equal(times_asked("printer", A), 1);
    k = resolve(w, "printer");
    assert_true(k.at_once);
    assert_int_equal(k.answer.status, DNS_OK);
}

static void
defnames_tries_the_search_list_and_then_the_name(void **state)
{
    struct world *w = *state;
    struct resolver_options o = usual(w);
    struct asker k;

    setenv("LOCALDOMAIN", "first.test corp.test", 1);
    o.defnames = true;
    world_again(w, &o);
    unsetenv("LOCALDOMAIN");
    k = resolve(w, "printer");
    assert_addresses(&k, "2001:db8::1 192.0.2.1");
    assert_int_equal(times_asked("printer.first.test", A), 1);
    assert_int_equal(times_asked("printer", A), 0);
    k = resolve(w, "both"); /* found under the first */
    assert_int_equal(times_asked("both.first.test", A), 1);
    k = resolve(w, "unknown");
    assert_int_equal(k.answer.status, DNS_NO_NAME);
    assert_int_equal(times_asked("unknown.corp.test", AAAA), 1);
    assert_int_equal(times_asked("unknown", AAAA), 1);
    k = resolve(w, "nope.test"); /* has a dot */
    assert_int_equal(times_asked("nope.test.first.test", A), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(both_families_are_asked_and_the_answer_is_kept),
        TEST(literals_and_localhost_are_answered_at_once),
        TEST(a_name_no_resolver_accepts_is_refused_at_once),
        TEST(nxdomain_is_kept_as_long_as_its_soa_says),
        TEST(a_name_without_addresses_is_no_name),
        TEST(ttl_0_is_for_those_who_asked_only),
        TEST(after_its_ttl_an_address_is_not_used_though_the_server_fails),
        TEST(a_truncated_answer_comes_over_tcp),
        TEST(a_slow_family_is_not_waited_for),
        TEST(one_family_that_fails_does_not_fail_the_name),
        TEST(a_failure_is_told_and_kept_for_a_while),
        TEST(a_broken_message_is_a_failure),
        TEST(an_ipv4_address_in_ipv6_clothes_is_not_used),
        TEST(a_lost_packet_is_sent_again),
        TEST(a_silent_server_delays_only_those_who_asked_it),
        TEST(equal_questions_are_one_on_the_wire),
        TEST(cancelling_one_does_not_disturb_the_others),
        TEST(a_cancelled_question_still_fills_the_cache),
        TEST(without_a_descriptor_the_question_fails_from_the_loop_and_is_not_kept),
        TEST(a_server_that_refuses_leaves_it_to_the_next),
        TEST(a_silent_first_server_costs_a_second_and_only_once),
        TEST(a_third_server_is_asked_after_two_intervals),
        TEST(the_first_server_is_listened_to_when_the_second_is_dead),
        TEST(a_failure_does_not_wait_long_for_the_silent),
        TEST(a_search_list_goes_on_beside_a_silent_server),
        TEST(a_question_under_way_ends_under_the_old_options),
        TEST(each_reload_is_survived_with_questions_in_the_air),
        TEST(a_resolver_ends_with_old_and_new_questions_in_the_air),
        TEST(append_domain_and_order_follow_a_reload),
        TEST(pending_questions_are_dropped_with_the_resolver),
        TEST(what_worked_comes_first_next_time),
        TEST(v4_first_is_an_order),
        TEST(append_domain_completes_names_without_a_dot),
        TEST(defnames_tries_the_search_list_and_then_the_name),
    };

    return cmocka_run_group_tests(tests, server_start, server_stop);
}
