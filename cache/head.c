/* cache/head.c - stored heads, and how a 304 freshens them.
 *
 * A head is one allocation: the struct, the array of parsed fields, the serialized block. The
 * parsed names and values point into the block, so each byte of the message is kept once; with
 * millions of heads in memory that is what their number depends on. Everything a hit has to
 * know (dates, Cache-Control, age on arrival) is read here, once, and never at hit time.
 *
 * A head is built from a selection: an array of the fields that are to be kept. head_new selects
 * from one message, head_freshen from two; the rest is the same for both. */
#include "cache/head.h"

#include "base/check.h"
#include "http/date.h"
#include "http/etag.h"
#include "http/status.h"

#define HEAD_MAGIC 0x48454144u
/* delta-seconds: at least 2^31 must be representable, above is clamped (RFC 9111 section 1.2.2) */
#define DELTA_MAX ((int64_t)1 << 31)
/* A freshened head stays about below these, however many 304s bring ever new fields. */
#define FRESHEN_BLOCK_MAX (128 * 1024)
#define FRESHEN_FIELDS_MAX 2000

struct selection {
    struct field *at;
    unsigned n;
    size_t block_bytes;
};

/* RFC 9111 section 3.1. The length is the entry's business, the age is counted by us. */
static bool
field_is_kept(const struct field *f)
{
    return f->id != FIELD_AGE && !field_is_hop_by_hop(f->id) && !field_is_framing(f->id);
}

static void
selection_add(struct selection *s, const struct field *f)
{
    s->at[s->n++] = *f;
    s->block_bytes += f->name.n + 2 + f->value.n + 2;
}

/* Age is a single number; of a list or of several lines the first counts, what is no plain
 * integer is ignored (RFC 9111 section 5.1). Parameters behind it do no harm (Squid's habit). */
static int64_t
age_value(const struct fields *f)
{
    const struct field *age = fields_find(f, FIELD_AGE);
    struct span rest, member;
    int64_t seconds = 0;

    if (!age)
        return 0;
    rest = age->value;
    if (!list_next(&rest, &member))
        return 0;
    member = span_trim(span_first(member, span_index(member, ';')));
    for (size_t i = 0; i < member.n; i++) {
        if (member.at[i] < '0' || member.at[i] > '9')
            return 0;
        seconds = seconds * 10 + (member.at[i] - '0');
        if (seconds > DELTA_MAX)
            seconds = DELTA_MAX;
    }
    return seconds;
}

static int64_t
not_negative(int64_t seconds)
{
    return seconds < 0 ? 0 : seconds;
}

/* The first line counts, as RFC 9111 section 4.2.1 allows; -1: none, or no date. What lies
 * before the epoch counts as the epoch, because -1 means absent. */
static int64_t
date_of(const struct fields *f, enum field_id id, int64_t now_s)
{
    const struct field *field = fields_find(f, id);
    int64_t at_s;

    if (!field || !date_parse(field->value, now_s, &at_s))
        return -1;
    return not_negative(at_s);
}

/* corrected_initial_age, RFC 9111 section 4.2.3. A Date ahead of our clock counts as now, and
 * a clock that was set back while we waited is no negative delay. */
static int64_t
initial_age(int64_t age_s, int64_t date_s, const struct head_times *t)
{
    int64_t response_delay_s = not_negative(t->response_wall_s - t->request_wall_s);
    int64_t apparent_age_s = not_negative(t->response_wall_s - date_s);
    int64_t corrected_age_s = age_s + response_delay_s;

    return apparent_age_s > corrected_age_s ? apparent_age_s : corrected_age_s;
}

static char *
put(char *to, struct span bytes)
{
    if (bytes.n)
        memcpy(to, bytes.at, bytes.n);
    return to + bytes.n;
}

/* Writes "Name: value\r\n" and returns the field that points to where it stands now. */
static struct field
put_field(char **to, const struct field *from)
{
    struct field f = {.id = from->id};
    char *at = *to;

    f.name = span_of(at, from->name.n);
    at = put(at, from->name);
    at = put(at, SPAN(": "));
    f.value = span_of(at, from->value.n);
    at = put(at, from->value);
    *to = put(at, SPAN("\r\n"));
    return f;
}

/* The usual reason phrase is not kept a million times. */
static struct span
put_reason(char *to, unsigned status, struct span reason)
{
    struct span usual = status_reason(status);

    if (span_eq(usual, reason))
        return usual;
    put(to, reason);
    return span_of(to, reason.n);
}

static struct span
value_of(const struct fields *f, enum field_id id)
{
    const struct field *field = fields_find(f, id);

    return field ? field->value : SPAN_NONE;
}

