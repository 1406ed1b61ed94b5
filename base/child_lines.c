/* base/child_lines.c - bounded lines out of a stream of bytes.
 *
 * Lines are handed out in place; what has been taken is dropped all at once before the next bytes
 * come in, so that a block of many short lines is moved once and not once per line. */
#include "base/child_lines.h"

char *
child_lines_reserve(struct child_lines *l, size_t n_bytes)
{
    buf_drop_front(&l->in, l->taken);
    l->taken = 0;
    return buf_reserve(&l->in, n_bytes);
}

void
child_lines_add(struct child_lines *l, size_t n_bytes)
{
    l->in.n += n_bytes;
}

static struct span
bytes_left(const struct child_lines *l)
{
    return span_skip(buf_span(&l->in), l->taken);
}

/* Up to and with the LF, or as far as the bytes go. */
static void
rest_drop(struct child_lines *l)
{
    struct span left = bytes_left(l);
    size_t end = span_index(left, '\n');

    l->in_rest = end == left.n;
    l->taken += l->in_rest ? left.n : end + 1;
}

static struct span
without_cr(struct span line)
{
    return line.n && line.at[line.n - 1] == '\r' ? span_first(line, line.n - 1) : line;
}

enum child_line
child_lines_next(struct child_lines *l, struct span *line)
{
    struct span left;
    size_t end;

    if (l->in_rest)
        rest_drop(l);
    left = bytes_left(l);
    end = span_index(left, '\n');
    *line = span_first(left, end < l->most ? end : l->most);
    if (end > l->most) {
        rest_drop(l);
        return CHILD_LINE_TOO_LONG;
    }
    if (end == left.n)
        return CHILD_LINE_NONE;
    l->taken += end + 1;
    *line = without_cr(*line);
    return CHILD_LINE_WHOLE;
}

void
child_lines_free(struct child_lines *l)
{
    buf_free(&l->in);
    l->taken = 0;
}
