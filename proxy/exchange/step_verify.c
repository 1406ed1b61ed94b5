/* Requests on connections that were diverted to us (RFC 9112 section 3.2.2, RFC 9110 section
 * 7.4).
 *
 * Their client has chosen the address it talks to; Host is only what it says. So the address is
 * where the request goes, and Host is believed, which means that the store is used, only when the
 * name has that address. Else one client could have its own answer stored under anybody's name, or
 * a page could reach through its Host what its browser keeps from it. To refuse the others would
 * break sites whose names give each asker another address. */
#include "base/check.h"
#include "base/counters.h"
#include "base/log.h"
#include "proxy/exchange/states.h"

#define REPEAT_MS 60000 /* the event log hears of the same at most so often */

/* Where it goes, in the form in which other requests have their looked up addresses. */
static void
go_to_destination(struct exchange *x)
{
    x->context->dst = arena_alloc(&x->context->arena, sizeof *x->context->dst);
    *x->context->dst =
        (struct dns_answer){.status = DNS_OK, .n = 1, .at = {x->context->from.destination}};
    x->context->facts.destination = &x->context->from.destination;
    x->context->facts.port = addr_port(&x->context->from.destination);
}

/* HTTP/1.0 without Host: all that is known is the address (RFC 9112 section 3.3). */
static void
name_by_address(struct exchange *x)
{
    struct uri *u = &x->context->request.uri;
    char text[ADDR_TEXT_MAX];

    u->scheme = SPAN("http");
    u->literal = x->context->from.destination;
    u->port = addr_port(&u->literal);
    addr_set_port(&u->literal, 0);
    u->host = arena_copy(&x->context->arena, span_of(text, addr_format(&u->literal, text)));
}

/* The target URI of what was meant for an origin; Host stands in it already. */
void
diverted_target(struct exchange *x)
{
    struct uri *u = &x->context->request.uri;

    if (!context_was_diverted(x->context) || (u->form != URI_ORIGIN && u->form != URI_ASTERISK))
        return;
    if (u->host.n == 0)
        name_by_address(x);
    u->form = URI_ABSOLUTE;
}

static enum step
refuse(struct exchange *x, enum fault why, const char *detail)
{
    counter_add(COUNTER_DENIED, 1);
    x->answer.how = HOW_DENIED;
    x->answer.fault_detail = detail;
    return exchange_fail(x, why, 0);
}

enum step
diverted_admit(struct exchange *x)
{
    char peer[ADDR_TEXT_MAX];

    if (!context_was_diverted(x->context)) {
        (void)addr_format(&x->context->from.peer, peer);
        log_event_every(REPEAT_MS, LOG_WARN,
                        "%s came straight to http_port %s, which is for diverted connections: "
                        "refused, it would be a loop",
                        peer, x->context->from.port_name);
        return refuse(x, FAULT_NOT_DIVERTED, "not diverted");
    }
    if (x->context->request.method == METHOD_CONNECT)
        return refuse(x, FAULT_DENIED, "CONNECT on a diverted connection");
    go_to_destination(x);
    return exchange_next(x, ACCESS);
}

uint16_t
exchange_server_port(const struct exchange *x)
{
    return context_was_diverted(x->context) ? addr_port(&x->context->from.destination)
                                            : x->context->request.uri.port;
}

static bool
has_address(const struct dns_answer *a, const struct addr *wanted)
{
    for (unsigned i = 0; a->status == DNS_OK && i < a->n; i++)
        if (addr_compare(&a->at[i], wanted) == 0)
            return true;
    return false;
}

static void
log_elsewhere(struct exchange *x)
{
    struct span host = uri_host_field(&x->context->request.uri, &x->context->arena);
    char there[ADDR_TEXT_MAX];

    (void)addr_format_port(&x->context->from.destination, there);
    log_event_every(
        REPEAT_MS, LOG_WARN, "diverted: %.*s is not at %s as far as we know: %s", SPAN_ARG(host),
        there, x->context->policy->request.host_strict ? "refused" : "passed on without the store");
}

static enum step
host_is_elsewhere(struct exchange *x)
{
    log_elsewhere(x);
    x->context->host_elsewhere = true;
    counter_add(COUNTER_HOST_ELSEWHERE, 1);
    if (x->context->policy->request.host_strict)
        return refuse(x, FAULT_HOST_ELSEWHERE, NULL);
    return exchange_next(x, LOOKUP);
}

static enum step
judge_host(struct exchange *x, const struct dns_answer *a)
{
    return has_address(a, &x->context->from.destination) ? exchange_next(x, LOOKUP)
                                                         : host_is_elsewhere(x);
}

static void
host_resolved(void *owner, const struct dns_answer *a)
{
    struct exchange *x = owner;

    x->query = NULL;
    (void)judge_host(x, a);
    exchange_resume(x);
}

enum step
step_verify(struct exchange *x)
{
    struct dns_answer now;

    if (x->query)
        return STEP_WAIT;
    if (x->context->request.uri.port != exchange_server_port(x))
        return host_is_elsewhere(x);
    if (!resolver_ask(x->env->upstream->resolver, x->context->request.uri.host, host_resolved, x,
                      &now, &x->query))
        return STEP_WAIT;
    return judge_host(x, &now);
}
