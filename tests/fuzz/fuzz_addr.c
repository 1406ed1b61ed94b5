/* tests/fuzz/fuzz_addr.c - addr_parse and net_parse over any bytes: what is taken must survive
 * being written and read again, and a network must hold its own ends. */
#include <stdlib.h>

#include "base/addr.h"

static void
must(bool claim)
{
    if (!claim)
        abort();
}

static void
try_addr(struct span text)
{
    struct addr a, again;
    char out[ADDR_TEXT_MAX];
    size_t n;

    if (!addr_parse(text, &a))
        return;
    must(a.sa.sa_family == AF_INET || a.sa.sa_family == AF_INET6);
    must(addr_port(&a) == 0);
    n = addr_format(&a, out);
    must(n < ADDR_TEXT_MAX && strlen(out) == n);
    must(addr_parse(span_of(out, n), &again) && addr_compare(&a, &again) == 0);
    addr_set_port(&a, 65535);
    must(addr_format_port(&a, out) < ADDR_TEXT_MAX);
}

static void
try_net(struct span text)
{
    struct net n;

    if (!net_parse(text, &n))
        return;
    must(n.prefix <= (n.first.sa.sa_family == AF_INET ? 32 : 128));
    must(net_has(&n, &n.first));
    if (n.last.sa.sa_family != AF_UNSPEC)
        must(net_has(&n, &n.last));
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    try_addr(span_of(bytes, n));
    try_net(span_of(bytes, n));
    return 0;
}
