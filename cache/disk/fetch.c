/* cache/disk/fetch.c - bytes for a read: from the page cache at once, else by one of the pool's
 * threads. */
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "cache/disk/read.h"

#define TELL_MS 10000

static void
read_rest(struct tier_read *r)
{
    while (r->got < r->wanted) {
        ssize_t n = pread(tier_of(r)->fd, r->chunk->bytes + r->got, r->wanted - r->got,
                          (off_t)(r->at + r->got));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            r->error = n < 0 ? errno : EIO;
            return;
        }
        r->got += (size_t)n;
    }
}

static void
read_job(struct offload_job *job)
{
    read_rest(LIST_OWNER(job, struct tier_read, job));
}

/* What is in memory already. true: that is all of it. */
static bool
read_at_once(struct tier_read *r)
{
    while (r->got < r->wanted) {
        struct iovec v = {r->chunk->bytes + r->got, r->wanted - r->got};
        ssize_t n = preadv2(tier_of(r)->fd, &v, 1, (off_t)(r->at + r->got), RWF_NOWAIT);

        if (n <= 0)
            return false;
        r->got += (size_t)n;
    }
    return true;
}

void
tier_by_thread(struct tier_read *r, void (*work)(struct offload_job *job))
{
    r->in_flight = true;
    r->job.work = work;
    offload_submit(r->reader->tiers->readers, &r->job);
}

bool
tier_fetch(struct tier_read *r, uint64_t at, size_t n_bytes)
{
    if (r->room < n_bytes) {
        chunk_unref(&r->chunk);
        r->chunk = chunk_new(n_bytes, 0);
        r->room = n_bytes;
    }
    r->at = at;
    r->wanted = n_bytes;
    r->got = 0;
    r->error = 0;
    if (read_at_once(r))
        return true;
    tier_by_thread(r, read_job);
    return false;
}

/* The record is not what its row promised: written over, or spoilt. */
void
tier_forget_row(struct tier_read *r, const struct directory_row *row, const char *why)
{
    struct tier *t = tier_of(r);

    if (directory_remove(t->directory, row->hash, row->at)) {
        atomic_fetch_add(&t->bad_records, 1);
        log_event_every(TELL_MS, LOG_WARN, "cache_dir %s: %s at %llu; the object is dropped",
                        t->path, why, (unsigned long long)row->at);
    }
}
