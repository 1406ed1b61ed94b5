/* Requests that end here: pages of our own, OPTIONS for the proxy itself, TRACE that may go no
 * further. */
#include "http/edits.h"
#include "http/h1_write.h"
#include "proxy/exchange/states.h"

static const struct edits SECRETS = {
    .removed = {FIELD_PROXY_AUTHORIZATION, FIELD_COOKIE, FIELD_AUTHORIZATION}, .n_removed = 3};

/* The request comes back as its body, without what scripts must not see (RFC 9110 section 9.3.8).
 */
static enum step
answer_trace(struct exchange *x)
{
    const struct request_head *r = &x->context->request;
    struct edits e = exchange_own_fields(x, SPAN("message/http"));
    struct buf text = {0};

    h1_write_request_line(&text, r->method_text, r->target);
    h1_write_edited(&text, SPAN_NONE, &r->fields, &SECRETS);
    BUF_ADD(&text, "\r\n");
    exchange_respond_text(x, 200, &e, buf_span(&text), false);
    buf_free(&text);
    return STEP_WAIT;
}

static enum step
answer_options(struct exchange *x)
{
    struct edits e = exchange_own_fields(x, SPAN_NONE);

    fields_add_id(&e.added, &x->context->arena, FIELD_ALLOW,
                  SPAN("GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE, CONNECT"));
    exchange_respond_text(x, 200, &e, SPAN_NONE, false);
    return STEP_WAIT;
}

/* Any other path in origin-form is a request that was meant for an origin. */
static bool
is_page_path(const struct exchange *x)
{
    return x->context->request.uri.form != URI_ORIGIN ||
           span_starts(x->context->request.uri.path, SPAN("/squid-internal-mgr"));
}

enum step
step_local(struct exchange *x)
{
    struct buf text = {0};
    struct edits e;
    const char *type = "text/plain; charset=utf-8";
    bool get = x->context->request.method == METHOD_GET || exchange_is_head(x);

    if (!x->context->facts.is_manager)
        return x->context->request.method == METHOD_TRACE ? answer_trace(x) : answer_options(x);
    if (!get)
        return exchange_fail(x, FAULT_NOT_ALLOWED, 0);
    if (!x->env->page || !x->env->page(x->env->owner, x->context->request.uri.path, &text, &type)) {
        buf_free(&text);
        return exchange_fail(x, is_page_path(x) ? FAULT_NOT_FOUND : FAULT_BAD_URL, 0);
    }
    x->answer.own_type = type;
    e = exchange_own_fields(x, span_str(type));
    exchange_respond_text(x, 200, &e, buf_span(&text), false);
    buf_free(&text);
    return STEP_WAIT;
}
