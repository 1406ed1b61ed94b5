/* fuzz_chunked - chunked bodies: the result must not depend on how the bytes arrive. */
#include "base/buf.h"
#include "base/check.h"
#include "http/h1_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct decoded {
    enum chunked_result result;
    struct buf body, trailer;
    size_t used;
};

static struct decoded
decode(struct span text, size_t piece)
{
    struct decoded d = {.result = CHUNKED_MORE};
    struct chunked c;

    chunked_start(&c);
    while (d.result == CHUNKED_MORE && d.used < text.n) {
        struct span in = span_first(span_skip(text, d.used), piece), data;
        const char *from = in.at;

        while ((d.result = chunked_next(&c, &in, &data, &d.trailer)) == CHUNKED_DATA) {
            CHECK(data.n > 0);
            buf_add(&d.body, data);
        }
        CHECK(d.result != CHUNKED_MORE || in.n == 0);
        d.used += (size_t)(in.at - from);
    }
    return d;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of(data, size);
    struct decoded whole = decode(text, size), bytes = decode(text, 1);

    CHECK(whole.result == bytes.result && whole.used == bytes.used);
    CHECK(span_eq(buf_span(&whole.body), buf_span(&bytes.body)));
    CHECK(span_eq(buf_span(&whole.trailer), buf_span(&bytes.trailer)));
    buf_free(&whole.body);
    buf_free(&whole.trailer);
    buf_free(&bytes.body);
    buf_free(&bytes.trailer);
    return 0;
}
