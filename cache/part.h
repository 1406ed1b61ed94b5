/* cache/part.h - responses that hold a part of a representation: which bytes, and what may be made
 * of them (RFC 9110 sections 14.4 and 15.3.7, RFC 9111 sections 3.3 and 3.4). Pure.
 *
 * A part comes from a 206, or from a 200 that broke off. Its bytes are placed when its length and
 * its Content-Range agree; then smaller ranges are cut out of it, and what follows is joined to it.
 * Else only a request with the very same Range may have it again. */
#ifndef CACHE_PART_H
#define CACHE_PART_H

#include "cache/head.h"
#include "http/range.h"

struct part {
    uint64_t from;     /* where in the representation its first byte stands */
    uint64_t whole;    /* complete length of the representation; 0: its bytes are not placed */
    struct span range; /* not placed: the Range field of its request */
};

/* What a 206 with a body of body_bytes (UINT64_MAX: not announced) holds, asked for with `range`.
 * false: nothing that could be used again. out->range borrows from range. */
/* RFC 9110 section 15.3.7, RFC 9111 section 3.3. */
bool part_of_response(const struct response_head *r, uint64_t body_bytes, struct span range,
                      struct part *out);
/* May n_bytes of it answer this Range alone? Placed: *cut says which bytes of the representation
 * these are. */
/* RFC 9111 section 3.3. */
bool part_answers(const struct part *p, uint64_t n_bytes, struct span range,
                  struct byte_range *cut);
/* Its rest may be asked for, because a strong validator tells whether the rest belongs to it. */
bool part_may_grow(const struct head *h);
/* The value for If-Range (RFC 9110 section 13.1.5); SPAN_NONE without a strong validator. */
struct span part_validator(const struct head *h);
/* Do both speak of the same bytes? Only with equal strong validators (RFC 9110 section 15.3.7.3).
 */
bool part_is_same(const struct head *a, const struct head *b);
/* Does a part that ends before `end` go on with, or into, one that starts at `from` and ends behind
 * it? */
/* RFC 9111 section 3.4. */
bool part_joins(const struct part *p, uint64_t n_bytes, uint64_t from, uint64_t end);
/* Is `old` of no use beside the newer one? */
/* RFC 9111 section 3.4. */
bool part_replaces(const struct part *newer, uint64_t newer_bytes, const struct part *old,
                   uint64_t old_bytes);

#endif
