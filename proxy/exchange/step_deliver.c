/* From an entry to what leaves for the client: conditions and ranges of the client first, then our
 * own fields behind the stored ones. */
#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "cache/freshness.h"
#include "http/auth.h"
#include "http/conditional.h"
#include "http/range.h"
#include "http/status.h"
#include "proxy/exchange/states.h"

static void
add_age(struct exchange *x, struct fields *added)
{
    struct arena *a = &x->context->arena;
    struct buf *text = &x->env->head;
    const struct refresh_rule *rule = x->context->rule;
    struct freshness f;

    if (!outcome_is_hit(x) && x->answer.how != HOW_FAIL_OLD && x->answer.how != HOW_UNMODIFIED &&
        x->answer.entry->head->initial_age_s == 0)
        return;
    f = freshness_at(x->answer.entry->head, rule ? rule : &REFRESH_RULE_DEFAULT, clock_mono_ms());
    text->n = 0;
    buf_add_uint(text, (uint64_t)f.age_s);
    fields_add_id(added, a, FIELD_AGE, arena_copy(a, buf_span(text)));
}

/* Was the head brought by the request of somebody else, or by an earlier one? */
static bool
head_is_stored(const struct exchange *x)
{
    return outcome_is_hit(x) || x->answer.how == HOW_FAIL_OLD || x->answer.freshened;
}

/* RFC 9111 section 7.3 lets a cookie be stored, but it was made for one client, and no address
 * tells clients apart: behind one there may be many. So none leaves the store, whatever else the
 * origin says of the response. A client gets the cookies of the 304, or of the missing part, that
 * its own request brought. */
static void
own_cookies_only(struct exchange *x, struct edits *e)
{
    const struct fields *own = &x->answer.cookies;

    if (head_is_stored(x) && fields_find(&x->answer.entry->head->fields, FIELD_SET_COOKIE))
        edits_remove(e, FIELD_SET_COOKIE);
    for (unsigned i = 0; i < own->n; i++)
        fields_add(&e->added, &x->context->arena, own->at[i].name, own->at[i].value);
}

/* A client may try such a log-in only when it is told that the connections behind us are kept apart
 * (RFC 4559 section 6). */
static void
say_log_ins_work(struct exchange *x, struct fields *added)
{
    const struct head *h = x->answer.entry->head;
    struct arena *a = &x->context->arena;

    if (h->status != 401 || !auth_binds_response(&h->fields))
        return;
    fields_add(added, a, SPAN("Proxy-Support"), SPAN("Session-Based-Authentication"));
    fields_add_id(added, a, FIELD_CONNECTION, SPAN("Proxy-Support"));
}

/* What leaves differs from the entry's head by so much, whatever else is added. */
static struct edits
edits_for_client(struct exchange *x)
{
    struct edits e = {0};

    own_cookies_only(x, &e);
    add_age(x, &e.added);
    outcome_cache_status(x, &e.added);
    say_log_ins_work(x, &e.added);
    return e;
}

static void
close_reader(struct exchange *x)
{
    entry_source_close(&x->answer.out);
}

/* 304 or 412 from what is stored (RFC 9110 section 15.4.5: the fields a 200 would carry). */
static enum step
answer_condition(struct exchange *x, enum precondition p)
{
    struct edits e;

    if (p == PRECONDITION_FAILED)
        return exchange_fail(x, FAULT_PRECONDITION, 0);
    close_reader(x);
    if (x->answer.how == HOW_HIT)
        x->answer.how = HOW_IMS_HIT;
    e = edits_for_client(x);
    exchange_respond(x, &(struct outgoing){.status = 304,
                                           .reason = SPAN("Not Modified"),
                                           .head = x->answer.entry->head,
                                           .edits = &e,
                                           .length = LENGTH_UNKNOWN,
                                           .bodyless = true});
    return STEP_WAIT;
}

static bool
open_reader(struct exchange *x, uint64_t from, uint64_t n_bytes)
{
    bool open = x->answer.out.open || entry_source_open(&x->answer.out, x->answer.entry, from,
                                                        n_bytes, x->env->loop, x->client.wake);

    if (x->look.disk)
        tier_read_release(&x->look.disk);
    return open;
}

/* The bytes are no longer kept (the body outgrew the store while we waited): fetch it ourselves,
 * and without our conditions, which a 304 for the same lost bytes would answer. */
static enum step
too_late(struct exchange *x)
{
    entry_unref(&x->answer.entry);
    exchange_drop_variants(x);
    x->answer.freshened = false;
    x->answer.cookies = (struct fields){0};
    x->look.sharing = SHARING_NEVER;
    x->answer.how = HOW_NONE;
    x->look.may_store = false;
    return exchange_next(x, FORWARD);
}

