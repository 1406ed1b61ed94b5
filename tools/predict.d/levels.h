/* tools/predict.d/levels.h - how long each level lasted: percentiles over time, minute by minute.
 *
 * Fed with the stretches of fd_plan_predict. Memory: 8 bytes for each level up to the highest, 72
 * for each minute in which something was under way. */
#ifndef TOOLS_PREDICT_D_LEVELS_H
#define TOOLS_PREDICT_D_LEVELS_H

#include "tools/predict.d/descriptors.h"

/* Time spent at each level. */
struct level_times {
    int64_t *us;
    uint32_t n, highest;
    int64_t total_us;
};

void level_times_add(struct level_times *t, uint32_t level, int64_t us);
/* The lowest level that held for at least this share of the time (0 to 1). */
uint32_t level_times_percentile(const struct level_times *t, double share);
void level_times_clear(struct level_times *t); /* keeps its memory */
void level_times_free(struct level_times *t);

/* ---- one kind of level: mean, percentile, peak and when ---- */
struct level_summary {
    double mean;
    uint32_t p99, peak;
    int64_t peak_at_us;
};

struct level_track {
    struct level_times times;
    double area;
    uint32_t peak;
    int64_t peak_at_us;
};

void level_track_add(struct level_track *t, int64_t from_us, int64_t until_us, uint32_t level);
struct level_summary level_track_end(struct level_track *t); /* frees what it holds */

/* ---- minutes ---- */
struct minute {
    int64_t minute;               /* since the epoch */
    double open_mean, duration_s; /* of the requests that came in it: mean */
    uint32_t open_p99, open_peak, tunnels_peak, descriptors_peak;
    uint64_t came;
};

struct minutes {
    struct minute *rows;
    size_t n, room;
    struct level_times open; /* of the minute under way */
};

/* Levels without persistence: each request holds its connections while it lasts. */
void minutes_add(struct minutes *m, int64_t from_us, int64_t until_us, const struct fd_levels *l);
/* After the levels: counts the requests (in order of arrival) into their minutes. */
void minutes_count(struct minutes *m, const struct fd_request *requests, size_t n);
void minutes_end(struct minutes *m); /* closes the last minute; before minutes_count */
/* Sums over the clock hour with the most arrivals, for Little's law. */
struct busiest_hour {
    int64_t start_s;
    uint64_t came;
    double open_mean, duration_s;
};
struct busiest_hour minutes_busiest_hour(const struct minutes *m);
void minutes_free(struct minutes *m);

#endif
