/* conf/parser.c - from a line to the setter of its directive.
 *
 * What a line means is decided by the tables: a directive is set, a known other name is passed over
 * with a note or refused, and an unknown one is a mistake with a hint. Passing over what nobody
 * knows would turn "htp_access deny all" into an open proxy. */
#include "base/check.h"
#include "conf/reader.h"
#include "conf/value.h"

static void (*const setters[])(struct reader *, const struct directive *, const struct line *) = {
    [DIRECTIVE_SIZE] = set_number,
    [DIRECTIVE_SIZE_KB] = set_number,
    [DIRECTIVE_TIME] = set_number,
    [DIRECTIVE_TIME_MS] = set_number,
    [DIRECTIVE_NUMBER] = set_number,
    [DIRECTIVE_OCTAL] = set_number,
    [DIRECTIVE_FLAG] = set_flag,
    [DIRECTIVE_TEXT] = set_word,
    [DIRECTIVE_HOST] = set_host,
    [DIRECTIVE_USER] = set_account,
    [DIRECTIVE_GROUP] = set_account,
    [DIRECTIVE_PATH] = set_word,
    [DIRECTIVE_CHOICE] = set_word,
    [DIRECTIVE_POLICY] = set_policy,
    [DIRECTIVE_FORWARDED] = set_word,
    [DIRECTIVE_SERVERS] = set_servers,
    [DIRECTIVE_NETMASK] = set_netmask,
    [DIRECTIVE_PORT] = set_port,
    [DIRECTIVE_ACL] = set_acl,
    [DIRECTIVE_RULES] = set_rules,
    [DIRECTIVE_REFRESH] = set_refresh,
    [DIRECTIVE_RANGE_LIMIT] = set_range_limit,
    [DIRECTIVE_CACHE_DIR] = set_cache_dir,
    [DIRECTIVE_ACCESS_LOG] = set_access_log,
    [DIRECTIVE_LOGFORMAT] = set_logformat,
};

void
parser_set(struct reader *r, const struct directive *d, const struct line *l)
{
    if (d->type == DIRECTIVE_INCLUDE)
        file_include(r, l);
    else
        setters[d->type](r, d, l);
}

static bool
has_word(const struct line *l, const char *word)
{
    for (unsigned i = 0; i < l->n; i++)
        if (span_eq(l->words[i].text, span_str(word)))
            return true;
    return false;
}

static bool
is_off(const struct line *l)
{
    struct span first = l->n ? l->words[0].text : SPAN_NONE;

    return span_eq(first, SPAN("off")) || span_eq(first, SPAN("none")) || span_eq(first, SPAN("0"));
}

static bool
is_any_address(const struct line *l)
{
    static const char *const any[] = {"0.0.0.0", "255.255.255.255", "::"};

    for (unsigned i = 0; i < sizeof any / sizeof any[0]; i++)
        if (l->n == 1 && span_eq(l->words[0].text, span_str(any[i])))
            return true;
    return false;
}

static bool
is_pardoned(enum name_pardon pardon, const struct line *l)
{
    switch (pardon) {
    case PARDON_NEVER:
        return false;
    case PARDON_OFF:
        return is_off(l);
    case PARDON_DENY:
        return has_word(l, "deny") && !has_word(l, "allow");
    case PARDON_ALLOW:
        return has_word(l, "allow") && !has_word(l, "deny");
    case PARDON_ALLOW_ALL:
        return l->n == 2 && has_word(l, "allow") && has_word(l, "all");
    case PARDON_ANY_ADDRESS:
        return is_any_address(l);
    }
    UNREACHABLE();
}

/* One message for each name, not for each line of it: forty header_access lines are one problem. */
static bool
said_before(struct reader *r, const struct other_name *o)
{
    bool *seen = &r->name_seen[o - other_names];
    bool before = *seen;

    *seen = true;
    return before;
}

static void
parse_other(struct reader *r, const struct other_name *o, const struct line *l)
{
    const struct directive *d;

    if (o->kind == NAME_REFUSED && is_pardoned(o->pardon, l))
        return;
    switch (o->kind) {
    case NAME_REFUSED:
        if (!said_before(r, o))
            reader_error(r, "not supported: %s", o->text);
        return;
    case NAME_IGNORED:
        if (!said_before(r, o))
            reader_note(r, "not used by cuttle, ignored%s%s", o->text ? ": " : "",
                        o->text ? o->text : "");
        return;
    case NAME_RENAMED:
        if (!said_before(r, o))
            reader_note(r, "is called %s now", o->text);
        d = directive_find(span_str(o->text));
        CHECK(d != NULL);
        parser_set(r, d, l);
        return;
    }
}

static void
parse_unknown(struct reader *r, struct span name)
{
    const char *nearest = reader_shows_errors(r) ? directive_nearest(name) : NULL;

    if (nearest)
        reader_error(r, "unknown directive; did you mean %s?", nearest);
    else
        reader_error(r, "unknown directive");
}

/* Its value tells how quotes are read from here on; cuttle needs no quotes, but honours the rule.
 */
static void
set_quoted_values(struct reader *r, const struct line *l)
{
    if (l->n != 1 || !value_flag(l->words[0].text, &r->quoted_values))
        reader_error(r, "expected on or off");
}

static bool
quotes_are_closed(struct reader *r, const struct line *l)
{
    for (unsigned i = 0; i < l->n; i++)
        if (l->words[i].open) {
            reader_error(r, "a quote is opened and not closed");
            return false;
        }
    return true;
}

