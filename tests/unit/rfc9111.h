/* tests/unit/rfc9111.h - the standard, read slowly.
 *
 * A second reading of RFC 9111 (with RFC 5861 and RFC 9110 section 13) for tests/unit/
 * test_decisions.c. It shares no code with what it judges: it takes the text of a message, splits
 * it itself and follows the sentences of the standard, one function each, without any care for
 * speed. Where the standard leaves a choice, the function says whose words it follows: the
 * comments at the top of cache/storable.c, cache/reuse.c, http/cache_control.c.
 *
 * law_*:    what no cache may do; what cuttle chooses can only be narrower.
 * choice_*: what cuttle documents, exactly. */
#ifndef TESTS_UNIT_RFC9111_H
#define TESTS_UNIT_RFC9111_H

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { LINES_MAX = 32, DIRECTIVES_MAX = 32, TEXT_MAX = 256, COMBINED_MAX = 2048 };

/* ---- a message as text ---- */

struct line {
    char name[40], value[TEXT_MAX];
};

struct directive {
    char name[TEXT_MAX], argument[TEXT_MAX];
    bool has_argument;
};

struct message {
    struct line lines[LINES_MAX];
    struct directive cc[DIRECTIVES_MAX];
    unsigned n_lines, n_cc, status;
    char method[16];
};

static inline void
copy_trimmed(char *to, const char *from, size_t n)
{
    while (n > 0 && (from[0] == ' ' || from[0] == '\t'))
        from++, n--;
    while (n > 0 && (from[n - 1] == ' ' || from[n - 1] == '\t'))
        n--;
    memcpy(to, from, n);
    to[n] = '\0';
}

/* RFC 9110 section 5.5: a field line's value goes without the white space around it. */
static inline void
split_lines(struct message *m, const char *text)
{
    const char *end;

    for (m->n_lines = 0; (end = strstr(text, "\r\n")) != NULL && end != text; text = end + 2) {
        const char *colon = strchr(text, ':');
        struct line *line = &m->lines[m->n_lines++];

        copy_trimmed(line->name, text, (size_t)(colon - text));
        copy_trimmed(line->value, colon + 1, (size_t)(end - colon - 1));
    }
}

/* RFC 9110 section 5.6.1: a list's members stand between the commas that no quotes enclose. With
 * `escapes` a backslash in quotes takes the next character with it (quoted-string, 5.6.4). */
static inline const char *
next_member(const char *rest, char *member, bool escapes)
{
    const char *start = rest;
    bool quoted = false;

    for (; *rest && (quoted || *rest != ','); rest++) {
        if (*rest == '"')
            quoted = !quoted;
        else if (quoted && escapes && *rest == '\\' && rest[1])
            rest++;
    }
    copy_trimmed(member, start, (size_t)(rest - start));
    return *rest ? rest + 1 : rest;
}

/* RFC 9111 section 5.2: a token and, behind "=", an argument. */
static inline void
split_directive(struct directive *d, const char *member)
{
    const char *equals = strchr(member, '=');

    d->has_argument = equals != NULL;
    copy_trimmed(d->name, member, equals ? (size_t)(equals - member) : strlen(member));
    strcpy(d->argument, equals ? equals + 1 : "");
}

static inline void
split_directives(struct message *m)
{
    char member[TEXT_MAX];

    m->n_cc = 0;
    for (unsigned i = 0; i < m->n_lines; i++) {
        const char *rest = m->lines[i].value;

        if (strcasecmp(m->lines[i].name, "Cache-Control") != 0)
            continue;
        while (*rest) {
            rest = next_member(rest, member, true);
            if (*member)
                split_directive(&m->cc[m->n_cc++], member);
        }
    }
}

/* The start line is the caller's: its method or status is known where the text is made. */
static inline void
message_read(struct message *m, const char *text)
{
    split_lines(m, strstr(text, "\r\n") + 2);
    split_directives(m);
}

