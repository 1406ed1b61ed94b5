/* The rest of a response that is on its way to its client, by a fetch of its own: the one it shares
 * hangs, or the client is too slow for the others who share it (cache/body.h).
 *
 * What has been sent cannot be taken back, so the new fetch must bring the same bytes. There are
 * two ways to know that it does:
 * - A strong validator. The rest is asked for with Range and If-Range (RFC 9110 section 13.1.5); of
 *   an origin that sends the whole all the same, under that validator, what was sent is skipped.
 * - None, but the shared body still holds all that was sent. Then the whole is asked for, and what
 *   comes is compared with that, byte by byte: where it is the same up to there, the client gets
 *   the newer response, whole.
 * Else the response ends here, visibly incomplete (the connection closes before the end), as when
 * an origin breaks off: the client knows that it has to ask again, and nothing wrong is sent. That
 * is better than to hang for as long as the other fetch does, or to hold up the others.
 *
 * The fetch is an exchange in the context of the client's. It ends when it has handed its body to
 * the source that the client reads from. It is tried once: then the client has a fetch of its own
 * and waits for it as for any other. */
#include "base/check.h"
#include "proxy/exchange/states.h"

/* ---- may it? ---- */

static bool
may_ask_origin(const struct exchange *x)
{
    return x->cause == CAUSE_CLIENT && x->context->request.method == METHOD_GET &&
           x->context->framing.how == FRAMING_NONE && !x->context->cc.only_if_cached &&
           !x->context->policy->request.reuse.offline && x->ranges.n_give <= 1;
}

bool
rest_may_resume(const struct exchange *x)
{
    const struct entry *e = x->answer.entry;

    return may_ask_origin(x) && e->head->status == 200 && part_validator(e->head).n &&
           (!e->part || e->part->whole);
}

/* The body holds all from the first byte on; it is asked again when it comes to that. */
static bool
may_compare(const struct exchange *x)
{
    const struct entry *e = x->answer.entry;

    return may_ask_origin(x) && !e->part && !x->answer.out.skip && body_mode(e->body) == BODY_KEEP;
}

bool
rest_shares(const struct exchange *x)
{
    return !x->hop.fill && !x->answer.out.own_fetch;
}

/* Who reads from a slow disk what the origin cannot go on with has nothing better to turn to. */
bool
rest_may_leave(const struct exchange *x)
{
    return rest_may_resume(x) || (may_ask_origin(x) && x->answer.how != HOW_DISK_HIT);
}

/* ---- the other fetch ---- */

static struct exchange *
exchange_for_rest(struct exchange *x)
{
    const struct entry_source *s = &x->answer.out;
    const struct part *p = x->answer.entry->part;
    struct exchange *y = exchange_new_in_background(x);

    y->cause = CAUSE_REST;
    y->rest.of = x;
    y->rest.resumes = rest_may_resume(x);
    y->rest.from = (p ? p->from : 0) + body_reader_at(&s->reader) + s->skip;
    y->rest.end = s->left == UINT64_MAX ? UINT64_MAX : y->rest.from + s->left;
    y->hop.conditions = CONDITIONS_NONE;
    y->state = FORWARD;
    return y;
}

enum source_state
rest_begin(struct exchange *x)
{
    struct entry_source *s = &x->answer.out;

    loop_timer_stop(&x->patience);
    if (!rest_may_resume(x) && !may_compare(x)) {
        s->source.fault = FAULT_SERVER_INCOMPLETE;
        return SOURCE_FAULT;
    }
    x->rest.by = exchange_for_rest(x);
    entry_source_close(s);
    fill_release(&x->hop.fill);
    loop_defer(x->env->loop, &x->rest.by->resume);
    return SOURCE_WAIT;
}

void
rest_change_request(struct exchange *y, struct fields *f)
{
    static const enum field_id others[] = {FIELD_RANGE, FIELD_IF_RANGE, FIELD_IF_MATCH,
                                           FIELD_IF_UNMODIFIED_SINCE};
    struct arena *a = &y->context->arena;
    unsigned long long from = y->rest.from, end = y->rest.end;

    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++)
        fields_remove(f, others[i]);
    if (!y->rest.resumes)
        return;
    fields_add_id(f, a, FIELD_RANGE,
                  y->rest.end == UINT64_MAX ? arena_printf(a, "bytes=%llu-", from)
                                            : arena_printf(a, "bytes=%llu-%llu", from, end - 1));
    fields_add_id(f, a, FIELD_IF_RANGE, part_validator(y->rest.of->answer.entry->head));
}

/* ---- what it brings ---- */

static bool
is_rest(const struct exchange *y, const struct head *h)
{
    const struct entry *sent = y->rest.of->answer.entry;
    uint64_t whole = entry_length(sent);
    struct part p;

    return part_of_response(y->hop.response, framed_length(y->hop.framing), SPAN("-"), &p) && p.whole &&
           (whole == LENGTH_UNKNOWN || whole == p.whole) && p.from == y->rest.from &&
           part_is_same(sent->head, h);
}

static bool
same_field(const struct head *a, const struct head *b, enum field_id id)
{
    const struct field *fa = fields_find(&a->fields, id), *fb = fields_find(&b->fields, id);

    return fa && fb ? span_eq(fa->value, fb->value) : fa == fb;
}

/* Its head at least; the bytes are compared as they come. */
static bool
is_whole(const struct exchange *y, const struct head *h)
{
    const struct entry *sent = y->rest.of->answer.entry;

    if (h->status != sent->head->status)
        return false;
    if (y->rest.resumes)
        return part_is_same(sent->head, h);
    return same_field(sent->head, h, FIELD_CONTENT_TYPE) &&
           same_field(sent->head, h, FIELD_CONTENT_ENCODING) &&
           (sent->length == LENGTH_UNKNOWN || sent->length == framed_length(y->hop.framing));
}

/* The client's source goes on from the new body. */
static void
hand_over(struct exchange *y, struct head *h)
{
    struct exchange *x = y->rest.of;
    uint64_t length = framed_length(y->hop.framing), skip = h->status == 206 ? 0 : y->rest.from;
    struct body *b = body_new(BODY_PASS, length, y->env->loop, fill_room_task(y->hop.fill));
    struct entry *e = entry_new(&h, &b, SPAN_NONE, length);

    entry_source_go_on(&x->answer.out, e, skip, !y->rest.resumes);
    x->rest.by = y->rest.of = NULL;
    fill_into(y->hop.fill, e, &(struct fill_keeping){0});
    entry_unref(&e);
    loop_defer(x->env->loop, x->client.wake);
}

enum step
rest_judge(struct exchange *y)
{
    struct head *h = head_new(&y->context->request, y->hop.response, y->hop.times);

    if (h->status == 206 ? y->rest.resumes && is_rest(y, h) : is_whole(y, h))
        hand_over(y, h);
    else
        head_unref(&h);
    exchange_finish(y);
    return STEP_DONE;
}

/* Whichever of the two it is. */
void
rest_end(struct exchange *x)
{
    struct exchange *by = x->rest.by, *of = x->rest.of;

    x->rest.by = x->rest.of = NULL;
    if (by) {
        by->rest.of = NULL;
        exchange_finish(by);
    }
    if (of) { /* it brought nothing that goes on where the client is */
        of->rest.by = NULL;
        of->answer.out.source.fault = FAULT_SERVER_INCOMPLETE;
        loop_defer(of->env->loop, of->client.wake);
    }
}
