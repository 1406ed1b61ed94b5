/* tools/trace/trace_time.h - the ways in which logs write a time.
 *
 * Pure. Times without a zone are taken as UTC: a log has one zone, and only differences matter. */
#ifndef TOOLS_TRACE_TRACE_TIME_H
#define TOOLS_TRACE_TRACE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

/* 1390498966.179, 1335542309, 2012-01-25T18:41:25.356, 2010-05-25-14:04:13, 2009/10/27 13:24:40,
 * 13/Mar/2020:21:14:41.850 +0000, 07/Aug/2015 00:02:18; brackets and quotes around are dropped.
 * *at_us: microseconds since the epoch. False: none of these, or a day that cannot be. */
bool trace_time_parse(struct span text, int64_t *at_us);
/* Digits, with or without a fraction, as millionths; false when anything else is there, or it is
 * above 10^12. */
bool trace_decimal_parse(struct span text, int64_t *millionths);

#endif