static inline const char *
field_first(const struct message *m, const char *name)
{
    for (unsigned i = 0; i < m->n_lines; i++)
        if (strcasecmp(m->lines[i].name, name) == 0)
            return m->lines[i].value;
    return NULL;
}

static inline unsigned
field_lines(const struct message *m, const char *name)
{
    unsigned n = 0;

    for (unsigned i = 0; i < m->n_lines; i++)
        n += strcasecmp(m->lines[i].name, name) == 0;
    return n;
}

/* RFC 9110 section 5.3: several lines are one list. False: not there at all. */
static inline bool
field_combined(const struct message *m, const char *name, char *out)
{
    unsigned n = 0;

    *out = '\0';
    for (unsigned i = 0; i < m->n_lines; i++) {
        if (strcasecmp(m->lines[i].name, name) != 0)
            continue;
        strcat(out, n++ > 0 ? "," : "");
        strcat(out, m->lines[i].value);
    }
    return n > 0;
}

/* ---- what it says ---- */

/* RFC 9111 section 5.2: directives are compared without case. */
static inline bool
says(const struct message *m, const char *directive)
{
    for (unsigned i = 0; i < m->n_cc; i++)
        if (strcasecmp(m->cc[i].name, directive) == 0)
            return true;
    return false;
}

/* Section 1.2.2: what is above 2^31 is 2^31. */
static inline int64_t
digits(const char *text)
{
    int64_t value = 0;

    for (; isdigit((unsigned char)*text); text++)
        if ((value = value * 10 + (*text - '0')) > INT64_C(2147483648))
            value = INT64_C(2147483648);
    return value;
}

static inline bool
closes_its_quotes(const char *text)
{
    size_t n = strlen(text);

    return n >= 2 && text[0] == '"' && text[n - 1] == '"';
}

static inline bool
is_lifetime(const struct directive *d)
{
    return strcasecmp(d->name, "max-age") == 0 || strcasecmp(d->name, "s-maxage") == 0;
}

/* Whether an argument is a number, and which. The standard knows digits only, quoted or not
 * (section 5.2), and encourages to take any other lifetime for stale (4.2.1); of other directives
 * stands here what http/cache_control.h documents: digits count up to what is none, below zero is
 * zero, all else is as if the directive had not been sent. */
static inline int64_t
choice_seconds(const struct directive *d)
{
    const char *text = d->argument + (is_lifetime(d) && closes_its_quotes(d->argument));

    if (text[0] == '-' && isdigit((unsigned char)text[1]))
        return 0;
    if (isdigit((unsigned char)text[0]))
        return digits(text);
    return is_lifetime(d) ? 0 : -1;
}

/* Section 4.2.1: of several values the first; -1: none. */
static inline int64_t
seconds_said(const struct message *m, const char *directive)
{
    for (unsigned i = 0; i < m->n_cc; i++)
        if (strcasecmp(m->cc[i].name, directive) == 0 && choice_seconds(&m->cc[i]) >= 0)
            return choice_seconds(&m->cc[i]);
    return -1;
}

static inline bool
says_without_argument(const struct message *m, const char *directive)
{
    for (unsigned i = 0; i < m->n_cc; i++)
        if (strcasecmp(m->cc[i].name, directive) == 0 && !m->cc[i].has_argument)
            return true;
    return false;
}

static inline bool
list_says(const struct message *m, const char *name, const char *token)
{
    char all[COMBINED_MAX], member[TEXT_MAX];
    const char *rest = all;

    field_combined(m, name, all);
    while (*rest) {
        rest = next_member(rest, member, true);
        if (strcasecmp(member, token) == 0)
            return true;
    }
    return false;
}

/* ---- RFC 9110 section 5.6.7: dates ---- */

static inline bool
one_of(const char *text, size_t n, const char *names)
{
    char wanted[16];

    snprintf(wanted, sizeof wanted, " %.*s ", (int)n, text);
    return n > 0 && n < 12 && strcasestr(names, wanted) != NULL;
}

