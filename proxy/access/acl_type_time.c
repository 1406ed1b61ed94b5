/* acl_type_time.c - time: days of the week and hours of the local day.
 *
 * Values read as Squid's: day letters apply to the hours that follow them, hours without days to
 * every day, days without hours to the whole day. Local time is asked of libc at most once a minute
 * and thread, since localtime_r takes a lock that all threads share. */
#include <time.h>

#include "base/check.h"
#include "proxy/access/acl_type.h"

enum { EVERY_DAY = 0x7f, WEEKDAYS = 0x3e, LAST_MINUTE = 24 * 60 };

struct time_span {
    uint8_t days;         /* bit 0 is Sunday, as in struct tm */
    uint16_t first, last; /* minutes of the day, both included */
};

struct time_acl {
    unsigned n;
    struct time_span spans[];
};

static bool
parse_days(const char *value, uint8_t *days)
{
    static const struct {
        char letter;
        uint8_t days;
    } letters[] = {{'S', 1},  {'M', 2},  {'T', 4},        {'W', 8}, {'H', 16},
                   {'F', 32}, {'A', 64}, {'D', WEEKDAYS}, {'-', 0}};

    for (; *value; value++) {
        size_t i = 0, n = sizeof letters / sizeof letters[0];

        while (i < n && letters[i].letter != *value)
            i++;
        if (i == n)
            return false;
        *days |= letters[i].days;
    }
    return true;
}

static bool
parse_clock(struct span text, uint16_t *minutes)
{
    size_t colon = span_index(text, ':');
    uint64_t h, m;

    if (colon == text.n || !span_to_uint(span_first(text, colon), 24, &h) ||
        !span_to_uint(span_skip(text, colon + 1), 59, &m) || h * 60 + m > LAST_MINUTE)
        return false;
    *minutes = (uint16_t)(h * 60 + m);
    return true;
}

static bool
parse_hours(const char *value, struct time_span *out)
{
    struct span text = span_str(value);
    size_t dash = span_index(text, '-');

    return parse_clock(span_first(text, dash), &out->first) &&
           parse_clock(span_skip(text, dash + 1), &out->last) && out->first <= out->last;
}

static void
add_value(struct acl_build *b, struct time_acl *d, const char *value, uint8_t *days)
{
    struct time_span s;

    if (value[0] < '0' || value[0] > '9') {
        if (!parse_days(value, days))
            acl_problem(b, "%s: expected days out of SMTWHFA (D: Monday to Friday)", value);
        return;
    }
    if (!parse_hours(value, &s)) {
        acl_problem(b, "%s: expected hours such as 08:00-17:30, the earlier first", value);
        return;
    }
    s.days = *days ? *days : EVERY_DAY;
    *days = 0;
    d->spans[d->n++] = s;
}

static void *
time_compile(struct acl_build *b)
{
    struct time_acl *d = mem_zalloc(sizeof *d + (b->acl->n_values + 1) * sizeof d->spans[0]);
    uint8_t days = 0;

    for (unsigned i = 0; i < b->acl->n_values; i++)
        add_value(b, d, b->acl->values[i], &days);
    if (days)
        d->spans[d->n++] = (struct time_span){days, 0, LAST_MINUTE};
    return d;
}

static void
local_minute(int64_t wall_s, int *day, int *minute)
{
    static _Thread_local int64_t known_for = INT64_MIN;
    static _Thread_local int known_day, known_minute;
    int64_t now = wall_s / 60;

    if (now != known_for) {
        time_t at = (time_t)wall_s;
        struct tm t = {0};

        localtime_r(&at, &t);
        known_day = t.tm_wday;
        known_minute = t.tm_hour * 60 + t.tm_min;
        known_for = now;
    }
    *day = known_day;
    *minute = known_minute;
}

static enum acl_match
time_match(const void *data, const struct acl_facts *f)
{
    const struct time_acl *d = data;
    int day, minute;

    local_minute(f->wall_s, &day, &minute);
    for (unsigned i = 0; i < d->n; i++) {
        const struct time_span *s = &d->spans[i];

        if (s->days >> day & 1 && minute >= s->first && minute <= s->last)
            return ACL_MATCH_YES;
    }
    return ACL_MATCH_NO;
}

const struct acl_type acl_type_time = {"time", time_compile, time_match, mem_free};
