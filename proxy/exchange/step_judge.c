/* What an answer of the next hop means for the store and for the client. */
#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "cache/invalidate.h"
#include "cache/storable.h"
#include "cache/validate.h"
#include "cache/vary.h"
#include "proxy/exchange/states.h"

/* ---- what the fill tells ---- */

static void
fill_interim(void *owner, const struct response_head *r)
{
    struct exchange *x = owner;
    struct fields f = r->fields;

    forwarding_clean(&f);
    if (x->client.ops && x->context->request.minor >= 1)
        x->client.ops->interim(x->client.responder, r->status, &f);
}

static void
note_server(struct exchange *x, const struct fill *f)
{
    x->hop.server = *fill_server(f);
    x->hop.took = fill_times_of(f);
}

static void
fill_head(void *owner, const struct response_head *r, const struct framed *framing,
          const struct head_times *t)
{
    struct exchange *x = owner;

    note_server(x, x->hop.fill);
    x->hop.response = r;
    x->hop.framing = framing;
    x->hop.times = t;
    x->hop.status = r->status;
    exchange_resume(x);
}

static void
fill_upgraded(void *owner, const struct response_head *r, struct conn **conn, struct span early)
{
    struct exchange *x = owner;

    note_server(x, x->hop.fill);
    fill_release(&x->hop.fill); /* it has no events any more and ends by itself */
    x->hop.status = r->status;
    x->tunnel.server = *conn;
    *conn = NULL;
    buf_add(&x->tunnel.early, early);
    x->hop.response = r;
    (void)exchange_next(x, TUNNEL);
    exchange_resume(x);
}

static void
fill_failed(void *owner, const struct fill *f, enum fault why, int error)
{
    struct exchange *x = owner;

    note_server(x, f);
    x->answer.fault = why;
    x->answer.error = error;
    exchange_resume(x);
}

const struct fill_events exchange_fill_events = {forward_compose, fill_interim, fill_head,
                                                 fill_upgraded, fill_failed};

/* ---- judging the answer ---- */

/* No usable answer: a stale response may stand in (RFC 9111 section 4.2.4). */
static bool
stale_may_stand_in(struct exchange *x, unsigned status)
{
    return x->look.stored &&
           reuse_after_failure(&x->context->cc, x->look.stored->head, x->context->rule,
                               &x->context->policy->request.reuse, status, clock_mono_ms());
}

static enum step
serve_stale(struct exchange *x, unsigned status)
{
    x->answer.how = HOW_FAIL_OLD;
    x->answer.entry = x->look.stored;
    x->look.stored = NULL;
    if (x->look.ticket)
        store_stand_in(x->env->store, &x->look.ticket, x->answer.entry, status);
    return exchange_next(x, DELIVER);
}

static enum step
judge_failure(struct exchange *x)
{
    if (x->answer.fault != FAULT_CLIENT_GONE && stale_may_stand_in(x, 0))
        return serve_stale(x, 0);
    return exchange_fail(x, x->answer.fault, x->answer.error);
}

/* A copy: the fill's own keeps its fields for the questions that come later. */
static struct response_head
cleaned(struct exchange *x)
{
    struct response_head r = *x->hop.response;
    unsigned n = r.fields.n;

    r.fields.cap = n + 2;
    r.fields.at = arena_alloc(&x->context->arena, r.fields.cap * sizeof *r.fields.at);
    memcpy(r.fields.at, x->hop.response->fields.at, n * sizeof *r.fields.at);
    forwarding_clean(&r.fields);
    if (x->context->policy->request.via)
        forwarding_add_via(&r.fields, &x->context->arena, r.minor, x->context->policy->pseudonym);
    return r;
}

/* The body of a fill nobody needs: a 304, or an error whose place a stale response takes. */
static void
drop_fill(struct exchange *x)
{
    struct body *b;
    struct head *h;
    struct entry *e;

    if (x->hop.framing->how != FRAMING_NONE) {
        fill_cancel(&x->hop.fill);
        return;
    }
    b = body_new(BODY_PASS, 0, x->env->loop, fill_room_task(x->hop.fill));
    h = head_new(&x->context->request, x->hop.response, x->hop.times);
    e = entry_new(&h, &b, SPAN_NONE, 0);
    fill_into(x->hop.fill, e, &(struct fill_keeping){0});
    fill_release(&x->hop.fill);
    entry_unref(&e);
}

