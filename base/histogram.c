/* base/histogram.c - log-linear buckets: pure arithmetic, apart from the counting (counters.c).
 *
 * 0 to 7 have a bucket each; from there every power of two is cut into 8, so a quantile is never
 * off by more than an eighth. What lies beyond 2^34 is counted in the last bucket. */
#include "base/counters.h"

enum { SUB_BITS = 3, SUB = 1 << SUB_BITS };

unsigned
histogram_bucket(uint64_t value)
{
    unsigned shift, bucket;

    if (value < SUB)
        return (unsigned)value;
    shift = 63 - (unsigned)__builtin_clzll(value) - SUB_BITS;
    bucket = SUB + shift * SUB + ((unsigned)(value >> shift) & (SUB - 1));
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

uint64_t
histogram_bucket_low(unsigned bucket)
{
    if (bucket < SUB)
        return bucket;
    return (uint64_t)(SUB + bucket % SUB) << (bucket / SUB - 1);
}

/* The entries of a bucket are taken to be spread evenly over it. */
static uint64_t
inside_bucket(unsigned bucket, double part)
{
    uint64_t low = histogram_bucket_low(bucket), width = histogram_bucket_low(bucket + 1) - low;
    uint64_t into = (uint64_t)((double)width * part);

    return low + (into < width ? into : width - 1);
}

uint64_t
histogram_quantile(const uint64_t buckets[HISTOGRAM_BUCKETS], double share)
{
    uint64_t total = 0;
    double rank, below = 0;
    unsigned last = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        total += buckets[i];
    if (total == 0)
        return 0;
    rank = share > 0 ? (share < 1 ? share : 1) * (double)total : 0; /* a NaN is 0 as well */
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (buckets[i] == 0)
            continue;
        last = i;
        if (below + (double)buckets[i] >= rank)
            return inside_bucket(i, (rank - below) / (double)buckets[i]);
        below += (double)buckets[i];
    }
    return inside_bucket(last, 1); /* rounding of very large counts */
}
