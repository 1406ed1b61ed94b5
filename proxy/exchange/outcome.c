/* What is said of an exchange afterwards: Squid's result words, RFC 9211's and RFC 9209's, from one
 * table. */
#include <stdio.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "proxy/exchange/states.h"

static const struct {
    const char *tag;
    bool hit;
    const char *fwd;
} WORDS[HOWS] = {
    [HOW_NONE] = {"NONE", false, NULL},
    [HOW_HIT] = {"TCP_MEM_HIT", true, NULL},
    [HOW_DISK_HIT] = {"TCP_HIT", true, NULL},
    [HOW_COLLAPSED] = {"TCP_CF_HIT", true, NULL},
    [HOW_IMS_HIT] = {"TCP_IMS_HIT", true, NULL},
    [HOW_NEGATIVE_HIT] = {"TCP_NEGATIVE_HIT", true, NULL},
    [HOW_OFFLINE_HIT] = {"TCP_OFFLINE_HIT", true, NULL},
    [HOW_MISS] = {"TCP_MISS", false, NULL},
    [HOW_CLIENT_REFRESH] = {"TCP_CLIENT_REFRESH_MISS", false, "request"},
    [HOW_UNMODIFIED] = {"TCP_REFRESH_UNMODIFIED", false, "stale"},
    [HOW_MODIFIED] = {"TCP_REFRESH_MODIFIED", false, "stale"},
    [HOW_FAIL_OLD] = {"TCP_REFRESH_FAIL_OLD", false, "stale"},
    [HOW_FAIL_ERROR] = {"TCP_REFRESH_FAIL_ERR", false, "stale"},
    [HOW_DENIED] = {"TCP_DENIED", false, NULL},
    [HOW_TUNNEL] = {"TCP_TUNNEL", false, NULL},
};

bool
outcome_is_hit(const struct exchange *x)
{
    return WORDS[x->how].hit;
}

const char *
outcome_result(const struct exchange *x)
{
    const char *tag = WORDS[x->how].tag;
    const char *suffix = x->timed_out ? "_TIMEDOUT" : x->aborted ? "_ABORTED" : "";

    if (x->how == HOW_NONE && x->timed_out)
        return "NONE_TIMEDOUT";
    if (!*suffix)
        return tag;
    return arena_printf((struct arena *)&x->arena, "%s%s%c", tag, suffix, 0).at;
}

static void
add_ttl(const struct exchange *x, struct buf *out)
{
    struct freshness f =
        freshness_at(x->entry->head, x->rule ? x->rule : &REFRESH_RULE_DEFAULT, clock_mono_ms());
    int64_t ttl_s = f.lifetime_s - f.age_s;

    BUF_ADD(out, "; ttl=");
    if (ttl_s < 0)
        buf_add_char(out, '-');
    buf_add_uint(out, (uint64_t)(ttl_s < 0 ? -ttl_s : ttl_s));
}

static void
add_forwarded(const struct exchange *x, struct buf *out)
{
    const char *fwd = x->host_elsewhere   ? "bypass"
                      : WORDS[x->how].fwd ? WORDS[x->how].fwd
                      : x->fwd            ? x->fwd
                                          : "miss";

    BUF_ADD(out, "; fwd=");
    buf_add(out, span_str(fwd));
    if (x->server_status) {
        BUF_ADD(out, "; fwd-status=");
        buf_add_uint(out, x->server_status);
    }
    if (x->stored_ok || x->spooled || x->how == HOW_UNMODIFIED) {
        BUF_ADD(out, "; stored");
        add_ttl(x, out);
    } else if (x->host_elsewhere)
        BUF_ADD(out, "; detail=host-mismatch");
    else if (x->unstored && x->may_store) {
        BUF_ADD(out, "; detail=");
        buf_add(out, span_str(x->unstored));
    }
}

/* Cache-Status: name; hit; ttl=N, or name; fwd=why; fwd-status=N; stored; ttl=N, or detail=why it
 * is not stored (RFC 9211 section 2). */
