/* fuzz_range - Range and Content-Range: every range lies inside the representation. */
#include "base/check.h"
#include "http/range.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t lengths[] = {0, 1, 10, 10000, UINT64_MAX};
    struct span value = span_of(data, size);
    struct byte_range ranges[5], one;
    uint64_t length;
    bool known;
    unsigned n;

    for (int i = 0; i < 5; i++) {
        enum range_result r = range_parse(value, lengths[i], ranges, 5, &n);

        CHECK(n <= 5 && (r == RANGE_OK) == (n > 0));
        for (unsigned k = 0; k < n; k++)
            CHECK(ranges[k].first <= ranges[k].last && ranges[k].last < lengths[i]);
    }
    if (content_range_parse(value, &one, &known, &length))
        CHECK(one.first <= one.last && (!known || one.last < length));
    return 0;
}
