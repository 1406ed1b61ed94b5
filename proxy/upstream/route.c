/* Where to: addresses from the order, the cache of answers or a name server; then an idle
 * connection to one of them, else the race of dial. */
#include <errno.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/fds.h"
#include "proxy/upstream/fill_private.h"

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

enum fault
upstream_connect_fault(int error)
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
bool
upstream_is_self(const struct upstream *u, const struct addr *to, uint16_t port)
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

bool
upstream_is_local(const struct addr *to, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (addr_is_loopback(&to[i]) || addr_is_linklocal(&to[i]))
            return true;
    return false;
}

static void
dialled(void *owner, int fd, const struct addr *to)
{
    struct fill *f = owner;

    f->dial = NULL;
    f->server = *to;
    if (fd < 0) {
        if ((fd == -EMFILE || fd == -ENFILE) && !f->retried && f->up->shed(f->up->owner) > 0) {
            f->retried = true;
            fill_route(f);
            return;
        }
        fill_fail(f, upstream_connect_fault(fd), -fd);
        return;
    }
    f->times.connect_us = (clock_mono_ns() - f->asked_ns) / 1000;
    if (f->answer->n > 1)
        resolver_prefer(f->up->resolver, f->host, to);
    fill_connected(f, conn_new(f->up->idle, fd, to), false);
}

/* Only a request that may be sent twice goes out on a kept connection: it may turn out dead. */
static bool
may_reuse(const struct fill *f)
{
    return f->policy->upstream.persistent && !f->request_body && !f->wants_upgrade &&
           method_is_idempotent(f->method) && !f->retried;
}

static void
fill_reach(struct fill *f)
{
    struct conn *c;

    if (f->deny_local && upstream_is_local(f->answer->at, f->answer->n)) {
        fill_fail(f, FAULT_ADDRESS_DENIED, 0);
        return;
    }
    for (unsigned i = 0; i < f->answer->n; i++)
        if (upstream_is_self(f->up, &f->answer->at[i], f->port)) {
            fill_fail(f, FAULT_LOOP, 0);
            return;
        }
    c = may_reuse(f) ? idle_take(f->up->idle, f->answer->at, f->answer->n, f->port) : NULL;
    if (c) {
        f->server = c->to;
        counter_add(COUNTER_SERVER_REUSES, 1);
        fill_connected(f, c, true);
        return;
    }
    f->asked_ns = clock_mono_ns();
    f->dial =
        dial_start(f->up->loop, &(struct dial_options){.to = f->answer->at,
                                                       .n = policy_tries(f->policy, f->answer->n),
                                                       .port = f->port,
                                                       .stagger_ms = f->policy->upstream.stagger_ms,
                                                       .attempt_ms = f->policy->upstream.connect_timeout_ms,
                                                       .deadline_ms = f->started_ns / 1000000 +
                                                                      f->policy->upstream.forward_timeout_ms,
                                                       .fn = dialled,
                                                       .owner = f});
}

static void
resolved(void *owner, const struct dns_answer *a)
{
    struct fill *f = owner;

    f->query = NULL;
    f->times.dns_us = (clock_mono_ns() - f->started_ns) / 1000;
    if (a->status != DNS_OK || a->n == 0) {
        fill_fail(f, upstream_dns_fault(a->status), 0);
        return;
    }
    f->answer = mem_alloc(sizeof *f->answer);
    *f->answer = *a;
    fill_reach(f);
}

void
fill_route(struct fill *f)
{
    struct dns_answer now;

    if (f->answer) {
        fill_reach(f);
        return;
    }
    if (!resolver_ask(f->up->resolver, f->host, resolved, f, &now, &f->query))
        return;
    resolved(f, &now);
}
