/* cache/body_pace.c - who waits for whom: the fill for its readers, and readers for each other. Why
 * it is so is said in body.h. */
#include "base/check.h"
#include "base/clock.h"
#include "cache/body_private.h"

/* Where the fastest reader is, and the slowest. */
struct spread {
    uint64_t first, last;
};

/* Under the lock. false: there is none that counts. */
static bool
spread_of(const struct body *b, struct spread *s)
{
    *s = (struct spread){0, UINT64_MAX};
    for (const struct list *l = b->readers.next; l != &b->readers; l = l->next) {
        const struct body_reader *r = LIST_OWNER(l, struct body_reader, link);
        uint64_t at = atomic_load(&r->at);

        if (r->background || atomic_load(&r->outrun))
            continue;
        s->first = at > s->first ? at : s->first;
        s->last = at < s->last ? at : s->last;
    }
    return s->last != UINT64_MAX;
}

/* Under the lock: may the writer publish n_bytes more? Without readers it may. */
static bool
has_room(const struct body *b, uint64_t n_bytes)
{
    uint64_t to = atomic_load(&b->published) + n_bytes;
    struct spread s;

    if (!spread_of(b, &s))
        return true;
    return to <= s.first + BODY_WINDOW &&
           (body_mode(b) == BODY_KEEP || s.first == s.last || to <= s.last + b->lag_bytes);
}

/* Under the lock: lets go of those who are too far behind the fastest, of all or of those alone
 * that can do without. Without the lock they see it when their task runs. */
static void
laggards_outrun(struct body *b, bool all)
{
    struct spread s;

    if (body_mode(b) != BODY_PASS || !spread_of(b, &s))
        return;
    for (struct list *l = b->readers.next; l != &b->readers; l = l->next) {
        struct body_reader *r = LIST_OWNER(l, struct body_reader, link);
        uint64_t at = atomic_load(&r->at);

        if (r->background || at == s.first || !(all || r->can_resume) ||
            published_of(b) < at + b->lag_bytes)
            continue;
        atomic_store(&r->outrun, true);
        if (r->task)
            loop_wake(r->loop, r->task);
    }
}

bool
body_wants(struct body *b)
{
    bool wants;

    CHECK_OBJ(b, BODY_MAGIC);
    if (published_of(b) < BODY_WINDOW)
        return true;
    pthread_mutex_lock(&b->lock);
    atomic_store(&b->fill_waits, true); /* before the readers are asked, see the top */
    laggards_outrun(b, false);
    wants = has_room(b, 1);
    if (wants)
        atomic_store(&b->fill_waits, false);
    pthread_mutex_unlock(&b->lock);
    return wants;
}

/* Under the lock. Half a window, so that the fill is not woken for every few bytes. */
void
body_fill_wake(struct body *b)
{
    if (!atomic_load(&b->fill_waits) || !has_room(b, BODY_WINDOW / 2))
        return;
    atomic_store_explicit(&b->moved_ms, clock_mono_ms(), memory_order_relaxed);
    atomic_store(&b->fill_waits, false);
    if (b->fill)
        loop_wake(b->fill_loop, b->fill);
}

void
body_outrun_laggards(struct body *b)
{
    CHECK_OBJ(b, BODY_MAGIC);
    pthread_mutex_lock(&b->lock);
    if (atomic_load(&b->fill_waits))
        laggards_outrun(b, true);
    body_fill_wake(b);
    pthread_mutex_unlock(&b->lock);
}
