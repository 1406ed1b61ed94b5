/* tests/unit/test_invalidate.c - RFC 9111 section 4.4; and keys, by which it is done. */
#include "cache/invalidate.h"
#include "cache/key.h"
#include "tests/unit/heads.h"

static struct span out[3];

static unsigned
targets(const char *method, unsigned status, const char *fields)
{
    struct request_head q = request(.method = method, .uri = "http://o.example/d/a?x=1");
    struct response_head r = response(.status = status, .fields = fields);

    return invalidate_targets(&q, &r, &heads_arena, out);
}

static void
an_unsafe_method_invalidates_its_target(void **state)
{
    static const char *const unsafe[] = {"POST", "PUT", "DELETE", "PATCH", "FROB", "M-SEARCH"};

    for (unsigned i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++) {
        assert_int_equal(targets(unsafe[i], 200, NULL), 1);
        assert_span(out[0], "http://o.example/d/a?x=1");
    }
}

static void
a_safe_method_invalidates_nothing(void **state)
{
    static const char *const safe[] = {"GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "QUERY"};

    for (unsigned i = 0; i < sizeof safe / sizeof safe[0]; i++)
        assert_int_equal(targets(safe[i], 200, "Location: /b\r\n"), 0);
}

static void
an_error_invalidates_nothing(void **state)
{
    assert_int_equal(targets("POST", 500, "Location: /b\r\n"), 0);
    assert_int_equal(targets("POST", 404, NULL), 0);
    assert_int_equal(targets("POST", 103, NULL), 0);
    assert_int_equal(targets("POST", 204, NULL), 1);
    assert_int_equal(targets("POST", 303, NULL), 1);
}

static void
location_and_content_location_of_the_same_origin_follow(void **state)
{
    assert_int_equal(targets("POST", 201, "Location: /b\r\nContent-Location: c\r\n"), 3);
    assert_span(out[1], "http://o.example/b");
    assert_span(out[2], "http://o.example/d/c");
    assert_int_equal(targets("POST", 201, "Location: http://o.example:80/b\r\n"), 2);
    assert_span(out[1], "http://o.example/b");
}

/* Otherwise one site could flush another's objects. */
static void
other_origins_are_left_alone(void **state)
{
    assert_int_equal(targets("POST", 201, "Location: http://p.example/b\r\n"), 1);
    assert_int_equal(targets("POST", 201, "Content-Location: http://o.example:81/b\r\n"), 1);
}

static void
the_same_uri_is_listed_once(void **state)
{
    assert_int_equal(targets("POST", 201, "Location: /d/a?x=1\r\nContent-Location: /d/a?x=1\r\n"),
                     1);
    assert_int_equal(targets("POST", 201, "Location: /b\r\nContent-Location: /b\r\n"), 2);
}

static void
equal_uris_have_equal_digests_and_different_ones_differ(void **state)
{
    struct cache_key a = cache_key_of(SPAN("http://o.example/a"));
    struct cache_key b = cache_key_of(arena_copy(&heads_arena, a.uri));
    struct cache_key c = cache_key_of(SPAN("http://o.example/b"));

    assert_memory_equal(a.digest, b.digest, sizeof a.digest);
    assert_true(a.digest[0] != c.digest[0] || a.digest[1] != c.digest[1]);
    assert_span(a.uri, "http://o.example/a");
    cache_key_of(SPAN_NONE);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unsafe_method_invalidates_its_target),
        cmocka_unit_test(a_safe_method_invalidates_nothing),
        cmocka_unit_test(an_error_invalidates_nothing),
        cmocka_unit_test(location_and_content_location_of_the_same_origin_follow),
        cmocka_unit_test(other_origins_are_left_alone),
        cmocka_unit_test(the_same_uri_is_listed_once),
        cmocka_unit_test(equal_uris_have_equal_digests_and_different_ones_differ),
    };

    return cmocka_run_group_tests(tests, heads_init, heads_free);
}
