/* tools/trace/trace_line.c - one line of a log.
 *
 * Custom formats put fields in front of Squid's, between and behind them. What they keep is the
 * word with its status, "TCP_MISS/200": it is looked for first, and the others are found from
 * there, backwards (client, duration, time) and forwards (size, method, URL, user, hierarchy).
 * A line without that word is a web server's when it has a time in brackets and a quoted request,
 * and a list's entry when its last field is a number. */
#include "tools/trace/trace.h"

#include <ctype.h>

#include "tools/trace/trace_time.h"

/* 1973 as a time, three years as a duration: tells the two apart where one is missing. */
#define DURATION_MOST_US INT64_C(100000000000000)

enum {
    FIELDS_MOST = 32,
    ANCHOR_LAST = 12, /* the word stands among the first fields, or it is another log's text */
    METHOD_MOST = 32,
    URL_WORDS_MOST = 12,  /* of a URL with unescaped spaces */
    EPOCH_TEXT_LEAST = 13 /* 1390498966.17 */
};

struct fields {
    unsigned n;
    struct span at[FIELDS_MOST];
};

/* Fields between blanks. A lone "|" is a custom format's separator. */
static void
split(struct span line, struct fields *f)
{
    const char *p = line.at, *end = line.at + line.n;

    f->n = 0;
    while (f->n < FIELDS_MOST) {
        const char *start;

        while (p < end && (*p == ' ' || *p == '\t'))
            p++;
        start = p;
        while (p < end && *p != ' ' && *p != '\t')
            p++;
        if (p == start)
            return;
        if (p - start != 1 || *start != '|')
            f->at[f->n++] = span_of(start, (size_t)(p - start));
    }
}

static struct span
from_to(struct span first, struct span last)
{
    return span_of(first.at, (size_t)(last.at + last.n - first.at));
}

/* Nothing is written as "-". */
static struct span
value_of(struct span s)
{
    return s.n == 1 && s.at[0] == '-' ? span_first(s, 0) : s;
}

static size_t
upper_letters(struct span s)
{
    size_t n = 0;

    while (n < s.n && ((s.at[n] >= 'A' && s.at[n] <= 'Z') || s.at[n] == '_'))
        n++;
    return n;
}

static bool
is_digits(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.at[i] < '0' || s.at[i] > '9')
            return false;
    return s.n > 0;
}

/* TCP_MISS, NONE, TAG_NONE: upper case, and it is no method. */
static bool
is_word(struct span s)
{
    return s.n >= 4 && upper_letters(s) == s.n &&
           (memchr(s.at, '_', s.n) != NULL || span_eq(s, SPAN("NONE")));
}

/* "TCP_MISS/200", "NONE_NONE/-/200", "TCP_MISS/404/404" */
static bool
is_anchor(struct span s)
{
    size_t n;

    if (s.n < 6 || s.at[0] < 'A' || s.at[0] > 'Z')
        return false;
    n = upper_letters(s);
    if (n >= s.n || s.at[n] != '/' || !is_word(span_first(s, n)))
        return false;
    s = span_skip(s, n + 1);
    n = span_index(s, '/');
    if (n < s.n && !is_digits(span_skip(s, n + 1)))
        return false;
    return n <= 3 && (is_digits(span_first(s, n)) || (n < s.n && s.at[0] == '-'));
}

/* 0 for what is no status: 000 without an answer, one cut short. */
static int
status_of(struct span s)
{
    uint64_t status;

    return s.n == 3 && span_to_uint(s, 999, &status) && status >= 100 ? (int)status : 0;
}

/* "-" and negative sizes (nothing was sent) are not told. */
static bool
read_size(struct span s, int64_t *bytes)
{
    uint64_t value;

    *bytes = -1;
    if (s.n > 1 && s.at[0] == '-')
        return is_digits(span_skip(s, 1));
    if (s.n == 1 && s.at[0] == '-')
        return true;
    if (!span_to_uint(s, INT64_MAX, &value))
        return false;
    *bytes = (int64_t)value;
    return true;
}

/* Milliseconds; a clock set back makes them negative: 0. With a fraction they are seconds, as
 * nginx writes them. */
static bool
read_duration(struct span s, int64_t *us)
{
    bool back = s.n > 1 && s.at[0] == '-';
    bool seconds = span_index(s, '.') < s.n;
    int64_t millionths;

    if (!trace_decimal_parse(back ? span_skip(s, 1) : s, &millionths))
        return false;
    *us = back ? 0 : seconds ? millionths : millionths / 1000;
    return true;
}

/* ---- what is asked for ---- */

