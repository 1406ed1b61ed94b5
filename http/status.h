/* http/status.h - status codes (RFC 9110 section 15). */
#ifndef HTTP_STATUS_H
#define HTTP_STATUS_H

#include "base/span.h"

struct span status_reason(unsigned status); /* "Not Found"; "Unknown" for codes without a name */
bool status_is_known(unsigned status); /* defined in RFC 9110 or registered and understood here */
bool status_is_heuristically_cacheable(
    unsigned status); /* 15.1: 200 203 204 206 300 301 308 404 405 410 414 501 */
bool status_has_no_body(unsigned status); /* 1xx, 204, 304 */

#endif
