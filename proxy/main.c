/* Arguments, signals and the life of the process. The main thread waits for signals and does what
 * must not happen on a worker. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "conf/conf.h"
#include "proxy/account.h"
#include "proxy/daemon.h"
#include "proxy/manual.h"
#include "proxy/setup.h"
#include "proxy/version.h"

struct arguments {
    const char *conf, *command;
    bool foreground, prepare;
    void (*manual)(struct buf *out); /* print this one */
    int debug;
};

static int
usage(int status)
{
    fputs("usage: cuttle [-N] [-z] [-f FILE] [-d LEVEL] [-k "
          "parse|check|reconfigure|rotate|shutdown|kill] [-v]\n"
          "  -N, --foreground  stay in the foreground\n"
          "  -f FILE           configuration, in the squid.conf dialect; without it a built-in one "
          "for this machine only\n"
          "  -k parse          read the configuration, say what is wrong, do nothing else\n"
          "  -k check          is a process with this configuration's pid file running?\n"
          "  -k reconfigure | rotate | shutdown | kill   signal that process\n"
          "  -z                make the stores of cache_dir (a start makes them too)\n"
          "  -d LEVEL          events shown: 0 errors to 5 everything (3: what an operator wants "
          "to know)\n"
          "  -v                version\n"
          "  --print-conf      the built-in configuration\n"
          "  --man8, --man5, --man7    the manual pages, as roff: the program, its configuration, "
          "and\n"
          "                    what it does where the standards leave a choice\n",
          status ? stderr : stdout);
    return status;
}

static bool
is_level(const char *word)
{
    return word[0] >= '0' && word[0] <= '9' && word[1] == '\0';
}

static int
parse_arguments(int argc, char **argv, struct arguments *a)
{
    for (int i = 1; i < argc; i++) {
        const char *w = argv[i];

        if (strcmp(w, "-N") == 0 || strcmp(w, "--foreground") == 0)
            a->foreground = true;
        else if (strcmp(w, "-z") == 0)
            a->prepare = true;
        else if (strcmp(w, "-f") == 0 && i + 1 < argc)
            a->conf = argv[++i];
        else if (strcmp(w, "-k") == 0 && i + 1 < argc)
            a->command = argv[++i];
        else if (strcmp(w, "-d") == 0 && i + 1 < argc && is_level(argv[i + 1]))
            a->debug = argv[++i][0] - '0';
        else if (strcmp(w, "-v") == 0 || strcmp(w, "--version") == 0)
            return printf("cuttle %s\n", CUTTLE_VERSION), exit(0), 0;
        else if (strcmp(w, "-h") == 0 || strcmp(w, "--help") == 0)
            exit(usage(0));
        else if (strcmp(w, "--print-conf") == 0)
            return fputs(conf_default_text(), stdout), exit(0), 0;
        else if (strcmp(w, "--man8") == 0)
            a->manual = manual_cuttle8;
        else if (strcmp(w, "--man5") == 0)
            a->manual = conf_manual;
        else if (strcmp(w, "--man7") == 0)
            a->manual = manual_http7;
        else
            return -1;
    }
    return 0;
}

static void
say(const struct buf *lines)
{
    if (lines->n)
        fprintf(stderr, "%.*s", (int)lines->n, lines->at);
}

static int
print_manual(void (*manual)(struct buf *out))
{
    struct buf text = {0};

    manual(&text);
    fwrite(text.at, 1, text.n, stdout);
    buf_free(&text);
    return 0;
}

/* ---- -k ---- */

static int
command_parse(const struct arguments *a)
{
    struct buf notes = {0}, errors = {0};
    struct conf *c = setup_read(a->conf, &notes, &errors);
    bool fine = c && setup_check(c, &errors);

    if (fine && a->prepare)
        fine = setup_prepare(c, &errors);
    say(&notes);
    say(&errors);
    if (c)
        conf_unref(&c);
    buf_free(&notes);
    buf_free(&errors);
    return fine ? 0 : 1;
}

static pid_t
running_pid(const struct conf *c)
{
    const char *path = c->pid_filename ? c->pid_filename : "none";
    FILE *f = strcmp(path, "none") == 0 ? NULL : fopen(path, "re");
    long pid = 0;

    if (!f || fscanf(f, "%ld", &pid) != 1 || pid <= 1)
        pid = 0;
    if (f)
        fclose(f);
    return (pid_t)pid;
}

static int
signal_of_command(const char *word)
{
    static const struct {
        const char *word;
        int signal;
    } COMMANDS[] = {
        {"reconfigure", SIGHUP}, {"rotate", SIGUSR1}, {"shutdown", SIGTERM},
        {"interrupt", SIGINT},   {"kill", SIGKILL},   {"check", 0},
    };

    for (size_t i = 0; i < sizeof COMMANDS / sizeof COMMANDS[0]; i++)
        if (strcmp(word, COMMANDS[i].word) == 0)
            return COMMANDS[i].signal;
    return -1;
}

