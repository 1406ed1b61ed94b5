/* base/child.h - one child process on a loop: lines to its stdin, lines from its stdout.
 *
 * child: RUNNING -> STOPPING (its stdin is closed, then SIGTERM, then) -> KILLED -> ended. What it
 * writes to stderr goes to the event log under its name. Its death is found by pidfd, or by asking
 * now and then where the kernel has none, and is written to the event log.
 *
 * Callbacks come from the loop, never from inside a call here; none after child_close. The child
 * must be closed also after `ended`. Memory goes at the end of the turn, so that child_close may be
 * called from a callback; outside of loop_run the loop needs one more turn for it. */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include "base/loop.h"
#include "base/span.h"

struct child_options {
    const char *name;  /* for the event log; borrowed as long as the child is open */
    char *const *argv; /* argv[0] is a path */
    size_t line_most;  /* bytes of a line of its stdout; one that sends a longer one is killed */
    int64_t term_after_ms, kill_after_ms; /* after child_stop, and after SIGTERM */
};

struct child_ops {
    void (*line)(void *owner, struct span line); /* without its end; valid until return */
    void (*ended)(void *owner);                  /* once, after its last line */
};

struct child;

/* NULL with *error (-errno) when it cannot be started. */
struct child *child_start(struct loop *l, const struct child_options *o,
                          const struct child_ops *ops, void *owner, int *error);
bool child_takes_lines(const struct child *c); /* it is RUNNING */
/* Whole lines, with their ends. What the child does not read yet is kept, without a bound: the
 * caller knows how much is unanswered. */
void child_send(struct child *c, struct span lines);
void child_stop(struct child *c);
/* Kills it and reads nothing more of it; `why` is for the event log and lasts as long as the child.
 * `ended` follows. */
void child_fail(struct child *c, const char *why);
/* One that still lives is killed and waited for, for a moment: call child_stop first. */
void child_close(struct child **held);

#endif
