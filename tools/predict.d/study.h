/* tools/predict.d/study.h - the figures that both reports print. */
#ifndef TOOLS_PREDICT_D_STUDY_H
#define TOOLS_PREDICT_D_STUDY_H

#include "tools/predict.d/gather.h"
#include "tools/predict.d/levels.h"

enum { IDLES_MOST = 16, CURVE_MOST = 32, ARMS_MOST = 1 + 3 * IDLES_MOST };

struct idle_timeout {
    int64_t client_us, server_us;
};

struct curve_mark {
    uint64_t bytes; /* 0: by percent */
    double percent; /* of the unique bytes */
};

struct study_options {
    struct gather_options gather;
    struct idle_timeout idles[IDLES_MOST];
    unsigned n_idles;
    struct curve_mark marks[CURVE_MOST];
    unsigned n_marks;
    unsigned fixed; /* descriptors that are always there: listeners, logs, name server... */
};

enum persistence { PERSIST_OFF, PERSIST_CLIENT, PERSIST_SERVER, PERSIST_BOTH };

struct arm {
    enum persistence persistence;
    struct idle_timeout idle;
    struct fd_need need;
    struct level_summary held; /* all but the fixed ones */
};

struct curve_point {
    double percent;
    uint64_t bytes, hits, hit_bytes;
};

struct study {
    int64_t first_us, last_us;
    bool has_times, has_durations; /* or a model for them */
    struct level_summary all, requests, tunnels;
    struct busiest_hour busiest;
    struct minutes minutes;
    struct arm arms[ARMS_MOST]; /* the first one: off */
    unsigned n_arms;
    struct curve_point curve[CURVE_MOST];
    unsigned n_curve;
};

struct study *study_make(struct gathered *g, const struct study_options *o);
const char *persistence_name(enum persistence p);
void study_free(struct study **held);

#endif
