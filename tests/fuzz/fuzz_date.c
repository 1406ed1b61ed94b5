/* fuzz_date - dates: what is read must be written and read as the same second. */
#include "base/check.h"
#include "http/date.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[DATE_TEXT_MAX];
    int64_t at_s, again_s, now_s = 0;

    if (size >= sizeof now_s)
        memcpy(&now_s, data, sizeof now_s);
    date_parse(span_of(data, size), now_s, &at_s);
    date_format(now_s, text);
    if (date_parse(span_of(data, size), 1796083200, &at_s) && at_s <= INT64_C(253402300799)) {
        CHECK(at_s >= 0 && date_format(at_s, text) == 29);
        CHECK(date_parse(span_str(text), 0, &again_s) && again_s == at_s);
    }
    return 0;
}
