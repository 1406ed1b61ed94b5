/* conf/lexer.h - squid.conf text to logical lines, lines to words.
 *
 * Pure but for the memory of the joined line. A logical line is one or more lines of the file, put
 * together where one ends in a backslash, without its line end (LF or CRLF); blank lines and
 * comments are left out. A comment never continues, so that a backslash in it swallows nothing. */
#ifndef CONF_LEXER_H
#define CONF_LEXER_H

#include "base/buf.h"

struct lexer {
    struct span rest;
    unsigned line; /* last line read, counted from 1 */
    struct buf joined;
    bool (*is_directive)(struct span word); /* may be NULL; see swallowed */
};

struct lexer_line {
    unsigned number;    /* of its first line */
    struct span text;   /* borrowed until the next call */
    unsigned swallowed; /* a line joined to this one that reads like a directive; 0: none */
};

struct word {
    struct span text;  /* without the quotes */
    bool quoted, open; /* open: the closing quote is missing */
};

void lexer_init(struct lexer *l, struct span text);
bool lexer_next(struct lexer *l,
                struct lexer_line *out); /* false: the end, and the memory is freed */
/* The next word of *rest; it starts no comment. false: none is left. */
bool lexer_word(struct span *rest, struct word *out);
/* All words of a text, as an array of struct word in `words`; returns how many. */
unsigned lexer_words(struct span text, struct buf *words);

#endif
