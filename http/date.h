/* http/date.h - HTTP dates (RFC 9110 section 5.6.7). Pure. */
#ifndef HTTP_DATE_H
#define HTTP_DATE_H

#include "base/span.h"

#define DATE_TEXT_MAX 32
/* The three formats and nothing else: strict lengths, separators, digit counts; names of days,
 * months and GMT in any case; a day name that does not fit the date is accepted. RFC 850 years:
 * more than 50 years ahead of now_s means the past century. false: not a date. Seconds since the
 * epoch. */
bool date_parse(struct span text, int64_t now_s, int64_t *out_s);
/* RFC 9110 section 5.6.7. */
size_t date_format(int64_t at_s,
                   char out[DATE_TEXT_MAX]); /* IMF-fixdate, NUL-terminated; returns 29 */

#endif
