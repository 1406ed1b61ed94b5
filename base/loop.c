/* base/loop.c - the only file that knows libev.
 *
 * A turn of the loop, and where we hang on to it:
 *
 *     prepare    the turn is over: run deferred tasks until there are none, heed loop_stop
 *     release    the stopwatch starts        \
 *     (wait)     epoll_wait and its kin       > libev calls these around the system call
 *     acquire    it stops, the clock ticks   /
 *     check      first callback after the wait: counts the call
 *     callbacks  io, timers, the async watcher that takes in posts; timed lap by lap, the
 *                end of one being the start of the next, which costs one clock reading each
 *
 * libev's io_uring backend does not enter the kernel when completions wait already; such a turn has
 * no release and acquire, so `check` ticks the clock for it.
 *
 * Posts go to `inbox` under a mutex. `queued` of a task changes 0 -> 1 only together with its
 * insertion (a post: under the mutex), and 1 -> 0 after its removal and before fn is called, with
 * an exchange on both sides: whoever finds it already queued knows that fn will run after that and
 * sees what was written before. */
#include "base/loop.h"

#include <dirent.h>
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/readiness.h"
#include "base/uring_repair.h"

#define LOOP_MAGIC 0x100b100bu

#define WATCH_AGAIN_S 0.05

enum { TASK_ROUNDS = 16, OWN_FDS = 8 };
enum { NOWHERE, DEFERRED, INBOX };

_Static_assert(sizeof(ev_io) <= LOOP_IO_BYTES, "raise LOOP_IO_BYTES");
_Static_assert(sizeof(ev_timer) <= LOOP_TIMER_BYTES, "raise LOOP_TIMER_BYTES");
_Static_assert(_Alignof(ev_io) <= 8 && _Alignof(ev_timer) <= 8, "alignment of watchers");
_Static_assert((int)LOOP_READ == (int)EV_READ && (int)LOOP_WRITE == (int)EV_WRITE, "event bits");

struct loop {
    uint32_t magic;
    struct ev_loop *ev;
    const char *backend;
    ev_prepare prepare;
    ev_check check;
    ev_idle idle; /* active: the loop must not block */
    ev_async async;
    ev_timer watch_again;  /* active while there are unwatched ones */
    struct list unwatched; /* loop_io that the system had no room for */
    struct list deferred;
    pthread_mutex_t post_lock; /* inbox, and the tasks in it */
    struct list inbox;
    _Atomic bool stop_wanted;
    bool running, call_open, ticked;
    uint64_t turn_events;
    int64_t lap_ns, released_ns, acquired_ns, released_cpu_ns, cpu_bias_ns;
    int own_fds[OWN_FDS];
    struct readiness readiness;
};

static _Thread_local struct loop *current;

/* ---- the stopwatch ---- */

static void
lap(struct loop *l, enum loop_kind kind)
{
    int64_t now = clock_exact_mono_ns();

    counter_add_to(&l->readiness.kind_ns[kind], (uint64_t)(now - l->lap_ns));
    counter_add_to(&l->readiness.kind_calls[kind], 1);
    l->lap_ns = now;
}

/* Reading the CPU clock is a system call, and half of each of the two readings falls between them:
 * as much as a quick wait costs. What an empty bracket shows is taken off each call. The least of
 * some tries, so that a disturbed one does not make us take off too much. */
static int64_t
cpu_bias_measure(void)
{
    int64_t least = INT64_MAX, from;

    for (unsigned i = 0; i < 64; i++) {
        int64_t took;

        from = clock_thread_cpu_ns();
        took = clock_thread_cpu_ns() - from;
        least = took < least ? took : least;
    }
    return least > 0 ? least : 0;
}

