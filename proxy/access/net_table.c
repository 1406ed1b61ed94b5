/* net_table.c - networks as sorted ranges.
 *
 * A prefix is a range, so both are kept as first..last in host order. Overlaps are merged when the
 * table is sealed: what people call a mistake (10.0.0.0/8 beside 10.1.0.0/16) costs nothing, and a
 * search needs to look at one candidate only. A list of three networks fits a cache line; a country
 * list of 50,000 takes sixteen steps. */
#include "proxy/access/net_table.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "base/check.h"

static unsigned __int128
number_of6(const struct addr *a)
{
    unsigned __int128 v = 0;

    for (int i = 0; i < 16; i++)
        v = v << 8 | a->v6.sin6_addr.s6_addr[i];
    return v;
}

static void
add4(struct net_table *t, uint32_t first, uint32_t last)
{
    if (t->n4 == t->cap4) {
        t->cap4 = t->cap4 ? t->cap4 * 2 : 4;
        t->v4 = mem_realloc(t->v4, t->cap4 * sizeof *t->v4);
    }
    t->v4[t->n4++] = (struct net_range4){first, last};
}

static void
add6(struct net_table *t, unsigned __int128 first, unsigned __int128 last)
{
    if (t->n6 == t->cap6) {
        t->cap6 = t->cap6 ? t->cap6 * 2 : 4;
        t->v6 = mem_realloc(t->v6, t->cap6 * sizeof *t->v6);
    }
    t->v6[t->n6++] = (struct net_range6){first, last};
}

void
net_table_add(struct net_table *t, const struct net *n)
{
    bool is_range = n->last.sa.sa_family != AF_UNSPEC;

    if (n->first.sa.sa_family == AF_INET) {
        uint32_t first = ntohl(n->first.v4.sin_addr.s_addr);
        uint32_t host_bits = n->prefix >= 32 ? 0 : UINT32_MAX >> n->prefix;

        add4(t, first, is_range ? ntohl(n->last.v4.sin_addr.s_addr) : first | host_bits);
    } else if (n->first.sa.sa_family == AF_INET6) {
        unsigned __int128 first = number_of6(&n->first), all = ~(unsigned __int128)0;
        unsigned __int128 host_bits = n->prefix >= 128 ? 0 : all >> n->prefix;

        add6(t, first, is_range ? number_of6(&n->last) : first | host_bits);
    }
}

void
net_table_add_family(struct net_table *t, int family)
{
    if (family == AF_INET)
        add4(t, 0, UINT32_MAX);
    else
        add6(t, 0, ~(unsigned __int128)0);
}

static int
by_first4(const void *a, const void *b)
{
    uint32_t x = ((const struct net_range4 *)a)->first, y = ((const struct net_range4 *)b)->first;

    return (x > y) - (x < y);
}

static int
by_first6(const void *a, const void *b)
{
    unsigned __int128 x = ((const struct net_range6 *)a)->first;
    unsigned __int128 y = ((const struct net_range6 *)b)->first;

    return (x > y) - (x < y);
}

void
net_table_seal(struct net_table *t)
{
    unsigned kept = 0;

    if (t->n4 > 1)
        qsort(t->v4, t->n4, sizeof *t->v4, by_first4);
    for (unsigned i = 1; i < t->n4; i++) {
        if (t->v4[i].first > t->v4[kept].last)
            t->v4[++kept] = t->v4[i];
        else if (t->v4[i].last > t->v4[kept].last)
            t->v4[kept].last = t->v4[i].last;
    }
    t->n4 = t->n4 ? kept + 1 : 0;

    kept = 0;
    if (t->n6 > 1)
        qsort(t->v6, t->n6, sizeof *t->v6, by_first6);
    for (unsigned i = 1; i < t->n6; i++) {
        if (t->v6[i].first > t->v6[kept].last)
            t->v6[++kept] = t->v6[i];
        else if (t->v6[i].last > t->v6[kept].last)
            t->v6[kept].last = t->v6[i].last;
    }
    t->n6 = t->n6 ? kept + 1 : 0;
}

/* The last range that starts at or before the address is the only one that can hold it. */
static bool
has4(const struct net_table *t, uint32_t a)
{
    unsigned low = 0, high = t->n4;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (t->v4[middle].first <= a)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && a <= t->v4[low - 1].last;
}

static bool
has6(const struct net_table *t, unsigned __int128 a)
{
    unsigned low = 0, high = t->n6;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (t->v6[middle].first <= a)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && a <= t->v6[low - 1].last;
}

bool
net_table_has(const struct net_table *t, const struct addr *a)
{
    if (a->sa.sa_family == AF_INET)
        return t->n4 > 0 && has4(t, ntohl(a->v4.sin_addr.s_addr));
    if (a->sa.sa_family == AF_INET6)
        return t->n6 > 0 && has6(t, number_of6(a));
    return false;
}

void
net_table_free(struct net_table *t)
{
    mem_free(t->v4);
    mem_free(t->v6);
    *t = (struct net_table){0};
}
