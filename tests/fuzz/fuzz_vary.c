/* fuzz_vary - Vary and what it selects by: the lines of a response, of the request that brought it
 * and of another request. A spec matches its own request, and who matches makes the same spec. */
#include "base/check.h"
#include "cache/vary.h"
#include "tests/fuzz/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
match(const struct fields *response, const struct fields *first, const struct fields *other,
      struct arena *a)
{
    bool never, never_other;
    struct span spec = vary_spec(response, first, a, &never);
    struct span spec_other = vary_spec(response, other, a, &never_other);

    CHECK(never == never_other && never == vary_is_never(response));
    if (never) {
        CHECK(spec.n == 0);
        return;
    }
    CHECK(spec.n > 0 ? spec.at[spec.n - 1] == '\n' : spec_other.n == 0);
    CHECK(vary_matches(spec, first, a) && vary_matches(spec_other, other, a));
    CHECK(vary_matches(spec, other, a) == span_eq(spec, spec_other));
    CHECK(vary_matches(spec_other, first, a) == span_eq(spec, spec_other));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span rest = span_of(data, size);
    struct fields response, first, other;
    struct arena a;

    arena_init(&a, NULL, 0);
    response = fields_take(&rest, &a);
    first = fields_take(&rest, &a);
    other = fields_take(&rest, &a);
    match(&response, &first, &other, &a);
    arena_free(&a);
    return 0;
}
