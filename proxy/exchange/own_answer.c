/* An answer whose text is made here becomes an entry like any other: one way out for all bodies. */
#include "base/check.h"
#include "base/clock.h"
#include "http/status.h"
#include "proxy/exchange/states.h"

static struct entry *
own_entry(struct exchange *x, struct span text)
{
    struct response_head r = {.status = 200, .minor = 1};
    struct head_times t = {clock_wall_s(), clock_wall_s(), clock_mono_ms()};
    struct head *h = head_new(&x->context->request, &r, &t);
    struct body *b = body_new(BODY_KEEP, text.n, x->env->loop, NULL);

    body_append(b, text);
    body_complete(b, SPAN_NONE);
    return entry_new(&h, &b, SPAN_NONE, text.n);
}

struct edits
exchange_own_fields(struct exchange *x, struct span content_type)
{
    struct arena *a = &x->context->arena;
    struct edits e = {0};

    fields_add_id(&e.added, a, FIELD_SERVER, SPAN("cuttle"));
    fields_add_id(&e.added, a, FIELD_CACHE_CONTROL, SPAN("no-store"));
    if (content_type.n)
        fields_add_id(&e.added, a, FIELD_CONTENT_TYPE, content_type);
    return e;
}

void
exchange_respond_text(struct exchange *x, unsigned status, const struct edits *edits,
                      struct span text, bool close)
{
    bool bodyless = exchange_is_head(x);

    if (x->answer.entry)
        entry_unref(&x->answer.entry);
    entry_source_close(&x->answer.out);
    x->answer.entry = own_entry(x, text);
    CHECK(entry_source_open(&x->answer.out, x->answer.entry, 0, UINT64_MAX, x->env->loop,
                            x->client.wake));
    exchange_respond(x, &(struct outgoing){.status = status,
                                           .reason = status_reason(status),
                                           .edits = edits,
                                           .body = bodyless ? NULL : &x->answer.out.source,
                                           .length = text.n,
                                           .bodyless = bodyless,
                                           .close = close});
}

enum step
exchange_tell(struct exchange *x, struct span text)
{
    struct edits e = exchange_own_fields(x, SPAN("text/plain; charset=utf-8"));

    exchange_respond_text(x, 200, &e, text, false);
    return STEP_WAIT;
}
