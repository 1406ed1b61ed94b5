/* cache/disk/disk.h - what the parts of a disk share: the tier itself.
 *
 * They stand on each other like this; none calls one to its right:
 *
 *     names, file, directory, record <- bans <- ring <- writer
 *     writer, removals <- purge, scrub, rebuild <- queue
 *     queue <- remove <- choice <- spool
 *     ring <- fetch <- stream <- reader, which ends spools too
 *     all of these <- front (cache/tier.h), stats
 *
 * A tier is one file. One thread writes it and owns where it writes; any number of loops read. The
 * directory, the bans and the counters are for all. */
#ifndef CACHE_DISK_DISK_H
#define CACHE_DISK_DISK_H

#include <pthread.h>

#include "base/offload.h"
#include "cache/disk/directory.h"
#include "cache/disk/record.h"
#include "cache/tier.h"

#define TIER_MAGIC 0x71e57105u
#define TIER_BASE 65536 /* records start here; before it is the header */
#define TIER_BATCH (256 * 1024)
#define TIERS_MAX 32
#define TIER_MARKS 64
#ifndef TIER_WHOLE_MAX
#define TIER_WHOLE_MAX (128u << 10) /* larger bodies are chains */
#endif
#define TIER_PIECE_MAX (2u << 20) /* of a chain */
#define TIER_REMOVALS 256
#define TIER_SPARE 8
#define TIER_PENDING_MAX (64u << 20)

struct tier_region {
    _Atomic uint32_t pins; /* readers that are about to send its bytes unread */
    _Atomic bool sent;     /* some did since it was written: its pages may be on their way */
};

struct tier_ring { /* cache/disk/ring.c; the writer's own, but for what is shown */
    struct tier *tier;
    uint64_t from, to;      /* of the file */
    uint64_t at, reclaimed; /* next byte; end of what is free behind it */
    char *batch;
    size_t batch_n;
    size_t unsynced;            /* bytes written that nobody told the system to put on the disk */
    struct directory_row *rows; /* of the batch: known when it is written */
    unsigned n_rows, rows_room;
    uint32_t marks_s[TIER_MARKS]; /* when the writer last was at each share of it */
    _Atomic uint64_t at_shown, reclaimed_shown, top; /* for reports: at, reclaimed, end of what was
                                                        ever written */
};

struct tier_window { /* cache/disk/purge.c: rows of a stretch of the file, by place */
    uint64_t from, to, bans;
    struct directory_row *rows;
    size_t n, i;
};

struct tier {
    uint32_t magic;
    char *path;
    struct tier_options options;
    int fd, folder;
    uint64_t seed, bytes, region;
    uint32_t piece; /* longest body in one record; of whole blocks */
    struct tier_region *regions;
    unsigned n_regions;
    _Atomic uint64_t generation;
    struct directory *directory;
    struct offload *writer;
    _Atomic bool ready;
    bool made;     /* just now: there is nothing in it */
    bool may_send; /* the file system gives fresh pages, see ring.c */
    /* --- the writer's own --- */
    struct tier_ring rings[2];
    unsigned n_rings;
    struct ghost *ghost; /* with two rings */
    uint64_t writing;    /* generation of what is being put: that of when it was asked for */
    uint64_t sequence, puts_unflushed;
    int64_t pause_until_ms; /* after a fault */
    struct tier_window window;
    bool purging, header_owed; /* header_owed: the file has an older generation */
    uint64_t scrub_at;
    int64_t scrub_again_s;
    /* --- for all --- */
    pthread_mutex_t spare_lock;
    char *spare[TIER_SPARE]; /* for pieces: memory that was touched before costs less */
    unsigned n_spare;
    _Atomic uint64_t pending_bytes;
    _Atomic uint64_t free_bytes; /* never written, or written and void */
    _Atomic unsigned pending_jobs, pending_tombstones;
    _Atomic bool
        given_up;         /* it does not take the removals: all is void until it has been cleared */
    _Atomic bool closing; /* nobody asks for anything more: what takes long ends */
    _Atomic int64_t late_ms; /* on the monotonic clock: what is not written by then is left out */
    pthread_mutex_t early_lock;
    uint64_t (*early)[2]; /* digests removed before it was ready */
    size_t n_early, early_room;
    struct tier_bans *bans;                   /* prefixes that are being purged; bans.h */
    _Atomic uint64_t removals[TIER_REMOVALS]; /* by hash: what is spooled meanwhile is void */
    _Atomic bool scrubbing;
    _Atomic uint64_t puts, dropped, written, carried, admitted, hits, misses, read_faults,
        write_faults, bad_records, checked;
};

struct tiers {
    struct tier *at[TIERS_MAX];
    unsigned n;
    struct offload *readers;
};

struct tier_reader {
    struct tiers *tiers;
    struct loop *loop;
    struct list reads, spools; /* all */
    void (*loaded)(void *owner, struct entry *e);
    void *owner;
};

#endif