static struct entry *
validated(struct exchange *x)
{
    struct head *heads[8];
    int i;

    for (unsigned k = 0; k < x->hop.n_variants; k++)
        heads[k] = x->hop.variants[k]->head;
    i = validate_select(x->hop.response, heads, x->hop.n_variants);
    return i < 0 ? NULL : x->hop.variants[i];
}

/* What a 304 says of the stored response holds for all, unless it was said to one log-in. */
static void
take_over(struct exchange *x, struct entry *old, struct entry *fresh)
{
    const struct context *c = x->context;
    struct storable s;

    if (x->hop.bound)
        return;
    s = response_storable(&c->request, &c->cc, fresh->head, c->rule);
    if (!s.yes)
        store_withdraw(x->env->store, old); /* the 304 took the permission back */
    else if (x->look.ticket)
        store_freshen(x->env->store, &x->look.ticket, old, fresh, s.share);
}

/* What came freshens a stored head; its cookies are this client's and never stored. */
static void
note_freshened(struct exchange *x, const struct fields *f)
{
    struct arena *a = &x->context->arena;

    x->answer.freshened = true;
    if (x->cause != CAUSE_CLIENT)
        return;
    for (const struct field *c = fields_find(f, FIELD_SET_COOKIE); c;
         c = fields_next(f, FIELD_SET_COOKIE, c))
        fields_add(&x->answer.cookies, a, arena_copy(a, c->name), arena_copy(a, c->value));
}

static enum step
judge_not_modified(struct exchange *x, struct entry *old)
{
    struct response_head r = cleaned(x);
    struct head *h = head_freshen(old->head, &x->context->request, &r, x->hop.times);
    struct entry *fresh = entry_freshened(old, &h);

    counter_add(COUNTER_NOT_MODIFIED, 1);
    note_freshened(x, &r.fields);
    drop_fill(x);
    take_over(x, old, fresh);
    if (x->look.ticket)
        store_abandon(x->env->store, &x->look.ticket, SHARE_NONE);
    x->answer.how = HOW_UNMODIFIED;
    x->answer.entry = fresh;
    return exchange_next(x, DELIVER);
}

static void
invalidate(struct exchange *x)
{
    struct span uris[3];
    unsigned n =
        invalidate_targets(&x->context->request, x->hop.response, &x->context->arena, uris);

    if (x->context->host_elsewhere) /* another server answers for what is stored */
        return;
    for (unsigned i = 0; i < n; i++) {
        struct cache_key key = cache_key_of(uris[i]);

        (void)store_invalidate(x->env->store, &key);
    }
}

/* RFC 9111 section 4.3.5: what is told of the stored response is taken over, unless it may no
 * longer be stored then. */
static void
freshen_by_head(struct exchange *x, struct entry *stored)
{
    struct response_head r = cleaned(x);
    struct head *h = head_freshen(stored->head, &x->context->request, &r, x->hop.times);
    struct entry *fresh = entry_freshened(stored, &h);
    struct request_head as_get = x->context->request;

    as_get.method = METHOD_GET;
    if (response_storable(&as_get, &x->context->cc, fresh->head, x->context->rule).yes)
        store_refresh(x->env->store, stored, fresh);
    else
        store_withdraw(x->env->store, stored);
    entry_unref(&fresh);
}

/* The answer to a HEAD freshens or invalidates the stored one to a GET, but is not stored itself.
 */
static void
judge_head(struct exchange *x)
{
    struct entry *stored;
    bool vary_miss;

    if (!exchange_is_head(x) || !x->look.may_serve || x->hop.bound ||
        x->hop.response->status != 200)
        return;
    stored = store_lookup(x->env->store, &x->context->key, &x->context->request, &vary_miss);
    if (!stored)
        return;
    if (validate_head_fits(x->hop.response, stored->head, entry_length(stored)))
        freshen_by_head(x, stored);
    else
        store_withdraw(x->env->store, stored);
    entry_unref(&stored);
}

static bool
worth_storing(const struct exchange *x, uint64_t length)
{
    if (!x->look.may_store || !x->look.ticket)
        return false;
    return (int64_t)(length == LENGTH_UNKNOWN ? INT64_MAX : (int64_t)length) >=
               x->context->policy->request.minimum_bytes &&
           exchange_rules_allow(x, x->context->policy->request.store_miss);
}

static bool
worth_keeping(const struct exchange *x, uint64_t length)
{
    return (length == LENGTH_UNKNOWN || length <= x->context->policy->request.keep_bytes) &&
           worth_storing(x, length);
}

