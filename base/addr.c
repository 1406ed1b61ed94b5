/* base/addr.c - socket addresses and networks.
 *
 * Text becomes an address only when it is the one strict form of it. Access lists compare
 * addresses, so the laxer forms that inet_aton takes (0x7f.1, 017700000001, 127.1) are not names
 * of hosts in disguise here: they are no addresses at all. A v4-mapped address is turned into its
 * IPv4 address wherever one comes in, or an access list for 127.0.0.0/8 could be walked around. */
#include "base/addr.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/check.h"

enum { V4_BITS = 32, V6_BITS = 128, MAPPED_BITS = V6_BITS - V4_BITS };

/* ---- addresses ---- */

static bool
is_mapped(const struct in6_addr *a)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(a->s6_addr, mapped, sizeof mapped) == 0;
}

static struct addr
unmapped(const struct sockaddr_in6 *v6)
{
    struct addr out = {.v4 = {.sin_family = AF_INET, .sin_port = v6->sin6_port}};

    memcpy(&out.v4.sin_addr, v6->sin6_addr.s6_addr + 12, 4);
    return out;
}

/* sa may be unaligned inside somebody's buffer, hence the copies. The scope stays: a link-local
 * address cannot be reached without it. */
struct addr
addr_from_sockaddr(const struct sockaddr *sa)
{
    struct addr out = ADDR_NONE;
    struct sockaddr_in6 v6;
    sa_family_t family = AF_UNSPEC;

    if (sa)
        memcpy(&family, (const char *)sa + offsetof(struct sockaddr, sa_family), sizeof family);
    if (family == AF_INET) {
        memcpy(&out.v4, sa, sizeof out.v4);
        memset(out.v4.sin_zero, 0, sizeof out.v4.sin_zero);
    } else if (family == AF_INET6) {
        memcpy(&v6, sa, sizeof v6);
        if (is_mapped(&v6.sin6_addr))
            return unmapped(&v6);
        v6.sin6_flowinfo = 0;
        out.v6 = v6;
    }
    return out;
}

/* inet_pton is strict: four decimal octets without leading zeros, no zone, no brackets. What it
 * cannot see is a NUL inside the span; the set of characters takes care of that. */
static bool
text_copy(struct span text, const char *allowed, char out[INET6_ADDRSTRLEN])
{
    if (text.n == 0 || text.n >= INET6_ADDRSTRLEN)
        return false;
    memcpy(out, text.at, text.n);
    out[text.n] = '\0';
    return strspn(out, allowed) == text.n;
}

bool
addr_parse(struct span text, struct addr *out)
{
    char copy[INET6_ADDRSTRLEN];
    struct addr a = ADDR_NONE;

    if (!text_copy(text, "0123456789abcdefABCDEF:.", copy))
        return false;
    if (inet_pton(AF_INET, copy, &a.v4.sin_addr) == 1) {
        a.v4.sin_family = AF_INET;
    } else if (inet_pton(AF_INET6, copy, &a.v6.sin6_addr) == 1) {
        a.v6.sin6_family = AF_INET6;
        if (is_mapped(&a.v6.sin6_addr))
            a = unmapped(&a.v6);
    } else {
        return false;
    }
    *out = a;
    return true;
}

uint16_t
addr_port(const struct addr *a)
{
    switch (a->sa.sa_family) {
    case AF_INET:
        return ntohs(a->v4.sin_port);
    case AF_INET6:
        return ntohs(a->v6.sin6_port);
    }
    return 0;
}

void
addr_set_port(struct addr *a, uint16_t port)
{
    if (a->sa.sa_family == AF_INET)
        a->v4.sin_port = htons(port);
    else if (a->sa.sa_family == AF_INET6)
        a->v6.sin6_port = htons(port);
}

socklen_t
addr_len(const struct addr *a)
{
    switch (a->sa.sa_family) {
    case AF_INET:
        return sizeof a->v4;
    case AF_INET6:
        return sizeof a->v6;
    }
    return 0;
}

/* The bytes of the address in network order, and how many bits they are. */
static unsigned char *
addr_bytes(const struct addr *a, unsigned *bits)
{
    switch (a->sa.sa_family) {
    case AF_INET:
        *bits = V4_BITS;
        return (unsigned char *)&a->v4.sin_addr;
    case AF_INET6:
        *bits = V6_BITS;
        return (unsigned char *)&a->v6.sin6_addr;
    }
    *bits = 0;
    return NULL;
}

size_t
addr_format(const struct addr *a, char *out)
{
    unsigned bits;
    const void *bytes = addr_bytes(a, &bits);

    if (bytes == NULL || inet_ntop(a->sa.sa_family, bytes, out, ADDR_TEXT_MAX) == NULL) {
        strcpy(out, "-");
        return 1;
    }
    return strlen(out);
}

size_t
addr_format_port(const struct addr *a, char *out)
{
    char text[ADDR_TEXT_MAX];
    size_t n = addr_format(a, text);
    const char *form = a->sa.sa_family == AF_INET6 ? "[%.*s]:%u" : "%.*s:%u";

    if (a->sa.sa_family != AF_INET && a->sa.sa_family != AF_INET6)
        return (size_t)snprintf(out, ADDR_TEXT_MAX, "-");
    n = n < INET6_ADDRSTRLEN ? n : INET6_ADDRSTRLEN;
    return (size_t)snprintf(out, ADDR_TEXT_MAX, form, (int)n, text, (unsigned)addr_port(a));
}