#define SHORT_DAYS " Sun Mon Tue Wed Thu Fri Sat "
#define LONG_DAYS " Sunday Monday Tuesday Wednesday Thursday Friday Saturday "

/* A date is one when writing what was read gives the same text again. */
static inline bool
reads_back(const char *text, const char *format, struct tm *tm)
{
    struct tm read = *tm;
    time_t at = timegm(&read);
    char again[64];

    gmtime_r(&at, &read);
    strftime(again, sizeof again, format, &read);
    return strcasecmp(text, again) == 0;
}

static inline int
month_of(const char *name)
{
    static const char months[] = "janfebmaraprmayjunjulaugsepoctnovdec";

    for (int i = 0; i < 12; i++)
        if (strncasecmp(name, months + 3 * i, 3) == 0)
            return i;
    return -1;
}

static inline bool
reads_imf(const char *text, struct tm *tm)
{
    char month[4] = "";

    if (!one_of(text, strcspn(text, ","), SHORT_DAYS) ||
        sscanf(text + 3, ", %2d %3s %4d %2d:%2d:%2d", &tm->tm_mday, month, &tm->tm_year,
               &tm->tm_hour, &tm->tm_min, &tm->tm_sec) != 6)
        return false;
    tm->tm_mon = month_of(month);
    tm->tm_year -= 1900;
    return tm->tm_mon >= 0 && reads_back(text + 3, ", %d %b %Y %H:%M:%S GMT", tm);
}

/* A date that seems more than 50 years ahead is of the last past year with these digits. */
static inline void
choose_century(struct tm *tm, int64_t now_s)
{
    struct tm limit, copy = *tm;
    time_t now = (time_t)now_s;

    gmtime_r(&now, &limit);
    copy.tm_year = tm->tm_year += limit.tm_year / 100 * 100;
    limit.tm_year += 50;
    if (timegm(&copy) > timegm(&limit))
        tm->tm_year -= 100;
}

static inline bool
reads_rfc850(const char *text, struct tm *tm, int64_t now_s)
{
    size_t day = strcspn(text, ",");
    char month[4] = "";

    if (!one_of(text, day, LONG_DAYS) ||
        sscanf(text + day, ", %2d-%3[A-Za-z]-%2d %2d:%2d:%2d", &tm->tm_mday, month, &tm->tm_year,
               &tm->tm_hour, &tm->tm_min, &tm->tm_sec) != 6)
        return false;
    tm->tm_mon = month_of(month);
    if (tm->tm_mon < 0)
        return false;
    choose_century(tm, now_s);
    return reads_back(text + day, ", %d-%b-%y %H:%M:%S GMT", tm);
}

static inline bool
reads_asctime(const char *text, struct tm *tm)
{
    char month[4] = "";

    if (!one_of(text, strcspn(text, " "), SHORT_DAYS) ||
        sscanf(text + 3, " %3s %2d %2d:%2d:%2d %4d", month, &tm->tm_mday, &tm->tm_hour, &tm->tm_min,
               &tm->tm_sec, &tm->tm_year) != 6)
        return false;
    tm->tm_mon = month_of(month);
    tm->tm_year -= 1900;
    return tm->tm_mon >= 0 && reads_back(text + 3, " %b %e %H:%M:%S %Y", tm);
}

/* -1: no date. What lies before 1970 is told as 1970 (http/date.c). */
static inline int64_t
date_value(const char *text, int64_t now_s)
{
    struct tm imf = {0}, rfc850 = {0}, asctime = {0}, *tm;
    int64_t at_s;

    if (text == NULL)
        return -1;
    if (reads_imf(text, &imf))
        tm = &imf;
    else if (reads_rfc850(text, &rfc850, now_s))
        tm = &rfc850;
    else if (reads_asctime(text, &asctime))
        tm = &asctime;
    else
        return -1;
    at_s = timegm(tm);
    return at_s < 0 ? 0 : at_s;
}

/* ---- one stored response ---- */

