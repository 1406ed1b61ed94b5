/* tests/fuzz/lines.h - field lines out of a fuzzer's bytes.
 *
 * Targets behind the head parser need fields, not heads: "name: value" up to a line feed, each
 * list of them up to an empty line. What the parser would never pass on is left out here too. */
#ifndef TESTS_FUZZ_LINES_H
#define TESTS_FUZZ_LINES_H

#include "http/field.h"

static inline struct span
line_take(struct span *rest)
{
    size_t end = span_index(*rest, '\n');
    struct span line = span_first(*rest, end);

    *rest = span_skip(*rest, end + 1);
    return line;
}

static inline struct fields
fields_take(struct span *rest, struct arena *a)
{
    struct fields f = {0};
    struct span line;

    while ((line = line_take(rest)).n > 0) {
        size_t colon = span_index(line, ':');
        struct span name = span_first(line, colon), value = span_trim(span_skip(line, colon + 1));

        if (colon < line.n && field_name_is_token(name) && field_value_is_valid(value))
            fields_add(&f, a, name, value);
    }
    return f;
}

#endif
