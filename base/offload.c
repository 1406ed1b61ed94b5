/* base/offload.c - threads for blocking work.
 *
 * One queue under one mutex: a job is a disk read or a file's rotation, beside which the lock is
 * nothing. A pool thread never looks at a job after posting its completion, because the owner may
 * free it there; a job without a loop may free itself in `work`. Signals stay with the others. */
#include "base/offload.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

#define OFFLOAD_MAGIC 0x0ff10ad0u
#define GATHERED_MOST 64

struct offload {
    uint32_t magic;
    pthread_mutex_t lock;
    pthread_cond_t work_there, all_done;
    struct list jobs;
    unsigned running, n_threads, n_jobs, n_hurry;
    int64_t linger_ns; /* 0: a job is taken up at once */
    bool closing, lingering;
    char name[16]; /* what the kernel keeps of a thread's name */
    pthread_t threads[];
};

static void
job_run(struct offload_job *job)
{
    struct loop *loop = job->loop;

    job->work(job);
    if (loop)
        loop_post(loop, &job->done);
}

static bool
is_in_a_hurry(const struct offload *o)
{
    return o->closing || o->n_hurry || o->n_jobs >= GATHERED_MOST;
}

/* Under the lock. */
static void
linger(struct offload *o)
{
    int64_t end_ns = clock_exact_mono_ns() + o->linger_ns;
    struct timespec end = {.tv_sec = end_ns / 1000000000, .tv_nsec = end_ns % 1000000000};

    o->lingering = true;
    while (!is_in_a_hurry(o) && pthread_cond_timedwait(&o->work_there, &o->lock, &end) != ETIMEDOUT)
        continue;
    o->lingering = false;
}

/* Under the lock: until there is a job, or nothing more will come. */
static void
wait_for_work(struct offload *o)
{
    bool waited = false;

    while (list_empty(&o->jobs) && !o->closing) {
        pthread_cond_wait(&o->work_there, &o->lock);
        waited = true;
    }
    if (waited && o->linger_ns)
        linger(o);
}

static void *
pool_thread(void *arg)
{
    struct offload *o = arg;
    struct list *node;

    pthread_mutex_lock(&o->lock);
    for (;;) {
        wait_for_work(o);
        if (list_empty(&o->jobs))
            break;
        node = o->jobs.next;
        list_remove(node);
        o->n_jobs--;
        o->running++;
        pthread_mutex_unlock(&o->lock);
        job_run(LIST_OWNER(node, struct offload_job, link));
        pthread_mutex_lock(&o->lock);
        if (--o->running == 0 && list_empty(&o->jobs))
            pthread_cond_broadcast(&o->all_done);
    }
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

/* One thread is enough to work; the others are speed. */
static void
threads_start(struct offload *o, unsigned wanted)
{
    int error = 0;

    while (o->n_threads < wanted && error == 0) {
        error = pthread_create(&o->threads[o->n_threads], NULL, pool_thread, o);
        if (error)
            break;
        pthread_setname_np(o->threads[o->n_threads], o->name);
        o->n_threads++;
    }
    if (error)
        log_event(LOG_WARN, "%s: %u of %u threads: %s", o->name, o->n_threads, wanted,
                  strerror(error));
    CHECK(o->n_threads > 0);
}

static void
conditions_init(struct offload *o)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&o->work_there, &attributes);
    pthread_cond_init(&o->all_done, NULL);
    pthread_condattr_destroy(&attributes);
}

static struct offload *
offload_make(const char *name, unsigned threads, int64_t linger_ns)
{
    unsigned wanted = threads ? threads : 1;
    struct offload *o = mem_zalloc(sizeof *o + wanted * sizeof o->threads[0]);
    sigset_t every, before;

    o->magic = OFFLOAD_MAGIC;
    pthread_mutex_init(&o->lock, NULL);
    conditions_init(o);
    o->linger_ns = linger_ns;
    list_init(&o->jobs);
    snprintf(o->name, sizeof o->name, "%s", name);
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    threads_start(o, wanted);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return o;
}

struct offload *
offload_new(const char *name, unsigned threads)
{
    return offload_make(name, threads, 0);
}

struct offload *
offload_new_gathering(const char *name, unsigned linger_ms)
{
    return offload_make(name, 1, (int64_t)linger_ms * 1000000);
}

void
offload_submit(struct offload *o, struct offload_job *job)
{
    CHECK_OBJ(o, OFFLOAD_MAGIC);
    list_init(&job->link);
    pthread_mutex_lock(&o->lock);
    CHECK(!o->closing);
    list_push_back(&o->jobs, &job->link);
    o->n_jobs++;
    if (!o->lingering || is_in_a_hurry(o))
        pthread_cond_signal(&o->work_there);
    pthread_mutex_unlock(&o->lock);
}

void
offload_drain(struct offload *o)
{
    CHECK_OBJ(o, OFFLOAD_MAGIC);
    pthread_mutex_lock(&o->lock);
    o->n_hurry++;
    pthread_cond_broadcast(&o->work_there);
    while (o->running > 0 || !list_empty(&o->jobs))
        pthread_cond_wait(&o->all_done, &o->lock);
    o->n_hurry--;
    pthread_mutex_unlock(&o->lock);
}

void
offload_free(struct offload **held)
{
    struct offload *o = *held;

    *held = NULL;
    offload_drain(o);
    pthread_mutex_lock(&o->lock);
    o->closing = true;
    pthread_cond_broadcast(&o->work_there);
    pthread_mutex_unlock(&o->lock);
    for (unsigned i = 0; i < o->n_threads; i++)
        pthread_join(o->threads[i], NULL);
    pthread_cond_destroy(&o->all_done);
    pthread_cond_destroy(&o->work_there);
    pthread_mutex_destroy(&o->lock);
    FREE_OBJ(o);
}
