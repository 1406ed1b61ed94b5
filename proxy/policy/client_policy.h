/* proxy/policy/client_policy.h - what a client's connection needs of a configuration. Plain data.
 */
#ifndef PROXY_POLICY_CLIENT_POLICY_H
#define PROXY_POLICY_CLIENT_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "http/h1_parse.h"

struct client_policy {
    struct h1_limits head_limits;
    bool persistent;
    int64_t request_start_timeout_ms; /* from the accept to the first byte */
    int64_t request_timeout_ms;       /* from a head's first byte to its last */
    int64_t write_timeout_ms, lifetime_ms, idle_ms;
};

#endif