/* What RFC 9111 reads from the fields, read once. date_s is known: it went into the block. */
static void
head_read(struct head *h, int64_t now_s)
{
    struct span etag = value_of(&h->fields, FIELD_ETAG);
    const struct field *expires = fields_find(&h->fields, FIELD_EXPIRES);

    h->cc = cache_control_parse(&h->fields);
    h->etag = etag_is_valid(etag) ? etag : SPAN_NONE;
    h->content_type = value_of(&h->fields, FIELD_CONTENT_TYPE);
    h->last_modified_s = date_of(&h->fields, FIELD_LAST_MODIFIED, now_s);
    h->expires_s = expires ? not_negative(date_of(&h->fields, FIELD_EXPIRES, now_s)) : -1;
    h->pragma_no_cache =
        !h->cc.present && fields_has_token(&h->fields, FIELD_PRAGMA, SPAN("no-cache"));
}

static struct head *
head_build(unsigned status, struct span reason, const struct selection *s)
{
    size_t fields_bytes = s->n * sizeof(struct field);
    struct head *h = mem_alloc(sizeof *h + fields_bytes + s->block_bytes + reason.n);
    char *block = (char *)(h + 1) + fields_bytes;
    char *end = block;

    *h = (struct head){.magic = HEAD_MAGIC, .status = status};
    ref_init(&h->refs);
    h->bytes = mem_size(h);
    h->fields = (struct fields){.at = (struct field *)(h + 1), .n = s->n, .cap = s->n};
    for (unsigned i = 0; i < s->n; i++)
        h->fields.at[i] = put_field(&end, &s->at[i]);
    h->block = span_of(block, (size_t)(end - block));
    h->reason = put_reason(end, status, reason);
    return h;
}

/* A response without a readable Date gets the time of its arrival for one (RFC 9110 section
 * 6.6.1), so that whoever caches it behind us can count its age. */
struct dating {
    int64_t date_s;
    bool given;
    char text[DATE_TEXT_MAX];
    struct field field;
};

static void
dating_of(struct dating *d, const struct fields *f, int64_t arrival_s)
{
    d->date_s = date_of(f, FIELD_DATE, arrival_s);
    d->given = d->date_s >= 0;
    if (d->given) {
        d->field = *fields_find(f, FIELD_DATE);
        return;
    }
    d->date_s = arrival_s;
    d->field = (struct field){.id = FIELD_DATE, .name = SPAN("Date")};
    d->field.value = span_of(d->text, date_format(arrival_s, d->text));
}

static void
head_set_times(struct head *h, const struct dating *d, int64_t age_s, const struct head_times *t)
{
    h->date_s = d->date_s;
    h->date_given = d->given;
    h->initial_age_s = initial_age(age_s, d->date_s, t);
    h->response_ms = t->response_mono_ms;
}

/* RFC 9110 section 14.4: with other statuses a Content-Range means nothing. */
static bool
speaks_of_ranges(unsigned status)
{
    return status == 206 || status == 416;
}

struct head *
head_new(const struct request_head *request, const struct response_head *response,
         const struct head_times *t)
{
    const struct fields *f = &response->fields;
    struct selection s = {.at = mem_alloc((f->n + 1) * sizeof(struct field))};
    struct dating d;
    struct head *h;

    dating_of(&d, f, t->response_wall_s);
    for (unsigned i = 0; i < f->n; i++)
        if (field_is_kept(&f->at[i]) && f->at[i].id != FIELD_DATE &&
            (f->at[i].id != FIELD_CONTENT_RANGE || speaks_of_ranges(response->status)))
            selection_add(&s, &f->at[i]);
    selection_add(&s, &d.field);
    h = head_build(response->status, response->reason, &s);
    mem_free(s.at);
    head_read(h, t->response_wall_s);
    head_set_times(h, &d, age_value(f), t);
    h->had_authorization = fields_find(&request->fields, FIELD_AUTHORIZATION) != NULL;
    return h;
}

/* Which fields of a 304 replace the stored ones: all but those that describe the stored bytes
 * (RFC 9111 section 3.2), and Set-Cookie, which was meant for whoever asked now. */
static bool
field_freshens(const struct field *f)
{
    return field_is_kept(f) && f->id != FIELD_CONTENT_ENCODING && f->id != FIELD_CONTENT_RANGE &&
           f->id != FIELD_SET_COOKIE && f->id != FIELD_DATE;
}

