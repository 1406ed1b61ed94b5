/* access_log.c - lines of all workers to one destination, without ever waiting for it.
 *
 * A worker fills its own buffer and hands over whole blocks; a writer thread takes them in order.
 * Files share one writer. A pipe or terminal gets a writer of its own: its reader may stop for
 * ever, and the files of others must not wait for that. What is queued for a destination is
 * bounded; above the bound lines are dropped, counted and told, because the alternative is to stop
 * the traffic.
 *
 * The descriptor belongs to the writer thread. A rotation is a job in the same queue, so what was
 * handed over before it goes to the old file and what comes later to the new one; a file is renamed
 * at once, since the descriptor follows it. The opener and each buffer hold a reference, and
 * whoever drops the last waits until everything is written. */
#include "proxy/log/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/offload.h"
#include "base/ref.h"

#define ACCESS_LOG_MAGIC 0xacce5510u

enum {
    BLOCK_FULL_BYTES = 60 * 1024,
    QUEUE_LIMIT_BYTES = 16 * 1024 * 1024,
    TELL_EVERY_MS = 5000,
    PIPE_WAIT_MS = 250,      /* between looks at whether we are stopping */
    STOP_PATIENCE_MS = 2000, /* for a pipe nobody reads, when we stop */
};

struct access_log {
    uint32_t magic;
    struct ref refs;
    struct offload *writer;
    bool own_writer, is_stream; /* a stream: pipe, terminal, socket; written only when ready */
    char *path;
    /* of the writer thread */
    int fd;
    bool line_open; /* the last write ended inside a line */
    int64_t error_said_ms;
    _Atomic int64_t stop_at_ms; /* 0, or when a stream that is not read is given up */
    /* of everybody */
    pthread_mutex_t lock;
    size_t queued_bytes;
    uint64_t dropped_lines; /* not told yet */
    int64_t dropped_said_ms;
};

struct access_log_buffer {
    struct access_log *log;
    struct buf lines;
};

struct block {
    struct offload_job job;
    struct access_log *log;
    struct buf bytes;
};

struct reopen {
    struct offload_job job;
    struct access_log *log;
    int fd;
};

struct finish {
    struct offload_job job;
    struct access_log *log;
    pthread_mutex_t lock;
    pthread_cond_t written;
    bool is_written;
};

/* --- the writer that files share ------------------------------------------------------------- */

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct offload *shared_writer;
static unsigned shared_users;

static struct offload *
writer_take(bool own)
{
    struct offload *w;

    if (own)
        return offload_new("log-stream", 1);
    pthread_mutex_lock(&shared_lock);
    if (shared_users++ == 0)
        shared_writer = offload_new("log", 1);
    w = shared_writer;
    pthread_mutex_unlock(&shared_lock);
    return w;
}

static void
writer_give_back(struct offload *w, bool own)
{
    struct offload *unused = own ? w : NULL;

    if (!own) {
        pthread_mutex_lock(&shared_lock);
        if (--shared_users == 0) {
            unused = shared_writer;
            shared_writer = NULL;
        }
        pthread_mutex_unlock(&shared_lock);
    }
    if (unused)
        offload_free(&unused);
}

/* --- dropping ----------------------------------------------------------------------------------
 */

static uint64_t
count_lines(struct span s)
{
    uint64_t n = 0;

    while (s.n) {
        size_t at = span_index(s, '\n');

        n += at < s.n;
        s = span_skip(s, at + 1);
    }
    return n;
}

static void
drop(struct access_log *l, struct span lines)
{
    uint64_t n = count_lines(lines);

    pthread_mutex_lock(&l->lock);
    l->dropped_lines += n;
    pthread_mutex_unlock(&l->lock);
}

static void
tell_dropped(struct access_log *l, bool at_once)
{
    uint64_t n = 0;

    pthread_mutex_lock(&l->lock);
    if (l->dropped_lines && (at_once || log_due(&l->dropped_said_ms, TELL_EVERY_MS))) {
        n = l->dropped_lines;
        l->dropped_lines = 0;
    }
    pthread_mutex_unlock(&l->lock);
    if (n)
        log_event(LOG_WARN, "access log %s: %llu lines dropped, it does not take them fast enough",
                  l->path, (unsigned long long)n);
}

/* --- writing, on the writer thread -------------------------------------------------------------
 */

static bool
stop_is_due(struct access_log *l)
{
    int64_t at = atomic_load_explicit(&l->stop_at_ms, memory_order_relaxed);

    return at != 0 && clock_exact_mono_ns() / 1000000 >= at;
}

/* A stream may be shared with others who expect it to block (the terminal of the shell), so it is
 * never made non-blocking: a write of PIPE_BUF at most does not block after poll has said there is
 * room. */
