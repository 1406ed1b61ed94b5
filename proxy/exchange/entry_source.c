/* The body of an entry as a source: a reader, cut to the bytes asked for. */
#include "base/check.h"
#include "proxy/exchange/states.h"

/* What comes before the range, as it comes. */
static enum source_state
skip_some(struct entry_source *s, struct iovec *runs, int max, int *n)
{
    enum source_state state = SOURCE_DATA;

    while (s->skip && (state = body_reader_peek(&s->reader, runs, max, n)) == SOURCE_DATA) {
        size_t bytes = 0;

        for (int i = 0; i < *n; i++)
            bytes += runs[i].iov_len;
        if (bytes > s->skip)
            bytes = (size_t)s->skip;
        body_reader_consume(&s->reader, bytes);
        s->skip -= bytes;
    }
    *n = 0;
    return state;
}

static enum source_state
entry_source_peek(struct source *source, struct iovec *runs, int max, int *n)
{
    struct entry_source *s = LIST_OWNER(source, struct entry_source, source);
    enum source_state state;
    uint64_t left = s->left;

    *n = 0;
    if (left == 0)
        return SOURCE_END;
    state = s->skip ? skip_some(s, runs, max, n) : SOURCE_DATA;
    if (state == SOURCE_DATA)
        state = body_reader_peek(&s->reader, runs, max, n);
    if (state == SOURCE_FAULT)
        source->fault = body_fault(s->reader.body);
    if (state == SOURCE_END)
        source->trailer = body_trailer(s->reader.body);
    if (state != SOURCE_DATA)
        return state;
    source->file_fd = s->reader.file_fd;
    source->file_at = s->reader.file_at;
    for (int i = 0; i < *n; i++) {
        if (runs[i].iov_len >= left) {
            runs[i].iov_len = (size_t)left;
            *n = i + 1;
            break;
        }
        left -= runs[i].iov_len;
    }
    return SOURCE_DATA;
}

static void
entry_source_consume(struct source *source, size_t n_bytes)
{
    struct entry_source *s = LIST_OWNER(source, struct entry_source, source);

    if (s->left != UINT64_MAX)
        s->left -= n_bytes;
    body_reader_consume(&s->reader, n_bytes);
}

static void
entry_source_end(struct source *source)
{
    entry_source_close(LIST_OWNER(source, struct entry_source, source));
}

static const struct source_ops ENTRY_SOURCE = {"entry", entry_source_peek, entry_source_consume,
                                               entry_source_end};

bool
entry_source_open(struct entry_source *s, struct entry *e, uint64_t from, uint64_t n_bytes,
                  struct loop *l, struct loop_task *wake)
{
    s->source.ops = &ENTRY_SOURCE;
    s->source.loop = l;
    s->source.wake = wake;
    s->source.trailer = SPAN_NONE;
    s->left = n_bytes;
    s->skip = body_mode(e->body) == BODY_PASS ? from : 0; /* it keeps nothing for those ahead */
    s->open = body_reader_open(&s->reader, e->body, from - s->skip, l, wake);
    return s->open;
}

void
entry_source_close(struct entry_source *s)
{
    if (!s->open)
        return;
    s->open = false;
    body_reader_close(&s->reader);
}
