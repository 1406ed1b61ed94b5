/* tools/predict.d/predict.c - the command line of tools/predict. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>

#include "tools/predict.d/report.h"

enum { EXIT_BROKEN_OFF = 3, EXIT_USAGE = 2 };

struct command {
    struct study_options o;
    bool json, minutes, help;
    const char *log;
};

static const char HELP[] =
    "predict - what a log's traffic needs, from the log alone: no proxy is started.\n"
    "\n"
    "    tools/predict [OPTIONS] LOG        an access log, plain or gzip; - is standard input\n"
    "\n"
    "Read are Squid's native format and custom ones around it, common and combined, and lists of\n"
    "`object size` and `time object size`. Printed are requests under way (mean, 99th percentile\n"
    "over time, peak and when), descriptors without and with persistent connections, ideal hit\n"
    "ratios and the curve of LRU.\n"
    "\n"
    "  --idle-timeout S,...  of idle connections, in seconds; CLIENT/SERVER for two (5,15,60,120)\n"
    "  --hit-ratio WHICH     what goes to a server: logged (default), ideal (all but what a cache\n"
    "                        without end has), none (all), or a number: so many % are hits\n"
    "  --hit-delay MS        hits last this long instead of the time in the log\n"
    "  --overhead MS         every request that is no tunnel lasts so much longer: what the way "
    "and a\n"
    "                        replay add (at 60 times speed 2 ms are 120 ms of the log's time)\n"
    "  --servers WHICH       idle server connections are shared per host (default), peer (the\n"
    "                        server's address in the log), or one (all names, one server)\n"
    "  --delay MS            requests without a duration last this long: a model, not the log\n"
    "  --fixed N             descriptors that are always there (10: cuttle with one worker)\n"
    "  --sizes SIZE,...      of the LRU curve: 1%, 5%... of the unique bytes, or 512M, 10G\n"
    "                        (1%,2%,5%,10%,20%,50%,100%)\n"
    "  --limit N             the first N requests only\n"
    "  --per-minute          CSV: a line for each minute instead of the report\n"
    "  --json                the figures as JSON instead of the report\n"
    "\n"
    "Memory: 48 bytes a request with a time (its interval), 70 to 150 a URL, 24 to 48 a client "
    "and\n"
    "host; texts are not kept. Exit status: 0 done, 1 nothing to predict from, 2 wrong usage, 3 "
    "the\n"
    "log broke off (what came before is reported).\n";

static void
usage(const char *format, const char *what)
{
    fprintf(stderr, "predict: ");
    fprintf(stderr, format, what);
    fprintf(stderr, " (predict --help)\n");
    exit(EXIT_USAGE);
}

/* A number of 0 to most that ends where *end then points; false: it is none. */
static bool
take_number(const char *text, double most, char **end, double *value)
{
    errno = 0;
    *value = strtod(text, end);
    return *end > text && errno == 0 && isfinite(*value) && *value >= 0 && *value <= most;
}

static double
number_option(const char *name, const char *text, double most)
{
    char *end;
    double value;

    if (!take_number(text, most, &end, &value) || *end != '\0') {
        fprintf(stderr, "predict: --%s: %s is no number from 0 to %.0f\n", name, text, most);
        exit(EXIT_USAGE);
    }
    return value;
}

static void
read_idles(struct study_options *o, const char *text)
{
    const double most_s = 1e8;
    const char *at = text;
    char *end;

    o->n_idles = 0;
    for (;;) {
        double client_s, server_s;

        if (o->n_idles == IDLES_MOST)
            usage("--idle-timeout: %s is more than 16 timeouts", text);
        if (!take_number(at, most_s, &end, &client_s))
            usage("--idle-timeout: %s is no list of seconds", text);
        server_s = client_s;
        if (*end == '/' && !take_number(end + 1, most_s, &end, &server_s))
            usage("--idle-timeout: %s is no list of seconds", text);
        o->idles[o->n_idles++] =
            (struct idle_timeout){(int64_t)(client_s * 1e6), (int64_t)(server_s * 1e6)};
        if (*end == '\0')
            return;
        if (*end != ',')
            usage("--idle-timeout: %s is no list of seconds", text);
        at = end + 1;
    }
}

