/* dns/hosts.h - the hosts file: "address name [name...] [# comment]" a line.
 *
 * A table is immutable once made. What cannot be read on a line is skipped, as the system's own
 * resolver does: one odd line must not take the other names away. */
#ifndef DNS_HOSTS_H
#define DNS_HOSTS_H

#include <sys/types.h>
#include <time.h>

#include "dns/name.h"
#include "dns/order.h"

struct hosts;

struct hosts *hosts_new(struct span text);
void hosts_free(struct hosts **h);           /* NULL inside is fine */
uint64_t hosts_count(const struct hosts *h); /* names */
/* false: not there. A name is one whatever its last dot; out: HALVES of them,
 * all set. */
bool hosts_find(const struct hosts *h, const struct dns_name *name, struct half_answer *out);

struct hosts_stamp { /* which version of the file was read last */
    struct timespec mtime;
    off_t size;
    ino_t ino;
};

/* A new table when the file is another than *seen says, which is then brought up to date; NULL when
 * it is not, or cannot be read now (said in the log). A file that is gone is an empty table. */
struct hosts *hosts_reread(const char *path, struct hosts_stamp *seen);

#endif
