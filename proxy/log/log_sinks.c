/* A record is formatted once per sink whose condition holds, straight into that sink's block. */
#include "proxy/log/log_sinks.h"

#include "base/check.h"

struct log_writer {
    struct log_sinks *sinks;
    struct access_log_buffer *buffers[];
};

struct log_sinks *
log_sinks_new(unsigned n)
{
    struct log_sinks *s = mem_zalloc(sizeof *s + n * sizeof s->at[0]);

    ref_init(&s->refs);
    s->n = n;
    return s;
}

void
log_sinks_ref(struct log_sinks *s)
{
    ref_take(&s->refs);
}

void
log_sinks_unref(struct log_sinks **held)
{
    struct log_sinks *s = *held;

    *held = NULL;
    if (!s || ref_drop(&s->refs) > 0)
        return;
    for (unsigned i = 0; i < s->n; i++) {
        if (s->at[i].condition)
            acl_cond_free(&s->at[i].condition);
        if (s->at[i].format)
            log_format_free(&s->at[i].format);
        if (s->at[i].log)
            access_log_close(&s->at[i].log);
    }
    acl_list_free(&s->allowed);
    mem_free(s);
}

struct log_writer *
log_writer_new(struct log_sinks *s)
{
    struct log_writer *w = mem_zalloc(sizeof *w + s->n * sizeof w->buffers[0]);

    w->sinks = s;
    log_sinks_ref(s);
    for (unsigned i = 0; i < s->n; i++)
        if (s->at[i].log)
            w->buffers[i] = access_log_buffer_new(s->at[i].log);
    return w;
}

void
log_writer_free(struct log_writer **held)
{
    struct log_writer *w = *held;

    *held = NULL;
    if (!w)
        return;
    for (unsigned i = 0; i < w->sinks->n; i++)
        if (w->buffers[i])
            access_log_buffer_free(&w->buffers[i]);
    log_sinks_unref(&w->sinks);
    mem_free(w);
}

static void
write_to_sinks(struct log_writer *w, const struct log_record *r, const struct acl_facts *f)
{
    for (unsigned i = 0; i < w->sinks->n; i++) {
        const struct log_sink *s = &w->sinks->at[i];

        if (s->condition && !acl_cond_holds(s->condition, f))
            continue;
        if (!s->log)
            return;
        log_format_write(s->format, r, access_log_buffer_lines(w->buffers[i]));
        access_log_buffer_wrote(w->buffers[i]);
    }
}

void
log_writer_write(struct log_writer *w, const struct log_record *r, const struct acl_facts *f)
{
    const struct log_sinks *s = w->sinks;
    struct log_record masked;

    if (s->allowed && acl_list_check(s->allowed, f) == ACL_DENY)
        return;
    if (s->masks_clients) {
        masked = *r;
        addr_keep_prefix(&masked.client,
                         r->client.sa.sa_family == AF_INET ? s->v4_bits : s->v6_bits);
        r = &masked;
    }
    write_to_sinks(w, r, f);
}

void
log_writer_flush(struct log_writer *w)
{
    for (unsigned i = 0; i < w->sinks->n; i++)
        if (w->buffers[i])
            access_log_buffer_flush(w->buffers[i]);
}
