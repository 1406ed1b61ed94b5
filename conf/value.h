/* conf/value.h - words to sizes, times, numbers and switches, and back.
 *
 * Pure. A value may take one word ("256MB", "0") or two ("256 MB"); the functions return how many
 * they took, 0 when the words are no such value. Fractions are fine ("1.5 GB"); what does not fit
 * in 63 bits is no value. -1 stays -1 whatever the unit, as it means "no limit"; less is no value.
 */
#ifndef CONF_VALUE_H
#define CONF_VALUE_H

#include "conf/lexer.h"

enum { VALUE_TEXT_MAX = 64 };

/* unit: what a number without one counts, in bytes or milliseconds. */
unsigned value_size(const struct word *words, unsigned n, int64_t unit, int64_t *bytes);
unsigned value_time(const struct word *words, unsigned n, int64_t unit_ms, int64_t *ms);
bool value_number(struct span text, int64_t *number);
bool value_octal(struct span text, int64_t *number); /* at most four digits */
bool value_flag(struct span text, bool *on);

/* In the largest unit that gives a whole number; out holds VALUE_TEXT_MAX. */
void value_size_text(int64_t bytes, char *out);
void value_time_text(int64_t ms, char *out);
void value_octal_text(int64_t number, char *out);

#endif
