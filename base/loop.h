/* base/loop.h - readiness, timers, deferred work and posts between threads. The only module that
 * knows libev.
 *
 * One loop per thread. A loop_io, loop_timer or loop_task lives inside its owner's struct; the
 * owner stops it before it is freed. Callbacks come from loop_run of the owning thread, never from
 * inside another call here. All functions but loop_post, loop_wake and loop_stop belong to the
 * loop's thread. */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct loop;
struct readiness;

enum loop_backend { LOOP_AUTO, LOOP_EPOLL, LOOP_POLL, LOOP_SELECT, LOOP_IO_URING };
enum loop_kind {
    LOOP_LISTEN,
    LOOP_CLIENT,
    LOOP_SERVER,
    LOOP_TUNNEL,
    LOOP_DNS,
    LOOP_DISK,
    LOOP_CHILD,
    LOOP_TIMER,
    LOOP_TASK,
    LOOP_KINDS
};
enum { LOOP_READ = 1, LOOP_WRITE = 2 };

#define LOOP_IO_BYTES 48
#define LOOP_TIMER_BYTES 48

typedef void loop_io_fn(void *owner, int events);
typedef void loop_fn(void *owner);

struct loop_io {
    struct loop *loop;
    loop_io_fn *fn;
    void *owner;
    int fd;
    uint8_t kind, wanted;
    struct list unwatched; /* loop.c: wanted, but the system has no room for it yet */
    alignas(8) unsigned char ev[LOOP_IO_BYTES];
};

/* Lazy: moving the deadline later costs one store; the timer re-arms itself when it fires early. */
struct loop_timer {
    struct loop *loop;
    loop_fn *fn;
    void *owner;
    int64_t deadline_ms; /* monotonic; 0: stopped */
    int64_t armed_ms;
    alignas(8) unsigned char ev[LOOP_TIMER_BYTES];
};

/* Work for the end of this turn (loop_defer) or for another thread's loop (loop_post). */
struct loop_task {
    struct list link;
    loop_fn *fn;
    void *owner;
    _Atomic int queued; /* 0, or queued once: asking again while queued changes nothing */
    int where;          /* loop.c: which queue holds it */
};

struct loop *
loop_new(enum loop_backend wanted); /* falls back to epoll with one log line; never NULL */
void loop_free(struct loop *l);
void loop_run(struct loop *l);                       /* until loop_stop */
void loop_stop(struct loop *l);                      /* from any thread, or a callback */
struct loop *loop_current(void);                     /* of this thread, NULL outside loop_run */
const char *loop_backend_name(const struct loop *l); /* "epoll", "poll", "select", "io_uring" */
bool loop_backend_parse(const char *word, enum loop_backend *out);
struct readiness *
loop_readiness(struct loop *l); /* section of the measurement; see base/readiness.h */

void loop_io_init(struct loop_io *io, struct loop *l, int fd, enum loop_kind kind, loop_io_fn *fn,
                  void *owner);
void loop_io_want(struct loop_io *io,
                  int events);         /* LOOP_READ | LOOP_WRITE, 0 stops; no-op when unchanged */
void loop_io_stop(struct loop_io *io); /* = want 0; call before closing the fd */
void loop_io_kind(struct loop_io *io, enum loop_kind kind);

void loop_timer_init(struct loop_timer *t, struct loop *l, loop_fn *fn, void *owner);
void loop_timer_set(struct loop_timer *t, int64_t after_ms);
void loop_timer_stop(struct loop_timer *t);  /* cheap: no callback until set again */
void loop_timer_close(struct loop_timer *t); /* before the owner is freed */

void loop_task_init(struct loop_task *t, loop_fn *fn, void *owner);
void loop_defer(struct loop *l,
                struct loop_task *t); /* own thread: runs before the loop next waits */
void loop_post(struct loop *l, struct loop_task *t); /* any thread: runs on l's thread soon */
void loop_wake(struct loop *l, struct loop_task *t); /* loop_defer when l is ours, else loop_post */
void loop_task_cancel(struct loop *l,
                      struct loop_task *t); /* own thread: will not run after this */

#endif
