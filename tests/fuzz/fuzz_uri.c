/* fuzz_uri - targets and references: the canonical text of a URI must be its own canonical text. */
#include "base/check.h"
#include "http/uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What rules, logs and origins see. */
static void
check_visible(struct span text)
{
    for (size_t i = 0; i < text.n; i++)
        CHECK(text.at[i] > ' ' && text.at[i] < 0x7f && text.at[i] != '\\' && text.at[i] != '#');
}

static void
check_canonical(const struct uri *u, enum method m, struct arena *a)
{
    struct span text = uri_text(u, a);
    struct uri again;
    const char *why;

    check_visible(text);
    if (u->form == URI_ORIGIN || u->form == URI_ASTERISK)
        return;
    CHECK(uri_parse_target(text, m, a, &again, &why));
    CHECK(span_eq(uri_text(&again, a), text) && uri_same_origin(u, &again));
    CHECK(uri_parse_authority(uri_host_field(u, a), 80, a, &again, &why));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum method methods[] = {METHOD_GET, METHOD_CONNECT, METHOD_OPTIONS};
    struct span text = span_of(data, size);
    struct uri u, resolved;
    struct arena a;
    const char *why;

    arena_init(&a, NULL, 0);
    for (int i = 0; i < 3; i++) {
        if (!uri_parse_target(text, methods[i], &a, &u, &why))
            continue;
        check_canonical(&u, methods[i], &a);
        if (uri_resolve(&u, SPAN("../x/./y?z"), &a, &resolved))
            check_canonical(&resolved, METHOD_GET, &a);
    }
    uri_parse_authority(text, 0, &a, &u, &why);
    if (uri_parse_target(SPAN("http://a/b/c/d?e"), METHOD_GET, &a, &u, &why) &&
        uri_resolve(&u, text, &a, &resolved))
        check_canonical(&resolved, METHOD_GET, &a);
    arena_free(&a);
    return 0;
}
