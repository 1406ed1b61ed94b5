/* tools/trace/trace_time.c - a cursor over digits and separators: three layouts differ only in how
 * the day is written. */
#include "tools/trace/trace_time.h"

#define MILLION INT64_C(1000000)

enum { WHOLE_DIGITS_MOST = 12, YEAR_LEAST = 1970, YEAR_MOST = 2200 };

struct day {
    unsigned year, month, day; /* from 1 */
};

/* At least one digit, at most `most` of them. */
static bool
take_number(struct span *s, unsigned most, uint64_t *value)
{
    unsigned n = 0;

    *value = 0;
    while (n < most && n < s->n && s->at[n] >= '0' && s->at[n] <= '9')
        *value = *value * 10 + (uint64_t)(s->at[n++] - '0');
    *s = span_skip(*s, n);
    return n > 0;
}

static bool
take_one_of(struct span *s, const char *choice)
{
    if (s->n == 0 || s->at[0] == '\0' || strchr(choice, s->at[0]) == NULL)
        return false;
    *s = span_skip(*s, 1);
    return true;
}

/* ".179", ",179" or nothing, as millionths; digits behind the sixth are dropped. */
static int64_t
take_fraction(struct span *s)
{
    int64_t value = 0, unit = MILLION / 10;

    if (s->n < 2 || (s->at[0] != '.' && s->at[0] != ',') || s->at[1] < '0' || s->at[1] > '9')
        return 0;
    *s = span_skip(*s, 1);
    while (s->n > 0 && s->at[0] >= '0' && s->at[0] <= '9') {
        value += (s->at[0] - '0') * unit;
        unit /= 10;
        *s = span_skip(*s, 1);
    }
    return value;
}

bool
trace_decimal_parse(struct span text, int64_t *millionths)
{
    uint64_t whole;

    if (!take_number(&text, WHOLE_DIGITS_MOST, &whole))
        return false;
    *millionths = (int64_t)whole * MILLION + take_fraction(&text);
    return text.n == 0;
}

static bool
take_month_name(struct span *s, unsigned *month)
{
    static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";

    for (unsigned i = 0; s->n >= 3 && i < 12; i++)
        if (strncasecmp(names + 3 * i, s->at, 3) == 0) {
            *month = i + 1;
            *s = span_skip(*s, 3);
            return true;
        }
    return false;
}

/* 2012-01-25 or 2012/01/25 */
static bool
take_year_first(struct span *s, struct day *d)
{
    uint64_t year, month, day;

    if (!take_number(s, 4, &year) || !take_one_of(s, "-/") || !take_number(s, 2, &month) ||
        !take_one_of(s, "-/") || !take_number(s, 2, &day))
        return false;
    *d = (struct day){(unsigned)year, (unsigned)month, (unsigned)day};
    return true;
}

/* 13/Mar/2020 */
static bool
take_day_first(struct span *s, struct day *d)
{
    uint64_t year, day;

    if (!take_number(s, 2, &day) || !take_one_of(s, "-/") || !take_month_name(s, &d->month) ||
        !take_one_of(s, "-/") || !take_number(s, 4, &year))
        return false;
    d->year = (unsigned)year;
    d->day = (unsigned)day;
    return true;
}

static bool
is_leap(unsigned year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static bool
day_exists(const struct day *d)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    if (d->year < YEAR_LEAST || d->year > YEAR_MOST || d->month < 1 || d->month > 12 || d->day < 1)
        return false;
    return d->day <= days[d->month - 1] + (unsigned)(d->month == 2 && is_leap(d->year));
}

/* Days since 1970-01-01, counted in years that begin in March so that the leap day is last. */
static int64_t
days_since_epoch(const struct day *d)
{
    int64_t y = d->month <= 2 ? d->year - 1 : d->year;
    int64_t m = d->month <= 2 ? d->month + 9 : d->month - 3;

    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + d->day - 1 - 719468;
}

/* 21:14:41.850 */
static bool
take_clock(struct span *s, int64_t *us)
{
    uint64_t hour, minute, second;

    if (!take_number(s, 2, &hour) || !take_one_of(s, ":") || !take_number(s, 2, &minute) ||
        !take_one_of(s, ":") || !take_number(s, 2, &second))
        return false;
    *us = (int64_t)(hour * 3600 + minute * 60 + second) * MILLION + take_fraction(s);
    return hour < 24 && minute < 60 && second <= 60;
}

/* "", "Z", "+0100", "+01:00"; microseconds east of Greenwich. */
static bool
take_zone(struct span *s, int64_t *east_us)
{
    uint64_t hours, minutes = 0;
    bool west;

    *east_us = 0;
    *s = span_trim(*s);
    if (s->n == 0 || take_one_of(s, "Zz"))
        return true;
    west = s->at[0] == '-';
    if (!take_one_of(s, "+-") || !take_number(s, 2, &hours))
        return false;
    take_one_of(s, ":");
    take_number(s, 2, &minutes);
    *east_us = (int64_t)(hours * 3600 + minutes * 60) * MILLION * (west ? -1 : 1);
    return hours <= 14 && minutes < 60;
}

static struct span
unwrapped(struct span s)
{
    while (s.n > 0 && (s.at[0] == '[' || s.at[0] == '"'))
        s = span_skip(s, 1);
    while (s.n > 0 && (s.at[s.n - 1] == ']' || s.at[s.n - 1] == '"'))
        s.n--;
    return s;
}

bool
trace_time_parse(struct span text, int64_t *at_us)
{
    struct span s = unwrapped(text), again = s;
    struct day d = {0, 0, 0};
    int64_t clock_us, east_us;

    if (trace_decimal_parse(s, at_us))
        return true;
    if (!take_year_first(&s, &d)) {
        s = again;
        if (!take_day_first(&s, &d))
            return false;
    }
    if (!day_exists(&d) || !take_one_of(&s, "T -:") || !take_clock(&s, &clock_us) ||
        !take_zone(&s, &east_us) || s.n > 0)
        return false;
    *at_us = days_since_epoch(&d) * 86400 * MILLION + clock_us - east_us;
    return *at_us >= 0;
}