struct stored {
    const struct message *request, *response;
    int64_t request_time, response_time;
    /* read once, below */
    int64_t date, expires, last_modified, age_value;
    bool has_expires, heuristics_allowed;
};

/* Section 5.1: of a list the first member; what is no non-negative integer is ignored. Parameters
 * are not counted (a comment in cache/head.c). */
static inline int64_t
age_said(const struct message *m)
{
    char member[TEXT_MAX] = "";
    const char *rest = field_first(m, "Age");

    while (rest && *rest && !*member)
        rest = next_member(rest, member, true);
    member[strcspn(member, ";")] = '\0';
    while (*member && strchr(" \t", member[strlen(member) - 1]))
        member[strlen(member) - 1] = '\0';
    if (*member == '\0' || strspn(member, "0123456789") != strlen(member))
        return 0;
    return digits(member);
}

static inline int64_t
larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t
smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* RFC 9110 section 15.1, and "understood" of RFC 9111 section 3: of the codes the generator uses,
 * those the registry has. */
static inline bool
status_is_one_of(unsigned status, const char *list)
{
    char wanted[16];

    snprintf(wanted, sizeof wanted, " %u ", status);
    return strstr(list, wanted) != NULL;
}

#define HEURISTIC " 200 203 204 206 300 301 308 404 405 410 414 501 "
#define UNREGISTERED " 218 299 399 499 599 "
/* cache/storable.c: answers to this one request. */
#define ONE_REQUEST " 304 401 407 412 416 417 421 425 428 429 431 511 "

/* RFC 9110 section 6.6.1: without a readable Date the time of arrival is the Date. */
static inline void
stored_read(struct stored *s)
{
    const struct message *m = s->response;

    s->date = date_value(field_first(m, "Date"), s->response_time);
    if (s->date < 0)
        s->date = s->response_time;
    s->has_expires = field_first(m, "Expires") != NULL;
    /* Section 5.3: invalid dates, "0" above all, are in the past. */
    s->expires = larger(0, date_value(field_first(m, "Expires"), s->response_time));
    s->last_modified = date_value(field_first(m, "Last-Modified"), s->response_time);
    s->age_value = age_said(m);
    /* Section 4.2.2. That a Pragma alone forbids it is cuttle's choice. */
    s->heuristics_allowed = says(m, "public") || status_is_one_of(m->status, HEURISTIC);
    if (field_lines(m, "Cache-Control") == 0 && list_says(m, "Pragma", "no-cache"))
        s->heuristics_allowed = false;
}

/* Section 4.2.3, the formulas as written. */
static inline int64_t
current_age(const struct stored *s, int64_t now)
{
    int64_t apparent_age = larger(0, s->response_time - s->date);
    int64_t response_delay = s->response_time - s->request_time;
    int64_t corrected_age_value = s->age_value + response_delay;
    int64_t corrected_initial_age = larger(apparent_age, corrected_age_value);
    int64_t resident_time = now - s->response_time;

    return corrected_initial_age + resident_time;
}

static inline bool
has_explicit_lifetime(const struct stored *s)
{
    return seconds_said(s->response, "s-maxage") >= 0 ||
           seconds_said(s->response, "max-age") >= 0 || s->has_expires;
}

/* Section 4.2.2: a fraction of the time since Last-Modified, here a fifth and at most three days
 * (cache/refresh_rule.h). */
static inline int64_t
heuristic_lifetime(const struct stored *s)
{
    if (!s->heuristics_allowed || s->last_modified < 0 || s->last_modified >= s->date)
        return 0;
    return smaller((s->date - s->last_modified) * 20 / 100, 3 * 86400);
}

/* Section 4.2.1, in its order. */
static inline int64_t
freshness_lifetime(const struct stored *s)
{
    if (seconds_said(s->response, "s-maxage") >= 0)
        return seconds_said(s->response, "s-maxage");
    if (seconds_said(s->response, "max-age") >= 0)
        return seconds_said(s->response, "max-age");
    if (s->has_expires)
        return s->expires - s->date;
    return heuristic_lifetime(s);
}

