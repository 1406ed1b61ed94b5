/* dns/name_server.c - a c-ares channel with one server, its sockets and its timer on the loop, and
 * what its replies say. */
#include "dns/name_server.h"

#include <ares.h>
#include <pthread.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "dns/soa.h"
#include "dns/sockets.h"

#define NAME_SERVER_MAGIC 0xd2501e04u

enum {
    /* c-ares looks for an unused 16-bit ID in a loop: leave it plenty. */
    FLIGHTS_MOST = 20000,
    TRIES_MOST = 10,
    CLASS_IN = 1,
    NO_SOA_TTL_S = 10 /* of a negative answer that does not say how long it holds */
};

struct name_server {
    uint32_t magic;
    ares_channel channel;
    int64_t timeout_ms, retransmit_ms;
    unsigned in_air;
    bool closing;
    struct loop_timer timer; /* c-ares's retransmissions */
    struct dns_sockets sockets;
};

/* ---- the channel on the loop ---- */

static int64_t
ares_due_ms(struct name_server *s)
{
    struct timeval left;

    if (ares_timeout(s->channel, NULL, &left) == NULL)
        return -1;
    return (int64_t)left.tv_sec * 1000 + left.tv_usec / 1000 + 1;
}

/* ares_timeout goes through all questions, so it is asked only when the timer has fired; a new
 * question needs nothing before half its interval. */
static void
timer_follow(struct name_server *s)
{
    int64_t soon_ms = s->retransmit_ms / 2 + 1;

    if (s->in_air == 0)
        loop_timer_stop(&s->timer);
    else if (s->timer.deadline_ms == 0 || s->timer.deadline_ms > clock_mono_ms() + soon_ms)
        loop_timer_set(&s->timer, soon_ms);
}

