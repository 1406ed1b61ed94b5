/* dns/kept.h - one family's answer as it is kept: packed, and with its end.
 *
 * Addresses are packed: most names have one or two, a struct dns_answer has room for 32. Zeroed it
 * is HALF_NONE and holds no memory. No locks, no clock: the caller passes now_ms. */
#ifndef DNS_KEPT_H
#define DNS_KEPT_H

#include "dns/order.h"

struct kept {
    uint8_t kind, n;
    int64_t ends_ms;
    unsigned char *bytes; /* n addresses of 4 or 16 bytes */
};

void kept_drop(struct kept *k);
/* HALF_NONE leaves it as it is. Addresses with ttl_s 0 end the older ones without being kept; a
 * failure does not displace addresses that are still good. */
void kept_put(struct kept *k, enum half half, const struct half_answer *h, int64_t ttl_s,
              int64_t now_ms);
void kept_read(const struct kept *k, enum half half, int64_t now_ms, struct half_answer *h);
/* It ends no later than this from now. */
void kept_bound(struct kept *k, int64_t most_s, int64_t now_ms);
/* After the struct was copied: its own memory. */
void kept_own(struct kept *k, enum half half);
bool kept_good(const struct kept *k, int64_t now_ms);  /* addresses that still hold */
bool kept_known(const struct kept *k, int64_t now_ms); /* addresses, none, or a failure */

#endif