/* The CPU readings are the innermost: they are what the share is made of. */
static void
on_release(struct ev_loop *ev) EV_NOEXCEPT
{
    struct loop *l = ev_userdata(ev);

    /* Just before, libev has told the system what is to be watched. What the system refused is
     * pending by now, and must not wait for something else to happen. */
    if (ev_pending_count(ev) > 0)
        ev_async_send(ev, &l->async);
    l->released_ns = clock_exact_mono_ns();
    if (l->acquired_ns)
        counter_add_to(&l->readiness.dispatch_ns, (uint64_t)(l->released_ns - l->acquired_ns));
    l->released_cpu_ns = clock_thread_cpu_ns();
}

static void
on_acquire(struct ev_loop *ev) EV_NOEXCEPT
{
    struct loop *l = ev_userdata(ev);
    int64_t cpu_ns = clock_thread_cpu_ns();
    int64_t spent_ns = cpu_ns - l->released_cpu_ns - l->cpu_bias_ns;

    clock_tick();
    l->ticked = true;
    l->acquired_ns = l->lap_ns = clock_tick_mono_ns();
    counter_add_to(&l->readiness.cpu_ns, spent_ns > 0 ? (uint64_t)spent_ns : 0);
    counter_add_to(&l->readiness.wall_ns, (uint64_t)(l->acquired_ns - l->released_ns));
    atomic_store_explicit(&l->readiness.thread_cpu_ns, (uint64_t)cpu_ns, memory_order_relaxed);
}

static void
call_opened(struct loop *l)
{
    counter_add_to(&l->readiness.calls, 1);
    l->call_open = true;
    l->turn_events = 0;
    if (!l->ticked) {
        clock_tick();
        l->lap_ns = clock_tick_mono_ns();
    }
    l->ticked = false;
}

static void
call_closed(struct loop *l)
{
    if (!l->call_open)
        return;
    l->call_open = false;
    counter_add_to(&l->readiness.events, l->turn_events);
    counter_add_to(&l->readiness.events_histogram[readiness_bucket(l->turn_events)], 1);
}

/* ---- tasks ---- */

void
loop_task_init(struct loop_task *t, loop_fn *fn, void *owner)
{
    list_init(&t->link);
    t->fn = fn;
    t->owner = owner;
    atomic_init(&t->queued, 0);
    t->where = NOWHERE;
}

static void
task_take(struct loop_task *t)
{
    list_remove(&t->link);
    t->where = NOWHERE;
    atomic_exchange_explicit(&t->queued, 0, memory_order_acq_rel);
}

static bool
task_claim(struct loop_task *t, int where)
{
    if (atomic_exchange_explicit(&t->queued, 1, memory_order_acq_rel))
        return false;
    t->where = where;
    return true;
}

void
loop_defer(struct loop *l, struct loop_task *t)
{
    if (task_claim(t, DEFERRED))
        list_push_back(&l->deferred, &t->link);
}

void
loop_post(struct loop *l, struct loop_task *t)
{
    bool first = false;

    pthread_mutex_lock(&l->post_lock);
    if (task_claim(t, INBOX)) {
        first = list_empty(&l->inbox);
        list_push_back(&l->inbox, &t->link);
    }
    /* Under the lock: once the task can run, its owner may end this loop. */
    if (first)
        ev_async_send(l->ev, &l->async);
    pthread_mutex_unlock(&l->post_lock);
}

void
loop_wake(struct loop *l, struct loop_task *t)
{
    if (current == l)
        loop_defer(l, t);
    else
        loop_post(l, t);
}

/* The lock is needed for a task in the inbox, and to wait for a post that is half done. */
void
loop_task_cancel(struct loop *l, struct loop_task *t)
{
    if (atomic_load_explicit(&t->queued, memory_order_acquire) == 0)
        return;
    pthread_mutex_lock(&l->post_lock);
    if (atomic_load_explicit(&t->queued, memory_order_acquire))
        task_take(t);
    pthread_mutex_unlock(&l->post_lock);
}

/* Posts join the deferred tasks; `prepare` runs them before the next wait. */
static void
inbox_empty(struct loop *l)
{
    pthread_mutex_lock(&l->post_lock);
    list_move_all(&l->deferred, &l->inbox);
    pthread_mutex_unlock(&l->post_lock);
}

static void
on_async(struct ev_loop *ev, ev_async *w, int revents)
{
    inbox_empty(w->data);
}

