/* base/fds.h - every descriptor of the process is opened or adopted with a purpose, and closed
 * here.
 *
 * The census counts descriptors by purpose (now, peak and when, and the integral over time for the
 * mean) and in all, and knows the headroom to RLIMIT_NOFILE. Thread-safe. Tables grow with use;
 * nothing is sized from the limit. Purposes change over a descriptor's life (client active <->
 * idle).
 *
 * The reserve: one descriptor kept open on /dev/null, so that at the limit a listener can still
 * accept and refuse or shed. fds_reserve_use() closes it, fds_reserve_refill() opens it again. */
#ifndef BASE_FDS_H
#define BASE_FDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

enum fd_purpose {
    FD_LISTENING,
    FD_CLIENT_ACTIVE,
    FD_CLIENT_IDLE,
    FD_SERVER_ACTIVE,
    FD_SERVER_IDLE,
    FD_TUNNEL,
    FD_DNS,
    FD_DISK,
    FD_CHILD,
    FD_LOG,
    FD_OTHER,
    FD_PURPOSES
};

struct fd_census_row {
    uint64_t now, peak;
    int64_t peak_at_wall_s;
    double mean;             /* over the time since start */
    uint64_t opened, closed; /* totals */
};

const char *fd_purpose_name(enum fd_purpose p); /* "client active" */
void
fds_start(uint64_t soft_limit); /* 0: leave RLIMIT_NOFILE as it is; opens the reserve, adopts 0-2 */
void fds_adopt(int fd, enum fd_purpose p);   /* sets nothing on fd; counts it from now on */
void fds_purpose(int fd, enum fd_purpose p); /* now serves another purpose */
void fds_note(int fd, struct span text);     /* at most 63 bytes, for the filedescriptors report */
bool fds_has(int fd);                        /* is it counted? */
void fds_close(int fd);                      /* uncounts and closes; -1 is ignored */
void fds_forget(int fd);                     /* uncounts, somebody else closes (c-ares, libc) */
uint64_t fds_in_use(void);
uint64_t fds_largest(void); /* largest descriptor number in use */
uint64_t fds_peak(void);
uint64_t fds_limit(void);
void fds_census(struct fd_census_row rows[FD_PURPOSES]);
bool fds_reserve_use(void); /* false: the reserve is already spent */
void fds_reserve_refill(void);
/* Calls fn for every open descriptor, in order. */
void fds_each(void (*fn)(void *arg, int fd, enum fd_purpose p, const char *note, int64_t open_ms),
              void *arg);
/* The descriptor allocation question, for the readiness report: time in close(2), measured by
 * fds_close, and in socket, accept4 and the like, as far as their callers report it with
 * fds_open_took. ns and number of calls. */
void fds_cost(uint64_t *close_ns, uint64_t *closes);
void fds_open_took(int64_t ns);
void fds_open_cost(uint64_t *open_ns, uint64_t *opens);

#endif
