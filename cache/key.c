/* cache/key.c - digests of target URIs.
 *
 * The seed is drawn once per process, so that nobody outside can prepare URIs that fall into
 * one bucket; equality is settled by the URI's text anyway, never by the digest alone. */
#include "cache/key.h"

#include <errno.h>
#include <pthread.h>
#include <sys/random.h>
#include <xxhash.h>

#include "base/check.h"

static pthread_once_t seed_once = PTHREAD_ONCE_INIT;
static uint64_t seed;

static void
seed_draw(void)
{
    ssize_t n;

    do
        n = getrandom(&seed, sizeof seed, 0);
    while (n < 0 && errno == EINTR);
    CHECK(n == sizeof seed);
}

struct cache_key
cache_key_of(struct span canonical_uri)
{
    XXH128_hash_t hash;

    pthread_once(&seed_once, seed_draw);
    hash = XXH3_128bits_withSeed(canonical_uri.at, canonical_uri.n, seed);
    return (struct cache_key){.digest = {hash.low64, hash.high64}, .uri = canonical_uri};
}
