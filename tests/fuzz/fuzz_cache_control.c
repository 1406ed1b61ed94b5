/* fuzz_cache_control - Cache-Control, entity tags and lists of one value. */
#include "base/check.h"
#include "http/cache_control.h"
#include "http/etag.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_seconds(int64_t s)
{
    CHECK(s >= -1 && s <= INT64_C(1) << 31);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span value = span_of(data, size), member;
    struct field line = {SPAN("Cache-Control"), value, FIELD_CACHE_CONTROL};
    struct cache_control cc = cache_control_parse(&(struct fields){&line, 1, 1});

    check_seconds(cc.max_age_s);
    check_seconds(cc.s_maxage_s);
    check_seconds(cc.max_stale_s);
    CHECK(!cc.no_cache_fields || cc.no_cache_names.n > 0);
    etag_list_has(value, SPAN("\"a\""), false);
    if (etag_is_valid(value))
        CHECK(etag_list_has(value, value, false));
    while (list_next(&value, &member))
        CHECK(member.n > 0);
    return 0;
}
