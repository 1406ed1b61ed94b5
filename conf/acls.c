/* conf/acls.c - acl lines: names, types, values from the line and from files.
 *
 * Several lines of one name add up. A line of a built-in name adds to the built-in one, as most
 * files of old define CONNECT or localhost again. A value file can have a hundred thousand lines,
 * so values go into one growing array and one arena, and nothing here looks at the values before.
 */
#include "base/check.h"
#include "conf/reader.h"

static struct conf_acl *
acl_add(struct reader *r, struct span name, const char *type)
{
    struct conf *c = r->c;

    c->acls = reader_grow(c->acls, c->n_acls, sizeof c->acls[0]);
    c->acls[c->n_acls] = (struct conf_acl){
        .name = reader_str(r, name),
        .type = type,
        .place = r->place,
    };
    acl_index_add(c, c->n_acls);
    return &c->acls[c->n_acls++];
}

static void
value_add(struct reader *r, struct conf_acl *a, struct span value)
{
    a->values = reader_grow(a->values, a->n_values, sizeof a->values[0]);
    a->values[a->n_values++] = reader_str(r, value);
    if (span_eq(value, SPAN("-i")) || span_eq(value, SPAN("+i")))
        a->ignores_case = value.at[0] == '-';
}

const struct acl_type *
acl_type_of(const struct conf_acl *a)
{
    return acl_type_find(span_str(a->type));
}

void
acls_builtin(struct reader *r)
{
    static const struct {
        const char *name, *type, *values;
    } builtin[] = {
        {"all", "src", "0.0.0.0/0 ::/0"},
        {"manager", "url_regex", "-i ^cache_object:// +i ^[^:]+://[^/]+/squid-internal-mgr/"},
        {"localhost", "src", "127.0.0.1/32 ::1/128"},
        {"to_localhost", "dst", "127.0.0.0/8 0.0.0.0/8 ::1/128 ::/128"},
        {"to_linklocal", "dst", "169.254.0.0/16 fe80::/10"},
        {"CONNECT", "method", "CONNECT"},
    };

    for (unsigned i = 0; i < sizeof builtin / sizeof builtin[0]; i++) {
        struct conf_acl *a = acl_add(r, span_str(builtin[i].name), builtin[i].type);
        struct span rest = span_str(builtin[i].values);
        struct word w;

        a->builtin = 1;
        while (lexer_word(&rest, &w))
            value_add(r, a, w.text);
        a->n_builtin = a->n_values;
    }
}

static void
values_from_file(struct reader *r, struct conf_acl *a, struct span path)
{
    struct buf text = {0};
    struct lexer lexer;
    struct lexer_line line;
    struct word w;

    if (file_values(r, path, &text)) {
        lexer_init(&lexer, buf_span(&text));
        while (lexer_next(&lexer, &line))
            while (memchr(line.text.at, '\0', line.text.n) == NULL && lexer_word(&line.text, &w))
                if (w.text.n)
                    value_add(r, a, w.text);
    }
    buf_free(&text);
}

/* parameters("file"), the form for files that use quoted values. */
static bool
take_parameters(struct span word, struct span *path)
{
    if (!span_starts(word, SPAN("parameters(\"")) || word.n < 15 ||
        memcmp(word.at + word.n - 2, "\")", 2) != 0)
        return false;
    *path = span_of(word.at + 12, word.n - 14);
    return true;
}

/* Each line of a req_header has the field's name, and all of them the same. */
static unsigned
first_value(struct reader *r, const struct conf_acl *a, const struct line *l)
{
    if (!acl_type_of(a)->has_field || a->n_values == 0 || l->n < 3)
        return 2;
    if (!span_eq_ci(l->words[2].text, span_str(a->values[0])))
        reader_error(r, "%.80s is about the field %.80s in line %u of %.200s", a->name,
                     a->values[0], a->place.line, a->place.file);
    return 3;
}

/* Words with a "-" before the first value are flags, as in Squid, and "--" ends them. Taken for a
 * value, one that nobody knows would be one that never matches. */
static void
refuse_unknown_flags(struct reader *r, const struct line *l, unsigned i)
{
    while (i < l->n && !l->words[i].quoted && acl_flag_is_known(l->words[i].text))
        if (span_eq(l->words[i++].text, SPAN("--")))
            return;
    if (i < l->n && !l->words[i].quoted && span_starts(l->words[i].text, SPAN("-")))
        reader_error(r, "unknown flag \"%.*s\"; expected -i, +i or -n, or -- before the values",
                     SHOWN(l->words[i].text));
}

