/* The kernel is asked once per connection, right after accept: what it remembers of a redirected
 * connection goes when the connection tracking times out. */
#include "proxy/net/intercept.h"

#include <errno.h>

#include "base/check.h"

/* Of the kernel's netfilter headers, which do not go together with libc's. */
enum { ORIGINAL_DST = 80, ORIGINAL_DST_V6 = 80 };

#ifndef IPV6_TRANSPARENT
#define IPV6_TRANSPARENT 75
#endif

static bool
is_same(const struct addr *a, const struct addr *b)
{
    return addr_port(a) == addr_port(b) && addr_compare(a, b) == 0;
}

/* Behind TPROXY on a wildcard only the port tells: the address may be anybody's. */
bool
intercept_is_diverted(enum diversion how, const struct addr *original, const struct addr *end,
                      const struct addr *listening)
{
    if (how == DIVERSION_REDIRECT)
        return !is_same(original, end);
    return addr_port(end) != addr_port(listening) ||
           (!addr_is_any(listening) && addr_compare(end, listening) != 0);
}

static struct addr
our_end(int fd)
{
    struct sockaddr_storage s = {0};
    socklen_t n = sizeof s;

    if (getsockname(fd, (struct sockaddr *)&s, &n) < 0)
        return ADDR_NONE;
    return addr_from_sockaddr((struct sockaddr *)&s);
}

/* Without connection tracking, or when it knows nothing of this connection: our end. */
static struct addr
before_redirect(int fd, const struct addr *end)
{
    struct sockaddr_storage s = {0};
    socklen_t n = sizeof s;
    bool v4 = end->sa.sa_family == AF_INET;

    if (getsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? ORIGINAL_DST : ORIGINAL_DST_V6, &s,
                   &n) < 0)
        return *end;
    return addr_from_sockaddr((struct sockaddr *)&s);
}

struct addr
intercept_destination(int fd, enum diversion how, const struct addr *listening)
{
    struct addr end = our_end(fd), original = end;

    if (end.sa.sa_family == AF_UNSPEC)
        return ADDR_NONE;
    if (how == DIVERSION_REDIRECT)
        original = before_redirect(fd, &end);
    return intercept_is_diverted(how, &original, &end, listening) ? original : ADDR_NONE;
}

int
intercept_make_transparent(int fd, sa_family_t family)
{
    int on = 1;
    int failed = family == AF_INET6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, &on, sizeof on)
                                    : setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof on);

    return failed ? -errno : 0;
}
