/* base/offload.h - threads for blocking work. A job runs on a pool thread, then `done` is called on
 * the loop that asked (or never, when loop is NULL and done is NULL). Jobs of a one-thread pool run
 * in order. */
#ifndef BASE_OFFLOAD_H
#define BASE_OFFLOAD_H

#include "base/loop.h"

struct offload;

struct offload_job {
    struct list link;
    void (*work)(struct offload_job *job); /* on a pool thread */
    struct loop *loop;                     /* where done is called; NULL: nowhere */
    struct loop_task done;                 /* init with loop_task_init; owner frees the job there */
};

struct offload *offload_new(const char *name, unsigned threads);
/* One thread that is in no hurry: when there was nothing to do it lets jobs gather for up to
 * linger_ms, or 64 of them, so that it is not woken for each; draining does not wait for that. */
struct offload *offload_new_gathering(const char *name, unsigned linger_ms);
void offload_submit(struct offload *o, struct offload_job *job);
void offload_drain(struct offload *o); /* waits until all submitted jobs have run */
void offload_free(struct offload **o); /* drains, joins */

#endif
