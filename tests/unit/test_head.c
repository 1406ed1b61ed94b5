/* tests/unit/test_head.c - what a stored head keeps, and what a 304 does to it. */
#include "tests/unit/heads.h"

static const char *
value(const struct head *h, const char *name)
{
    const struct field *f = fields_find_name(&h->fields, span_str(name));

    return f ? arena_str(&heads_arena, f->value) : NULL;
}

static unsigned
lines(const struct head *h, const char *name)
{
    unsigned n = 0;

    for (unsigned i = 0; i < h->fields.n; i++)
        n += span_eq_ci(h->fields.at[i].name, span_str(name));
    return n;
}

/* RFC 9111 section 3.1, and our own choice for Age and Content-Length. */
static void
hop_by_hop_age_and_length_are_not_kept(void **state)
{
    struct head *h =
        stored_response(.fields = DATE_T0 "Keep-Alive: timeout=5\r\n"
                                          "Transfer-Encoding: chunked\r\nAge: 3\r\n"
                                          "Content-Length: 10\r\nProxy-Authenticate: Basic\r\n"
                                          "Upgrade: h2c\r\nTE: trailers\r\nX-A: b\r\n");

    assert_span(h->block, "X-A: b\r\n" DATE_T0);
    assert_int_equal(h->fields.n, 2);
}

static void
parsed_fields_point_into_the_block(void **state)
{
    struct head *h =
        stored_response(.fields = "ETag: \"a\"\r\nContent-Type: text/plain\r\n"
                                  "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Empty:\r\n");

    for (unsigned i = 0; i < h->fields.n; i++) {
        const struct field *f = &h->fields.at[i];

        assert_true(f->name.at >= h->block.at);
        assert_true(f->value.at + f->value.n + 2 <= h->block.at + h->block.n);
    }
    assert_true(h->etag.at > h->block.at && h->etag.at < h->block.at + h->block.n);
    assert_span(h->content_type, "text/plain");
    assert_int_equal(lines(h, "set-cookie"), 2);
    assert_string_equal(value(h, "x-empty"), "");
    assert_true(h->bytes >= sizeof *h + h->block.n + h->fields.n * sizeof(struct field));
}

static void
the_head_outlives_the_message(void **state)
{
    char text[] = "Cache-Control: private=\"x\", max-age=5\r\n";
    struct response_head r = {.status = 299, .reason = SPAN("Odd"), .fields = fields_of(text)};
    struct request_head q = request();
    struct head_times t = {T0, T0, M0};
    struct head *h = heads_keep(head_new(&q, &r, &t));

    memset(text, '#', sizeof text);
    assert_string_equal(value(h, "Cache-Control"), "private=\"x\", max-age=5");
    assert_int_equal(h->cc.max_age_s, 5);
    assert_span(h->reason, "Odd");
    assert_int_equal(h->status, 299);
}

/* RFC 9110 section 6.6.1: a recipient adds the Date that is missing, and may replace a bad one. */
static void
a_missing_or_unreadable_date_becomes_the_time_of_arrival(void **state)
{
    struct head *missing = stored_response(.fields = "X: y\r\n");
    struct head *bad = stored_response(.fields = "Date: Tue, 01 Jan\r\n");
    struct head *good = stored_response(.fields = "Date: Mon, 31 Dec 2029 23:59:00 GMT\r\n");

    assert_string_equal(value(missing, "date"), "Tue, 01 Jan 2030 00:00:00 GMT");
    assert_span(bad->block, DATE_T0);
    assert_false(missing->date_given || bad->date_given);
    assert_int_equal(bad->date_s, T0);
    assert_true(good->date_given);
    assert_int_equal(good->date_s, T0 - 60);
    assert_int_equal(good->initial_age_s, 60);
}

static int64_t
age_of(const char *fields)
{
    return stored_response(.fields = fields)->initial_age_s;
}

/* RFC 9111 section 5.1: of a list or several lines the first counts, invalid ones are ignored. */
static void
age_is_the_first_plain_integer(void **state)
{
    assert_int_equal(age_of("Age: 30\r\n"), 30);
    assert_int_equal(age_of("Age: 7200, 0\r\n"), 7200);
    assert_int_equal(age_of("Age: 0, 7200\r\n"), 0);
    assert_int_equal(age_of("Age: 0\r\nAge: 7200\r\n"), 0);
    assert_int_equal(age_of("Age: 7200\r\nAge: 0\r\n"), 7200);
    assert_int_equal(age_of("Age: 7200;foo=111\r\n"), 7200);
    assert_int_equal(age_of("Age: 7200.0\r\n"), 0);
    assert_int_equal(age_of("Age: abc\r\n"), 0);
    assert_int_equal(age_of("Age: -7200\r\n"), 0);
    assert_int_equal(age_of("Age:\r\n"), 0);
    assert_int_equal(age_of("Age: ,,\r\n"), 0);
}

