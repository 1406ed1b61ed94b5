/* cache/disk/bans.c - the list of them, under a lock of its own; mostly it is empty. */
#include "cache/disk/bans.h"

#include <string.h>

#include "base/check.h"
#include "base/log.h"

#define NOT_ADOPTED UINT64_MAX /* as a sequence it bans all */

struct ban {
    struct list link;
    uint64_t number, sequence; /* records up to that sequence; number 0: found on the disk */
    uint64_t left;             /* bytes of the file that it has not seen */
    uint64_t purged;
    bool written;
    size_t prefix_n;
    char *prefix;
};

struct tier_bans {
    pthread_mutex_t lock;
    struct list all;
    uint64_t given;
    _Atomic unsigned n;
};

struct tier_bans *
tier_bans_new(void)
{
    struct tier_bans *b = mem_zalloc(sizeof *b);

    pthread_mutex_init(&b->lock, NULL);
    list_init(&b->all);
    return b;
}

static struct ban *
ban_at(struct list *link)
{
    return LIST_OWNER(link, struct ban, link);
}

static void
ban_free(struct ban *ban)
{
    list_remove(&ban->link);
    mem_free(ban->prefix);
    mem_free(ban);
}

void
tier_bans_free(struct tier_bans **held)
{
    struct tier_bans *b = *held;

    *held = NULL;
    if (!b)
        return;
    while (!list_empty(&b->all))
        ban_free(ban_at(b->all.next));
    pthread_mutex_destroy(&b->lock);
    mem_free(b);
}

/* ---- under the lock ---- */

static size_t
alike(const struct ban *ban, struct span prefix)
{
    size_t n = 0, most = ban->prefix_n < prefix.n ? ban->prefix_n : prefix.n;

    while (n < most && ban->prefix[n] == prefix.at[n])
        n++;
    return n;
}

static struct ban *
most_alike(struct tier_bans *b, struct span prefix)
{
    struct ban *best = ban_at(b->all.next);

    for (struct list *l = b->all.next; l != &b->all; l = l->next)
        if (alike(ban_at(l), prefix) > alike(best, prefix))
            best = ban_at(l);
    return best;
}

static struct ban *
ban_make(struct tier_bans *b, struct span prefix)
{
    struct ban *ban = mem_zalloc(sizeof *ban);

    ban->prefix_n = prefix.n;
    ban->prefix = mem_alloc(prefix.n + 1);
    memcpy(ban->prefix, prefix.at, prefix.n);
    list_push_back(&b->all, &ban->link);
    atomic_fetch_add(&b->n, 1);
    return ban;
}

/* A new one, or one that is there and bans what both start with. */
static struct ban *
ban_add(struct tier *t, struct span prefix, uint64_t sequence)
{
    struct tier_bans *b = t->bans;
    struct ban *ban = list_empty(&b->all) ? NULL : most_alike(b, prefix);
    bool is_same = ban && span_eq(span_of(ban->prefix, ban->prefix_n), prefix);

    if (!ban || (!is_same && atomic_load(&b->n) < BANS_MAX))
        ban = ban_make(b, prefix);
    ban->prefix_n = alike(ban, prefix);
    ban->sequence = ban->sequence > sequence ? ban->sequence : sequence;
    ban->left = t->bytes - TIER_BASE;
    return ban;
}

static bool
bans(const struct ban *ban, const struct record *r)
{
    return r->sequence <= ban->sequence && span_starts(r->uri, span_of(ban->prefix, ban->prefix_n));
}

static struct ban *
ban_of(struct tier_bans *b, const struct record *r)
{
    struct list *l = b->all.next;

    while (l != &b->all && !bans(ban_at(l), r))
        l = l->next;
    return l == &b->all ? NULL : ban_at(l);
}

/* ---- any thread ---- */

