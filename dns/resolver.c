/* dns/resolver.c - questions to name servers on this loop. The only file that knows c-ares.
 *
 * A lookup is one name under way: two flights, one per family, are what c-ares has of it. c-ares
 * cannot take a single question back, so a lookup outlives its queries until both flights have
 * landed; then what they brought still goes to the cache. The askers are told from a deferred task
 * and nowhere else: c-ares may call back from inside ares_query, and an asker may ask again, or
 * cancel another query, from inside its callback.
 *
 * Completing short names (search list, append_domain) is done here and not by ares_search, so that
 * both families are asked under the same name and the one that has neither leads to the next. */
#include "dns/resolver.h"

#include <ares.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/fds.h"
#include "base/list.h"
#include "base/log.h"
#include "dns/answer_cache.h"
#include "dns/search_list.h"
#include "dns/soa.h"

#define RESOLVER_MAGIC 0xd2501e01u
#define LOOKUP_MAGIC 0xd2501e02u
#define QUERY_MAGIC 0xd2501e03u

enum {
    RESOLUTION_DELAY_MS = 50, /* RFC 8305 section 3 */
    TIMEOUT_DEFAULT_MS = 30000,
    RETRANSMIT_DEFAULT_MS = 5000,
    RETRANSMIT_MOST_MS = 60000,
    TIMEOUT_MOST_MS = 600000,
    TRIES_MOST = 10,
    BUCKETS = 256,
    /* c-ares looks for an unused 16-bit ID in a loop: leave it plenty. */
    FLIGHTS_MOST = 20000,
    SEARCH_MOST = 8,
    LITERAL_TTL_S = 86400
};

struct dns_query {
    uint32_t magic;
    struct list link; /* lookup's queries */
    dns_fn *fn;
    void *owner;
};

struct flight {
    struct lookup *lookup;
    bool in_air;
};

/* asking (in a bucket: can be joined) -> due (its task will run) -> asking, with the next name of
 * the search list | told (lingers until its flights have landed). */
struct lookup {
    uint32_t magic;
    struct resolver *resolver;
    struct list link; /* bucket while asking, resolver's lingering afterwards */
    struct list due;
    struct list queries;
    struct loop_timer timer; /* the resolution delay, else the deadline */
    int64_t started_ns, deadline_ms;
    uint64_t local_failures; /* of the resolver when this began */
    unsigned candidate;      /* which name of the search list is asked now */
    bool told, ok, expired;
    struct flight flight[HALVES];
    struct half_answer half[HALVES];
    struct dns_name name;
};

struct dns_socket {
    struct list link;
    struct loop_io io;
    struct resolver *resolver;
};

struct resolver {
    uint32_t magic;
    struct loop *loop;
    struct answer_cache *cache;
    ares_channel channel; /* NULL: c-ares could not start; every question fails */
    bool closing, v4_first;
    int64_t timeout_ms, retransmit_ms;
    unsigned n_search;   /* completions of names without a dot, before the name itself */
    bool completed_only; /* append_domain: the bare name is not asked */
    char *search[SEARCH_MOST];
    unsigned in_air;
    uint64_t local_failures;
    struct loop_timer timer; /* c-ares's retransmissions */
    struct loop_task task;   /* tells the askers */
    struct list due, lingering, sockets, spare_sockets;
    struct list buckets[BUCKETS];
};

/* ---- sockets: c-ares opens and closes, the census counts ---- */

