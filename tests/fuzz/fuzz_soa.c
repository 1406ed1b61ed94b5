/* tests/fuzz/fuzz_soa.c - soa_negative_ttl over any bytes: no read past the message, and no TTL
 * that has its highest bit set. */
#include <stdlib.h>

#include "dns/soa.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    uint32_t ttl_s = 0;

    if (soa_negative_ttl(span_of(bytes, n), &ttl_s) && (ttl_s > INT32_MAX || n < 12))
        abort();
    return 0;
}
