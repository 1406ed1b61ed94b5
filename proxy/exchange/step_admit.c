/* What kind of request is this, and may this client make it? Everything that can be answered
 * without the store or another host ends here. */
#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "http/forwarding.h"
#include "proxy/exchange/states.h"

#define OWN_PAGES "/squid-internal-mgr/"
#define OWN_PREFIX OWN_PAGES "purge?prefix="
#define OWN_CLEAR OWN_PAGES "clear"

static void
fill_facts(struct exchange *x)
{
    const struct uri *u = &x->request.uri;

    x->facts = (struct acl_facts){
        .client = x->client.peer,
        .local = x->client.local,
        .port_name = x->client.port_name,
        .method = x->request.method,
        .method_text = x->request.method_text,
        .scheme = u->scheme,
        .host = u->host,
        .host_literal = u->literal,
        .port = u->port,
        .url = x->url,
        .path = u->path,
        .fields = &x->request.fields,
        .wall_s = clock_wall_s(),
    };
}

static bool
is_own_name(const struct exchange *x)
{
    const struct uri *u = &x->request.uri;
    bool own_host = span_eq_ci(u->host, x->policy->pseudonym) ||
                    span_eq(u->host, SPAN("localhost")) ||
                    (u->literal.sa.sa_family != AF_UNSPEC && addr_is_loopback(&u->literal));

    return own_host && u->port == addr_port(&x->client.local);
}

/* Pages of our own: origin-form, or absolute-form with a name and port that mean us (Squid's
 * clients do both). */
static bool
is_own_page(const struct exchange *x)
{
    const struct uri *u = &x->request.uri;

    if (u->form == URI_ORIGIN)
        return true;
    return u->form == URI_ABSOLUTE && is_own_name(x) &&
           (span_starts(u->path, SPAN(OWN_PAGES)) || span_eq(u->path, SPAN("/metrics")));
}

static struct span
url_for_log(struct exchange *x)
{
    const struct uri *u = &x->request.uri;

    if (u->form == URI_AUTHORITY) {
        bool v6 = u->literal.sa.sa_family == AF_INET6;

        return arena_printf(&x->arena, v6 ? "[%.*s]:%u" : "%.*s:%u", SPAN_ARG(u->host), u->port);
    }
    if (u->form == URI_ASTERISK || u->form == URI_ORIGIN)
        return u->path;
    return uri_text(u, &x->arena);
}

static bool
expectation_is_known(const struct exchange *x)
{
    const struct field *e = fields_find(&x->request.fields, FIELD_EXPECT);

    return !e || span_eq_ci(e->value, SPAN("100-continue"));
}

/* OPTIONS or TRACE that ends here (Max-Forwards 0), or OPTIONS * which asks about the proxy itself.
 */
static bool
ends_here(struct exchange *x)
{
    if (x->request.uri.form == URI_ASTERISK)
        return true;
    return (x->request.method == METHOD_OPTIONS || x->request.method == METHOD_TRACE) &&
           !forwarding_step(&x->request, &x->arena);
}

static enum step
refuse_scheme(struct exchange *x)
{
    x->fault_detail = "scheme";
    return exchange_fail(x, FAULT_UNSUPPORTED, 0);
}

static enum step
step_admit(struct exchange *x)
{
    const struct uri *u = &x->request.uri;

    if (x->client.intercepts)
        diverted_target(x);
    x->url = url_for_log(x);
    x->cc = cache_control_parse(&x->request.fields);
    fill_facts(x);
    x->facts.is_manager =
        !x->client.intercepts && x->request.method != METHOD_CONNECT && is_own_page(x);
    if (!expectation_is_known(x))
        return exchange_fail(x, FAULT_EXPECTATION, 0);
    if (x->policy->request_body_max && x->framing.how == FRAMING_LENGTH &&
        x->framing.length > x->policy->request_body_max)
        return exchange_fail(x, FAULT_BODY_TOO_LARGE, 0);
    if (u->form == URI_ABSOLUTE && !x->facts.is_manager && !span_eq(u->scheme, SPAN("http")))
        return refuse_scheme(x);
    if (x->request.method == METHOD_PURGE && !x->policy->purge_enabled)
        return exchange_fail(x, FAULT_DENIED, 0);
    if (!x->facts.is_manager && forwarding_is_loop(&x->request.fields, x->policy->pseudonym))
        return exchange_fail(x, FAULT_LOOP, 0);
    return x->client.intercepts ? diverted_admit(x) : exchange_next(x, &ACCESS);
}

