/* cache/key.h - method + target URI -> 16-byte digest (xxHash3-128 with a per-process seed); the
 * full URI is compared on every hit. */
#ifndef CACHE_KEY_H
#define CACHE_KEY_H

#include "base/span.h"

struct cache_key {
    uint64_t digest[2];
    struct span uri; /* canonical text (http/uri.h uri_text); borrowed */
};

/* RFC 9111 section 2. */
struct cache_key cache_key_of(struct span canonical_uri);

#endif
