/* proxy/policy/upstream_policy.h - what connections to next hops need of a configuration. Plain
 * data. */
#ifndef PROXY_POLICY_UPSTREAM_POLICY_H
#define PROXY_POLICY_UPSTREAM_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "http/h1_parse.h"

struct upstream_policy {
    struct h1_limits head_limits;
    bool persistent;
    int64_t connect_timeout_ms; /* for each address */
    int64_t forward_timeout_ms; /* for finding a way as a whole */
    int64_t stagger_ms;         /* before the next address is tried beside the last */
    int64_t read_timeout_ms, idle_ms, life_ms;
    unsigned max_tries;
    uint64_t quick_abort_min, quick_abort_max; /* bytes left */
    unsigned quick_abort_pct;
};

#endif
