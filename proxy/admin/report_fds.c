/* proxy/admin/report_fds.c - `filedescriptors`: the census by purpose, then every descriptor in
 * Squid's table.
 *
 * The census does not follow a descriptor's timeouts and bytes (that would be work for each read of
 * each connection), so these columns hold "-". */
#include "base/clock.h"
#include "http/date.h"
#include "proxy/admin/report.h"

#define LINES_MAX 65536 /* some megabytes of text; a page is made in memory */

static void
add_census(const struct view *v, struct buf *out)
{
    BUF_ADD(out, "Descriptors by purpose:\n");
    buf_addf(out, "%-14s %7s %9s %7s %-29s %10s %10s\n", "Purpose", "Now", "Mean", "Peak",
             "Peak at", "Opened", "Closed");
    BUF_ADD(out, "-------------- ------- --------- ------- ----------------------------- "
                 "---------- ----------\n");
    for (unsigned i = 0; i < FD_PURPOSES; i++) {
        const struct fd_census_row *row = &v->census[i];
        char date[DATE_TEXT_MAX] = "-";

        if (row->peak_at_wall_s)
            date_format(row->peak_at_wall_s, date);
        buf_addf(out, "%-14s %7llu %9.1f %7llu %-29s %10llu %10llu\n", fd_purpose_name(i),
                 (unsigned long long)row->now, row->mean, (unsigned long long)row->peak, date,
                 (unsigned long long)row->opened, (unsigned long long)row->closed);
    }
    buf_addf(out, "%-14s %7llu %9s %7llu\n", "all", (unsigned long long)v->fds_in_use, "",
             (unsigned long long)v->fds_peak);
    buf_addf(out,
             "Opened and closed are counted under the purpose a descriptor had at that moment.\n"
             "Limit %llu, headroom %llu, largest number in use %llu\n\n",
             (unsigned long long)v->fds_limit, (unsigned long long)v->fds_free,
             (unsigned long long)v->fds_largest);
}

static const struct {
    const char *type;
    bool note_is_address;
} forms[FD_PURPOSES] = {
    [FD_LISTENING] = {"Socket", false},  [FD_CLIENT_ACTIVE] = {"Socket", true},
    [FD_CLIENT_IDLE] = {"Socket", true}, [FD_SERVER_ACTIVE] = {"Socket", true},
    [FD_SERVER_IDLE] = {"Socket", true}, [FD_TUNNEL] = {"Socket", true},
    [FD_DNS] = {"Socket", true},         [FD_DISK] = {"File", false},
    [FD_CHILD] = {"Pipe", false},        [FD_LOG] = {"Log", false},
    [FD_OTHER] = {"-", false},
};

struct table {
    struct buf *out;
    int64_t now_ms;
    uint64_t lines;
};

static void
add_descriptor(void *arg, int fd, enum fd_purpose p, const char *note, int64_t open_ms)
{
    struct table *t = arg;
    bool is_remote = forms[p].note_is_address && note[0];

    if (++t->lines > LINES_MAX)
        return;
    buf_addf(t->out, "%4d %-6s %4s %8s %8s %-21s %s", fd, forms[p].type, "-", "-", "-",
             is_remote ? note : "-", fd_purpose_name(p));
    if (note[0] && !is_remote)
        buf_addf(t->out, " %s", note);
    buf_addf(t->out, ", open %.1f s\n",
             t->now_ms > open_ms ? (double)(t->now_ms - open_ms) / 1000 : 0.0);
}

void
report_filedescriptors(struct manager *m, const struct view *v, struct buf *out)
{
    struct table t = {.out = out, .now_ms = clock_mono_ms()};

    add_census(v, out);
    BUF_ADD(out, "Active file descriptors:\n");
    buf_addf(out, "%-4s %-6s %-4s %-8s %-8s %-21s %s\n", "File", "Type", "Tout", "Nread", "Nwrite",
             "Remote Address", "Description");
    BUF_ADD(out, "---- ------ ---- -------- -------- --------------------- "
                 "------------------------------\n");
    fds_each(add_descriptor, &t);
    if (t.lines > LINES_MAX)
        buf_addf(out, "... and %llu more\n", (unsigned long long)(t.lines - LINES_MAX));
}