static ares_socket_t
socket_open(int family, int type, int protocol, void *arg)
{
    struct resolver *r = arg;
    int64_t from_ns = clock_exact_mono_ns();
    int one = 1, fd;

    fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
    if (fd < 0) {
        r->local_failures++;
        return ARES_SOCKET_BAD;
    }
    fds_open_took(clock_exact_mono_ns() - from_ns);
    fds_adopt(fd, FD_DNS);
    if (type == SOCK_STREAM)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

/* Without a refusal nobody has heard the question: no memory, no route, a firewall of our own. */
static void
count_if_local(struct resolver *r)
{
    if (errno != ECONNREFUSED)
        r->local_failures++;
}

static int
socket_close(ares_socket_t fd, void *arg)
{
    fds_close(fd);
    return 0;
}

static int
socket_connect(ares_socket_t fd, const struct sockaddr *to, ares_socklen_t n, void *arg)
{
    char text[ADDR_TEXT_MAX];
    struct addr a = addr_from_sockaddr(to);
    int error;

    fds_note(fd, span_of(text, addr_format_port(&a, text)));
    error = connect(fd, to, n);
    if (error < 0 && errno != EINPROGRESS)
        count_if_local(arg);
    return error;
}

static ares_ssize_t
socket_receive(ares_socket_t fd, void *to, size_t n, int flags, struct sockaddr *from,
               ares_socklen_t *from_n, void *arg)
{
    return recvfrom(fd, to, n, flags, from, from_n);
}

/* A refusal met while sending was meant for an earlier question, whose own end c-ares would then
 * not see before its timeout. Sent again, this one brings a refusal that is read, and moves both on
 * to the next server. */
static ares_ssize_t
socket_send(ares_socket_t fd, const struct iovec *parts, int n, void *arg)
{
    struct msghdr m = {.msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)n};
    ssize_t sent = sendmsg(fd, &m, MSG_NOSIGNAL);

    if (sent < 0 && errno == ECONNREFUSED)
        sent = sendmsg(fd, &m, MSG_NOSIGNAL);
    if (sent < 0)
        count_if_local(arg);
    return sent;
}

static const struct ares_socket_functions socket_functions = {
    .asocket = socket_open,
    .aclose = socket_close,
    .aconnect = socket_connect,
    .arecvfrom = socket_receive,
    .asendv = socket_send,
};

/* ---- the channel on the loop ---- */

static int64_t
ares_due_ms(struct resolver *r)
{
    struct timeval left;

    if (ares_timeout(r->channel, NULL, &left) == NULL)
        return -1;
    return (int64_t)left.tv_sec * 1000 + left.tv_usec / 1000 + 1;
}

/* ares_timeout goes through all questions, so it is asked only when the timer has fired; a new
 * question needs nothing before half its interval. */
static void
timer_follow(struct resolver *r)
{
    int64_t soon_ms = r->retransmit_ms / 2 + 1;

    if (r->in_air == 0)
        loop_timer_stop(&r->timer);
    else if (r->timer.deadline_ms == 0 || r->timer.deadline_ms > clock_mono_ms() + soon_ms)
        loop_timer_set(&r->timer, soon_ms);
}

static void
on_retransmit(void *owner)
{
    struct resolver *r = owner;
    int64_t due_ms;

    ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    due_ms = ares_due_ms(r);
    if (r->in_air > 0 && due_ms >= 0)
        loop_timer_set(&r->timer, due_ms);
}

static void
on_socket(void *owner, int events)
{
    struct dns_socket *s = owner;
    struct resolver *r = s->resolver;
    int fd = s->io.fd;

    ares_process_fd(r->channel, events & LOOP_READ ? fd : ARES_SOCKET_BAD,
                    events & LOOP_WRITE ? fd : ARES_SOCKET_BAD);
    timer_follow(r);
}

static struct dns_socket *
socket_find(struct resolver *r, int fd)
{
    for (struct list *at = r->sockets.next; at != &r->sockets; at = at->next) {
        struct dns_socket *s = LIST_OWNER(at, struct dns_socket, link);

        if (s->io.fd == fd)
            return s;
    }
    return NULL;
}

/* There are two per name server at most; they come and go with the questions, so they are kept. */
static struct dns_socket *
socket_make(struct resolver *r, int fd)
{
    struct dns_socket *s;

    if (list_empty(&r->spare_sockets)) {
        s = mem_zalloc(sizeof(*s));
        list_init(&s->link);
    } else {
        s = LIST_OWNER(r->spare_sockets.next, struct dns_socket, link);
        list_remove(&s->link);
    }
    s->resolver = r;
    loop_io_init(&s->io, r->loop, fd, LOOP_DNS, on_socket, s);
    list_push_back(&r->sockets, &s->link);
    return s;
}

