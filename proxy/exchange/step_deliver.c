/* From an entry to what leaves for the client: conditions and ranges of the client first, then our
 * own fields behind the stored ones. */
#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "cache/freshness.h"
#include "http/conditional.h"
#include "http/date.h"
#include "http/h1_write.h"
#include "http/range.h"
#include "http/status.h"
#include "proxy/exchange/states.h"

bool
exchange_from_store(const struct exchange *x)
{
    return outcome_is_hit(x) || x->how == HOW_UNMODIFIED || x->how == HOW_FAIL_OLD ||
           x->conditions_ours;
}

static void
add_age(struct exchange *x, struct buf *b)
{
    struct freshness f;

    if (!outcome_is_hit(x) && x->how != HOW_FAIL_OLD && x->how != HOW_UNMODIFIED &&
        x->entry->head->initial_age_s == 0)
        return;
    f = freshness_at(x->entry->head, x->rule ? x->rule : &REFRESH_RULE_DEFAULT, clock_mono_ms());
    BUF_ADD(b, "Age: ");
    buf_add_uint(b, (uint64_t)f.age_s);
    BUF_ADD(b, "\r\n");
}

static struct buf *
own_fields(struct exchange *x)
{
    struct buf *b = &x->env->head;

    b->n = 0;
    add_age(x, b);
    outcome_cache_status(x, b);
    return b;
}

static void
close_reader(struct exchange *x)
{
    entry_source_close(&x->out);
}

/* The fields of the response but for two kinds. */
static struct span
block_without(struct exchange *x, enum field_id one, enum field_id other)
{
    const struct fields *f = &x->entry->head->fields;
    struct buf b = {0};
    struct span block;

    for (unsigned i = 0; i < f->n; i++)
        if (f->at[i].id != one && f->at[i].id != other)
            h1_write_field(&b, f->at[i].name, f->at[i].value);
    block = arena_copy(&x->arena, buf_span(&b));
    buf_free(&b);
    return block;
}

/* RFC 9111 section 7.3 lets a cookie be stored. It was made for one client, so others get the
 * response without it, unless the origin says that it is for all. */
static struct span
block_for_client(struct exchange *x)
{
    const struct head *h = x->entry->head;

    if (h->cc.public_ || !(exchange_from_store(x) || x->collapsed) ||
        !fields_find(&h->fields, FIELD_SET_COOKIE) ||
        (x->entry->client && x->entry->client == exchange_client_mark(x)))
        return h->block;
    return block_without(x, FIELD_SET_COOKIE, FIELD_SET_COOKIE);
}

/* 304 or 412 from what is stored (RFC 9110 section 15.4.5: the fields a 200 would carry). */
static enum step
answer_condition(struct exchange *x, enum precondition p)
{
    if (p == PRECONDITION_FAILED)
        return exchange_fail(x, FAULT_PRECONDITION, 0);
    close_reader(x);
    if (x->how == HOW_HIT)
        x->how = HOW_IMS_HIT;
    exchange_respond(x, &(struct outgoing){.status = 304,
                                           .reason = SPAN("Not Modified"),
                                           .block = block_for_client(x),
                                           .extra = buf_span(own_fields(x)),
                                           .length = LENGTH_UNKNOWN,
                                           .bodyless = true});
    return STEP_WAIT;
}

static bool
open_reader(struct exchange *x, uint64_t from, uint64_t n_bytes)
{
    bool open = x->out.open ||
                entry_source_open(&x->out, x->entry, from, n_bytes, x->env->loop, x->client.wake);

    if (x->disk)
        tier_read_release(&x->disk);
    return open;
}

/* The bytes are no longer kept (the body outgrew the store while we waited): fetch it ourselves. */
static enum step
too_late(struct exchange *x)
{
    entry_unref(&x->entry);
    x->collapsed = false;
    x->waits = 1000; /* never wait again */
    x->how = HOW_NONE;
    x->may_store = false;
    return exchange_next(x, &FORWARD);
}

/* A Content-Range in a 200 means nothing and is kept as it came; beside ours it would. */
static struct span
block_of_range(struct exchange *x)
{
    if (!fields_find(&x->entry->head->fields, FIELD_CONTENT_RANGE))
        return block_for_client(x);
    return block_without(x, FIELD_CONTENT_RANGE, FIELD_SET_COOKIE);
}

static enum step
answer_range(struct exchange *x)
{
    const struct byte_range *r = x->give;
    uint64_t n = r->last - r->first + 1, from = x->entry->part ? x->entry->part->from : 0;
    struct buf *b;

    if (!open_reader(x, r->first - from, n))
        return too_late(x);
    b = own_fields(x);
    buf_addf(b, "Content-Range: bytes %llu-%llu/%llu\r\n", (unsigned long long)r->first,
             (unsigned long long)r->last, (unsigned long long)entry_length(x->entry));
    exchange_respond(x, &(struct outgoing){.status = 206,
                                           .reason = SPAN("Partial Content"),
                                           .block = block_of_range(x),
                                           .extra = buf_span(b),
                                           .body = &x->out.source,
                                           .length = n});
    return STEP_WAIT;
}

