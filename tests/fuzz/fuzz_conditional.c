/* fuzz_conditional - preconditions and lists of entity tags: a line with the entity tag of the
 * selected representation, then a request's field lines. */
#include "base/check.h"
#include "http/conditional.h"
#include "http/etag.h"
#include "tests/fuzz/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MODIFIED = 784111777 }; /* Sun, 06 Nov 1994 08:49:37 GMT */

static void
read_tag(struct span tag, const struct fields *f, struct arena *a)
{
    struct span list = arena_printf(a, "\"x\", %.*s ,y", SPAN_ARG(tag));

    CHECK(etag_match_weak(tag, tag) == etag_is_valid(tag));
    CHECK(etag_match_strong(tag, tag) == (etag_is_valid(tag) && !etag_is_weak(tag)));
    if (etag_is_valid(tag))
        CHECK(etag_list_has(list, tag, false));
    for (unsigned i = 0; i < f->n; i++) {
        bool weakly = etag_list_has(f->at[i].value, tag, false);

        CHECK(!etag_list_has(f->at[i].value, tag, true) || weakly);
        CHECK(!weakly || etag_is_valid(tag));
    }
}

/* 304 is for reading only; without conditions every method goes on. */
static void
evaluate(const struct fields *f, enum method method, const struct selected *s)
{
    struct request_head r = {.method = method, .fields = *f};
    enum precondition p = conditional_evaluate(&r, s, MODIFIED);

    CHECK(p == PRECONDITION_PASS || conditional_is_present(f));
    CHECK(p != PRECONDITION_NOT_MODIFIED || method == METHOD_GET || method == METHOD_HEAD);
    conditional_if_range_holds(f, s, MODIFIED);
}

/* Who sends back the tag it was given gets a 304, or a 412 where it changes something. */
static void
send_back(const struct selected *s, struct arena *a)
{
    struct request_head r = {.method = METHOD_GET};

    if (!etag_is_valid(s->etag))
        return;
    fields_add_id(&r.fields, a, FIELD_IF_NONE_MATCH, s->etag);
    fields_add_id(&r.fields, a, FIELD_IF_RANGE, s->etag);
    CHECK(conditional_evaluate(&r, s, MODIFIED) == PRECONDITION_NOT_MODIFIED);
    CHECK(conditional_if_range_holds(&r.fields, s, MODIFIED) == !etag_is_weak(s->etag));
    r.method = METHOD_PUT;
    CHECK(conditional_evaluate(&r, s, MODIFIED) == PRECONDITION_FAILED);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum method methods[] = {METHOD_GET, METHOD_HEAD, METHOD_PUT, METHOD_OTHER};
    static const int64_t dates[] = {-1, 0, MODIFIED - 1, MODIFIED, MODIFIED + 1};
    struct span rest = span_of(data, size), tag = span_trim(line_take(&rest));
    struct selected s = {.etag = tag};
    struct fields f;
    struct arena a;

    arena_init(&a, NULL, 0);
    f = fields_take(&rest, &a);
    read_tag(tag, &f, &a);
    for (unsigned i = 0; i < 4 * 5 * 2; i++) {
        s.last_modified_s = dates[i / 4 % 5];
        s.date_s = i < 20 ? -1 : MODIFIED;
        evaluate(&f, methods[i % 4], &s);
    }
    send_back(&s, &a);
    arena_free(&a);
    return 0;
}