static void
on_socket_state(void *arg, ares_socket_t fd, int readable, int writable)
{
    struct resolver *r = arg;
    struct dns_socket *s = socket_find(r, fd);

    if (readable || writable) {
        s = s ? s : socket_make(r, fd);
        loop_io_want(&s->io, (readable ? LOOP_READ : 0) | (writable ? LOOP_WRITE : 0));
    } else if (s) {
        loop_io_stop(&s->io);
        list_remove(&s->link);
        list_push_back(&r->spare_sockets, &s->link);
    }
}

static void
sockets_free(struct list *sockets)
{
    while (!list_empty(sockets)) {
        struct dns_socket *s = LIST_OWNER(sockets->next, struct dns_socket, link);

        loop_io_stop(&s->io);
        list_remove(&s->link);
        mem_free(s);
    }
}

/* ---- what a flight brought ---- */

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

/* RFC 2308 section 5. An answer without SOA is kept as long as a failure. */
static int64_t
negative_ttl(enum half_kind kind, const unsigned char *message, int n_bytes)
{
    uint32_t ttl_s;

    if (kind != HALF_NO_NAME && kind != HALF_NO_DATA)
        return 0;
    if (message && n_bytes > 0 && soa_negative_ttl(span_of(message, (size_t)n_bytes), &ttl_s))
        return ttl_s;
    return FAILURE_TTL_MOST_S;
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

/* ---- a lookup ---- */

static bool
lookup_in_air(const struct lookup *l)
{
    return l->flight[HALF_V6].in_air || l->flight[HALF_V4].in_air;
}

static bool
lookup_useful(const struct lookup *l)
{
    return l->half[HALF_V6].kind == HALF_ADDRESSES || l->half[HALF_V4].kind == HALF_ADDRESSES;
}

static bool
lookup_absent(const struct lookup *l)
{
    for (unsigned i = 0; i < HALVES; i++) {
        if (l->half[i].kind != HALF_NO_NAME && l->half[i].kind != HALF_NO_DATA)
            return false;
    }
    return true;
}

static void
lookup_free(struct lookup *l)
{
    CHECK_OBJ(l, LOOKUP_MAGIC);
    CHECK(!lookup_in_air(l));
    while (!list_empty(&l->queries)) {
        struct dns_query *q = LIST_OWNER(l->queries.next, struct dns_query, link);

        list_remove(&q->link);
        FREE_OBJ(q);
    }
    list_remove(&l->link);
    list_remove(&l->due);
    loop_timer_close(&l->timer);
    FREE_OBJ(l);
}

static void
lookup_due(struct lookup *l)
{
    struct resolver *r = l->resolver;

    loop_timer_stop(&l->timer);
    if (list_empty(&l->due))
        list_push_back(&r->due, &l->due);
    loop_defer(r->loop, &r->task);
}

static void
on_lookup_timer(void *owner)
{
    struct lookup *l = owner;

    l->expired = true;
    lookup_due(l);
}

/* RFC 8305 section 3: the other family gets a moment, not the whole time. */
static void
lookup_consider(struct lookup *l)
{
    int64_t left_ms = l->deadline_ms - clock_mono_ms();

    if (!lookup_in_air(l))
        lookup_due(l);
    else if (lookup_useful(l) && left_ms > RESOLUTION_DELAY_MS)
        loop_timer_set(&l->timer, RESOLUTION_DELAY_MS);
}

/* What a lack of sockets or routes on this machine decides is no property of the name. */
static bool
lookup_cacheable(const struct lookup *l)
{
    return lookup_useful(l) || l->local_failures == l->resolver->local_failures;
}

static bool
candidate_is_last(const struct lookup *l)
{
    const struct resolver *r = l->resolver;

    if (l->name.dotted || l->name.absolute || r->n_search == 0)
        return true;
    return l->candidate >= r->n_search - r->completed_only;
}

/* Told without it; now it is here and may serve the next asker. */
static void
lookup_late(struct lookup *l, enum half half)
{
    struct half_answer h[HALVES] = {{.kind = HALF_NONE}, {.kind = HALF_NONE}};

    h[half] = l->half[half];
    if (h[half].kind == HALF_ADDRESSES || l->ok || candidate_is_last(l))
        answer_cache_put(l->resolver->cache, &l->name, h);
    if (!lookup_in_air(l))
        lookup_free(l);
}

static void
on_flight(void *arg, int status, int timeouts, unsigned char *message, int n_bytes)
{
    struct flight *f = arg;
    struct lookup *l = f->lookup;
    struct resolver *r = l->resolver;
    enum half half = f == &l->flight[HALF_V6] ? HALF_V6 : HALF_V4;

    CHECK_OBJ(l, LOOKUP_MAGIC);
    f->in_air = false;
    r->in_air--;
    if (r->closing)
        return; /* resolver_free frees the lookups */
    half_read(&l->half[half], half, status, message, n_bytes);
    l->half[half].ttl_s = answer_cache_lifetime(r->cache, &l->half[half]);
    if (l->told)
        lookup_late(l, half);
    else
        lookup_consider(l);
}

/* ---- asking ---- */

/* The name of the candidate; false: too long, as completed. */
static bool
candidate_name(const struct lookup *l, char out[NAME_MAX_BYTES + 1])
{
    const struct resolver *r = l->resolver;
    bool completed = !l->name.dotted && !l->name.absolute && l->candidate < r->n_search;
    int n = snprintf(out, NAME_MAX_BYTES + 1, completed ? "%.*s.%s" : "%.*s%s",
                     SPAN_ARG(name_text(&l->name)), completed ? r->search[l->candidate] : "");

    return n <= NAME_MAX_BYTES;
}

static void
lookup_ask(struct lookup *l)
{
    static const int types[HALVES] = {[HALF_V6] = 28, [HALF_V4] = 1}; /* AAAA, A */
    struct resolver *r = l->resolver;
    char name[NAME_MAX_BYTES + 1];
    bool can = r->channel && r->in_air + HALVES <= FLIGHTS_MOST;
    bool fits = candidate_name(l, name);

    for (unsigned i = 0; i < HALVES; i++) {
        l->half[i].kind = !fits ? HALF_NO_NAME : can ? HALF_NONE : HALF_FAILED;
        l->half[i].n = 0;
        l->half[i].ttl_s = 0;
        l->flight[i].in_air = fits && can;
        r->in_air += fits && can;
    }
    if (!fits || !can) {
        r->local_failures += !can;
        lookup_due(l);
        return;
    }
    for (unsigned i = 0; i < HALVES; i++)
        ares_query(r->channel, name, 1 /* IN */, types[i], on_flight, &l->flight[i]);
    timer_follow(r);
}

static struct list *
bucket_of(struct resolver *r, const struct dns_name *name)
{
    return &r->buckets[name->hash % BUCKETS];
}

static struct lookup *
lookup_find(struct resolver *r, const struct dns_name *name)
{
    struct list *bucket = bucket_of(r, name);

    for (struct list *at = bucket->next; at != bucket; at = at->next) {
        struct lookup *l = LIST_OWNER(at, struct lookup, link);

        if (l->name.hash == name->hash && span_eq(name_key(&l->name), name_key(name)))
            return l;
    }
    return NULL;
}

static struct lookup *
lookup_start(struct resolver *r, const struct dns_name *name)
{
    struct lookup *l = mem_zalloc(sizeof(*l));

    l->magic = LOOKUP_MAGIC;
    l->resolver = r;
    l->name = *name;
    list_init(&l->queries);
    list_init(&l->due);
    list_push_front(bucket_of(r, name), &l->link);
    l->flight[HALF_V6].lookup = l->flight[HALF_V4].lookup = l;
    l->started_ns = clock_exact_mono_ns();
    l->local_failures = r->local_failures;
    loop_timer_init(&l->timer, r->loop, on_lookup_timer, l);
    loop_timer_set(&l->timer, r->timeout_ms);
    l->deadline_ms = l->timer.deadline_ms;
    counter_add(COUNTER_DNS_QUERIES, 1);
    lookup_ask(l);
    return l;
}

/* ---- telling ---- */

/* A family that is still in the air counts as failed: should its answer come, it will replace this
 * in the cache. */
static void
lookup_close(struct lookup *l)
{
    struct resolver *r = l->resolver;

    for (unsigned i = 0; i < HALVES; i++) {
        if (l->half[i].kind != HALF_NONE)
            continue;
        l->half[i].kind = HALF_TIMEOUT;
        l->half[i].ttl_s = answer_cache_lifetime(r->cache, &l->half[i]);
    }
    l->told = true;
    l->ok = lookup_useful(l);
    loop_timer_close(&l->timer);
    list_remove(&l->link);
    list_push_back(&r->lingering, &l->link);
    if (lookup_cacheable(l))
        answer_cache_put(r->cache, &l->name, l->half);
}

static void
lookup_answer(struct lookup *l, struct dns_answer *a)
{
    struct resolver *r = l->resolver;
    struct addr worked;
    bool known = answer_cache_worked(r->cache, &l->name, &worked);

    order_answer(l->half, known ? &worked : NULL, r->v4_first, a);
    a->from_cache = false;
    histogram_add(HISTOGRAM_DNS_US, (uint64_t)(clock_exact_mono_ns() - l->started_ns) / 1000);
    if (a->status != DNS_OK)
        counter_add(COUNTER_DNS_FAILURES, 1);
}

static void
lookup_tell(struct lookup *l)
{
    struct dns_answer answer;

    lookup_close(l);
    lookup_answer(l, &answer);
    while (!list_empty(&l->queries)) {
        struct dns_query *q = LIST_OWNER(l->queries.next, struct dns_query, link);
        dns_fn *fn = q->fn;
        void *owner = q->owner;

        list_remove(&q->link);
        FREE_OBJ(q);
        fn(owner, &answer);
    }
    if (!lookup_in_air(l))
        lookup_free(l);
}

static void
on_task(void *owner)
{
    struct resolver *r = owner;

    while (!list_empty(&r->due)) {
        struct lookup *l = LIST_OWNER(r->due.next, struct lookup, due);

        list_remove(&l->due);
        if (lookup_absent(l) && !candidate_is_last(l) && !l->expired) {
            int64_t left_ms = l->deadline_ms - clock_mono_ms();

            l->candidate++;
            loop_timer_set(&l->timer, left_ms > 0 ? left_ms : 0);
            lookup_ask(l);
        } else {
            lookup_tell(l);
        }
    }
}

/* ---- life ---- */

static void
search_add(struct resolver *r, const char *domain)
{
    struct dns_name name;

    domain += strspn(domain, ".");
    if (r->n_search == SEARCH_MOST || !name_read(span_str(domain), &name))
        return;
    r->search[r->n_search++] = mem_strdup(domain);
}

static void
search_found(void *owner, const char *domain)
{
    search_add(owner, domain);
}

static void
search_setup(struct resolver *r, const struct resolver_options *o)
{
    if (o->append_domain && o->append_domain[0]) {
        search_add(r, o->append_domain);
        r->completed_only = r->n_search > 0;
        return;
    }
    if (o->defnames)
        search_list_read(search_found, r);
}

/* c-ares doubles the interval when all servers have been asked, and shortens each by a random part
 * of up to 7/16. As many tries as fill our own timeout: more would only keep the dead alive. */
static int
tries_for(const struct resolver *r, int n_servers)
{
    int64_t covered_ms = 0;
    int tries = 0;

    while (tries < TRIES_MOST && (tries < 2 || covered_ms < r->timeout_ms))
        covered_ms += (r->retransmit_ms << tries++) * 9 / 16 * n_servers;
    return tries;
}

static ares_channel
channel_open(struct resolver *r, int n_servers)
{
    struct ares_options options = {
        .flags =
            ARES_FLAG_NOALIASES | ARES_FLAG_NOSEARCH | (n_servers == 1 ? ARES_FLAG_NOCHECKRESP : 0),
        .timeout = (int)r->retransmit_ms,
        .tries = tries_for(r, n_servers),
        .sock_state_cb = on_socket_state,
        .sock_state_cb_data = r,
    };
    ares_channel channel = NULL;
    int given = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NOROTATE |
                ARES_OPT_SOCK_STATE_CB;
    int error;

#ifdef ARES_OPT_QUERY_CACHE
    given |= ARES_OPT_QUERY_CACHE; /* off: answers are kept in answer_cache, within our bounds */
    options.qcache_max_ttl = 0;
#endif
    error = ares_init_options(&channel, &options, given);
    if (error != ARES_SUCCESS) {
        log_event(LOG_ERROR, "the resolver cannot start: %s", ares_strerror(error));
        return NULL;
    }
    ares_set_socket_functions(channel, &socket_functions, r);
    return channel;
}

/* The list may be written with commas, spaces or both. */
static void
servers_set(ares_channel channel, const char *list)
{
    char *csv = mem_strdup(list);
    int error;

    for (char *c = csv; *c; c++) {
        if (*c == ' ' || *c == '\t')
            *c = ',';
    }
    error = ares_set_servers_ports_csv(channel, csv);
    if (error != ARES_SUCCESS)
        log_event(LOG_ERROR, "name servers \"%s\": %s", list, ares_strerror(error));
    mem_free(csv);
}

static int
servers_count(ares_channel channel)
{
    struct ares_addr_port_node *servers = NULL;
    int n = 0;

    if (ares_get_servers_ports(channel, &servers) != ARES_SUCCESS)
        return 1;
    for (struct ares_addr_port_node *s = servers; s; s = s->next)
        n++;
    if (servers)
        ares_free_data(servers);
    return n > 0 ? n : 1;
}

/* A single name server's SERVFAIL is the answer; c-ares would ask it again at once, and again. Only
 * an open channel knows how many servers there are, so that one is opened anew. */
static void
channel_start(struct resolver *r, const struct resolver_options *o)
{
    int n_servers = 2;

    for (unsigned round = 0; round < 2; round++) {
        if (r->channel)
            ares_destroy(r->channel);
        r->channel = channel_open(r, n_servers);
        if (r->channel == NULL)
            return;
        if (o->nameservers && o->nameservers[0])
            servers_set(r->channel, o->nameservers);
        n_servers = servers_count(r->channel);
    }
}

static void
ares_start(void)
{
    ares_library_init(ARES_LIB_INIT_ALL);
}

static int64_t
within(int64_t value, int64_t preset, int64_t most)
{
    if (value <= 0)
        return preset;
    return value < most ? value : most;
}

struct resolver *
resolver_new(struct loop *loop, struct answer_cache *shared, const struct resolver_options *o)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct resolver *r = mem_zalloc(sizeof(*r));

    pthread_once(&once, ares_start);
    r->magic = RESOLVER_MAGIC;
    r->loop = loop;
    r->cache = shared;
    r->v4_first = o->v4_first;
    r->timeout_ms = within(o->timeout_ms, TIMEOUT_DEFAULT_MS, TIMEOUT_MOST_MS);
    r->retransmit_ms = within(o->retransmit_ms, RETRANSMIT_DEFAULT_MS, RETRANSMIT_MOST_MS);
    list_init(&r->due);
    list_init(&r->lingering);
    list_init(&r->sockets);
    list_init(&r->spare_sockets);
    for (unsigned i = 0; i < BUCKETS; i++)
        list_init(&r->buckets[i]);
    loop_timer_init(&r->timer, loop, on_retransmit, r);
    loop_task_init(&r->task, on_task, r);
    channel_start(r, o);
    search_setup(r, o);
    return r;
}

