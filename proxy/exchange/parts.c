/* Ranges, and what the store has of a representation in parts (RFC 9110 section 14, RFC 9111
 * sections 3.3 and 3.4). */
#include "base/check.h"
#include "base/clock.h"
#include "proxy/exchange/states.h"

enum { FAR_BYTES_SHIFT = 62 }; /* a length no representation has */

struct selected
exchange_selected(const struct head *h)
{
    return (struct selected){h->etag, h->last_modified_s, h->date_given ? h->date_s : -1};
}

static bool
if_range_holds(const struct exchange *x, const struct head *h)
{
    struct selected s = exchange_selected(h);

    return conditional_if_range_holds(&x->context->request.fields, &s, clock_wall_s());
}

/* ---- the request ---- */

/* range_offset_limit: the whole is fetched when no range starts further in. Where a suffix starts
 * is not known, so it counts as far. */
static bool
starts_early(const struct exchange *x)
{
    int64_t limit = policy_range_offset_limit(x->context->policy, &x->context->facts);
    struct byte_range at[RANGES_MAX];
    unsigned n;

    if (limit == 0 || range_parse(x->ranges.field->value, (uint64_t)1 << FAR_BYTES_SHIFT, at,
                                  RANGES_MAX, &n) != RANGE_OK)
        return false;
    for (unsigned i = 0; limit > 0 && i < n; i++)
        if (at[i].first > (uint64_t)limit)
            return false;
    return true;
}

/* Several Range lines are no Range (RFC 9110 section 5.3): the origin may say what it makes of
 * them. */
void
parts_begin(struct exchange *x)
{
    const struct fields *f = &x->context->request.fields;

    if (x->context->request.method != METHOD_GET)
        return;
    x->ranges.field = fields_find(f, FIELD_RANGE);
    if (x->ranges.field && fields_next(f, FIELD_RANGE, x->ranges.field)) {
        x->ranges.field = NULL;
        x->look.may_store = false;
    }
    x->ranges.whole_asked = x->ranges.field && x->look.may_store && starts_early(x);
}

/* RFC 9110 section 13.1.5: If-Range makes the origin send the whole when the beginning is no longer
 * what it has. */
void
parts_change_request(struct exchange *x, struct fields *f)
{
    if (x->cause == CAUSE_REST) {
        rest_change_request(x, f);
        return;
    }
    if (!x->look.part && !x->ranges.whole_asked && x->cause == CAUSE_CLIENT)
        return;
    fields_remove(f, FIELD_RANGE);
    fields_remove(f, FIELD_IF_RANGE);
    if (!x->look.part)
        return;
    fields_add_id(f, &x->context->arena, FIELD_RANGE,
                  arena_printf(&x->context->arena, "bytes=%llu-",
                               (unsigned long long)body_published(x->look.part->body)));
    fields_add_id(f, &x->context->arena, FIELD_IF_RANGE, part_validator(x->look.part->head));
}

/* ---- the store ---- */

static bool
answers(const void *arg, const struct entry *e)
{
    const struct exchange *x = arg;
    struct byte_range cut;

    return part_answers(e->part, entry_bytes(e), x->ranges.field->value, &cut) &&
           if_range_holds(x, e->head);
}

void
parts_look(struct exchange *x)
{
    struct entry *e =
        store_lookup_part(x->env->store, &x->context->key, &x->context->request, answers, x);
    struct reuse r;

    if (!e)
        return;
    r = reuse_decide(&x->context->request, &x->context->cc, e->head, x->context->rule,
                     &x->context->policy->request.reuse, clock_mono_ms());
    if ((r.verdict != REUSE_SERVE && r.verdict != REUSE_SERVE_STALE) ||
        acl_list_check(x->context->policy->request.send_hit, &x->context->facts) == ACL_DENY) {
        entry_unref(&e);
        return;
    }
    x->look.stored = e;
    x->look.reuse = r;
}

static bool
is_beginning(const void *arg, const struct entry *e)
{
    (void)arg;
    return e->part->whole && e->part->from == 0 && body_state(e->body) == BODY_COMPLETE &&
           body_published(e->body) < e->part->whole && part_may_grow(e->head);
}

