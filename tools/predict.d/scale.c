/* tools/predict.d/scale.c - a power of two is one octave of 256 steps. */
#include "tools/predict.d/scale.h"

uint32_t
scale_step(uint64_t value)
{
    unsigned high;

    if (value >> (SCALE_FINE_BITS + 1) == 0)
        return (uint32_t)value;
    high = 63 - (unsigned)__builtin_clzll(value) - SCALE_FINE_BITS;
    return ((high + 1) << SCALE_FINE_BITS) + (uint32_t)(value >> high) - (1u << SCALE_FINE_BITS);
}

uint64_t
scale_least(uint32_t step)
{
    unsigned high = step >> SCALE_FINE_BITS;

    if (high < 2)
        return step;
    return ((uint64_t)(step & ((1u << SCALE_FINE_BITS) - 1)) + (1u << SCALE_FINE_BITS))
           << (high - 1);
}

void
scale_add(struct scale *s, uint64_t value)
{
    s->counts[scale_step(value)]++;
    s->n++;
    if (value > s->most)
        s->most = value;
}

uint64_t
scale_percentile(const struct scale *s, double share)
{
    uint64_t seen = 0, wanted = (uint64_t)(share * (double)s->n);

    for (uint32_t i = 0; i < SCALE_STEPS; i++) {
        seen += s->counts[i];
        if (seen > wanted)
            return scale_least(i);
    }
    return s->most;
}
