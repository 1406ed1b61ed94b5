/* test_conditional - preconditions in the order of RFC 9110 section 13.2.2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/conditional.h"
#include "http/date.h"

#define NOW INT64_C(1796083200)
#define CHANGED "Sun, 06 Nov 1994 08:49:37 GMT"
#define CHANGED_S 784111777
#define BEFORE "Sun, 06 Nov 1994 08:49:36 GMT"
#define AFTER "Sun, 06 Nov 1994 08:49:38 GMT"

static const struct selected tagged = {{"\"a\"", 3}, CHANGED_S, CHANGED_S + 100};

static struct field lines[8];
static struct request_head request;

static void
ask(enum method m)
{
    request = (struct request_head){.method = m, .minor = 1};
    request.fields = (struct fields){lines, 0, 8};
}

static void
with(enum field_id id, const char *value)
{
    lines[request.fields.n++] = (struct field){field_name(id), span_str(value), id};
}

#define assert_gives(selected, verdict)                                                            \
    assert_int_equal(conditional_evaluate(&request, (selected), NOW), (verdict))

static void
check_one(enum method m, enum field_id id, const char *value, enum precondition verdict)
{
    ask(m);
    with(id, value);
    assert_gives(&tagged, verdict);
}

/* RFC 9110 section 13.1.2 */
static void
if_none_match_compares_weakly(void **state)
{
    check_one(METHOD_GET, FIELD_IF_NONE_MATCH, "\"a\"", PRECONDITION_NOT_MODIFIED);
    check_one(METHOD_HEAD, FIELD_IF_NONE_MATCH, "W/\"a\"", PRECONDITION_NOT_MODIFIED);
    check_one(METHOD_GET, FIELD_IF_NONE_MATCH, "\"b\", \"a\"", PRECONDITION_NOT_MODIFIED);
    check_one(METHOD_GET, FIELD_IF_NONE_MATCH, "*", PRECONDITION_NOT_MODIFIED);
    check_one(METHOD_GET, FIELD_IF_NONE_MATCH, "\"b\"", PRECONDITION_PASS);
    check_one(METHOD_GET, FIELD_IF_NONE_MATCH, "a", PRECONDITION_PASS);
    check_one(METHOD_GET, FIELD_IF_NONE_MATCH, "w/\"a\"", PRECONDITION_PASS);
    check_one(METHOD_PUT, FIELD_IF_NONE_MATCH, "\"a\"", PRECONDITION_FAILED);
}

static void
if_none_match_looks_at_all_lines(void **state)
{
    ask(METHOD_GET);
    with(FIELD_IF_NONE_MATCH, "\"b\"");
    with(FIELD_IF_NONE_MATCH, "\"a\"");
    assert_gives(&tagged, PRECONDITION_NOT_MODIFIED);
}

/* RFC 9110 section 13.1.3: "A recipient MUST ignore If-Modified-Since if the request contains an
 * If-None-Match header field". */
static void
if_none_match_goes_before_if_modified_since(void **state)
{
    ask(METHOD_GET);
    with(FIELD_IF_NONE_MATCH, "\"b\"");
    with(FIELD_IF_MODIFIED_SINCE, AFTER);
    assert_gives(&tagged, PRECONDITION_PASS);
    ask(METHOD_GET);
    with(FIELD_IF_MODIFIED_SINCE, BEFORE);
    with(FIELD_IF_NONE_MATCH, "\"a\"");
    assert_gives(&tagged, PRECONDITION_NOT_MODIFIED);
}

static void
if_modified_since_compares_with_last_modified(void **state)
{
    check_one(METHOD_GET, FIELD_IF_MODIFIED_SINCE, CHANGED, PRECONDITION_NOT_MODIFIED);
    check_one(METHOD_GET, FIELD_IF_MODIFIED_SINCE, AFTER, PRECONDITION_NOT_MODIFIED);
    check_one(METHOD_GET, FIELD_IF_MODIFIED_SINCE, BEFORE, PRECONDITION_PASS);
    check_one(METHOD_GET, FIELD_IF_MODIFIED_SINCE, "Sunday, 06-Nov-94 08:49:37 GMT",
              PRECONDITION_NOT_MODIFIED);
    check_one(METHOD_GET, FIELD_IF_MODIFIED_SINCE, "yesterday", PRECONDITION_PASS);
    check_one(METHOD_POST, FIELD_IF_MODIFIED_SINCE, AFTER, PRECONDITION_PASS);
}

static void
if_modified_since_takes_date_for_a_missing_last_modified(void **state)
{
    struct selected s = {.last_modified_s = -1, .date_s = CHANGED_S - 1};

    ask(METHOD_GET);
    with(FIELD_IF_MODIFIED_SINCE, CHANGED);
    assert_gives(&s, PRECONDITION_NOT_MODIFIED);
    s.date_s = CHANGED_S; /* within that second it may have changed */
    assert_gives(&s, PRECONDITION_PASS);
    s.date_s = CHANGED_S + 1;
    assert_gives(&s, PRECONDITION_PASS);
    s.date_s = -1;
    assert_gives(&s, PRECONDITION_PASS);
}

