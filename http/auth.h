/* http/auth.h - log-ins that hold for a connection instead of a request (NTLM, Negotiate, Kerberos:
 * RFC 4559 section 6). Pure. */
#ifndef HTTP_AUTH_H
#define HTTP_AUTH_H

#include "http/field.h"

/* Authorization of a request names such a scheme. */
bool auth_binds_request(const struct fields *f);
/* A challenge, or what completes one, names such a scheme. */
bool auth_binds_response(const struct fields *f);

#endif
