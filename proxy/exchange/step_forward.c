/* To the next hop and back: the request as it must leave us, and what its answer means for the
 * store. */
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "cache/invalidate.h"
#include "cache/storable.h"
#include "cache/validate.h"
#include "cache/vary.h"
#include "http/h1_write.h"
#include "proxy/exchange/states.h"

/* ---- the request ---- */

static struct span
peer_text(struct exchange *x)
{
    char text[ADDR_TEXT_MAX];

    return arena_copy(&x->arena, span_of(text, addr_format(&x->client.peer, text)));
}

static bool
wants_upgrade(const struct exchange *x)
{
    return fields_has_token(&x->request.fields, FIELD_CONNECTION, SPAN("upgrade")) &&
           fields_find(&x->request.fields, FIELD_UPGRADE) && !x->body && !x->background &&
           !fields_has_token(&x->request.fields, FIELD_UPGRADE, SPAN("h2c"));
}

static struct fields
fields_copy(struct exchange *x)
{
    struct fields f = {0};

    for (unsigned i = 0; i < x->request.fields.n; i++) {
        const struct field *from = &x->request.fields.at[i];

        if (from->id)
            fields_add_id(&f, &x->arena, from->id, from->value);
        else
            fields_add(&f, &x->arena, from->name, from->value);
    }
    return f;
}

static struct fields
fields_to_send(struct exchange *x, bool upgrade)
{
    struct fields f = fields_copy(x);
    struct span protocols =
        upgrade ? fields_join(&x->request.fields, &x->arena, FIELD_UPGRADE) : SPAN_NONE;

    forwarding_clean(&f);
    fields_remove(&f, FIELD_HOST);
    if (x->n_variants) {
        struct head *heads[8];

        for (unsigned i = 0; i < x->n_variants; i++)
            heads[i] = x->variants[i]->head;
        validate_add_conditions(&f, &x->arena, heads, x->n_variants);
    }
    if (x->policy->via)
        forwarding_add_via(&f, &x->arena, x->request.minor, x->policy->pseudonym);
    if (!x->background)
        forwarding_add_client(&f, &x->arena, x->policy->forwarded_for, peer_text(x));
    if (upgrade) {
        fields_add_id(&f, &x->arena, FIELD_UPGRADE, protocols);
        fields_add_id(&f, &x->arena, FIELD_CONNECTION, SPAN("Upgrade"));
    }
    return f;
}

static struct span
head_to_send(struct exchange *x, bool upgrade)
{
    struct fields f = fields_to_send(x, upgrade);
    struct buf b = {0};
    struct span out;

    h1_write_request_line(&b, x->request.method_text, x->request.uri.path);
    h1_write_field(&b, SPAN("Host"), uri_host_field(&x->request.uri, &x->arena));
    h1_write_fields(&b, &f);
    if (x->framing.how == FRAMING_CHUNKED)
        BUF_ADD(&b, "Transfer-Encoding: chunked\r\n");
    else if (x->framing.how == FRAMING_LENGTH)
        buf_addf(&b, "Content-Length: %llu\r\n", (unsigned long long)x->framing.length);
    BUF_ADD(&b, "\r\n");
    out = arena_copy(&x->arena, buf_span(&b));
    buf_free(&b);
    return out;
}

static enum step
step_forward(struct exchange *x)
{
    bool upgrade = wants_upgrade(x);
    struct fill_order o = {
        .policy = x->policy,
        .arena = &x->arena,
        .method = x->request.method,
        .host = x->request.uri.host,
        .literal = x->request.uri.literal,
        .port = exchange_server_port(x),
        .dst = x->dst ? x->dst->at : NULL,
        .n_dst = x->dst ? x->dst->n : 0,
        .head = head_to_send(x, upgrade),
        .body = x->body,
        .body_chunked = x->framing.how == FRAMING_CHUNKED,
        .body_length = x->framing.length,
        .expects_continue = fields_find(&x->request.fields, FIELD_EXPECT) != NULL,
        .wants_upgrade = upgrade,
        .deny_local = exchange_denies_local(x),
        .events = &exchange_fill_events,
        .owner = x,
    };

    x->asked_server = true;
    if (x->how == HOW_NONE)
        x->how = x->cc.no_cache ||
                         (x->stored == NULL && x->fwd && span_eq(span_str(x->fwd), SPAN("request")))
                     ? HOW_CLIENT_REFRESH
                     : HOW_MISS;
    x->state = &JUDGE;
    fill_start(x->env->upstream, &o, &x->fill);
    return STEP_WAIT;
}

