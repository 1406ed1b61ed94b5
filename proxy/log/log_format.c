/* log_format.c - logformat text to a row of operations.
 *
 *     %[encoding][-][0][width][.most][{argument}]code[{argument}]
 *
 * The dialect is Squid's, with what is easily forgotten: a code between double quotes or brackets
 * of the text is encoded for them, without being told so, and the longest code wins (%<st is not
 * %<s and a t). Reading happens once; a line is then written without looking at the text again. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"
#include "proxy/log/log_op.h"

enum { WIDTH_MOST = 4096 };

static const struct {
    const char *name, *text;
} built_in[] = {
    {"squid", "%ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru %[un %Sh/%<a %mt"},
    {"common", "%>a - %[un [%tl] \"%rm %ru HTTP/%rv\" %>Hs %<st %Ss:%Sh"},
    {"combined", "%>a - %[un [%tl] \"%rm %ru HTTP/%rv\" %>Hs %<st \"%{Referer}>h\" "
                 "\"%{User-Agent}>h\" %Ss:%Sh"},
    {"referrer", "%ts.%03tu %>a %{Referer}>h %ru"},
    {"useragent", "%>a [%tl] \"%{User-Agent}>h\""},
    {"json", ""},
};

static const struct {
    const char *text;
    enum log_code code;
} codes[] = {
#define LOG_CODE(text, id) {text, LOG_##id},
#include "proxy/log/log_codes.def"
#undef LOG_CODE
};

struct reader {
    struct log_format *format;
    struct conf_place place;
    struct buf *errors;
    unsigned n_problems;
    enum log_quote around; /* QUOTE_PLAIN: neither quotes nor brackets are open in the text */
};

static void
problem(struct reader *rd, struct span what, const char *why)
{
    rd->n_problems++;
    buf_addf(rd->errors, "%s:%u: logformat: %.*s: %s\n", rd->place.file, rd->place.line,
             SPAN_ARG(span_first(what, 40)), why);
}

static struct log_op *
op_add(struct log_format *f)
{
    if (f->n == f->cap) {
        f->cap = f->cap ? f->cap * 2 : 32;
        f->ops = mem_realloc(f->ops, f->cap * sizeof *f->ops);
    }
    f->ops[f->n] = (struct log_op){0};
    return &f->ops[f->n++];
}

/* Follows the quotes and brackets of the literal text, since they decide how the codes inside are
 * encoded. */
static void
follow_quotes(struct reader *rd, struct span literal)
{
    for (size_t i = 0; i < literal.n; i++) {
        char c = literal.at[i];

        if (rd->around == QUOTE_PLAIN)
            rd->around = c == '"' ? QUOTE_STRING : c == '[' ? QUOTE_BRACKETS : QUOTE_PLAIN;
        else if (c == (rd->around == QUOTE_STRING ? '"' : ']'))
            rd->around = QUOTE_PLAIN;
    }
}

static void
literal_add(struct reader *rd, struct span text)
{
    if (text.n == 0)
        return;
    follow_quotes(rd, text);
    op_add(rd->format)->text = text;
}

static size_t
read_encoding(struct span s, struct log_op *op, enum log_quote around)
{
    static const char letters[] = "\"['#/";
    static const enum log_quote quotes[] = {QUOTE_STRING, QUOTE_BRACKETS, QUOTE_RAW, QUOTE_URL,
                                            QUOTE_STRING};
    const char *found = s.n && s.at[0] ? strchr(letters, s.at[0]) : NULL;

    op->quote = found ? quotes[found - letters] : around;
    op->quote_given = found != NULL || around != QUOTE_PLAIN;
    return found != NULL;
}

static size_t
read_number(struct span s, unsigned *out)
{
    uint64_t v = 0;
    size_t n = 0;

    while (n < s.n && s.at[n] >= '0' && s.at[n] <= '9')
        n++;
    if (n && !span_to_uint(span_first(s, n), WIDTH_MOST, &v))
        v = WIDTH_MOST + 1;
    *out = (unsigned)v;
    return n;
}

static size_t
read_width(struct span s, struct log_op *op)
{
    size_t n = 0;

    if (n < s.n && s.at[n] == '-')
        op->left = true, n++;
    if (n < s.n && s.at[n] == '0')
        op->zero = true, n++;
    n += read_number(span_skip(s, n), &op->width);
    if (n < s.n && s.at[n] == '.')
        n += 1 + read_number(span_skip(s, n + 1), &op->most);
    return n;
}

static size_t
read_argument(struct span s, struct log_op *op)
{
    size_t end = span_index(s, '}');

    if (s.n == 0 || s.at[0] != '{' || end == s.n)
        return 0;
    op->text = span_of(s.at + 1, end - 1);
    return end + 1;
}

/* Whole families we have nothing for: %icap::tr, %ssl::>sni, %adapt::all_trs. */
static size_t
family_length(struct span s)
{
    size_t n = 0;

    while (n < s.n && ((s.at[n] >= 'a' && s.at[n] <= 'z') || s.at[n] == '_'))
        n++;
    if (n == 0 || !span_starts(span_skip(s, n), SPAN("::")))
        return 0;
    n += 2;
    while (n < s.n && (s.at[n] == '<' || s.at[n] == '>'))
        n++;
    while (n < s.n && (((s.at[n] | 0x20) >= 'a' && (s.at[n] | 0x20) <= 'z') || s.at[n] == '_'))
        n++;
    return n;
}

