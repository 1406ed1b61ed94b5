/* base/log.c - the event log.
 *
 * Events are rare, so a line is written at once, with one write(2) to a descriptor in append mode,
 * under a mutex that also guards the descriptor against rotation. A line is at most LINE_BYTES:
 * texts may quote what a peer sent. For the same reason control bytes are escaped, so that nobody
 * forges a line. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fds.h"

enum { LINE_BYTES = 1024 };

struct line {
    char at[LINE_BYTES];
    size_t n;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = STDERR_FILENO;
static char *log_path; /* NULL: stderr */
static _Atomic int shown_up_to = LOG_NOTE;

void
log_show(enum log_level up_to)
{
    atomic_store_explicit(&shown_up_to, (int)up_to, memory_order_relaxed);
}

static int
open_for_append(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);

    if (fd >= 0)
        fds_adopt(fd, FD_LOG);
    else
        log_event(LOG_ERROR, "cannot open the event log %s: %s", path, strerror(errno));
    return fd;
}

static void
switch_to(int fd, char *path)
{
    int old;
    char *old_path;

    pthread_mutex_lock(&lock);
    old = log_fd;
    old_path = log_path;
    log_fd = fd;
    log_path = path;
    pthread_mutex_unlock(&lock);
    if (old != STDERR_FILENO)
        fds_close(old);
    mem_free(old_path);
}

void
log_open(const char *path)
{
    int fd;

    if (path == NULL || strcmp(path, "stderr") == 0) {
        switch_to(STDERR_FILENO, NULL);
        return;
    }
    fd = open_for_append(path);
    if (fd >= 0)
        switch_to(fd, mem_strdup(path));
}

void
log_reopen(void)
{
    char *path;

    pthread_mutex_lock(&lock);
    path = log_path ? mem_strdup(log_path) : NULL;
    pthread_mutex_unlock(&lock);
    if (path)
        log_open(path);
    mem_free(path);
}

static void
line_start(struct line *l, enum log_level level)
{
    static const char *const words[] = {
        [LOG_FATAL] = "FATAL: ", [LOG_ERROR] = "ERROR: ", [LOG_WARN] = "WARNING: ",
        [LOG_NOTE] = "",         [LOG_INFO] = "",         [LOG_DEBUG] = "",
    };
    time_t now = (time_t)clock_wall_s();
    struct tm t = {0};

    localtime_r(&now, &t);
    l->n = strftime(l->at, sizeof l->at, "%Y/%m/%d %H:%M:%S cuttle| ", &t);
    l->n += (size_t)snprintf(l->at + l->n, sizeof l->at - l->n, "%s", words[level]);
}

/* Leaves room for the mark of a cut text and the newline. */
static void
line_add_escaped(struct line *l, const char *text)
{
    static const char cut[] = "...", hex[] = "0123456789abcdef";

    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (l->n + 4 + sizeof cut > sizeof l->at) {
            memcpy(l->at + l->n, cut, sizeof cut - 1);
            l->n += sizeof cut - 1;
            return;
        }
        if (c >= ' ' && c != 0x7f) {
            l->at[l->n++] = (char)c;
            continue;
        }
        memcpy(l->at + l->n, (char[]){'\\', 'x', hex[c >> 4], hex[c & 15]}, 4);
        l->n += 4;
    }
}

/* What cannot be written is lost: there is no better place to complain. */
static void
line_write(const struct line *l)
{
    size_t done = 0;
    ssize_t n;

    pthread_mutex_lock(&lock);
    while (done < l->n) {
        n = write(log_fd, l->at + done, l->n - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    pthread_mutex_unlock(&lock);
}

void
log_event(enum log_level level, const char *format, ...)
{
    int saved_errno = errno;
    char text[LINE_BYTES];
    struct line l;
    va_list args;

    if ((int)level > atomic_load_explicit(&shown_up_to, memory_order_relaxed))
        return;
    va_start(args, format);
    if (vsnprintf(text, sizeof text, format, args) < 0)
        text[0] = '\0';
    va_end(args);
    line_start(&l, level);
    line_add_escaped(&l, text);
    l.at[l.n++] = '\n';
    line_write(&l);
    errno = saved_errno;
}

int
log_due(int64_t *last_ms, int64_t every_ms)
{
    int64_t now = clock_mono_ms();

    if (*last_ms != 0 && now - *last_ms < every_ms)
        return 0;
    *last_ms = now ? now : 1;
    return 1;
}