static enum step
step_validate(struct exchange *x)
{
    x->n_variants = 0;
    if (head_has_validator(x->stored->head)) {
        x->n_variants = store_variants(x->env->store, &x->key, x->variants, 8);
        if (x->n_variants == 0) {
            x->variants[x->n_variants++] = x->stored;
            entry_ref(x->stored);
        }
        counter_add(COUNTER_VALIDATIONS, 1);
        x->conditions_ours = true;
        x->how = HOW_MODIFIED;
    }
    return exchange_next(x, &FORWARD);
}

/* ---- what the fill tells ---- */

static void
fill_interim(void *owner, const struct response_head *r)
{
    struct exchange *x = owner;
    struct fields f = r->fields;

    forwarding_clean(&f);
    if (x->client.ops && x->request.minor >= 1)
        x->client.ops->interim(x->client.responder, r->status, &f);
}

static void
note_server(struct exchange *x, const struct fill *f)
{
    x->server = *fill_server(f);
    x->times = fill_times_of(f);
}

static void
fill_head(void *owner, const struct response_head *r, const struct framed *framing,
          const struct head_times *t)
{
    struct exchange *x = owner;

    note_server(x, x->fill);
    x->response = r;
    x->response_framing = framing;
    x->response_times = t;
    x->server_status = r->status;
    exchange_resume(x);
}

static void
fill_upgraded(void *owner, const struct response_head *r, struct conn **conn, struct span early)
{
    struct exchange *x = owner;

    note_server(x, x->fill);
    fill_release(&x->fill); /* it has no events any more and ends by itself */
    x->server_status = r->status;
    x->upgraded = *conn;
    *conn = NULL;
    buf_add(&x->early, early);
    x->response = r;
    x->state = &TUNNEL;
    exchange_resume(x);
}

static void
fill_failed(void *owner, const struct fill *f, enum fault why, int error)
{
    struct exchange *x = owner;

    note_server(x, f);
    x->fault = why;
    x->error = error;
    exchange_resume(x);
}

const struct fill_events exchange_fill_events = {fill_interim, fill_head, fill_upgraded,
                                                 fill_failed};

/* ---- judging the answer ---- */

/* No usable answer: a stale response may stand in (RFC 9111 section 4.2.4). */
static bool
stale_may_stand_in(struct exchange *x, unsigned status)
{
    return x->stored && reuse_after_failure(&x->cc, x->stored->head, x->rule, &x->policy->reuse,
                                            status, clock_mono_ms());
}

static enum step
serve_stale(struct exchange *x)
{
    x->how = HOW_FAIL_OLD;
    x->entry = x->stored;
    x->stored = NULL;
    if (x->ticket)
        store_abandon(x->env->store, &x->ticket, false, x->entry);
    return exchange_next(x, &DELIVER);
}

static enum step
judge_failure(struct exchange *x)
{
    if (x->fault != FAULT_CLIENT_GONE && stale_may_stand_in(x, 0))
        return serve_stale(x);
    return exchange_fail(x, x->fault, x->error);
}

static struct response_head
cleaned(struct exchange *x)
{
    struct response_head r = *x->response;

    forwarding_clean(&r.fields);
    if (x->policy->via)
        forwarding_add_via(&r.fields, &x->arena, r.minor, x->policy->pseudonym);
    return r;
}

/* The body of a fill nobody needs: a 304, or an error whose place a stale response takes. */
static void
drop_fill(struct exchange *x)
{
    struct body *b;
    struct head *h;
    struct entry *e;

    if (x->response_framing->how != FRAMING_NONE) {
        fill_cancel(&x->fill);
        return;
    }
    b = body_new(BODY_PASS, 0, x->env->loop, fill_room_task(x->fill));
    h = head_new(&x->request, x->response, x->response_times);
    e = entry_new(&h, &b, SPAN_NONE, 0);
    fill_into(x->fill, e, false, false, 0);
    fill_release(&x->fill);
    entry_unref(&e);
}

