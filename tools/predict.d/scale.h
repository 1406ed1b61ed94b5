/* tools/predict.d/scale.h - counts of values by size, in steps of less than half a percent.
 *
 * For percentiles and for curves whose marks are known only at the end. Values below 512 are
 * exact. Memory: 112 KB. */
#ifndef TOOLS_PREDICT_D_SCALE_H
#define TOOLS_PREDICT_D_SCALE_H

#include <stdint.h>

enum { SCALE_FINE_BITS = 8, SCALE_STEPS = (64 - SCALE_FINE_BITS + 1) << SCALE_FINE_BITS };

struct scale {
    uint64_t counts[SCALE_STEPS];
    uint64_t n, most;
};

uint32_t scale_step(uint64_t value); /* below SCALE_STEPS */
uint64_t scale_least(uint32_t step); /* the smallest value of that step */
void scale_add(struct scale *s, uint64_t value);
uint64_t scale_percentile(const struct scale *s, double share); /* 0 when empty */

#endif
