/* http/fault.h - why there is no (whole) response: one enumeration with the words of RFC 9209. */
#ifndef HTTP_FAULT_H
#define HTTP_FAULT_H

#include "base/log.h"
#include "base/span.h"

enum fault {
    FAULT_NONE,
#define FAULT(kind, status, token, level, page, sentence) FAULT_##kind,
#include "http/faults.def"
#undef FAULT
    FAULTS
};

unsigned fault_status(enum fault f);
const char *fault_token(enum fault f); /* RFC 9209 error token, "" when none */
enum log_level fault_level(enum fault f);
const char *fault_page(enum fault f); /* "ERR_DNS_FAIL" */
const char *fault_sentence(enum fault f);
const char *fault_name(enum fault f); /* "DNS_TIMEOUT" */

#endif