static bool
stream_is_ready(struct access_log *l)
{
    struct pollfd p = {.fd = l->fd, .events = POLLOUT};

    while (poll(&p, 1, stop_is_due(l) ? 0 : PIPE_WAIT_MS) <= 0)
        if (stop_is_due(l))
            return false;
    return true;
}

static ssize_t
write_some(struct access_log *l, struct span s)
{
    if (!l->is_stream)
        return write(l->fd, s.at, s.n);
    if (!stream_is_ready(l)) {
        errno = ETIMEDOUT;
        return -1;
    }
    return write(l->fd, s.at, s.n < PIPE_BUF ? s.n : PIPE_BUF);
}

static void
tell_error(struct access_log *l, int error)
{
    if (log_due(&l->error_said_ms, TELL_EVERY_MS))
        log_event(LOG_ERROR, "cannot write the access log %s: %s", l->path, strerror(error));
}

/* A disk that was full in the middle of a line leaves half of it: what follows starts on a line of
 * its own. */
static bool
mend_open_line(struct access_log *l)
{
    if (l->line_open && write_some(l, SPAN("\n")) == 1)
        l->line_open = false;
    return !l->line_open;
}

static void
write_lines(struct access_log *l, struct span s)
{
    if (!mend_open_line(l)) {
        tell_error(l, errno);
        drop(l, s);
        return;
    }
    while (s.n) {
        ssize_t n = write_some(l, s);

        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0) {
            tell_error(l, n < 0 ? errno : ENOSPC);
            drop(l, s);
            return;
        }
        l->line_open = s.at[n - 1] != '\n';
        s = span_skip(s, (size_t)n);
    }
}

static void
block_work(struct offload_job *job)
{
    struct block *b = LIST_OWNER(job, struct block, job);
    struct access_log *l = b->log;

    if (l->fd >= 0)
        write_lines(l, buf_span(&b->bytes));
    pthread_mutex_lock(&l->lock);
    l->queued_bytes -= b->bytes.n;
    pthread_mutex_unlock(&l->lock);
    tell_dropped(l, false);
    buf_free(&b->bytes);
    mem_free(b);
}

static void
reopen_work(struct offload_job *job)
{
    struct reopen *r = LIST_OWNER(job, struct reopen, job);

    fds_close(r->log->fd);
    r->log->fd = r->fd;
    r->log->line_open = false;
    mem_free(r);
}

static void
finish_work(struct offload_job *job)
{
    struct finish *f = LIST_OWNER(job, struct finish, job);

    pthread_mutex_lock(&f->lock);
    f->is_written = true;
    pthread_cond_signal(&f->written);
    pthread_mutex_unlock(&f->lock);
}

/* --- opening and closing ------------------------------------------------------------------------
 */

static bool
is_standard(const char *where)
{
    return strcmp(where, "stdout") == 0 || strcmp(where, "stderr") == 0;
}

/* O_NONBLOCK: a named pipe without a reader is an error, not a place to wait. On a file it changes
 * nothing. */
static int
open_path(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);

    if (fd >= 0) {
        fds_adopt(fd, FD_LOG);
        fds_note(fd, span_str(path));
    }
    return fd;
}

