/* cache/validate.h - conditional requests upstream and what their answers mean (RFC 9111
 * section 4.3). Pure. */
#ifndef CACHE_VALIDATE_H
#define CACHE_VALIDATE_H

#include "cache/head.h"

/* RFC 9111 section 4.3.1. */
bool head_has_validator(const struct head *h);
/* Replaces the client's own If-None-Match, If-Modified-Since, If-Match, If-Unmodified-Since,
 * If-Range and Range in f by those of the stored response(s). */
void validate_add_conditions(struct fields *f, struct arena *a, struct head *const *stored,
                             unsigned n);
/* Which of the stored responses does this 304 select (4.3.4)? Index, or -1. */
int validate_select(const struct response_head *not_modified, struct head *const *stored,
                    unsigned n);
/* Does a HEAD answer fit the stored GET response (4.3.5)? false: it invalidates it. Only for
 * answers with the status 200, and before forwarding_clean took their Content-Length (without one
 * only the validators are compared). */
bool validate_head_fits(const struct response_head *answer, const struct head *stored,
                        uint64_t stored_length);

#endif
