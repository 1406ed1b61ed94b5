/* No answer could be had: the client gets a page, the log a line that says while doing what. */
#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "http/date.h"
#include "http/h1_write.h"
#include "proxy/exchange/states.h"

enum step
step_fail(struct exchange *x)
{
    struct buf page = {0}, *extra = &x->env->head;
    char date[DATE_TEXT_MAX];

    if (x->cause != CAUSE_CLIENT) {
        exchange_finish(x);
        return STEP_DONE;
    }
    counter_add(COUNTER_CLIENT_ERRORS, 1);
    exchange_drop_store(x);
    fill_release(&x->hop.fill);
    log_event(fault_level(x->answer.fault), "%.*s: %s%s%s (while %s)", SPAN_ARG(x->context->url),
              fault_sentence(x->answer.fault), x->answer.error ? ": " : "",
              x->answer.error ? strerror(x->answer.error) : "", state_name(x->answer.failed_in));
    error_page_write(&page, x, x->answer.fault);
    extra->n = 0;
    h1_write_field(extra, SPAN("Date"), span_of(date, date_format(clock_wall_s(), date)));
    BUF_ADD(
        extra,
        "Server: cuttle\r\nContent-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\n"
        "Content-Language: en\r\nX-Content-Type-Options: nosniff\r\n");
    h1_write_field(
        extra, SPAN("X-Squid-Error"),
        arena_printf(&x->context->arena, "%s %d", fault_page(x->answer.fault), x->answer.error));
    outcome_proxy_status(x, extra);
    exchange_respond_text(x, fault_status(x->answer.fault), extra, buf_span(&page),
                          x->answer.fault_detail != NULL || x->answer.fault == FAULT_BAD_REQUEST ||
                              x->answer.fault == FAULT_REQUEST_TIMEOUT || x->body != NULL);
    buf_free(&page);
    return STEP_WAIT;
}
