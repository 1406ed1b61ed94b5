/* tests/unit/test_offload.c - threads for blocking work (base/offload.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <unistd.h>

#include "base/offload.h"

enum { JOBS = 200 };

static struct loop *loop;
static pthread_t loop_thread;
static _Atomic int worked, next_number;
static int done_calls;

struct test_job {
    struct offload_job job;
    int number, ran_as;
    pthread_t ran_on;
};

static void
work_count(struct offload_job *job)
{
    struct test_job *t = LIST_OWNER(job, struct test_job, job);

    t->ran_as = atomic_fetch_add(&next_number, 1);
    t->ran_on = pthread_self();
    atomic_fetch_add(&worked, 1);
}

static void
done_count(void *owner)
{
    struct test_job *t = owner;

    assert_true(pthread_equal(pthread_self(), loop_thread));
    assert_false(pthread_equal(t->ran_on, loop_thread));
    test_free(t);
    if (++done_calls == JOBS)
        loop_stop(loop);
}

static struct test_job *
job_new(int number, struct loop *l, void (*work)(struct offload_job *))
{
    struct test_job *t = test_calloc(1, sizeof *t);

    t->number = number;
    t->job.work = work;
    t->job.loop = l;
    loop_task_init(&t->job.done, done_count, t);
    return t;
}

static void
done_comes_on_the_askers_loop(void **state)
{
    struct offload *o = offload_new("test", 3);

    loop = loop_new(LOOP_AUTO);
    loop_thread = pthread_self();
    worked = done_calls = 0;
    for (int i = 0; i < JOBS; i++)
        offload_submit(o, &job_new(i, loop, work_count)->job);
    loop_run(loop);
    assert_int_equal(worked, JOBS);
    assert_int_equal(done_calls, JOBS);
    offload_free(&o);
    assert_null(o);
    loop_free(loop);
}

static void
jobs_of_one_thread_run_in_order(void **state)
{
    struct offload *o = offload_new("a name longer than a thread's may be", 1);
    struct test_job *jobs[JOBS];

    next_number = 0;
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = job_new(i, NULL, work_count);
        offload_submit(o, &jobs[i]->job);
    }
    offload_drain(o);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i]->ran_as, i);
        test_free(jobs[i]);
    }
    offload_free(&o);
}

static void
work_slowly(struct offload_job *job)
{
    usleep(2000);
    atomic_fetch_add(&worked, 1);
}

static void
drain_waits_for_what_runs_and_what_waits(void **state)
{
    struct offload *o = offload_new("slow", 2);
    struct offload_job jobs[10];

    worked = 0;
    for (unsigned i = 0; i < 10; i++) {
        jobs[i] = (struct offload_job){.work = work_slowly};
        offload_submit(o, &jobs[i]);
    }
    offload_drain(o);
    assert_int_equal(worked, 10);
    offload_drain(o);
    offload_free(&o);
}

static void
work_and_free(struct offload_job *job)
{
    atomic_fetch_add(&worked, 1);
    free(job);
}

static void
free_finishes_the_jobs_and_a_job_without_loop_may_free_itself(void **state)
{
    struct offload *o = offload_new("free", 0);

    worked = 0;
    for (unsigned i = 0; i < 50; i++) {
        struct offload_job *job = calloc(1, sizeof *job);

        job->work = work_and_free;
        offload_submit(o, job);
    }
    offload_free(&o);
    assert_int_equal(worked, 50);
}

/* Long enough that a test which waits for it would be noticed. */
enum { LINGER_MS = 60000 };

static void
gathered_jobs_wait_for_others_but_not_when_drained(void **state)
{
    struct offload *o = offload_new_gathering("gather", LINGER_MS);
    struct offload_job jobs[100];

    worked = 0;
    usleep(20000); /* its thread waits by now */
    for (unsigned i = 0; i < 10; i++) {
        jobs[i] = (struct offload_job){.work = work_slowly};
        offload_submit(o, &jobs[i]);
    }
    usleep(20000);
    assert_int_equal(worked, 0);
    offload_drain(o);
    assert_int_equal(worked, 10);
    for (unsigned i = 0; i < 100; i++) { /* as many as this are not kept waiting */
        jobs[i] = (struct offload_job){.work = work_slowly};
        offload_submit(o, &jobs[i]);
    }
    for (int i = 0; i < 5000 && worked < 110; i++)
        usleep(1000);
    assert_int_equal(worked, 110);
    offload_free(&o);
}

static void
gathered_jobs_run_after_a_while_by_themselves(void **state)
{
    struct offload *o = offload_new_gathering("gather", 20);
    struct offload_job job = {.work = work_slowly};

    worked = 0;
    usleep(20000);
    offload_submit(o, &job);
    for (int i = 0; i < 5000 && worked < 1; i++)
        usleep(1000);
    assert_int_equal(worked, 1);
    offload_free(&o);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(done_comes_on_the_askers_loop),
        cmocka_unit_test(jobs_of_one_thread_run_in_order),
        cmocka_unit_test(drain_waits_for_what_runs_and_what_waits),
        cmocka_unit_test(gathered_jobs_wait_for_others_but_not_when_drained),
        cmocka_unit_test(gathered_jobs_run_after_a_while_by_themselves),
        cmocka_unit_test(free_finishes_the_jobs_and_a_job_without_loop_may_free_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
