/* base/addr.h - socket addresses and networks (RFC 4291, RFC 5952 text).
 *
 * IPv4-mapped IPv6 addresses are un-mapped by addr_from_sockaddr, addr_parse and so never met
 * elsewhere: 127.0.0.1 and ::ffff:127.0.0.1 are one address. */
#ifndef BASE_ADDR_H
#define BASE_ADDR_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/span.h"

struct addr {
    union {
        struct sockaddr sa;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    };
};

struct net { /* a network (prefix), or a range first..last when last.sa.sa_family != 0 */
    struct addr first, last;
    unsigned prefix;
};

#define ADDR_TEXT_MAX 64
#define ADDR_NONE ((struct addr){.sa.sa_family = AF_UNSPEC})

struct addr addr_from_sockaddr(const struct sockaddr *sa);
bool
addr_parse(struct span text,
           struct addr *out); /* strict dotted quad or IPv6 without brackets; no port; port is 0 */
uint16_t addr_port(const struct addr *a);
void addr_set_port(struct addr *a, uint16_t port);
socklen_t addr_len(const struct addr *a);
/* Without and with port ("[::1]:80"); returns the length; out holds ADDR_TEXT_MAX. */
size_t addr_format(const struct addr *a, char *out);
size_t addr_format_port(const struct addr *a, char *out);
int addr_compare(const struct addr *a,
                 const struct addr *b); /* family, then bytes; ports ignored */
bool
addr_is_loopback(const struct addr *a); /* 127/8, ::1, and 0/8, :: which the kernel takes for it */
bool addr_is_any(const struct addr *a); /* 0.0.0.0 or ::: a listener's, no destination */
bool
addr_is_linklocal(const struct addr *a); /* 169.254/16 (metadata services live there), fe80::/10 */
/* "10.0.0.0/8", "192.168.1.0/255.255.255.0", "::1", "10.0.0.1-10.0.0.9", "10.0.0.1-10.0.0.9/32".
 * Host bits are cleared. false: not an address. */
bool net_parse(struct span text, struct net *out);
void addr_keep_prefix(struct addr *a, unsigned prefix); /* clears the bits behind it */
bool net_has(const struct net *n, const struct addr *a);

#endif
