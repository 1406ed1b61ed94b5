/* base/child_process.h - a child process as the system sees it: started, signalled, reaped.
 *
 * The child gets descriptors 0, 1 and 2 and no other, no blocked or ignored signal, a process group
 * of its own, and our environment without what the service manager said to us alone. Starting
 * blocks until the program is loaded. Nobody may ignore SIGCHLD or wait for children in general:
 * then how one ended is not known (that it ended still is). */
#ifndef BASE_CHILD_PROCESS_H
#define BASE_CHILD_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct child_process {
    pid_t pid;
    int talk;       /* a socket: its stdin and stdout */
    int complaints; /* a pipe: its stderr; does not block */
    int death;      /* readable once it has ended; -1: this kernel has no such descriptor */
};

/* argv[0] is a path; nothing is looked up in PATH. 0 or -errno; then p holds nothing. */
int child_process_start(struct child_process *p, char *const argv[]);
void child_process_signal(const struct child_process *p, int number); /* the whole group */
/* false: it lives. true: it is gone, and so is what it left in its group; do not signal or reap it
 * again. how->si_pid is 0 when somebody else has taken the report of its death. */
bool child_process_reap(const struct child_process *p, siginfo_t *how);
void child_process_close(struct child_process *p); /* our descriptors */

#endif
