/* tools/predict.d/levels.c - levels by time.
 *
 * A stretch is cut at minute borders. Only minutes with something under way get a row, so a log
 * with a gap of years costs nothing; that also means that a stretch of level 0 is passed over. */
#include "tools/predict.d/levels.h"

#include <string.h>

#include "base/check.h"

#define MINUTE_US INT64_C(60000000)

enum { MINUTES_AN_HOUR = 60 };

void
level_times_add(struct level_times *t, uint32_t level, int64_t us)
{
    if (level >= t->n) {
        uint32_t n = level < 64 ? 128 : level * 2;

        t->us = mem_realloc(t->us, n * sizeof(*t->us));
        memset(t->us + t->n, 0, (n - t->n) * sizeof(*t->us));
        t->n = n;
    }
    t->us[level] += us;
    t->total_us += us;
    if (level > t->highest)
        t->highest = level;
}

uint32_t
level_times_percentile(const struct level_times *t, double share)
{
    double wanted = share * (double)t->total_us, seen = 0;

    for (uint32_t level = 0; level < t->n; level++) {
        seen += (double)t->us[level];
        if (seen >= wanted && seen > 0)
            return level;
    }
    return t->highest;
}

void
level_times_clear(struct level_times *t)
{
    if (t->n > 0)
        memset(t->us, 0, (t->highest + 1) * sizeof(*t->us));
    t->highest = 0;
    t->total_us = 0;
}

void
level_times_free(struct level_times *t)
{
    mem_free(t->us);
    *t = (struct level_times){NULL, 0, 0, 0};
}

void
level_track_add(struct level_track *t, int64_t from_us, int64_t until_us, uint32_t level)
{
    if (level > t->peak) {
        t->peak = level;
        t->peak_at_us = from_us;
    }
    if (until_us == from_us)
        return;
    t->area += (double)level * (double)(until_us - from_us);
    level_times_add(&t->times, level, until_us - from_us);
}

struct level_summary
level_track_end(struct level_track *t)
{
    struct level_summary s = {0, t->peak, t->peak, t->peak_at_us};

    if (t->times.total_us > 0) {
        s.mean = t->area / (double)t->times.total_us;
        s.p99 = level_times_percentile(&t->times, 0.99);
    }
    level_times_free(&t->times);
    return s;
}

/* ---- minutes ---- */

void
minutes_end(struct minutes *m)
{
    if (m->n > 0 && m->open.total_us < MINUTE_US) /* the rest of it nothing was under way */
        level_times_add(&m->open, 0, MINUTE_US - m->open.total_us);
    if (m->n > 0)
        m->rows[m->n - 1].open_p99 = level_times_percentile(&m->open, 0.99);
    level_times_clear(&m->open);
}

static struct minute *
minute_row(struct minutes *m, int64_t minute)
{
    if (m->n > 0 && m->rows[m->n - 1].minute == minute)
        return &m->rows[m->n - 1];
    minutes_end(m);
    if (m->n == m->room) {
        m->room = m->room ? m->room * 2 : 64;
        m->rows = mem_realloc(m->rows, m->room * sizeof(*m->rows));
    }
    m->rows[m->n] = (struct minute){.minute = minute};
    return &m->rows[m->n++];
}

static void
add_part(struct minutes *m, int64_t from_us, int64_t until_us, const struct fd_levels *l)
{
    struct minute *row = minute_row(m, from_us / MINUTE_US);
    uint32_t open = l->requests + l->tunnels, held = l->client_active + l->server_active;

    row->open_mean += (double)open * (double)(until_us - from_us) / (double)MINUTE_US;
    if (open > row->open_peak)
        row->open_peak = open;
    if (l->tunnels > row->tunnels_peak)
        row->tunnels_peak = l->tunnels;
    if (held > row->descriptors_peak)
        row->descriptors_peak = held;
    if (until_us > from_us)
        level_times_add(&m->open, open, until_us - from_us);
}

void
minutes_add(struct minutes *m, int64_t from_us, int64_t until_us, const struct fd_levels *l)
{
    if (l->requests + l->tunnels == 0)
        return;
    do {
        int64_t border_us = (from_us / MINUTE_US + 1) * MINUTE_US;
        int64_t part_us = until_us < border_us ? until_us : border_us;

        add_part(m, from_us, part_us, l);
        from_us = part_us;
    } while (from_us < until_us);
}

void
minutes_count(struct minutes *m, const struct fd_request *requests, size_t n)
{
    size_t row = 0;

    for (size_t i = 0; i < n; i++) {
        int64_t minute = requests[i].start_us / MINUTE_US;

        while (row < m->n && m->rows[row].minute < minute)
            row++;
        if (row == m->n || m->rows[row].minute != minute)
            continue;
        m->rows[row].came++;
        m->rows[row].duration_s += (double)(requests[i].end_us - requests[i].start_us) / 1e6;
    }
    for (row = 0; row < m->n; row++)
        if (m->rows[row].came > 0)
            m->rows[row].duration_s /= (double)m->rows[row].came;
}

struct busiest_hour
minutes_busiest_hour(const struct minutes *m)
{
    struct busiest_hour best = {0, 0, 0, 0}, hour = best;

    for (size_t i = 0; i < m->n; i++) {
        const struct minute *row = &m->rows[i];
        int64_t start_s = row->minute / MINUTES_AN_HOUR * 3600;

        if (start_s != hour.start_s)
            hour = (struct busiest_hour){start_s, 0, 0, 0};
        hour.came += row->came;
        hour.open_mean += row->open_mean / MINUTES_AN_HOUR;
        hour.duration_s += row->duration_s * (double)row->came;
        if (hour.came >= best.came)
            best = hour;
    }
    if (best.came > 0)
        best.duration_s /= (double)best.came;
    return best;
}

void
minutes_free(struct minutes *m)
{
    mem_free(m->rows);
    level_times_free(&m->open);
    *m = (struct minutes){0};
}
