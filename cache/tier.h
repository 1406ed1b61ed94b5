/* cache/tier.h - a larger and slower place behind the store in memory: a disk.
 *
 * Each tier is one file in a folder of its own (cache/disk/front.c). Nothing here blocks a loop:
 * what is put is written by the tier's own thread, and what is read comes from the page cache at
 * once or from a pool of threads. A tier that fails costs what it holds, never the proxy: faults
 * are counted and told once in a while. All functions but tiers_new, tiers_add and tiers_close are
 * for any thread. */
#ifndef CACHE_TIER_H
#define CACHE_TIER_H

#include "cache/entry.h"

struct tiers; /* all of a process */

struct tier_options {
    const char *path;              /* a folder */
    uint64_t bytes;                /* of its file */
    uint64_t min_bytes, max_bytes; /* of a body; max_bytes 0: whatever fits */
    bool read_only;                /* nothing is put there */
    bool scan_resistant;           /* S3-FIFO on two rings instead of LRU on one */
};

struct tier_stats {
    const char *path, *policy;
    uint64_t bytes, objects, live_bytes, directory_bytes;
    uint64_t ghost_bytes; /* of memory, of what is remembered as dropped */
    uint64_t puts, dropped, written, carried, hits, misses, read_faults, write_faults, bad_records;
    uint64_t admitted; /* bytes of what was put, without what was carried forward */
    uint64_t checked;  /* bytes read and judged in idle time */
    uint64_t dead_bytes,
        written_bytes;    /* of the file: what nobody finds any more, of what is in use */
    int64_t oldest_age_s; /* since the least lately used was; -1: there is none */
    bool ready;           /* what was there at the start is known again */
};

struct tiers *tiers_new(void);
/* false: *why says why not; the others go on. */
bool tiers_add(struct tiers *t, const struct tier_options *o, char *why, size_t why_bytes);
/* Writes what is left, for five seconds and no longer, and a snapshot of what lies where. No reader
 * is open any more, and nobody asks for anything. */
void tiers_close(struct tiers **held);
unsigned tiers_count(const struct tiers *t);
void tiers_stats(struct tiers *t, unsigned i, struct tier_stats *out);
void tiers_sync(struct tiers *t); /* what was put before is written; for tests and the end */

/* e is complete, and stays as it is. */
void tiers_put(struct tiers *t, struct span uri, struct entry *e);
/* It has a new head; a body that lies there already is not written again. */
void tiers_freshen(struct tiers *t, struct span uri, struct entry *e);
/* It leaves the memory, where it was asked for: what is on disk of it counts as used, and if it is
 * no longer there it is put again. */
void tiers_used(struct tiers *t, struct span uri, struct entry *e);
/* RFC 9111 section 4.4: all variants. false: there was nothing, as far as can be told. */
bool tiers_remove(struct tiers *t, struct span uri);
/* Maybe: only reading tells, and before it is ready nothing can be ruled out. */
bool tiers_have(struct tiers *t, struct span uri);
void tiers_purge_prefix(struct tiers *t, struct span prefix);
void tiers_clear(struct tiers *t);
/* Once a second, from anywhere: idle disks check a stretch of what they hold. */
void tiers_idle(struct tiers *t);

/* ---- reading; each reader belongs to one loop ---- */
/* loaded: a body that is kept has come whole. */
struct tier_reader *tier_reader_new(struct tiers *t, struct loop *l,
                                    void (*loaded)(void *owner, struct entry *e), void *owner);
void tier_reader_free(struct tier_reader **held); /* ends all of its reads */

struct tier_read;
struct tier_wish {
    uint64_t keep_bytes; /* bodies up to it are kept in memory, others pass, and so do those that
                            are sent */
    uint64_t from, to;   /* a body that passes starts at `from` (at the block before it), as a part;
                            to:   the last byte known to be wanted, UINT64_MAX: all */
    bool parts;          /* parts will do as well; they are kept */
    bool may_send;       /* the reader takes runs in files (cache/body.h): chains are sent */
};
/* Looks for what this request selects. task is queued when the outcome is there, unless it is there
 * at once. uri and request must last until then. NULL: there is nothing. */
struct tier_read *tier_read_start(struct tier_reader *r, struct span uri,
                                  const struct request_head *request, const struct tier_wish *wish,
                                  struct loop_task *task);
bool tier_read_is_done(const struct tier_read *r);
/* With a reference; NULL: none fits. A body that passes wants its reader opened before release. */
struct entry *tier_read_entry(struct tier_read *r);
void tier_read_release(struct tier_read **held); /* the body comes by itself from now on */
void tier_read_cancel(struct tier_read **held);

/* ---- bodies that are not kept in memory, written as they come ---- */
/* e's body has all its bytes still. Nobody waits for the disk: when it is too slow the rest is left
 * out, and the object. false: no tier wants it. */
bool tier_spool_start(struct tier_reader *r, struct span uri, struct entry *e);

#endif
