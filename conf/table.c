/* conf/table.c - the rows of directives.def and names.def as arrays, and finding one by name.
 *
 * Some four hundred names are searched one after the other: a configuration has some hundred
 * lines and is read once, so a hash table would only be one more thing to get wrong. */
#include "conf/table.h"

#include "conf/conf.h"

#define KIB(n) ((int64_t)(n) << 10)
#define MIB(n) ((int64_t)(n) << 20)
#define GIB(n) ((int64_t)(n) << 30)
#define TIB(n) ((int64_t)(n) << 40)
#define SECONDS(n) ((int64_t)(n)*1000)
#define MINUTES(n) SECONDS((n)*60)
#define DAYS(n) MINUTES((int64_t)(n)*24 * 60)

#define RANGE(a, b)                                                                                \
    {                                                                                              \
        .min = (a), .max = (b), .also = INT64_MIN                                                  \
    }
#define RANGE_OR(c, a, b)                                                                          \
    {                                                                                              \
        .min = (a), .max = (b), .also = (c)                                                        \
    }
#define ONE_OF(words)                                                                              \
    {                                                                                              \
        .choices = (words)                                                                         \
    }
#define ANY                                                                                        \
    {                                                                                              \
        .min = INT64_MIN, .max = INT64_MAX, .also = INT64_MIN                                      \
    }

/* Which member of struct conf a row fills follows from its type. */
#define FIELD_SIZE(name) offsetof(struct conf, name)
#define FIELD_SIZE_KB(name) offsetof(struct conf, name)
#define FIELD_TIME(name) offsetof(struct conf, name##_ms)
#define FIELD_TIME_MS(name) offsetof(struct conf, name##_ms)
#define FIELD_NUMBER(name) offsetof(struct conf, name)
#define FIELD_OCTAL(name) offsetof(struct conf, name)
#define FIELD_NETMASK(name) offsetof(struct conf, name)
#define FIELD_FLAG(name) offsetof(struct conf, name)
#define FIELD_TEXT(name) offsetof(struct conf, name)
#define FIELD_HOST(name) offsetof(struct conf, name)
#define FIELD_USER(name) offsetof(struct conf, name)
#define FIELD_GROUP(name) offsetof(struct conf, name)
#define FIELD_PATH(name) offsetof(struct conf, name)
#define FIELD_CHOICE(name) offsetof(struct conf, name)
#define FIELD_POLICY(name) offsetof(struct conf, name)
#define FIELD_FORWARDED(name) offsetof(struct conf, name)
#define FIELD_SERVERS(name) offsetof(struct conf, name)
#define FIELD_RULES(name) offsetof(struct conf, name)
#define FIELD_PORT(name) 0
#define FIELD_ACL(name) 0
#define FIELD_REFRESH(name) 0
#define FIELD_RANGE_LIMIT(name) 0
#define FIELD_CACHE_DIR(name) 0
#define FIELD_ACCESS_LOG(name) 0
#define FIELD_LOGFORMAT(name) 0
#define FIELD_INCLUDE(name) 0

#define SECTION(title)
#define DIRECTIVE(name, type, default_text, range, reload, text)                                   \
    {#name, DIRECTIVE_##type, default_text, range, reload, FIELD_##type(name), text},
const struct directive directives[] = {
#include "conf/directives.def"
};
const unsigned n_directives = sizeof directives / sizeof directives[0];

#define IGNORED(name) {name, NAME_IGNORED, PARDON_NEVER, NULL},
#define IGNORED_BECAUSE(name, hint) {name, NAME_IGNORED, PARDON_NEVER, hint},
#define RENAMED(name, new_name) {name, NAME_RENAMED, PARDON_NEVER, new_name},
#define REFUSED(name, pardon, why) {name, NAME_REFUSED, pardon, why},
const struct other_name other_names[] = {
#include "conf/names.def"
};
const unsigned n_other_names = sizeof other_names / sizeof other_names[0];

enum { NAME_LONGEST = 64, HINT_DISTANCE = 3 };

const struct directive *
directive_find(struct span name)
{
    for (unsigned i = 0; i < n_directives; i++)
        if (span_eq(name, span_str(directives[i].name)))
            return &directives[i];
    return NULL;
}

const struct other_name *
other_name_find(struct span name)
{
    for (unsigned i = 0; i < n_other_names; i++)
        if (span_eq(name, span_str(other_names[i].name)))
            return &other_names[i];
    return NULL;
}

bool
directive_is_known(struct span name)
{
    return directive_find(name) || other_name_find(name);
}

static unsigned
least(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;

    return m < c ? m : c;
}

/* Levenshtein's table, one row at a time. */
unsigned
spelling_distance(struct span a, struct span b, unsigned most)
{
    unsigned row[NAME_LONGEST + 1];

    if (a.n > NAME_LONGEST || b.n > NAME_LONGEST || a.n > b.n + most || b.n > a.n + most)
        return most + 1;
    for (unsigned j = 0; j <= b.n; j++)
        row[j] = j;
    for (unsigned i = 1; i <= a.n; i++) {
        unsigned corner = row[0];

        row[0] = i;
        for (unsigned j = 1; j <= b.n; j++) {
            unsigned above = row[j];

            row[j] = least(above + 1, row[j - 1] + 1, corner + (a.at[i - 1] != b.at[j - 1]));
            corner = above;
        }
    }
    return row[b.n];
}

static void
take_nearer(struct span misspelled, const char *name, const char **nearest, unsigned *distance)
{
    unsigned d = spelling_distance(misspelled, span_str(name), HINT_DISTANCE);

    if (d < *distance) {
        *distance = d;
        *nearest = name;
    }
}

const char *
directive_nearest(struct span misspelled)
{
    const char *nearest = NULL;
    /* A hint for a short word must be closer, or "foo" is taken for "via". */
    unsigned distance = misspelled.n / 3 + 1 < HINT_DISTANCE + 1 ? (unsigned)misspelled.n / 3 + 1
                                                                 : HINT_DISTANCE + 1;

    for (unsigned i = 0; i < n_directives; i++) {
        const char *name = directives[i].name;

        take_nearer(misspelled, name, &nearest, &distance);
        if (strlen(name) > 5 && span_starts(misspelled, span_str(name)))
            return name; /* "refresh_pattern^ftp:", the blank forgotten */
    }
    for (unsigned i = 0; i < n_other_names; i++)
        if (other_names[i].kind != NAME_REFUSED)
            take_nearer(misspelled, other_names[i].name, &nearest, &distance);
    return nearest;
}
