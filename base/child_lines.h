/* base/child_lines.h - what a child writes, line by line, each of them bounded.
 *
 * Pure. A zeroed struct with `most` set is empty. Bytes are put where child_lines_reserve says and
 * counted with child_lines_add; at most `most` bytes and one reservation are ever held, as long as
 * the lines are taken out in between. */
#ifndef BASE_CHILD_LINES_H
#define BASE_CHILD_LINES_H

#include "base/buf.h"

struct child_lines {
    struct buf in;
    size_t most;  /* bytes of a line, without its end */
    size_t taken; /* bytes at the front of `in` that have been handed out */
    bool in_rest; /* of a line that was too long */
};

enum child_line { CHILD_LINE_NONE, CHILD_LINE_WHOLE, CHILD_LINE_TOO_LONG };

char *child_lines_reserve(struct child_lines *l, size_t n_bytes);
void child_lines_add(struct child_lines *l, size_t n_bytes);
/* The next line, without LF or CR LF; valid until the next reservation. Of one that is too long the
 * beginning is handed out, and the rest dropped. */
enum child_line child_lines_next(struct child_lines *l, struct span *line);
void child_lines_free(struct child_lines *l);

#endif
