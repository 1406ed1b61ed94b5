/* cache/disk/purge.c - all objects whose URI starts alike.
 *
 * The directory knows no URIs, so each record's head has to be read. Until that is done a ban says
 * at every reading that such records are void if they were written before it; then they are gone
 * from the directory, and tombstones say so to a start after a crash. */
#include "cache/disk/purge.h"

#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "cache/disk/file.h"
#include "cache/disk/ring.h"
#include "cache/disk/writer.h"

#define HEAD_BYTES 2048 /* has the URI, or says how much more has it */

struct ban {
    struct list link;
    uint64_t number, sequence; /* records up to that sequence; 0: not known yet, all */
    size_t prefix_n;
    char prefix[];
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

static void
ban_end(struct tier_bans *b, struct ban *ban)
{
    list_remove(&ban->link);
    mem_free(ban);
    atomic_fetch_sub(&b->n, 1);
}

void
tier_bans_free(struct tier_bans **held)
{
    struct tier_bans *b = *held;

    *held = NULL;
    if (!b)
        return;
    while (!list_empty(&b->all))
        ban_end(b, LIST_OWNER(b->all.next, struct ban, link));
    pthread_mutex_destroy(&b->lock);
    mem_free(b);
}

uint64_t
tier_ban(struct tier *t, struct span prefix)
{
    struct ban *ban = mem_zalloc(sizeof *ban + prefix.n + 1);
    uint64_t number;

    ban->prefix_n = prefix.n;
    memcpy(ban->prefix, prefix.at, prefix.n);
    pthread_mutex_lock(&t->bans->lock);
    number = ban->number = ++t->bans->given;
    list_push_back(&t->bans->all, &ban->link);
    atomic_fetch_add(&t->bans->n, 1);
    pthread_mutex_unlock(&t->bans->lock);
    return number;
}

static bool
bans(const struct ban *ban, const struct record *r)
{
    return (ban->sequence == 0 || r->sequence <= ban->sequence) &&
           span_starts(r->uri, span_of(ban->prefix, ban->prefix_n));
}

bool
tier_is_banned(const struct tier *t, const struct record *r)
{
    bool banned = false;

    if (atomic_load(&t->bans->n) == 0)
        return false;
    pthread_mutex_lock(&t->bans->lock);
    for (struct list *l = t->bans->all.next; l != &t->bans->all && !banned; l = l->next)
        banned = bans(LIST_OWNER(l, struct ban, link), r);
    pthread_mutex_unlock(&t->bans->lock);
    return banned;
}

static struct ban *
ban_with(struct tier *t, uint64_t number)
{
    struct list *l = t->bans->all.next;

    while (l != &t->bans->all && LIST_OWNER(l, struct ban, link)->number != number)
        l = l->next;
    return l == &t->bans->all ? NULL : LIST_OWNER(l, struct ban, link);
}

/* A head that can't be read is not served either. */
static bool
row_is_banned(struct tier *t, const struct directory_row *row, const struct ban *ban, char **bytes,
              size_t *room)
{
    size_t n = row->bytes < HEAD_BYTES ? (size_t)row->bytes : HEAD_BYTES, head_bytes = 0;
    struct record r;
    enum record_result result;

    if (!disk_read_at(t->fd, row->at, *bytes, n))
        return false;
    result = record_decode(span_of(*bytes, n), &r, &head_bytes);
    if (result == RECORD_MORE && head_bytes > n && head_bytes <= row->bytes) {
        if (head_bytes > *room)
            *bytes = mem_realloc(*bytes, *room = head_bytes);
        if (disk_read_at(t->fd, row->at, *bytes, head_bytes))
            result = record_decode(span_of(*bytes, head_bytes), &r, &head_bytes);
    }
    return result == RECORD_OK && bans(ban, &r);
}

/* The digest's second half is in the head only, and that of the last one judged is at hand. */
static void
row_purge(struct tier *t, const char *bytes, size_t room)
{
    struct record r;
    size_t head_bytes;

    if (record_decode(span_of(bytes, room), &r, &head_bytes) == RECORD_OK)
        tier_tombstone(t, r.digest);
}

static uint64_t
purge_rows(struct tier *t, const struct ban *ban, const struct directory_row *rows, size_t n)
{
    size_t room = HEAD_BYTES;
    char *bytes = mem_alloc(room);
    uint64_t purged = 0;

    for (size_t i = 0; i < n; i++)
        if (!rows[i].piece && row_is_banned(t, &rows[i], ban, &bytes, &room)) {
            row_purge(t, bytes, room);
            purged++;
        }
    mem_free(bytes);
    return purged;
}

/* New rows can come meanwhile, by carrying forward what is not looked at yet; so the list is made
 * again until nothing more is found. */
void
tier_purge(struct tier *t, uint64_t number)
{
    struct ban *ban;
    uint64_t purged, all = 0;

    pthread_mutex_lock(&t->bans->lock);
    ban = ban_with(t, number);
    if (ban)
        ban->sequence = t->sequence ? t->sequence : 1;
    pthread_mutex_unlock(&t->bans->lock);
    if (ban == NULL)
        return;
    do {
        struct directory_row *rows;
        size_t n;

        tier_flush(t);
        rows = directory_rows_in(t->directory, TIER_BASE, t->bytes, &n);
        purged = purge_rows(t, ban, rows, n);
        all += purged;
        mem_free(rows);
    } while (purged);
    log_event(LOG_NOTE, "cache_dir %s: %llu objects purged that start with %.*s", t->path,
              (unsigned long long)all, (int)ban->prefix_n, ban->prefix);
    pthread_mutex_lock(&t->bans->lock);
    ban_end(t->bans, ban);
    pthread_mutex_unlock(&t->bans->lock);
}
