/* cache/invalidate.c - what an unsafe request makes invalid.
 *
 * Location and Content-Location are followed only within the target's origin: else any site
 * could empty the store of another one's pages. A method we do not know counts as unsafe. */
#include "cache/invalidate.h"

static bool
already_listed(struct span text, const struct span *out, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (span_eq(out[i], text))
            return true;
    return false;
}

static unsigned
add_reference(const struct request_head *request, const struct response_head *response,
              enum field_id id, struct arena *a, struct span *out, unsigned n)
{
    const struct field *reference = fields_find(&response->fields, id);
    struct uri uri;
    struct span text;

    if (!reference || !uri_resolve(&request->uri, reference->value, a, &uri) ||
        !uri_same_origin(&request->uri, &uri))
        return n;
    text = uri_text(&uri, a);
    if (!already_listed(text, out, n))
        out[n++] = text;
    return n;
}

unsigned
invalidate_targets(const struct request_head *request, const struct response_head *response,
                   struct arena *a, struct span out[3])
{
    unsigned n = 0;

    if (method_is_safe(request->method) || request->uri.form != URI_ABSOLUTE ||
        response->status < 200 || response->status > 399)
        return 0;
    out[n++] = uri_text(&request->uri, a);
    n = add_reference(request, response, FIELD_LOCATION, a, out, n);
    return add_reference(request, response, FIELD_CONTENT_LOCATION, a, out, n);
}
