/* tools/predict.d/report.h - the study as text, JSON, or CSV of its minutes. */
#ifndef TOOLS_PREDICT_D_REPORT_H
#define TOOLS_PREDICT_D_REPORT_H

#include <stdio.h>

#include "tools/predict.d/study.h"

struct report {
    const char *log; /* its path */
    const struct trace_reader *reader;
    const struct gathered *g;
    const struct study *s;
    const struct study_options *o;
};

enum { ISO_BYTES = 32 };

void iso_time(int64_t at_us, char text[ISO_BYTES]); /* 2014-01-23T17:42:46.179Z */
const char *hit_rule_name(enum hit_rule r);
void report_text(FILE *to, const struct report *r);
void report_json(FILE *to, const struct report *r);
/* One line for each minute in which something was under way. */
void report_minutes(FILE *to, const struct report *r);

#endif
