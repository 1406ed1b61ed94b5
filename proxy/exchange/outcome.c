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
    return WORDS[x->answer.how].hit;
}

bool
exchange_from_store(const struct exchange *x)
{
    return outcome_is_hit(x) || x->answer.how == HOW_UNMODIFIED || x->answer.how == HOW_FAIL_OLD ||
           x->hop.conditions != CONDITIONS_CLIENTS;
}

const char *
outcome_result(const struct exchange *x)
{
    const char *tag = WORDS[x->answer.how].tag;
    const char *suffix = x->tally.ending == ENDING_TIMED_OUT ? "_TIMEDOUT" : "_ABORTED";

    if (x->answer.how == HOW_NONE && x->tally.ending == ENDING_TIMED_OUT)
        return "NONE_TIMEDOUT";
    if (x->tally.ending != ENDING_TIMED_OUT && x->tally.ending != ENDING_ABORTED)
        return tag;
    return arena_printf((struct arena *)&x->context->arena, "%s%s%c", tag, suffix, 0).at;
}

static void
add_ttl(const struct exchange *x, struct buf *out)
{
    struct freshness f =
        freshness_at(x->answer.entry->head,
                     x->context->rule ? x->context->rule : &REFRESH_RULE_DEFAULT, clock_mono_ms());
    int64_t ttl_s = f.lifetime_s - f.age_s;

    BUF_ADD(out, "; ttl=");
    if (ttl_s < 0)
        buf_add_char(out, '-');
    buf_add_uint(out, (uint64_t)(ttl_s < 0 ? -ttl_s : ttl_s));
}

static void
add_forwarded(const struct exchange *x, struct buf *out)
{
    const char *fwd = x->context->host_elsewhere ? "bypass"
                      : WORDS[x->answer.how].fwd ? WORDS[x->answer.how].fwd
                      : x->answer.fwd            ? x->answer.fwd
                                                 : "miss";

    BUF_ADD(out, "; fwd=");
    buf_add(out, span_str(fwd));
    if (x->hop.status) {
        BUF_ADD(out, "; fwd-status=");
        buf_add_uint(out, x->hop.status);
    }
    if (x->answer.kept != KEPT_NOT || x->answer.how == HOW_UNMODIFIED) {
        BUF_ADD(out, "; stored");
        add_ttl(x, out);
    } else if (x->context->host_elsewhere)
        BUF_ADD(out, "; detail=host-mismatch");
    else if (x->answer.unstored && x->look.may_store) {
        BUF_ADD(out, "; detail=");
        buf_add(out, span_str(x->answer.unstored));
    }
}

/* Cache-Status: name; hit; ttl=N, or name; fwd=why; fwd-status=N; stored; ttl=N, or detail=why it
 * is not stored (RFC 9211 section 2). */
void
outcome_cache_status(struct exchange *x, struct fields *f)
{
    struct buf *out = &x->env->head;

    out->n = 0;
    buf_add(out, x->context->policy->pseudonym);
    if (x->look.sharing == SHARING_GOT)
        BUF_ADD(out, "; fwd=uri-miss; collapsed");
    else if (outcome_is_hit(x)) {
        BUF_ADD(out, "; hit");
        add_ttl(x, out);
    } else
        add_forwarded(x, out);
    fields_add_id(f, &x->context->arena, FIELD_CACHE_STATUS,
                  arena_copy(&x->context->arena, buf_span(out)));
}

/* Proxy-Status: name; error=token (RFC 9209 section 2). */
void
outcome_proxy_status(struct exchange *x, struct fields *f)
{
    struct span name = x->context->policy->pseudonym;
    const char *token = fault_token(x->answer.fault);

    if (*token)
        fields_add_id(f, &x->context->arena, FIELD_PROXY_STATUS,
                      arena_printf(&x->context->arena, "%.*s; error=%s", SPAN_ARG(name), token));
}

static const char *
hierarchy(const struct exchange *x)
{
    if (!x->hop.asked)
        return "HIER_NONE";
    return x->context->from.intercepts ? "ORIGINAL_DST" : "HIER_DIRECT";
}

static struct span
url_or_error(const struct exchange *x)
{
    if (x->context->url.n)
        return x->context->url;
    switch (x->answer.fault) {
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
    if (x->context->facts.is_manager) /* looking at the figures is not part of them */
        return;
    counter_add(COUNTER_CLIENT_REQUESTS, 1);
    counter_add(COUNTER_CLIENT_KBYTES_IN, x->tally.bytes_in);
    counter_add(COUNTER_CLIENT_KBYTES_OUT, x->tally.sent_bytes);
    histogram_add(HISTOGRAM_ALL_US, elapsed_us);
    if (outcome_is_hit(x)) {
        counter_add(COUNTER_CLIENT_HIT_BYTES_OUT, x->tally.sent_bytes);
        histogram_add(HISTOGRAM_HIT_US, elapsed_us);
    } else if (x->hop.asked)
        histogram_add(HISTOGRAM_MISS_US, elapsed_us);
}

static struct span
content_type(const struct exchange *x)
{
    if (x->answer.fault)
        return SPAN("text/html");
    if (x->answer.own_type)
        return span_str(x->answer.own_type);
    return x->answer.entry ? x->answer.entry->head->content_type : SPAN_NONE;
}

static const char *
error_detail(const struct exchange *x)
{
    if (x->answer.fault_detail)
        return x->answer.fault_detail;
    return x->answer.fault ? fault_name(x->answer.fault) : NULL;
}

static struct log_record
record_of(const struct exchange *x, int64_t elapsed_us)
{
    return (struct log_record){
        .end_wall_ms = clock_wall_ms(),
        .elapsed_us = elapsed_us,
        .client = x->context->from.peer,
        .local = x->context->from.local,
        .server = x->hop.server,
        .result = outcome_result(x),
        .status = x->answer.status,
        .server_status = x->hop.status,
        .bytes_out = x->tally.sent_bytes,
        .bytes_in = x->tally.bytes_in,
        .body_bytes_out = x->tally.body_sent,
        .method =
            x->context->request.method_text.n ? x->context->request.method_text : SPAN("NONE"),
        .url = url_or_error(x),
        .path = x->context->request.uri.path,
        .minor = x->context->request.minor,
        .hierarchy = hierarchy(x),
        .server_host = x->context->request.uri.host,
        .content_type = content_type(x),
        .request_fields = &x->context->request.fields,
        .response_fields = x->answer.entry ? &x->answer.entry->head->fields : NULL,
        .error_page = x->answer.fault ? fault_page(x->answer.fault) : NULL,
        .error_detail = error_detail(x),
        .dns_us = x->hop.took.dns_us,
        .server_us = x->hop.took.first_byte_us,
        .sequence = ++x->env->sequence,
        .port_name = x->context->from.port_name,
    };
}

void
outcome_log(struct exchange *x)
{
    int64_t elapsed_us = (clock_exact_mono_ns() - x->tally.started_ns) / 1000;
    struct log_record r = record_of(x, elapsed_us);

    count(x, (uint64_t)elapsed_us);
    x->context->facts.client = x->context->from.peer;
    if (x->env->log)
        x->env->log(x->env->owner, &r, &x->context->facts);
}
