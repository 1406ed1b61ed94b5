/* http/date.c - HTTP dates.
 *
 * Each of the three formats is a picture: a letter stands for a piece of the date, everything else
 * for itself. Reading by picture keeps the strictness in one place: a date that is a space, a digit
 * or a comma off is no date, and so an Expires that means "already expired" (RFC 9111 section 5.3).
 *
 * Dates before 1970 read as 0: other modules keep -1 for "none", and nothing on the web depends on
 * how long before 1970 something was changed. */
#include "http/date.h"

#include <stdio.h>

enum { DAY_S = 86400, RFC850_AHEAD_YEARS = 50 };

struct parts {
    unsigned year, month, day, hour, minute, second;
};

static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const char days[] = "SunMonTueWedThuFriSat";
static const char *const long_days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday"};

/* Days since 1970-01-01 in the proleptic Gregorian calendar. Years start in March here, so that
 * the leap day is the last of its year. */
static int64_t
days_of(int64_t year, unsigned month, unsigned day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (int64_t)(month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

static void
date_of_days(int64_t days_since_1970, struct parts *p)
{
    int64_t z = days_since_1970 + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;

    p->day = (unsigned)(doy - (153 * mp + 2) / 5 + 1);
    p->month = (unsigned)(mp < 10 ? mp + 3 : mp - 9);
    p->year = (unsigned)(yoe + era * 400 + (p->month <= 2));
}

static int64_t
floor_days(int64_t at_s)
{
    return at_s / DAY_S - (at_s % DAY_S < 0);
}

static bool
read_digits(const char *at, unsigned n, unsigned *out)
{
    unsigned v = 0;

    for (unsigned i = 0; i < n; i++) {
        unsigned digit = (unsigned char)at[i] - '0';

        if (digit > 9)
            return false;
        v = v * 10 + digit;
    }
    *out = v;
    return true;
}

/* Which of the three-letter names is it? 1 is the first, 0 none. */
static unsigned
read_name(const char *at, const char *names, unsigned n_names)
{
    for (unsigned i = 0; i < n_names; i++) {
        if (strncasecmp(at, names + 3 * i, 3) == 0)
            return i + 1;
    }
    return 0;
}

/* asctime's day: two digits, or a space and one. */
static bool
read_padded_day(const char *at, unsigned *out)
{
    return at[0] == ' ' ? read_digits(at + 1, 1, out) : read_digits(at, 2, out);
}

/* One letter of a picture. Capitals stand for as many bytes as they are repeated. */
static bool
read_piece(char letter, const char *at, struct parts *p)
{
    switch (letter) {
    case 'W':
        return read_name(at, days, 7) > 0;
    case 'D':
        return read_digits(at, 2, &p->day);
    case 'P':
        return read_padded_day(at, &p->day);
    case 'M':
        return (p->month = read_name(at, months, 12)) > 0;
    case 'Y':
        return read_digits(at, 4, &p->year);
    case 'y':
        return read_digits(at, 2, &p->year);
    case 'h':
        return read_digits(at, 2, &p->hour);
    case 'm':
        return read_digits(at, 2, &p->minute);
    case 's':
        return read_digits(at, 2, &p->second);
    case 'G':
        return strncasecmp(at, "GMT", 3) == 0;
    }
    return false;
}

static bool
reads_as(struct span text, const char *picture, struct parts *p)
{
    size_t i = 0;

    if (text.n != strlen(picture))
        return false;
    while (i < text.n) {
        char letter = picture[i];

        if (strchr(" ,:-", letter)) {
            if (text.at[i++] != letter)
                return false;
            continue;
        }
        if (!read_piece(letter, text.at + i, p))
            return false;
        while (i < text.n && picture[i] == letter)
            i++;
    }
    return true;
}

/* Two digits of a year: more than 50 years ahead means the century before (5.6.7). */
static unsigned
full_year(struct parts p, int64_t now_s)
{
    struct parts now;
    unsigned year;

    date_of_days(floor_days(now_s), &now);
    year = now.year - now.year % 100 + p.year;
    if (year > now.year + RFC850_AHEAD_YEARS)
        return year - 100;
    if (year == now.year + RFC850_AHEAD_YEARS &&
        (p.month > now.month || (p.month == now.month && p.day > now.day)))
        return year - 100;
    return year;
}

static bool
reads_as_rfc850(struct span text, int64_t now_s, struct parts *p)
{
    size_t comma = span_index(text, ',');
    struct span day = span_first(text, comma);

    for (unsigned i = 0; i < 7; i++) {
        if (!span_eq_ci(day, span_str(long_days[i])))
            continue;
        if (!reads_as(span_skip(text, comma), ", DD-MMM-yy hh:mm:ss GGG", p))
            return false;
        p->year = full_year(*p, now_s);
        return true;
    }
    return false;
}

static unsigned
days_in_month(unsigned year, unsigned month)
{
    static const unsigned char length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return month == 2 && leap ? 29 : length[month - 1];
}

/* RFC 9110 section 5.6.7 */
bool
date_parse(struct span text, int64_t now_s, int64_t *out_s)
{
    struct parts p = {0};
    int64_t at_s;

    if (now_s < 0 || now_s > INT64_C(253402300799))
        now_s = 0;
    if (!reads_as(text, "WWW, DD MMM YYYY hh:mm:ss GGG", &p) && !reads_as_rfc850(text, now_s, &p) &&
        !reads_as(text, "WWW MMM PP hh:mm:ss YYYY", &p))
        return false;
    /* 60 is a leap second, which the format allows. */
    if (p.day == 0 || p.day > days_in_month(p.year, p.month) || p.hour > 23 || p.minute > 59 ||
        p.second > 60)
        return false;
    at_s = days_of(p.year, p.month, p.day) * DAY_S + p.hour * 3600 + p.minute * 60 + p.second;
    *out_s = at_s < 0 ? 0 : at_s;
    return true;
}

size_t
date_format(int64_t at_s, char out[DATE_TEXT_MAX])
{
    struct parts p;
    int64_t n_days, second;

    if (at_s < 0)
        at_s = 0;
    if (at_s > INT64_C(253402300799)) /* the last second of the year 9999 */
        at_s = INT64_C(253402300799);
    n_days = at_s / DAY_S;
    second = at_s % DAY_S;
    date_of_days(n_days, &p);
    return (size_t)snprintf(out, DATE_TEXT_MAX, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
                            days + 3 * ((n_days + 4) % 7), p.day % 100, months + 3 * (p.month - 1),
                            p.year % 10000, (unsigned)(second / 3600) % 100,
                            (unsigned)(second / 60 % 60), (unsigned)(second % 60));
}
