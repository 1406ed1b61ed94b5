/* No answer could be had: the client gets a page, the log a line that says while doing what. */
#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "http/date.h"
#include "proxy/exchange/states.h"

static struct edits
fields_of_page(struct exchange *x)
{
    struct edits e = exchange_own_fields(x, SPAN("text/html; charset=utf-8"));
    struct arena *a = &x->context->arena;
    char date[DATE_TEXT_MAX];

    fields_add_id(&e.added, a, FIELD_DATE,
                  arena_copy(a, span_of(date, date_format(clock_wall_s(), date))));
    fields_add(&e.added, a, SPAN("Content-Language"), SPAN("en"));
    fields_add(&e.added, a, SPAN("X-Content-Type-Options"), SPAN("nosniff"));
    fields_add(&e.added, a, SPAN("X-Squid-Error"),
               arena_printf(a, "%s %d", fault_page(x->answer.fault), x->answer.error));
    outcome_proxy_status(x, &e.added);
    return e;
}

/* Where the next request begins may be unknown, or its body is still coming. */
static bool
ends_connection(const struct exchange *x)
{
    return x->answer.fault_detail != NULL || x->answer.fault == FAULT_BAD_REQUEST ||
           x->answer.fault == FAULT_REQUEST_TIMEOUT || x->body != NULL;
}

enum step
step_fail(struct exchange *x)
{
    struct buf page = {0};
    struct edits e;

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
    e = fields_of_page(x);
    exchange_respond_text(x, fault_status(x->answer.fault), &e, buf_span(&page),
                          ends_connection(x));
    buf_free(&page);
    return STEP_WAIT;
}
