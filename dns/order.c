/* dns/order.c - one list of addresses from two families.
 *
 * The families alternate from the first address on, so that a race of connects meets the other
 * family at its second try, and a long list of one family cannot push the other one out. */
#include "dns/order.h"

enum half
half_of(const struct addr *a)
{
    return a->sa.sa_family == AF_INET6 ? HALF_V6 : HALF_V4;
}

void
half_add(struct half_answer *h, const struct addr *a)
{
    for (unsigned i = 0; i < h->n; i++) {
        if (addr_compare(&h->at[i], a) == 0)
            return;
    }
    if (h->n == DNS_ADDRESSES)
        return;
    h->at[h->n] = *a;
    addr_set_port(&h->at[h->n++], 0);
}

static unsigned
usable(const struct half_answer *h)
{
    return h->kind == HALF_ADDRESSES ? h->n : 0;
}

static enum half
first_family(const struct addr *worked, bool v4_first)
{
    if (worked)
        return half_of(worked);
    return v4_first ? HALF_V4 : HALF_V6;
}

static unsigned
index_of(const struct half_answer *h, const struct addr *worked)
{
    for (unsigned i = 0; worked && i < usable(h); i++) {
        if (addr_compare(&h->at[i], worked) == 0)
            return i;
    }
    return 0;
}

/* The i-th address when the one at `front` is moved before the others. */
static const struct addr *
nth(const struct half_answer *h, unsigned i, unsigned front)
{
    if (i == 0)
        return &h->at[front];
    return &h->at[i <= front ? i - 1 : i];
}

static void
interleave(const struct half_answer *first, const struct half_answer *second, unsigned front,
           struct dns_answer *out)
{
    unsigned a = 0, b = 0;

    out->n = 0;
    while (out->n < DNS_ADDRESSES && (a < usable(first) || b < usable(second))) {
        if (a < usable(first))
            out->at[out->n++] = *nth(first, a++, front);
        if (b < usable(second) && out->n < DNS_ADDRESSES)
            out->at[out->n++] = second->at[b++];
    }
}

/* Neither family has an address. NXDOMAIN is said of the name, not of a family (RFC 2308 section
 * 2.1), so one of them is enough; a family that is only missing leaves the other's failure open. */
static enum dns_status
status_without(const struct half_answer *h)
{
    bool none = true, late = false;

    for (unsigned i = 0; i < HALVES; i++) {
        if (h[i].kind == HALF_NO_NAME)
            return DNS_NO_NAME;
        none = none && (h[i].kind == HALF_NO_DATA || h[i].kind == HALF_ADDRESSES);
        late = late || h[i].kind == HALF_TIMEOUT;
    }
    if (none)
        return DNS_NO_NAME;
    return late ? DNS_TIMEOUT : DNS_FAILED;
}

/* With addresses the ones without do not count: they say nothing about those. */
static int64_t
smallest_ttl(const struct half_answer *h, bool of_addresses)
{
    int64_t ttl_s = INT64_MAX;

    for (unsigned i = 0; i < HALVES; i++) {
        if (h[i].kind == HALF_NONE || (of_addresses && usable(&h[i]) == 0))
            continue;
        if (h[i].ttl_s < ttl_s)
            ttl_s = h[i].ttl_s;
    }
    return ttl_s == INT64_MAX ? 0 : ttl_s;
}

void
order_answer(const struct half_answer *h, const struct addr *worked, bool v4_first,
             struct dns_answer *out)
{
    enum half first = first_family(worked, v4_first);

    interleave(&h[first], &h[1 - first], index_of(&h[first], worked), out);
    out->status = out->n > 0 ? DNS_OK : status_without(h);
    out->ttl_s = smallest_ttl(h, out->n > 0);
}
