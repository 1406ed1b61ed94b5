/* tests/unit/test_entry.c - an entry owns a head, shares a body (cache/entry.h). */
#include "tests/unit/heads.h"

#include "cache/entry.h"

static struct entry *
entry_with(const char *vary)
{
    struct head *h = stored_response(.fields = DATE_T0 "ETag: \"1\"\r\n");
    struct body *b = body_new(BODY_KEEP, 5, NULL, NULL);
    struct entry *e;

    head_ref(h);
    body_append(b, SPAN("hello"));
    e = entry_new(&h, &b, span_str(vary), 5);
    assert_null(h);
    assert_null(b);
    return e;
}

static void
an_entry_takes_both_references_and_copies_the_spec(void **state)
{
    char spec[] = "accept: x\n";
    struct entry *e = entry_with(spec);

    spec[0] = '?';
    assert_span(e->vary, "accept: x\n");
    assert_span(e->head->etag, "\"1\"");
    assert_int_equal(e->length, 5);
    assert_null(e->node);
    entry_unref(&e);
    assert_null(e);
}

/* RFC 9111 section 4.3.4: a 304 gives a new head to the stored body. */
static void
a_freshened_entry_shares_the_body_and_outlives_the_old_one(void **state)
{
    struct entry *old = entry_with("accept: x\n"), *fresh;
    struct head *h = freshened(old->head, .fields = "Cache-Control: max-age=9\r\n");
    struct body_reader r = {0};
    struct iovec run;
    int n;

    head_ref(h);
    fresh = entry_freshened(old, &h);
    assert_null(h);
    assert_ptr_equal(fresh->body, old->body);
    assert_ptr_not_equal(fresh->head, old->head);
    entry_unref(&old);
    assert_span(fresh->vary, "accept: x\n");
    assert_true(body_reader_open(&r, fresh->body, 0, NULL, NULL));
    entry_unref(&fresh);
    assert_int_equal(body_reader_peek(&r, &run, 1, &n), SOURCE_DATA); /* a reader needs no entry */
    assert_memory_equal(run.iov_base, "hello", 5);
    body_reader_close(&r);
}

static void
an_entry_without_vary_has_no_spec(void **state)
{
    struct entry *e = entry_with(NULL), *again = e;

    assert_int_equal(e->vary.n, 0);
    entry_ref(e);
    entry_unref(&again);
    assert_int_equal(e->length, 5);
    entry_unref(&e);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_takes_both_references_and_copies_the_spec),
        cmocka_unit_test(a_freshened_entry_shares_the_body_and_outlives_the_old_one),
        cmocka_unit_test(an_entry_without_vary_has_no_spec),
    };

    return cmocka_run_group_tests(tests, heads_init, heads_free);
}
