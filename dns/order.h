/* dns/order.h - the answers for the two families become one (RFC 8305 section 4).
 *
 * Pure: no clock, no I/O, no allocation. */
#ifndef DNS_ORDER_H
#define DNS_ORDER_H

#include "dns/resolver.h"

enum half { HALF_V6, HALF_V4, HALVES };
enum half_kind {
    HALF_NONE, /* not asked, or nothing that may be kept */
    HALF_ADDRESSES,
    HALF_NO_NAME, /* NXDOMAIN */
    HALF_NO_DATA, /* the name exists, without addresses of this family */
    HALF_FAILED,
    HALF_TIMEOUT
};

struct half_answer { /* what is known of one family */
    enum half_kind kind;
    unsigned n;
    int64_t ttl_s;
    struct addr at[DNS_ADDRESSES];
};

/* Once, and while there is room. */
void half_add(struct half_answer *h, const struct addr *a);
enum half half_of(const struct addr *a);

/* h: HALVES of them. Status, addresses and ttl_s of *out; from_cache is the caller's. worked: the
 * address of the last connection that came about, or NULL. It comes first, or, when it is gone, its
 * family does. */
void order_answer(const struct half_answer *h, const struct addr *worked, bool v4_first,
                  struct dns_answer *out);

#endif
