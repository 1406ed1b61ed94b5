/* The body of an entry as a source: a reader, cut to the bytes asked for. */
#include "base/check.h"
#include "proxy/exchange/states.h"

static struct exchange *
exchange_of(struct entry_source *s)
{
    return LIST_OWNER(s, struct exchange, answer.out);
}

/* Is this what was sent already? */
static bool
is_as_sent(struct entry_source *s, struct span bytes)
{
    return !s->compares ||
           body_matches(exchange_of(s)->answer.entry->body, body_reader_at(&s->reader), bytes);
}

/* What comes before the range, as it comes. */
static enum source_state
skip_some(struct entry_source *s, struct iovec *runs, int max, int *n)
{
    enum source_state state = SOURCE_DATA;

    while (s->skip && (state = body_reader_peek(&s->reader, runs, max, n)) == SOURCE_DATA) {
        size_t bytes = runs[0].iov_len < s->skip ? runs[0].iov_len : (size_t)s->skip;

        if (!is_as_sent(s, span_of(runs[0].iov_base, bytes)))
            return SOURCE_FAULT;
        body_reader_consume(&s->reader, bytes);
        s->skip -= bytes;
    }
    *n = 0;
    return state;
}

/* Nothing has come for a while: from the fetch, or because of another reader who makes no room. */
static void
waited_long(void *owner)
{
    struct exchange *x = owner;
    struct entry_source *s = &x->answer.out;
    int64_t quiet_ms;

    if (!s->open || !body_reader_is_at_end(&s->reader))
        return;
    body_outrun_laggards(s->reader.body);
    quiet_ms = rest_may_leave(x) ? body_quiet_ms(s->reader.body) : 0;
    if (quiet_ms < STORE_PATIENCE_MS)
        exchange_wait_at_most(x, STORE_PATIENCE_MS - quiet_ms, waited_long);
    else if (rest_begin(x) == SOURCE_FAULT) {
        entry_source_close(s);
        loop_defer(x->env->loop, x->client.wake);
    }
}

static enum source_state
next_runs(struct entry_source *s, struct iovec *runs, int max, int *n)
{
    enum source_state state = s->skip ? skip_some(s, runs, max, n) : SOURCE_DATA;

    if (state == SOURCE_DATA)
        state = body_reader_peek(&s->reader, runs, max, n);
    if (state == SOURCE_WAIT && rest_shares(exchange_of(s)))
        exchange_wait_at_most(exchange_of(s), STORE_PATIENCE_MS, waited_long);
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
    if (!s->open)
        return source->fault ? SOURCE_FAULT : SOURCE_WAIT;
    if (body_reader_is_outrun(&s->reader))
        return rest_begin(exchange_of(s));
    state = next_runs(s, runs, max, n);
    if (state == SOURCE_FAULT)
        source->fault =
            body_fault(s->reader.body) ? body_fault(s->reader.body) : FAULT_SERVER_INCOMPLETE;
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
    s->source.fault = FAULT_NONE;
    s->left = n_bytes;
    s->skip = body_mode(e->body) == BODY_PASS ? from : 0; /* it keeps nothing for those ahead */
    s->reader.can_resume = body_state(e->body) == BODY_FILLING && rest_may_resume(exchange_of(s));
    s->open = body_reader_open(&s->reader, e->body, from - s->skip, l, wake);
    return s->open;
}

void
entry_source_go_on(struct entry_source *s, struct entry *e, uint64_t skip, bool compares)
{
    s->skip = skip;
    s->own_fetch = true;
    s->compares = compares;
    s->reader.can_resume = false;
    s->open = body_reader_open(&s->reader, e->body, 0, s->source.loop, s->source.wake);
    CHECK(s->open);
}

void
entry_source_close(struct entry_source *s)
{
    if (!s->open)
        return;
    s->open = false;
    body_reader_close(&s->reader);
}
