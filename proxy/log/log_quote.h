/* proxy/log/log_quote.h - bytes from outside written so that one record stays one line (private to
 * proxy/log). */
#ifndef PROXY_LOG_LOG_QUOTE_H
#define PROXY_LOG_LOG_QUOTE_H

#include "base/buf.h"

enum log_quote {
    QUOTE_PLAIN,    /* controls, blanks and 8-bit bytes as %XX: URLs, methods, media types */
    QUOTE_UNSAFE,   /* as PLAIN, and RFC 1738's unsafe characters too: field values outside quotes
                       (Squid's default) */
    QUOTE_STRING,   /* %": backslash before " and \, \r \n \t, other controls as \xHH */
    QUOTE_BRACKETS, /* %[: Squid's MIME blob: \r \n \\, and %hh for the rest, brackets among them */
    QUOTE_URL,      /* %#: as UNSAFE, and the percent sign itself */
    QUOTE_RAW,      /* %': nothing but the line ends */
    QUOTE_JSON,
    QUOTES
};

void log_quote_add(struct buf *out, enum log_quote q, struct span s);

#endif