static void
tasks_run_round(struct loop *l)
{
    struct list round;

    list_init(&round);
    list_move_all(&round, &l->deferred);
    while (!list_empty(&round)) {
        struct loop_task *t = LIST_OWNER(round.next, struct loop_task, link);

        task_take(t);
        t->fn(t->owner); /* t may be gone */
        lap(l, LOOP_TASK);
    }
}

/* Tasks that keep deferring each other must not keep the sockets waiting: after some rounds the
 * rest runs in the next turn, which then does not block. */
static void
tasks_run(struct loop *l)
{
    for (unsigned round = 0; round < TASK_ROUNDS && !list_empty(&l->deferred); round++)
        tasks_run_round(l);
    if (!list_empty(&l->deferred))
        ev_idle_start(l->ev, &l->idle);
    else if (ev_is_active(&l->idle))
        ev_idle_stop(l->ev, &l->idle);
}

static void
tasks_forget(struct list *tasks)
{
    while (!list_empty(tasks))
        task_take(LIST_OWNER(tasks->next, struct loop_task, link));
}

/* ---- the turn ---- */

static void
on_prepare(struct ev_loop *ev, ev_prepare *w, int revents)
{
    struct loop *l = w->data;

    tasks_run(l);
    call_closed(l);
    if (atomic_exchange_explicit(&l->stop_wanted, false, memory_order_acq_rel))
        ev_break(ev, EVBREAK_ALL);
}

static void
on_check(struct ev_loop *ev, ev_check *w, int revents)
{
    call_opened(w->data);
}

static void
on_idle(struct ev_loop *ev, ev_idle *w, int revents)
{
}

/* ---- making a loop ---- */

static const struct backend {
    enum loop_backend wanted;
    unsigned flag;
    const char *name;
} backends[] = {
    {LOOP_EPOLL, EVBACKEND_EPOLL, "epoll"},
    {LOOP_POLL, EVBACKEND_POLL, "poll"},
    {LOOP_SELECT, EVBACKEND_SELECT, "select"},
    {LOOP_IO_URING, EVBACKEND_IOURING, "io_uring"},
};

enum { BACKENDS = sizeof backends / sizeof backends[0] };

static struct ev_loop *
backend_try(struct loop *l, enum loop_backend wanted)
{
    const struct backend *b = &backends[0];
    struct ev_loop *ev = NULL;

    for (unsigned i = 0; i < BACKENDS; i++) {
        if (backends[i].wanted == wanted)
            b = &backends[i];
    }
    if ((ev_supported_backends() & b->flag) && (wanted != LOOP_IO_URING || uring_repair_start()))
        ev = ev_loop_new(b->flag | EVFLAG_NOENV | EVFLAG_NOSIGMASK | EVFLAG_NOTIMERFD);
    if (ev == NULL || ev_backend(ev) != b->flag) {
        log_event(LOG_WARN, "event_backend %s is not available here", b->name);
        if (ev)
            ev_loop_destroy(ev);
        return NULL;
    }
    l->backend = b->name;
    return ev;
}

/* poll needs nothing from the system: the last resort. */
static struct ev_loop *
backend_make(struct loop *l, enum loop_backend wanted)
{
    struct ev_loop *ev = backend_try(l, wanted);

    if (ev == NULL && wanted != LOOP_AUTO && wanted != LOOP_EPOLL)
        ev = backend_try(l, LOOP_EPOLL);
    if (ev == NULL && wanted != LOOP_POLL)
        ev = backend_try(l, LOOP_POLL);
    CHECK(ev != NULL);
    return ev;
}

static bool
is_loop_fd(const char *fd_path)
{
    char to[64];
    ssize_t n = readlink(fd_path, to, sizeof to - 1);

    if (n <= 0)
        return false;
    to[n] = '\0';
    return strcmp(to, "anon_inode:[eventpoll]") == 0 || strcmp(to, "anon_inode:[eventfd]") == 0 ||
           strcmp(to, "anon_inode:[io_uring]") == 0 || strcmp(to, "anon_inode:[timerfd]") == 0;
}