/* RFC 9111 section 1.2.2: what cannot be represented is 2^31. */
static void
a_huge_age_is_clamped(void **state)
{
    assert_int_equal(age_of("Age: 2147483647\r\n"), INT64_C(2147483647));
    assert_int_equal(age_of("Age: 2147483649\r\n"), INT64_C(2147483648));
    assert_int_equal(age_of("Age: 99999999999999999999999999999999\r\n"), INT64_C(2147483648));
}

/* RFC 9111 section 4.2.3 */
static void
corrected_initial_age_counts_the_delay_and_takes_the_larger(void **state)
{
    struct head *delayed = stored_response(.fields = "Age: 5\r\n" DATE_T0, .delay_s = 7);
    struct head *dated =
        stored_response(.fields = "Age: 5\r\nDate: Mon, 31 Dec 2029 23:59:00 GMT\r\n",
                        .delay_s = 7);
    struct head *ahead = stored_response(.fields = "Date: Wed, 02 Jan 2030 00:00:00 GMT\r\n");
    struct head *set_back = stored_response(.fields = DATE_T0, .delay_s = -86400);

    assert_int_equal(delayed->initial_age_s, 12);
    assert_int_equal(dated->initial_age_s, 60);
    assert_int_equal(ahead->initial_age_s, 0);
    assert_int_equal(ahead->date_s, T0 + 86400);
    assert_int_equal(set_back->initial_age_s, 0);
}

/* RFC 9111 section 5.3: an unreadable Expires lies in the past; other dates are absent. */
static void
unreadable_dates(void **state)
{
    struct head *h = stored_response(.fields = "Expires: 0\r\nLast-Modified: yesterday\r\n");
    struct head *twice = stored_response(.fields = "Expires: x\r\n"
                                                   "Expires: Fri, 01 Jan 2038 01:01:01 GMT\r\n");

    assert_int_equal(h->expires_s, 0);
    assert_int_equal(h->last_modified_s, -1);
    assert_int_equal(twice->expires_s, 0);
    assert_int_equal(stored_response()->expires_s, -1);
}

static void
only_a_proper_entity_tag_is_a_validator(void **state)
{
    assert_span(stored_response(.fields = "ETag: W/\"a\"\r\n")->etag, "W/\"a\"");
    assert_int_equal(stored_response(.fields = "ETag: a\r\n")->etag.n, 0);
    assert_string_equal(value(stored_response(.fields = "ETag: a\r\n"), "etag"), "a");
}

static void
pragma_counts_without_cache_control_only(void **state)
{
    assert_true(stored_response(.fields = "Pragma: no-cache\r\n")->pragma_no_cache);
    assert_false(stored_response(.fields = "Pragma: x\r\n")->pragma_no_cache);
    assert_false(stored_response(.fields = "Pragma: no-cache\r\nCache-Control: public\r\n")
                     ->pragma_no_cache);
}

static void
authorization_of_the_request_is_remembered(void **state)
{
    assert_true(stored_response(.request_fields = "Authorization: x\r\n")->had_authorization);
    assert_false(stored_response(.request_fields = "Cookie: x\r\n")->had_authorization);
}

/* RFC 9111 section 3.2 */
static void
a_304_replaces_the_fields_it_has_and_leaves_the_others(void **state)
{
    struct head *old = stored_response(.fields = "X-A: 1\r\nX-A: 2\r\nX-B: keep\r\nETag: \"e\"\r\n"
                                                 "Cache-Control: max-age=1\r\n");
    struct head *h =
        freshened(old, .fields = "x-a: 3\r\nCache-Control: max-age=60\r\nX-C: new\r\n");

    assert_int_equal(lines(h, "X-A"), 1);
    assert_string_equal(value(h, "X-A"), "3");
    assert_string_equal(value(h, "X-B"), "keep");
    assert_string_equal(value(h, "X-C"), "new");
    assert_span(h->etag, "\"e\"");
    assert_int_equal(h->cc.max_age_s, 60);
    assert_int_equal(h->status, 200);
    assert_span(h->reason, "OK");
}

/* RFC 9110 section 14.4. */
static void
a_content_range_is_kept_where_it_means_something(void **state)
{
    assert_span(stored_response(.status = 200, .fields = DATE_T0 "Content-Range: a\r\n")->block,
                DATE_T0);
    assert_span(stored_response(.status = 206, .fields = "Content-Range: a\r\n" DATE_T0)->block,
                "Content-Range: a\r\n" DATE_T0);
}

