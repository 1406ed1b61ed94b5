/* cache/body.h - an append-only body with one writer (the fill) and any number of readers, on any
 * thread.
 *
 * FILLING -> COMPLETE | FAILED. The bytes are a linked list of counted chunks. KEEP: the body holds
 * all of them. PASS: it holds only the tail, so what every reader has passed is freed; a reader
 * that opens later than that can't be had. KEEP may turn into PASS, never back.
 *
 * Readers read published bytes without a lock. The lock guards the list of readers and the wish to
 * be woken: whoever waits has registered its task, which is woken (loop_wake on its own loop) at
 * most once per wait. Wakers are called under the body's lock; loop_wake takes no lock of ours.
 * Back-pressure: body_wants() says whether the fill should read more: it may be BODY_WINDOW bytes
 * ahead of the fastest reader. When it said no, the fill's task is woken once a reader's progress
 * makes room.
 *
 * Readers of unlike speed. In KEEP the slow ones cost nothing: what they have yet to read is held
 * anyway. In PASS a slow one makes the body hold what lies between it and the fastest, and there is
 * no right way to hold more and more, nor to make the others as slow as it is, nor to leave
 * something out for it. So it may be BODY_LAG behind, or as far as the body reached when it turned
 * from KEEP (that much was held before); that bounds the memory. Beyond it is outrun: its bytes are
 * let go, and its owner gets the rest by a fetch of its own, from where it is. Whose owner can do
 * this (can_resume) is outrun at once, so that each goes on at its own speed. For one that cannot
 * the fill stops, since the only other way is to cut its client off; but for BODY_LAGGARD_MS only:
 * if it has not made room by then (BODY_WINDOW / 2 bytes) it is outrun too. So nobody stands still
 * for longer than that for another's sake, and who reads some 40 KB a second is never cut off.
 *
 * A reader holds a reference on the body. */
#ifndef CACHE_BODY_H
#define CACHE_BODY_H

#include <sys/uio.h>

#include "base/loop.h"
#include "http/fault.h"
#include "http/source.h"

#define BODY_WINDOW (256 * 1024)
#define BODY_LAG (1024 * 1024)
#define BODY_LAGGARD_MS 3000
#define BODY_CHUNK (64 * 1024)

struct body;
struct chunk;
enum body_mode { BODY_KEEP, BODY_PASS };
enum body_state { BODY_FILLING, BODY_COMPLETE, BODY_FAILED };

/* Bytes of a body that lie in a file and stay there as they are until release is called, once, on
 * any thread. A body with such runs passes, and is read by those who know what to do with them. */
struct body_file {
    int fd;
    uint64_t at; /* in the file */
    uint64_t n_bytes;
    void *owner;
    void (*release)(const struct body_file *f);
};

struct body_reader { /* inside its owner; zero it before open */
    struct list link;
    struct body *body;
    struct chunk *chunk;
    size_t chunk_at;     /* offset of the next byte in chunk */
    _Atomic uint64_t at; /* offset of the next byte in the body */
    struct loop *loop;
    struct loop_task *task;
    bool waiting,
        registered; /* registered: opened while FILLING, so it holds its chunk and may wait */
    bool
        background; /* set before opening: keeps up by itself, and nobody goes on or stops for it */
    bool can_resume; /* set before opening: its owner can get the rest by itself */
    _Atomic bool outrun;
    int file_fd; /* of the run peek lent, when its base is NULL */
    uint64_t file_at;
};

/* ---- the writer ---- */
/* expected: length when known, else UINT64_MAX; sizes the first chunk (one exact chunk up to 64
 * KB). fill/fill_loop: woken when there is room again. */
struct body *body_new(enum body_mode mode, uint64_t expected, struct loop *fill_loop,
                      struct loop_task *fill);
void body_ref(struct body *b);
void body_unref(struct body **held);
char *body_room(struct body *b, size_t *n_bytes); /* writable room (>= 1 byte) at the end; allocates
                                                     a chunk when the last is full */
void body_commit(struct body *b,
                 size_t n_bytes); /* publishes what was written into the room, wakes readers */
void body_append(struct body *b, struct span bytes); /* copies and publishes */
/* The first n_bytes of the body, behind `skip` others in a chunk nobody else knows yet. */
void body_append_chunk(struct body *b, struct chunk **held, size_t skip, size_t n_bytes);
void body_append_file(struct body *b, const struct body_file *f); /* f: copied; PASS */
bool body_wants(struct body *b); /* false: stop reading the origin, the task will be woken */
/* Called when somebody has waited for BODY_LAGGARD_MS: if it is for room, those who do not make any
 * are outrun, and the fill's task is woken. Any thread. */
void body_outrun_laggards(struct body *b);
void body_pass(struct body *b); /* KEEP -> PASS: too large to keep */
void
body_complete(struct body *b,
              struct span trailer); /* trailer: raw "Name: value\r\n" lines, copied; may be empty */
void body_fail(struct body *b, enum fault why);
/* A complete body of what `b` has published so far, which goes on or fails by itself; KEEP. */
struct body *body_salvage(const struct body *b);
/* Appends n_bytes of `from`, which is complete, from its offset `at` on. */
void body_append_of(struct body *b, const struct body *from, uint64_t at, uint64_t n_bytes);
/* n_bytes of what is published, from `at` on; KEEP. Any thread, while the body is held. */
void body_copy_out(const struct body *b, uint64_t at, char *to, size_t n_bytes);
void body_detach_fill(struct body *b); /* the fill goes away: no wake of its task after this */

/* ---- everybody ---- */
enum body_state body_state(const struct body *b);
enum body_mode body_mode(const struct body *b);
uint64_t body_published(const struct body *b); /* bytes so far; the length when COMPLETE */
size_t body_bytes_held(const struct body *b);  /* memory, overhead included, for accounting */
unsigned body_readers(struct body *b); /* those that opened while FILLING and are still open */
enum fault body_fault(const struct body *b);
/* For how long nothing has come, while the fill had room and had not ended; else 0. */
int64_t body_quiet_ms(const struct body *b);
/* Are these its bytes from `at` on, as far as it still holds them? */
bool body_matches(struct body *b, uint64_t at, struct span bytes);
struct span body_trailer(const struct body *b); /* when COMPLETE */

/* ---- a reader ---- */
/* From offset `from`: only in KEEP mode, or in PASS mode as long as nothing was dropped. false: too
 * late. task is queued on loop when, after BODY_WAIT, something changes. */
bool body_reader_open(struct body_reader *r, struct body *b, uint64_t from, struct loop *loop,
                      struct loop_task *task);
enum source_state body_reader_peek(struct body_reader *r, struct iovec *runs, int max,
                                   int *n); /* DATA, WAIT (registered), END, FAULT. One run with
                                               a base of NULL lies in file_fd at file_at */
void body_reader_consume(struct body_reader *r, size_t n_bytes);
uint64_t body_reader_at(const struct body_reader *r); /* offset of the next byte */
/* Its bytes are held no longer than until it closes, which it must do at once. Its task was woken.
 */
bool body_reader_is_outrun(const struct body_reader *r);
bool body_reader_is_at_end(const struct body_reader *r); /* it has all that was published */
void body_reader_close(
    struct body_reader *r); /* no wake after this (the caller cancels its task itself) */

#endif
