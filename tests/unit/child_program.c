/* tests/unit/child_program.c - the child that test_child.c starts: argv[1] says how it behaves.
 *
 * Lines come on stdin and replies go to stdout, as with a helper; see the table at the end. Built
 * without sanitizers, because it is started hundreds of times. */
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINE_BYTES = 1 << 16, KEPT_MOST = 100 };

static char line[LINE_BYTES];

static bool
line_read(void)
{
    return fgets(line, sizeof line, stdin) != NULL;
}

static void
line_echo(void)
{
    fputs(line, stdout);
    fflush(stdout);
}

static void
wait_ms(int ms)
{
    usleep((unsigned)ms * 1000);
}

static void
wait_for_ever(void)
{
    for (;;)
        pause();
}

static void
echo(int n, const char *text)
{
    while (line_read())
        line_echo();
}

/* n lines at a time, the last one first. */
static void
backwards(int n, const char *text)
{
    static char *kept[KEPT_MOST];
    int have = 0;

    while (line_read()) {
        kept[have++] = strdup(line);
        if (have < n)
            continue;
        while (have > 0) {
            fputs(kept[--have], stdout);
            free(kept[have]);
        }
        fflush(stdout);
    }
}

/* Only the first reply takes n ms. */
static void
slow(int n, const char *text)
{
    for (bool first = true; line_read(); first = false) {
        if (first)
            wait_ms(n);
        line_echo();
    }
}

static void
dies(int n, const char *text)
{
    for (; n > 0 && line_read(); n--)
        line_echo();
    exit(7);
}

/* Reads one more line than it answers, and dies of that. */
static void
chokes(int n, const char *text)
{
    for (; n > 0 && line_read(); n--)
        line_echo();
    line_read();
    exit(8);
}

static void
needs(int n, const char *path)
{
    if (access(path, F_OK) != 0)
        exit(9);
    echo(0, NULL);
}

static void
endless(int n, const char *text)
{
    line_read();
    for (;;)
        fputs("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", stdout);
}

static void
babbles(int n, const char *text)
{
    for (;;)
        if (puts("nobody asked me") < 0)
            exit(1);
}

static void
silent(int n, const char *text)
{
    while (line_read())
        continue;
    wait_for_ever();
}

static void
reads_nothing(int n, const char *text)
{
    wait_for_ever();
}

/* n lines on stderr for each request. */
static void
complains(int n, const char *text)
{
    while (line_read()) {
        for (int i = 0; i < n; i++)
            fprintf(stderr, "complaint %d: %s\n", i, text);
        line_echo();
    }
    fprintf(stderr, "last complaint, without an end");
}

/* Goes on after the end of its stdin; a SIGTERM ends it. */
static void
lingers(int n, const char *text)
{
    echo(0, NULL);
    wait_for_ever();
}

static void
stubborn(int n, const char *text)
{
    signal(SIGTERM, SIG_IGN);
    lingers(0, NULL);
}

static void
closes_output(int n, const char *text)
{
    line_read();
    close(STDOUT_FILENO);
    close(STDIN_FILENO); /* the same socket */
    wait_for_ever();
}

static void
closes_input(int n, const char *text)
{
    line_read();
    shutdown(STDIN_FILENO, SHUT_RD);
    puts("deaf now");
    fflush(stdout);
    wait_for_ever();
}

static void
answers_in_crlf(int n, const char *text)
{
    while (line_read()) {
        line[strcspn(line, "\n")] = '\0';
        printf("%s\r\n", line);
        fflush(stdout);
    }
}

static void
has_offspring(int n, const char *text)
{
    pid_t pid = fork();

    if (pid == 0)
        wait_for_ever();
    while (line_read()) {
        printf("%d\n", (int)pid);
        fflush(stdout);
    }
}

static void
print_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *e;

    printf("fds");
    while ((e = readdir(dir)) != NULL)
        if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(dir))
            printf(" %s", e->d_name);
    closedir(dir);
}

/* The masks of /proc/self/status, SigBlk and SigIgn, without the two signals that are the C
 * library's own. */
static void
print_signals(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char text[256];

    while (fgets(text, sizeof text, status)) {
        text[strcspn(text, "\n")] = '\0';
        if (strncmp(text, "SigBlk:", 7) == 0 || strncmp(text, "SigIgn:", 7) == 0)
            printf("; %.6s %llx", text, strtoull(text + 7, NULL, 16) & ~(3ull << 31));
    }
    fclose(status);
}

static void
tells_of_itself(int n, const char *text)
{
    const char *kept = getenv("KRB5_KTNAME");

    while (line_read()) {
        print_descriptors();
        print_signals();
        printf("; leads its group: %d", getpgrp() == getpid());
        printf("; KRB5_KTNAME %s; NOTIFY_SOCKET %d\n", kept ? kept : "-",
               getenv("NOTIFY_SOCKET") != NULL);
        fflush(stdout);
    }
}

static const struct mode {
    const char *name;
    void (*run)(int n, const char *text);
} modes[] = {
    {"echo", echo},
    {"backwards", backwards},
    {"slow", slow},
    {"dies", dies},
    {"chokes", chokes},
    {"needs", needs},
    {"endless", endless},
    {"babbles", babbles},
    {"silent", silent},
    {"reads nothing", reads_nothing},
    {"complains", complains},
    {"lingers", lingers},
    {"stubborn", stubborn},
    {"closes output", closes_output},
    {"closes input", closes_input},
    {"answers in crlf", answers_in_crlf},
    {"has offspring", has_offspring},
    {"tells of itself", tells_of_itself},
};

int
main(int argc, char **argv)
{
    for (unsigned i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(argv[1], modes[i].name) == 0)
            modes[i].run(argc > 2 ? atoi(argv[2]) : 0, argc > 2 ? argv[argc - 1] : "");
    return 0;
}
