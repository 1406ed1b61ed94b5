/* base/child_process.c - starting, signalling and reaping one child process.
 *
 * One socket pair serves as stdin and stdout, as helpers know it from Squid: it takes one
 * descriptor of ours instead of two, and a write to it raises no SIGPIPE. Stderr is a pipe of its
 * own, so that what the child complains of is not taken for a reply.
 *
 * A pidfd tells of the death: it needs no handler of SIGCHLD, of which a process has only one. */
#include "base/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fds.h"

enum { OURS, THEIRS, ENDS };

struct ends {
    int talk[ENDS], complaints[ENDS];
};

/* ---- descriptors ---- */

static void
ends_adopt(const int fds[ENDS], const char *program)
{
    for (unsigned i = 0; i < ENDS; i++) {
        fds_adopt(fds[i], FD_CHILD);
        fds_note(fds[i], span_str(program));
    }
}

static int
ends_open(struct ends *e, const char *program)
{
    *e = (struct ends){{-1, -1}, {-1, -1}};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, e->talk) < 0)
        return -errno;
    ends_adopt(e->talk, program);
    if (pipe2(e->complaints, O_CLOEXEC) < 0)
        return -errno;
    ends_adopt(e->complaints, program);
    /* The other end keeps blocking: a program does not expect its stderr not to. */
    (void)fcntl(e->complaints[OURS], F_SETFL, O_NONBLOCK);
    return 0;
}

static void
ends_close(struct ends *e, int whose)
{
    fds_close(e->talk[whose]);
    fds_close(e->complaints[whose]);
}

/* ---- starting ---- */

static bool
is_for_us_alone(const char *variable)
{
    static const char *const names[] = {"NOTIFY_SOCKET=",  "LISTEN_FDS=",    "LISTEN_PID=",
                                        "LISTEN_FDNAMES=", "WATCHDOG_USEC=", "WATCHDOG_PID="};

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* The rest is passed on: KRB5_KTNAME, TZ or LANG are how operators tell a helper things. The texts
 * stay those of our own environment. */
static char **
environment_for_child(void)
{
    size_t n = 0, kept = 0;
    char **e;

    while (environ && environ[n])
        n++;
    e = mem_alloc((n + 1) * sizeof *e);
    for (size_t i = 0; i < n; i++)
        if (!is_for_us_alone(environ[i]))
            e[kept++] = environ[i];
    e[kept] = NULL;
    return e;
}

/* These only take down what is wanted; they fail when there is no memory. */
static void
actions_init(posix_spawn_file_actions_t *a, const struct ends *e)
{
    CHECK(posix_spawn_file_actions_init(a) == 0);
    CHECK(posix_spawn_file_actions_adddup2(a, e->talk[THEIRS], STDIN_FILENO) == 0);
    CHECK(posix_spawn_file_actions_adddup2(a, e->talk[THEIRS], STDOUT_FILENO) == 0);
    CHECK(posix_spawn_file_actions_adddup2(a, e->complaints[THEIRS], STDERR_FILENO) == 0);
    CHECK(posix_spawn_file_actions_addclosefrom_np(a, STDERR_FILENO + 1) == 0);
}

static void
attributes_init(posix_spawnattr_t *a)
{
    sigset_t every, none;

    sigfillset(&every);
    sigemptyset(&none);
    CHECK(posix_spawnattr_init(a) == 0);
    CHECK(posix_spawnattr_setsigdefault(a, &every) == 0);
    CHECK(posix_spawnattr_setsigmask(a, &none) == 0);
    CHECK(posix_spawnattr_setpgroup(a, 0) == 0);
    CHECK(posix_spawnattr_setflags(a, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                          POSIX_SPAWN_SETPGROUP) == 0);
}

static int
spawn(pid_t *pid, char *const argv[], const struct ends *e)
{
    char **environment = environment_for_child();
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error;

    actions_init(&actions, e);
    attributes_init(&attributes);
    error = posix_spawn(pid, argv[0], &actions, &attributes, argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    mem_free(environment);
    return -error;
}

static int
death_watch(pid_t pid, const char *program)
{
    int fd = pidfd_open(pid, 0);

    if (fd >= 0) {
        fds_adopt(fd, FD_CHILD);
        fds_note(fd, span_str(program));
    }
    return fd;
}

int
child_process_start(struct child_process *p, char *const argv[])
{
    struct ends e;
    int error = ends_open(&e, argv[0]);

    *p = (struct child_process){.talk = -1, .complaints = -1, .death = -1};
    if (error == 0)
        error = spawn(&p->pid, argv, &e);
    ends_close(&e, THEIRS);
    if (error) {
        ends_close(&e, OURS);
        return error;
    }
    p->talk = e.talk[OURS];
    p->complaints = e.complaints[OURS];
    p->death = death_watch(p->pid, argv[0]);
    return 0;
}

/* ---- ending ---- */

/* A program may have left the group it was given. */
void
child_process_signal(const struct child_process *p, int number)
{
    if (kill(-p->pid, number) < 0)
        (void)kill(p->pid, number);
}

/* What a helper that is a script has started goes with it. The group is ended before the death is
 * taken note of: until then neither number can be another's. */
bool
child_process_reap(const struct child_process *p, siginfo_t *how)
{
    *how = (siginfo_t){0};
    if (waitid(P_PID, (id_t)p->pid, how, WEXITED | WNOHANG | WNOWAIT) < 0)
        return true;
    if (how->si_pid == 0)
        return false;
    (void)kill(-p->pid, SIGKILL);
    (void)waitpid(p->pid, NULL, WNOHANG);
    return true;
}

void
child_process_close(struct child_process *p)
{
    fds_close(p->talk);
    fds_close(p->complaints);
    fds_close(p->death);
    p->talk = p->complaints = p->death = -1;
}