static void
lookups_free(struct list *lookups)
{
    while (!list_empty(lookups))
        lookup_free(LIST_OWNER(lookups->next, struct lookup, link));
}

void
resolver_free(struct resolver **held)
{
    struct resolver *r = *held;

    *held = NULL;
    if (r == NULL)
        return;
    CHECK_OBJ(r, RESOLVER_MAGIC);
    r->closing = true;
    if (r->channel)
        ares_destroy(r->channel);
    for (unsigned i = 0; i < BUCKETS; i++)
        lookups_free(&r->buckets[i]);
    lookups_free(&r->lingering);
    sockets_free(&r->sockets);
    sockets_free(&r->spare_sockets);
    loop_timer_close(&r->timer);
    loop_task_cancel(r->loop, &r->task);
    for (unsigned i = 0; i < r->n_search; i++)
        mem_free(r->search[i]);
    FREE_OBJ(r);
}

/* ---- the front door ---- */

static bool
literal_answer(struct span host, struct dns_answer *now)
{
    if (host.n > 2 && host.at[0] == '[' && host.at[host.n - 1] == ']')
        host = span_of(host.at + 1, host.n - 2);
    if (!addr_parse(host, &now->at[0]))
        return false;
    now->status = DNS_OK;
    now->n = 1;
    now->ttl_s = LITERAL_TTL_S;
    now->from_cache = true;
    return true;
}