static void
parse_directive(struct reader *r, struct span name, const struct line *l)
{
    const struct directive *d = directive_find(name);
    const struct other_name *o = d ? NULL : other_name_find(name);

    r->directive = d ? d->name : o ? o->name : reader_str(r, span_first(name, 80));
    if (o)
        parse_other(r, o, l);
    else if (span_eq(name, SPAN("configuration_includes_quoted_values")))
        set_quoted_values(r, l);
    else if (d == NULL)
        parse_unknown(r, name);
    else if (d->type == DIRECTIVE_LOGFORMAT || quotes_are_closed(r, l))
        parser_set(r, d, l);
    r->directive = NULL;
}

static bool
is_read(const struct reader *r)
{
    for (unsigned i = 0; i < r->n_ifs; i++)
        if (!r->ifs[i])
            return false;
    return true;
}

/* true, false, a number, or number = number (also < and >), as Squid has it. */
static bool
evaluate(const struct line *l, bool *holds)
{
    int64_t a, b;

    if (l->n == 1 && value_number(l->words[0].text, &a))
        *holds = a != 0;
    else if (l->n == 1 && span_eq(l->words[0].text, SPAN("true")))
        *holds = true;
    else if (l->n == 1 && span_eq(l->words[0].text, SPAN("false")))
        *holds = false;
    else if (l->n == 3 && l->words[1].text.n == 1 && value_number(l->words[0].text, &a) &&
             value_number(l->words[2].text, &b)) {
        char sign = l->words[1].text.at[0];

        *holds = sign == '=' ? a == b : sign == '<' ? a < b : a > b;
        return sign == '=' || sign == '<' || sign == '>';
    } else
        return false;
    return true;
}

static void
parse_if(struct reader *r, const struct line *l)
{
    bool holds = false;

    r->directive = "if";
    if (r->n_ifs == READER_IFS_MAX) {
        reader_error(r, "nested more than %d deep", READER_IFS_MAX);
        return;
    }
    if (!evaluate(l, &holds))
        reader_error(r, "expected true, false or number = number");
    r->ifs[r->n_ifs++] = holds;
}

static bool
parse_condition(struct reader *r, struct span name, const struct line *l, unsigned outer)
{
    if (span_eq(name, SPAN("if"))) {
        parse_if(r, l);
        return true;
    }
    if (!span_eq(name, SPAN("else")) && !span_eq(name, SPAN("endif")))
        return false;
    r->directive = name.n == 4 ? "else" : "endif";
    if (l->n)
        reader_error(r, "expected nothing behind it, found \"%.*s\"", SHOWN(l->words[0].text));
    if (r->n_ifs <= outer)
        reader_error(r, "there is no if before it");
    else if (name.n == 4)
        r->ifs[r->n_ifs - 1] = !r->ifs[r->n_ifs - 1];
    else
        r->n_ifs--;
    return true;
}

/* Squid's macros. There is one process, so it is the first and the only one. */
static bool
take_macro(struct span *rest, struct buf *out)
{
    static const struct {
        struct span name, value;
    } macros[] = {
        {{"${process_number}", 17}, {"1", 1}},
        {{"${process_name}", 15}, {"cuttle", 6}},
        {{"${service_name}", 15}, {"cuttle", 6}},
    };

    for (unsigned i = 0; i < sizeof macros / sizeof macros[0]; i++)
        if (span_starts(*rest, macros[i].name)) {
            buf_add(out, macros[i].value);
            *rest = span_skip(*rest, macros[i].name.n);
            return true;
        }
    return false;
}

static struct span
expand(struct span text, struct buf *out)
{
    if (text.n == 0 || memmem(text.at, text.n, "${", 2) == NULL)
        return text;
    out->n = 0;
    while (text.n) {
        if (text.at[0] == '$' && take_macro(&text, out))
            continue;
        buf_add_char(out, text.at[0]);
        text = span_skip(text, 1);
    }
    return buf_span(out);
}

static void
parse_line(struct reader *r, struct span text, struct buf *words, unsigned outer)
{
    unsigned n = lexer_words(text, words);
    const struct word *w = (const struct word *)words->at;
    struct span name, behind;

    r->directive = NULL;
    if (text.n && memchr(text.at, '\0', text.n)) {
        reader_error(r, "the line has a NUL byte");
        return;
    }
    if (n == 0)
        return;
    name = w[0].text;
    behind = span_skip(text, (size_t)(name.at + name.n + w[0].quoted - text.at));
    struct line l = {.words = w + 1, .n = n - 1, .text = span_trim(behind)};
    if (!parse_condition(r, name, &l, outer) && is_read(r))
        parse_directive(r, name, &l);
    r->directive = NULL;
}

void
parser_text(struct reader *r, struct span text)
{
    struct buf words = {0}, expanded = {0};
    struct lexer lexer;
    struct lexer_line line;
    unsigned outer = r->n_ifs;

    lexer_init(&lexer, text);
    lexer.is_directive = directive_is_known;
    while (lexer_next(&lexer, &line)) {
        r->place.line = line.number;
        if (line.swallowed)
            reader_note(r, "ends in a backslash, so that line %u belongs to it: is it meant?",
                        line.swallowed);
        parse_line(r, expand(line.text, &expanded), &words, outer);
    }
    if (r->n_ifs > outer)
        reader_error(r, "an if has no endif");
    r->n_ifs = outer;
    buf_free(&words);
    buf_free(&expanded);
}