static size_t
read_code(struct span s, struct log_op *op)
{
    size_t best = 0;

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        struct span text = span_str(codes[i].text);

        if (text.n > best && span_starts(s, text)) {
            best = text.n;
            op->code = codes[i].code;
        }
    }
    if (best == 0 && (best = family_length(s)) > 0)
        op->code = LOG_MISSING;
    return best;
}

static void
note_missing(const struct reader *rd, struct span code)
{
    log_event(LOG_NOTE, "%s:%u: logformat: %%%.*s is not known here and is written as -",
              rd->place.file, rd->place.line, SPAN_ARG(code));
}

/* An element of a list field (Name:;element) is more than a record line needs; all other arguments
 * are names. */
static void
settle_field(struct reader *rd, struct log_op *op)
{
    if (op->code != LOG_REQUEST_FIELDS && op->code != LOG_RESPONSE_FIELDS)
        return;
    if (!op->quote_given)
        op->quote = QUOTE_UNSAFE;
    if (op->text.n == 0)
        return;
    if (span_index(op->text, ':') < op->text.n) {
        note_missing(rd, op->text);
        op->code = LOG_MISSING;
    }
    op->field = field_id_of(op->text);
}

/* s starts behind the percent sign. Returns what was taken. */
static size_t
code_add(struct reader *rd, struct span s)
{
    struct log_op op = {0};
    size_t n, code;

    n = read_encoding(s, &op, rd->around);
    n += read_width(span_skip(s, n), &op);
    n += read_argument(span_skip(s, n), &op);
    code = read_code(span_skip(s, n), &op);
    if (code == 0) {
        problem(rd, span_of(s.at - 1, s.n + 1), "there is no such code");
        return n;
    }
    if (op.code == LOG_MISSING)
        note_missing(rd, span_first(span_skip(s, n), code));
    n += code;
    if (op.text.n == 0)
        n += read_argument(span_skip(s, n), &op);
    if (op.width > WIDTH_MOST || op.most > WIDTH_MOST)
        problem(rd, span_of(s.at - 1, n + 1), "the width is too large");
    settle_field(rd, &op);
    *op_add(rd->format) = op;
    return n;
}

static void
read_text(struct reader *rd, struct span rest)
{
    while (rest.n) {
        size_t n = span_index(rest, '%');

        literal_add(rd, span_first(rest, n));
        if (n == rest.n)
            return;
        rest = span_skip(rest, n + 1);
        if (rest.n && rest.at[0] == '%') {
            literal_add(rd, span_first(rest, 1));
            rest = span_skip(rest, 1);
        } else {
            rest = span_skip(rest, code_add(rd, rest));
        }
    }
}

static const char *
built_in_text(const char *name)
{
    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++)
        if (strcasecmp(built_in[i].name, name) == 0)
            return built_in[i].text;
    return NULL;
}

static struct conf_place
place_of_user(const struct conf *c, const char *name)
{
    for (unsigned i = 0; i < c->n_access_logs; i++)
        if (c->access_logs[i].format && strcmp(c->access_logs[i].format, name) == 0)
            return c->access_logs[i].place;
    return (struct conf_place){"configuration", 0};
}

/* The operator's definition comes before a built-in one of the same name, and of two the later one.
 */
static const char *
find_text(const struct conf *c, const char *name, struct conf_place *place, bool *is_built_in)
{
    *is_built_in = false;
    for (unsigned i = c->n_logformats; i-- > 0;) {
        if (strcmp(c->logformats[i].name, name) == 0) {
            *place = c->logformats[i].place;
            return c->logformats[i].text;
        }
    }
    *is_built_in = true;
    *place = place_of_user(c, name);
    return built_in_text(name);
}

unsigned
log_format_new(const struct conf *c, const char *name, struct buf *errors, struct log_format **out)
{
    struct log_format *f = mem_zalloc(sizeof *f);
    struct reader rd = {.format = f, .errors = errors, .around = QUOTE_PLAIN};
    struct buf text = {0};
    bool is_built_in;
    const char *found = find_text(c, name, &rd.place, &is_built_in);

    f->strip_query = c->strip_query_terms;
    *out = f;
    if (found == NULL) {
        problem(&rd, span_str(name), "there is no such format");
        return rd.n_problems;
    }
    f->json = is_built_in && *found == '\0';
    buf_add(&text, span_str(found));
    if (is_built_in && !f->json && c->log_mime_hdrs)
        BUF_ADD(&text, " [%>h] [%<h]");
    f->text = text.at;
    read_text(&rd, buf_span(&text));
    return rd.n_problems;
}

void
log_format_free(struct log_format **held)
{
    struct log_format *f = *held;

    *held = NULL;
    if (f == NULL)
        return;
    mem_free(f->ops);
    mem_free(f->text);
    mem_free(f);
}
