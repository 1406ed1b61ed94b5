/* tests/unit/heads.h - literal heads for tests of pure modules.
 *
 *     struct head *h = stored_response(.fields = "Cache-Control: max-age=60\r\n");
 *
 * T0 is the wall time and M0 the monotonic time of arrival. What is made here lives until
 * heads_free, the groups' teardown. */
#ifndef TESTS_UNIT_HEADS_H
#define TESTS_UNIT_HEADS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/check.h"
#include "cache/head.h"
#include "cache/refresh_rule.h"

#define T0 INT64_C(1893456000) /* Tue, 01 Jan 2030 00:00:00 GMT */
#define M0 INT64_C(5000000)
#define AT(seconds) (M0 + (seconds)*INT64_C(1000))
#define DATE_T0 "Date: Tue, 01 Jan 2030 00:00:00 GMT\r\n"

#define HEADS_MAX 1024
static struct arena heads_arena;
static struct head *heads_made[HEADS_MAX];
static unsigned heads_n;

static inline int
heads_init(void **state)
{
    arena_init(&heads_arena, NULL, 0);
    return 0;
}

static inline int
heads_free(void **state)
{
    while (heads_n > 0)
        head_unref(&heads_made[--heads_n]);
    arena_free(&heads_arena);
    return 0;
}

/* "Name: value\r\n"... NULL: none. */
static inline struct fields
fields_of(const char *text)
{
    struct fields f = {0};
    struct span rest = span_str(text), line;

    while (rest.n) {
        size_t end = span_index(rest, '\r');
        size_t colon;

        line = span_first(rest, end);
        colon = span_index(line, ':');
        fields_add(&f, &heads_arena, span_first(line, colon),
                   span_trim(span_skip(line, colon + 1)));
        rest = span_skip(rest, end + 2);
    }
    return f;
}

struct request_text {
    const char *method, *uri, *fields; /* NULL: GET, http://o.example/x, none */
};

static inline struct request_head
request_of(struct request_text t)
{
    struct request_head r = {.minor = 1, .fields = fields_of(t.fields)};
    const char *why;

    r.method_text = span_str(t.method ? t.method : "GET");
    r.method = method_of(r.method_text);
    r.target = span_str(t.uri ? t.uri : "http://o.example/x");
    CHECK(uri_parse_target(r.target, r.method, &heads_arena, &r.uri, &why));
    return r;
}

struct response_text {
    unsigned status; /* 0: 200 */
    const char *fields;
    const char *request_fields; /* of the request that brought it */
    int64_t delay_s;            /* between request and response */
    int64_t later_s;            /* arrival after T0 */
};

static inline struct response_head
response_of(struct response_text t)
{
    struct response_head r = {.status = t.status ? t.status : 200, .minor = 1};

    r.reason = r.status == 200 ? SPAN("OK") : SPAN("Whatever");
    r.fields = fields_of(t.fields);
    return r;
}

static inline struct head_times
times_of(struct response_text t)
{
    return (struct head_times){.request_wall_s = T0 + t.later_s - t.delay_s,
                               .response_wall_s = T0 + t.later_s,
                               .response_mono_ms = AT(t.later_s)};
}

static inline struct head *
heads_keep(struct head *h)
{
    CHECK(heads_n < HEADS_MAX);
    return heads_made[heads_n++] = h;
}

static inline struct head *
stored_of(struct response_text t)
{
    struct request_head request = request_of((struct request_text){.fields = t.request_fields});
    struct response_head response = response_of(t);
    struct head_times times = times_of(t);

    return heads_keep(head_new(&request, &response, &times));
}

static inline struct head *
freshened_of(const struct head *stored, struct response_text t)
{
    struct request_head request = request_of((struct request_text){.fields = t.request_fields});
    struct response_head response = response_of(t);
    struct head_times times = times_of(t);

    return heads_keep(head_freshen(stored, &request, &response, &times));
}

#define request(...) request_of((struct request_text){__VA_ARGS__})
#define response(...) response_of((struct response_text){__VA_ARGS__})
#define stored_response(...) stored_of((struct response_text){__VA_ARGS__})
#define freshened(stored, ...)                                                                     \
    freshened_of(stored, (struct response_text){.status = 304, __VA_ARGS__})

#define assert_span(actual, expected)                                                              \
    do {                                                                                           \
        struct span span_actual = (actual);                                                        \
                                                                                                   \
        assert_int_equal(span_actual.n, strlen(expected));                                         \
        assert_memory_equal(span_actual.at, expected, span_actual.n);                              \
    } while (0)

#endif
