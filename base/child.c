/* base/child.c - one child process on a loop.
 *
 * Its end has one path: death_look finds that the process is gone, reads what it said last, and
 * tells the owner. Everything else that can go wrong (a closed stdout, a write that fails, a line
 * without end, a deadline that passed) only kills it and lets that path run. */
#include "base/child.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/child_lines.h"
#include "base/child_process.h"
#include "base/clock.h"
#include "base/log.h"

#define CHILD_MAGIC 0xc411d001u

enum {
    READ_BYTES = 4096,
    LAST_READS = 64, /* more than a socket's or pipe's buffer holds: what is left of a dead child */
    COMPLAINT_BYTES = 800,
    COMPLAINTS_A_SECOND = 50,
    LOOK_MS = 500, /* where no pidfd tells of the death */
    LOOK_SOON_MS = 10,
    GONE_WITHIN_MS = 1000
};

struct child {
    uint32_t magic;
    enum { RUNNING, STOPPING, TERMINATED, KILLED } state;
    bool deaf, gone, closed; /* reads no more lines; reaped; child_close was called */
    struct loop *loop;
    struct child_options o;
    const struct child_ops *ops;
    void *owner;
    const char *why; /* we killed it, or NULL */
    struct child_process process;
    struct loop_io talk, complaints, death;
    struct loop_timer deadline, look;
    struct loop_task free_later;
    struct buf unsent;
    struct child_lines said, complained;
    int64_t complaints_since_ms;
    unsigned n_complaints; /* in the second that began then */
};

/* ---- ending it ---- */

static void
look_soon(struct child *c)
{
    if (c->process.death < 0)
        loop_timer_set(&c->look, LOOK_SOON_MS);
}

static void
talk_want(struct child *c, int events, bool wanted)
{
    loop_io_want(&c->talk, wanted ? c->talk.wanted | events : c->talk.wanted & ~events);
}

static void
child_kill(struct child *c, const char *why)
{
    if (c->state == KILLED || c->gone)
        return;
    c->state = KILLED;
    c->why = why;
    buf_free(&c->unsent);
    loop_timer_stop(&c->deadline);
    child_process_signal(&c->process, SIGKILL);
    look_soon(c);
}

void
child_fail(struct child *c, const char *why)
{
    CHECK_OBJ(c, CHILD_MAGIC);
    c->deaf = true;
    talk_want(c, LOOP_READ, false);
    child_kill(c, why);
}

static void
on_deadline(void *owner)
{
    struct child *c = owner;

    if (c->state == TERMINATED) {
        child_kill(c, "SIGTERM did not end it");
        return;
    }
    c->state = TERMINATED;
    child_process_signal(&c->process, SIGTERM);
    loop_timer_set(&c->deadline, c->o.kill_after_ms);
}

/* ---- its stdin and stdout ---- */

static bool
is_passing(int error)
{
    return error == EAGAIN || error == EINTR || error == ENOBUFS || error == ENOMEM;
}

static void
unsent_write(struct child *c)
{
    ssize_t n = 1;

    while (c->unsent.n && n > 0) {
        n = send(c->process.talk, c->unsent.at, c->unsent.n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0)
            buf_drop_front(&c->unsent, (size_t)n);
        else if (!is_passing(errno))
            child_kill(c, "it does not read");
    }
    if (c->unsent.n == 0 && c->state == STOPPING)
        (void)shutdown(c->process.talk, SHUT_WR);
    talk_want(c, LOOP_WRITE, c->unsent.n > 0);
}

static void
lines_pass(struct child *c)
{
    enum child_line got;
    struct span line;

    while (!c->deaf && !c->closed && (got = child_lines_next(&c->said, &line)) != CHILD_LINE_NONE) {
        if (got == CHILD_LINE_TOO_LONG)
            child_fail(c, "it sent too long a line");
        else
            c->ops->line(c->owner, line);
    }
}

/* One read, so that a child that never stops leaves room for the others. false: nothing is there,
 * now or for good. One that has closed its stdout cannot answer any more; mostly it is about to
 * end. */
static bool
talk_read(struct child *c)
{
    ssize_t n =
        recv(c->process.talk, child_lines_reserve(&c->said, READ_BYTES), READ_BYTES, MSG_DONTWAIT);

    if (n > 0) {
        child_lines_add(&c->said, (size_t)n);
        lines_pass(c);
        return !c->deaf && !c->closed;
    }
    if (n < 0 && is_passing(errno))
        return false;
    talk_want(c, LOOP_READ, false);
    if (c->state == RUNNING)
        child_kill(c, "it closed its output");
    look_soon(c);
    return false;
}

static void
on_talk(void *owner, int events)
{
    struct child *c = owner;

    if (events & LOOP_WRITE)
        unsent_write(c);
    if (events & LOOP_READ)
        (void)talk_read(c);
}

bool
child_takes_lines(const struct child *c)
{
    return c->state == RUNNING && !c->gone;
}

void
child_send(struct child *c, struct span lines)
{
    CHECK_OBJ(c, CHILD_MAGIC);
    if (!child_takes_lines(c))
        return;
    buf_add(&c->unsent, lines);
    unsent_write(c);
}

void
child_stop(struct child *c)
{
    CHECK_OBJ(c, CHILD_MAGIC);
    if (!child_takes_lines(c))
        return;
    c->state = STOPPING;
    loop_timer_set(&c->deadline, c->o.term_after_ms);
    unsent_write(c);
}

/* ---- its stderr ---- */

static void
lost_complaints_log(struct child *c)
{
    if (c->n_complaints > COMPLAINTS_A_SECOND)
        log_event(LOG_WARN, "%s[%d]: %u more lines", c->o.name, (int)c->process.pid,
                  c->n_complaints - COMPLAINTS_A_SECOND);
    c->n_complaints = 0;
}

