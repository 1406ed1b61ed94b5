/* fuzz_coding - packed bytes, in small pieces and as a whole: the same comes out, and it ends.
 *
 * The first byte chooses the kind and how small the pieces are. */
#include "base/check.h"
#include "http/coding.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MADE_MOST = 1 << 16 };

struct result {
    enum coding_state state;
    size_t n, left;
    uint32_t sum;
};

static struct result
decode(enum coding_kind kind, struct span in, size_t piece, size_t room)
{
    struct coding *c = coding_new(kind);
    struct result r = {CODING_MORE, 0, 0, 0};
    char out[4096];
    size_t made = 0;

    while (r.state != CODING_BAD && r.n < MADE_MOST) {
        struct span some = span_first(in, piece);
        size_t before = some.n, want = room < MADE_MOST - r.n ? room : MADE_MOST - r.n;

        r.state = coding_decode(c, &some, out, want, &made);
        CHECK(made <= want && some.n <= before);
        in = span_skip(in, before - some.n);
        r.n += made;
        for (size_t i = 0; i < made; i++)
            r.sum = r.sum * 31 + (unsigned char)out[i];
        if (made == 0 && before == some.n && (before == 0 || r.state == CODING_END))
            break;
        CHECK(made > 0 || before > some.n || r.state == CODING_BAD);
    }
    r.left = in.n;
    coding_free(&c);
    return r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum coding_kind kind = size > 0 && data[0] & 1 ? CODING_DEFLATE : CODING_GZIP;
    struct span in = span_skip(span_of(data, size), 1);
    struct result whole = decode(kind, in, SIZE_MAX, 4096);
    struct result pieces = decode(kind, in, size > 0 ? 1 + (data[0] >> 4) : 1, 1 + size % 7);

    CHECK(whole.n == pieces.n && whole.sum == pieces.sum);
    CHECK(whole.n == MADE_MOST || (whole.state == pieces.state && whole.left == pieces.left));
    return 0;
}
