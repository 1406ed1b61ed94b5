/* Whatever a disk holds: what decodes encodes to the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cache/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct record r;
    size_t head_bytes;
    uint64_t *sums;
    char *again;

    if (record_decode(span_of(data, size), &r, &head_bytes) != RECORD_OK)
        return 0;
    CHECK(head_bytes <= size);
    sums = malloc(r.sums.n + 1);
    memcpy(sums, r.sums.at, r.sums.n);
    again = malloc(head_bytes);
    record_encode(&r, sums, again);
    CHECK(memcmp(again, data, head_bytes) == 0);
    free(again);
    free(sums);
    return 0;
}
