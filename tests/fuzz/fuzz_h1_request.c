/* fuzz_h1_request - request heads: what is accepted must be written and read back as the same. */
#include "base/check.h"
#include "http/forwarding.h"
#include "http/h1_frame.h"
#include "http/h1_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct h1_limits limits = {.head_bytes = 65536, .target_bytes = 32768, .fields = 1000};

static void
write_and_read_back(struct request_head *r, struct arena *a)
{
    enum h1_reason why;
    struct request_head again;
    struct buf b = {0};
    size_t used;

    forwarding_clean(&r->fields);
    fields_remove(&r->fields, FIELD_HOST);
    forwarding_add_via(&r->fields, a, r->minor, SPAN("fuzz"));
    forwarding_add_client(&r->fields, a, FORWARDED_ON, SPAN("::1"));
    forwarding_step(r, a);
    h1_write_request_line(&b, r->method_text, uri_text(&r->uri, a));
    h1_write_field(&b, SPAN("Host"), r->uri.host.n ? uri_host_field(&r->uri, a) : SPAN("none"));
    h1_write_fields(&b, &r->fields);
    BUF_ADD(&b, "\r\n");
    CHECK(h1_parse_request(buf_span(&b), &(struct h1_limits){1 << 20, 1 << 20, 2000}, a, &again,
                           &used, &why) == H1_OK);
    CHECK(used == b.n && again.fields.n == r->fields.n + 1 && again.method == r->method);
    CHECK(forwarding_is_loop(&again.fields, SPAN("fuzz")));
    buf_free(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct request_head r;
    struct framed framed;
    struct arena a;
    enum h1_reason why;
    size_t used = 0;

    arena_init(&a, NULL, 0);
    if (h1_parse_request(span_of(data, size), &limits, &a, &r, &used, &why) == H1_OK) {
        CHECK(used > 0 && used <= size);
        CHECK(r.uri.path.n <= limits.target_bytes);
        h1_keeps_alive_request(&r);
        if (h1_frame_request(&r, &framed, &why) == H1_OK)
            write_and_read_back(&r, &a);
    }
    arena_free(&a);
    return 0;
}
