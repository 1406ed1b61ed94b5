/* cache/tier_private.h - what tier_log.c (the file and its writer), tier_rebuild.c (knowing again
 * what is there) and tier_read.c share. */
#ifndef CACHE_TIER_PRIVATE_H
#define CACHE_TIER_PRIVATE_H

#include <pthread.h>

#include "base/offload.h"
#include "cache/directory.h"
#include "cache/record.h"
#include "cache/tier.h"

#define TIER_MAGIC 0x71e57105u
#define TIER_BASE 65536 /* records start here; before it is the header */
#define TIER_BATCH (256 * 1024)
#define TIERS_MAX 32
#define READ_THREADS 4
#define TIER_MARKS 64

struct tier_header { /* at the start of the file; little-endian, 64 bytes */
    char magic[8];
    uint64_t version, bytes, seed, generation, created_s, reserved, sum;
};

struct tier {
    uint32_t magic;
    char *path;
    struct tier_options options;
    int fd, folder;
    uint64_t seed, bytes, region;
    _Atomic uint64_t generation;
    struct directory *directory;
    struct offload *writer;
    _Atomic bool ready;
    bool made; /* just now: there is nothing in it */
    /* --- the writer's own --- */
    uint64_t at, reclaimed, sequence; /* next byte; end of what is free behind it */
    char *batch;
    size_t batch_n;
    struct directory_row *rows; /* of the batch: known when it is written */
    unsigned n_rows, rows_room;
    int64_t pause_until_ms;       /* after a fault */
    uint32_t marks_s[TIER_MARKS]; /* when the writer last was at each share of the file */
    /* --- for all --- */
    _Atomic uint64_t pending_bytes;
    _Atomic unsigned pending_jobs;
    pthread_mutex_t early_lock;
    uint64_t (*early)[2]; /* digests removed before it was ready */
    size_t n_early, early_room;
    _Atomic uint64_t puts, dropped, written, carried, admitted, hits, misses, read_faults,
        write_faults, bad_records;
};

struct tiers {
    struct tier *at[TIERS_MAX];
    unsigned n;
    struct offload *readers;
};

void tier_hash(const struct tier *t, struct span uri, uint64_t digest[2]);
uint32_t tier_tag(struct span vary, const struct part *part);
int64_t tier_wall_ms(void);
uint32_t tier_now_s(void);
void tier_tombstone(struct tier *t, const uint64_t hash[2]); /* on the writer's thread */
/* All of it, or false with errno; EINTR is no end. */
bool disk_read_at(int fd, uint64_t at, char *to, size_t n_bytes);
bool disk_write_at(int fd, uint64_t at, const char *from, size_t n_bytes);

/* tier_rebuild.c; on the writer's thread */
void tier_rebuild(struct tier *t);  /* from the snapshot, or from the records themselves */
void tier_snapshot(struct tier *t); /* at the end */

#endif
