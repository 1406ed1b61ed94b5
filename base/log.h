/* base/log.h - the event log (Squid's cache_log): one line per event, to stderr or a file.
 *
 * Thread-safe; a line is written whole. The form is Squid's: "2026/12/01 00:15:44 kid0| text".
 * Repeated events should use log_event_every, which writes at most once per interval per place. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdint.h>

enum log_level {
    LOG_FATAL,
    LOG_ERROR,
    LOG_WARN,
    LOG_NOTE,
    LOG_INFO,
    LOG_DEBUG
}; /* default shown: up to LOG_NOTE */

void log_open(
    const char *path); /* NULL or "stderr": stderr. Keeps the old one, and says so, when it fails */
void log_reopen(void); /* after a rotation */
void log_show(enum log_level up_to);
void log_event(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
int log_due(int64_t *last_ms, int64_t every_ms);
#define log_event_every(every_ms, level, ...)                                                      \
    do {                                                                                           \
        static _Thread_local int64_t log_last_ms;                                                  \
        if (log_due(&log_last_ms, (every_ms)))                                                     \
            log_event((level), __VA_ARGS__);                                                       \
    } while (0)

#endif
