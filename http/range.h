/* http/range.h - Range and Content-Range in bytes (RFC 9110 section 14). Pure. */
#ifndef HTTP_RANGE_H
#define HTTP_RANGE_H

#include "base/span.h"

struct byte_range {
    uint64_t first, last;
}; /* inclusive */
enum range_result { RANGE_IGNORE, RANGE_OK, RANGE_UNSATISFIABLE };

/* Against a representation of `length` bytes. Unknown units, bad syntax, more than max ranges:
 * IGNORE. */
enum range_result range_parse(struct span value, uint64_t length, struct byte_range *out,
                              unsigned max, unsigned *n);
/* "bytes 0-9/100"; total may be unknown ("*"): *length_known false. */
bool content_range_parse(struct span value, struct byte_range *range, bool *length_known,
                         uint64_t *length);

#endif
