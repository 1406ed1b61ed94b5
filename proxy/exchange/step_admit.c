/* What kind of request is this? What no rule needs to be asked about is refused here. */
#include "base/clock.h"
#include "http/forwarding.h"
#include "proxy/exchange/states.h"

#define OWN_PAGES "/squid-internal-mgr/"

static void
fill_facts(struct exchange *x)
{
    const struct uri *u = &x->context->request.uri;

    x->context->facts = (struct acl_facts){
        .client = x->context->from.peer,
        .local = x->context->from.local,
        .port_name = x->context->from.port_name,
        .method = x->context->request.method,
        .method_text = x->context->request.method_text,
        .scheme = u->scheme,
        .host = u->host,
        .host_literal = u->literal,
        .port = u->port,
        .url = x->context->url,
        .path = u->path,
        .fields = &x->context->request.fields,
        .wall_s = clock_wall_s(),
    };
}

static bool
is_own_name(const struct exchange *x)
{
    const struct uri *u = &x->context->request.uri;
    const struct policy *p = x->context->policy;
    bool own_host = span_eq_ci(u->host, p->pseudonym) || span_eq_ci(u->host, p->visible_name) ||
                    span_eq(u->host, SPAN("localhost")) ||
                    (u->literal.sa.sa_family != AF_UNSPEC && addr_is_loopback(&u->literal));

    return own_host && u->port == addr_port(&x->context->from.local);
}

/* Pages of our own: origin-form, or absolute-form with a name and port that mean us (Squid's
 * clients do both). */
static bool
is_own_page(const struct exchange *x)
{
    const struct uri *u = &x->context->request.uri;

    if (u->form == URI_ORIGIN)
        return true;
    return u->form == URI_ABSOLUTE && is_own_name(x) &&
           (span_starts(u->path, SPAN(OWN_PAGES)) || span_eq(u->path, SPAN("/metrics")));
}

static struct span
url_for_log(struct exchange *x)
{
    const struct uri *u = &x->context->request.uri;

    if (u->form == URI_AUTHORITY) {
        bool v6 = u->literal.sa.sa_family == AF_INET6;

        return arena_printf(&x->context->arena, v6 ? "[%.*s]:%u" : "%.*s:%u", SPAN_ARG(u->host),
                            u->port);
    }
    if (u->form == URI_ASTERISK || u->form == URI_ORIGIN)
        return x->context->request.target;
    return uri_text(u, &x->context->arena);
}

static bool
expectation_is_known(const struct exchange *x)
{
    const struct field *e = fields_find(&x->context->request.fields, FIELD_EXPECT);

    return !e || span_eq_ci(e->value, SPAN("100-continue"));
}

static enum step
refuse_scheme(struct exchange *x)
{
    x->answer.fault_detail = "scheme";
    return exchange_fail(x, FAULT_UNSUPPORTED, 0);
}

enum step
step_admit(struct exchange *x)
{
    const struct uri *u = &x->context->request.uri;

    if (x->context->from.intercepts)
        diverted_target(x);
    x->context->url = url_for_log(x);
    x->context->cc = cache_control_parse(&x->context->request.fields);
    fill_facts(x);
    x->context->facts.is_manager = !x->context->from.intercepts &&
                                   x->context->request.method != METHOD_CONNECT && is_own_page(x);
    if (!expectation_is_known(x))
        return exchange_fail(x, FAULT_EXPECTATION, 0);
    if (x->context->policy->request.body_max_bytes && x->context->framing.how == FRAMING_LENGTH &&
        x->context->framing.length > x->context->policy->request.body_max_bytes)
        return exchange_fail(x, FAULT_BODY_TOO_LARGE, 0);
    if (u->form == URI_ABSOLUTE && !x->context->facts.is_manager &&
        !span_eq(u->scheme, SPAN("http")))
        return refuse_scheme(x);
    if (x->context->request.method == METHOD_PURGE && !x->context->policy->request.purge_enabled)
        return exchange_fail(x, FAULT_DENIED, 0);
    if (!x->context->facts.is_manager &&
        forwarding_is_loop(&x->context->request.fields, x->context->policy->pseudonym))
        return exchange_fail(x, FAULT_LOOP, 0);
    return x->context->from.intercepts ? diverted_admit(x) : exchange_next(x, ACCESS);
}
