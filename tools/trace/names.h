/* tools/trace/names.h - texts to small numbers: clients, hosts, URLs.
 *
 * Kept is a 64-bit hash of each text, not the text: two of ten million would be taken for one with
 * a chance of about five in a million. 24 to 48 bytes a name. */
#ifndef TOOLS_TRACE_NAMES_H
#define TOOLS_TRACE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

struct names {
    uint64_t *hashes; /* 0: free */
    uint32_t *numbers;
    uint32_t room, n;
};

/* The text's number, in order of first appearance; *is_new (may be NULL): this is the first. */
uint32_t names_number(struct names *t, struct span text, bool *is_new);
bool names_has(const struct names *t, struct span text);
void names_free(struct names *t);

#endif
