/* proxy/setup.h - a configuration snapshot becomes each module's options. The only file that
 * includes everybody is setup.c. */
#ifndef PROXY_SETUP_H
#define PROXY_SETUP_H

#include "base/buf.h"
struct conf;

struct setup;

/* Reads and compiles; problems go to `errors` (file:line: ...), notes to `notes`. NULL when there
 * are errors. path NULL: the built-in configuration. */
struct conf *setup_read(const char *path, struct buf *notes, struct buf *errors);
/* Does it compile (access lists, formats)? Opens nothing. */
bool setup_check(struct conf *c, struct buf *errors);
/* Binds the ports, opens the logs, starts the workers. NULL and a line in errors when something
 * can't be had. */
/* Makes the stores on disk that are not there yet (-z). Opens nothing else. */
bool setup_prepare(struct conf *c, struct buf *errors);
struct setup *setup_start(struct conf *c, struct buf *errors);
/* Swaps the configuration of running workers; on errors the old one stays. Lines about what needs a
 * restart go to notes. */
bool setup_reload(struct setup *s, const char *path, struct buf *notes, struct buf *errors);
void setup_rotate(struct setup *s); /* access logs and cache_log */
void setup_tick(struct setup *s);   /* once a second */
void setup_stop(struct setup *s, int64_t grace_ms);
bool setup_is_done(const struct setup *s);
void setup_free(struct setup **s); /* waits for the workers, writes out the logs */
const struct conf *setup_conf(const struct setup *s);

#endif
