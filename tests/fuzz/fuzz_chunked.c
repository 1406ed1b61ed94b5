/* fuzz_chunked - chunked bodies: the result must not depend on how the bytes arrive, and what a
 * client may send means the same from an origin. */
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
decode(enum h1_sender sender, struct span text, size_t piece)
{
    struct decoded d = {.result = CHUNKED_MORE};
    struct chunked c;

    chunked_start(&c, sender);
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

static void
check_equal(const struct decoded *a, const struct decoded *b)
{
    CHECK(a->result == b->result && a->used == b->used);
    CHECK(span_eq(buf_span(&a->body), buf_span(&b->body)));
    CHECK(span_eq(buf_span(&a->trailer), buf_span(&b->trailer)));
}

static void
forget(struct decoded *d)
{
    buf_free(&d->body);
    buf_free(&d->trailer);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of(data, size);
    struct decoded client = decode(H1_CLIENT, text, size), bytes = decode(H1_CLIENT, text, 1);
    struct decoded origin = decode(H1_ORIGIN, text, size);

    check_equal(&client, &bytes);
    if (client.result != CHUNKED_BAD)
        check_equal(&client, &origin);
    forget(&bytes);
    bytes = decode(H1_ORIGIN, text, 1);
    check_equal(&origin, &bytes);
    forget(&client);
    forget(&bytes);
    forget(&origin);
    return 0;
}
