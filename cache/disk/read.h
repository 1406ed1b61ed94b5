/* cache/disk/read.h - one read, for fetch.c (its bytes), stream.c (its body) and reader.c (finding
 * the record).
 *
 * A read belongs to its loop. Only its job runs elsewhere, which is chosen before it is submitted
 * and looks at nothing but what is to be read and where to: from tier_by_thread until the job is
 * back those are the job's, and the rest stays the loop's, that may end the read (OVER) meanwhile.
 */
#ifndef CACHE_DISK_READ_H
#define CACHE_DISK_READ_H

#include "cache/chunk.h"
#include "cache/disk/disk.h"

#define ROWS_MAX 16

enum phase { SEARCHING, FOUND, NOTHING, STREAMING, OVER };
enum awaited { AWAITS_BYTES, AWAITS_HEAD, AWAITS_CHECK }; /* while STREAMING */

struct candidate {
    struct tier *tier;
    struct directory_row row;
};

/* The bytes of the body that lie in one record: all of them, or a piece of a chain. */
struct extent {
    struct directory_row row;
    struct record record; /* with the sums; borrows from head, or from the read's own */
    char *head;
    uint64_t from, end; /* in the body; end 0: none is open */
    uint64_t at;        /* of `from` in the file */
};

struct tier_read {
    struct list link;
    struct tier_reader *reader;
    enum phase phase;
    /* the question; borrowed until the outcome is there */
    struct span uri;
    const struct request_head *request;
    struct tier_wish wish;
    struct loop_task *task; /* NULL: nobody asks any more */
    struct candidate candidates[ROWS_MAX];
    unsigned n, i;
    /* the bytes */
    struct offload_job job;
    bool in_flight, told, again_read, saw_part, parts_pass;
    struct chunk *chunk;      /* whose bytes: small records are whole in it */
    size_t room, wanted, got; /* of it */
    uint64_t at;              /* in the file */
    int error;
    struct loop_task again, room_task; /* goes on; there is room in the body */
    /* the outcome */
    struct record record; /* borrows from head, or from chunk */
    size_t head_bytes;
    char *head;
    struct entry *entry;
    bool sends; /* the body leaves by sendfile */
    /* the body */
    enum awaited awaited;
    struct extent extent;
    uint64_t length, done,
        until;          /* of the body; how much was passed on; what is known to be wanted */
    uint64_t check_end; /* AWAITS_CHECK: of what is judged */
};

static inline struct tier *
tier_of(const struct tier_read *r)
{
    return r->candidates[r->i].tier;
}

/* fetch.c */
/* true: n_bytes from `at` on are in the chunk. false: they come later. */
bool tier_fetch(struct tier_read *r, uint64_t at, size_t n_bytes);
/* work runs on a pool's thread; then the read goes on. */
void tier_by_thread(struct tier_read *r, void (*work)(struct offload_job *job));
void tier_forget_row(struct tier_read *r, const struct directory_row *row, const char *why);

/* stream.c */
bool tier_chain_is_there(const struct tier_read *r, const struct record *head);
void tier_stream_start(struct tier_read *r);
void tier_stream_go_on(struct tier_read *r); /* what it awaited has come */
void tier_stream(struct tier_read *r);

#endif