static void
two_dates_are_none(void **state)
{
    ask(METHOD_GET);
    with(FIELD_IF_MODIFIED_SINCE, AFTER);
    with(FIELD_IF_MODIFIED_SINCE, AFTER);
    assert_gives(&tagged, PRECONDITION_PASS);
}

/* RFC 9110 sections 13.1.1 and 13.1.4 */
static void
if_match_compares_strongly(void **state)
{
    static const struct selected weak = {{"W/\"a\"", 5}, -1, -1};

    check_one(METHOD_PUT, FIELD_IF_MATCH, "\"b\", \"a\"", PRECONDITION_PASS);
    check_one(METHOD_PUT, FIELD_IF_MATCH, "*", PRECONDITION_PASS);
    check_one(METHOD_GET, FIELD_IF_MATCH, "W/\"a\"", PRECONDITION_FAILED);
    check_one(METHOD_PUT, FIELD_IF_MATCH, "\"b\"", PRECONDITION_FAILED);
    ask(METHOD_GET);
    with(FIELD_IF_MATCH, "W/\"a\"");
    assert_gives(&weak, PRECONDITION_FAILED);
}

static void
if_match_goes_before_if_unmodified_since(void **state)
{
    check_one(METHOD_PUT, FIELD_IF_UNMODIFIED_SINCE, BEFORE, PRECONDITION_FAILED);
    check_one(METHOD_PUT, FIELD_IF_UNMODIFIED_SINCE, CHANGED, PRECONDITION_PASS);
    check_one(METHOD_PUT, FIELD_IF_UNMODIFIED_SINCE, "soon", PRECONDITION_PASS);
    ask(METHOD_PUT);
    with(FIELD_IF_UNMODIFIED_SINCE, BEFORE);
    with(FIELD_IF_MATCH, "\"a\"");
    assert_gives(&tagged, PRECONDITION_PASS);
}

static void
both_pairs_are_looked_at(void **state)
{
    ask(METHOD_GET);
    with(FIELD_IF_NONE_MATCH, "\"a\"");
    with(FIELD_IF_MATCH, "\"a\"");
    assert_gives(&tagged, PRECONDITION_NOT_MODIFIED);
    ask(METHOD_GET);
    with(FIELD_IF_NONE_MATCH, "\"a\"");
    with(FIELD_IF_MATCH, "\"b\"");
    assert_gives(&tagged, PRECONDITION_FAILED);
}

static bool
if_range(const char *value, const struct selected *s)
{
    ask(METHOD_GET);
    with(FIELD_IF_RANGE, value);
    return conditional_if_range_holds(&request.fields, s, NOW);
}

/* RFC 9110 section 13.1.5 */
static void
if_range_wants_a_strong_validator(void **state)
{
    static const struct selected weak = {{"W/\"a\"", 5}, -1, -1};
    static const struct selected just_changed = {{"", 0}, CHANGED_S, CHANGED_S};

    assert_true(if_range("\"a\"", &tagged));
    assert_false(if_range("\"b\"", &tagged));
    assert_false(if_range("W/\"a\"", &weak));
    assert_true(if_range(CHANGED, &tagged));
    assert_false(if_range(AFTER, &tagged));
    assert_false(if_range(BEFORE, &tagged));
    assert_false(if_range(CHANGED, &just_changed));
    assert_false(if_range("a", &tagged));
    ask(METHOD_GET);
    assert_true(conditional_if_range_holds(&request.fields, &tagged, NOW));
}

static void
if_range_alone_is_no_precondition(void **state)
{
    ask(METHOD_GET);
    with(FIELD_IF_RANGE, "\"a\"");
    assert_false(conditional_is_present(&request.fields));
    with(FIELD_IF_UNMODIFIED_SINCE, "x");
    assert_true(conditional_is_present(&request.fields));
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(if_none_match_compares_weakly),
        cmocka_unit_test(if_none_match_looks_at_all_lines),
        cmocka_unit_test(if_none_match_goes_before_if_modified_since),
        cmocka_unit_test(if_modified_since_compares_with_last_modified),
        cmocka_unit_test(if_modified_since_takes_date_for_a_missing_last_modified),
        cmocka_unit_test(two_dates_are_none),
        cmocka_unit_test(if_match_compares_strongly),
        cmocka_unit_test(if_match_goes_before_if_unmodified_since),
        cmocka_unit_test(both_pairs_are_looked_at),
        cmocka_unit_test(if_range_wants_a_strong_validator),
        cmocka_unit_test(if_range_alone_is_no_precondition),
    };

    return cmocka_run_group_tests_name("conditional", tests, NULL, NULL);
}
