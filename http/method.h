/* http/method.h - request methods and their properties (RFC 9110 section 9). Names are
 * case-sensitive. */
#ifndef HTTP_METHOD_H
#define HTTP_METHOD_H

#include "base/span.h"

enum method {
    METHOD_OTHER,
    METHOD_GET,
    METHOD_HEAD,
    METHOD_POST,
    METHOD_PUT,
    METHOD_DELETE,
    METHOD_CONNECT,
    METHOD_OPTIONS,
    METHOD_TRACE,
    METHOD_PATCH,
    METHOD_PURGE,
    METHOD_PROPFIND,
    METHOD_SEARCH,
    METHOD_QUERY
};

enum method method_of(struct span name);
struct span method_name(enum method m);   /* "-" for METHOD_OTHER */
bool method_is_safe(enum method m);       /* 9.2.1; METHOD_OTHER is not */
bool method_is_idempotent(enum method m); /* 9.2.2 */

#endif