static void
values_add(struct reader *r, struct conf_acl *a, const struct line *l)
{
    unsigned i = first_value(r, a, l);
    struct span path;

    if (!acl_type_of(a)->supported)
        return; /* no rule may use it, so a file it names need not be there */
    refuse_unknown_flags(r, l, i);
    if (a->ignores_case && acl_type_of(a)->is_regex)
        value_add(r, a, SPAN("+i")); /* a -i ends with its line */
    for (; i < l->n; i++) {
        const struct word *w = &l->words[i];

        if (take_parameters(w->text, &path))
            values_from_file(r, a, path);
        else if (w->quoted && !r->quoted_values)
            values_from_file(r, a, w->text);
        else if (w->text.n)
            value_add(r, a, w->text);
    }
    if (l->n == 2)
        reader_note(r, "%.80s has no value behind its type", a->name);
}

static void
unknown_type(struct reader *r, struct span type)
{
    const char *nearest = reader_shows_errors(r) ? acl_type_nearest(type) : NULL;

    reader_error(r, "unknown type \"%.*s\"%s%s; there are %s", SHOWN(type),
                 nearest ? ", did you mean " : "", nearest ? nearest : "", acl_types_supported());
}

/* myip and myport are older names of localip and localport. */
static bool
is_same_type(const char *a, const char *b)
{
    static const char *const pairs[][2] = {{"myip", "localip"}, {"myport", "localport"}};

    if (strcmp(a, b) == 0)
        return true;
    for (unsigned i = 0; i < 2; i++)
        if ((strcmp(a, pairs[i][0]) == 0 && strcmp(b, pairs[i][1]) == 0) ||
            (strcmp(b, pairs[i][0]) == 0 && strcmp(a, pairs[i][1]) == 0))
            return true;
    return false;
}

/* Are all of them patterns for the proxy's own pages? */
static bool
means_manager(const struct line *l)
{
    for (unsigned i = 2; i < l->n; i++) {
        struct span s = l->words[i].text;

        if (!span_eq(s, SPAN("-i")) && !span_eq(s, SPAN("+i")) && s.n &&
            !memmem(s.at, s.n, "cache_object", 12) && !memmem(s.at, s.n, "squid-internal-mgr", 18))
            return false;
    }
    return true;
}

/* Lines that need no adding: `acl all src ...` can only be everything, and the pages that the
 * definitions of manager mean, of all ages, are those of the built-in one, which knows them better
 * than by their URL. */
static bool
is_covered(struct reader *r, const struct conf_acl *a, const char *type, const struct line *l)
{
    if (!a->builtin)
        return false;
    if (strcmp(a->name, "all") == 0 && strcmp(type, "src") == 0) {
        reader_note(r, "all is built in and means everything, ignored");
        return true;
    }
    if (strcmp(a->name, "manager") == 0 && (!strcmp(type, "proto") || !strcmp(type, "url_regex")))
        return means_manager(l);
    return false;
}

static void
add_to(struct reader *r, struct conf_acl *a, const char *type, const struct line *l)
{
    if (is_covered(r, a, type, l))
        return;
    if (!is_same_type(a->type, type)) {
        if (a->builtin)
            reader_error(r, "%.80s is built in with the type %s", a->name, a->type);
        else
            reader_error(r, "%.80s has the type %s in line %u of %.200s", a->name, a->type,
                         a->place.line, a->place.file);
        return;
    }
    if (a->builtin)
        a->place = r->place;
    values_add(r, a, l);
    a->builtin = 0;
}

void
set_acl(struct reader *r, const struct directive *d, const struct line *l)
{
    const struct acl_type *type;
    struct conf_acl *a;

    if (l->n < 2) {
        reader_error(r, "expected NAME TYPE VALUES");
        return;
    }
    if (l->words[0].text.n == 0 || l->words[0].text.at[0] == '!') {
        reader_error(r, "\"%.*s\" can't be a name", SHOWN(l->words[0].text));
        return;
    }
    type = acl_type_find(l->words[1].text);
    if (type == NULL) {
        unknown_type(r, l->words[1].text);
        return;
    }
    a = (struct conf_acl *)conf_acl_find(r->c, reader_str(r, l->words[0].text));
    if (a)
        add_to(r, a, type->name, l);
    else if (r->c->n_acls >= READER_ACLS_MAX)
        reader_error(r, "more than %d names", READER_ACLS_MAX);
    else
        values_add(r, acl_add(r, l->words[0].text, type->name), l);
}