static void
bad_name_answer(struct dns_answer *now)
{
    now->status = DNS_BAD_NAME;
    now->n = 0;
    now->ttl_s = 0;
    now->from_cache = false;
    counter_add(COUNTER_DNS_FAILURES, 1);
}

bool
resolver_ask(struct resolver *r, struct span host, dns_fn *fn, void *owner, struct dns_answer *now,
             struct dns_query **q)
{
    struct dns_name name;
    struct lookup *l;

    CHECK_OBJ(r, RESOLVER_MAGIC);
    *q = NULL;
    if (literal_answer(host, now))
        return true;
    if (!name_read(host, &name)) {
        bad_name_answer(now);
        return true;
    }
    if (answer_cache_find(r->cache, &name, now)) {
        counter_add(COUNTER_DNS_HITS, 1);
        return true;
    }
    l = lookup_find(r, &name);
    if (l == NULL)
        l = lookup_start(r, &name);
    *q = mem_zalloc(sizeof(**q));
    **q = (struct dns_query){.magic = QUERY_MAGIC, .fn = fn, .owner = owner};
    list_push_back(&l->queries, &(*q)->link);
    return false;
}

/* The lookup goes on: its answer is of use to the cache, and perhaps to the next asker. */
void
resolver_cancel(struct dns_query **held)
{
    struct dns_query *q = *held;

    *held = NULL;
    if (q == NULL)
        return;
    CHECK_OBJ(q, QUERY_MAGIC);
    list_remove(&q->link);
    FREE_OBJ(q);
}

void
resolver_prefer(struct resolver *r, struct span host, const struct addr *worked)
{
    struct dns_name name;

    if (name_read(host, &name))
        answer_cache_prefer(r->cache, &name, worked);
}

const char *
resolver_status_text(enum dns_status s)
{
    switch (s) {
    case DNS_OK:
        return "found";
    case DNS_NO_NAME:
        return "no such name, or no address for it";
    case DNS_FAILED:
        return "the name server could not answer";
    case DNS_TIMEOUT:
        return "no name server answered in time";
    case DNS_BAD_NAME:
        return "not a valid host name";
    }
    return "unknown";
}