static int
command_signal(const struct arguments *a)
{
    struct buf notes = {0}, errors = {0};
    struct conf *c = setup_read(a->conf, &notes, &errors);
    int signal = signal_of_command(a->command);
    pid_t pid = c ? running_pid(c) : 0;
    int result = 1;

    if (!c)
        say(&errors);
    else if (pid == 0)
        fprintf(stderr, "cuttle: no running process: pid_filename %s can't be read\n",
                c->pid_filename ? c->pid_filename : "none");
    else if (kill(pid, signal) < 0)
        fprintf(stderr, "cuttle: process %ld: %s\n", (long)pid, strerror(errno));
    else
        result = 0;
    if (c)
        conf_unref(&c);
    buf_free(&notes);
    buf_free(&errors);
    return result;
}

/* ---- running ---- */

static bool
is_given(const char *path)
{
    return path && strcmp(path, "none") != 0;
}

/* Without it -k would not find us, and who asked for it would believe that it does. */
static bool
pid_file_write(const char *path, struct buf *errors)
{
    FILE *f;
    bool written;

    if (!is_given(path))
        return true;
    f = fopen(path, "we");
    written = f && fprintf(f, "%ld\n", (long)getpid()) > 0;
    if (f && fclose(f) != 0)
        written = false;
    if (!written)
        buf_addf(errors, "cuttle: pid_filename %s: %s\n", path, strerror(errno));
    return written;
}

static void
pid_file_remove(const char *path)
{
    if (is_given(path))
        (void)unlink(path);
}

/* Started as root: ports and logs are open, nothing else needs it. */
static bool
drop_root(const struct conf *c)
{
    struct account a;

    if (geteuid() != 0 || (!c->cache_effective_user && !c->cache_effective_group))
        return true;
    if (!account_find(c->cache_effective_user, c->cache_effective_group, &a))
        return false;
    for (unsigned i = 0; i < c->n_access_logs; i++)
        account_give(&a, c->access_logs[i].where);
    if (c->cache_log)
        account_give(&a, c->cache_log);
    if (c->readiness_log)
        account_give(&a, c->readiness_log);
    return account_become(&a);
}

/* What to do next, for somebody who has just started it by hand. */
static void
greet(const struct conf *c)
{
    char at[ADDR_TEXT_MAX] = "127.0.0.1:3128";

    if (c->n_ports)
        (void)addr_format_port(&c->ports[0].address, at);
    printf(
        "cuttle %s is up on %s\n\n"
        "  try it       curl -x http://%s http://example.com/\n"
        "  environment  export http_proxy=http://%s https_proxy=http://%s\n"
        "  apt          echo 'Acquire::http::Proxy \"http://%s\";' > /etc/apt/apt.conf.d/01proxy\n"
        "  status       http://%s/squid-internal-mgr/\n"
        "  stop         Ctrl-C\n\n",
        CUTTLE_VERSION, at, at, at, at, at, at);
    fflush(stdout);
}

/* With -N, -d sends the events to the terminal. */
static void
choose_event_log(const struct arguments *a, const struct conf *c)
{
    log_open(a->foreground && a->debug >= 0 ? NULL : c->cache_log);
}

static void
reload(struct setup *s, const struct arguments *a)
{
    struct buf notes = {0}, errors = {0};
    bool fine = setup_reload(s, a->conf, &notes, &errors);
    char *line;

    if (fine)
        choose_event_log(a, setup_conf(s));
    buf_add_char(&notes, 0);
    buf_add_char(&errors, 0);
    for (line = strtok(notes.at, "\n"); line; line = strtok(NULL, "\n"))
        log_event(LOG_NOTE, "%s", line);
    for (line = strtok(errors.at, "\n"); line; line = strtok(NULL, "\n"))
        log_event(LOG_ERROR, "%s", line);
    log_event(fine ? LOG_NOTE : LOG_ERROR,
              fine ? "reconfigured" : "the configuration has errors: the old one stays");
    buf_free(&notes);
    buf_free(&errors);
}

static void
begin_stop(struct setup *s, int signal)
{
    int64_t grace_ms = signal == SIGINT && isatty(0) ? 0 : setup_conf(s)->shutdown_lifetime_ms;

    log_event(LOG_NOTE, "signal %d: shutting down, at most %lld s for what is under way", signal,
              (long long)grace_ms / 1000);
    setup_stop(s, grace_ms);
}

static void
serve(struct setup *s, const struct arguments *a, const sigset_t *signals)
{
    struct timespec tick = {1, 0}, soon = {0, 10 * 1000 * 1000};
    bool stopping = false;

    while (!stopping || !setup_is_done(s)) {
        int signal = sigtimedwait(signals, NULL, stopping ? &soon : &tick);

        clock_tick();
        if (signal == SIGHUP && !stopping)
            reload(s, a);
        else if (signal == SIGUSR1)
            setup_rotate(s);
        else if (signal == SIGTERM || signal == SIGINT) {
            if (stopping)
                setup_stop(s, 0); /* asked twice: at once */
            else
                begin_stop(s, signal);
            stopping = true;
        }
        if (!stopping)
            setup_tick(s);
    }
}

