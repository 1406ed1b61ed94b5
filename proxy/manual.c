/* cuttle(8) and cuttle-http(7). The tables of faults and counters are the code's own, so that the
 * page cannot fall behind. */
#include "proxy/manual.h"

#include "base/counters.h"
#include "http/fault.h"
#include "proxy/version.h"

static void
add_faults(struct buf *out)
{
    BUF_ADD(out, ".SH ERRORS\nWhat a client sees when there is no (whole) response, with the word "
                 "of RFC 9209 in Proxy-Status and the code in the log:\n");
    for (int f = FAULT_NONE + 1; f < FAULTS; f++)
        buf_addf(out, ".TP\n.B %u %s\n%s%s%s%s\n", fault_status(f), fault_page(f),
                 fault_sentence(f), *fault_token(f) ? " (" : "", fault_token(f),
                 *fault_token(f) ? ")" : "");
}

static void
add_counters(struct buf *out)
{
    BUF_ADD(out, ".SH COUNTERS\nShown in /squid-internal-mgr/counters:\n");
    for (int c = 0; c < COUNTERS; c++)
        buf_addf(out, ".TP\n.B %s\n%s\n", counter_name(c), counter_text(c));
}

void
manual_cuttle8(struct buf *out)
{
    buf_addf(out,
             ".TH CUTTLE 8 \"\" \"cuttle %s\"\n.SH NAME\ncuttle \\- forward caching web proxy\n",
             CUTTLE_VERSION);
    BUF_ADD(
        out,
        ".SH SYNOPSIS\n.B cuttle\n[\\-N] [\\-z] [\\-f FILE] [\\-d LEVEL] [\\-k COMMAND] "
        "[\\-v]\n.SH DESCRIPTION\n"
        "cuttle accepts HTTP/1.x clients, answers from a store in memory and on disk, and fetches "
        "what is missing from origins. It reads the squid.conf "
        "dialect (see cuttle.conf(5)) and writes Squid's access log. It measures at all "
        "times how many descriptors it holds for what, and "
        "what finding the ready ones costs.\n.SH OPTIONS\n"
        ".TP\n.B \\-N, \\-\\-foreground\nStay in the foreground. Without it the command ends as "
        "soon "
        "as the process in the background serves, with status 0; if it cannot, the reason is on "
        "standard error and the status is 1.\n"
        ".TP\n.B \\-f FILE\nThe configuration. Without it a built-in one for this machine "
        "only (see \\-\\-print\\-conf).\n"
        ".TP\n.B \\-k parse\nRead the configuration, print every mistake as file:line: "
        "directive: what was expected; exit status 1 if there is one.\n"
        ".TP\n.B \\-k check\nExit status 0 if the process of pid_filename runs.\n"
        ".TP\n.B \\-k reconfigure | rotate | shutdown | kill\nSend that process SIGHUP, "
        "SIGUSR1, SIGTERM or SIGKILL.\n"
        ".TP\n.B \\-z\nMake the stores of cache_dir and end; a start makes what is missing too.\n"
        ".TP\n.B \\-d LEVEL\nEvents shown, 0 (fatal) to 5 (debug); 3 is the default.\n"
        ".SH SIGNALS\n.TP\n.B SIGHUP\nRead the configuration again; with mistakes in it "
        "the old one stays.\n"
        ".TP\n.B SIGUSR1\nRotate the logs (logfile_rotate), no line lost.\n"
        ".TP\n.B SIGTERM, SIGINT\nStop: listeners close at once, what is under way has "
        "shutdown_lifetime. Sent again: at once.\n"
        ".SH PAGES\nhttp://PROXY/squid\\-internal\\-mgr/menu lists the reports; readiness "
        "and filedescriptors are the measurement; /metrics is for Prometheus.\n");
    add_faults(out);
    add_counters(out);
    BUF_ADD(out, ".SH SEE ALSO\ncuttle.conf(5), cuttle\\-http(7)\n");
}

static const struct {
    const char *topic, *section, *text; /* a heading has only a topic */
} choices[] = {
#define TOPIC(title) {title, NULL, NULL},
#define CHOICE(section, text) {NULL, section, text},
#include "proxy/choices.def"
};

void
manual_http7(struct buf *out)
{
    buf_addf(
        out,
        ".TH CUTTLE\\-HTTP 7 \"\" \"cuttle %s\"\n.SH NAME\ncuttle\\-http \\- what cuttle does "
        "where the standards leave a choice\n.SH DESCRIPTION\n"
        "cuttle follows RFC 9110, 9111 and 9112. Each of these sections leaves something open.\n",
        CUTTLE_VERSION);
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (choices[i].topic)
            buf_addf(out, ".SH %s\n", choices[i].topic);
        else
            buf_addf(out, ".TP\n.B %s\n%s\n", choices[i].section, choices[i].text);
    BUF_ADD(out, ".SH SEE ALSO\ncuttle(8), cuttle.conf(5)\n");
}
