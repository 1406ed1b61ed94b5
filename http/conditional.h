/* http/conditional.h - preconditions against a stored representation, in their order (RFC 9110
 * section 13.2.2). Pure. */
#ifndef HTTP_CONDITIONAL_H
#define HTTP_CONDITIONAL_H

#include "http/message.h"

struct selected {            /* what is known of the selected representation */
    struct span etag;        /* empty: none */
    int64_t last_modified_s; /* -1: none */
    int64_t date_s; /* -1: none; stands in for a missing Last-Modified (If-Modified-Since) */
};
enum precondition { PRECONDITION_PASS, PRECONDITION_NOT_MODIFIED, PRECONDITION_FAILED };

/* RFC 9110 section 13.2.2. */
enum precondition conditional_evaluate(const struct request_head *r, const struct selected *s,
                                       int64_t now_s);
/* RFC 9110 section 13.1. */
bool conditional_is_present(const struct fields *f); /* any If-* but If-Range */
bool conditional_if_range_holds(const struct fields *f, const struct selected *s,
                                int64_t now_s); /* 13.1.5; true when absent */

#endif
