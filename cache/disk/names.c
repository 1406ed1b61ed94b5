/* cache/disk/names.c - digests, tags, numbers and times. */
#include "cache/disk/names.h"

#include <sys/random.h>
#include <time.h>
#include <xxhash.h>

void
tier_hash(const struct tier *t, struct span uri, uint64_t digest[2])
{
    XXH128_hash_t h = XXH3_128bits_withSeed(uri.at, uri.n, t->seed);

    digest[0] = h.low64;
    digest[1] = h.high64;
}

uint32_t
tier_tag(struct span vary, const struct part *part)
{
    uint64_t h = XXH3_64bits(vary.at, vary.n);

    if (part)
        h = XXH3_64bits_withSeed(part->range.at, part->range.n, h ^ part->from ^ ~part->whole);
    return (uint32_t)(h >> 40);
}

void
tier_piece_hash(const struct tier *t, uint64_t chain, uint64_t at, uint64_t digest[2])
{
    uint64_t name[2] = {chain, at};

    tier_hash(t, span_of((const char *)name, sizeof name), digest);
}

uint64_t
tier_chain_new(void)
{
    static _Atomic uint64_t given;
    uint64_t random = 0;

    (void)!getrandom(&random, sizeof random, GRND_NONBLOCK);
    random = (random ^ atomic_fetch_add(&given, 1) ^ (uint64_t)tier_wall_ms() << 20);
    return random ? random : 1;
}

const struct part *
tier_part_of(const struct entry *e)
{
    return body_mode(e->body) == BODY_PASS ? NULL : e->part;
}

/* The clock of a loop's turn is not for other threads. */
int64_t
tier_wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

uint32_t
tier_now_s(void)
{
    return (uint32_t)(tier_wall_ms() / 1000) & INT32_MAX;
}
