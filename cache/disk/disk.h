/* cache/disk/disk.h - what front.c (the file and the front), writer.c (its writer),
 * rebuild.c (knowing again what is there), spool.c (bodies that are written as they come)
 * and reader.c share. */
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
#define READ_THREADS 4
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

struct tier_header { /* at the start of the file; little-endian, 64 bytes */
    char magic[8];
    uint64_t version, bytes, seed, generation, created_s, reserved, sum;
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
    bool may_send; /* the file system gives fresh pages, see writer.c */
    /* --- the writer's own --- */
    struct tier_ring rings[2];
    unsigned n_rings;
    struct ghost *ghost; /* with two rings */
    uint64_t writing;    /* generation of what is being put: that of when it was asked for */
    uint64_t sequence, puts_unflushed;
    int64_t pause_until_ms; /* after a fault */
    /* --- for all --- */
    pthread_mutex_t spare_lock;
    char *spare[TIER_SPARE]; /* for pieces: memory that was touched before costs less */
    unsigned n_spare;
    _Atomic uint64_t pending_bytes;
    _Atomic unsigned pending_jobs;
    pthread_mutex_t early_lock;
    uint64_t (*early)[2]; /* digests removed before it was ready */
    size_t n_early, early_room;
    struct tier_bans *bans;                   /* prefixes that are being purged; purge.c */
    _Atomic uint64_t removals[TIER_REMOVALS]; /* by hash: what is spooled meanwhile is void */
    uint64_t scrub_at;                        /* the writer's own */
    int64_t scrub_again_s;
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

void tier_hash(const struct tier *t, struct span uri, uint64_t digest[2]);
uint32_t tier_tag(struct span vary, const struct part *part);
const struct part *tier_part_of(const struct entry *e);
int64_t tier_wall_ms(void);
uint32_t tier_now_s(void);
void tier_piece_hash(const struct tier *t, uint64_t chain, uint64_t at, uint64_t digest[2]);
uint64_t tier_chain_new(void);
bool tier_wants(const struct tier *t, uint64_t body_bytes);
/* All of it, or false with errno; EINTR is no end. */
bool disk_read_at(int fd, uint64_t at, char *to, size_t n_bytes);
bool disk_write_at(int fd, uint64_t at, const char *from, size_t n_bytes);

/* writer.c; on the writer's thread. What is false was not written. */
void tier_write_failed(struct tier *t, const char *what);
void tier_flush(struct tier *t); /* what was appended can be found from now on */
bool tier_append(struct tier *t, struct span uri, struct entry *e);
bool tier_append_piece(struct tier *t, uint64_t chain, uint64_t at, struct span bytes);
/* The head of a chain whose pieces were appended. */
bool tier_append_chain(struct tier *t, struct span uri, struct entry *e, uint64_t chain);
/* A new head for what lies there already; its body stays where it is. */
bool tier_freshen(struct tier *t, struct span uri, struct entry *e);
void tier_tombstone(struct tier *t, const uint64_t hash[2]);

/* Any thread: bytes [at, at + n_bytes) stay what they are until they are unpinned, if the row that
 * names them is still there after pinning. */
void tier_pin(struct tier *t, uint64_t at, uint64_t n_bytes);
void tier_unpin(struct tier *t, uint64_t at, uint64_t n_bytes);

/* purge.c */
struct tier_bans;
struct tier_bans *tier_bans_new(void);
void tier_bans_free(struct tier_bans **held);
/* Is it void, though it can be found still? Any thread. */
bool tier_is_banned(const struct tier *t, const struct record *r);
uint64_t tier_ban(struct tier *t, struct span prefix); /* a number for tier_purge */
void tier_purge(struct tier *t,
                uint64_t ban); /* on the writer's thread: takes them out, for good */

/* scrub.c; on the writer's thread */
void tier_scrub(struct tier *t);
/* All rows that start in [from, to), by place; the caller frees them. */
struct directory_row *tier_rows_in(struct tier *t, uint64_t from, uint64_t to, size_t *n);

/* spool.c */
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
void tier_spool_free(struct tier_spool *s);

/* front.c: work for the writer from a spool. A piece's bytes come from tier_piece_take, and are
 * the writer's then. */
char *tier_piece_take(struct tier *t);
void tier_piece_give(struct tier *t, char *bytes);
void tier_put_piece(struct tier *t, uint64_t chain, uint64_t at, char *bytes, size_t n_bytes);
void tier_put_chain(struct tier *t, struct span uri, struct entry *e, uint64_t chain);
_Atomic uint64_t *tier_removals_of(struct tier *t, struct span uri);
struct tier *tier_choose(struct tiers *tiers, struct span uri, uint64_t body_bytes);

/* rebuild.c; on the writer's thread */
void tier_rebuild(struct tier *t);  /* from the snapshot, or from the records themselves */
void tier_snapshot(struct tier *t); /* at the end */

#endif