void
outcome_cache_status(const struct exchange *x, struct buf *out)
{
    BUF_ADD(out, "Cache-Status: ");
    buf_add(out, x->policy->pseudonym);
    if (x->collapsed)
        BUF_ADD(out, "; fwd=uri-miss; collapsed");
    else if (outcome_is_hit(x)) {
        BUF_ADD(out, "; hit");
        add_ttl(x, out);
    } else
        add_forwarded(x, out);
    BUF_ADD(out, "\r\n");
}

/* Proxy-Status: name; error=token (RFC 9209 section 2). */
void
outcome_proxy_status(const struct exchange *x, struct buf *out)
{
    const char *token = fault_token(x->fault);

    if (!*token)
        return;
    BUF_ADD(out, "Proxy-Status: ");
    buf_add(out, x->policy->pseudonym);
    buf_addf(out, "; error=%s\r\n", token);
}

static const char *
hierarchy(const struct exchange *x)
{
    if (!x->asked_server)
        return "HIER_NONE";
    return x->client.intercepts ? "ORIGINAL_DST" : "HIER_DIRECT";
}

static struct span
url_or_error(const struct exchange *x)
{
    if (x->url.n)
        return x->url;
    switch (x->fault) {
    case FAULT_REQUEST_TIMEOUT:
        return SPAN("error:request-timeout");
    case FAULT_URI_TOO_LONG:
    case FAULT_HEAD_TOO_LARGE:
        return SPAN("error:request-too-large");
    default:
        return SPAN("error:invalid-request");
    }
}

static void
count(const struct exchange *x, uint64_t elapsed_us)
{
    if (x->facts.is_manager) /* looking at the figures is not part of them */
        return;
    counter_add(COUNTER_CLIENT_REQUESTS, 1);
    counter_add(COUNTER_CLIENT_KBYTES_IN, x->bytes_in);
    counter_add(COUNTER_CLIENT_KBYTES_OUT, x->sent_bytes);
    histogram_add(HISTOGRAM_ALL_US, elapsed_us);
    if (outcome_is_hit(x)) {
        counter_add(COUNTER_CLIENT_HIT_BYTES_OUT, x->sent_bytes);
        histogram_add(HISTOGRAM_HIT_US, elapsed_us);
    } else if (x->asked_server)
        histogram_add(HISTOGRAM_MISS_US, elapsed_us);
}

static struct span
content_type(const struct exchange *x)
{
    if (x->fault)
        return SPAN("text/html");
    if (x->own_type)
        return span_str(x->own_type);
    return x->entry ? x->entry->head->content_type : SPAN_NONE;
}

static const char *
error_detail(const struct exchange *x)
{
    if (x->fault_detail)
        return x->fault_detail;
    return x->fault ? fault_name(x->fault) : NULL;
}

static struct log_record
record_of(const struct exchange *x, int64_t elapsed_us)
{
    return (struct log_record){
        .end_wall_ms = clock_wall_ms(),
        .elapsed_us = elapsed_us,
        .client = x->client.peer,
        .local = x->client.local,
        .server = x->server,
        .result = outcome_result(x),
        .status = x->status,
        .server_status = x->server_status,
        .bytes_out = x->sent_bytes,
        .bytes_in = x->bytes_in,
        .body_bytes_out = x->body_sent,
        .method = x->request.method_text.n ? x->request.method_text : SPAN("NONE"),
        .url = url_or_error(x),
        .path = x->request.uri.path,
        .minor = x->request.minor,
        .hierarchy = hierarchy(x),
        .server_host = x->request.uri.host,
        .content_type = content_type(x),
        .request_fields = &x->request.fields,
        .response_fields = x->entry ? &x->entry->head->fields : NULL,
        .error_page = x->fault ? fault_page(x->fault) : NULL,
        .error_detail = error_detail(x),
        .dns_us = x->times.dns_us,
        .server_us = x->times.first_byte_us,
        .sequence = ++x->env->sequence,
        .port_name = x->client.port_name,
    };
}

void
outcome_log(struct exchange *x)
{
    int64_t elapsed_us = (clock_exact_mono_ns() - x->started_ns) / 1000;
    struct log_record r = record_of(x, elapsed_us);

    count(x, (uint64_t)elapsed_us);
    x->facts.client = x->client.peer;
    if (x->env->log)
        x->env->log(x->env->owner, &r, &x->facts);
}