static enum step
answer_range(struct exchange *x)
{
    const struct byte_range *r = x->ranges.give;
    uint64_t n = r->last - r->first + 1,
             from = x->answer.entry->part ? x->answer.entry->part->from : 0;
    struct arena *a = &x->context->arena;
    struct edits e;

    if (!open_reader(x, r->first - from, n))
        return too_late(x);
    e = edits_for_client(x);
    edits_remove(&e,
                 FIELD_CONTENT_RANGE); /* in a stored 200 it means nothing; beside ours it would */
    fields_add_id(&e.added, a, FIELD_CONTENT_RANGE,
                  arena_printf(a, "bytes %llu-%llu/%llu", (unsigned long long)r->first,
                               (unsigned long long)r->last,
                               (unsigned long long)entry_length(x->answer.entry)));
    exchange_respond(x, &(struct outgoing){.status = 206,
                                           .reason = SPAN("Partial Content"),
                                           .head = x->answer.entry->head,
                                           .edits = &e,
                                           .body = &x->answer.out.source,
                                           .length = n});
    return STEP_WAIT;
}

static enum step
answer_ranges(struct exchange *x)
{
    uint64_t length;
    struct span type;
    struct source *body = multipart_new(x, &length, &type);
    struct edits e = edits_for_client(x);

    edits_remove(&e, FIELD_CONTENT_TYPE);
    fields_add_id(&e.added, &x->context->arena, FIELD_CONTENT_TYPE, type);
    exchange_respond(x, &(struct outgoing){.status = 206,
                                           .reason = SPAN("Partial Content"),
                                           .head = x->answer.entry->head,
                                           .edits = &e,
                                           .body = body,
                                           .length = length});
    return STEP_WAIT;
}

static enum step
answer_unsatisfiable(struct exchange *x)
{
    struct arena *a = &x->context->arena;
    struct edits e = edits_for_client(x);

    close_reader(x);
    fields_add_id(
        &e.added, a, FIELD_CONTENT_RANGE,
        arena_printf(a, "bytes */%llu", (unsigned long long)entry_length(x->answer.entry)));
    exchange_respond(
        x, &(struct outgoing){
               .status = 416, .reason = SPAN("Range Not Satisfiable"), .edits = &e, .length = 0});
    return STEP_WAIT;
}

/* A 304 speaks of the length of a 200, as its origin did or not at all (RFC 9110 section 8.6); its
 * own empty body is no measure. Trailers can only follow a chunked body: with some, a length that
 * was not announced stays unsaid. */
static uint64_t
length_to_announce(const struct exchange *x)
{
    const struct entry *e = x->answer.entry;

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
    const struct head *h = x->answer.entry->head;
    bool bodyless = exchange_is_head(x) || status_has_no_body(h->status);
    uint64_t length = length_to_announce(x);
    struct edits e;

    if (bodyless)
        close_reader(x);
    else if (!open_reader(x, 0, UINT64_MAX))
        return too_late(x);
    e = edits_for_client(x);
    exchange_respond(x, &(struct outgoing){.status = h->status,
                                           .reason = h->reason,
                                           .head = h,
                                           .edits = &e,
                                           .body = bodyless ? NULL : &x->answer.out.source,
                                           .length = length,
                                           .bodyless = bodyless});
    return STEP_WAIT;
}

/* What is cut already while it comes in was chosen then. */
static enum range_result
ranges_wanted(struct exchange *x)
{
    if (x->answer.out.open || x->ranges.n_give)
        return x->ranges.n_give ? RANGE_OK : RANGE_IGNORE;
    return parts_choose(x);
}

static enum step
answer_what_is_wanted(struct exchange *x)
{
    switch (ranges_wanted(x)) {
    case RANGE_OK:
        return x->ranges.n_give == 1 ? answer_range(x) : answer_ranges(x);
    case RANGE_UNSATISFIABLE:
        return answer_unsatisfiable(x);
    case RANGE_IGNORE:
        break;
    }
    return answer_whole(x);
}

enum step
step_deliver(struct exchange *x)
{
    struct selected s = exchange_selected(x->answer.entry->head);

    if (outcome_is_hit(x))
        counter_add(COUNTER_CLIENT_HITS, 1);
    if (x->cause == CAUSE_BACKGROUND) {
        exchange_finish(x);
        return STEP_DONE;
    }
    if (exchange_from_store(x) && x->answer.entry->head->status == 200 &&
        conditional_is_present(&x->context->request.fields)) {
        enum precondition p = conditional_evaluate(&x->context->request, &s, clock_wall_s());

        if (p != PRECONDITION_PASS)
            return answer_condition(x, p);
    }
    return answer_what_is_wanted(x);
}

enum step
step_answered(struct exchange *x)
{
    return STEP_WAIT;
}