/* Too large for the memory, or perhaps so. */
static bool
worth_spooling(const struct exchange *x, const struct arrival *a)
{
    return x->context->policy->request.spool_bytes > 0 && x->env->disk && !a->is_part &&
           !a->before && x->hop.response->status != 206 &&
           (a->length == LENGTH_UNKNOWN
                ? x->answer.kept == KEPT_IN_STORE
                : a->length > x->context->policy->request.keep_bytes &&
                      a->length <= x->context->policy->request.spool_bytes &&
                      worth_storing(x, a->length));
}

/* What is not kept, or not for all, says so to those who come next, so that they do not wait for
 * each other in vain; a part is no word about the whole. */
static void
settle_ticket(struct exchange *x, struct entry *e, const struct storable *s)
{
    if (!x->look.ticket)
        return;
    if (x->answer.kept == KEPT_IN_STORE)
        store_publish(x->env->store, &x->look.ticket, e, s->share);
    else
        store_abandon(x->env->store, &x->look.ticket, x->ranges.field ? SHARE_ALL : SHARE_NONE);
}

/* Length of the representation for HEAD answers, else of the body. */
static uint64_t
announced_length(struct exchange *x, uint64_t length)
{
    const struct field *f = fields_find(&x->hop.response->fields, FIELD_CONTENT_LENGTH);
    uint64_t n;

    if ((exchange_is_head(x) || x->hop.response->status == 304) && f &&
        span_to_uint(f->value, UINT64_MAX / 16, &n))
        return n;
    return exchange_is_head(x) || x->hop.response->status == 304 ? LENGTH_UNKNOWN : length;
}

/* The answer to a POST that stands for a GET: nobody has waited for it. */
static void
reserve_for_post(struct exchange *x)
{
    if (x->context->request.method != METHOD_POST || x->look.ticket || x->context->host_elsewhere ||
        !exchange_rules_allow(x, x->context->policy->request.cache))
        return;
    x->context->key = cache_key_of(x->context->url);
    x->look.may_store = true;
    (void)store_reserve(x->env->store, &x->context->key, &x->context->request, false,
                        &x->look.waiter, &x->look.ticket);
}

/* A part as such, unless it became the whole, or more of one, by what it joins. */
static bool
may_keep(struct exchange *x, struct arrival *a)
{
    bool is_part = x->hop.response->status == 206 && !a->before;

    return worth_keeping(x, a->length) &&
           (!is_part || (parts_take_part(x, a) && worth_keeping(x, a->length)));
}

static void
decide_storing(struct exchange *x, struct arrival *a, const struct storable *s)
{
    x->answer.unstored = s->yes ? NULL : s->why;
    if (s->yes)
        reserve_for_post(x);
    x->answer.kept = s->yes && may_keep(x, a) ? KEPT_IN_STORE : KEPT_NOT;
    a->spool = s->yes && worth_spooling(x, a);
    if (a->spool && x->answer.kept == KEPT_NOT)
        x->answer.kept = KEPT_ON_DISK;
    if (s->yes && x->answer.kept == KEPT_NOT)
        x->answer.unstored = x->look.may_store ? "not-kept" : NULL;
}

/* The reader is there before the first byte: what passes is not kept for it. */
static void
open_early(struct exchange *x)
{
    uint64_t at = 0, n_bytes = UINT64_MAX;

    if (x->cause == CAUSE_BACKGROUND ||
        (x->ranges.whole_asked && parts_choose(x) == RANGE_UNSATISFIABLE) || x->ranges.n_give > 1)
        return;
    if (x->ranges.n_give) {
        at = x->ranges.give->first - (x->answer.entry->part ? x->answer.entry->part->from : 0);
        n_bytes = x->ranges.give->last - x->ranges.give->first + 1;
    }
    if (!entry_source_open(&x->answer.out, x->answer.entry, at, n_bytes, x->env->loop,
                           x->client.wake))
        UNREACHABLE();
}

static void
take_beginning(struct exchange *x, struct arrival *a)
{
    if (!a->before)
        return;
    body_append_of(x->answer.entry->body, a->before->body, 0, a->n_before);
    if (a->before != x->look.part)
        entry_unref(&a->before);
}

