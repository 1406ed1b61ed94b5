/* proxy/admin/readiness_log.c - a line of CSV for each interval. */
#include "proxy/admin/readiness_log.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "proxy/admin/report.h"

#define EARLY_NS INT64_C(50000000) /* a timer's second may be a little short */
#define TELL_MS 60000

struct readiness_log {
    char *path;
    int fd; /* -1: it could not be opened */
    int64_t interval_ns;
    struct totals *last;
};

static void
add_columns(struct buf *out)
{
    BUF_ADD(out, "time,interval_s,backend,workers,requests,hits,bytes_in,bytes_out,cpu_s,"
                 "thread_cpu_s,call_cpu_s,blocked_s,dispatch_s,calls,events,interest_changes,"
                 "watched,share");
    for (unsigned i = 0; i < LOOP_KINDS; i++)
        buf_addf(out, ",%s_s", loop_kind_name((enum loop_kind)i));
    BUF_ADD(out, ",fds,fds_peak");
    for (unsigned i = 0; i < FD_PURPOSES; i++) {
        BUF_ADD(out, ",fds_");
        for (const char *c = fd_purpose_name((enum fd_purpose)i); *c; c++)
            buf_add_char(out, *c == ' ' ? '_' : *c);
    }
    buf_add_char(out, '\n');
}

/* A line must reach the file whole or not at all; one write of less than a page does. */
static void
put(struct readiness_log *l, struct buf *line)
{
    ssize_t n = write(l->fd, line->at, line->n);

    if (n != (ssize_t)line->n)
        log_event_every(TELL_MS, LOG_WARN, "readiness_log %s: %s", l->path,
                        n < 0 ? strerror(errno) : "no room");
    buf_free(line);
}

static void
open_file(struct readiness_log *l)
{
    struct buf columns = {0};

    l->fd = open(l->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640);
    if (l->fd < 0) {
        log_event(LOG_WARN, "readiness_log %s: %s", l->path, strerror(errno));
        return;
    }
    fds_adopt(l->fd, FD_LOG);
    fds_note(l->fd, span_str(l->path));
    if (lseek(l->fd, 0, SEEK_END) > 0)
        return;
    add_columns(&columns);
    put(l, &columns);
}

struct readiness_log *
readiness_log_open(const char *path, int64_t interval_ms, const struct totals *now)
{
    struct readiness_log *l = mem_zalloc(sizeof *l);

    l->path = mem_strdup(path);
    l->interval_ns = interval_ms * 1000000;
    l->last = mem_alloc(sizeof *l->last);
    *l->last = *now;
    open_file(l);
    if (l->fd < 0)
        readiness_log_close(&l);
    return l;
}

void
readiness_log_close(struct readiness_log **held)
{
    struct readiness_log *l = *held;

    *held = NULL;
    if (!l)
        return;
    if (l->fd >= 0)
        fds_close(l->fd);
    mem_free(l->last);
    mem_free(l->path);
    mem_free(l);
}

void
readiness_log_reopen(struct readiness_log *l)
{
    if (!l)
        return;
    if (l->fd >= 0)
        fds_close(l->fd);
    open_file(l);
}

bool
readiness_log_is_due(const struct readiness_log *l, int64_t now_ns)
{
    return l && now_ns - l->last->t.at_ns >= l->interval_ns - EARLY_NS;
}

static void
difference(const struct totals *now, const struct totals *then, struct tally *out)
{
    const uint64_t *a = (const uint64_t *)&now->t, *b = (const uint64_t *)&then->t;
    uint64_t *d = (uint64_t *)out;

    for (size_t i = 0; i < sizeof *out / sizeof *d; i++)
        d[i] = a[i] - b[i];
}

static void
add_seconds(struct buf *out, uint64_t ns)
{
    buf_addf(out, ",%.6f", (double)ns / 1e9);
}

static void
add_readiness(struct buf *out, const struct readiness_sum *r, int64_t watched)
{
    add_seconds(out, r->thread_cpu_ns);
    add_seconds(out, r->cpu_ns);
    add_seconds(out, r->wall_ns > r->cpu_ns ? r->wall_ns - r->cpu_ns : 0);
    add_seconds(out, r->dispatch_ns);
    buf_addf(out, ",%llu,%llu,%llu,%lld,%.6f", (unsigned long long)r->calls,
             (unsigned long long)r->events, (unsigned long long)r->interest_changes,
             (long long)watched, readiness_share(r));
    for (unsigned i = 0; i < LOOP_KINDS; i++)
        add_seconds(out, r->kind_ns[i]);
}

static void
add_descriptors(struct buf *out)
{
    struct fd_census_row rows[FD_PURPOSES];

    fds_census(rows);
    buf_addf(out, ",%llu,%llu", (unsigned long long)fds_in_use(), (unsigned long long)fds_peak());
    for (unsigned i = 0; i < FD_PURPOSES; i++)
        buf_addf(out, ",%llu", (unsigned long long)rows[i].now);
    buf_add_char(out, '\n');
}

void
readiness_log_add(struct readiness_log *l, const struct totals *now, const char *backend,
                  unsigned workers)
{
    struct buf line = {0};
    struct tally d;

    difference(now, l->last, &d);
    *l->last = *now;
    if (l->fd < 0)
        return;
    buf_addf(&line, "%.3f,%.3f,%s,%u,%llu,%llu,%llu,%llu", (double)clock_wall_ms() / 1e3,
             (double)d.at_ns / 1e9, backend, workers,
             (unsigned long long)d.counters[COUNTER_CLIENT_REQUESTS],
             (unsigned long long)d.counters[COUNTER_CLIENT_HITS],
             (unsigned long long)d.counters[COUNTER_CLIENT_KBYTES_IN],
             (unsigned long long)d.counters[COUNTER_CLIENT_KBYTES_OUT]);
    buf_addf(&line, ",%.6f", (double)d.cpu_us / 1e6);
    add_readiness(&line, &d.readiness, now->t.readiness.watched);
    add_descriptors(&line);
    put(l, &line);
}
