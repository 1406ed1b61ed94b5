/* cache/vary.h - selecting among variants (RFC 9111 section 4.1). Pure.
 *
 * A spec is the stored response's Vary names with the request's normalized values (whitespace
 * trimmed and folded around commas; Accept-Language and Accept-Encoding without case), in one
 * allocation-free text form built into an arena. */
#ifndef CACHE_VARY_H
#define CACHE_VARY_H

#include "http/message.h"

/* "name: value\nname: value\n" of the selecting fields named by Vary, sorted by name, lower case;
 * SPAN_NONE without Vary. A field the request does not have is written "name\n": absent only
 * matches absent. *never: a member "*" or one that is no field name: never matches a later request.
 * At most 64 names, more: never. */
/* RFC 9111 section 4.1. */
struct span vary_spec(const struct fields *response, const struct fields *request, struct arena *a,
                      bool *never);
/* RFC 9111 section 4.1. */
bool vary_is_never(const struct fields *response); /* the same *never, without building a spec */
/* Would this request select the response stored with spec? */
/* RFC 9111 section 4.1. */
bool vary_matches(struct span spec, const struct fields *request, struct arena *scratch);

#endif
