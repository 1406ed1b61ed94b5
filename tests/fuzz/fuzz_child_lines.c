/* tests/fuzz/fuzz_child_lines.c - what a child may write, in small pieces and as a whole: the same
 * lines come out, none is too long or has an end in it, and little is held.
 *
 * The first byte is the longest line, the second the size of the pieces. */
#include "base/check.h"
#include "base/child_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct result {
    size_t n_lines, n_too_long;
    uint32_t sum;
};

static void
lines_take(struct child_lines *l, struct result *r)
{
    struct span line;
    enum child_line got;

    while ((got = child_lines_next(l, &line)) != CHILD_LINE_NONE) {
        CHECK(line.n <= l->most && span_index(line, '\n') == line.n);
        CHECK(got == CHILD_LINE_WHOLE || line.n == l->most);
        r->n_lines++;
        r->n_too_long += got == CHILD_LINE_TOO_LONG;
        r->sum = r->sum * 31 + (uint32_t)line.n;
        for (size_t i = 0; i < line.n; i++)
            r->sum = r->sum * 31 + (unsigned char)line.at[i];
    }
}

static struct result
read_in_pieces(struct span in, size_t most, size_t piece)
{
    struct child_lines l = {.most = most};
    struct result r = {0};

    while (in.n) {
        struct span some = span_first(in, piece);

        memcpy(child_lines_reserve(&l, some.n), some.at, some.n);
        child_lines_add(&l, some.n);
        CHECK(l.in.n <= most + piece);
        lines_take(&l, &r);
        in = span_skip(in, some.n);
    }
    child_lines_free(&l);
    return r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct result small, whole;
    struct span in;

    if (size < 3)
        return 0;
    in = span_of(data + 2, size - 2);
    small = read_in_pieces(in, data[0], data[1] % 16 + 1u);
    whole = read_in_pieces(in, data[0], in.n);
    CHECK(small.n_lines == whole.n_lines && small.n_too_long == whole.n_too_long);
    CHECK(small.sum == whole.sum);
    return 0;
}