uint64_t
tier_ban(struct tier *t, struct span prefix)
{
    struct tier_bans *b = t->bans;
    struct ban *ban;
    uint64_t number;

    pthread_mutex_lock(&b->lock);
    ban = ban_add(t, prefix, NOT_ADOPTED);
    number = ban->number = ++b->given;
    ban->written = false;
    pthread_mutex_unlock(&b->lock);
    return number;
}

bool
tier_has_bans(const struct tier *t)
{
    return atomic_load(&t->bans->n) > 0;
}

bool
tier_is_banned(const struct tier *t, const struct record *r)
{
    bool banned;

    if (!tier_has_bans(t))
        return false;
    pthread_mutex_lock(&t->bans->lock);
    banned = ban_of(t->bans, r) != NULL;
    pthread_mutex_unlock(&t->bans->lock);
    return banned;
}

/* ---- the writer's thread ---- */

void
tier_bans_adopt(struct tier *t, uint64_t number)
{
    struct tier_bans *b = t->bans;

    pthread_mutex_lock(&b->lock);
    for (struct list *l = b->all.next; l != &b->all; l = l->next)
        if (ban_at(l)->sequence == NOT_ADOPTED && ban_at(l)->number <= number)
            ban_at(l)->sequence = t->sequence;
    pthread_mutex_unlock(&b->lock);
}

bool
tier_ban_to_write(struct tier *t, char **prefix, size_t *n)
{
    struct tier_bans *b = t->bans;

    *prefix = NULL;
    pthread_mutex_lock(&b->lock);
    for (struct list *l = b->all.next; l != &b->all && *prefix == NULL; l = l->next) {
        struct ban *ban = ban_at(l);

        if (ban->written || ban->sequence == NOT_ADOPTED)
            continue;
        ban->written = true;
        *n = ban->prefix_n;
        *prefix = mem_alloc(*n + 1);
        memcpy(*prefix, ban->prefix, *n);
    }
    pthread_mutex_unlock(&b->lock);
    return *prefix != NULL;
}

void
tier_ban_again(struct tier *t, const struct record *r)
{
    struct ban *ban;

    pthread_mutex_lock(&t->bans->lock);
    ban = ban_add(t, r->uri, r->sequence);
    ban->written = ban->sequence != NOT_ADOPTED;
    pthread_mutex_unlock(&t->bans->lock);
}

bool
tier_ban_takes(struct tier *t, const struct record *r)
{
    struct ban *ban;

    if (!tier_has_bans(t))
        return false;
    pthread_mutex_lock(&t->bans->lock);
    ban = ban_of(t->bans, r);
    if (ban)
        ban->purged++;
    pthread_mutex_unlock(&t->bans->lock);
    return ban != NULL;
}

uint64_t
tier_bans_given(const struct tier *t)
{
    uint64_t given;

    pthread_mutex_lock(&t->bans->lock);
    given = t->bans->given;
    pthread_mutex_unlock(&t->bans->lock);
    return given;
}

static void
ban_end(struct tier *t, struct ban *ban)
{
    if (ban->number || ban->purged)
        log_event(LOG_NOTE, "cache_dir %s: %llu objects purged that start with %.*s", t->path,
                  (unsigned long long)ban->purged, (int)ban->prefix_n, ban->prefix);
    ban_free(ban);
}

void
tier_bans_passed(struct tier *t, uint64_t number, uint64_t n_bytes)
{
    struct tier_bans *b = t->bans;
    struct list over;

    list_init(&over);
    pthread_mutex_lock(&b->lock);
    for (struct list *l = b->all.next, *next; l != &b->all; l = next) {
        struct ban *ban = ban_at(l);

        next = l->next;
        if (ban->number > number || ban->sequence == NOT_ADOPTED)
            continue;
        ban->left -= ban->left < n_bytes ? ban->left : n_bytes;
        if (ban->left == 0) {
            list_remove(l);
            list_push_back(&over, l);
            atomic_fetch_sub(&b->n, 1);
        }
    }
    pthread_mutex_unlock(&b->lock);
    while (!list_empty(&over))
        ban_end(t, ban_at(over.next));
}
