/* To the next hop: the request as it must leave us. */
#include "base/counters.h"
#include "cache/validate.h"
#include "http/auth.h"
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
           fields_find(&x->context->request.fields, FIELD_UPGRADE) && x->cause == CAUSE_CLIENT &&
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

/* Ours where the store asks, none where the client's would only be in the way. */
static void
change_conditions(struct exchange *x, struct fields *f)
{
    struct head *heads[8];

    for (unsigned i = 0; i < x->hop.n_variants; i++)
        heads[i] = x->hop.variants[i]->head;
    if (x->hop.n_variants)
        validate_add_conditions(f, &x->context->arena, heads, x->hop.n_variants);
    if (x->hop.conditions == CONDITIONS_NONE) {
        fields_remove(f, FIELD_IF_NONE_MATCH);
        fields_remove(f, FIELD_IF_MODIFIED_SINCE);
    }
    if (x->cause == CAUSE_REST)
        rest_change_request(x, f);
    else
        parts_change_request(x, f);
}

static void
say_who_forwards(struct exchange *x, struct fields *f)
{
    struct context *c = x->context;

    if (c->policy->request.via)
        forwarding_add_via(f, &c->arena, c->request.minor, c->policy->pseudonym);
    if (x->cause != CAUSE_BACKGROUND)
        forwarding_add_client(f, &c->arena, c->policy->request.forwarded_for, peer_text(x));
}

/* The fields the client sent, as they go on. */
static struct fields
fields_to_send(struct exchange *x)
{
    struct context *c = x->context;
    struct fields f = fields_copy(x);

    forwarding_clean(&f);
    fields_remove(&f, FIELD_HOST);
    if (c->request.minor == 0)
        fields_remove(&f, FIELD_EXPECT);
    change_conditions(x, &f);
    say_who_forwards(x, &f);
    if (wants_upgrade(x)) {
        fields_add_id(&f, &c->arena, FIELD_UPGRADE,
                      fields_join(&c->request.fields, &c->arena, FIELD_UPGRADE));
        fields_add_id(&f, &c->arena, FIELD_CONNECTION, SPAN("Upgrade"));
    }
    return f;
}

/* The next hop is chosen: what leaves depends on it. Straight to an origin it is origin-form. */
struct span
forward_compose(void *owner, const struct hop *hop)
{
    struct exchange *x = owner;
    struct context *c = x->context;
    struct request_to_send r = {.method = c->request.method_text,
                                .target = c->request.uri.path,
                                .host = uri_host_field(&c->request.uri, &c->arena),
                                .fields = fields_to_send(x),
                                .body = c->framing};
    struct buf *b = &x->env->head;

    (void)hop;
    b->n = 0;
    h1_write_request(b, &r);
    return arena_copy(&c->arena, buf_span(b));
}

/* An address in place of a name needs no looking up, and is judged by what it is. */
static void
set_addresses(struct exchange *x, struct fill_order *o)
{
    const struct dns_answer *dst = x->context->dst;
    const struct addr *literal = &x->context->request.uri.literal;

    if (dst) {
        o->judged = dst->at;
        o->n_judged = dst->n;
    } else if (literal->sa.sa_family != AF_UNSPEC) {
        o->judged = literal;
        o->n_judged = 1;
    }
}

static enum how
how_asked(const struct exchange *x)
{
    bool reload = x->context->cc.no_cache ||
                  (!x->look.stored && x->answer.fwd && strcmp(x->answer.fwd, "request") == 0);

    return reload ? HOW_CLIENT_REFRESH : HOW_MISS;
}

static void
start_fill(struct exchange *x)
{
    struct context *c = x->context;
    const struct fields *fields = &c->request.fields;
    struct fill_order o = {
        .policy = c->policy,
        .arena = &c->arena,
        .method = c->request.method,
        .host = c->request.uri.host,
        .port = exchange_server_port(x),
        .connection = x->cause != CAUSE_BACKGROUND ? c->from.connection : 0,
        .logs_in = auth_binds_request(fields),
        .body = x->body,
        .body_chunked = c->framing.how == FRAMING_CHUNKED,
        .body_length = c->framing.length,
        /* RFC 9110 section 10.1.1: of an HTTP/1.0 client it means nothing. */
        .expects_continue = c->request.minor >= 1 && fields_find(fields, FIELD_EXPECT) != NULL,
        .wants_upgrade = wants_upgrade(x),
        .deny_local = context_denies_local(c),
        .events = &exchange_fill_events,
        .owner = x,
    };

    set_addresses(x, &o);
    fill_start(x->env->upstream, &o, &x->hop.fill);
}

/* The rules that its answer is judged by: when it comes, nobody can wait for what they need. */
static unsigned
needs_of_judging(const struct exchange *x)
{
    const struct request_policy *r = &x->context->policy->request;

    if (x->look.may_store)
        return acl_list_needs(r->store_miss);
    if (x->context->request.method == METHOD_POST) /* its answer may stand for one to GET */
        return acl_list_needs(r->cache) | acl_list_needs(r->store_miss);
    return 0;
}

enum step
step_forward(struct exchange *x)
{
    if (!exchange_obtain(x, needs_of_judging(x)))
        return STEP_WAIT;
    x->hop.asked = true;
    if (x->answer.how == HOW_NONE)
        x->answer.how = how_asked(x);
    (void)exchange_next(x, JUDGE);
    x->answer.fault = exchange_dst_fault(x);
    if (x->answer.fault)
        return STEP_NEXT;
    start_fill(x);
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