/* Conditions of the client would be answered by the origin before If-Range is. */
void
parts_look_for_beginning(struct exchange *x)
{
    if (!x->look.may_store || x->look.stored || (x->ranges.field && !x->ranges.whole_asked) ||
        x->context->cc.no_store || conditional_is_present(&x->context->request.fields))
        return;
    x->look.part = store_lookup_part(x->env->store, &x->context->key, &x->context->request,
                                     is_beginning, NULL);
    if (x->look.part)
        x->answer.fwd = "partial";
}

/* ---- the answer ---- */

static void
give_one(struct exchange *x, uint64_t from, uint64_t n_bytes)
{
    x->ranges.give = arena_alloc(&x->context->arena, sizeof *x->ranges.give);
    *x->ranges.give = (struct byte_range){from, from + n_bytes - 1};
    x->ranges.n_give = 1;
}

bool
parts_take_rest(struct exchange *x, struct arrival *a)
{
    struct head *partial = a->head;
    struct part rest;

    if (!part_of_response(a->r, a->length, SPAN("-"), &rest) ||
        rest.whole != x->look.part->part->whole ||
        rest.from != body_published(x->look.part->body) || rest.from + a->length != rest.whole ||
        !part_is_same(x->look.part->head, partial))
        return false;
    a->head = head_freshen(x->look.part->head, &x->context->request, a->r, x->hop.times);
    head_unref(&partial);
    a->length = a->announced = rest.whole;
    a->before = x->look.part;
    a->n_before = rest.from;
    return true;
}

struct joint {
    const struct head *head;
    uint64_t from, end;
};

static bool
comes_before(const void *arg, const struct entry *e)
{
    const struct joint *j = arg;

    return body_state(e->body) == BODY_COMPLETE &&
           part_joins(e->part, body_published(e->body), j->from, j->end) &&
           part_is_same(e->head, j->head);
}

/* RFC 9111 section 3.4: what is stored already and goes up to it, or into it, comes before it. */
static void
join(struct exchange *x, struct arrival *a)
{
    struct joint j = {a->head, a->part.from, a->part.from + a->length};

    a->before =
        store_lookup_part(x->env->store, &x->context->key, &x->context->request, comes_before, &j);
    if (!a->before)
        return;
    a->n_before = a->part.from - a->before->part->from;
    a->part.from = a->before->part->from;
    a->length += a->n_before;
    a->announced = a->length;
    x->answer.fwd = "partial";
}

/* The head as that of the representation: which part it is, is said elsewhere. */
static struct head *
head_of_whole(struct exchange *x, const struct arrival *a)
{
    struct response_head r = *a->r;

    r.status = 200;
    r.reason = SPAN("OK");
    fields_remove(&r.fields, FIELD_CONTENT_RANGE);
    return head_new(&x->context->request, &r, x->hop.times);
}

bool
parts_take_part(struct exchange *x, struct arrival *a)
{
    struct head *partial = a->head;

    if (!x->ranges.field || x->ranges.whole_asked ||
        !part_of_response(a->r, a->length, x->ranges.field->value, &a->part))
        return false;
    a->is_part = true;
    if (a->part.whole == 0)
        return true;
    give_one(x, a->part.from, a->length);
    a->head = head_of_whole(x, a);
    head_unref(&partial);
    join(x, a);
    if (a->part.from == 0 && a->length == a->part.whole)
        a->is_part = false;
    return true;
}

/* A body that passes is there once, in its order. */
enum range_result
parts_choose(struct exchange *x)
{
    const struct entry *e = x->answer.entry;
    uint64_t length = entry_length(e);
    enum range_result result;

    if (!x->ranges.field || e->head->status != 200 || length == LENGTH_UNKNOWN ||
        !(exchange_from_store(x) || x->ranges.whole_asked) || !if_range_holds(x, e->head))
        return RANGE_IGNORE;
    x->ranges.give = arena_alloc(&x->context->arena, RANGES_MAX * sizeof *x->ranges.give);
    result =
        range_parse(x->ranges.field->value, length, x->ranges.give, RANGES_MAX, &x->ranges.n_give);
    if (x->ranges.n_give > 1 && body_mode(e->body) == BODY_PASS)
        result = RANGE_IGNORE;
    if (result != RANGE_OK)
        x->ranges.n_give = 0;
    return result;
}