int
addr_compare(const struct addr *a, const struct addr *b)
{
    unsigned bits;
    const unsigned char *x = addr_bytes(a, &bits), *y = addr_bytes(b, &bits);

    if (a->sa.sa_family != b->sa.sa_family)
        return a->sa.sa_family < b->sa.sa_family ? -1 : 1;
    return bits ? memcmp(x, y, bits / 8) : 0;
}

/* An address that somebody put together by hand may still be mapped: here it must not matter. */
static const unsigned char *
v4_bytes(const struct addr *a)
{
    if (a->sa.sa_family == AF_INET)
        return (const unsigned char *)&a->v4.sin_addr;
    if (a->sa.sa_family == AF_INET6 && is_mapped(&a->v6.sin6_addr))
        return a->v6.sin6_addr.s6_addr + 12;
    return NULL;
}

bool
addr_is_any(const struct addr *a)
{
    return a->sa.sa_family == AF_INET ? a->v4.sin_addr.s_addr == INADDR_ANY
                                      : IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr);
}

bool
addr_is_loopback(const struct addr *a)
{
    const unsigned char *v4 = v4_bytes(a);

    if (v4)
        return v4[0] == 127 || v4[0] == 0;
    return a->sa.sa_family == AF_INET6 &&
           (IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr) || IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr));
}

bool
addr_is_linklocal(const struct addr *a)
{
    const unsigned char *v4 = v4_bytes(a);

    if (v4)
        return v4[0] == 169 && v4[1] == 254;
    return a->sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&a->v6.sin6_addr);
}

/* ---- networks ---- */

void
addr_keep_prefix(struct addr *a, unsigned prefix)
{
    unsigned bits;
    unsigned char *bytes = addr_bytes(a, &bits);

    for (unsigned i = prefix / 8; i < bits / 8; i++)
        bytes[i] &= (unsigned char)(i == prefix / 8 ? 0xff00 >> prefix % 8 : 0);
}

/* "255.255.255.0": ones first, then zeros only. */
static bool
mask_parse(struct span text, unsigned *prefix)
{
    struct addr mask;
    uint32_t m;

    if (!addr_parse(text, &mask) || span_index(text, ':') < text.n)
        return false;
    m = ntohl(mask.v4.sin_addr.s_addr);
    *prefix = (unsigned)__builtin_popcount(m);
    return m == (*prefix ? ~(uint32_t)0 << (V4_BITS - *prefix) : 0);
}

/* What follows the slash, for an address written as `of`. A mapped address is IPv4 by now, but its
 * prefix was written for 128 bits. */
static bool
prefix_parse(struct span text, struct span of, const struct addr *a, unsigned *prefix)
{
    bool mapped = a->sa.sa_family == AF_INET && span_index(of, ':') < of.n;
    uint64_t bits;

    if (span_index(text, '.') < text.n)
        return a->sa.sa_family == AF_INET && !mapped && mask_parse(text, prefix);
    if (!span_to_uint(text, a->sa.sa_family == AF_INET && !mapped ? V4_BITS : V6_BITS, &bits))
        return false;
    if ((text.n > 1 && text.at[0] == '0') || (mapped && bits < MAPPED_BITS))
        return false;
    *prefix = (unsigned)bits - (mapped ? MAPPED_BITS : 0);
    return true;
}

static bool
range_parse(struct span first, struct span last, struct net *n)
{
    if (!addr_parse(first, &n->first) || !addr_parse(last, &n->last))
        return false;
    return n->first.sa.sa_family == n->last.sa.sa_family && addr_compare(&n->first, &n->last) <= 0;
}

bool
net_parse(struct span text, struct net *out)
{
    size_t slash = span_index(text, '/'), dash = span_index(text, '-');
    struct span addresses = span_first(text, slash), last = addresses;
    struct net n = {.last = ADDR_NONE};

    if (dash < slash) {
        last = span_skip(addresses, dash + 1);
        if (!range_parse(span_first(addresses, dash), last, &n))
            return false;
    } else if (!addr_parse(addresses, &n.first)) {
        return false;
    }
    n.prefix = n.first.sa.sa_family == AF_INET ? V4_BITS : V6_BITS;
    if (slash < text.n && !prefix_parse(span_skip(text, slash + 1), last, &n.first, &n.prefix))
        return false;
    addr_keep_prefix(&n.first, n.prefix);
    addr_keep_prefix(&n.last, n.prefix);
    *out = n;
    return true;
}

bool
net_has(const struct net *n, const struct addr *a)
{
    struct addr masked = *a;

    if (a->sa.sa_family != n->first.sa.sa_family || a->sa.sa_family == AF_UNSPEC)
        return false;
    addr_keep_prefix(&masked, n->prefix);
    if (n->last.sa.sa_family == AF_UNSPEC)
        return addr_compare(&masked, &n->first) == 0;
    return addr_compare(&n->first, &masked) <= 0 && addr_compare(&masked, &n->last) <= 0;
}
