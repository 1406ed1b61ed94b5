/* conf/manual.c - cuttle.conf(5) out of the tables.
 *
 * What the manual says about a directive stands beside its default and its range, so that the three
 * can't drift apart. Names that are taken without effect, or refused, are listed as well: people
 * come with a file they have. */
#include <stdio.h>

#include "conf/conf.h"
#include "conf/table.h"
#include "conf/value.h"

static const struct {
    const char *title, *name; /* of a section, or of a directive in it */
} entries[] = {
#define SECTION(title) {title, NULL},
#define DIRECTIVE(name, type, default_text, range, reload, text) {NULL, #name},
#include "conf/directives.def"
};

static void
add_text(struct buf *out, const char *text)
{
    bool at_start = true;

    for (; *text; text++) {
        if (at_start && (*text == '.' || *text == '\''))
            BUF_ADD(out, "\\&");
        at_start = *text == '\n';
        if (*text == '\n')
            BUF_ADD(out, "\n.IP\n");
        else if (*text == '\\')
            BUF_ADD(out, "\\e");
        else if (*text == '-')
            BUF_ADD(out, "\\-");
        else
            buf_add_char(out, *text);
    }
    buf_add_char(out, '\n');
}

static const char *
kind_of_value(const struct directive *d)
{
    switch (d->type) {
    case DIRECTIVE_SIZE:
    case DIRECTIVE_SIZE_KB:
        return "size";
    case DIRECTIVE_TIME:
    case DIRECTIVE_TIME_MS:
        return "time";
    case DIRECTIVE_NUMBER:
    case DIRECTIVE_OCTAL:
        return "number";
    case DIRECTIVE_FLAG:
        return "on|off";
    case DIRECTIVE_CHOICE:
    case DIRECTIVE_POLICY:
    case DIRECTIVE_FORWARDED:
        return d->range.choices;
    case DIRECTIVE_PATH:
        return "file";
    case DIRECTIVE_TEXT:
    case DIRECTIVE_HOST:
    case DIRECTIVE_USER:
    case DIRECTIVE_GROUP:
        return "word";
    default:
        return ""; /* the text begins with the form of the line */
    }
}

static void
value_text(const struct directive *d, int64_t value, char *out)
{
    if (d->type == DIRECTIVE_NUMBER)
        snprintf(out, VALUE_TEXT_MAX, "%lld", (long long)value);
    else if (d->type == DIRECTIVE_OCTAL)
        value_octal_text(value, out);
    else if (d->type == DIRECTIVE_TIME || d->type == DIRECTIVE_TIME_MS)
        value_time_text(value, out);
    else
        value_size_text(value, out);
}

static void
add_range(struct buf *out, const struct directive *d)
{
    char least[VALUE_TEXT_MAX], most[VALUE_TEXT_MAX];

    if (!directive_is_number(d))
        return;
    value_text(d, d->range.min, least);
    value_text(d, d->range.max, most);
    buf_addf(out, " From %s to %s", least, most);
    if (d->range.also != INT64_MIN)
        buf_addf(out, ", or %lld", (long long)d->range.also);
    BUF_ADD(out, ".");
}

static void
add_directive(struct buf *out, const struct directive *d)
{
    buf_addf(out, ".TP\n.BR %s \" ", d->name);
    buf_addf(out, "%s\"\n", kind_of_value(d));
    add_text(out, d->text);
    BUF_ADD(out, ".br\n");
    if (d->default_text)
        buf_addf(out, "Default: %s.", d->default_text);
    add_range(out, d);
    if (d->default_text || directive_is_number(d))
        BUF_ADD(out, " ");
    if (d->reload == RELOAD_LIVE)
        BUF_ADD(out, "A reconfigure changes it.\n");
    else
        BUF_ADD(out, "A change needs a restart.\n");
}

static void
add_names(struct buf *out, enum name_kind kind)
{
    const char *before = "";

    for (unsigned i = 0; i < n_other_names; i++) {
        if (other_names[i].kind != kind)
            continue;
        if (kind == NAME_IGNORED)
            buf_addf(out, "%s%s", before, other_names[i].name);
        else
            buf_addf(out, ".TP\n.B %s\n%s%s.\n", other_names[i].name,
                     kind == NAME_RENAMED ? "is " : "", other_names[i].text);
        before = ",\n";
    }
    if (kind == NAME_IGNORED)
        BUF_ADD(out, ".\n");
}

static void
add_opening(struct buf *out)
{
    BUF_ADD(
        out,
        ".TH CUTTLE.CONF 5\n.SH NAME\ncuttle.conf \\- configuration of the caching proxy cuttle\n"
        ".SH DESCRIPTION\n");
    add_text(out, "The file is written in the dialect of squid.conf: one directive a line, words "
                  "separated by "
                  "blanks. A word that starts with # starts a comment. A line that ends in a "
                  "backslash goes on in the next one.");
    BUF_ADD(out, ".PP\n");
    add_text(
        out,
        "Sizes are numbers with bytes, KB, MB, GB or TB (powers of 1024). Times are numbers with "
        "milliseconds, seconds, minutes, hours, days, weeks, months (of 30 days) or "
        "years; without a unit they are seconds. A directive that has one value and is "
        "given twice has the last one.");
    BUF_ADD(out, ".PP\n");
    add_text(out, "${process_number}, ${process_name} and ${service_name} stand for 1, cuttle and "
                  "cuttle. Lines "
                  "between if CONDITION, else and endif are read as the condition (true, false, "
                  "or number = number) says.");
    BUF_ADD(out, ".PP\n");
    add_text(out, "All mistakes of a file are told at once, each with file and line, and a file "
                  "with a mistake "
                  "is not used.");
}

static void
add_closing(struct buf *out)
{
    BUF_ADD(out, ".SH OLDER NAMES\nThese are taken, with a note:\n");
    add_names(out, NAME_RENAMED);
    BUF_ADD(out, ".SH REFUSED\nThese directives of Squid do something whose absence would be "
                 "dangerous. Without "
                 "cuttle knowing them:\n");
    add_names(out, NAME_REFUSED);
    BUF_ADD(out, ".PP\nA line that asks for nothing (off, none, allow all, deny all, as the case "
                 "may be) is taken.\n"
                 ".SH IGNORED\n"
                 "These directives of Squid only tune or place something. They are taken with a "
                 "note and have no effect:\n");
    add_names(out, NAME_IGNORED);
}

void
conf_manual(struct buf *out)
{
    add_opening(out);
    for (unsigned i = 0; i < sizeof entries / sizeof entries[0]; i++)
        if (entries[i].title)
            buf_addf(out, ".SH %s\n", entries[i].title);
        else
            add_directive(out, directive_find(span_str(entries[i].name)));
    add_closing(out);
}
