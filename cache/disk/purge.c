/* cache/disk/purge.c - all objects whose URI starts alike, out of the directory.
 *
 * The directory knows no URIs: the head of each record has to be read, which on a large disk takes
 * hours. So it is done in slices, between which the writer does what it is asked for, and in
 * windows of the file that have some hundred thousand rows, of which there is a copy. All bans look
 * at the same heads; each is over when it has seen the whole file, from wherever it began.
 *
 * A record of the ban itself goes in front: a start after a crash, or after an end that did not
 * wait for this, finds it and begins again. Nothing banned is carried forward meanwhile, so that in
 * each ring the ban lies behind what it is about. */
#include "cache/disk/purge.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/disk/bans.h"
#include "cache/disk/file.h"
#include "cache/disk/ring.h"
#include "cache/disk/writer.h"

#define HEAD_BYTES 2048 /* has the URI, or says how much more has it */
#define WINDOW_ROWS 200000
#define SLICE_NS (10 * INT64_C(1000000))

void
tier_purge_begin(struct tier *t, uint64_t number)
{
    char *prefix;
    size_t n;

    tier_flush(t); /* what is in a batch has its row now */
    tier_bans_adopt(t, number);
    while (tier_ban_to_write(t, &prefix, &n)) {
        if (!tier_append_ban(t, span_of(prefix, n)))
            log_event(LOG_WARN,
                      "cache_dir %s: the purge of what starts with %.*s could not be noted there; "
                      "after a crash some of it may be back",
                      t->path, (int)n, prefix);
        mem_free(prefix);
    }
}

/* The head of the record that row names, in *bytes. A head that can't be read is not served
 * either. */
static bool
head_read(struct tier *t, const struct directory_row *row, char **bytes, struct record *r)
{
    size_t n = row->bytes < HEAD_BYTES ? (size_t)row->bytes : HEAD_BYTES, head_bytes = 0;
    enum record_result result;

    *bytes = mem_realloc(*bytes, n);
    if (!disk_read_at(t->fd, row->at, *bytes, n))
        return false;
    result = record_decode(span_of(*bytes, n), r, &head_bytes);
    if (result == RECORD_MORE && head_bytes > n && head_bytes <= row->bytes) {
        *bytes = mem_realloc(*bytes, head_bytes);
        if (disk_read_at(t->fd, row->at, *bytes, head_bytes))
            result = record_decode(span_of(*bytes, head_bytes), r, &head_bytes);
    }
    return result == RECORD_OK;
}

static void
row_judge(struct tier *t, const struct directory_row *row, char **bytes)
{
    struct record r;

    if (!row->piece && head_read(t, row, bytes, &r) && tier_ban_takes(t, &r))
        (void)directory_remove(t->directory, row->hash, row->at);
}

/* ---- windows ---- */

static void
window_next(struct tier *t)
{
    struct tier_window *w = &t->window;
    uint64_t windows = directory_rows(t->directory) / WINDOW_ROWS + 1;

    w->from = w->to >= TIER_BASE && w->to < t->bytes ? w->to : TIER_BASE;
    w->to = w->from + (t->bytes - TIER_BASE) / windows + 1;
    w->to = w->to < t->bytes ? w->to : t->bytes;
    w->bans = tier_bans_given(t);
    w->i = 0;
    w->rows = directory_rows_in(t->directory, w->from, w->to, &w->n);
}

static void
window_end(struct tier *t)
{
    struct tier_window *w = &t->window;

    mem_free(w->rows);
    w->rows = NULL;
    w->n = w->i = 0;
}

bool
tier_purge_some(struct tier *t)
{
    struct tier_window *w = &t->window;
    int64_t until_ns = clock_exact_mono_ns() + SLICE_NS;
    char *bytes = NULL;

    tier_flush(t);
    while (w->i < w->n && clock_exact_mono_ns() < until_ns)
        row_judge(t, &w->rows[w->i++], &bytes);
    mem_free(bytes);
    if (w->i < w->n)
        return true;
    window_end(t);
    tier_bans_passed(t, w->bans, w->to - w->from);
    if (tier_has_bans(t))
        window_next(t);
    return tier_has_bans(t);
}

void
tier_purge_end(struct tier *t)
{
    window_end(t);
}