/* Section 4.2 */
static inline bool
is_fresh(const struct stored *s, int64_t now)
{
    return freshness_lifetime(s) > current_age(s, now);
}

static inline int64_t
staleness(const struct stored *s, int64_t now)
{
    return current_age(s, now) - freshness_lifetime(s);
}

/* Section 4.2.4, with 5.2.2.2, 5.2.2.4, 5.2.2.8, 5.2.2.10. */
static inline bool
law_forbids_stale(const struct message *response)
{
    return says(response, "must-revalidate") || says(response, "proxy-revalidate") ||
           says(response, "s-maxage") || says_without_argument(response, "no-cache");
}

/* no-cache with field names is taken as plain no-cache. */
static inline bool
choice_forbids_stale(const struct message *response)
{
    return says(response, "must-revalidate") || says(response, "proxy-revalidate") ||
           says(response, "s-maxage") || says(response, "no-cache");
}

/* ---- section 3: storing ---- */

/* Section 3.5 */
static inline bool
authorization_forbids(const struct stored *s)
{
    return field_first(s->request, "Authorization") && !says(s->response, "must-revalidate") &&
           !says(s->response, "public") && !says(s->response, "s-maxage");
}

/* Sections 3 and 5.2.2.3: with must-understand, no-store is for those who do not understand. */
static inline bool
no_store_forbids(const struct stored *s)
{
    bool understood = !status_is_one_of(s->response->status, UNREGISTERED);

    if (says(s->response, "must-understand"))
        return !understood;
    return says(s->response, "no-store");
}

/* The bullets of section 3, for a shared cache that keeps a 206 as a part (cache/part.h says of
 * what) and does not store a 304. */
static inline bool
law_forbids_storing(const struct stored *s)
{
    const struct message *m = s->response;

    return (strcmp(s->request->method, "GET") != 0 && strcmp(s->request->method, "HEAD") != 0 &&
            strcmp(s->request->method, "POST") != 0) ||
           m->status < 200 || m->status == 304 || no_store_forbids(s) ||
           says(s->request, "no-store") /* 5.2.1.5 */ ||
           says_without_argument(m, "private") /* 5.2.2.7 */ || authorization_forbids(s) ||
           !(says(m, "public") || s->has_expires || says(m, "max-age") || says(m, "s-maxage") ||
             status_is_one_of(m->status, HEURISTIC));
}

static inline bool
is_token(const char *text)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(others, *c))
            return false;
    return *text != '\0';
}

/* Section 4.1: "*" always fails to match. A member that is no field name does too (cuttle). */
static inline bool
vary_always_fails(const struct message *m)
{
    char all[COMBINED_MAX], member[TEXT_MAX];
    const char *rest = all;

    field_combined(m, "Vary", all);
    while (*rest) {
        rest = next_member(rest, member, true);
        if (*member && (strcmp(member, "*") == 0 || !is_token(member)))
            return true;
    }
    return false;
}

/* RFC 9110 section 8.8.3. */
static inline bool
is_entity_tag(const char *text)
{
    size_t n;

    if (strncmp(text, "W/", 2) == 0)
        text += 2;
    n = strlen(text);
    if (n < 2 || text[0] != '"' || text[n - 1] != '"')
        return false;
    for (size_t i = 1; i + 1 < n; i++)
        if ((unsigned char)text[i] < 0x21 || text[i] == '"' || text[i] == 0x7f)
            return false;
    return true;
}

static inline bool
has_validator(const struct stored *s)
{
    const char *etag = field_first(s->response, "ETag");

    return s->last_modified >= 0 || (etag && is_entity_tag(etag));
}

/* A collapsed request may have it as it comes, though stale: not if that is forbidden. */
static inline bool
usable_on_arrival(const struct stored *s)
{
    return !says(s->response, "no-cache") &&
           (is_fresh(s, s->response_time) || !choice_forbids_stale(s->response));
}