/* RFC 9111 section 3.2: these describe the stored bytes. Set-Cookie is for whoever asked now. */
static void
a_304_never_changes_what_describes_the_body(void **state)
{
    struct head *old =
        stored_response(.status = 206, .fields = "Content-Encoding: gzip\r\nContent-Range: a\r\n"
                                                 "Set-Cookie: a=1\r\n");
    struct head *h = freshened(old, .fields = "Content-Encoding: br\r\nContent-Range: b\r\n"
                                              "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"
                                              "Set-Cookie: a=2\r\nKeep-Alive: 1\r\nAge: 3\r\n");

    assert_span(h->block,
                "Content-Encoding: gzip\r\nContent-Range: a\r\nSet-Cookie: a=1\r\n" DATE_T0);
    assert_int_equal(h->initial_age_s, 3);
}

/* A 304 that has no Date must not leave the response as old as its stored Date. */
static void
a_304_without_date_is_dated_by_its_arrival(void **state)
{
    struct head *old = stored_response(.fields = DATE_T0 "Cache-Control: max-age=10\r\n");
    struct head *h = freshened(old, .later_s = 3600);

    assert_int_equal(h->date_s, T0 + 3600);
    assert_int_equal(h->initial_age_s, 0);
    assert_int_equal(h->response_ms, AT(3600));
    assert_int_equal(lines(h, "date"), 1);
    assert_string_equal(value(h, "date"), "Tue, 01 Jan 2030 01:00:00 GMT");
}

static void
repeated_304s_do_not_pile_up_lines(void **state)
{
    struct head *h = stored_response(.fields = "Vary: A\r\n");

    for (int i = 0; i < 50; i++)
        h = freshened(h, .fields = "Vary: A\r\nVary: B\r\nX: 1\r\nX: 2\r\nDate: x\r\n");
    assert_int_equal(h->fields.n, 5);
}

/* An origin that invents new fields in each 304 cannot blow up a head. */
static void
ever_new_fields_do_not_grow_a_head_without_bound(void **state)
{
    struct head *h = stored_response(.fields = "ETag: \"e\"\r\n");

    for (int i = 0; i < 100; i++) {
        struct span line = arena_printf(
            &heads_arena, "X-%d: %08000d\r\nCache-Control: max-age=%d\r\n", i, 0, i + 1);

        h = freshened(h, .fields = arena_str(&heads_arena, line));
        assert_int_equal(h->cc.max_age_s, i + 1);
    }
    assert_true(h->block.n < 140 * 1024);
}

static void
a_freshened_head_keeps_the_authorization_of_the_stored_one(void **state)
{
    struct head *open = stored_response(.fields = "ETag: \"e\"\r\n");
    struct head *closed = stored_response(.request_fields = "Authorization: x\r\n");

    assert_false(freshened(open, .request_fields = "Authorization: x\r\n")->had_authorization);
    assert_true(freshened(closed)->had_authorization);
}

static void
references_are_counted(void **state)
{
    struct request_head q = request();
    struct response_head r = response();
    struct head_times t = {T0, T0, M0};
    struct head *h = head_new(&q, &r, &t), *second = h;

    head_ref(h);
    head_unref(&h);
    assert_null(h);
    assert_int_equal(second->status, 200);
    head_unref(&second);
    assert_null(second);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hop_by_hop_age_and_length_are_not_kept),
        cmocka_unit_test(parsed_fields_point_into_the_block),
        cmocka_unit_test(the_head_outlives_the_message),
        cmocka_unit_test(a_missing_or_unreadable_date_becomes_the_time_of_arrival),
        cmocka_unit_test(age_is_the_first_plain_integer),
        cmocka_unit_test(a_huge_age_is_clamped),
        cmocka_unit_test(corrected_initial_age_counts_the_delay_and_takes_the_larger),
        cmocka_unit_test(unreadable_dates),
        cmocka_unit_test(only_a_proper_entity_tag_is_a_validator),
        cmocka_unit_test(pragma_counts_without_cache_control_only),
        cmocka_unit_test(authorization_of_the_request_is_remembered),
        cmocka_unit_test(a_304_replaces_the_fields_it_has_and_leaves_the_others),
        cmocka_unit_test(a_content_range_is_kept_where_it_means_something),
        cmocka_unit_test(a_304_never_changes_what_describes_the_body),
        cmocka_unit_test(a_304_without_date_is_dated_by_its_arrival),
        cmocka_unit_test(repeated_304s_do_not_pile_up_lines),
        cmocka_unit_test(ever_new_fields_do_not_grow_a_head_without_bound),
        cmocka_unit_test(a_freshened_head_keeps_the_authorization_of_the_stored_one),
        cmocka_unit_test(references_are_counted),
    };

    return cmocka_run_group_tests(tests, heads_init, heads_free);
}
