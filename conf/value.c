/* conf/value.c - sizes and times as people write them.
 *
 * Squid wants a blank between number and unit and takes only its own unit names. Both are relaxed
 * here: "64MB" and "30s" have one meaning only, and refusing them teaches nobody anything. */
#include "conf/value.h"

#include <stdio.h>

struct unit {
    const char *name;
    int64_t factor;
};

#define SECOND INT64_C(1000)
#define DAY (86400 * SECOND)

/* The first of each factor is the one that is written out. */
static const struct unit size_units[] = {
    {"TB", INT64_C(1) << 40},
    {"GB", 1 << 30},
    {"MB", 1 << 20},
    {"KB", 1 << 10},
    {"bytes", 1},
    {"byte", 1},
    {"B", 1},
    {"TiB", INT64_C(1) << 40},
    {"GiB", 1 << 30},
    {"MiB", 1 << 20},
    {"KiB", 1 << 10},
    {"T", INT64_C(1) << 40},
    {"G", 1 << 30},
    {"M", 1 << 20},
    {"K", 1 << 10},
    {NULL, 0},
};

static const struct unit time_units[] = {
    {"week", 7 * DAY},
    {"day", DAY},
    {"hour", 3600 * SECOND},
    {"minute", 60 * SECOND},
    {"second", SECOND},
    {"millisecond", 1},
    {"decade", 3650 * DAY},
    {"year", 365 * DAY},
    {"month", 30 * DAY},
    {"fortnight", 14 * DAY},
    {"w", 7 * DAY},
    {"d", DAY},
    {"h", 3600 * SECOND},
    {"hr", 3600 * SECOND},
    {"min", 60 * SECOND},
    {"sec", SECOND},
    {"s", SECOND},
    {"msec", 1},
    {"ms", 1},
    {NULL, 0},
};

struct amount { /* whole + part / scale */
    int64_t whole, part, scale;
    bool minus_one;
};

enum { DIGITS_MAX = 18, FRACTION_MAX = 6, OCTAL_DIGITS_MAX = 4 };

static size_t
digits(struct span s, size_t most, int64_t *value)
{
    size_t n = 0;

    *value = 0;
    while (n < s.n && s.at[n] >= '0' && s.at[n] <= '9') {
        if (n < most)
            *value = *value * 10 + (s.at[n] - '0');
        n++;
    }
    return n;
}

/* Length of the number s starts with; 0: none, or one too long. */
static size_t
take_amount(struct span s, struct amount *a)
{
    size_t n, n_part;

    *a = (struct amount){.scale = 1};
    if (span_starts(s, SPAN("-1")) && (s.n == 2 || s.at[2] < '0' || s.at[2] > '9')) {
        a->minus_one = true;
        return 2;
    }
    n = digits(s, DIGITS_MAX, &a->whole);
    if (n == 0 || n > DIGITS_MAX)
        return 0;
    if (n + 1 < s.n && s.at[n] == '.') {
        n_part = digits(span_skip(s, n + 1), FRACTION_MAX, &a->part);
        for (size_t i = 0; i < n_part && i < FRACTION_MAX; i++)
            a->scale *= 10;
        n += n_part ? n_part + 1 : 0;
    }
    return n;
}

static bool
unit_matches(struct span word, const char *name, bool plural)
{
    struct span unit = span_str(name);

    if (span_eq_ci(word, unit))
        return true;
    return plural && unit.n > 2 && word.n == unit.n + 1 && (word.at[unit.n] | 0x20) == 's' &&
           span_starts_ci(word, unit);
}

static int64_t
find_unit(const struct unit *units, struct span word)
{
    bool plural = units == time_units;

    for (; units->name; units++)
        if (unit_matches(word, units->name, plural))
            return units->factor;
    return 0;
}

static bool
multiply(const struct amount *a, int64_t factor, int64_t *value)
{
    int64_t whole, part;

    if (a->minus_one) {
        *value = -1;
        return true;
    }
    if (__builtin_mul_overflow(a->whole, factor, &whole) ||
        __builtin_mul_overflow(a->part, factor, &part))
        return false;
    return !__builtin_add_overflow(whole, part / a->scale, value);
}

static unsigned
value_with_unit(const struct word *words, unsigned n, const struct unit *units, int64_t unit,
                int64_t *value)
{
    struct amount a;
    struct span behind;
    unsigned used = 1;
    size_t length;

    if (n == 0 || (length = take_amount(words[0].text, &a)) == 0)
        return 0;
    behind = span_skip(words[0].text, length);
    if (behind.n) {
        if ((unit = find_unit(units, behind)) == 0)
            return 0;
    } else if (n > 1 && find_unit(units, words[1].text)) {
        unit = find_unit(units, words[1].text);
        used = 2;
    }
    return multiply(&a, unit, value) ? used : 0;
}

unsigned
value_size(const struct word *words, unsigned n, int64_t unit, int64_t *bytes)
{
    if (n && span_eq_ci(words[0].text, SPAN("none"))) {
        *bytes = -1;
        return 1;
    }
    return value_with_unit(words, n, size_units, unit, bytes);
}

unsigned
value_time(const struct word *words, unsigned n, int64_t unit_ms, int64_t *ms)
{
    return value_with_unit(words, n, time_units, unit_ms, ms);
}

bool
value_number(struct span text, int64_t *number)
{
    bool minus = text.n && text.at[0] == '-';
    uint64_t v;

    if (!span_to_uint(minus ? span_skip(text, 1) : text, INT64_MAX, &v))
        return false;
    *number = minus ? -(int64_t)v : (int64_t)v;
    return true;
}

bool
value_octal(struct span text, int64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < text.n && i < OCTAL_DIGITS_MAX; i++) {
        if (text.at[i] < '0' || text.at[i] > '7')
            return false;
        *number = *number * 8 + (text.at[i] - '0');
    }
    return text.n > 0 && text.n <= OCTAL_DIGITS_MAX;
}

bool
value_flag(struct span text, bool *on)
{
    static const char *const yes[] = {"on", "yes", "true", "enable", "1"};
    static const char *const no[] = {"off", "no", "false", "disable", "0"};

    for (unsigned i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        *on = span_eq_ci(text, span_str(yes[i]));
        if (*on || span_eq_ci(text, span_str(no[i])))
            return true;
    }
    return false;
}

void
value_size_text(int64_t bytes, char *out)
{
    const struct unit *u = size_units;

    if (bytes <= 0) {
        snprintf(out, VALUE_TEXT_MAX, "%lld", (long long)bytes);
        return;
    }
    while (bytes % u->factor)
        u++;
    snprintf(out, VALUE_TEXT_MAX, "%lld %s", (long long)(bytes / u->factor), u->name);
}

void
value_time_text(int64_t ms, char *out)
{
    const struct unit *u = time_units;

    if (ms < 0) {
        snprintf(out, VALUE_TEXT_MAX, "%lld", (long long)ms);
        return;
    }
    while (ms % u->factor)
        u++;
    if (ms == 0)
        u = &time_units[4];
    snprintf(out, VALUE_TEXT_MAX, "%lld %s%s", (long long)(ms / u->factor), u->name,
             ms == u->factor ? "" : "s");
}

void
value_octal_text(int64_t number, char *out)
{
    snprintf(out, VALUE_TEXT_MAX, "%03llo", (unsigned long long)number);
}
