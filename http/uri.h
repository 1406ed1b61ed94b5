/* http/uri.h - the four request-target forms and the target URI (RFC 9112 section 3.2, RFC 3986,
 * RFC 9110 section 4).
 *
 * Strict: whitespace, controls, a bad port, an empty host, a host with odd characters are refused.
 * 8-bit bytes and backslashes are percent-encoded in paths and queries, refused elsewhere; the rest
 * of a path, its percent-escapes included, is passed on untouched. Userinfo is dropped (and
 * flagged), a fragment is refused. Hosts compare in lower case; one trailing dot is kept. Numeric
 * host forms that are not a dotted quad (0x7f.1, 2130706433, 127.1) are refused, so that access
 * lists see every address as what it is. */
#ifndef HTTP_URI_H
#define HTTP_URI_H

#include "base/addr.h"
#include "base/arena.h"
#include "http/method.h"

enum uri_form { URI_ABSOLUTE, URI_ORIGIN, URI_AUTHORITY, URI_ASTERISK };

struct uri {
    enum uri_form form;
    struct span scheme;  /* lower case; empty for the other forms */
    struct span host;    /* lower case, IPv6 without brackets; empty when the form has none */
    struct addr literal; /* AF_UNSPEC when host is a name; port not set */
    uint16_t port; /* given or the scheme's default (http 80, https 443, ftp 21); 0 when unknown */
    bool port_given, had_userinfo;
    struct span path; /* path and query, "/" when empty; may be "*" for OPTIONS */
};

/* false: *why says what is wrong (a static sentence). What is not as it was received, like a
 * lower-cased host, is allocated from a; path is at most three times as long as it was. */
bool uri_parse_target(struct span target, enum method m, struct arena *a, struct uri *out,
                      const char **why);
/* "host", "host:port", "[::1]:80" as in Host and CONNECT. default_port 0: a port is required. */
bool uri_parse_authority(struct span text, uint16_t default_port, struct arena *a, struct uri *out,
                         const char **why);
/* The absolute form of a relative or absolute reference (Location, Content-Location); false when it
 * makes none. RFC 3986 section 5.2 */
bool uri_resolve(const struct uri *base, struct span reference, struct arena *a, struct uri *out);
/* Canonical text: scheme://host[:port when not default]path. This is the store's key text and what
 * logs show. */
struct span uri_text(const struct uri *u, struct arena *a);
/* host[:port when not the scheme's default], brackets for IPv6: the Host field to send. */
/* RFC 9110 section 7.2. */
struct span uri_host_field(const struct uri *u, struct arena *a);
/* RFC 9110 section 4.3.1. */
bool uri_same_origin(const struct uri *a, const struct uri *b);
/* RFC 3986 section 3.2.2. */
bool uri_host_is_name(struct span host); /* letters, digits, '-', '_', '.'; labels 1..63, 253 in
                                            all, one trailing dot allowed */

#endif
