/* conf/lexer.c - logical lines and words.
 *
 * A line that stands alone, as nearly all do, is handed out where it lies; only continued lines are
 * copied together. Joining adds no blank, as in Squid: a word may be cut in two by a backslash. */
#include "conf/lexer.h"

void
lexer_init(struct lexer *l, struct span text)
{
    *l = (struct lexer){.rest = text};
    if (span_starts(text, SPAN("\xef\xbb\xbf")))
        l->rest = span_skip(text, 3); /* the mark some editors put first */
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static struct span
skip_blanks(struct span s)
{
    while (s.n && is_blank(s.at[0]))
        s = span_skip(s, 1);
    return s;
}

/* Does a word of this line start with '#'? */
static bool
has_comment(struct span line)
{
    for (size_t i = 0; i < line.n; i++)
        if (line.at[i] == '#' && (i == 0 || is_blank(line.at[i - 1])))
            return true;
    return false;
}

static struct span
first_word(struct span line)
{
    size_t n = 0;

    while (n < line.n && !is_blank(line.at[n]))
        n++;
    return span_first(line, n);
}

static bool
take_line(struct lexer *l, struct span *line)
{
    if (l->rest.n == 0)
        return false;
    *line = span_first(l->rest, span_index(l->rest, '\n'));
    l->rest = span_skip(l->rest, line->n + 1);
    if (line->n && line->at[line->n - 1] == '\r')
        line->n--;
    l->line++;
    return true;
}

static bool
continues(struct span *line)
{
    if (line->n == 0 || line->at[line->n - 1] != '\\' || has_comment(*line))
        return false;
    line->n--;
    return true;
}

/* The line before ended in a backslash: adds what follows, up to a line without one. */
static void
join(struct lexer *l, struct lexer_line *out)
{
    struct span line;
    bool more = true;

    l->joined.n = 0;
    buf_add(&l->joined, out->text);
    while (more && take_line(l, &line)) {
        struct span word = first_word(line);

        /* A regular expression that ends its line with a backslash, by mistake. */
        if (word.n && l->is_directive && out->swallowed == 0 && l->is_directive(word))
            out->swallowed = l->line;
        more = continues(&line);
        buf_add(&l->joined, line);
    }
    out->text = buf_span(&l->joined);
}

bool
lexer_next(struct lexer *l, struct lexer_line *out)
{
    struct span line;

    while (take_line(l, &line)) {
        struct span text = skip_blanks(line);

        if (text.n == 0 || text.at[0] == '#')
            continue;
        *out = (struct lexer_line){.number = l->line};
        bool more = continues(&text);
        out->text = text;
        if (more)
            join(l, out);
        return true;
    }
    buf_free(&l->joined);
    return false;
}

static bool
quoted_word(struct span *rest, struct word *out)
{
    char quote = rest->at[0];
    struct span inside = span_skip(*rest, 1);
    size_t n = span_index(inside, quote);

    *out = (struct word){.text = span_first(inside, n), .quoted = true, .open = n == inside.n};
    *rest = span_skip(inside, n + 1);
    return true;
}

bool
lexer_word(struct span *rest, struct word *out)
{
    *rest = skip_blanks(*rest);
    if (rest->n == 0 || rest->at[0] == '#') {
        *rest = span_skip(*rest, rest->n);
        return false;
    }
    if (rest->at[0] == '"' || rest->at[0] == '\'')
        return quoted_word(rest, out);
    *out = (struct word){.text = first_word(*rest)};
    *rest = span_skip(*rest, out->text.n);
    return true;
}

unsigned
lexer_words(struct span text, struct buf *words)
{
    struct word w;

    words->n = 0;
    while (lexer_word(&text, &w))
        buf_add(words, span_of(&w, sizeof w));
    return (unsigned)(words->n / sizeof w);
}
