/* Addresses come from the order, the cache of answers or a name server. What the rules have judged
 * is not looked up again: a name may have other addresses by then. */
#include "proxy/upstream/route.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/fds.h"
#include "proxy/net/dial.h"
#include "proxy/upstream/fill.h"

enum fault
upstream_dns_fault(enum dns_status s)
{
    switch (s) {
    case DNS_NO_NAME:
        return FAULT_DNS_NO_NAME;
    case DNS_TIMEOUT:
        return FAULT_DNS_TIMEOUT;
    case DNS_BAD_NAME:
        return FAULT_BAD_URL;
    default:
        return FAULT_DNS_FAILED;
    }
}

static enum fault
connect_fault(int error)
{
    switch (error) {
    case -ECONNREFUSED:
        return FAULT_CONNECT_REFUSED;
    case -ETIMEDOUT:
        return FAULT_CONNECT_TIMEOUT;
    case -EMFILE:
    case -ENFILE:
        return FAULT_NO_DESCRIPTORS;
    default:
        return FAULT_CONNECT_UNREACHABLE;
    }
}

/* Only this machine's addresses can be bound. Asked only for a port we listen on. */
static bool
is_of_this_machine(const struct addr *to)
{
    struct addr at = *to;
    int fd = socket(to->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool bound;

    if (fd < 0)
        return addr_is_loopback(to);
    fds_adopt(fd, FD_OTHER);
    addr_set_port(&at, 0);
    bound = bind(fd, &at.sa, addr_len(&at)) == 0;
    fds_close(fd);
    return bound;
}

/* Our own listening socket as a destination is a loop, whatever name led there. */
static bool
is_self(const struct upstream *u, const struct addr *to, uint16_t port)
{
    for (unsigned i = 0; i < u->n_self; i++) {
        const struct addr *own = &u->self[i];

        if (addr_port(own) == port && (addr_is_any(own)  ? is_of_this_machine(to)
                                       : addr_is_any(to) ? addr_is_loopback(own)
                                                         : addr_compare(own, to) == 0))
            return true;
    }
    return false;
}

static bool
is_local(const struct addr *to, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (addr_is_loopback(&to[i]) || addr_is_linklocal(&to[i]))
            return true;
    return false;
}

static void
connected(struct route *r, struct transport *t, const struct addr *to)
{
    struct hop hop = {.at = *to};

    r->connect_us = (clock_mono_ns() - r->dialled_ns) / 1000;
    if (r->answer->n > 1)
        resolver_prefer(r->up->resolver, r->o.host, to);
    r->o.found(r->o.owner, conn_new(r->up->idle, t, &hop), false);
}

static void
dialled(void *owner, struct transport *t, int error, const struct addr *to)
{
    struct route *r = owner;

    r->dial = NULL;
    r->server = *to;
    if (t) {
        connected(r, t, to);
        return;
    }
    if ((error == -EMFILE || error == -ENFILE) && !r->made_room && r->up->shed(r->up->owner) > 0) {
        r->made_room = true;
        route_again(r);
        return;
    }
    r->o.failed(r->o.owner, connect_fault(error), -error);
}

static struct conn *
idle_of(struct route *r, uint64_t bound_to)
{
    struct conn *c = NULL;

    for (unsigned i = 0; i < r->answer->n && !c; i++) {
        struct hop hop = {r->answer->at[i], bound_to};

        addr_set_port(&hop.at, r->o.port);
        c = idle_take(r->up->idle, &hop);
    }
    return c;
}

/* One that is bound to the client comes first, whatever the request: its log-in is there. */
static struct conn *
idle_for(struct route *r)
{
    struct conn *c = r->o.connection ? idle_of(r, r->o.connection) : NULL;

    return c || !r->o.reuse ? c : idle_of(r, 0);
}

void
route_again(struct route *r)
{
    r->dialled_ns = clock_mono_ns();
    r->dial = dial_start(r->up->loop,
                         &(struct dial_options){.to = r->answer->at,
                                                .n = r->answer->n < r->o.policy->max_tries
                                                         ? r->answer->n
                                                         : r->o.policy->max_tries,
                                                .port = r->o.port,
                                                .stagger_ms = r->o.policy->stagger_ms,
                                                .attempt_ms = r->o.policy->connect_timeout_ms,
                                                .deadline_ms = r->o.deadline_ms,
                                                .fn = dialled,
                                                .owner = r});
}

/* Where it must not go, whatever led there. FAULT_NONE: it may. */
static enum fault
refused(const struct route *r)
{
    if (r->o.deny_local && is_local(r->answer->at, r->answer->n))
        return FAULT_ADDRESS_DENIED;
    for (unsigned i = 0; i < r->answer->n; i++)
        if (is_self(r->up, &r->answer->at[i], r->o.port))
            return FAULT_LOOP;
    return FAULT_NONE;
}

static void
reach(struct route *r)
{
    enum fault why = refused(r);
    struct conn *c;

    if (why != FAULT_NONE) {
        r->o.failed(r->o.owner, why, 0);
        return;
    }
    c = idle_for(r);
    if (!c) {
        route_again(r);
        return;
    }
    r->server = c->hop.at;
    counter_add(COUNTER_SERVER_REUSES, 1);
    r->o.found(r->o.owner, c, true);
}

static void
resolved(void *owner, const struct dns_answer *a)
{
    struct route *r = owner;

    r->query = NULL;
    if (a->status != DNS_OK || a->n == 0) {
        r->o.failed(r->o.owner, upstream_dns_fault(a->status), 0);
        return;
    }
    r->answer = mem_alloc(sizeof *r->answer);
    *r->answer = *a;
    reach(r);
}

static void
resolved_later(void *owner, const struct dns_answer *a)
{
    struct route *r = owner;

    r->dns_us = (clock_mono_ns() - r->dialled_ns) / 1000;
    resolved(r, a);
}

static struct dns_answer
answer_judged(const struct route_order *o)
{
    struct dns_answer a = {.status = DNS_OK,
                           .n = o->n_judged < DNS_ADDRESSES ? o->n_judged : DNS_ADDRESSES};

    memcpy(a.at, o->judged, a.n * sizeof a.at[0]);
    return a;
}

void
route_start(struct route *r, struct upstream *up, const struct route_order *o)
{
    struct dns_answer now;

    *r = (struct route){.up = up, .o = *o, .server = ADDR_NONE, .dns_us = -1, .connect_us = -1};
    r->dialled_ns = clock_mono_ns();
    if (o->judged)
        now = answer_judged(o);
    else if (!resolver_ask(up->resolver, o->host, resolved_later, r, &now, &r->query))
        return;
    resolved(r, &now);
}

void
route_close(struct route *r)
{
    resolver_cancel(&r->query);
    dial_cancel(&r->dial);
    mem_free(r->answer);
    r->answer = NULL;
}