static enum step
answer_ranges(struct exchange *x)
{
    uint64_t length;
    struct span type;
    struct source *body = multipart_new(x, &length, &type);
    struct buf *b = own_fields(x);

    buf_add(b, type);
    exchange_respond(
        x, &(struct outgoing){.status = 206,
                              .reason = SPAN("Partial Content"),
                              .block = block_without(x, FIELD_CONTENT_TYPE, FIELD_SET_COOKIE),
                              .extra = buf_span(b),
                              .body = body,
                              .length = length});
    return STEP_WAIT;
}

static enum step
answer_unsatisfiable(struct exchange *x)
{
    struct buf *b = own_fields(x);

    close_reader(x);
    buf_addf(b, "Content-Range: bytes */%llu\r\n", (unsigned long long)entry_length(x->entry));
    exchange_respond(x, &(struct outgoing){.status = 416,
                                           .reason = SPAN("Range Not Satisfiable"),
                                           .extra = buf_span(b),
                                           .length = 0});
    return STEP_WAIT;
}

/* A 304 speaks of the length of a 200, as its origin did or not at all (RFC 9110 section 8.6); its
 * own empty body is no measure. Trailers can only follow a chunked body: with some, a length that
 * was not announced stays unsaid. */
static uint64_t
length_to_announce(const struct exchange *x)
{
    const struct entry *e = x->entry;

    if (e->length != LENGTH_UNKNOWN || e->head->status == 304 ||
        (exchange_is_head(x) && !exchange_from_store(x)))
        return e->length;
    if (body_state(e->body) == BODY_COMPLETE && body_trailer(e->body).n)
        return LENGTH_UNKNOWN;
    return entry_length(e);
}

static enum step
answer_whole(struct exchange *x)
{
    const struct head *h = x->entry->head;
    bool bodyless = exchange_is_head(x) || status_has_no_body(h->status);
    uint64_t length = length_to_announce(x);

    if (bodyless)
        close_reader(x);
    else if (!open_reader(x, 0, UINT64_MAX))
        return too_late(x);
    exchange_respond(x, &(struct outgoing){.status = h->status,
                                           .reason = h->reason,
                                           .block = block_for_client(x),
                                           .extra = buf_span(own_fields(x)),
                                           .body = bodyless ? NULL : &x->out.source,
                                           .length = length,
                                           .bodyless = bodyless});
    return STEP_WAIT;
}

/* What is cut already while it comes in was chosen then. */
static enum range_result
ranges_wanted(struct exchange *x)
{
    if (x->out.open || x->n_give)
        return x->n_give ? RANGE_OK : RANGE_IGNORE;
    return parts_choose(x);
}

static enum step
answer_what_is_wanted(struct exchange *x)
{
    switch (ranges_wanted(x)) {
    case RANGE_OK:
        return x->n_give == 1 ? answer_range(x) : answer_ranges(x);
    case RANGE_UNSATISFIABLE:
        return answer_unsatisfiable(x);
    case RANGE_IGNORE:
        break;
    }
    return answer_whole(x);
}

static enum step
step_deliver(struct exchange *x)
{
    struct selected s = exchange_selected(x->entry->head);

    if (outcome_is_hit(x))
        counter_add(COUNTER_CLIENT_HITS, 1);
    if (x->background) {
        exchange_finish(x);
        return STEP_DONE;
    }
    if (exchange_from_store(x) && x->entry->head->status == 200 &&
        conditional_is_present(&x->request.fields)) {
        enum precondition p = conditional_evaluate(&x->request, &s, clock_wall_s());

        if (p != PRECONDITION_PASS)
            return answer_condition(x, p);
    }
    return answer_what_is_wanted(x);
}

/* ---- answers of our own ---- */

static struct entry *
own_entry(struct exchange *x, struct span text)
{
    struct response_head r = {.status = 200, .minor = 1};
    struct head_times t = {clock_wall_s(), clock_wall_s(), clock_mono_ms()};
    struct head *h = head_new(&x->request, &r, &t);
    struct body *b = body_new(BODY_KEEP, text.n, x->env->loop, NULL);

    body_append(b, text);
    body_complete(b, SPAN_NONE);
    return entry_new(&h, &b, SPAN_NONE, text.n);
}

static void
respond_text(struct exchange *x, unsigned status, struct buf *extra, struct span text, bool close)
{
    bool bodyless = exchange_is_head(x);

    if (x->entry)
        entry_unref(&x->entry);
    close_reader(x);
    x->entry = own_entry(x, text);
    CHECK(entry_source_open(&x->out, x->entry, 0, UINT64_MAX, x->env->loop, x->client.wake));
    exchange_respond(x, &(struct outgoing){.status = status,
                                           .reason = status_reason(status),
                                           .extra = buf_span(extra),
                                           .body = bodyless ? NULL : &x->out.source,
                                           .length = text.n,
                                           .bodyless = bodyless,
                                           .close = close});
}

