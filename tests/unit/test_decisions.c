/* tests/unit/test_decisions.c - cuttle's decisions against a slow reading of the standard.
 *
 * Random requests and responses are written as text, read by cuttle's parser and by rfc9111.h, and
 * judged by both. Each pair of request and response is asked about at several moments, most of
 * them a second around where an answer changes. A failure prints the texts and the seed of its
 * round: CUTTLE_SEED=that repeats it as the first round. CUTTLE_ROUNDS searches for longer. */
#include "tests/unit/rfc9111.h"

#include <stdlib.h>

#include "cache/reuse.h"
#include "cache/storable.h"
#include "cache/vary.h"
#include "http/conditional.h"
#include "http/h1_parse.h"
#include "tests/unit/heads.h"

enum { ROUNDS = 70000, LATER_PER_ROUND = 3, DISAGREEMENTS_SHOWN = 20 };

#define DAY INT64_C(86400)

/* ---- random choices ---- */

static uint64_t random_state;

static uint64_t
random_next(void)
{
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static unsigned
below(unsigned n)
{
    return (unsigned)(random_next() % n);
}

static bool
once_in(unsigned n)
{
    return below(n) == 0;
}

#define PICK(list) (list)[below(sizeof(list) / sizeof(list)[0])]

/* ---- writing ---- */

struct text {
    char at[8192];
    size_t n;
};

__attribute__((format(printf, 2, 3))) static void
put(struct text *t, const char *format, ...)
{
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(t->at + t->n, sizeof t->at - t->n, format, arguments);
    va_end(arguments);
    CHECK(n >= 0 && t->n + (size_t)n < sizeof t->at);
    t->n += (size_t)n;
}

/* A name as people write it. */
static void
put_name(struct text *t, const char *name)
{
    size_t from = t->n;

    put(t, "%s", name);
    if (!once_in(6))
        return;
    for (size_t i = from; i < t->n; i++)
        if (once_in(2))
            t->at[i] = (char)toupper((unsigned char)t->at[i]);
}

static int64_t
some_seconds(void)
{
    static const int64_t telling[] = {0,      0,          1,          2,          5,
                                      10,     60,         100,        3600,       DAY,
                                      604800, 2147483647, 2147483648, 2147483649, 99999999999};

    return once_in(3) ? (int64_t)below(200) : PICK(telling);
}

/* Where it must be a number: one, or something that is none. */
static void
put_seconds(struct text *t)
{
    static const char *const odd[] = {"=",
                                      "",
                                      "=\"10\"",
                                      "=10x",
                                      "=-5",
                                      "=1.5",
                                      "= 10",
                                      " =10",
                                      "=+5",
                                      "=ten",
                                      "=\"\"",
                                      "=1e3",
                                      "=0x10",
                                      "=\"0\"",
                                      "=0010",
                                      "=\"10",
                                      "=5;a=b",
                                      "=-",
                                      "=123456789012345678901234567890"};

    if (once_in(8))
        put(t, "%s", PICK(odd));
    else
        put(t, "=%lld", (long long)some_seconds());
}

struct vocabulary {
    const char *word;
    bool seconds;
};

static const struct vocabulary response_words[] = {
    {"max-age", true},
    {"max-age", true},
    {"max-age", true},
    {"s-maxage", true},
    {"no-cache", false},
    {"no-store", false},
    {"private", false},
    {"public", false},
    {"public", false},
    {"must-revalidate", false},
    {"proxy-revalidate", false},
    {"must-understand", false},
    {"no-transform", false},
    {"immutable", false},
    {"stale-while-revalidate", true},
    {"stale-while-revalidate", true},
    {"stale-if-error", true},
    {"stale-if-error", true},
    {"no-cache=\"x\"", false},
    {"no-cache=\"Set-Cookie, x\"", false},
    {"no-cache=x", false},
    {"private=\"x\"", false},
    {"private=\"a, no-store\"", false},
    {"x=\"no-store, max-age=5\"", false},
    {"x=\"a\\\", no-store\"", false},
    {"maxage=5", false},
    {"no-store-at-all", false},
    {"only-if-cached", false},
};

static const struct vocabulary request_words[] = {
    {"max-age", true},         {"max-age", true},         {"max-stale", true},
    {"max-stale", true},       {"max-stale", false},      {"min-fresh", true},
    {"no-cache", false},       {"no-store", false},       {"only-if-cached", false},
    {"no-transform", false},   {"stale-if-error", true},  {"stale-if-error", true},
    {"no-cache=\"x\"", false}, {"x=\"no-cache\"", false}, {"must-revalidate", false},
};

static void
put_directives(struct text *t, const struct vocabulary *words, unsigned n_words)
{
    static const char *const between[] = {", ", ",", " , ", ",,", "\r\nCache-Control: ", "\t,\t"};
    unsigned n = once_in(10) ? 0 : 1 + below(3);

    if (once_in(5))
        return;
    put_name(t, "Cache-Control");
    put(t, ": ");
    for (unsigned i = 0; i < n; i++) {
        const struct vocabulary *v = &words[below(n_words)];

        put(t, "%s", i > 0 ? PICK(between) : "");
        put_name(t, v->word);
        if (v->seconds)
            put_seconds(t);
        else if (once_in(40))
            put(t, "=1");
    }
    put(t, "\r\n");
}

#define PUT_DIRECTIVES(t, words) put_directives(t, words, sizeof(words) / sizeof(words)[0])

static void
put_date(struct text *t, int64_t at_s)
{
    static const char *const formats[] = {"%a, %d %b %Y %H:%M:%S GMT", "%a, %d %b %Y %H:%M:%S GMT",
                                          "%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
                                          "%a %b %e %H:%M:%S %Y"};
    time_t at = (time_t)at_s;
    struct tm tm;

    gmtime_r(&at, &tm);
    t->n += strftime(t->at + t->n, sizeof t->at - t->n, PICK(formats), &tm);
}

static int64_t
some_time(void)
{
    static const int64_t offsets[] = {0,   0,         0,          -1,          1,           -5,
                                      5,   -60,       60,         -3600,       3600,        -DAY,
                                      DAY, -30 * DAY, 3650 * DAY, -3650 * DAY, -25600 * DAY};

    return T0 + (once_in(4) ? (int64_t)below(200) - 100 : PICK(offsets));
}

static void
put_date_field(struct text *t, const char *name)
{
    static const char *const odd[] = {"0",
                                      "-1",
                                      "",
                                      "Tue, 32 Jan 2030 00:00:00 GMT",
                                      "now",
                                      "Tue, 01 Jan 2030 00:00:00",
                                      "Tue, 1 Jan 2030 00:00:00 GMT",
                                      "Tue, 01 Jan 2030 00:00:00 UTC",
                                      "1893456000",
                                      "Tue 01 Jan 2030 00:00:00 GMT"};

    put_name(t, name);
    put(t, ": ");
    if (once_in(8))
        put(t, "%s", PICK(odd));
    else
        put_date(t, some_time());
    put(t, "\r\n");
}

static void
put_one_of(struct text *t, const char *name, const char *const *values, unsigned n)
{
    put_name(t, name);
    put(t, ": %s\r\n", values[below(n)]);
}

#define PUT_ONE_OF(t, name, list) put_one_of(t, name, list, sizeof(list) / sizeof(list)[0])

static const char *const tags[] = {"\"a\"",   "W/\"a\"", "\"b\"",   "\"a,b\"",     "\"\"",
                                   "w/\"a\"", "a",       "\"a\\\"", "\"\xc3\xa9\""};

static void
put_tags(struct text *t, const char *name)
{
    put_name(t, name);
    put(t, ": %s", PICK(tags));
    for (unsigned n = below(3); n > 0; n--)
        put(t, "%s%s", once_in(4) ? "," : ", ", PICK(tags));
    put(t, "\r\n");
}

/* "*" is a value of its own; beside tags it is outside the grammar, so it stays alone here. */
static void
put_tag_lines(struct text *t, const char *name)
{
    if (once_in(8)) {
        put(t, "%s: *\r\n", name);
        return;
    }
    put_tags(t, name);
    if (once_in(6))
        put_tags(t, name);
}

/* The fields Vary may name, in few words, so that two requests often agree. */
static void
put_selecting(struct text *t)
{
    static const char *const encodings[] = {"gzip",    "GZIP",       "gzip, br",
                                            "gzip,br", "gzip ,  br", ""};
    static const char *const languages[] = {"de", "DE", "de, en;q=0.5", "de,en;q=0.5"};
    static const char *const customs[] = {
        "a", "A", "\"a , b\"", "\"a,b\"", "\"\\\"a , b\"", "\"\\\"a,b\"", "a b"};

    if (once_in(2))
        PUT_ONE_OF(t, "Accept-Encoding", encodings);
    if (once_in(8))
        PUT_ONE_OF(t, "Accept-Encoding", encodings);
    if (once_in(3))
        PUT_ONE_OF(t, "Accept-Language", languages);
    if (once_in(3))
        PUT_ONE_OF(t, "X-Custom", customs);
    if (once_in(8))
        PUT_ONE_OF(t, "X-Custom", customs);
}

static void
put_conditions(struct text *t)
{
    if (once_in(6))
        put_tag_lines(t, "If-Match");
    if (once_in(6))
        put_date_field(t, "If-Unmodified-Since");
    if (once_in(3))
        put_tag_lines(t, "If-None-Match");
    if (once_in(3))
        put_date_field(t, "If-Modified-Since");
    if (once_in(20))
        put_date_field(t, "If-Modified-Since");
}

static void
put_request(struct text *t, struct message *m)
{
    static const char *const methods[] = {"GET",  "GET",  "GET", "GET",     "GET",  "GET",
                                          "HEAD", "POST", "PUT", "OPTIONS", "PURGE"};
    static const char *const pragmas[] = {"no-cache", "No-Cache", "x, no-cache", "x"};

    t->n = 0;
    strcpy(m->method, PICK(methods));
    put(t, "%s http://o.example/x HTTP/1.1\r\nHost: o.example\r\n", m->method);
    PUT_DIRECTIVES(t, request_words);
    if (once_in(6))
        PUT_ONE_OF(t, "Pragma", pragmas);
    if (once_in(6))
        put(t, "Authorization: Basic QTpC\r\n");
    if (once_in(6))
        put(t, "Cookie: a=b\r\n");
    put_selecting(t);
    put_conditions(t);
    put(t, "\r\n");
    message_read(m, t->at);
}

static void
put_ages(struct text *t)
{
    static const char *const ages[] = {"0",   "1",     "5",    "60",        "5, 60",       "60, 5",
                                       "-1",  "1.5",   "x",    "",          "99999999999", "5;a=b",
                                       ", 7", "\"5\"", "x, 5", "2147483648"};

    if (once_in(3))
        PUT_ONE_OF(t, "Age", ages);
    if (once_in(12))
        PUT_ONE_OF(t, "Age", ages);
}

static void
put_response(struct text *t, struct message *m)
{
    static const unsigned statuses[] = {200, 200, 200, 200, 200, 200, 203, 204, 206, 218, 299, 300,
                                        301, 302, 304, 307, 308, 399, 401, 403, 404, 405, 407, 410,
                                        412, 414, 416, 421, 425, 429, 451, 499, 500, 501, 503, 599};
    static const char *const names[] = {"Accept-Encoding",
                                        "accept-language, X-Custom",
                                        "*",
                                        "",
                                        "X-Custom",
                                        "Accept-Encoding, *",
                                        "a b",
                                        "x-absent",
                                        "Accept-Encoding,,x-custom",
                                        "\"*\""};
    static const char *const pragmas[] = {"no-cache", "NO-CACHE, x", "x"};

    t->n = 0;
    m->status = PICK(statuses);
    put(t, "HTTP/1.1 %u Whatever\r\n", m->status);
    if (!once_in(8))
        put_date_field(t, "Date");
    PUT_DIRECTIVES(t, response_words);
    put_ages(t);
    for (unsigned n = once_in(3) + once_in(8); n > 0; n--)
        put_date_field(t, "Expires");
    if (once_in(2))
        put_date_field(t, "Last-Modified");
    if (once_in(2))
        PUT_ONE_OF(t, "ETag", tags);
    for (unsigned n = once_in(3) + once_in(8); n > 0; n--)
        PUT_ONE_OF(t, "Vary", names);
    if (once_in(6))
        PUT_ONE_OF(t, "Pragma", pragmas);
    if (once_in(8))
        put(t, "Set-Cookie: a=b\r\n");
    put(t, "\r\n");
    message_read(m, t->at);
}

/* ---- one round: a stored response and later requests ---- */

static struct round {
    uint64_t seed;
    struct text first_text, response_text, later_text;
    struct message first, response, later;
    struct request_head first_head, later_head;
    struct response_head response_head;
    struct stored stored;
    struct head *head;
    struct arena arena;
    int64_t now, now_ms, bound;
} the_round;

static unsigned disagreements;

static void
disagree(const struct round *r, const char *about, long expected, long got)
{
    if (disagreements++ >= DISAGREEMENTS_SHOWN)
        return;
    print_error("%s: the standard %ld, cuttle %ld (CUTTLE_SEED=%llu)\n%s%s", about, expected, got,
                (unsigned long long)r->seed, r->first_text.at, r->response_text.at);
    print_error("%sresponse %lld s after its request, at %lld; asked at +%lld s; bound %lld s\n"
                "the standard: lifetime %lld, age %lld\n\n",
                r->later_text.at, (long long)(r->stored.response_time - r->stored.request_time),
                (long long)r->stored.response_time, (long long)(r->now - r->stored.response_time),
                (long long)r->bound, (long long)freshness_lifetime(&r->stored),
                (long long)current_age(&r->stored, r->now));
}

#define EXPECT(r, about, expected, got)                                                            \
    do {                                                                                           \
        long expected_ = (long)(expected), got_ = (long)(got);                                     \
                                                                                                   \
        if (expected_ != got_)                                                                     \
            disagree(r, about, expected_, got_);                                                   \
    } while (0)

/* What the law forbids cuttle does not do; doing less is its own affair. */
#define FORBID(r, about, forbidden, done)                                                          \
    do {                                                                                           \
        if ((forbidden) && (done))                                                                 \
            disagree(r, about, 0, 1);                                                              \
    } while (0)

static const struct h1_limits limits = {.head_bytes = 65536, .target_bytes = 32768, .fields = 1000};

static void
parse_request(struct round *r, const struct text *t, struct request_head *out)
{
    enum h1_reason why;
    size_t used;

    if (h1_parse_request(span_of(t->at, t->n), &limits, &r->arena, out, &used, &why) != H1_OK)
        fail_msg("%s in\n%s", h1_reason_text(why), t->at);
}

static void
parse_response(struct round *r)
{
    struct span text = span_of(r->response_text.at, r->response_text.n);
    enum h1_reason why;
    size_t used;

    if (h1_parse_response(text, &limits, &r->arena, &r->response_head, &used, &why) != H1_OK)
        fail_msg("%s in\n%s", h1_reason_text(why), r->response_text.at);
}

static void
make_stored(struct round *r)
{
    static const int64_t delays[] = {0, 0, 1, 2, 30, 3600};
    int64_t response_time = T0 + (int64_t)below(20) - 10;
    struct head_times t = {response_time - PICK(delays), response_time, AT(0)};

    put_request(&r->first_text, &r->first);
    put_response(&r->response_text, &r->response);
    parse_request(r, &r->first_text, &r->first_head);
    parse_response(r);
    r->head = head_new(&r->first_head, &r->response_head, &t);
    r->stored = (struct stored){.request = &r->first,
                                .response = &r->response,
                                .request_time = t.request_wall_s,
                                .response_time = t.response_wall_s};
    stored_read(&r->stored);
}

/* Mostly a second around where some answer changes. */
static int64_t
some_resident_time(const struct round *r)
{
    int64_t initial_age = current_age(&r->stored, r->stored.response_time);
    int64_t left = freshness_lifetime(&r->stored) - initial_age;
    int64_t after[] = {left,
                       left,
                       left + seconds_said(&r->later, "max-stale"),
                       left - seconds_said(&r->later, "min-fresh"),
                       seconds_said(&r->later, "max-age") - initial_age,
                       left + seconds_said(&r->response, "stale-while-revalidate"),
                       left + seconds_said(&r->response, "stale-if-error"),
                       left + seconds_said(&r->later, "stale-if-error"),
                       left + r->bound,
                       below(1000),
                       0};
    int64_t resident = PICK(after) + (int64_t)below(3) - 1;

    return resident < 0 ? 0 : smaller(resident, INT64_C(1) << 32);
}

static void
make_later(struct round *r)
{
    static const int64_t bounds[] = {0, 10, 100, 604800, 604800, 604800, INT64_C(1) << 40};

    put_request(&r->later_text, &r->later);
    parse_request(r, &r->later_text, &r->later_head);
    r->bound = PICK(bounds);
    r->now = r->stored.response_time + some_resident_time(r);
    r->now_ms = AT(r->now - r->stored.response_time) + below(1000);
}

/* ---- where cuttle departs from the text ----
 *
 * Each of these is narrow, and both what cuttle does now and what the text asks pass here. */

/* An s-maxage whose argument is no plain number (quotes, say, which section 5.2 asks recipients to
 * accept) is dropped whole: neither is the stale response forbidden (5.2.2.10) nor Expires
 * ignored (5.3). max-age: the latter. */
static bool
has_unread_lifetime(const struct message *m)
{
    if (says(m, "s-maxage") && seconds_said(m, "s-maxage") < 0)
        return true;
    return says(m, "max-age") && seconds_said(m, "max-age") < 0 && field_first(m, "Expires");
}

/* Of max-stale with and without a value the more restrictive should be honoured (4.2.1), cuttle
 * takes the other. */
static bool
contradicts_itself(const struct message *request)
{
    return says_without_argument(request, "max-stale") && seconds_said(request, "max-stale") >= 0;
}

/* Section 4: what is unsafe is written through. cuttle answers 504 to it when the client also sent
 * only-if-cached, which section 5.2.1.7 asks for (SHOULD). */
static bool
is_refused_write(const struct message *request)
{
    return !is_read(request) && says(request, "only-if-cached");
}

/* RFC 9111 section 4.3.2: a cache does not evaluate If-Match and If-Unmodified-Since, which only
 * apply to an origin server. cuttle does: where the two ways part, it must keep to one of them. */
static bool
keeps_to_one_way(enum outcome got, enum outcome at_an_origin, enum outcome at_a_cache)
{
    static enum { UNSEEN, ORIGIN, CACHE } way;

    if (at_an_origin == at_a_cache)
        return got == at_an_origin;
    if (way == UNSEEN)
        way = got == at_a_cache ? CACHE : ORIGIN;
    return got == (way == CACHE ? at_a_cache : at_an_origin);
}

/* ---- judging ---- */

static void
judge_storing(const struct round *r)
{
    struct cache_control cc = cache_control_parse(&r->first_head.fields);
    struct storable s = response_storable(&r->first_head, &cc, r->head, NULL);

    FORBID(r, "may not be stored", law_forbids_storing(&r->stored), s.yes);
    FORBID(r, "no-cache is not shared", says_without_argument(&r->response, "no-cache"),
           s.share != SHARE_NONE);
    EXPECT(r, "stored says so", s.yes, strcmp(s.why, "stored") == 0);
    if (has_unread_lifetime(&r->response))
        return;
    EXPECT(r, "storable", choice_stores(&r->stored), s.yes);
    EXPECT(r, "shared with all", choice_shares(&r->stored, true), s.share == SHARE_ALL);
    EXPECT(r, "shared without credentials", choice_shares(&r->stored, false),
           s.share != SHARE_NONE);
}

static void
judge_freshness(const struct round *r)
{
    struct freshness f = freshness_at(r->head, NULL, r->now_ms);

    EXPECT(r, "current_age", current_age(&r->stored, r->now), f.age_s);
    if (has_unread_lifetime(&r->response))
        return;
    EXPECT(r, "freshness_lifetime", freshness_lifetime(&r->stored), f.lifetime_s);
    EXPECT(r, "response_is_fresh", is_fresh(&r->stored, r->now), freshness_is_fresh(&f));
    EXPECT(r, "stale is forbidden", choice_forbids_stale(&r->response),
           freshness_forbids_stale(r->head, NULL));
}

static enum verdict
verdict_of(const struct reuse *u)
{
    static const enum verdict names[] = {[REUSE_SERVE] = SERVE,
                                         [REUSE_SERVE_STALE] = SERVE_STALE,
                                         [REUSE_SERVE_AND_VALIDATE] = SERVE_AND_VALIDATE,
                                         [REUSE_VALIDATE] = VALIDATE,
                                         [REUSE_NONE] = NONE,
                                         [REUSE_REFUSE] = REFUSE};

    return names[u->verdict];
}

static void
judge_verdict(const struct round *r, const struct stored *stored, const struct reuse *u)
{
    enum verdict v = verdict_of(u);

    if (is_refused_write(&r->later) && v == NONE)
        return;
    EXPECT(r, stored ? "reuse" : "reuse of nothing",
           choice_reuse(stored, &r->later, r->now, r->bound), v);
}

static void
judge_reuse(const struct round *r)
{
    const struct reuse_policy policy = {.max_stale_s = r->bound};
    struct cache_control cc = cache_control_parse(&r->later_head.fields);
    struct reuse u = reuse_decide(&r->later_head, &cc, NULL, NULL, &policy, r->now_ms);

    judge_verdict(r, NULL, &u);
    if (has_unread_lifetime(&r->response) || contradicts_itself(&r->later))
        return;
    u = reuse_decide(&r->later_head, &cc, r->head, NULL, &policy, r->now_ms);
    FORBID(r, "may not be reused", law_forbids_reuse(&r->stored, &r->later, r->now),
           u.verdict == REUSE_SERVE || u.verdict == REUSE_SERVE_STALE ||
               u.verdict == REUSE_SERVE_AND_VALIDATE);
    FORBID(r, "immutable is served", law_expects_reuse(&r->stored, &r->later, r->now),
           u.verdict != REUSE_SERVE);
    judge_verdict(r, &r->stored, &u);
}

/* Section 4 lets a cache collapse requests when it may reuse the response for each of them. cuttle
 * hands round what was stale when it came where nobody sent credentials: it came after all of them
 * had asked. */
static void
judge_collapsing(const struct round *r)
{
    const struct reuse_policy policy = {.max_stale_s = r->bound};
    struct cache_control cc = cache_control_parse(&r->later_head.fields);
    bool anonymous = !field_first(&r->later, "Cookie") && !field_first(&r->later, "Authorization");
    int64_t now = r->stored.response_time;
    bool forbidden = law_forbids_reuse(&r->stored, &r->later, now);
    bool alone = reuse_collapsed(&r->later_head, &cc, r->head, false, NULL, &policy, AT(0));
    bool together = reuse_collapsed(&r->later_head, &cc, r->head, true, NULL, &policy, AT(0));

    if (has_unread_lifetime(&r->response) || contradicts_itself(&r->later))
        return;
    FORBID(r, "a waiter may not have it", forbidden, alone);
    FORBID(r, "a user may not have it", forbidden && !anonymous, together);
    FORBID(r, "nobody who waits may have it",
           forbidden && (!usable_on_arrival(&r->stored) || field_first(&r->response, "Set-Cookie")),
           together);
    EXPECT(r, "one who may alone may together", alone, alone && together);
}

static void
judge_failure(const struct round *r)
{
    static const unsigned statuses[] = {0, 0, 500, 501, 502, 503, 504, 404, 200};
    const struct reuse_policy policy = {.max_stale_s = r->bound};
    struct cache_control cc = cache_control_parse(&r->later_head.fields);
    unsigned status = PICK(statuses);
    bool stands_in = reuse_after_failure(&cc, r->head, NULL, &policy, status, r->now_ms);

    if (has_unread_lifetime(&r->response))
        return;
    FORBID(r, "may not stand in", law_forbids_standing_in(&r->stored, &r->later, status, r->now),
           stands_in);
    EXPECT(r, "stands in", choice_stands_in(&r->stored, &r->later, status, r->now, r->bound),
           stands_in);
}

static void
judge_vary(struct round *r)
{
    bool never, selects;
    struct span spec =
        vary_spec(&r->response_head.fields, &r->first_head.fields, &r->arena, &never);

    EXPECT(r, "Vary never matches", vary_always_fails(&r->response), never);
    EXPECT(r, "vary_is_never", never, vary_is_never(&r->head->fields));
    if (never)
        return;
    selects = vary_matches(spec, &r->later_head.fields, &r->arena);
    EXPECT(r, "Vary", vary_selects(&r->response, &r->first, &r->later), selects);
    EXPECT(r, "its own request", 1, vary_matches(spec, &r->first_head.fields, &r->arena));
}

static enum outcome
outcome_of(enum precondition p)
{
    return p == PRECONDITION_FAILED ? FAILED : p == PRECONDITION_PASS ? PERFORM : NOT_MODIFIED;
}

static void
judge_conditions(const struct round *r)
{
    const struct stored *s = &r->stored;
    const char *etag = field_first(s->response, "ETag");
    struct selected selected = {r->head->etag, r->head->last_modified_s, r->head->date_s};
    enum outcome got = outcome_of(conditional_evaluate(&r->later_head, &selected, r->now));
    enum outcome origin = preconditions(&r->later, etag, s->last_modified, s->date, r->now);
    enum outcome cache =
        preconditions_at_a_cache(&r->later, etag, s->last_modified, s->date, r->now);

    if (!keeps_to_one_way(got, origin, cache))
        disagree(r, "precondition", origin, got);
}

static void
play_round(struct round *r, uint64_t seed)
{
    static char room[64 * 1024];

    r->seed = random_state = seed;
    arena_init(&r->arena, room, sizeof room);
    make_stored(r);
    for (unsigned i = 0; i < LATER_PER_ROUND; i++) {
        make_later(r);
        if (i == 0)
            judge_storing(r);
        judge_freshness(r);
        judge_reuse(r);
        judge_failure(r);
        judge_collapsing(r);
        judge_vary(r);
        judge_conditions(r);
    }
    head_unref(&r->head);
    arena_free(&r->arena);
}

static uint64_t
number_from(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);

    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void
cuttle_decides_as_the_standard_says(void **state)
{
    uint64_t seed = number_from("CUTTLE_SEED", 9111), rounds = number_from("CUTTLE_ROUNDS", ROUNDS);

    disagreements = 0;
    for (uint64_t i = 0; i < rounds; i++)
        play_round(&the_round, seed + i);
    if (disagreements > 0)
        fail_msg("%u disagreements, CUTTLE_SEED=%llu", disagreements, (unsigned long long)seed);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuttle_decides_as_the_standard_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