static double
unit_of(char **end)
{
    static const char units[] = "KMGT";
    const char *found = **end ? strchr(units, **end) : NULL;

    if (found == NULL)
        return 1;
    (*end)++;
    return pow(1024, (double)(found - units + 1));
}

static void
read_sizes(struct study_options *o, const char *text)
{
    const char *at = text;
    char *end;

    o->n_marks = 0;
    for (;;) {
        struct curve_mark *m = &o->marks[o->n_marks];
        double value;

        if (o->n_marks == CURVE_MOST)
            usage("--sizes: %s is more than 32 sizes", text);
        if (!take_number(at, 1e15, &end, &value) || value == 0)
            usage("--sizes: %s is no list of sizes", text);
        *m = (struct curve_mark){0, 0};
        if (*end == '%') {
            m->percent = value;
            end++;
        } else {
            value *= unit_of(&end);
            m->bytes = value < 1      ? 1
                       : value > 1e18 ? UINT64_C(1000000000000000000)
                                      : (uint64_t)value;
        }
        o->n_marks++;
        if (*end == '\0')
            return;
        if (*end != ',')
            usage("--sizes: %s is no list of sizes", text);
        at = end + 1;
    }
}

static void
read_hits(struct gather_options *g, const char *text)
{
    if (strcmp(text, "logged") == 0)
        g->hits = HITS_LOGGED;
    else if (strcmp(text, "ideal") == 0)
        g->hits = HITS_IDEAL;
    else if (strcmp(text, "none") == 0)
        g->hits = HITS_NONE;
    else {
        char *end;

        g->hits = HITS_SHARE;
        if (!take_number(text, 100, &end, &g->hit_share) || (*end != '\0' && strcmp(end, "%") != 0))
            usage("--hit-ratio: %s is not logged, ideal, none or a percentage", text);
        g->hit_share /= 100;
    }
}

static void
read_servers(struct gather_options *g, const char *text)
{
    if (strcmp(text, "host") == 0)
        g->servers = SERVER_BY_HOST;
    else if (strcmp(text, "peer") == 0)
        g->servers = SERVER_BY_PEER;
    else if (strcmp(text, "one") == 0)
        g->servers = SERVER_ONE;
    else
        usage("--servers: %s is not host, peer or one", text);
}

enum {
    O_IDLE = 256,
    O_HITS,
    O_HIT_DELAY,
    O_OVERHEAD,
    O_SERVERS,
    O_DELAY,
    O_FIXED,
    O_SIZES,
    O_LIMIT,
    O_MINUTES,
    O_JSON,
    O_HELP
};

static const struct option OPTIONS[] = {{"idle-timeout", required_argument, NULL, O_IDLE},
                                        {"hit-ratio", required_argument, NULL, O_HITS},
                                        {"hit-delay", required_argument, NULL, O_HIT_DELAY},
                                        {"overhead", required_argument, NULL, O_OVERHEAD},
                                        {"servers", required_argument, NULL, O_SERVERS},
                                        {"delay", required_argument, NULL, O_DELAY},
                                        {"fixed", required_argument, NULL, O_FIXED},
                                        {"sizes", required_argument, NULL, O_SIZES},
                                        {"limit", required_argument, NULL, O_LIMIT},
                                        {"per-minute", no_argument, NULL, O_MINUTES},
                                        {"json", no_argument, NULL, O_JSON},
                                        {"help", no_argument, NULL, O_HELP},
                                        {NULL, 0, NULL, 0}};

static bool
take_flag(struct command *c, int option)
{
    c->minutes |= option == O_MINUTES;
    c->json |= option == O_JSON;
    c->help |= option == O_HELP;
    return option == O_MINUTES || option == O_JSON || option == O_HELP;
}