/* libev does not tell which descriptors it opened, but the census must know them: they are the ones
 * of these types that nobody has counted yet. One thread at a time, so that none is taken twice. */
static void
own_fds_count(struct loop *l)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    char path[32 + 256] = "/proc/self/fd/";
    size_t at = strlen(path);
    unsigned n = 0;
    struct dirent *e;
    DIR *dir;

    pthread_mutex_lock(&one_at_a_time);
    dir = opendir(path);
    while (dir && n < OWN_FDS && (e = readdir(dir)) != NULL) {
        int fd = atoi(e->d_name);

        strcpy(path + at, e->d_name);
        if (e->d_name[0] == '.' || fds_has(fd) || !is_loop_fd(path))
            continue;
        fds_adopt(fd, FD_OTHER);
        fds_note(fd, span_str(l->backend));
        l->own_fds[n++] = fd;
    }
    if (dir)
        closedir(dir);
    pthread_mutex_unlock(&one_at_a_time);
}

static void
own_fds_forget(struct loop *l)
{
    for (unsigned i = 0; i < OWN_FDS && l->own_fds[i] >= 0; i++)
        fds_forget(l->own_fds[i]);
}

/* libev calls this when a system call it depends on fails, and then repeats the call. */
static void
on_syserr(const char *what) EV_NOEXCEPT
{
    int error = errno;

    log_event_every(1000, LOG_ERROR, "%s: %s", what, strerror(error));
    if (error != ENOMEM && error != EAGAIN && error != EBUSY && error != ENOBUFS)
        check_failed(__FILE__, __LINE__, what);
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

static void on_watch_again(struct ev_loop *ev, ev_timer *w, int revents);

static void
watchers_start(struct loop *l)
{
    ev_prepare_init(&l->prepare, on_prepare);
    ev_set_priority(&l->prepare, EV_MINPRI);
    ev_check_init(&l->check, on_check);
    ev_set_priority(&l->check, EV_MAXPRI);
    ev_async_init(&l->async, on_async);
    ev_idle_init(&l->idle, on_idle);
    ev_timer_init(&l->watch_again, on_watch_again, 0, 0);
    l->prepare.data = l->check.data = l->async.data = l->watch_again.data = l;
    ev_prepare_start(l->ev, &l->prepare);
    ev_check_start(l->ev, &l->check);
    ev_async_start(l->ev, &l->async);
}

struct loop *
loop_new(enum loop_backend wanted)
{
    struct loop *l = mem_zalloc(sizeof *l);

    l->magic = LOOP_MAGIC;
    list_init(&l->unwatched);
    list_init(&l->deferred);
    list_init(&l->inbox);
    pthread_mutex_init(&l->post_lock, NULL);
    memset(l->own_fds, -1, sizeof l->own_fds);
    ev_set_syserr_cb(on_syserr);
    l->ev = backend_make(l, wanted);
    ev_set_userdata(l->ev, l);
    ev_set_loop_release_cb(l->ev, on_release, on_acquire);
    watchers_start(l);
    own_fds_count(l);
    return l;
}

void
loop_free(struct loop *l)
{
    CHECK_OBJ(l, LOOP_MAGIC);
    CHECK(!l->running);
    inbox_empty(l);
    tasks_forget(&l->deferred);
    ev_prepare_stop(l->ev, &l->prepare);
    ev_check_stop(l->ev, &l->check);
    ev_idle_stop(l->ev, &l->idle);
    ev_async_stop(l->ev, &l->async);
    ev_timer_stop(l->ev, &l->watch_again);
    own_fds_forget(l);
    ev_loop_destroy(l->ev);
    pthread_mutex_destroy(&l->post_lock);
    FREE_OBJ(l);
}

void
loop_run(struct loop *l)
{
    struct loop *outer = current;

    CHECK_OBJ(l, LOOP_MAGIC);
    CHECK(!l->running);
    current = l;
    l->running = true;
    clock_tick();
    l->lap_ns = clock_tick_mono_ns();
    l->acquired_ns = 0; /* what was between two runs is no dispatching */
    if (atomic_load_explicit(&l->readiness.started_ns, memory_order_relaxed) == 0) {
        l->cpu_bias_ns = cpu_bias_measure();
        atomic_store_explicit(&l->readiness.started_ns, l->lap_ns, memory_order_relaxed);
    }
    ev_now_update(l->ev);
    ev_run(l->ev, 0);
    l->running = false;
    current = outer;
}

void
loop_stop(struct loop *l)
{
    pthread_mutex_lock(&l->post_lock); /* else the loop could be gone before it is woken */
    atomic_store_explicit(&l->stop_wanted, true, memory_order_release);
    ev_async_send(l->ev, &l->async);
    pthread_mutex_unlock(&l->post_lock);
}

struct loop *
loop_current(void)
{
    return current;
}

const char *
loop_backend_name(const struct loop *l)
{
    return l->backend;
}

bool
loop_backend_parse(const char *word, enum loop_backend *out)
{
    if (strcmp(word, "auto") == 0) {
        *out = LOOP_AUTO;
        return true;
    }
    for (unsigned i = 0; i < BACKENDS; i++) {
        if (strcmp(word, backends[i].name) == 0) {
            *out = backends[i].wanted;
            return true;
        }
    }
    return false;
}

struct readiness *
loop_readiness(struct loop *l)
{
    return &l->readiness;
}

/* ---- descriptors ---- */

static void
watched_add(struct loop *l, int64_t delta)
{
    int64_t n = atomic_load_explicit(&l->readiness.watched, memory_order_relaxed);

    atomic_store_explicit(&l->readiness.watched, n + delta, memory_order_relaxed);
}

/* A watcher that libev stopped though its descriptor is open: epoll had no memory for it, or it
 * would be one over fs.epoll.max_user_watches. Nobody else would ever look at that descriptor
 * again, were it a client's or the one we listen on, so it is tried again until there is room. */
static void
watch_later(struct loop_io *io)
{
    struct loop *l = io->loop;

    log_event_every(5000, LOG_ERROR,
                    "%s: no room to watch descriptor %d; tried again until there is", l->backend,
                    io->fd);
    list_push_back(&l->unwatched, &io->unwatched);
    if (!ev_is_active(&l->watch_again)) {
        ev_timer_set(&l->watch_again, WATCH_AGAIN_S, 0);
        ev_timer_start(l->ev, &l->watch_again);
    }
}

static void
on_watch_again(struct ev_loop *ev, ev_timer *w, int revents)
{
    struct loop *l = w->data;

    while (!list_empty(&l->unwatched)) {
        struct loop_io *io = LIST_OWNER(l->unwatched.next, struct loop_io, unwatched);

        list_remove(&io->unwatched);
        ev_io_start(ev, (ev_io *)io->ev);
        counter_add_to(&l->readiness.interest_changes, 1);
    }
}

/* libev reports EV_ERROR together with all events. Of an open descriptor they would be a lie: a
 * connection still being made would look made. Of a closed one the owner finds out by reading or
 * writing. */
static void
on_io(struct ev_loop *ev, ev_io *w, int revents)
{
    struct loop_io *io = w->data;
    struct loop *l = io->loop;
    enum loop_kind kind = io->kind;
    int events = revents & io->wanted;

    if (revents & EV_ERROR && !ev_is_active(w) && io->wanted) {
        if (fcntl(io->fd, F_GETFD) >= 0) {
            watch_later(io);
            return;
        }
        io->wanted = 0;
        watched_add(l, -1);
    }
    if (events == 0)
        return;
    l->turn_events++;
    io->fn(io->owner, events); /* io may be gone */
    lap(l, kind);
}

void
loop_io_init(struct loop_io *io, struct loop *l, int fd, enum loop_kind kind, loop_io_fn *fn,
             void *owner)
{
    ev_io *w = (ev_io *)io->ev;

    io->loop = l;
    io->fn = fn;
    io->owner = owner;
    io->fd = fd;
    io->kind = (uint8_t)kind;
    io->wanted = 0;
    list_init(&io->unwatched);
    ev_io_init(w, on_io, fd, 0);
    w->data = io;
}

/* ev_io_modify, not ev_io_set: the latter tells libev that the descriptor may be another file than
 * before, and costs an epoll_ctl each time. loop_io_init has said that once. An interest that is
 * back to what it was by the end of the turn costs no system call at all. */
static void
io_change(struct loop_io *io, int events)
{
    struct loop *l = io->loop;
    ev_io *w = (ev_io *)io->ev;

    if (io->wanted) {
        ev_io_stop(l->ev, w);
        list_remove(&io->unwatched);
    }
    ev_io_modify(w, events);
    if (events)
        ev_io_start(l->ev, w);
    watched_add(l, (events != 0) - (io->wanted != 0));
    counter_add_to(&l->readiness.interest_changes, 1);
    io->wanted = (uint8_t)events;
}

void
loop_io_want(struct loop_io *io, int events)
{
    if (io->wanted != events)
        io_change(io, events);
}

void
loop_io_stop(struct loop_io *io)
{
    loop_io_want(io, 0);
}

void
loop_io_kind(struct loop_io *io, enum loop_kind kind)
{
    io->kind = (uint8_t)kind;
}

/* ---- timers ---- */

/* libev counts from its own reading of the same clock, taken a little after ours; the slack makes
 * sure that on expiry our reading has reached the deadline too. */
static void
timer_arm(struct loop_timer *t)
{
    static const double slack_s = 0.0002;
    int64_t left_ns = t->deadline_ms * 1000000 - clock_mono_ns();
    ev_timer *w = (ev_timer *)t->ev;

    ev_timer_stop(t->loop->ev, w);
    ev_timer_set(w, (left_ns > 0 ? (double)left_ns / 1e9 : 0) + slack_s, 0);
    ev_timer_start(t->loop->ev, w);
    t->armed_ms = t->deadline_ms;
}

static void
on_timer(struct ev_loop *ev, ev_timer *w, int revents)
{
    struct loop_timer *t = w->data;
    struct loop *l = t->loop;

    t->armed_ms = 0;
    if (t->deadline_ms == 0)
        return;
    if (t->deadline_ms > clock_mono_ms()) {
        timer_arm(t);
        return;
    }
    t->deadline_ms = 0;
    t->fn(t->owner); /* t may be gone */
    lap(l, LOOP_TIMER);
}

void
loop_timer_init(struct loop_timer *t, struct loop *l, loop_fn *fn, void *owner)
{
    ev_timer *w = (ev_timer *)t->ev;

    t->loop = l;
    t->fn = fn;
    t->owner = owner;
    t->deadline_ms = t->armed_ms = 0;
    ev_timer_init(w, on_timer, 0, 0);
    w->data = t;
}

/* Between runs the readings of both clocks are those of the last turn. */
static void
clocks_refresh(struct loop *l)
{
    if (l->running)
        return;
    clock_tick();
    ev_now_update(l->ev);
}

void
loop_timer_set(struct loop_timer *t, int64_t after_ms)
{
    static const int64_t most_ms = INT64_C(1000) * 86400 * 36500; /* a century: no overflow */
    int64_t at_ms;

    clocks_refresh(t->loop);
    after_ms = after_ms < 0 ? 0 : after_ms > most_ms ? most_ms : after_ms;
    at_ms = clock_mono_ms() + after_ms;
    t->deadline_ms = at_ms > 0 ? at_ms : 1;
    if (t->armed_ms == 0 || t->deadline_ms < t->armed_ms)
        timer_arm(t);
}

void
loop_timer_stop(struct loop_timer *t)
{
    t->deadline_ms = 0;
}

void
loop_timer_close(struct loop_timer *t)
{
    ev_timer_stop(t->loop->ev, (ev_timer *)t->ev);
    t->deadline_ms = t->armed_ms = 0;
}