static struct entry *
validated(struct exchange *x)
{
    struct head *heads[8];
    int i;

    for (unsigned k = 0; k < x->n_variants; k++)
        heads[k] = x->variants[k]->head;
    i = validate_select(x->response, heads, x->n_variants);
    return i < 0 ? NULL : x->variants[i];
}

static enum step
judge_not_modified(struct exchange *x, struct entry *old)
{
    struct response_head r = cleaned(x);
    struct head *h = head_freshen(old->head, &x->request, &r, x->response_times);
    struct entry *fresh = entry_freshened(old, &h);

    counter_add(COUNTER_NOT_MODIFIED, 1);
    drop_fill(x);
    if (!response_storable(&x->request, &x->cc, fresh->head, x->rule).yes)
        store_withdraw(x->env->store, old); /* the 304 took the permission back */
    else if (x->ticket)
        store_freshen(x->env->store, &x->ticket, old, fresh);
    if (x->ticket)
        store_abandon(x->env->store, &x->ticket, true, NULL);
    x->how = HOW_UNMODIFIED;
    x->entry = fresh;
    return exchange_next(x, &DELIVER);
}

static void
invalidate(struct exchange *x)
{
    struct span uris[3];
    unsigned n = invalidate_targets(&x->request, x->response, &x->arena, uris);

    if (x->host_elsewhere) /* another server answers for what is stored */
        return;
    for (unsigned i = 0; i < n; i++) {
        struct cache_key key = cache_key_of(uris[i]);

        (void)store_invalidate(x->env->store, &key);
    }
}

/* HEAD: its answer freshens or invalidates the stored GET response, but is not stored itself (RFC
 * 9111 section 4.3.5). */
static void
judge_head(struct exchange *x)
{
    if (!exchange_is_head(x) || !x->may_serve || !x->stored || x->response->status != 200)
        return;
    if (!validate_head_fits(x->response, x->stored->head, entry_length(x->stored)))
        store_withdraw(x->env->store, x->stored);
}

static uint64_t
expected_length(const struct exchange *x)
{
    switch (x->response_framing->how) {
    case FRAMING_LENGTH:
        return x->response_framing->length;
    case FRAMING_NONE:
        return 0;
    default:
        return LENGTH_UNKNOWN;
    }
}

static bool
worth_keeping(const struct exchange *x, uint64_t length)
{
    if (!x->may_store || !x->ticket || (length != LENGTH_UNKNOWN && length > x->policy->keep_bytes))
        return false;
    return (int64_t)(length == LENGTH_UNKNOWN ? INT64_MAX : (int64_t)length) >=
               x->policy->conf->minimum_object_size &&
           acl_list_check(x->policy->store_miss, &x->facts) != ACL_DENY;
}

static void
settle_ticket(struct exchange *x, struct entry *e, const struct storable *s)
{
    if (!x->ticket)
        return;
    if (x->stored_ok)
        store_publish(x->env->store, &x->ticket, e);
    else
        store_abandon(x->env->store, &x->ticket, !s->shareable, NULL);
}

/* Length of the representation for HEAD answers, else of the body. */
static uint64_t
announced_length(struct exchange *x, uint64_t length)
{
    const struct field *f = fields_find(&x->response->fields, FIELD_CONTENT_LENGTH);
    uint64_t n;

    if ((exchange_is_head(x) || x->response->status == 304) && f &&
        span_to_uint(f->value, UINT64_MAX / 16, &n))
        return n;
    return exchange_is_head(x) || x->response->status == 304 ? LENGTH_UNKNOWN : length;
}