/* What cache/storable.c says it leaves out beyond the law. */
static inline bool
choice_stores(const struct stored *s)
{
    const struct message *m = s->response;
    bool lives = has_explicit_lifetime(s) || says(m, "public");

    if (law_forbids_storing(s) || strcmp(s->request->method, "GET") != 0)
        return false;
    if (status_is_one_of(m->status, ONE_REQUEST) || says(m, "private"))
        return false;
    if (field_first(m, "Set-Cookie") && !lives)
        return false;
    if (vary_always_fails(m) || (!lives && !status_is_one_of(m->status, HEURISTIC)))
        return false;
    return usable_on_arrival(s) || has_validator(s);
}

/* With those who waited for it: what is fresh with all, what is stale on arrival with no user, and
 * not with a cookie in it. */
static inline bool
choice_shares(const struct stored *s, bool with_users)
{
    if (!choice_stores(s) || !usable_on_arrival(s))
        return false;
    return is_fresh(s, s->response_time) ||
           (!with_users && !field_first(s->response, "Set-Cookie"));
}

/* ---- section 4: reusing ---- */

enum verdict { SERVE, SERVE_STALE, SERVE_AND_VALIDATE, VALIDATE, NONE, REFUSE };

static inline bool
is_read(const struct message *request)
{
    return strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
}

/* Section 5.2.1.2: without a value any staleness; with one, that much. */
static inline bool
max_stale_accepts(const struct message *request, int64_t stale_s)
{
    return says_without_argument(request, "max-stale") ||
           stale_s <= seconds_said(request, "max-stale");
}

/* RFC 5861 section 3 */
static inline bool
while_revalidate_allows(const struct message *response, int64_t stale_s)
{
    return stale_s <= seconds_said(response, "stale-while-revalidate");
}

/* What nobody may send without asking the origin first: section 4 (unsafe methods are written
 * through), 5.2.2.4, and 4.2.4: stale only where it is not forbidden and somebody permits it. */
static inline bool
law_forbids_reuse(const struct stored *s, const struct message *request, int64_t now)
{
    if (!is_read(request) || says_without_argument(s->response, "no-cache"))
        return true;
    if (is_fresh(s, now))
        return false;
    return law_forbids_stale(s->response) ||
           !(max_stale_accepts(request, staleness(s, now)) ||
             while_revalidate_allows(s->response, staleness(s, now)));
}

/* Sections 5.2.1.4 and 5.4. */
static inline bool
wants_no_cache(const struct message *request)
{
    return says(request, "no-cache") ||
           (field_lines(request, "Cache-Control") == 0 && list_says(request, "Pragma", "no-cache"));
}

/* RFC 8246 section 2: while it is fresh nobody asks about an immutable one, but for a client that
 * wants it asked. */
static inline bool
law_expects_reuse(const struct stored *s, const struct message *request, int64_t now)
{
    return is_read(request) && says(s->response, "immutable") && is_fresh(s, now) &&
           !says(s->response, "no-cache") && !wants_no_cache(request) &&
           !says(request, "max-age") && !says(request, "min-fresh");
}

/* Sections 5.2.1.1 and 5.2.1.3; max-age=0 asks even for what has just come. */
static inline bool
client_finds_it_too_old(const struct stored *s, const struct message *request, int64_t now)
{
    int64_t max_age = seconds_said(request, "max-age");
    int64_t min_fresh = seconds_said(request, "min-fresh");

    return max_age == 0 || (max_age > 0 && current_age(s, now) > max_age) ||
           (min_fresh > 0 && freshness_lifetime(s) < current_age(s, now) + min_fresh);
}

static inline enum verdict
choice_for_stale(const struct stored *s, const struct message *request, int64_t now, int64_t bound)
{
    int64_t stale_s = staleness(s, now);
    bool accepted = max_stale_accepts(request, stale_s);

    if (choice_forbids_stale(s->response) || stale_s > bound)
        return VALIDATE;
    if (seconds_said(request, "max-stale") >= 0 && !accepted)
        return VALIDATE;
    if (while_revalidate_allows(s->response, stale_s))
        return SERVE_AND_VALIDATE;
    return accepted ? SERVE_STALE : VALIDATE;
}

