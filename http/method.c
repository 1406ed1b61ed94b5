/* http/method.c - request methods.
 *
 * One table in the order of how often methods are met: GET, most requests, is the first entry, and
 * an entry of another length costs one comparison of numbers. */
#include "http/method.h"

static const struct span names[] = {
    [METHOD_OTHER] = {"-", 1},         [METHOD_GET] = {"GET", 3},
    [METHOD_HEAD] = {"HEAD", 4},       [METHOD_POST] = {"POST", 4},
    [METHOD_PUT] = {"PUT", 3},         [METHOD_DELETE] = {"DELETE", 6},
    [METHOD_CONNECT] = {"CONNECT", 7}, [METHOD_OPTIONS] = {"OPTIONS", 7},
    [METHOD_TRACE] = {"TRACE", 5},     [METHOD_PATCH] = {"PATCH", 5},
    [METHOD_PURGE] = {"PURGE", 5},     [METHOD_PROPFIND] = {"PROPFIND", 8},
    [METHOD_SEARCH] = {"SEARCH", 6},   [METHOD_QUERY] = {"QUERY", 5},
};

enum { METHODS = sizeof names / sizeof names[0] };

enum method
method_of(struct span name)
{
    for (unsigned m = METHOD_GET; m < METHODS; m++) {
        if (names[m].n == name.n && memcmp(names[m].at, name.at, name.n) == 0)
            return (enum method)m;
    }
    return METHOD_OTHER;
}

struct span
method_name(enum method m)
{
    return (unsigned)m < METHODS ? names[m] : names[METHOD_OTHER];
}

/* PROPFIND (RFC 4918), SEARCH (RFC 5323) and QUERY are registered as safe. */
bool
method_is_safe(enum method m)
{
    switch (m) {
    case METHOD_GET:
    case METHOD_HEAD:
    case METHOD_OPTIONS:
    case METHOD_TRACE:
    case METHOD_PROPFIND:
    case METHOD_SEARCH:
    case METHOD_QUERY:
        return true;
    default:
        return false;
    }
}

bool
method_is_idempotent(enum method m)
{
    return method_is_safe(m) || m == METHOD_PUT || m == METHOD_DELETE || m == METHOD_PURGE;
}
