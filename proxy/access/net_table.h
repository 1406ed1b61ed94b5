/* proxy/access/net_table.h - many networks and ranges, one question: is this address in one of
 * them?
 *
 * Add all, seal once, then ask from any thread: a binary search over merged ranges. */
#ifndef PROXY_ACCESS_NET_TABLE_H
#define PROXY_ACCESS_NET_TABLE_H

#include "base/addr.h"

struct net_range4 {
    uint32_t first, last;
};

struct net_range6 {
    unsigned __int128 first, last;
};

struct net_table { /* zeroed: empty */
    struct net_range4 *v4;
    struct net_range6 *v6;
    unsigned n4, n6, cap4, cap6;
};

void net_table_add(struct net_table *t, const struct net *n);
void net_table_add_family(struct net_table *t,
                          int family); /* every address of AF_INET or AF_INET6 */
void net_table_seal(struct net_table *t);
bool net_table_has(const struct net_table *t, const struct addr *a);
void net_table_free(struct net_table *t);

#endif
