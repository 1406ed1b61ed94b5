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
    if (x->request.minor == 0)
        fields_remove(&f, FIELD_EXPECT);
    if (x->n_variants) {
        struct head *heads[8];

        for (unsigned i = 0; i < x->n_variants; i++)
            heads[i] = x->variants[i]->head;
        validate_add_conditions(&f, &x->arena, heads, x->n_variants);
    }
    if (x->asked_plainly) {
        fields_remove(&f, FIELD_IF_NONE_MATCH);
        fields_remove(&f, FIELD_IF_MODIFIED_SINCE);
    }
    parts_change_request(x, &f);
    if (x->policy->request.via)
        forwarding_add_via(&f, &x->arena, x->request.minor, x->policy->pseudonym);
    if (!x->background)
        forwarding_add_client(&f, &x->arena, x->policy->request.forwarded_for, peer_text(x));
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
        /* RFC 9110 section 10.1.1: of an HTTP/1.0 client it means nothing. */
        .expects_continue =
            x->request.minor >= 1 && fields_find(&x->request.fields, FIELD_EXPECT) != NULL,
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

const struct exchange_state FORWARD = {"forwarding", step_forward};
const struct exchange_state VALIDATE = {"validating", step_validate};
