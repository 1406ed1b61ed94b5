/* conf/logs.c - access_log and logformat.
 *
 * Squid has three ways to write an access_log line, told apart by the word behind the place:
 * option= is the newest, any other word is a format (and acls behind it), no word means the format
 * squid. Whether a format or an acl exists is seen when everything is read (finish.c). */
#include "conf/reader.h"

static const struct {
    const char *path, *name;
} streams[] = {
    {"/dev/stdout", "stdout"}, {"/proc/self/fd/1", "stdout"}, {"/dev/fd/1", "stdout"},
    {"/dev/stderr", "stderr"}, {"/proc/self/fd/2", "stderr"}, {"/dev/fd/2", "stderr"},
};

const char *
log_place(struct reader *r, struct span word)
{
    if (span_starts(word, SPAN("stdio:")))
        word = span_skip(word, 6);
    else if (span_starts(word, SPAN("daemon:")))
        word = span_skip(word, 7);
    for (unsigned i = 0; i < sizeof streams / sizeof streams[0]; i++)
        if (span_eq(word, span_str(streams[i].path)))
            return streams[i].name;
    return reader_str(r, word);
}

/* A log nobody can read is worse than one in another place: what writes to the network goes to
 * standard output, where the system's journal or a container's log has it. */
static bool
is_place(struct reader *r, struct span word)
{
    static const char *const missing[] = {"syslog", "udp", "tcp"};
    struct span module = span_first(word, span_index(word, ':'));

    for (unsigned i = 0; i < sizeof missing / sizeof missing[0]; i++)
        if (span_eq(module, span_str(missing[i])) &&
            (module.n < word.n || span_eq(word, SPAN("syslog")))) {
            reader_error(r, "%s is not supported; expected a file, stdio:/dev/stdout or none",
                         missing[i]);
            return false;
        }
    return true;
}

static bool
is_option(struct reader *r, struct conf_access_log *log, struct span word)
{
    static const char *const ignored[] = {"on-error=", "buffer-size=", "rotate="};

    if (span_starts(word, SPAN("logformat="))) {
        log->format = reader_str(r, span_skip(word, 10));
        return true;
    }
    for (unsigned i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        if (span_starts(word, span_str(ignored[i]))) {
            reader_note(r, "%.*s is not used by cuttle, ignored", (int)strlen(ignored[i]) - 1,
                        ignored[i]);
            return true;
        }
    return false;
}

static void
format_and_condition(struct reader *r, struct conf_access_log *log, const struct line *l)
{
    bool has_options = false;
    unsigned i = 1;

    while (i < l->n && is_option(r, log, l->words[i].text)) {
        has_options = true;
        i++;
    }
    if (i < l->n && !has_options && strcmp(log->where, "none") != 0)
        log->format = reader_str(r, l->words[i++].text);
    rule_terms(r, l->words + i, l->n - i, &log->condition);
}

void
set_access_log(struct reader *r, const struct directive *d, const struct line *l)
{
    struct conf_access_log log = {
        .format = "squid",
        .place = r->place,
        .condition = {.allow = true, .place = r->place},
    };

    if (l->n == 0 || l->words[0].text.n == 0) {
        reader_error(r, "expected the name of a file, or none");
        return;
    }
    if (r->c->n_access_logs >= READER_LOGS_MAX) {
        reader_error(r, "more than %d lines", READER_LOGS_MAX);
        return;
    }
    if (!is_place(r, l->words[0].text))
        return;
    log.where = log_place(r, l->words[0].text);
    format_and_condition(r, &log, l);
    r->c->access_logs = reader_grow(r->c->access_logs, r->c->n_access_logs, sizeof log);
    r->c->access_logs[r->c->n_access_logs++] = log;
}

static bool
is_reserved(struct span name)
{
    static const char *const squids[] = {"squid", "common", "combined", "referrer", "useragent"};

    for (unsigned i = 0; i < sizeof squids / sizeof squids[0]; i++)
        if (span_eq(name, span_str(squids[i])))
            return true;
    return false;
}

/* A text in quotes from end to end stands without them. */
static struct span
unquoted(struct span text)
{
    if (text.n >= 2 && (text.at[0] == '"' || text.at[0] == '\'') &&
        span_index(span_skip(text, 1), text.at[0]) == text.n - 2)
        return span_of(text.at + 1, text.n - 2);
    return text;
}

static void
logformat_add(struct reader *r, struct span name, struct span text)
{
    struct conf_logformat f = {reader_str(r, name), reader_str(r, text), r->place};

    for (unsigned i = 0; i < r->c->n_logformats; i++)
        if (strcmp(r->c->logformats[i].name, f.name) == 0) {
            r->c->logformats[i] = f;
            return;
        }
    if (r->c->n_logformats >= READER_LOGS_MAX) {
        reader_error(r, "more than %d formats", READER_LOGS_MAX);
        return;
    }
    r->c->logformats = reader_grow(r->c->logformats, r->c->n_logformats, sizeof f);
    r->c->logformats[r->c->n_logformats++] = f;
}

void
set_logformat(struct reader *r, const struct directive *d, const struct line *l)
{
    struct span name, text;

    if (l->n < 2) {
        reader_error(r, "expected NAME TEXT");
        return;
    }
    name = l->words[0].text;
    if (is_reserved(name)) {
        /* As Squid does: programs that read these logs rely on what the name says. */
        reader_note(r, "%.*s is built in, the line is ignored", SPAN_ARG(name));
        return;
    }
    text = span_skip(l->text, (size_t)(name.at + name.n + l->words[0].quoted - l->text.at));
    logformat_add(r, name, unquoted(span_trim(text)));
}
