/* One byte through a pipe means "I serve"; the end of the pipe without it, that nobody will. */
#include "proxy/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fds.h"

enum { START_MOST_S = 60 };

void
daemon_open_streams(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}

static void
stream_to_nowhere(int stream)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        return;
    (void)dup2(null, stream);
    (void)close(null);
}

/* An exit said why by itself; a signal could not. */
static void
tell_end(pid_t child)
{
    int status;

    if (waitpid(child, &status, 0) == child && WIFSIGNALED(status))
        fprintf(stderr, "cuttle: process %ld ended while it started: %s\n", (long)child,
                strsignal(WTERMSIG(status)));
}

static int
wait_for_daemon(int from, pid_t child)
{
    struct pollfd p = {.fd = from, .events = POLLIN};
    char byte;
    int ready;

    while ((ready = poll(&p, 1, START_MOST_S * 1000)) < 0 && errno == EINTR)
        ;
    if (ready == 0)
        fprintf(stderr, "cuttle: process %ld does not serve after %d s, and goes on starting\n",
                (long)child, START_MOST_S);
    else if (read(from, &byte, 1) == 1)
        return 0;
    else
        tell_end(child);
    return 1;
}

int
daemon_begin(void)
{
    int ends[2];
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    child = fork();
    if (child < 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return -1;
    }
    (void)close(ends[child > 0 ? 1 : 0]);
    if (child > 0)
        _exit(wait_for_daemon(ends[0], child));
    (void)setsid();
    stream_to_nowhere(STDIN_FILENO);
    stream_to_nowhere(STDOUT_FILENO);
    fds_adopt(ends[1], FD_OTHER);
    return ends[1];
}

void
daemon_serves(int *teller)
{
    if (*teller < 0)
        return;
    stream_to_nowhere(STDERR_FILENO);
    (void)!write(*teller, "", 1);
    fds_close(*teller);
    *teller = -1;
}
