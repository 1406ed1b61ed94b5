/* base/child_pool.h - N equal children that answer requests: one line in, one line out.
 *
 * What the words of a line mean is the caller's business; channel-ids are ours. With concurrency 0
 * a child has one request at a time and no ids are sent; with N it has up to N, each line begins
 * with an id and a space, and replies may come in any order, as in Squid's helper protocol.
 *
 * A request waits in the queue until a child has room, and is answered exactly once, unless it is
 * cancelled: with the reply, or because the time is over, because its child ended (whether to ask
 * again is for the caller to decide: the request may be what the child died of, or may not have
 * been read), or because there is no child to be had. Answers come from the loop, never from inside
 * a call here; after child_pool_free none comes.
 *
 * A child that ends without being told to, or is killed because it sent a line that answers
 * nothing, sent too long a line, or left a request unanswered for a further whole time-out, is
 * replaced: after restart_first_ms, twice that, and so on up to restart_most_ms. One that has lived
 * for settle_ms or given 32 replies has settled, and what came before is forgiven. After
 * broken_after failures with no settled child the pool is broken, and says so in the event log: as
 * long as no child runs, requests are refused at once, and one child is tried every restart_most_ms
 * until one settles.
 *
 * A pool and all it calls live on one loop. So W workers have W pools, and the numbers of children
 * are per worker, as with Squid's SMP workers. One pool for all would send each request and each
 * reply through another thread's loop, and a request to be cancelled might just then be answered on
 * that thread. Who wants fewer processes gives each worker its share of the number. */
#ifndef BASE_CHILD_POOL_H
#define BASE_CHILD_POOL_H

#include "base/loop.h"
#include "base/span.h"

struct child_pool_options {  /* copied, with its texts */
    const char *name;        /* for the event log */
    const char *const *argv; /* argv[0] is a path */
    unsigned most;           /* children; at least 1 */
    unsigned startup;        /* that many at once and always */
    unsigned idle;           /* started ahead when requests find no room */
    unsigned concurrency;    /* requests a child has at a time; 0: one, without ids */
    unsigned queue_most;     /* requests beyond what `most` children take */
    size_t line_most;        /* bytes of a request or of a reply with its id */
    int64_t timeout_ms;      /* of a request, from child_pool_ask on */
    int64_t restart_first_ms, restart_most_ms;
    unsigned broken_after;
    int64_t settle_ms;
    int64_t term_after_ms, kill_after_ms; /* when stopping: after closing stdin, after SIGTERM */
};

enum child_result {
    CHILD_REPLIED,
    CHILD_TIMED_OUT,
    CHILD_ENDED,      /* the one that had the request */
    CHILD_UNAVAILABLE /* the pool is broken or stopping; no child has seen the request */
};

struct child_pool;
struct child_request;
/* line: the reply, without id and end, valid until return; empty unless CHILD_REPLIED. */
typedef void child_reply_fn(void *owner, enum child_result result, struct span line);

struct child_pool *child_pool_new(struct loop *l, const struct child_pool_options *o);
/* 0: fn will be called; *r can be cancelled until then. -EAGAIN: the queue is full. -EINVAL: not
 * one line, or too long. -EIO: the pool is broken. -ESHUTDOWN: it is stopping. */
int child_pool_ask(struct child_pool *p, struct span line, child_reply_fn *fn, void *owner,
                   struct child_request **r);
/* No answer after this; NULL is fine. One that a child has keeps its place until the child replies.
 */
void child_request_cancel(struct child_request **r);
/* What waits is answered CHILD_UNAVAILABLE, what the children have they may still answer; then they
 * are made to end, and `stopped` is called once, when all are gone. */
void child_pool_stop(struct child_pool *p, loop_fn *stopped, void *owner);
/* Children that still live are killed. The loop needs one more turn for the memory. */
void child_pool_free(struct child_pool **held);

struct child_pool_figures {
    unsigned children, waiting, asked; /* now; asked: requests that children have */
    uint64_t started, ended, replies, timed_out;
    bool broken;
};

struct child_pool_figures child_pool_figures(const struct child_pool *p);

#endif
