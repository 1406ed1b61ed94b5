/* conf/reader.h - the state of reading one configuration; known inside conf/ only.
 *
 * A mistake is noted with its place and reading goes on, so that one run shows all of them. What
 * files can make us do is bounded: depth, number and size of files, number of acls, of messages. */
#ifndef CONF_READER_H
#define CONF_READER_H

#include "conf/acl_types.h"
#include "conf/conf.h"
#include "conf/lexer.h"
#include "conf/table.h"

enum {
    READER_DEPTH_MAX = 16, /* of include */
    READER_FILES_MAX = 4096,
    READER_FILE_BYTES_MAX = 64 << 20,
    READER_ALL_BYTES_MAX = 256 << 20,
    READER_ACLS_MAX = 10000,
    READER_PORTS_MAX = 128,
    READER_LOGS_MAX = 256,     /* access_log and logformat lines, each */
    READER_MESSAGES_MAX = 200, /* shown, of notes and of errors */
    READER_IFS_MAX = 16
};

struct reader {
    struct conf *c;
    struct conf_place place; /* of the line being read */
    const char *directive;   /* its name */
    unsigned depth, n_files, n_notes;
    size_t n_bytes;
    bool include_failed, port_seen, quoted_values;
    bool *name_seen;          /* per row of other_names: already said */
    bool *acl_refused;        /* per acl: a rule uses it and was refused */
    bool ifs[READER_IFS_MAX]; /* is this branch read? */
    unsigned n_ifs;
};

struct line { /* a directive's words behind its name */
    const struct word *words;
    unsigned n;
    struct span text; /* as it stands in the file */
};

#define SHOWN(s) (int)((s).n < 80 ? (s).n : 80), (s).at /* for "%.*s": a word of unknown length */

/* One line "file:line: directive: ..."; the _at forms for another place than the current line. */
void reader_error(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void reader_note(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void reader_error_at(struct reader *r, struct conf_place place, const char *directive,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));
void reader_note_at(struct reader *r, struct conf_place place, const char *directive,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
char *reader_str(struct reader *r, struct span s); /* a copy the snapshot owns */
/* Room for one more item of an array that has n; arrays grow at powers of two. */
void *reader_grow(void *at, unsigned n, size_t item_bytes);

/* parser.c */
void parser_text(struct reader *r, struct span text);
void parser_set(struct reader *r, const struct directive *d, const struct line *l);

/* files.c */
void file_main(struct reader *r, const char *path);
void file_include(struct reader *r, const struct line *l);
/* Reads a list of values; false: an error was noted. */
bool file_values(struct reader *r, struct span path, struct buf *out);

/* scalars.c, lists.c, acls.c, logs.c: one setter per type of directive */
void set_number(struct reader *r, const struct directive *d, const struct line *l);
void set_flag(struct reader *r, const struct directive *d, const struct line *l);
void set_policy(struct reader *r, const struct directive *d, const struct line *l);
void set_word(struct reader *r, const struct directive *d, const struct line *l);
void set_host(struct reader *r, const struct directive *d, const struct line *l);
void set_account(struct reader *r, const struct directive *d, const struct line *l);
void set_servers(struct reader *r, const struct directive *d, const struct line *l);
void set_netmask(struct reader *r, const struct directive *d, const struct line *l);
void set_port(struct reader *r, const struct directive *d, const struct line *l);
void set_rules(struct reader *r, const struct directive *d, const struct line *l);
void set_refresh(struct reader *r, const struct directive *d, const struct line *l);
void set_cache_dir(struct reader *r, const struct directive *d, const struct line *l);
void set_range_limit(struct reader *r, const struct directive *d, const struct line *l);
void set_acl(struct reader *r, const struct directive *d, const struct line *l);
void set_access_log(struct reader *r, const struct directive *d, const struct line *l);
void set_logformat(struct reader *r, const struct directive *d, const struct line *l);
/* A file name as the snapshot has it: "stdio:" and "daemon:" gone, the standard streams by name. */
const char *log_place(struct reader *r, struct span word);
/* The terms of a rule from words of the form [!]acl. */
void rule_terms(struct reader *r, const struct word *words, unsigned n, struct conf_rule *rule);

/* Is another error still shown? A hint for one that is not would only cost time. */
static inline bool
reader_shows_errors(const struct reader *r)
{
    return r->c->n_errors < READER_MESSAGES_MAX;
}

/* acl_index.c: finds acls by name; conf_acl_find asks it. */
void acl_index_add(struct conf *c, unsigned i);
void acl_index_rebuild(struct conf *c);
void acl_index_free(struct conf *c);

/* acls.c and finish.c */
void acls_builtin(struct reader *r);
const struct acl_type *acl_type_of(const struct conf_acl *a);
void reader_finish(struct reader *r);

#endif