static enum step
judge_answer(struct exchange *x)
{
    uint64_t length = expected_length(x), announced = announced_length(x, length);
    struct response_head r = cleaned(x);
    struct head *h = head_new(&x->request, &r, x->response_times);
    struct storable s = response_storable(&x->request, &x->cc, h, x->rule);
    bool never = false;
    struct span vary = vary_spec(&r.fields, &x->request.fields, &x->arena, &never);
    struct body *b;

    x->stored_ok = s.yes && !never && worth_keeping(x, length);
    b = body_new(x->stored_ok ? BODY_KEEP : BODY_PASS, length, x->env->loop,
                 fill_room_task(x->fill));
    x->entry = entry_new(&h, &b, vary, announced);
    if (!x->background &&
        !entry_source_open(&x->out, x->entry, 0, UINT64_MAX, x->env->loop, x->client.wake))
        UNREACHABLE();
    if (x->stored && x->response->status < 500 && !exchange_is_head(x))
        store_withdraw(x->env->store, x->stored);
    settle_ticket(x, x->entry, &s);
    fill_into(x->fill, x->entry, x->stored_ok, x->background, x->policy->keep_bytes);
    if (body_state(x->entry->body) == BODY_FAILED) /* nothing of it has gone out yet */
        return exchange_fail(x, body_fault(x->entry->body), 0);
    return exchange_next(x, &DELIVER);
}

static bool
is_failure_status(unsigned status)
{
    return status == 500 || status == 502 || status == 503 || status == 504;
}

/* A 304 that fits nothing we have: once more, without conditions (RFC 9111 section 4.3.4). */
static enum step
ask_plainly(struct exchange *x)
{
    drop_fill(x);
    while (x->n_variants)
        entry_unref(&x->variants[--x->n_variants]);
    fields_remove(&x->request.fields, FIELD_IF_NONE_MATCH);
    fields_remove(&x->request.fields, FIELD_IF_MODIFIED_SINCE);
    return exchange_next(x, &FORWARD);
}

static enum step
judge(struct exchange *x)
{
    struct entry *old;

    invalidate(x);
    judge_head(x);
    if (x->n_variants && x->response->status == 304)
        return (old = validated(x)) != NULL ? judge_not_modified(x, old) : ask_plainly(x);
    if (x->stored && is_failure_status(x->response->status)) {
        if (stale_may_stand_in(x, x->response->status)) {
            drop_fill(x);
            return serve_stale(x);
        }
        x->how = HOW_FAIL_ERROR;
    }
    return judge_answer(x);
}

static enum step
step_judge(struct exchange *x)
{
    enum step r;

    if (x->fault)
        return judge_failure(x);
    if (!x->response)
        return STEP_WAIT;
    r = judge(x);
    x->response = NULL;
    x->response_framing = NULL;
    x->response_times = NULL;
    return r;
}

/* ---- stale-while-revalidate ---- */

static void
copy_request(struct exchange *to, const struct exchange *from)
{
    struct arena *a = &to->arena;

    to->request = from->request;
    to->request.fields = (struct fields){0};
    to->request.method_text = arena_copy(a, from->request.method_text);
    for (unsigned i = 0; i < from->request.fields.n; i++)
        fields_add(&to->request.fields, a, arena_copy(a, from->request.fields.at[i].name),
                   arena_copy(a, from->request.fields.at[i].value));
    to->url = arena_copy(a, from->url);
    CHECK(uri_parse_target(to->url, METHOD_GET, a, &to->request.uri, &(const char *){NULL}));
}

/* The stale response is on its way to the client; an exchange without a client asks the origin (RFC
 * 5861 section 3). */
void
exchange_validate_in_background(struct exchange *x)
{
    struct exchange *y;

    if (exchange_is_head(x))
        return;
    y = exchange_new(x->env, NULL);
    y->background = true;
    copy_request(y, x);
    y->key = cache_key_of(y->url);
    y->rule = x->rule;
    y->may_store = y->may_serve = true;
    y->stored = x->stored;
    entry_ref(y->stored);
    y->facts = (struct acl_facts){.method = METHOD_GET,
                                  .method_text = SPAN("GET"),
                                  .scheme = SPAN("http"),
                                  .host = y->request.uri.host,
                                  .port = y->request.uri.port,
                                  .url = y->url,
                                  .path = y->request.uri.path};
    diverted_copy(y, x);
    y->state = &RESERVE;
    loop_defer(x->env->loop, &y->resume);
}

const struct exchange_state FORWARD = {"forwarding", step_forward};
const struct exchange_state VALIDATE = {"validating", step_validate};
const struct exchange_state JUDGE = {"waiting for the answer", step_judge};