static void
complaint_log(struct child *c, struct span line)
{
    int64_t now_ms = clock_mono_ms();

    if (now_ms - c->complaints_since_ms >= 1000) {
        lost_complaints_log(c);
        c->complaints_since_ms = now_ms;
    }
    if (++c->n_complaints <= COMPLAINTS_A_SECOND)
        log_event(LOG_NOTE, "%s[%d]: %.*s", c->o.name, (int)c->process.pid, SPAN_ARG(line));
}

static bool
complaints_read(struct child *c)
{
    ssize_t n =
        read(c->process.complaints, child_lines_reserve(&c->complained, READ_BYTES), READ_BYTES);
    struct span line;

    if (n <= 0) {
        if (n == 0 || !is_passing(errno))
            loop_io_stop(&c->complaints);
        return false;
    }
    child_lines_add(&c->complained, (size_t)n);
    while (child_lines_next(&c->complained, &line) != CHILD_LINE_NONE)
        complaint_log(c, line);
    return true;
}

static void
on_complaints(void *owner, int events)
{
    (void)complaints_read(owner);
}

/* ---- its death ---- */

static void
last_complaints_read(struct child *c)
{
    for (unsigned i = 0; i < LAST_READS && complaints_read(c); i++)
        continue;
    lost_complaints_log(c);
}

static void
last_lines_read(struct child *c)
{
    for (unsigned i = 0; i < LAST_READS && !c->deaf && talk_read(c); i++)
        continue;
}

/* "helper[17] exited with status 1", "helper[17] was ended by SIGKILL: it sent too long a line" */
static void
death_log(const struct child *c, const siginfo_t *how)
{
    bool by_itself = how->si_code == CLD_EXITED;
    const char *signal = by_itself ? NULL : sigabbrev_np(how->si_status);
    enum log_level level = c->state == RUNNING || c->state == KILLED ? LOG_WARN : LOG_INFO;
    char end[64] = "ended";

    if (by_itself)
        snprintf(end, sizeof end, "exited with status %d", how->si_status);
    else if (how->si_pid)
        snprintf(end, sizeof end, "was ended by SIG%s", signal ? signal : "?");
    log_event(level, "%s[%d] %s%s%s", c->o.name, (int)c->process.pid, end, c->why ? ": " : "",
              c->why ? c->why : "");
}

static void
watching_ends(struct child *c)
{
    loop_io_stop(&c->talk);
    loop_io_stop(&c->complaints);
    loop_io_stop(&c->death);
    loop_timer_close(&c->deadline);
    loop_timer_close(&c->look);
    child_process_close(&c->process);
}

static bool
death_look(struct child *c)
{
    siginfo_t how;

    if (!child_process_reap(&c->process, &how))
        return false;
    c->gone = true;
    last_complaints_read(c);
    death_log(c, &how);
    last_lines_read(c);
    if (c->closed) /* by the owner, over one of them */
        return true;
    watching_ends(c);
    c->ops->ended(c->owner);
    return true;
}

static void
on_death(void *owner, int events)
{
    (void)death_look(owner);
}

static void
on_look(void *owner)
{
    struct child *c = owner;

    if (!death_look(c))
        loop_timer_set(&c->look, LOOK_MS);
}

/* ---- life ---- */

static void
watching_starts(struct child *c)
{
    struct child_process *p = &c->process;

    loop_io_init(&c->talk, c->loop, p->talk, LOOP_CHILD, on_talk, c);
    loop_io_init(&c->complaints, c->loop, p->complaints, LOOP_CHILD, on_complaints, c);
    loop_io_init(&c->death, c->loop, p->death, LOOP_CHILD, on_death, c);
    loop_timer_init(&c->deadline, c->loop, on_deadline, c);
    loop_timer_init(&c->look, c->loop, on_look, c);
    loop_io_want(&c->talk, LOOP_READ);
    loop_io_want(&c->complaints, LOOP_READ);
    if (p->death >= 0)
        loop_io_want(&c->death, LOOP_READ);
    else
        loop_timer_set(&c->look, LOOK_MS);
}

static void
child_free(void *owner)
{
    struct child *c = owner;

    buf_free(&c->unsent);
    child_lines_free(&c->said);
    child_lines_free(&c->complained);
    FREE_OBJ(c);
}

struct child *
child_start(struct loop *l, const struct child_options *o, const struct child_ops *ops, void *owner,
            int *error)
{
    struct child_process process;
    struct child *c;

    *error = child_process_start(&process, o->argv);
    if (*error)
        return NULL;
    c = mem_zalloc(sizeof *c);
    c->magic = CHILD_MAGIC;
    c->loop = l;
    c->o = *o;
    c->ops = ops;
    c->owner = owner;
    c->process = process;
    c->said.most = o->line_most;
    c->complained.most = COMPLAINT_BYTES;
    loop_task_init(&c->free_later, child_free, c);
    watching_starts(c);
    return c;
}

/* What was killed is gone within a moment, unless it hangs in the kernel: that one is left to the
 * system, which takes it when we end. */
static void
gone_wait(const struct child *c)
{
    siginfo_t how;

    for (unsigned i = 0; !child_process_reap(&c->process, &how); i++) {
        if (i == GONE_WITHIN_MS) {
            log_event(LOG_ERROR, "%s[%d] cannot be killed", c->o.name, (int)c->process.pid);
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

void
child_close(struct child **held)
{
    struct child *c = *held;

    CHECK_OBJ(c, CHILD_MAGIC);
    *held = NULL;
    c->closed = true;
    if (!c->gone) {
        child_kill(c, NULL);
        gone_wait(c);
    }
    watching_ends(c);
    loop_defer(c->loop, &c->free_later);
}
