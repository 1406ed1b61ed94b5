/* tests/unit/test_validate.c - RFC 9111 section 4.3: conditions upstream and their answers. */
#include "cache/validate.h"
#include "tests/unit/heads.h"

#define LM "Mon, 31 Dec 2029 00:00:00 GMT"
#define LM_LINE "Last-Modified: " LM "\r\n"
#define NEWER_LINE "Last-Modified: Mon, 31 Dec 2029 00:00:01 GMT\r\n"

static struct fields
conditions_for(const char *request_fields, struct head *const *stored, unsigned n)
{
    struct fields f = fields_of(request_fields);

    validate_add_conditions(&f, &heads_arena, stored, n);
    return f;
}

static const char *
value(const struct fields *f, enum field_id id)
{
    const struct field *field = fields_find(f, id);

    return field ? arena_str(&heads_arena, field->value) : NULL;
}

/* RFC 9111 section 4.3.1 */
static void
tag_and_date_of_the_stored_response_are_sent(void **state)
{
    struct head *h = stored_response(.fields = "ETag: W/\"a\"\r\n" LM_LINE);
    struct fields f = conditions_for("Accept: */*\r\n", &h, 1);

    assert_string_equal(value(&f, FIELD_IF_NONE_MATCH), "W/\"a\"");
    assert_string_equal(value(&f, FIELD_IF_MODIFIED_SINCE), LM);
    assert_string_equal(value(&f, FIELD_ACCEPT), "*/*");
    assert_int_equal(f.n, 3);
}

static void
a_malformed_tag_is_not_sent(void **state)
{
    struct head *h = stored_response(.fields = "ETag: a\r\n");
    struct fields f = conditions_for(NULL, &h, 1);

    assert_false(head_has_validator(h));
    assert_int_equal(f.n, 0);
}

/* The client's conditions are about its own copy. */
static void
conditions_of_the_client_are_replaced(void **state)
{
    struct head *h = stored_response(.fields = "ETag: \"s\"\r\n");
    struct fields f = conditions_for("If-None-Match: \"c\"\r\nIf-None-Match: \"d\"\r\n"
                                     "If-Modified-Since: " LM "\r\nIf-Match: *\r\n"
                                     "If-Unmodified-Since: " LM "\r\nIf-Range: \"c\"\r\n"
                                     "Range: bytes=0-1\r\nHost: o\r\n",
                                     &h, 1);

    assert_int_equal(f.n, 2);
    assert_string_equal(value(&f, FIELD_IF_NONE_MATCH), "\"s\"");
    f = conditions_for("If-None-Match: \"c\"\r\n", NULL, 0);
    assert_string_equal(value(&f, FIELD_IF_NONE_MATCH), "\"c\"");
}

static void
several_variants_are_asked_about_by_their_tags(void **state)
{
    struct head *stored[] = {
        stored_response(.fields = "ETag: \"a\"\r\n" LM_LINE), stored_response(.fields = LM_LINE),
        stored_response(.fields = "ETag: \"b\"\r\n"), stored_response(.fields = "ETag: \"a\"\r\n")};
    struct fields f = conditions_for(NULL, stored, 4);

    assert_string_equal(value(&f, FIELD_IF_NONE_MATCH), "\"a\", \"b\"");
    assert_null(value(&f, FIELD_IF_MODIFIED_SINCE));
}

static int
selected(const char *not_modified, struct head *const *stored, unsigned n)
{
    struct response_head r = response(.status = 304, .fields = not_modified);

    return validate_select(&r, stored, n);
}

static int
selects_one(const char *not_modified, const char *stored_fields)
{
    struct head *h = stored_response(.fields = stored_fields);

    return selected(not_modified, &h, 1);
}

/* RFC 9111 section 4.3.4 */
static void
a_strong_tag_selects_the_same_strong_tag_only(void **state)
{
    struct head *stored[] = {stored_response(.fields = "ETag: \"a\"\r\n" LM_LINE),
                             stored_response(.fields = "ETag: W/\"b\"\r\n" LM_LINE),
                             stored_response(.fields = "ETag: \"b\"\r\n" LM_LINE)};

    assert_int_equal(selected("ETag: \"b\"\r\n", stored, 3), 2);
    assert_int_equal(selected("ETag: \"c\"\r\n" LM_LINE, stored, 3), -1);
    assert_int_equal(selected("ETag: W/\"b\"\r\n", stored, 3), 1);
    assert_int_equal(selects_one("ETag: \"x\"\r\n", "ETag: \"a\"\r\n"), -1);
    assert_int_equal(selects_one("ETag: \"a\"\r\n", "ETag: W/\"a\"\r\n"), -1);
}

static void
the_date_selects_where_tags_cannot(void **state)
{
    struct head *stored[] = {stored_response(.fields = NEWER_LINE),
                             stored_response(.fields = LM_LINE)};

    assert_int_equal(selected(LM_LINE, stored, 2), 1);
    assert_int_equal(selects_one(LM_LINE "ETag: \"new\"\r\n", LM_LINE), 0);
    assert_int_equal(selects_one(NEWER_LINE, LM_LINE), -1);
}

/* Many origins leave the validators out. */
static void
a_304_without_validators_selects_the_only_one_asked_about(void **state)
{
    struct head *stored[] = {stored_response(.fields = LM_LINE),
                             stored_response(.fields = LM_LINE)};

    assert_int_equal(selected("X: y\r\n", stored, 1), 0);
    assert_int_equal(selected("X: y\r\n", stored, 2), -1);
    assert_int_equal(selected("X: y\r\n", stored, 0), -1);
    assert_int_equal(selects_one("Last-Modified: x\r\n", LM_LINE), 0);
}

static bool
head_fits(unsigned status, const char *answer, uint64_t stored_length)
{
    struct response_head r = response(.status = status, .fields = answer);

    return validate_head_fits(&r, stored_response(.fields = "ETag: \"a\"\r\n" LM_LINE),
                              stored_length);
}

/* RFC 9111 section 4.3.5 */
static void
a_head_answer_fits_when_length_and_validators_agree(void **state)
{
    assert_true(head_fits(200, "Content-Length: 10\r\nETag: \"a\"\r\n" LM_LINE, 10));
    assert_true(head_fits(200, NULL, 10));
    assert_true(head_fits(200, "Content-Length: 10\r\n", UINT64_MAX));
    assert_false(head_fits(200, "Content-Length: 11\r\nETag: \"a\"\r\n", 10));
    assert_false(head_fits(200, "ETag: \"b\"\r\n", 10));
    assert_false(head_fits(200, NEWER_LINE, 10));
    assert_false(head_fits(410, NULL, 10));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tag_and_date_of_the_stored_response_are_sent),
        cmocka_unit_test(a_malformed_tag_is_not_sent),
        cmocka_unit_test(conditions_of_the_client_are_replaced),
        cmocka_unit_test(several_variants_are_asked_about_by_their_tags),
        cmocka_unit_test(a_strong_tag_selects_the_same_strong_tag_only),
        cmocka_unit_test(the_date_selects_where_tags_cannot),
        cmocka_unit_test(a_304_without_validators_selects_the_only_one_asked_about),
        cmocka_unit_test(a_head_answer_fits_when_length_and_validators_agree),
    };

    return cmocka_run_group_tests(tests, heads_init, heads_free);
}