static void
on_retransmit(void *owner)
{
    struct name_server *s = owner;
    int64_t due_ms;

    ares_process_fd(s->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    due_ms = ares_due_ms(s);
    if (s->in_air > 0 && due_ms >= 0)
        loop_timer_set(&s->timer, due_ms);
}

static void
on_socket(void *owner, int events)
{
    struct dns_socket *socket = owner;
    struct name_server *s = socket->set->owner;
    int fd = socket->io.fd;

    ares_process_fd(s->channel, events & LOOP_READ ? fd : ARES_SOCKET_BAD,
                    events & LOOP_WRITE ? fd : ARES_SOCKET_BAD);
    timer_follow(s);
}

static void
on_socket_state(void *arg, ares_socket_t fd, int readable, int writable)
{
    struct name_server *s = arg;

    dns_sockets_watch(&s->sockets, fd, (readable ? LOOP_READ : 0) | (writable ? LOOP_WRITE : 0));
}

/* ---- what a reply says ---- */

static int64_t
ttl_of(int ttl)
{
    return ttl > 0 ? ttl : 0; /* RFC 2181 section 8: the highest bit set means 0 */
}

static void
half_take(struct half_answer *h, const struct addr *a, int ttl)
{
    if (h->n == 0 || ttl_of(ttl) < h->ttl_s)
        h->ttl_s = ttl_of(ttl);
    half_add(h, a);
}

static int
read_v4(struct half_answer *h, const unsigned char *message, int n_bytes)
{
    struct ares_addrttl at[DNS_ADDRESSES];
    int n = DNS_ADDRESSES, status = ares_parse_a_reply(message, n_bytes, NULL, at, &n);

    for (int i = 0; status == ARES_SUCCESS && i < n; i++) {
        struct addr a = {.v4 = {.sin_family = AF_INET, .sin_addr = at[i].ipaddr}};

        half_take(h, &a, at[i].ttl);
    }
    return status;
}

/* A mapped IPv4 address in an AAAA record is not one of this family (base/addr.h un-maps them). */
static int
read_v6(struct half_answer *h, const unsigned char *message, int n_bytes)
{
    struct ares_addr6ttl at[DNS_ADDRESSES];
    int n = DNS_ADDRESSES, status = ares_parse_aaaa_reply(message, n_bytes, NULL, at, &n);

    for (int i = 0; status == ARES_SUCCESS && i < n; i++) {
        struct addr a = {.v6 = {.sin6_family = AF_INET6}};

        memcpy(&a.v6.sin6_addr, &at[i].ip6addr, sizeof(a.v6.sin6_addr));
        a = addr_from_sockaddr(&a.sa);
        if (half_of(&a) == HALF_V6)
            half_take(h, &a, at[i].ttl);
    }
    return status;
}

static enum half_kind
kind_of(int status)
{
    switch (status) {
    case ARES_SUCCESS: /* an alias without an address at its end */
    case ARES_ENODATA:
        return HALF_NO_DATA;
    case ARES_ENOTFOUND:
        return HALF_NO_NAME;
    case ARES_ETIMEOUT:
        return HALF_TIMEOUT;
    default:
        return HALF_FAILED;
    }
}

/* RFC 2308 section 5. */
static int64_t
negative_ttl(enum half_kind kind, const unsigned char *message, int n_bytes)
{
    uint32_t ttl_s;

    if (kind != HALF_NO_NAME && kind != HALF_NO_DATA)
        return 0;
    if (message && n_bytes > 0 && soa_negative_ttl(span_of(message, (size_t)n_bytes), &ttl_s))
        return ttl_s;
    return NO_SOA_TTL_S;
}

static void
half_read(struct half_answer *h, enum half half, int status, const unsigned char *message,
          int n_bytes)
{
    h->n = 0;
    h->ttl_s = 0;
    if (status == ARES_SUCCESS)
        status = half == HALF_V4 ? read_v4(h, message, n_bytes) : read_v6(h, message, n_bytes);
    h->kind = h->n > 0 ? HALF_ADDRESSES : kind_of(status);
    if (h->n == 0)
        h->ttl_s = negative_ttl(h->kind, message, n_bytes);
}

/* ---- asking ---- */

static void
on_reply(void *arg, int status, int timeouts, unsigned char *message, int n_bytes)
{
    struct flight *f = arg;
    struct half_answer reply;

    f->server->in_air--;
    if (f->server->closing) {
        f->landed(f, NULL);
        return;
    }
    half_read(&reply, f->half, status, message, n_bytes);
    f->landed(f, &reply);
}

bool
name_server_ask(struct name_server *s, const char *name, struct flight *f)
{
    static const int types[HALVES] = {[HALF_V6] = 28, [HALF_V4] = 1}; /* AAAA, A */

    CHECK_OBJ(s, NAME_SERVER_MAGIC);
    if (s->in_air >= FLIGHTS_MOST)
        return false;
    f->server = s;
    s->in_air++;
    ares_query(s->channel, name, CLASS_IN, types[f->half], on_reply, f);
    timer_follow(s);
    return true;
}

/* ---- life ---- */

static void
ares_start(void)
{
    ares_library_init(ARES_LIB_INIT_ALL);
}

/* c-ares doubles the interval with each try, and shortens each by a random part of up to 7/16. As
 * many tries as fill our own timeout: more would only keep the dead alive. */
static int
tries_for(const struct name_server *s)
{
    int64_t covered_ms = 0;
    int tries = 0;

    while (tries < TRIES_MOST && (tries < 2 || covered_ms < s->timeout_ms))
        covered_ms += (s->retransmit_ms << tries++) * 9 / 16;
    return tries;
}

/* NOCHECKRESP: its SERVFAIL is the answer; c-ares would ask it again at once, and again. */
static int
channel_open(struct name_server *s)
{
    static const struct ares_socket_functions functions = {
        .asocket = dns_socket_open,
        .aclose = dns_socket_close,
        .aconnect = dns_socket_connect,
        .arecvfrom = dns_socket_receive,
        .asendv = dns_socket_send,
    };
    struct ares_options options = {
        .flags = ARES_FLAG_NOALIASES | ARES_FLAG_NOSEARCH | ARES_FLAG_NOCHECKRESP,
        .timeout = (int)s->retransmit_ms,
        .tries = tries_for(s),
        .sock_state_cb = on_socket_state,
        .sock_state_cb_data = s,
    };
    int given = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NOROTATE |
                ARES_OPT_SOCK_STATE_CB;
    int error;

#ifdef ARES_OPT_QUERY_CACHE
    given |= ARES_OPT_QUERY_CACHE; /* off: answers are kept in answer_cache, within our bounds */
    options.qcache_max_ttl = 0;
#endif
    error = ares_init_options(&s->channel, &options, given);
    if (error == ARES_SUCCESS)
        ares_set_socket_functions(s->channel, &functions, &s->sockets);
    return error;
}

struct name_server *
name_server_new(const struct name_server_options *o)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct name_server *s = mem_zalloc(sizeof(*s));
    int error;

    pthread_once(&once, ares_start);
    s->magic = NAME_SERVER_MAGIC;
    s->timeout_ms = o->timeout_ms;
    s->retransmit_ms = o->retransmit_ms;
    s->sockets = (struct dns_sockets){
        .loop = o->loop, .ready = on_socket, .owner = s, .local_failures = o->local_failures};
    dns_sockets_init(&s->sockets);
    loop_timer_init(&s->timer, o->loop, on_retransmit, s);
    error = channel_open(s);
    if (error == ARES_SUCCESS)
        error = ares_set_servers_ports_csv(s->channel, o->address);
    if (error == ARES_SUCCESS)
        return s;
    log_event(LOG_ERROR, "name server %s cannot be asked: %s", o->address, ares_strerror(error));
    name_server_free(&s);
    return NULL;
}

void
name_server_free(struct name_server **held)
{
    struct name_server *s = *held;

    *held = NULL;
    CHECK_OBJ(s, NAME_SERVER_MAGIC);
    s->closing = true;
    if (s->channel)
        ares_destroy(s->channel);
    CHECK(s->in_air == 0);
    dns_sockets_free(&s->sockets);
    loop_timer_close(&s->timer);
    FREE_OBJ(s);
}