static void
take_option(struct command *c, int option, const char *text)
{
    struct gather_options *g = &c->o.gather;
    const double ms_most = 1e9;

    switch (option) {
    case O_IDLE:
        read_idles(&c->o, text);
        return;
    case O_HITS:
        read_hits(g, text);
        return;
    case O_HIT_DELAY:
        g->hit_delay_us = (int64_t)(number_option("hit-delay", text, ms_most) * 1000);
        return;
    case O_OVERHEAD:
        g->overhead_us = (int64_t)(number_option("overhead", text, ms_most) * 1000);
        return;
    case O_SERVERS:
        read_servers(g, text);
        return;
    case O_DELAY:
        g->delay_us = (int64_t)(number_option("delay", text, ms_most) * 1000);
        return;
    case O_FIXED:
        c->o.fixed = (unsigned)number_option("fixed", text, 1e6);
        return;
    case O_SIZES:
        read_sizes(&c->o, text);
        return;
    case O_LIMIT:
        g->limit = (int64_t)number_option("limit", text, 1e15);
        return;
    default: /* getopt_long has said what is wrong */
        if (!take_flag(c, option))
            exit(EXIT_USAGE);
    }
}

static struct command
read_command(int argc, char **argv)
{
    struct command c = {.o.gather = {.delay_us = -1, .hit_delay_us = -1, .limit = -1},
                        .o.fixed = 10};
    int option;

    read_idles(&c.o, "5,15,60,120");
    read_sizes(&c.o, "1%,2%,5%,10%,20%,50%,100%");
    argv[0] = "predict";
    while ((option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1)
        take_option(&c, option, optarg);
    if (c.help)
        return c;
    if (optind + 1 != argc)
        usage("%s", optind == argc ? "which log?" : "one log at a time");
    if (c.json && c.minutes)
        usage("--json and --per-minute do not go together%s", "");
    c.log = argv[optind];
    return c;
}

static int
tell(const struct command *c, const struct trace_reader *reader, struct gathered *g)
{
    struct study *s = study_make(g, &c->o);
    struct report r = {c->log, reader, g, s, &c->o};
    int status = trace_reader_fault(reader) ? EXIT_BROKEN_OFF : EXIT_SUCCESS;

    if (c->json)
        report_json(stdout, &r);
    else if (c->minutes)
        report_minutes(stdout, &r);
    else
        report_text(stdout, &r);
    if (c->minutes && s->n_arms == 0) {
        fprintf(stderr, "predict: %s has no times or no durations (--delay MS)\n", c->log);
        status = EXIT_FAILURE;
    }
    study_free(&s);
    return status;
}

static void
tell_nothing(const struct command *c, const struct trace_reader *reader)
{
    fprintf(stderr, "predict: %s: no request in %llu lines\n", c->log,
            (unsigned long long)trace_reader_lines(reader));
    for (int v = TRACE_EMPTY; v < TRACE_VERDICTS; v++)
        if (trace_reader_skipped(reader, v) > 0)
            fprintf(stderr, "predict: %llu skipped: %s (first: line %llu)\n",
                    (unsigned long long)trace_reader_skipped(reader, v), trace_verdict_text(v),
                    (unsigned long long)trace_reader_first_skipped(reader, v));
}

int
main(int argc, char **argv)
{
    struct command c = read_command(argc, argv);
    struct trace_reader *reader;
    struct gathered *g;
    char why[512];
    int status = EXIT_FAILURE;

    if (c.help)
        return fputs(HELP, stdout) < 0;
    reader = trace_reader_open(c.log, why, sizeof(why));
    if (reader == NULL) {
        fprintf(stderr, "predict: %s\n", why);
        return EXIT_FAILURE;
    }
    g = gather(reader, &c.o.gather);
    if (trace_reader_fault(reader))
        fprintf(stderr, "predict: %s: %s\n", c.log, trace_reader_fault(reader));
    if (g->read > 0)
        status = tell(&c, reader, g);
    else
        tell_nothing(&c, reader);
    gathered_free(&g);
    trace_reader_close(&reader);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "predict: writing: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    return status;
}