static inline enum verdict
choice_before_method(const struct stored *s, const struct message *request, int64_t now,
                     int64_t bound)
{
    if (wants_no_cache(request))
        return NONE;
    if (says(s->response, "no-cache") || client_finds_it_too_old(s, request, now))
        return VALIDATE;
    return is_fresh(s, now) ? SERVE : choice_for_stale(s, request, now, bound);
}

/* cache/reuse.c: no-cache fetches plainly, a HEAD that would need validation goes through; 504
 * where the client wants no other answer (5.2.1.7). s NULL: nothing stored. */
static inline enum verdict
choice_reuse(const struct stored *s, const struct message *request, int64_t now, int64_t bound)
{
    enum verdict v = NONE;

    if (s && is_read(request))
        v = choice_before_method(s, request, now, bound);
    if (v == VALIDATE && strcmp(request->method, "HEAD") == 0)
        v = NONE;
    if (says(request, "only-if-cached") && (v == VALIDATE || v == NONE))
        v = REFUSE;
    return v;
}

/* RFC 5861 section 4: these are the errors. 0: no answer at all. */
static inline bool
is_error(unsigned status)
{
    return status_is_one_of(status, " 500 502 503 504 ");
}

static inline int64_t
if_error_s(const struct stored *s, const struct message *request)
{
    return larger(seconds_said(s->response, "stale-if-error"),
                  seconds_said(request, "stale-if-error"));
}

/* Section 4.2.4: forbidden is forbidden; otherwise who is cut off may. Section 4.3.3 lets a cache
 * that got an error act as if it were; stale-if-error is a bound then (RFC 5861 section 4). */
static inline bool
law_forbids_standing_in(const struct stored *s, const struct message *request, unsigned status,
                        int64_t now)
{
    if (says_without_argument(s->response, "no-cache") || says(request, "no-cache"))
        return true;
    if (status != 0 && !is_error(status))
        return true;
    if (is_fresh(s, now))
        return false;
    return law_forbids_stale(s->response) || (if_error_s(s, request) >= 0 && status != 0 &&
                                              staleness(s, now) > if_error_s(s, request));
}

static inline bool
choice_stands_in(const struct stored *s, const struct message *request, unsigned status,
                 int64_t now, int64_t bound)
{
    int64_t stale_s = staleness(s, now), max_stale = seconds_said(request, "max-stale");
    int64_t allowed = if_error_s(s, request);

    if (says(s->response, "no-cache") || says(request, "no-cache"))
        return false;
    if (status != 0 && !is_error(status))
        return false;
    if (is_fresh(s, now))
        return true;
    if (choice_forbids_stale(s->response) || stale_s > bound)
        return false;
    if (max_stale >= 0 && stale_s > max_stale)
        return false;
    return allowed < 0 || stale_s <= allowed;
}

/* ---- section 4.1: Vary ---- */

static inline bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The white space on either side of a comma, up to the next text that is no white space. */
static inline const char *
skip_to_comma(const char *from)
{
    const char *to = from;

    while (is_blank(*to))
        to++;
    return *to == ',' ? to : from;
}

/* White space around the commas goes, that in quotes stays; a few fields have no case. */
static inline void
normalize(char *text, bool fold_case)
{
    char *to = text;
    const char *from = text;
    bool quoted = false, escaped = false;

    while (*(from = quoted ? from : skip_to_comma(from))) {
        char c = *from++;

        *to++ = fold_case ? (char)tolower((unsigned char)c) : c;
        if (c == '"' && !escaped)
            quoted = !quoted;
        escaped = quoted && c == '\\' && !escaped;
        while (!quoted && c == ',' && is_blank(*from))
            from++;
    }
    *to = '\0';
}

