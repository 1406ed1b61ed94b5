/* dns/kept.c - addresses packed and unpacked, and how long they hold. */
#include "dns/kept.h"

#include "base/check.h"

/* ---- packed addresses ---- */

static size_t
packed_bytes(enum half half)
{
    return half == HALF_V6 ? 16 : 4;
}

static void *
raw_bytes(struct addr *a)
{
    return a->sa.sa_family == AF_INET6 ? (void *)&a->v6.sin6_addr : (void *)&a->v4.sin_addr;
}

static unsigned char *
addresses_pack(const struct half_answer *h, enum half half)
{
    size_t n_bytes = packed_bytes(half);
    unsigned char *packed = mem_alloc(h->n * n_bytes);

    for (unsigned i = 0; i < h->n; i++) {
        struct addr a = h->at[i];

        memcpy(packed + i * n_bytes, raw_bytes(&a), n_bytes);
    }
    return packed;
}

void
kept_read(const struct kept *k, enum half half, int64_t now_ms, struct half_answer *h)
{
    h->kind = k->kind;
    h->n = k->n;
    h->ttl_s = k->ends_ms > now_ms ? (k->ends_ms - now_ms + 999) / 1000 : 0;
    for (unsigned i = 0; i < k->n; i++) {
        memset(&h->at[i], 0, sizeof(h->at[i]));
        h->at[i].sa.sa_family = half == HALF_V6 ? AF_INET6 : AF_INET;
        memcpy(raw_bytes(&h->at[i]), k->bytes + i * packed_bytes(half), packed_bytes(half));
    }
}

/* ---- what holds ---- */

bool
kept_good(const struct kept *k, int64_t now_ms)
{
    return k->kind == HALF_ADDRESSES && now_ms < k->ends_ms;
}

bool
kept_known(const struct kept *k, int64_t now_ms)
{
    return k->kind != HALF_NONE && now_ms < k->ends_ms;
}

void
kept_drop(struct kept *k)
{
    mem_free(k->bytes);
    *k = (struct kept){.kind = HALF_NONE};
}

void
kept_put(struct kept *k, enum half half, const struct half_answer *h, int64_t ttl_s, int64_t now_ms)
{
    bool failed = h->kind == HALF_FAILED || h->kind == HALF_TIMEOUT;

    if (h->kind == HALF_NONE || (failed && kept_good(k, now_ms)))
        return;
    kept_drop(k);
    if (h->kind == HALF_ADDRESSES && (ttl_s == 0 || h->n == 0))
        return;
    k->kind = (uint8_t)h->kind;
    k->ends_ms = now_ms + ttl_s * 1000;
    if (h->kind == HALF_ADDRESSES) {
        k->n = (uint8_t)h->n;
        k->bytes = addresses_pack(h, half);
    }
}

void
kept_bound(struct kept *k, int64_t most_s, int64_t now_ms)
{
    int64_t most_ms = now_ms + most_s * 1000;

    if (k->ends_ms > most_ms)
        k->ends_ms = most_ms;
}

void
kept_own(struct kept *k, enum half half)
{
    size_t n_bytes = k->n * packed_bytes(half);

    k->bytes = n_bytes ? memcpy(mem_alloc(n_bytes), k->bytes, n_bytes) : NULL;
}
