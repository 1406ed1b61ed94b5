/* tests/fuzz/fuzz_conf.c - any text as a configuration: it is read or refused, and what was read
 * dumps to a text that reads back to the same dump. */
#include <stdlib.h>

#include "conf/conf.h"

static void
must(bool claim)
{
    if (!claim)
        abort();
}

/* The text may name any file; those that the kernel makes up are left alone. */
static bool
names_odd_file(struct span text)
{
    return text.n && (memmem(text.at, text.n, "/proc", 5) || memmem(text.at, text.n, "/sys", 4) ||
                      memmem(text.at, text.n, "/dev", 4) || memmem(text.at, text.n, "/*", 2));
}

static void
try_dump(const struct conf *c)
{
    struct buf once = {0}, twice = {0};
    struct conf *again;

    conf_dump(c, &once);
    again = conf_read_text("dump", buf_span(&once));
    must(again->n_errors == 0);
    conf_dump(again, &twice);
    must(span_eq(buf_span(&once), buf_span(&twice)));
    conf_unref(&again);
    buf_free(&once);
    buf_free(&twice);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct span text = span_of(bytes, n);
    struct conf *c;

    if (names_odd_file(text))
        return 0;
    c = conf_read_text("fuzz", text);
    must((c->n_errors > 0) == (c->errors.n > 0));
    if (c->n_errors == 0)
        try_dump(c);
    conf_unref(&c);
    return 0;
}
