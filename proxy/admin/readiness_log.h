/* proxy/admin/readiness_log.h - what finding out which descriptors are ready has cost, as one line
 * of CSV for each interval: for plots, and for studies that go on for days.
 *
 * A line tells the interval alone, not the time since start; descriptors are those of its end. The
 * first line of a file names the columns. Not thread-safe: the manager's lock. */
#ifndef PROXY_ADMIN_READINESS_LOG_H
#define PROXY_ADMIN_READINESS_LOG_H

#include "proxy/admin/sampler.h"

struct readiness_log;

/* Appends to path. NULL: it can't be opened, which is told in the event log. */
struct readiness_log *readiness_log_open(const char *path, int64_t interval_ms,
                                         const struct totals *now);
void readiness_log_close(struct readiness_log **held);
void readiness_log_reopen(struct readiness_log *l); /* it was renamed */
bool readiness_log_is_due(const struct readiness_log *l, int64_t now_ns);
void readiness_log_add(struct readiness_log *l, const struct totals *now, const char *backend,
                       unsigned workers);

#endif
