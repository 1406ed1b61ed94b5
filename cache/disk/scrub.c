/* cache/disk/scrub.c - in idle time, a region after the other is read and judged.
 *
 * What a disk has lost is noticed before somebody asks for it, and what is sound may be sent unread
 * from then on. Once round, it rests for a day. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "base/check.h"
#include "base/log.h"
#include "cache/disk/file.h"
#include "cache/disk/names.h"
#include "cache/disk/scrub.h"

#define REST_S 86400
#define TELL_MS 10000

/* Bytes that only we wanted do not stay in the page cache in place of others. */
static bool
read_aside(const struct tier *t, uint64_t at, char *to, size_t n_bytes)
{
    struct iovec v = {to, n_bytes};
    ssize_t got = preadv2(t->fd, &v, 1, (off_t)at, RWF_NOWAIT);
    bool there = got == (ssize_t)n_bytes;

    if (there)
        return true;
    if (!disk_read_at(t->fd, at, to, n_bytes))
        return false;
    (void)posix_fadvise(t->fd, (off_t)at, (off_t)n_bytes, POSIX_FADV_DONTNEED);
    return true;
}

static bool
is_sound(const struct directory_row *row, struct span bytes)
{
    struct record r;
    size_t head_bytes;

    if (record_decode(bytes, &r, &head_bytes) != RECORD_OK || record_bytes(&r) != row->bytes)
        return false;
    bytes = span_skip(bytes, head_bytes);
    for (uint64_t i = 0, left = r.body_bytes; left; i++) {
        size_t n = left < RECORD_BLOCK ? (size_t)left : RECORD_BLOCK;

        if (!record_block_is_sound(&r, i, span_first(bytes, n)))
            return false;
        bytes = span_skip(bytes, n);
        left -= n;
    }
    return true;
}

static void
row_judge(struct tier *t, const struct directory_row *row, char **bytes, size_t *room)
{
    bool sound;

    if (row->bytes > *room)
        *bytes = mem_realloc(*bytes, *room = (size_t)row->bytes);
    sound = read_aside(t, row->at, *bytes, (size_t)row->bytes) &&
            is_sound(row, span_of(*bytes, (size_t)row->bytes));
    atomic_fetch_add(&t->checked, row->bytes);
    if (sound)
        directory_check(t->directory, row);
    else if (directory_remove(t->directory, row->hash, row->at)) {
        atomic_fetch_add(&t->bad_records, 1);
        log_event_every(TELL_MS, LOG_WARN,
                        "cache_dir %s: a spoilt record at %llu, found in idle time; it is dropped",
                        t->path, (unsigned long long)row->at);
    }
}

/* true: something else is to be done; it goes on from there. */
static bool
region_judge(struct tier *t, const struct directory_row *rows, size_t n)
{
    size_t room = 65536;
    char *bytes = mem_alloc(room);
    bool disturbed = false;

    for (size_t i = 0; i < n && !disturbed; i++) {
        disturbed = atomic_load(&t->pending_jobs) > 1 || atomic_load(&t->closing);
        t->scrub_at = rows[i].at;
        if (!disturbed)
            row_judge(t, &rows[i], &bytes, &room);
    }
    mem_free(bytes);
    return disturbed;
}

void
tier_scrub(struct tier *t)
{
    uint64_t end = t->scrub_at + t->region;
    struct directory_row *rows;
    size_t n;

    atomic_store(&t->scrubbing, false);
    if (tier_wall_ms() / 1000 < t->scrub_again_s)
        return;
    rows = directory_rows_in(t->directory, t->scrub_at, end, &n);
    if (!region_judge(t, rows, n))
        t->scrub_at = end;
    mem_free(rows);
    if (t->scrub_at >= t->bytes) {
        t->scrub_at = TIER_BASE;
        t->scrub_again_s = tier_wall_ms() / 1000 + REST_S;
    }
}