/* Those without which a freshened response would not be fresh. */
static bool
field_freshens_above_all(const struct field *f)
{
    return f->id == FIELD_CACHE_CONTROL || f->id == FIELD_EXPIRES || f->id == FIELD_ETAG ||
           f->id == FIELD_LAST_MODIFIED || f->id == FIELD_VARY;
}

static bool
same_name(const struct field *a, const struct field *b)
{
    return a->id == b->id && (a->id != FIELD_OTHER || span_eq_ci(a->name, b->name));
}

static bool
is_replaced(const struct field *stored, const struct fields *by,
            bool (*freshens)(const struct field *))
{
    for (unsigned i = 0; i < by->n; i++)
        if (same_name(stored, &by->at[i]) && freshens(&by->at[i]))
            return true;
    return stored->id == FIELD_DATE;
}

/* All lines of a name go when the 304 has that name, so that repeated validation cannot pile
 * up lines. */
static void
select_freshened(struct selection *s, const struct head *stored, const struct fields *by,
                 bool (*freshens)(const struct field *))
{
    s->n = 0;
    s->block_bytes = 0;
    for (unsigned i = 0; i < stored->fields.n; i++)
        if (!is_replaced(&stored->fields.at[i], by, freshens))
            selection_add(s, &stored->fields.at[i]);
    for (unsigned i = 0; i < by->n; i++)
        if (freshens(&by->at[i]))
            selection_add(s, &by->at[i]);
}

struct head *
head_freshen(const struct head *stored, const struct request_head *request,
             const struct response_head *not_modified, const struct head_times *t)
{
    const struct fields *by = &not_modified->fields;
    struct selection s;
    struct dating d;
    struct head *h;

    CHECK_OBJ(stored, HEAD_MAGIC);
    s.at = mem_alloc((stored->fields.n + by->n + 1) * sizeof(struct field));
    /* The old Date would make the fresh response look as old as the stored one. */
    dating_of(&d, by, t->response_wall_s);
    select_freshened(&s, stored, by, field_freshens);
    if (s.block_bytes > FRESHEN_BLOCK_MAX || s.n > FRESHEN_FIELDS_MAX)
        select_freshened(&s, stored, by, field_freshens_above_all);
    selection_add(&s, &d.field);
    h = head_build(stored->status, stored->reason, &s);
    mem_free(s.at);
    head_read(h, t->response_wall_s);
    head_set_times(h, &d, age_value(by), t);
    h->had_authorization = stored->had_authorization;
    return h;
}

/* "Name: value\r\n"... as put_field wrote it. false: it is not that. */
static bool
select_kept(struct selection *s, struct span block)
{
    while (block.n) {
        size_t end = span_index(block, '\r');
        struct span line = span_first(block, end);
        size_t colon = span_index(line, ':');
        struct field f;

        if (colon == 0 || colon + 2 > line.n || end + 2 > block.n || block.at[end + 1] != '\n')
            return false;
        f.name = span_first(line, colon);
        f.value = span_skip(line, colon + 2);
        f.id = field_id_of(f.name);
        selection_add(s, &f);
        block = span_skip(block, end + 2);
    }
    return true;
}

static unsigned
lines_of(struct span block)
{
    unsigned n = 0;

    for (size_t i = 0; i < block.n; i++)
        n += block.at[i] == '\n';
    return n;
}

struct head *
head_revive(const struct head_kept *k, int64_t now_wall_ms, int64_t now_mono_ms)
{
    struct selection s = {.at = mem_alloc((lines_of(k->block) + 1) * sizeof(struct field))};
    int64_t resident_ms = not_negative(now_wall_ms - k->response_wall_ms);
    struct head *h = NULL;

    if (select_kept(&s, k->block)) {
        h = head_build(k->status, k->reason, &s);
        head_read(h, k->response_wall_ms / 1000);
        h->date_s = date_of(&h->fields, FIELD_DATE, k->response_wall_ms / 1000);
        h->date_given = k->date_given && h->date_s >= 0;
        if (h->date_s < 0)
            h->date_s = k->response_wall_ms / 1000;
        h->initial_age_s = not_negative(k->initial_age_s);
        h->response_ms = now_mono_ms - resident_ms;
        h->had_authorization = k->had_authorization;
    }
    mem_free(s.at);
    return h;
}

void
head_ref(struct head *h)
{
    CHECK_OBJ(h, HEAD_MAGIC);
    ref_take(&h->refs);
}

void
head_unref(struct head **held)
{
    struct head *h = *held;

    CHECK_OBJ(h, HEAD_MAGIC);
    *held = NULL;
    if (ref_drop(&h->refs) > 0)
        return;
    FREE_OBJ(h);
}
