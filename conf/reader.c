/* conf/reader.c - messages of the reader, and its memory.
 *
 * A message is one line however odd the word is that it quotes: what could move a terminal's cursor
 * or fake a second line is replaced. */
#include "conf/reader.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"

enum { MESSAGE_MAX = 600 };

static void
add_message(struct buf *out, struct conf_place place, const char *directive, const char *text)
{
    size_t start = out->n;

    buf_addf(out, "%s:%u: ", place.file, place.line);
    if (directive)
        buf_addf(out, "%.80s: ", directive);
    buf_addf(out, "%s", text);
    for (size_t i = start; i < out->n; i++)
        if ((unsigned char)out->at[i] < ' ' || out->at[i] == 0x7f)
            out->at[i] = '?';
    buf_add_char(out, '\n');
}

static void
add_error(struct reader *r, struct conf_place place, const char *directive, const char *format,
          va_list args)
{
    char text[MESSAGE_MAX];

    if (r->c->n_errors++ >= READER_MESSAGES_MAX)
        return;
    vsnprintf(text, sizeof text, format, args);
    add_message(&r->c->errors, place, directive, text);
}

static void
add_note(struct reader *r, struct conf_place place, const char *directive, const char *format,
         va_list args)
{
    char text[MESSAGE_MAX];

    if (r->n_notes++ >= READER_MESSAGES_MAX)
        return;
    vsnprintf(text, sizeof text, format, args);
    add_message(&r->c->notes, place, directive, text);
}

void
reader_error(struct reader *r, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_error(r, r->place, r->directive, format, args);
    va_end(args);
}

void
reader_note(struct reader *r, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_note(r, r->place, r->directive, format, args);
    va_end(args);
}

void
reader_error_at(struct reader *r, struct conf_place place, const char *directive,
                const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_error(r, place, directive, format, args);
    va_end(args);
}

void
reader_note_at(struct reader *r, struct conf_place place, const char *directive, const char *format,
               ...)
{
    va_list args;

    va_start(args, format);
    add_note(r, place, directive, format, args);
    va_end(args);
}

char *
reader_str(struct reader *r, struct span s)
{
    return arena_str(&r->c->arena, s);
}

void *
reader_grow(void *at, unsigned n, size_t item_bytes)
{
    CHECK(n < UINT32_MAX / 2);
    if (n & (n - 1)) /* not a power of two: there is room up to the next one */
        return at;
    return mem_realloc(at, (n ? (size_t)n * 2 : 1) * item_bytes);
}
