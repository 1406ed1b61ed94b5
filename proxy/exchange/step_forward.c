/* To the next hop: the request as it must leave us. */
#include "base/counters.h"
#include "cache/validate.h"
#include "http/h1_write.h"
#include "proxy/exchange/states.h"

/* ---- the request ---- */

static struct span
peer_text(struct exchange *x)
{
    char text[ADDR_TEXT_MAX];

    return arena_copy(&x->context->arena, span_of(text, addr_format(&x->context->from.peer, text)));
}

static bool
wants_upgrade(const struct exchange *x)
{
    return fields_has_token(&x->context->request.fields, FIELD_CONNECTION, SPAN("upgrade")) &&
           fields_find(&x->context->request.fields, FIELD_UPGRADE) && !x->body &&
           x->cause == CAUSE_CLIENT &&
           !fields_has_token(&x->context->request.fields, FIELD_UPGRADE, SPAN("h2c"));
}

static struct fields
fields_copy(struct exchange *x)
{
    struct fields f = {0};

    for (unsigned i = 0; i < x->context->request.fields.n; i++) {
        const struct field *from = &x->context->request.fields.at[i];

        if (from->id)
            fields_add_id(&f, &x->context->arena, from->id, from->value);
        else
            fields_add(&f, &x->context->arena, from->name, from->value);
    }
    return f;
}

static struct fields
fields_to_send(struct exchange *x, bool upgrade)
{
    struct fields f = fields_copy(x);
    struct span protocols =
        upgrade ? fields_join(&x->context->request.fields, &x->context->arena, FIELD_UPGRADE)
                : SPAN_NONE;

    forwarding_clean(&f);
    fields_remove(&f, FIELD_HOST);
    if (x->context->request.minor == 0)
        fields_remove(&f, FIELD_EXPECT);
    if (x->hop.n_variants) {
        struct head *heads[8];

        for (unsigned i = 0; i < x->hop.n_variants; i++)
            heads[i] = x->hop.variants[i]->head;
        validate_add_conditions(&f, &x->context->arena, heads, x->hop.n_variants);
    }
    if (x->hop.conditions == CONDITIONS_NONE) {
        fields_remove(&f, FIELD_IF_NONE_MATCH);
        fields_remove(&f, FIELD_IF_MODIFIED_SINCE);
    }
    parts_change_request(x, &f);
    if (x->context->policy->request.via)
        forwarding_add_via(&f, &x->context->arena, x->context->request.minor,
                           x->context->policy->pseudonym);
    if (x->cause != CAUSE_BACKGROUND)
        forwarding_add_client(&f, &x->context->arena, x->context->policy->request.forwarded_for,
                              peer_text(x));
    if (upgrade) {
        fields_add_id(&f, &x->context->arena, FIELD_UPGRADE, protocols);
        fields_add_id(&f, &x->context->arena, FIELD_CONNECTION, SPAN("Upgrade"));
    }
    return f;
}

static struct span
head_to_send(struct exchange *x, bool upgrade)
{
    struct fields f = fields_to_send(x, upgrade);
    struct buf b = {0};
    struct span out;

    h1_write_request_line(&b, x->context->request.method_text, x->context->request.uri.path);
    h1_write_field(&b, SPAN("Host"), uri_host_field(&x->context->request.uri, &x->context->arena));
    h1_write_fields(&b, &f);
    if (x->context->framing.how == FRAMING_CHUNKED)
        BUF_ADD(&b, "Transfer-Encoding: chunked\r\n");
    else if (x->context->framing.how == FRAMING_LENGTH)
        buf_addf(&b, "Content-Length: %llu\r\n", (unsigned long long)x->context->framing.length);
    BUF_ADD(&b, "\r\n");
    out = arena_copy(&x->context->arena, buf_span(&b));
    buf_free(&b);
    return out;
}

enum step
step_forward(struct exchange *x)
{
    bool upgrade = wants_upgrade(x);
    struct fill_order o = {
        .policy = x->context->policy,
        .arena = &x->context->arena,
        .method = x->context->request.method,
        .host = x->context->request.uri.host,
        .literal = x->context->request.uri.literal,
        .port = exchange_server_port(x),
        .dst = x->context->dst ? x->context->dst->at : NULL,
        .n_dst = x->context->dst ? x->context->dst->n : 0,
        .head = head_to_send(x, upgrade),
        .body = x->body,
        .body_chunked = x->context->framing.how == FRAMING_CHUNKED,
        .body_length = x->context->framing.length,
        /* RFC 9110 section 10.1.1: of an HTTP/1.0 client it means nothing. */
        .expects_continue = x->context->request.minor >= 1 &&
                            fields_find(&x->context->request.fields, FIELD_EXPECT) != NULL,
        .wants_upgrade = upgrade,
        .deny_local = context_denies_local(x->context),
        .events = &exchange_fill_events,
        .owner = x,
    };

    x->hop.asked = true;
    if (x->answer.how == HOW_NONE)
        x->answer.how =
            x->context->cc.no_cache || (x->look.stored == NULL && x->answer.fwd &&
                                        span_eq(span_str(x->answer.fwd), SPAN("request")))
                ? HOW_CLIENT_REFRESH
                : HOW_MISS;
    x->state = JUDGE;
    fill_start(x->env->upstream, &o, &x->hop.fill);
    return STEP_WAIT;
}

enum step
step_validate(struct exchange *x)
{
    x->hop.n_variants = 0;
    if (head_has_validator(x->look.stored->head)) {
        x->hop.n_variants = store_variants(x->env->store, &x->context->key, x->hop.variants, 8);
        if (x->hop.n_variants == 0) {
            x->hop.variants[x->hop.n_variants++] = x->look.stored;
            entry_ref(x->look.stored);
        }
        counter_add(COUNTER_VALIDATIONS, 1);
        x->hop.conditions = CONDITIONS_OURS;
        x->answer.how = HOW_MODIFIED;
    }
    return exchange_next(x, FORWARD);
}
