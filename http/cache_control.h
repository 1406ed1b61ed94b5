/* http/cache_control.h - Cache-Control of requests and responses (RFC 9111 section 5.2, RFC 5861,
 * RFC 8246). Pure.
 *
 * Directive names fold case. delta-seconds: digits only, above 2^31 clamped to 2^31; quoted numbers
 * and junk make the directive count as Squid does: "100a" reads 100, "3600.5" reads 3600, a quoted
 * max-age is ignored. Of two max-age the first counts. Unknown directives are skipped. Commas
 * inside quoted strings do not separate. */
#ifndef HTTP_CACHE_CONTROL_H
#define HTTP_CACHE_CONTROL_H

#include "http/field.h"

struct cache_control {
    bool present; /* any Cache-Control line at all */
    bool no_cache, no_store, private_, public_, must_revalidate, proxy_revalidate, must_understand,
        no_transform, only_if_cached, immutable;
    bool no_cache_fields, private_fields; /* the directive came with field names: see *_names */
    struct span no_cache_names, private_names; /* raw list inside the quotes; borrows */
    bool max_stale_any;                        /* max-stale without a value */
    int64_t max_age_s, s_maxage_s, min_fresh_s, max_stale_s, stale_while_revalidate_s,
        stale_if_error_s; /* -1: absent */
};

struct cache_control cache_control_parse(const struct fields *f);
#define CACHE_CONTROL_NONE                                                                         \
    ((struct cache_control){.max_age_s = -1,                                                       \
                            .s_maxage_s = -1,                                                      \
                            .min_fresh_s = -1,                                                     \
                            .max_stale_s = -1,                                                     \
                            .stale_while_revalidate_s = -1,                                        \
                            .stale_if_error_s = -1})

#endif