static enum step
step_fail(struct exchange *x)
{
    struct buf page = {0}, *extra = &x->env->head;
    char date[DATE_TEXT_MAX];

    if (x->background) {
        exchange_finish(x);
        return STEP_DONE;
    }
    counter_add(COUNTER_CLIENT_ERRORS, 1);
    exchange_drop_store(x);
    fill_release(&x->fill);
    log_event(fault_level(x->fault), "%.*s: %s%s%s (while %s)", SPAN_ARG(x->url),
              fault_sentence(x->fault), x->error ? ": " : "", x->error ? strerror(x->error) : "",
              x->state->name);
    error_page_write(&page, x, x->fault);
    extra->n = 0;
    h1_write_field(extra, SPAN("Date"), span_of(date, date_format(clock_wall_s(), date)));
    BUF_ADD(
        extra,
        "Server: cuttle\r\nContent-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\n"
        "Content-Language: en\r\nX-Content-Type-Options: nosniff\r\n");
    h1_write_field(extra, SPAN("X-Squid-Error"),
                   arena_printf(&x->arena, "%s %d", fault_page(x->fault), x->error));
    outcome_proxy_status(x, extra);
    respond_text(x, fault_status(x->fault), extra, buf_span(&page),
                 x->fault_detail != NULL || x->fault == FAULT_BAD_REQUEST ||
                     x->fault == FAULT_REQUEST_TIMEOUT || x->body != NULL);
    buf_free(&page);
    return STEP_WAIT;
}

/* OPTIONS for the proxy itself, TRACE that may go no further. */
static enum step
answer_here(struct exchange *x)
{
    struct buf *extra = &x->env->head, text = {0};

    extra->n = 0;
    BUF_ADD(extra, "Server: cuttle\r\nCache-Control: no-store\r\n");
    if (x->request.method == METHOD_TRACE) {
        BUF_ADD(extra, "Content-Type: message/http\r\n");
        h1_write_request_line(&text, x->request.method_text, x->request.target);
        for (unsigned i = 0; i < x->request.fields.n; i++)
            if (x->request.fields.at[i].id != FIELD_PROXY_AUTHORIZATION &&
                x->request.fields.at[i].id != FIELD_COOKIE &&
                x->request.fields.at[i].id != FIELD_AUTHORIZATION)
                h1_write_field(&text, x->request.fields.at[i].name, x->request.fields.at[i].value);
        BUF_ADD(&text, "\r\n");
    } else
        BUF_ADD(extra, "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE, CONNECT\r\n");
    respond_text(x, 200, extra, buf_span(&text), false);
    buf_free(&text);
    return STEP_WAIT;
}

/* Any other path in origin-form is a request that was meant for an origin. */
static bool
is_page_path(const struct exchange *x)
{
    return x->request.uri.form != URI_ORIGIN ||
           span_starts(x->request.uri.path, SPAN("/squid-internal-mgr"));
}

static enum step
step_local(struct exchange *x)
{
    struct buf *extra = &x->env->head, text = {0};
    const char *type = "text/plain; charset=utf-8";
    bool get = x->request.method == METHOD_GET || exchange_is_head(x);

    if (!x->facts.is_manager)
        return answer_here(x);
    if (!get)
        return exchange_fail(x, FAULT_NOT_ALLOWED, 0);
    if (!x->env->page || !x->env->page(x->env->owner, x->request.uri.path, &text, &type)) {
        buf_free(&text);
        return exchange_fail(x, is_page_path(x) ? FAULT_NOT_FOUND : FAULT_BAD_URL, 0);
    }
    x->own_type = type;
    extra->n = 0;
    BUF_ADD(extra, "Server: cuttle\r\nCache-Control: no-store\r\n");
    h1_write_field(extra, SPAN("Content-Type"), span_str(type));
    respond_text(x, 200, extra, buf_span(&text), false);
    buf_free(&text);
    return STEP_WAIT;
}

enum step
exchange_tell(struct exchange *x, struct span text)
{
    struct buf *extra = &x->env->head;

    extra->n = 0;
    BUF_ADD(extra, "Server: cuttle\r\nCache-Control: no-store\r\n");
    BUF_ADD(extra, "Content-Type: text/plain; charset=utf-8\r\n");
    respond_text(x, 200, extra, text, false);
    return STEP_WAIT;
}

static enum step
step_answered(struct exchange *x)
{
    return STEP_WAIT;
}

const struct exchange_state DELIVER = {"delivering", step_deliver};
const struct exchange_state FAIL = {"failing", step_fail};
const struct exchange_state LOCAL = {"answering here", step_local};
const struct exchange_state ANSWERED = {"sending the answer", step_answered};
