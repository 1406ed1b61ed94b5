/* Idle connections are kept in buckets by hop, newest first: the one used last is the least
 * likely to have been closed by the origin. A readable idle connection is a closed one, or one with
 * bytes nobody asked for: either way it goes. */
#include "proxy/upstream/idle.h"

#include "base/check.h"
#include "base/clock.h"

#define CONN_MAGIC 0xc0117c0bu
#define BUCKETS 256
#define IDLE_A_BUCKET 256 /* requests that need a new connection leave one more behind each */

struct idle_pool {
    struct loop *loop;
    struct list by_hop[BUCKETS];
    unsigned count[BUCKETS];
    struct list by_age; /* oldest first */
    unsigned n_bound;
};

/* What is bound to a client is found by that alone when the client goes. */
static unsigned
bucket_of(const struct hop *hop)
{
    const struct addr *a = &hop->at;
    const unsigned char *p = a->sa.sa_family == AF_INET ? (const unsigned char *)&a->v4.sin_addr
                                                        : (const unsigned char *)&a->v6.sin6_addr;
    size_t n = a->sa.sa_family == AF_INET ? 4 : 16;
    unsigned h = addr_port(a);

    if (hop->bound_to)
        return (unsigned)(hop->bound_to % BUCKETS);
    for (size_t i = 0; i < n; i++)
        h = h * 31 + p[i];
    return (h ^ (h >> 8)) % BUCKETS;
}

static void
leave_pool(struct conn *c)
{
    if (list_empty(&c->by_age))
        return;
    list_remove(&c->by_hop);
    list_remove(&c->by_age);
    c->pool->count[bucket_of(&c->hop)]--;
    c->pool->n_bound -= c->hop.bound_to != 0;
}

struct idle_pool *
idle_pool_new(struct loop *l)
{
    struct idle_pool *p = mem_zalloc(sizeof *p);

    p->loop = l;
    for (int i = 0; i < BUCKETS; i++)
        list_init(&p->by_hop[i]);
    list_init(&p->by_age);
    return p;
}

static void
conn_io(void *owner, int events)
{
    struct conn *c = owner;

    if (c->user)
        c->user_io(c->user, events);
    else
        conn_close(&c);
}

static void
conn_timeout(void *owner)
{
    struct conn *c = owner;

    if (c->user)
        c->user_timeout(c->user);
    else
        conn_close(&c);
}

static void
conn_free(void *owner)
{
    struct conn *c = owner;

    FREE_OBJ(c);
}

struct conn *
conn_new(struct idle_pool *p, struct transport *t, const struct hop *hop)
{
    struct conn *c = mem_zalloc(sizeof *c);
    char text[ADDR_TEXT_MAX];

    c->magic = CONN_MAGIC;
    c->pool = p;
    c->hop = *hop;
    c->born_ms = clock_mono_ms();
    list_init(&c->by_hop);
    list_init(&c->by_age);
    transport_take(&c->transport, t, LOOP_SERVER, conn_io, c);
    loop_timer_init(&c->timer, p->loop, conn_timeout, c);
    loop_task_init(&c->free_later, conn_free, c);
    transport_note(&c->transport, span_of(text, addr_format_port(&hop->at, text)));
    return c;
}

void
conn_use(struct conn *c, loop_io_fn *io, loop_fn *timeout, void *user)
{
    c->user_io = io;
    c->user_timeout = timeout;
    c->user = user;
}

void
conn_bind(struct conn *c, uint64_t client_connection)
{
    CHECK(list_empty(&c->by_age));
    c->hop.bound_to = client_connection;
}

void
conn_release(struct conn **held, struct transport *t)
{
    transport_take(t, &(*held)->transport, LOOP_SERVER, NULL, NULL);
    conn_close(held);
}

struct conn *
idle_take(struct idle_pool *p, const struct hop *hop)
{
    struct list *head = &p->by_hop[bucket_of(hop)];

    for (struct list *l = head->next; l != head; l = l->next) {
        struct conn *c = LIST_OWNER(l, struct conn, by_hop);

        if (!hop_is_same(&c->hop, hop))
            continue;
        leave_pool(c);
        transport_purpose(&c->transport, FD_SERVER_ACTIVE);
        return c;
    }
    return NULL;
}

/* The one of this bucket that has been idle longest gives way. */
static void
make_room(struct idle_pool *p, unsigned bucket)
{
    struct conn *oldest;

    if (p->count[bucket] < IDLE_A_BUCKET)
        return;
    oldest = LIST_OWNER(p->by_hop[bucket].prev, struct conn, by_hop);
    conn_close(&oldest);
}

void
idle_put(struct conn **held, int64_t for_ms)
{
    struct conn *c = *held;
    unsigned bucket = bucket_of(&c->hop);

    *held = NULL;
    conn_use(c, NULL, NULL, NULL);
    make_room(c->pool, bucket);
    c->pool->count[bucket]++;
    list_push_front(&c->pool->by_hop[bucket], &c->by_hop);
    list_push_back(&c->pool->by_age, &c->by_age);
    c->pool->n_bound += c->hop.bound_to != 0;
    transport_purpose(&c->transport, FD_SERVER_IDLE);
    transport_want(&c->transport, LOOP_READ);
    loop_timer_set(&c->timer, for_ms);
}

void
conn_close(struct conn **held)
{
    struct conn *c = *held;

    *held = NULL;
    if (!c)
        return;
    CHECK_OBJ(c, CONN_MAGIC);
    leave_pool(c);
    transport_close(&c->transport);
    loop_timer_close(&c->timer);
    conn_use(c, NULL, NULL, NULL);
    loop_defer(c->pool->loop, &c->free_later);
}

unsigned
idle_shed(struct idle_pool *p, unsigned n)
{
    unsigned closed = 0;

    while (closed < n && !list_empty(&p->by_age)) {
        struct conn *c = LIST_OWNER(p->by_age.next, struct conn, by_age);

        conn_close(&c);
        closed++;
    }
    return closed;
}

void
idle_close_all(struct idle_pool *p)
{
    (void)idle_shed(p, UINT32_MAX);
}

void
idle_close_bound(struct idle_pool *p, uint64_t client_connection)
{
    struct list *head = &p->by_hop[client_connection % BUCKETS];

    if (p->n_bound == 0)
        return;
    for (struct list *l = head->next, *next; l != head; l = next) {
        struct conn *c = LIST_OWNER(l, struct conn, by_hop);

        next = l->next;
        if (c->hop.bound_to == client_connection)
            conn_close(&c);
    }
}

void
idle_pool_free(struct idle_pool **held)
{
    struct idle_pool *p = *held;

    *held = NULL;
    if (!p)
        return;
    idle_close_all(p);
    mem_free(p);
}