/* Two requests select the same variant in this field: both have it and say the same, or neither
 * has it. */
static inline bool
says_the_same(const struct message *a, const struct message *b, const char *name)
{
    char in_a[COMBINED_MAX], in_b[COMBINED_MAX];
    bool fold_case = !strcasecmp(name, "Accept-Language") || !strcasecmp(name, "Accept-Encoding");
    bool a_has = field_combined(a, name, in_a), b_has = field_combined(b, name, in_b);

    normalize(in_a, fold_case);
    normalize(in_b, fold_case);
    return a_has == b_has && strcmp(in_a, in_b) == 0;
}

static inline bool
vary_selects(const struct message *response, const struct message *first,
             const struct message *later)
{
    char all[COMBINED_MAX], member[TEXT_MAX];
    const char *rest = all;

    if (vary_always_fails(response))
        return false;
    field_combined(response, "Vary", all);
    while (*rest) {
        rest = next_member(rest, member, true);
        if (*member && !says_the_same(first, later, member))
            return false;
    }
    return true;
}

/* ---- RFC 9110 section 13.2.2: preconditions ---- */

enum outcome { PERFORM, NOT_MODIFIED, FAILED };

/* Section 8.8.3.2 */
static inline bool
tags_match(const char *a, const char *b, bool strong)
{
    bool a_weak = strncmp(a, "W/", 2) == 0, b_weak = strncmp(b, "W/", 2) == 0;

    if (!is_entity_tag(a) || !is_entity_tag(b) || (strong && (a_weak || b_weak)))
        return false;
    return strcmp(a + (a_weak ? 2 : 0), b + (b_weak ? 2 : 0)) == 0;
}

/* "*" is a whole field value; "*" beside tags is outside the grammar and matches nothing. */
static inline bool
lists_tag(const struct message *request, const char *name, const char *etag, bool strong)
{
    char all[COMBINED_MAX], member[TEXT_MAX];
    const char *rest = all;

    field_combined(request, name, all);
    if (strcmp(all, "*") == 0)
        return true;
    while (*rest) {
        rest = next_member(rest, member, false);
        if (etag && tags_match(member, etag, strong))
            return true;
    }
    return false;
}

/* Sections 13.1.3 and 13.1.4: more than one member is no date. */
static inline int64_t
only_date(const struct message *request, const char *name, int64_t now)
{
    return field_lines(request, name) == 1 ? date_value(field_first(request, name), now) : -1;
}

/* Steps 3 and 4, which are all that a cache evaluates (RFC 9111 section 4.3.2). `etag` and
 * `last_modified` are the selected representation's; where it has no Last-Modified its Date stands
 * in for If-Modified-Since. */
static inline enum outcome
preconditions_at_a_cache(const struct message *request, const char *etag, int64_t last_modified,
                         int64_t date, int64_t now)
{
    int64_t since = only_date(request, "If-Modified-Since", now);
    bool reads = is_read(request);

    if (field_first(request, "If-None-Match")) {
        if (!lists_tag(request, "If-None-Match", etag, false))
            return PERFORM;
        return reads ? NOT_MODIFIED : FAILED;
    }
    /* Our choice: in the second of the Date itself the representation may have changed again. */
    if (reads && since >= 0 && (last_modified >= 0 ? last_modified : date + 1) <= since)
        return NOT_MODIFIED;
    return PERFORM;
}

/* All four steps, as an origin server goes through them. */
static inline enum outcome
preconditions(const struct message *request, const char *etag, int64_t last_modified, int64_t date,
              int64_t now)
{
    int64_t since = only_date(request, "If-Unmodified-Since", now);

    if (field_first(request, "If-Match")) {
        if (!lists_tag(request, "If-Match", etag, true))
            return FAILED;
    } else if (since >= 0 && last_modified >= 0 && last_modified > since) {
        return FAILED;
    }
    return preconditions_at_a_cache(request, etag, last_modified, date, now);
}

#endif
