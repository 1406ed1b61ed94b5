/* Requests that end here: pages of our own, OPTIONS for the proxy itself, TRACE that may go no
 * further. */
#include "http/h1_write.h"
#include "proxy/exchange/states.h"

/* OPTIONS for the proxy itself, TRACE that may go no further. */
static enum step
answer_here(struct exchange *x)
{
    struct buf *extra = &x->env->head, text = {0};

    extra->n = 0;
    BUF_ADD(extra, "Server: cuttle\r\nCache-Control: no-store\r\n");
    if (x->context->request.method == METHOD_TRACE) {
        BUF_ADD(extra, "Content-Type: message/http\r\n");
        h1_write_request_line(&text, x->context->request.method_text, x->context->request.target);
        for (unsigned i = 0; i < x->context->request.fields.n; i++)
            if (x->context->request.fields.at[i].id != FIELD_PROXY_AUTHORIZATION &&
                x->context->request.fields.at[i].id != FIELD_COOKIE &&
                x->context->request.fields.at[i].id != FIELD_AUTHORIZATION)
                h1_write_field(&text, x->context->request.fields.at[i].name,
                               x->context->request.fields.at[i].value);
        BUF_ADD(&text, "\r\n");
    } else
        BUF_ADD(extra, "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE, CONNECT\r\n");
    exchange_respond_text(x, 200, extra, buf_span(&text), false);
    buf_free(&text);
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
    struct buf *extra = &x->env->head, text = {0};
    const char *type = "text/plain; charset=utf-8";
    bool get = x->context->request.method == METHOD_GET || exchange_is_head(x);

    if (!x->context->facts.is_manager)
        return answer_here(x);
    if (!get)
        return exchange_fail(x, FAULT_NOT_ALLOWED, 0);
    if (!x->env->page || !x->env->page(x->env->owner, x->context->request.uri.path, &text, &type)) {
        buf_free(&text);
        return exchange_fail(x, is_page_path(x) ? FAULT_NOT_FOUND : FAULT_BAD_URL, 0);
    }
    x->answer.own_type = type;
    extra->n = 0;
    BUF_ADD(extra, "Server: cuttle\r\nCache-Control: no-store\r\n");
    h1_write_field(extra, SPAN("Content-Type"), span_str(type));
    exchange_respond_text(x, 200, extra, buf_span(&text), false);
    buf_free(&text);
    return STEP_WAIT;
}