static void
access_resolved(void *owner, const struct dns_answer *a)
{
    struct exchange *x = owner;

    x->query = NULL;
    x->dst = arena_alloc(&x->arena, sizeof *x->dst);
    *x->dst = *a;
    exchange_resume(x);
}

/* A rule looks at the destination's addresses: these are the ones that will be connected to, so
 * that nothing changes in between. */
static enum step
ask_for_addresses(struct exchange *x)
{
    struct dns_answer now;

    if (x->query)
        return STEP_WAIT;
    if (!resolver_ask(x->env->upstream->resolver, x->request.uri.host, access_resolved, x, &now,
                      &x->query))
        return STEP_WAIT;
    x->dst = arena_alloc(&x->arena, sizeof *x->dst);
    *x->dst = now;
    return STEP_NEXT;
}

static enum step
allowed(struct exchange *x)
{
    if (x->dst && x->dst->status != DNS_OK)
        return exchange_fail(x, upstream_dns_fault(x->dst->status), 0);
    if (x->facts.is_manager)
        return exchange_next(x, x->request.method == METHOD_PURGE ? &PURGE : &LOCAL);
    if (x->request.method == METHOD_CONNECT)
        return exchange_next(x, &CONNECT);
    if (ends_here(x))
        return exchange_next(x, &LOCAL);
    if (x->request.method == METHOD_PURGE)
        return exchange_next(x, &PURGE);
    return exchange_next(x, x->client.intercepts ? &VERIFY : &LOOKUP);
}

static enum step
denied(struct exchange *x)
{
    counter_add(COUNTER_DENIED, 1);
    x->how = HOW_DENIED;
    return exchange_fail(x, FAULT_DENIED, 0);
}

static enum step
step_access(struct exchange *x)
{
    if (x->facts.is_manager && !x->policy->manager_ruled && !addr_is_loopback(&x->client.peer))
        return denied(x);
    if (x->dst) {
        x->facts.dst = x->dst->at;
        x->facts.n_dst = x->dst->status == DNS_OK ? x->dst->n : 0;
        x->facts.dst_known = true;
    }
    switch (acl_list_check(x->policy->http_access, &x->facts)) {
    case ACL_ALLOW:
        return allowed(x);
    case ACL_NEED_DST:
        return ask_for_addresses(x);
    case ACL_DENY:
        break;
    }
    return denied(x);
}

/* PURGE of our own pages takes out more than one: /squid-internal-mgr/purge?prefix=URI, and all by
 * /squid-internal-mgr/clear. */
static enum step
purge_many(struct exchange *x)
{
    struct span path = x->request.uri.path, prefix = span_skip(path, SPAN(OWN_PREFIX).n);
    struct span text = SPAN("all is cleared\n");

    if (span_starts(path, SPAN(OWN_PREFIX)) && prefix.n)
        text = arena_printf(&x->arena, "%llu in memory purged, those on disk follow\n",
                            (unsigned long long)store_purge_prefix(x->env->store, prefix));
    else if (span_eq(path, SPAN(OWN_CLEAR)))
        store_purge_all(x->env->store);
    else
        return exchange_fail(x, FAULT_NOT_FOUND, 0);
    return exchange_tell(x, text);
}

static enum step
step_purge(struct exchange *x)
{
    unsigned n;

    if (x->facts.is_manager)
        return purge_many(x);
    x->request.uri.form = URI_ABSOLUTE;
    x->key = cache_key_of(x->url);
    n = store_invalidate(x->env->store, &x->key);
    if (n == 0)
        return exchange_fail(x, FAULT_NOT_FOUND, 0);
    exchange_respond(x, &(struct outgoing){.status = 200, .reason = SPAN("OK"), .length = 0});
    return STEP_WAIT;
}

const struct exchange_state ADMIT = {"reading the request", step_admit};
const struct exchange_state ACCESS = {"checking access", step_access};
const struct exchange_state PURGE = {"purging", step_purge};
