/* cache/disk/spool.c - a body that memory does not keep, onto the disk as it comes.
 *
 * A reader of its own copies what arrives into pieces, which the writer gets one by one; the head
 * that makes them an object follows when the body is complete. A body that breaks off, or a disk
 * that is slower than it comes, leaves pieces without a head, which nobody finds. */
#include "cache/disk/spool.h"

#include <string.h>

#include "base/check.h"
#include "cache/disk/choice.h"
#include "cache/disk/names.h"
#include "cache/disk/queue.h"
#include "cache/disk/removals.h"

struct tier_spool {
    struct list link;
    struct tier_reader *home;
    struct tier *tier;
    struct entry *entry;
    struct body_reader reader;
    struct loop_task ready;
    uint64_t chain, at; /* at: of the piece in the body */
    uint64_t removals;  /* when it began */
    char *piece;
    size_t piece_n, uri_n;
    char uri[];
};

static void
spool_free(struct tier_spool *s)
{
    loop_task_cancel(s->home->loop, &s->ready);
    body_reader_close(&s->reader);
    entry_unref(&s->entry);
    list_remove(&s->link);
    if (s->piece)
        queue_piece_give(s->tier, s->piece);
    mem_free(s);
}

static bool
is_too_slow(struct tier_spool *s)
{
    if (!queue_is_full(s->tier) && s->at < (s->tier->bytes - TIER_BASE) / 2)
        return false;
    atomic_fetch_add(&s->tier->dropped, 1);
    return true;
}

static void
piece_put(struct tier_spool *s)
{
    queue_piece(s->tier, s->chain, s->at, s->piece, s->piece_n);
    s->at += s->piece_n;
    s->piece = NULL;
    s->piece_n = 0;
}

/* As much of the run as the piece has room for. */
static size_t
piece_add(struct tier_spool *s, const struct iovec *run)
{
    size_t room = s->tier->piece - s->piece_n, n = run->iov_len < room ? run->iov_len : room;

    if (s->piece == NULL)
        s->piece = queue_piece_take(s->tier);
    memcpy(s->piece + s->piece_n, run->iov_base, n);
    s->piece_n += n;
    if (s->piece_n == s->tier->piece)
        piece_put(s);
    return n;
}

static void
body_ended(struct tier_spool *s)
{
    if (s->piece_n)
        piece_put(s);
    if (s->at && tier_wants(s->tier, s->at) &&
        atomic_load(tier_removals_of(s->tier, span_of(s->uri, s->uri_n))) == s->removals) {
        tier_alone(s->home->tiers, s->tier, span_of(s->uri, s->uri_n));
        queue_chain(s->tier, span_of(s->uri, s->uri_n), s->entry, s->chain);
    }
}

static void
ready(void *owner)
{
    struct tier_spool *s = owner;
    enum source_state state;
    struct iovec run;
    int n;

    while ((state = body_reader_peek(&s->reader, &run, 1, &n)) == SOURCE_DATA) {
        if (is_too_slow(s)) {
            spool_free(s);
            return;
        }
        body_reader_consume(&s->reader, piece_add(s, &run));
    }
    if (state == SOURCE_WAIT)
        return;
    if (state == SOURCE_END)
        body_ended(s);
    spool_free(s);
}

/* Two at a time of one name would only write twice. */
static bool
is_under_way(const struct tier_reader *home, struct span uri)
{
    for (const struct list *l = home->spools.next; l != &home->spools; l = l->next) {
        const struct tier_spool *s = LIST_OWNER(l, struct tier_spool, link);

        if (span_eq(span_of(s->uri, s->uri_n), uri))
            return true;
    }
    return false;
}

bool
tier_spool_start(struct tier_reader *home, struct span uri, struct entry *e)
{
    uint64_t length = entry_bytes(e);
    struct tier *t = tier_choose(home->tiers, uri, length == UINT64_MAX ? TIER_WHOLE_MAX : length);
    struct tier_spool *s;

    if (t == NULL || e->part || is_under_way(home, uri))
        return false;
    s = mem_zalloc(sizeof *s + uri.n + 1);
    s->home = home;
    s->tier = t;
    s->chain = tier_chain_new();
    s->removals = atomic_load(tier_removals_of(t, uri));
    s->uri_n = uri.n;
    memcpy(s->uri, uri.at, uri.n);
    loop_task_init(&s->ready, ready, s);
    s->reader.background = true;
    if (!body_reader_open(&s->reader, e->body, 0, home->loop, &s->ready)) {
        mem_free(s);
        return false;
    }
    entry_ref(e);
    s->entry = e;
    list_push_back(&home->spools, &s->link);
    loop_defer(home->loop, &s->ready);
    return true;
}

void
tier_spools_end(struct tier_reader *home)
{
    while (!list_empty(&home->spools))
        spool_free(LIST_OWNER(home->spools.next, struct tier_spool, link));
}
