/* Several ranges as one body: multipart/byteranges (RFC 9110 section 14.6).
 *
 * The texts between the parts are made beforehand, because their length belongs to the body's. */
#include "base/check.h"
#include "proxy/exchange/states.h"

struct multipart {
    struct source source;
    struct exchange *x;
    unsigned i;       /* the part that `text` precedes, or that is being read */
    struct span text; /* what is left of it */
    struct span texts[RANGES_MAX + 1];
};

/* The bytes of part i, from the same reader each time. false: they are gone. */
static bool
part_open(struct multipart *m)
{
    const struct byte_range *r = &m->x->ranges.give[m->i];

    entry_source_close(&m->x->answer.out);
    return entry_source_open(&m->x->answer.out, m->x->answer.entry, r->first,
                             r->last - r->first + 1, m->source.loop, m->source.wake);
}

static enum source_state
next_part(struct multipart *m)
{
    m->i++;
    m->text = m->texts[m->i];
    entry_source_close(&m->x->answer.out);
    return SOURCE_DATA;
}

static enum source_state
multipart_peek(struct source *source, struct iovec *runs, int max, int *n)
{
    struct multipart *m = LIST_OWNER(source, struct multipart, source);
    enum source_state state = SOURCE_END;

    *n = 0;
    if (!m->text.n && m->i < m->x->ranges.n_give) {
        if (!m->x->answer.out.open && !part_open(m)) {
            source->fault = FAULT_SERVER_INCOMPLETE;
            return SOURCE_FAULT;
        }
        state = source_peek(&m->x->answer.out.source, runs, max, n);
        source->fault = m->x->answer.out.source.fault;
        source->file_fd = m->x->answer.out.source.file_fd;
        source->file_at = m->x->answer.out.source.file_at;
        if (state != SOURCE_END)
            return state;
        next_part(m);
    }
    if (!m->text.n)
        return SOURCE_END;
    runs[0] = (struct iovec){(void *)m->text.at, m->text.n};
    *n = 1;
    return SOURCE_DATA;
}

static void
multipart_consume(struct source *source, size_t n_bytes)
{
    struct multipart *m = LIST_OWNER(source, struct multipart, source);

    if (m->text.n)
        m->text = span_skip(m->text, n_bytes);
    else
        source_consume(&m->x->answer.out.source, n_bytes);
}

static void
multipart_close(struct source *source)
{
    entry_source_close(&LIST_OWNER(source, struct multipart, source)->x->answer.out);
}

static const struct source_ops MULTIPART = {"ranges", multipart_peek, multipart_consume,
                                            multipart_close};

/* Nobody outside can know it, so no body can hold it on purpose. */
static struct span
boundary(struct exchange *x)
{
    struct cache_key key = cache_key_of(x->context->url);

    return arena_printf(&x->context->arena, "%016llx%016llx", (unsigned long long)key.digest[0],
                        (unsigned long long)(key.digest[1] ^ ++x->env->sequence));
}

static struct span
text_before(struct exchange *x, unsigned i, struct span mark, struct span type)
{
    return arena_printf(
        &x->context->arena, "%s--%.*s\r\n%s%.*s%sContent-Range: bytes %llu-%llu/%llu\r\n\r\n",
        i ? "\r\n" : "", SPAN_ARG(mark), type.n ? "Content-Type: " : "", SPAN_ARG(type),
        type.n ? "\r\n" : "", (unsigned long long)x->ranges.give[i].first,
        (unsigned long long)x->ranges.give[i].last,
        (unsigned long long)entry_length(x->answer.entry));
}

struct source *
multipart_new(struct exchange *x, uint64_t *length, struct span *type)
{
    struct multipart *m = arena_alloc(&x->context->arena, sizeof *m);
    struct span mark = boundary(x);

    *m = (struct multipart){.x = x};
    m->source.ops = &MULTIPART;
    m->source.loop = x->env->loop;
    m->source.wake = x->client.wake;
    *length = 0;
    for (unsigned i = 0; i < x->ranges.n_give; i++) {
        m->texts[i] = text_before(x, i, mark, x->answer.entry->head->content_type);
        *length += m->texts[i].n + (x->ranges.give[i].last - x->ranges.give[i].first + 1);
    }
    m->texts[x->ranges.n_give] =
        arena_printf(&x->context->arena, "\r\n--%.*s--\r\n", SPAN_ARG(mark));
    *length += m->texts[x->ranges.n_give].n;
    m->text = m->texts[0];
    *type = arena_printf(&x->context->arena, "multipart/byteranges; boundary=%.*s", SPAN_ARG(mark));
    return &m->source;
}
