/* fuzz_h1_response - response heads: what is accepted must be written and read back as the same,
 * and the result must not depend on how the bytes arrive. */
#include "base/check.h"
#include "http/forwarding.h"
#include "http/h1_frame.h"
#include "http/h1_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CUTS = 64 }; /* only the last bytes: the work must not grow with the square */

static const struct h1_limits limits = {.head_bytes = 65536, .target_bytes = 32768, .fields = 1000};

static void
write_and_read_back(const struct response_head *r, struct arena *a)
{
    enum h1_reason why;
    struct response_head again;
    struct buf b = {0};
    size_t used;

    h1_write_status_line(&b, r->status, r->reason);
    h1_write_fields(&b, &r->fields);
    BUF_ADD(&b, "\r\n");
    CHECK(h1_parse_response(buf_span(&b), &(struct h1_limits){1 << 20, 0, 2000}, a, &again, &used,
                            &why) == H1_OK);
    CHECK(used == b.n && again.status == r->status && again.fields.n == r->fields.n);
    CHECK(!again.bare_lf);
    for (unsigned i = 0; i < r->fields.n; i++) {
        CHECK(span_eq(again.fields.at[i].name, r->fields.at[i].name));
        CHECK(span_eq(again.fields.at[i].value, r->fields.at[i].value));
    }
    buf_free(&b);
}

/* A head is whole at its last byte and not before, and nothing of what is refused is ever whole. */
static void
check_cuts(struct span bytes, enum h1_result whole, size_t used, struct arena *a)
{
    struct response_head r;
    enum h1_reason why;
    size_t n = whole == H1_OK ? used : bytes.n, used_of_cut;

    for (size_t cut = n > CUTS ? n - CUTS : 0; cut <= n; cut++) {
        enum h1_result part =
            h1_parse_response(span_first(bytes, cut), &limits, a, &r, &used_of_cut, &why);

        if (whole == H1_OK && cut == n)
            CHECK(part == H1_OK && used_of_cut == used);
        else
            CHECK(part == H1_MORE || (part == H1_BAD && whole == H1_BAD));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct response_head r;
    struct framed framed;
    struct arena a;
    enum h1_reason why;
    enum h1_result result;
    size_t used = 0;

    arena_init(&a, NULL, 0);
    result = h1_parse_response(span_of(data, size), &limits, &a, &r, &used, &why);
    check_cuts(span_of(data, size), result, used, &a);
    if (result == H1_OK) {
        CHECK(used > 0 && used <= size);
        h1_keeps_alive_response(&r);
        h1_frame_response(&r, METHOD_GET, &framed, &why);
        h1_frame_response(&r, METHOD_HEAD, &framed, &why);
        write_and_read_back(&r, &a);
    }
    arena_free(&a);
    return 0;
}
