/* http/forwarding.c - a head as it must leave us.
 *
 * Connection may name fields of this hop, but a client must not use it to strip what the next hop
 * relies on: a field we know as end-to-end (Host, Cookie, X-Forwarded-For, Cache-Control...) stays
 * (RFC 9110 section 7.6.1 forbids naming such fields anyway). */
#include "http/forwarding.h"

/* More options than this in one head is no message of a well-meaning sender. */
enum { OPTIONS_MAX = 100, HOPS_MAX = 1000000 };

struct options { /* the field names in Connection */
    struct span at[OPTIONS_MAX];
    unsigned n;
    bool too_many;
};

/* Connection and Via have no quoted strings in their lists, so a quote must not hide a comma: an
 * open one, put there by the sender, would swallow all that comes behind it, our own name included.
 */
static bool
next_member(struct span *rest, struct span *member)
{
    while (rest->n > 0) {
        size_t n = span_index(*rest, ',');

        *member = span_trim(span_first(*rest, n));
        *rest = span_skip(*rest, n + 1);
        if (member->n > 0)
            return true;
    }
    return false;
}

static bool
is_plain_option(struct span member)
{
    return span_eq_ci(member, SPAN("close")) || span_eq_ci(member, SPAN("keep-alive"));
}

static void
collect_options(struct options *o, const struct field *connection)
{
    struct span rest = connection->value, member;

    while (!o->too_many && next_member(&rest, &member)) {
        if (is_plain_option(member))
            continue;
        if (o->n == OPTIONS_MAX)
            o->too_many = true;
        else
            o->at[o->n++] = member;
    }
}

/* Beyond the limit each field without a meaning of its own counts as named: to drop too much is
 * safe, to let a hop-by-hop field through is not. */
static bool
is_option(const struct options *o, struct span name)
{
    for (unsigned i = 0; i < o->n; i++) {
        if (span_eq_ci(o->at[i], name))
            return true;
    }
    return o->too_many;
}

static bool
goes_on(const struct field *f, const struct options *o)
{
    if (field_is_hop_by_hop(f->id) || field_is_framing(f->id))
        return false;
    return f->id != FIELD_OTHER || !is_option(o, f->name);
}

/* RFC 9110 section 7.6.1 */
void
forwarding_clean(struct fields *f)
{
    struct options o;
    unsigned kept = 0;

    o.n = 0;
    o.too_many = false;
    for (unsigned i = 0; i < f->n; i++) {
        if (f->at[i].id == FIELD_CONNECTION)
            collect_options(&o, &f->at[i]);
    }
    for (unsigned i = 0; i < f->n; i++) {
        if (goes_on(&f->at[i], &o))
            f->at[kept++] = f->at[i];
    }
    f->n = kept;
}

static struct span
with_member(struct arena *a, struct span list, struct span member)
{
    char *text, *to;

    if (list.n == 0)
        return member;
    to = text = arena_alloc(a, list.n + 2 + member.n);
    memcpy(to, list.at, list.n);
    to += list.n;
    *to++ = ',';
    *to++ = ' ';
    memcpy(to, member.at, member.n);
    return span_of(text, list.n + 2 + member.n);
}

/* All lines of id become one, with one more member at its end. */
static void
append_member(struct fields *f, struct arena *a, enum field_id id, struct span member)
{
    struct span list = fields_join(f, a, id);

    if (list.at)
        fields_remove(f, id);
    fields_add_id(f, a, id, with_member(a, list, member));
}

void
forwarding_add_client(struct fields *f, struct arena *a, enum forwarded_for mode,
                      struct span client)
{
    switch (mode) {
    case FORWARDED_ON:
        append_member(f, a, FIELD_X_FORWARDED_FOR, client);
        break;
    case FORWARDED_OFF:
        append_member(f, a, FIELD_X_FORWARDED_FOR, SPAN("unknown"));
        break;
    case FORWARDED_TRANSPARENT:
        break;
    case FORWARDED_DELETE:
        fields_remove(f, FIELD_X_FORWARDED_FOR);
        break;
    case FORWARDED_TRUNCATE:
        fields_remove(f, FIELD_X_FORWARDED_FOR);
        fields_add_id(f, a, FIELD_X_FORWARDED_FOR, client);
        break;
    }
}

/* RFC 9110 section 7.6.3 */
void
forwarding_add_via(struct fields *f, struct arena *a, unsigned minor, struct span pseudonym)
{
    static const struct span tail = {" (cuttle)", 9};
    char *text = arena_alloc(a, 4 + pseudonym.n + tail.n);

    memcpy(text, minor == 0 ? "1.0 " : "1.1 ", 4);
    memcpy(text + 4, pseudonym.at, pseudonym.n);
    memcpy(text + 4 + pseudonym.n, tail.at, tail.n);
    append_member(f, a, FIELD_VIA, span_of(text, 4 + pseudonym.n + tail.n));
}

/* received-protocol RWS received-by [ RWS comment ] */
static struct span
received_by(struct span member)
{
    struct span rest = span_trim(span_skip(member, span_index(member, ' ')));

    return span_first(rest, span_index(rest, ' '));
}

bool
forwarding_is_loop(const struct fields *f, struct span pseudonym)
{
    const struct field *via = fields_find(f, FIELD_VIA);

    for (; via; via = fields_next(f, FIELD_VIA, via)) {
        struct span rest = via->value, member;

        while (next_member(&rest, &member)) {
            if (span_eq_ci(received_by(member), pseudonym))
                return true;
        }
    }
    return false;
}

/* Digits of any length are a number, and a large one means "far": it is capped, not refused. */
static bool
read_hops(struct span value, uint64_t *n)
{
    for (size_t i = 0; i < value.n; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return false;
    }
    if (!span_to_uint(value, HOPS_MAX, n))
        *n = HOPS_MAX;
    return value.n > 0;
}

/* RFC 9110 section 7.6.2. A second line says something else than the first, so neither counts. */
bool
forwarding_step(struct request_head *r, struct arena *a)
{
    const struct field *field = fields_find(&r->fields, FIELD_MAX_FORWARDS);
    bool usable;
    uint64_t n;

    if ((r->method != METHOD_OPTIONS && r->method != METHOD_TRACE) || field == NULL)
        return true;
    usable =
        fields_next(&r->fields, FIELD_MAX_FORWARDS, field) == NULL && read_hops(field->value, &n);
    if (usable && n == 0)
        return false;
    fields_remove(&r->fields, FIELD_MAX_FORWARDS);
    if (usable)
        fields_add_id(&r->fields, a, FIELD_MAX_FORWARDS, arena_printf(a, "%u", (unsigned)(n - 1)));
    return true;
}
