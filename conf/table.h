/* conf/table.h - every directive once: the rows of directives.def, and of names.def the names
 * Squid knows and cuttle does not use.
 *
 * Static and constant. A row says where its value lives in struct conf, so the parser, the dump
 * and the manual are loops over the table. */
#ifndef CONF_TABLE_H
#define CONF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

enum directive_type {
    DIRECTIVE_SIZE,      /* int64_t bytes */
    DIRECTIVE_SIZE_KB,   /* the same; a bare number counts in KB */
    DIRECTIVE_TIME,      /* int64_t milliseconds; a bare number counts seconds */
    DIRECTIVE_TIME_MS,   /* the same; a bare number counts milliseconds */
    DIRECTIVE_NUMBER,    /* int64_t */
    DIRECTIVE_OCTAL,     /* int64_t, written in octal */
    DIRECTIVE_FLAG,      /* bool */
    DIRECTIVE_TEXT,      /* const char *: one word */
    DIRECTIVE_HOST,      /* the same, fit to stand in a message */
    DIRECTIVE_USER,      /* the same, known to the system */
    DIRECTIVE_GROUP,     /* the same */
    DIRECTIVE_PATH,      /* const char *: a file; "none" is NULL */
    DIRECTIVE_CHOICE,    /* const char *: one of the words of the range */
    DIRECTIVE_POLICY,    /* the same; Squid's heap NAME becomes one of them */
    DIRECTIVE_FORWARDED, /* enum conf_forwarded_for */
    DIRECTIVE_SERVERS,   /* const char *: addresses with optional port, of all lines */
    DIRECTIVE_NETMASK,   /* struct conf_netmask */
    DIRECTIVE_PORT,      /* lists from here on */
    DIRECTIVE_ACL,
    DIRECTIVE_RULES, /* struct conf_rules */
    DIRECTIVE_REFRESH,
    DIRECTIVE_RANGE_LIMIT,
    DIRECTIVE_CACHE_DIR,
    DIRECTIVE_ACCESS_LOG,
    DIRECTIVE_LOGFORMAT,
    DIRECTIVE_INCLUDE
};

enum directive_reload {
    RELOAD_LIVE,   /* a reconfigure applies it to what starts from then on */
    RELOAD_RESTART /* fixed while the process runs */
};

/* min..max, and one value outside of it that means something else (0 or -1). */
struct directive_range {
    int64_t min, max, also;
    const char *choices; /* CHOICE: words separated by blanks */
};

struct directive {
    const char *name;
    enum directive_type type;
    const char *default_text; /* as in a file; NULL: none */
    struct directive_range range;
    enum directive_reload reload;
    size_t offset;    /* in struct conf */
    const char *text; /* for the manual */
};

enum name_kind { NAME_IGNORED, NAME_RENAMED, NAME_REFUSED };

/* With which values is a line of a refused name without effect, so that it can be dropped? */
enum name_pardon {
    PARDON_NEVER,
    PARDON_OFF,        /* off, none or 0 */
    PARDON_DENY,       /* deny ... */
    PARDON_ALLOW,      /* no word is "deny" */
    PARDON_ALLOW_ALL,  /* allow all */
    PARDON_ANY_ADDRESS /* 0.0.0.0, 255.255.255.255 or :: */
};

struct other_name {
    const char *name;
    enum name_kind kind;
    enum name_pardon pardon;
    const char
        *text; /* ignored: a hint or NULL; renamed: the new name; refused: what would go wrong */
};

extern const struct directive directives[];
extern const unsigned n_directives;
extern const struct other_name other_names[];
extern const unsigned n_other_names;

const struct directive *directive_find(struct span name); /* NULL: none */
const struct other_name *other_name_find(struct span name);
bool directive_is_known(struct span name);             /* in either table */
const char *directive_nearest(struct span misspelled); /* NULL: nothing is near */
/* Number of letters to change, add or drop, or more than `most` (then just some larger value). */
unsigned spelling_distance(struct span a, struct span b, unsigned most);

/* Has an int64_t with a range. */
static inline bool
directive_is_number(const struct directive *d)
{
    return d->type <= DIRECTIVE_OCTAL;
}

static inline bool
directive_is_list(const struct directive *d)
{
    return d->type >= DIRECTIVE_PORT;
}

#endif
