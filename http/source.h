/* http/source.h - a body one can pull. Not asking is the back-pressure.
 *
 * peek lends up to max runs of bytes, valid until consume or close, and sets *n. After SOURCE_WAIT
 * the source queues the consumer's task once when there is something new (more bytes, the end, a
 * fault); never from inside peek. */
#ifndef HTTP_SOURCE_H
#define HTTP_SOURCE_H

#include <sys/uio.h>

#include "base/loop.h"
#include "base/span.h"
#include "http/fault.h"

enum source_state { SOURCE_DATA, SOURCE_WAIT, SOURCE_END, SOURCE_FAULT };

struct source;
struct source_ops {
    const char *name;
    enum source_state (*peek)(struct source *s, struct iovec *runs, int max, int *n);
    void (*consume)(struct source *s, size_t n_bytes);
    void (*close)(struct source *s); /* no wake after this; frees the source */
};

struct source {
    const struct source_ops *ops;
    struct loop *loop;      /* of the consumer */
    struct loop_task *wake; /* the consumer's task */
    enum fault fault;       /* why SOURCE_FAULT */
    int file_fd;            /* a single run with a base of NULL lies in this file, */
    uint64_t file_at;       /* from there on: see transport_sendfile */
    struct span trailer;    /* at SOURCE_END: raw "Name: value\r\n" lines, or empty */
};

static inline enum source_state
source_peek(struct source *s, struct iovec *runs, int max, int *n)
{
    return s->ops->peek(s, runs, max, n);
}

static inline void
source_consume(struct source *s, size_t n_bytes)
{
    s->ops->consume(s, n_bytes);
}

static inline void
source_close(struct source **s)
{
    struct source *gone = *s;

    *s = NULL;
    if (gone)
        gone->ops->close(gone);
}

#endif
