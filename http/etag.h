/* http/etag.h - entity tags (RFC 9110 section 8.8.3). Pure. */
#ifndef HTTP_ETAG_H
#define HTTP_ETAG_H

#include "base/span.h"

/* RFC 9110 section 8.8.3. */
bool etag_is_valid(struct span tag); /* [W/]"..." ; unquoted or misspelt: false */
bool etag_is_weak(struct span tag);
bool etag_match_weak(struct span a, struct span b); /* 8.8.3.2 */
bool etag_match_strong(struct span a, struct span b);
/* Is tag among the members of an If-Match/If-None-Match value? "*" is the caller's. */
/* RFC 9110 sections 13.1.1, 13.1.2. */
bool etag_list_has(struct span value, struct span tag, bool strong);

#endif