static int
open_where(const char *where)
{
    if (strcmp(where, "stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(where, "stderr") == 0)
        return STDERR_FILENO;
    return open_path(where);
}

static bool
is_stream(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode);
}

struct access_log *
access_log_open(const char *where, char *error, size_t n_error)
{
    bool discards = strcmp(where, "none") == 0;
    int fd = discards ? -1 : open_where(where);
    struct access_log *l;

    if (fd < 0 && !discards) {
        snprintf(error, n_error, "cannot open the access log %s: %s", where, strerror(errno));
        return NULL;
    }
    l = mem_zalloc(sizeof *l);
    l->magic = ACCESS_LOG_MAGIC;
    ref_init(&l->refs);
    pthread_mutex_init(&l->lock, NULL);
    l->path = mem_strdup(where);
    l->fd = fd;
    l->is_stream = fd >= 0 && is_stream(fd);
    l->own_writer = l->is_stream;
    l->writer = writer_take(l->own_writer);
    return l;
}

static void
wait_until_written(struct access_log *l)
{
    struct finish f = {.job = {.work = finish_work}, .log = l};

    atomic_store_explicit(&l->stop_at_ms, clock_exact_mono_ns() / 1000000 + STOP_PATIENCE_MS,
                          memory_order_relaxed);
    pthread_mutex_init(&f.lock, NULL);
    pthread_cond_init(&f.written, NULL);
    offload_submit(l->writer, &f.job);
    pthread_mutex_lock(&f.lock);
    while (!f.is_written)
        pthread_cond_wait(&f.written, &f.lock);
    pthread_mutex_unlock(&f.lock);
    pthread_cond_destroy(&f.written);
    pthread_mutex_destroy(&f.lock);
}

static void
access_log_unref(struct access_log *l)
{
    if (ref_drop(&l->refs) > 0)
        return;
    wait_until_written(l);
    tell_dropped(l, true);
    writer_give_back(l->writer, l->own_writer);
    if (!is_standard(l->path))
        fds_close(l->fd);
    pthread_mutex_destroy(&l->lock);
    mem_free(l->path);
    FREE_OBJ(l);
}

void
access_log_close(struct access_log **held)
{
    struct access_log *l = *held;

    *held = NULL;
    if (l == NULL)
        return;
    CHECK_OBJ(l, ACCESS_LOG_MAGIC);
    access_log_unref(l);
}

bool
access_log_reopen(struct access_log *l)
{
    struct reopen *r;
    int fd;

    CHECK_OBJ(l, ACCESS_LOG_MAGIC);
    if (is_standard(l->path) || strcmp(l->path, "none") == 0 || l->is_stream)
        return true;
    fd = open_path(l->path);
    if (fd < 0) {
        log_event(LOG_ERROR, "cannot reopen the access log %s: %s; lines still go to the old file",
                  l->path, strerror(errno));
        return false;
    }
    r = mem_zalloc(sizeof *r);
    *r = (struct reopen){.job = {.work = reopen_work}, .log = l, .fd = fd};
    offload_submit(l->writer, &r->job);
    return true;
}

static bool
rename_to(const char *path, int from, int to)
{
    char old[PATH_MAX], new[PATH_MAX];

    if (from < 0)
        snprintf(old, sizeof old, "%s", path);
    else
        snprintf(old, sizeof old, "%s.%d", path, from);
    snprintf(new, sizeof new, "%s.%d", path, to);
    if (rename(old, new) == 0 || errno == ENOENT)
        return true;
    log_event(LOG_ERROR, "cannot rename %s to %s: %s", old, new, strerror(errno));
    return false;
}

/* The oldest goes first: FILE.(keep-2) becomes FILE.(keep-1), ..., FILE becomes FILE.0. After a
 * failed rename nothing newer is moved, since it would overwrite what could not be moved away. */
bool
access_log_rotate(struct access_log *l, int keep)
{
    bool done = true;

    CHECK_OBJ(l, ACCESS_LOG_MAGIC);
    if (is_standard(l->path) || strcmp(l->path, "none") == 0 || l->is_stream)
        return true;
    for (int to = keep - 1; to >= 0 && done; to--)
        done = rename_to(l->path, to - 1, to);
    return access_log_reopen(l) && done;
}

/* --- a worker's buffer --------------------------------------------------------------------------
 */

struct access_log_buffer *
access_log_buffer_new(struct access_log *l)
{
    struct access_log_buffer *b = mem_zalloc(sizeof *b);

    CHECK_OBJ(l, ACCESS_LOG_MAGIC);
    ref_take(&l->refs);
    b->log = l;
    return b;
}

void
access_log_buffer_free(struct access_log_buffer **held)
{
    struct access_log_buffer *b = *held;

    *held = NULL;
    if (b == NULL)
        return;
    access_log_buffer_flush(b);
    access_log_unref(b->log);
    buf_free(&b->lines);
    mem_free(b);
}

struct buf *
access_log_buffer_lines(struct access_log_buffer *b)
{
    return &b->lines;
}

void
access_log_buffer_wrote(struct access_log_buffer *b)
{
    if (b->lines.n >= BLOCK_FULL_BYTES)
        access_log_buffer_flush(b);
}

static bool
queue_has_room(struct access_log *l, size_t n_bytes)
{
    bool has_room;

    pthread_mutex_lock(&l->lock);
    has_room = l->queued_bytes + n_bytes <= QUEUE_LIMIT_BYTES;
    if (has_room)
        l->queued_bytes += n_bytes;
    pthread_mutex_unlock(&l->lock);
    return has_room;
}

void
access_log_buffer_flush(struct access_log_buffer *b)
{
    struct access_log *l = b->log;
    struct block *block;

    if (b->lines.n == 0)
        return;
    if (!queue_has_room(l, b->lines.n)) {
        drop(l, buf_span(&b->lines));
        tell_dropped(l, false);
        buf_free(&b->lines);
        return;
    }
    block = mem_zalloc(sizeof *block);
    *block = (struct block){.job = {.work = block_work}, .log = l, .bytes = b->lines};
    b->lines = (struct buf){0};
    offload_submit(l->writer, &block->job);
}