static bool
is_method(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!isalpha((unsigned char)s.at[i]) && s.at[i] != '-' && s.at[i] != '_')
            return false;
    return s.n > 0 && s.n <= METHOD_MOST && s.at[0] != '-';
}

static bool
has_host_and_port(struct span s)
{
    const char *colon = s.n ? memrchr(s.at, ':', s.n) : NULL;
    uint64_t port;

    return colon != NULL && colon > s.at &&
           span_to_uint(span_of(colon + 1, (size_t)(s.at + s.n - colon - 1)), 65535, &port) &&
           port > 0;
}

/* A scheme that a proxy is asked for, and something behind it. */
static bool
has_scheme_and_host(struct span s)
{
    static const struct span schemes[] = {SPAN("http://"), SPAN("https://"), SPAN("ftp://"),
                                          SPAN("ws://"), SPAN("wss://")};

    for (unsigned i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        if (span_starts_ci(s, schemes[i])) {
            s = span_skip(s, schemes[i].n);
            return s.n > 0 && strchr("/?#:", s.at[0]) == NULL;
        }
    return false;
}

static enum trace_verdict
judge_request(const struct trace_line *t)
{
    if (span_starts(t->url, SPAN("error:")) || span_eq(t->method, SPAN("NONE")) ||
        !is_method(t->method))
        return TRACE_NO_METHOD;
    if (span_starts(t->method, SPAN("ICP_")) || span_starts(t->method, SPAN("HTCP_")))
        return TRACE_NOT_HTTP;
    if (trace_line_is_tunnel(t))
        return has_host_and_port(t->url) ? TRACE_OK : TRACE_NO_URL;
    if (t->format == TRACE_COMMON && t->url.n > 0 && t->url.at[0] == '/')
        return TRACE_OK;
    return has_scheme_and_host(t->url) ? TRACE_OK : TRACE_NO_URL;
}

/* ---- Squid's own ---- */

/* HIER_DIRECT/198.18.0.1, DIRECT/-, TIMEOUT_CARP/peer; not "-", not text/html */
static bool
is_hierarchy(struct span s)
{
    size_t n = upper_letters(s);

    return n >= 4 && n < s.n && s.at[n] == '/';
}

/* False: the next line ran into this one ("NONE/-1335542309 164 ..."). */
static bool
read_hierarchy(struct span s, struct trace_line *t)
{
    size_t n = upper_letters(s);

    t->hierarchy = span_first(s, n);
    t->peer = value_of(span_skip(s, n + 1));
    if (t->peer.n == 0 || t->peer.at[0] != '-')
        return true;
    t->peer.n = 0;
    return false;
}

/* From the URL on: `URL user hierarchy type`, without the user in some formats. The hierarchy is
 * found by its look; what stands between is the user, or the rest of a URL with blanks. */
static void
read_tail(const struct fields *f, unsigned url, struct trace_line *t)
{
    unsigned last = url + URL_WORDS_MOST < f->n ? url + URL_WORDS_MOST : f->n;
    unsigned at = url + 1;

    t->url = f->at[url];
    while (at < last && !is_hierarchy(f->at[at]))
        at++;
    if (at == last) {
        t->user = url + 1 < f->n ? value_of(f->at[url + 1]) : SPAN_NONE;
        return;
    }
    if (at > url + 1)
        t->user = value_of(f->at[at - 1]);
    if (at > url + 2)
        t->url = from_to(f->at[url], f->at[at - 2]);
    if (read_hierarchy(f->at[at], t) && at + 1 < f->n)
        t->type = value_of(f->at[at + 1]);
}

/* A time that ends with field `last`: it may have a blank inside, and one before its zone. */
static bool
read_time_ending(const struct fields *f, int last, int64_t *at_us)
{
    for (int first = last; first >= 0 && first >= last - 2; first--)
        if (trace_time_parse(from_to(f->at[first], f->at[last]), at_us))
            return true;
    return false;
}

/* In front of the word: `time duration client`. A custom format may leave the duration out. */
static bool
read_front(const struct fields *f, int anchor, struct trace_line *t)
{
    t->client = f->at[anchor - 1];
    if (anchor >= 3 && read_duration(f->at[anchor - 2], &t->duration_us) &&
        read_time_ending(f, anchor - 3, &t->end_us))
        return true;
    t->duration_us = -1;
    return anchor >= 2 && read_time_ending(f, anchor - 2, &t->end_us) &&
           t->end_us >= DURATION_MOST_US;
}

static void
read_word(struct span s, struct trace_line *t)
{
    size_t n = span_index(s, '/');

    t->word = span_first(s, n);
    s = span_skip(s, n + 1);
    n = span_index(s, '/');
    t->status = status_of(n < s.n && s.at[0] == '-' ? span_skip(s, n + 1) : span_first(s, n));
}

static enum trace_verdict
parse_native(const struct fields *f, unsigned anchor, struct trace_line *t)
{
    t->format = TRACE_NATIVE;
    read_word(f->at[anchor], t);
    if (anchor < 1 || !read_front(f, (int)anchor, t))
        return TRACE_BAD_TIME;
    if (span_starts(t->word, SPAN("UDP_")))
        return TRACE_NOT_HTTP;
    if (anchor + 1 >= f->n)
        return TRACE_NO_URL;
    if (!read_size(f->at[anchor + 1], &t->bytes))
        return TRACE_BAD_SIZE;
    if (anchor + 2 >= f->n)
        return TRACE_NO_URL;
    t->method = f->at[anchor + 2];
    if (anchor + 3 < f->n)
        read_tail(f, anchor + 3, t);
    return judge_request(t);
}

/* Index of the word's field, or n when there is none in front of the first quote. */
static unsigned
find_anchor(const struct fields *f)
{
    for (unsigned i = 0; i < f->n && i <= ANCHOR_LAST && f->at[i].at[0] != '"'; i++)
        if (is_anchor(f->at[i]))
            return i;
    return f->n;
}

/* ---- web servers' ---- */

/* "TCP_MISS:HIER_DIRECT", as Squid's common format has it */
static bool
read_word_pair(struct span s, struct trace_line *t)
{
    size_t n = upper_letters(s);

    if (n >= s.n || s.at[n] != ':' || !is_word(span_first(s, n)))
        return false;
    t->word = span_first(s, n);
    t->hierarchy = span_skip(s, n + 1);
    return true;
}

/* The quoted text at the front of s, without its quotes; s goes on behind it. A backslash keeps
 * the quote behind it from ending the text. False: it has no end. */
static bool
take_quoted(struct span *s, struct span *text)
{
    size_t i = 1;

    while (i < s->n && s->at[i] != '"')
        i += s->at[i] == '\\' ? 2 : 1;
    if (i >= s->n)
        return false;
    *text = span_of(s->at + 1, i - 1);
    *s = span_skip(*s, i + 1);
    return true;
}

/* `METHOD URL HTTP/x`; the URL may have blanks, the version may be missing (HTTP/0.9). */
static bool
read_request_line(struct span line, struct trace_line *t)
{
    size_t n = span_index(line, ' ');
    const char *last = line.n ? memrchr(line.at, ' ', line.n) : NULL;

    t->method = span_first(line, n);
    if (n >= line.n || !is_method(t->method) || span_eq(t->method, SPAN("PRI")))
        return false; /* PRI opens HTTP/2 to whom it was not offered */
    t->url = span_skip(line, n + 1);
    if (last > t->method.at + n &&
        span_starts(span_skip(line, (size_t)(last + 1 - line.at)), SPAN("HTTP/")))
        t->url.n = (size_t)(last - t->url.at);
    else if (span_index(t->url, ' ') < t->url.n || !span_eq(t->method, SPAN("GET")))
        return false;
    return true;
}

/* Behind status and size: Squid's word, a duration in milliseconds right behind that. */
static void
read_common_tail(struct span tail, struct trace_line *t)
{
    struct fields f;

    split(tail, &f);
    for (unsigned i = 0; i < f.n; i++)
        if (read_word_pair(f.at[i], t)) {
            if (i + 1 < f.n && is_digits(f.at[i + 1]))
                read_duration(f.at[i + 1], &t->duration_us);
            return;
        }
}

/* `client ident user [time] "request" status size`, or `[time] client word "request" ...`. */
static void
read_common_front(struct span front, struct span between, struct trace_line *t)
{
    struct fields f;

    split(front.n > 0 ? front : between, &f);
    t->client = f.n > 0 ? f.at[0] : SPAN_NONE;
    if (front.n > 0 && f.n >= 3)
        t->user = value_of(f.at[2]);
    for (unsigned i = 0; front.n == 0 && i < f.n; i++)
        read_word_pair(f.at[i], t);
}

static enum trace_verdict
parse_common(struct span line, size_t open, size_t close, size_t quote, struct trace_line *t)
{
    struct span time = span_of(line.at + open + 1, close - open - 1), request;
    struct span between = span_of(line.at + close + 1, quote - close - 1);
    struct span rest = span_skip(line, quote);
    struct fields f;

    t->format = TRACE_COMMON;
    read_common_front(span_trim(span_first(line, open)), between, t);
    if (!trace_time_parse(time, &t->end_us))
        return TRACE_BAD_TIME;
    if (!take_quoted(&rest, &request))
        return TRACE_NO_URL;
    split(rest, &f);
    if (!read_request_line(request, t))
        return TRACE_NOT_HTTP;
    if (f.n < 2)
        return TRACE_NO_URL;
    t->status = status_of(f.at[0]);
    if (!read_size(f.at[1], &t->bytes))
        return TRACE_BAD_SIZE;
    read_common_tail(span_skip(rest, (size_t)(f.at[1].at + f.at[1].n - rest.at)), t);
    return judge_request(t);
}

/* ---- lists ---- */

/* The beginning of a native line whose rest is missing. */
static bool
is_cut_off(const struct fields *f)
{
    int64_t us;

    return f->n <= 4 && f->at[0].n >= EPOCH_TEXT_LEAST && span_index(f->at[0], '.') < f->at[0].n &&
           trace_decimal_parse(f->at[0], &us);
}

static enum trace_verdict
parse_list(const struct fields *f, struct trace_line *t)
{
    struct span size = f->at[f->n - 1];
    bool timed = f->n == 3;

    if (timed && !trace_decimal_parse(f->at[0], &t->end_us))
        return TRACE_PROSE;
    if (!is_digits(size))
        return size.at[0] == '-' && is_digits(span_skip(size, 1)) ? TRACE_BAD_SIZE : TRACE_PROSE;
    if (!read_size(size, &t->bytes))
        return TRACE_BAD_SIZE;
    t->format = timed ? TRACE_TIMED_LIST : TRACE_LIST;
    t->method = SPAN("GET");
    t->status = 200;
    t->url = f->at[f->n - 2];
    return TRACE_OK;
}

/* ---- any ---- */

static const struct trace_line NOTHING_TOLD = {.end_us = -1, .duration_us = -1, .bytes = -1};

static enum trace_verdict
parse_without_anchor(struct span line, const struct fields *f, struct trace_line *t)
{
    size_t open = span_index(line, '['), close = span_index(line, ']');
    size_t quote = span_index(line, '"');

    if (open < close && close < quote && quote < line.n)
        return parse_common(line, open, close, quote, t);
    if (is_cut_off(f) && (f->n != 3 || !is_digits(f->at[2])))
        return TRACE_NO_URL;
    return f->n == 2 || f->n == 3 ? parse_list(f, t) : TRACE_PROSE;
}

enum trace_verdict
trace_line_parse(struct span line, struct trace_line *out)
{
    struct fields f;
    unsigned anchor;

    *out = NOTHING_TOLD;
    if (line.n > 0 && line.at[line.n - 1] == '\r')
        line.n--;
    line = span_trim(line);
    if (line.n == 0 || line.at[0] == '#')
        return TRACE_EMPTY;
    split(line, &f);
    if (f.n == 0)
        return TRACE_EMPTY;
    anchor = find_anchor(&f);
    if (anchor < f.n)
        return parse_native(&f, anchor, out);
    return parse_without_anchor(line, &f, out);
}

const char *
trace_verdict_text(enum trace_verdict v)
{
    static const char *const texts[TRACE_VERDICTS] = {
        [TRACE_OK] = "read",
        [TRACE_EMPTY] = "empty, or a comment",
        [TRACE_PROSE] = "no known layout",
        [TRACE_BAD_TIME] = "time not readable",
        [TRACE_BAD_SIZE] = "size not readable",
        [TRACE_NO_METHOD] = "no request, or no method",
        [TRACE_NO_URL] = "cut off, or nothing that can be asked for",
        [TRACE_NOT_HTTP] = "not HTTP"};

    return v < TRACE_VERDICTS ? texts[v] : "unknown";
}

int64_t
trace_line_arrival_us(const struct trace_line *t)
{
    if (t->end_us < 0 || t->duration_us < 0)
        return t->end_us;
    return t->end_us > t->duration_us ? t->end_us - t->duration_us : 0;
}

bool
trace_line_is_tunnel(const struct trace_line *t)
{
    return span_eq(t->method, SPAN("CONNECT"));
}

bool
trace_line_is_cacheable(const struct trace_line *t)
{
    switch (t->status) {
    case 200:
    case 203:
    case 300:
    case 301:
    case 304:
    case 308:
    case 404:
    case 410:
        return span_eq(t->method, SPAN("GET"));
    default:
        return false;
    }
}

bool
trace_line_is_hit(const struct trace_line *t)
{
    return (t->word.n >= 4 && memmem(t->word.at, t->word.n, "_HIT", 4) != NULL) ||
           span_eq(t->word, SPAN("TCP_REFRESH_UNMODIFIED"));
}
