/* Validation without a client: the stale response is on its way already (RFC 5861 section 3). */
#include "base/check.h"
#include "proxy/exchange/states.h"

static void
copy_request(struct exchange *to, const struct exchange *from)
{
    struct arena *a = &to->arena;

    to->request = from->request;
    to->request.fields = (struct fields){0};
    to->request.method_text = arena_copy(a, from->request.method_text);
    for (unsigned i = 0; i < from->request.fields.n; i++)
        fields_add(&to->request.fields, a, arena_copy(a, from->request.fields.at[i].name),
                   arena_copy(a, from->request.fields.at[i].value));
    fields_remove(&to->request.fields, FIELD_RANGE); /* it asks for the whole */
    fields_remove(&to->request.fields, FIELD_IF_RANGE);
    to->url = arena_copy(a, from->url);
    CHECK(uri_parse_target(to->url, METHOD_GET, a, &to->request.uri, &(const char *){NULL}));
}

void
exchange_validate_in_background(struct exchange *x)
{
    struct exchange *y;

    if (exchange_is_head(x))
        return;
    y = exchange_new(x->env, NULL);
    y->background = true;
    copy_request(y, x);
    y->key = cache_key_of(y->url);
    y->rule = x->rule;
    y->may_store = y->may_serve = true;
    y->stored = x->stored;
    entry_ref(y->stored);
    y->facts = (struct acl_facts){.method = METHOD_GET,
                                  .method_text = SPAN("GET"),
                                  .scheme = SPAN("http"),
                                  .host = y->request.uri.host,
                                  .port = y->request.uri.port,
                                  .url = y->url,
                                  .path = y->request.uri.path};
    diverted_copy(y, x);
    y->state = &RESERVE;
    loop_defer(x->env->loop, &y->resume);
}
