/* fuzz_auth - log-ins that hold for a connection, in any number of field lines. */
#include "base/check.h"
#include "http/auth.h"
#include "tests/fuzz/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct span rest = span_of(data, size);
    struct fields f;

    arena_init(&a, NULL, 0);
    f = fields_take(&rest, &a);
    if (auth_binds_request(&f))
        CHECK(fields_find(&f, FIELD_AUTHORIZATION));
    if (auth_binds_response(&f)) {
        CHECK(fields_find(&f, FIELD_WWW_AUTHENTICATE));
        fields_add_id(&f, &a, FIELD_WWW_AUTHENTICATE, SPAN("Basic realm=\"x\""));
        CHECK(auth_binds_response(&f));
    }
    arena_free(&a);
    return 0;
}