static void
block_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGHUP);
    sigaddset(signals, SIGUSR1);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored by who started us, ends of children would go untold */
}

/* Two processes with one pid file would steal each other's signals. */
static bool
already_running(const struct conf *c)
{
    pid_t pid = running_pid(c);

    if (pid <= 0 || pid == getpid() || kill(pid, 0) < 0)
        return false;
    fprintf(stderr, "cuttle: process %ld of %s is running\n", (long)pid, c->pid_filename);
    return true;
}

static void
announce(const struct arguments *a, const struct conf *c)
{
    if (a->foreground && !a->conf)
        greet(c);
    log_event(LOG_NOTE, "cuttle %s: accepting connections on %u port%s with %lld worker%s",
              CUTTLE_VERSION, c->n_ports, c->n_ports == 1 ? "" : "s", (long long)c->workers,
              c->workers == 1 ? "" : "s");
}

static int
run_configured(const struct arguments *a, const struct conf *c, struct setup *s,
               const sigset_t *signals, int *teller)
{
    if (!drop_root(c)) {
        setup_stop(s, 0);
        return 1;
    }
    announce(a, c);
    daemon_serves(teller);
    serve(s, a, signals);
    return 0;
}

/* Nothing here is sized from the limit, so there is no reason to stay below what the system allows.
 */
static uint64_t
hard_limit(void)
{
    struct rlimit r;

    return getrlimit(RLIMIT_NOFILE, &r) == 0 ? (uint64_t)r.rlim_max : 0;
}

static struct setup *
start(const struct arguments *a, struct conf *c, struct buf *errors)
{
    struct setup *s;

    if (already_running(c))
        return NULL;
    (void)umask((mode_t)c->umask | umask(0));
    choose_event_log(a, c);
    fds_start(c->max_filedescriptors > 0 ? (uint64_t)c->max_filedescriptors : hard_limit());
    if (!pid_file_write(c->pid_filename, errors))
        return NULL;
    s = setup_start(c, errors);
    if (!s)
        pid_file_remove(c->pid_filename);
    return s;
}

/* Lines nobody can read, for want of a place. */
static void
tell_lost_logs(const struct conf *c)
{
    for (unsigned i = 0; i < c->n_access_logs; i++)
        if (strcmp(c->access_logs[i].where, "stdout") == 0 ||
            strcmp(c->access_logs[i].where, "stderr") == 0)
            fprintf(stderr,
                    "cuttle: access_log %s leads nowhere in the background: name a file, or stay "
                    "in the foreground with -N\n",
                    c->access_logs[i].where);
}

/* False: no process could be made. The starter does not come back. */
static bool
go_to_background(const struct conf *c, int *teller)
{
    tell_lost_logs(c);
    *teller = daemon_begin();
    if (*teller >= 0)
        return true;
    fprintf(stderr, "cuttle: no process for the background: %s\n", strerror(errno));
    return false;
}

static int
run_setup(const struct arguments *a, struct conf *c, struct buf *errors)
{
    struct setup *s;
    sigset_t signals;
    int teller = -1, result;

    if (!a->foreground && !go_to_background(c, &teller))
        return 1;
    block_signals(&signals);
    s = start(a, c, errors);
    if (!s)
        return 1;
    result = run_configured(a, c, s, &signals, &teller);
    setup_free(&s);
    pid_file_remove(c->pid_filename);
    log_event(LOG_NOTE, "exiting normally");
    return result;
}

static int
run(const struct arguments *a)
{
    struct buf notes = {0}, errors = {0};
    struct conf *c = setup_read(a->conf, &notes, &errors);
    int result = 1;

    say(&notes);
    if (c)
        result = run_setup(a, c, &errors);
    say(&errors);
    if (c)
        conf_unref(&c);
    buf_free(&notes);
    buf_free(&errors);
    return result;
}

/* Buffers of some 100 KB come and go with each body that is copied. Given back to the system each
 * time, they cost ten times what they are used for. */
static void
keep_some_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 4 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 8 << 20);
}

int
main(int argc, char **argv)
{
    struct arguments a = {.debug = -1};

    daemon_open_streams();
    keep_some_memory();
    if (parse_arguments(argc, argv, &a) < 0)
        return usage(2);
    if (a.debug >= 0)
        log_show((enum log_level)(a.debug > LOG_DEBUG ? LOG_DEBUG : a.debug));
    if (a.manual)
        return print_manual(a.manual);
    if (a.prepare)
        return command_parse(&a);
    if (a.command && strcmp(a.command, "parse") == 0)
        return command_parse(&a);
    if (a.command)
        return signal_of_command(a.command) < 0 ? usage(2) : command_signal(&a);
    return run(&a);
}
