/* fuzz_record - whatever a disk holds: what decodes lies within its bytes, and encodes to what
 * decodes to the same again.
 *
 * Chance does not find checksums, so the input is also tried with the right ones put in. */
#include <string.h>
#include <xxhash.h>

#include "base/check.h"
#include "cache/disk/record.h"

enum { AT_IMAGE_SUM = 8, AT_FIXED_SUM = 144, FIXED_BYTES = 152 }; /* as in cache/disk/record.c */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
lies_within(struct span text, struct span image)
{
    CHECK(text.n == 0 || (text.at >= image.at && text.at + text.n <= image.at + image.n));
}

static void
encodes_to_the_same(const struct record *r, size_t head_bytes)
{
    uint64_t *sums = mem_alloc(r->sums.n + 1);
    char *again = mem_alloc(head_bytes);
    struct record twice;
    size_t n;

    memcpy(sums, r->sums.at, r->sums.n);
    CHECK(record_head_bytes(r) == head_bytes);
    record_encode(r, sums, again);
    CHECK(record_decode(span_of(again, head_bytes), &twice, &n) == RECORD_OK && n == head_bytes);
    CHECK(twice.sequence == r->sequence && twice.body_bytes == r->body_bytes);
    CHECK(span_eq(twice.uri, r->uri) && span_eq(twice.trailer, r->trailer) &&
          span_eq(twice.sums, r->sums));
    mem_free(again);
    mem_free(sums);
}

static size_t
try_bytes(struct span bytes)
{
    struct record r;
    size_t head_bytes;

    if (record_decode(bytes, &r, &head_bytes) != RECORD_OK)
        return head_bytes;
    CHECK(head_bytes <= bytes.n && record_bytes(&r) >= head_bytes + r.body_bytes);
    lies_within(r.uri, span_first(bytes, head_bytes));
    lies_within(r.block, span_first(bytes, head_bytes));
    lies_within(r.sums, span_first(bytes, head_bytes));
    encodes_to_the_same(&r, head_bytes);
    return head_bytes;
}

/* 1: of the fixed part. 2: of the image too, whose length is known then. */
static void
seal(char *bytes, size_t head_bytes)
{
    uint64_t sum;

    if (head_bytes) {
        sum = XXH3_64bits(bytes + FIXED_BYTES, head_bytes - FIXED_BYTES);
        memcpy(bytes + AT_IMAGE_SUM, &sum, sizeof sum);
    }
    sum = XXH3_64bits(bytes, AT_FIXED_SUM);
    memcpy(bytes + AT_FIXED_SUM, &sum, sizeof sum);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = mem_alloc(size + 1);
    size_t head_bytes;

    memcpy(bytes, data, size);
    (void)try_bytes(span_of(bytes, size));
    if (size >= FIXED_BYTES) {
        seal(bytes, 0);
        head_bytes = try_bytes(span_of(bytes, size));
        if (head_bytes > FIXED_BYTES && head_bytes <= size) {
            seal(bytes, head_bytes);
            (void)try_bytes(span_of(bytes, size));
        }
    }
    mem_free(bytes);
    return 0;
}
