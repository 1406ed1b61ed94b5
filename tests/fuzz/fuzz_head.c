/* fuzz_head - stored heads: a request, a response and what may freshen it, as they come. All that a
 * head lends lies in its own block, which reads back as the same fields. */
#include "base/buf.h"
#include "base/check.h"
#include "cache/storable.h"
#include "cache/freshness.h"
#include "http/forwarding.h"
#include "http/h1_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NOW_S = 1893456000, NOW_MS = 5000000 };

static const struct h1_limits limits = {.head_bytes = 65536, .target_bytes = 32768, .fields = 1000};
static const struct head_times times = {NOW_S - 2, NOW_S, NOW_MS};

static void
check_lent(const struct head *h, struct span s)
{
    CHECK(s.n == 0 || (s.at >= h->block.at && s.at + s.n <= h->block.at + h->block.n));
}

static void
check_fields(const struct head *h)
{
    for (unsigned i = 0; i < h->fields.n; i++) {
        const struct field *f = &h->fields.at[i];

        check_lent(h, f->name);
        check_lent(h, f->value);
        CHECK(f->id != FIELD_AGE && !field_is_hop_by_hop(f->id) && !field_is_framing(f->id));
    }
    check_lent(h, h->etag);
    check_lent(h, h->content_type);
    check_lent(h, h->cc.no_cache_names);
    check_lent(h, h->cc.private_names);
    CHECK(fields_count(&h->fields, FIELD_DATE) == 1);
}

static void
check_block(const struct head *h, struct arena *a)
{
    static const struct h1_limits wide = {.head_bytes = 1 << 20, .fields = 10000};
    struct response_head again;
    struct buf b = {0};
    enum h1_reason why;
    size_t used;

    BUF_ADD(&b, "HTTP/1.1 200 OK\r\n");
    buf_add(&b, h->block);
    BUF_ADD(&b, "\r\n");
    CHECK(h1_parse_response(buf_span(&b), &wide, a, &again, &used, &why) == H1_OK);
    CHECK(used == b.n && again.fields.n == h->fields.n);
    for (unsigned i = 0; i < h->fields.n; i++) {
        CHECK(span_eq(again.fields.at[i].name, h->fields.at[i].name));
        CHECK(span_eq(again.fields.at[i].value, h->fields.at[i].value));
    }
    buf_free(&b);
}

static void
check_times(const struct head *h)
{
    static const int64_t later_s[] = {0, 1, 86400, INT64_C(1) << 33};
    int64_t age_s = 0;

    CHECK(h->date_s >= 0 && h->expires_s >= -1 && h->last_modified_s >= -1);
    CHECK(h->initial_age_s >= 0);
    for (int i = 0; i < 4; i++) {
        struct freshness f = freshness_at(h, NULL, NOW_MS + later_s[i] * 1000);

        CHECK(f.age_s >= age_s && f.lifetime_s <= INT64_C(1) << 40);
        age_s = f.age_s;
    }
}

static void
check_storable(const struct request_head *request, const struct head *h)
{
    struct cache_control cc = cache_control_parse(&request->fields);
    struct storable s = response_storable(request, &cc, h, NULL);

    CHECK(s.why && (s.yes || s.share == SHARE_NONE));
    CHECK(!s.yes || (request->method == METHOD_GET && h->status >= 200));
    CHECK(!s.yes || !(cc.no_store || h->cc.private_ || h->cc.private_fields));
}

static void
check_head(const struct request_head *request, const struct head *h, struct arena *a)
{
    check_fields(h);
    check_block(h, a);
    check_times(h);
    check_storable(request, h);
}

/* What describes the stored bytes stays; asking again and again adds nothing. */
static void
freshen(const struct request_head *request, const struct response_head *by, struct head *stored,
        struct arena *a)
{
    struct head *once = head_freshen(stored, request, by, &times);
    struct head *twice = head_freshen(once, request, by, &times);

    check_head(request, once, a);
    CHECK(once->status == stored->status && span_eq(once->reason, stored->reason));
    CHECK(fields_count(&once->fields, FIELD_CONTENT_ENCODING) ==
          fields_count(&stored->fields, FIELD_CONTENT_ENCODING));
    CHECK(fields_count(&once->fields, FIELD_SET_COOKIE) ==
          fields_count(&stored->fields, FIELD_SET_COOKIE));
    CHECK(twice->fields.n == once->fields.n && twice->block.n == once->block.n);
    head_unref(&once);
    head_unref(&twice);
}

static bool
take_request(struct span *rest, struct arena *a, struct request_head *out)
{
    enum h1_reason why;
    size_t used;

    if (h1_parse_request(*rest, &limits, a, out, &used, &why) != H1_OK)
        return false;
    *rest = span_skip(*rest, used);
    return true;
}

static bool
take_response(struct span *rest, struct arena *a, struct response_head *out)
{
    enum h1_reason why;
    size_t used;

    if (h1_parse_response(*rest, &limits, a, out, &used, &why) != H1_OK)
        return false;
    *rest = span_skip(*rest, used);
    forwarding_clean(&out->fields);
    return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span rest = span_of(data, size);
    struct request_head request;
    struct response_head response, by;
    struct arena a;

    arena_init(&a, NULL, 0);
    if (take_request(&rest, &a, &request) && take_response(&rest, &a, &response)) {
        struct head *h = head_new(&request, &response, &times);

        check_head(&request, h, &a);
        if (take_response(&rest, &a, &by))
            freshen(&request, &by, h, &a);
        head_unref(&h);
    }
    arena_free(&a);
    return 0;
}