static struct entry *
entry_of(struct exchange *x, struct arrival *a)
{
    bool never;
    struct span vary =
        vary_spec(&a->head->fields, &x->context->request.fields, &x->context->arena, &never);
    struct body *b = body_new(x->answer.kept == KEPT_IN_STORE ? BODY_KEEP : BODY_PASS, a->length,
                              x->env->loop, fill_room_task(x->hop.fill));

    return entry_new_part(&a->head, &b, vary, a->announced, a->is_part ? &a->part : NULL);
}

/* A newer answer than the stored one, wherever that is. */
static void
replace_stored(struct exchange *x)
{
    if (x->look.disk_use == DISK_FOUND &&
        x->answer.kept != KEPT_IN_STORE) /* a spool puts the newer one there in the end */
        (void)store_invalidate(x->env->store, &x->context->key);
    store_withdraw(x->env->store, x->look.stored);
}

/* What a log-in that holds for the connection brought is for nobody else. */
static struct storable
storable_of(const struct exchange *x, const struct arrival *a)
{
    const struct context *c = x->context;

    if (x->hop.bound)
        return (struct storable){.yes = false, .share = SHARE_NONE, .why = "bound-connection"};
    return response_storable(&c->request, &c->cc, a->head, c->rule);
}

static enum step
take_answer(struct exchange *x, struct arrival *a)
{
    struct storable s = storable_of(x, a);
    bool alone;

    decide_storing(x, a, &s);
    alone = x->cause == CAUSE_BACKGROUND || (x->ranges.whole_asked && x->answer.kept != KEPT_NOT);
    x->answer.entry = entry_of(x, a);
    open_early(x);
    take_beginning(x, a);
    if (x->look.stored && x->hop.response->status < 500 && !exchange_is_head(x))
        replace_stored(x);
    settle_ticket(x, x->answer.entry, &s);
    fill_into(x->hop.fill, x->answer.entry,
              &(struct fill_keeping){.stored = x->answer.kept == KEPT_IN_STORE,
                                     .alone = alone,
                                     .spool = a->spool,
                                     .keep_bytes = x->context->policy->request.keep_bytes,
                                     .uri = x->context->url});
    if (body_state(x->answer.entry->body) == BODY_FAILED) /* nothing of it has gone out yet */
        return exchange_fail(x, body_fault(x->answer.entry->body), 0);
    return exchange_next(x, DELIVER);
}

static bool
is_failure_status(unsigned status)
{
    return status == 500 || status == 502 || status == 503 || status == 504;
}

/* A 304 that fits nothing we have, or a rest that does not belong to what we have: once more,
 * without conditions (RFC 9111 section 4.3.4). */
static enum step
ask_plainly(struct exchange *x)
{
    drop_fill(x);
    exchange_drop_variants(x);
    if (x->look.part) {
        store_withdraw(x->env->store, x->look.part);
        entry_unref(&x->look.part);
    }
    x->hop.conditions = CONDITIONS_NONE;
    return exchange_next(x, FORWARD);
}

static enum step
judge_answer(struct exchange *x)
{
    uint64_t length = framed_length(x->hop.framing);
    struct response_head r = cleaned(x);
    struct arrival a = {.r = &r, .length = length, .announced = announced_length(x, length)};
    unsigned status = x->hop.response->status;

    a.head = head_new(&x->context->request, &r, x->hop.times);
    if (x->look.part && (status == 206 || status == 416) && !parts_take_rest(x, &a)) {
        head_unref(&a.head);
        return ask_plainly(x);
    }
    if (a.before)
        note_freshened(x, &r.fields);
    return take_answer(x, &a);
}

static enum step
judge(struct exchange *x)
{
    struct entry *old;

    if (x->cause == CAUSE_REST)
        return rest_judge(x);
    x->hop.bound = fill_is_bound(x->hop.fill);
    invalidate(x);
    judge_head(x);
    if (x->hop.n_variants && x->hop.response->status == 304)
        return (old = validated(x)) != NULL ? judge_not_modified(x, old) : ask_plainly(x);
    if (x->look.stored && is_failure_status(x->hop.response->status)) {
        if (stale_may_stand_in(x, x->hop.response->status)) {
            drop_fill(x);
            return serve_stale(x, x->hop.status);
        }
        x->answer.how = HOW_FAIL_ERROR;
    }
    return judge_answer(x);
}

enum step
step_judge(struct exchange *x)
{
    enum step r;

    if (x->answer.fault)
        return judge_failure(x);
    if (!x->hop.response)
        return STEP_WAIT;
    r = judge(x);
    x->hop.response = NULL;
    x->hop.framing = NULL;
    x->hop.times = NULL;
    return r;
}
