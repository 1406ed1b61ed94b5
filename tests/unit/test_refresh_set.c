/* test_refresh_set - which refresh_pattern line matches a URL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "proxy/access/acl.h"

static struct conf_refresh stock[] = {
    {.regex = "^ftp:", .place = {"t.conf", 1}},
    {.regex = "/cgi-bin/|\\?", .ignore_case = true, .place = {"t.conf", 2}},
    {.regex = "\\.JPG$", .ignore_case = true, .place = {"t.conf", 3}},
    {.regex = "\\.deb$", .place = {"t.conf", 4}},
    {.regex = ".", .place = {"t.conf", 5}},
};

static void
assert_line(const struct refresh_set *s, const char *url, int line)
{
    assert_int_equal(refresh_set_match(s, span_str(url)), line);
}

static void
the_first_line_that_matches_decides(void **state)
{
    struct conf c = {.refresh = stock, .n_refresh = 5};
    struct buf errors = {0};
    struct refresh_set *s;

    assert_int_equal(refresh_set_new(&c, &errors, &s), 0);
    assert_line(s, "ftp://h/x.deb", 0);
    assert_line(s, "http://h/CGI-BIN/a.deb", 1);
    assert_line(s, "http://h/a?b.jpg", 1);
    assert_line(s, "http://h/a.jpg", 2);
    assert_line(s, "http://h/a.deb", 3);
    assert_line(s, "http://h/a.DEB", 4);
    assert_line(s, "http://h/%2ejpg", 4); /* escapes stay as they are */
    refresh_set_free(&s);
    assert_null(s);
}

static void
without_a_match_there_is_none(void **state)
{
    struct conf c = {.refresh = stock, .n_refresh = 4};
    struct buf errors = {0};
    struct refresh_set *s;

    assert_int_equal(refresh_set_new(&c, &errors, &s), 0);
    assert_line(s, "http://h/", -1);
    refresh_set_free(&s);
    c.n_refresh = 0;
    assert_int_equal(refresh_set_new(&c, &errors, &s), 0);
    assert_line(s, "http://h/", -1);
    refresh_set_free(&s);
}

static void
each_bad_pattern_is_told_with_its_line(void **state)
{
    struct conf_refresh bad[] = {{.regex = "(a", .place = {"t.conf", 7}},
                                 {.regex = "[b", .place = {"t.conf", 9}}};
    struct conf c = {.refresh = bad, .n_refresh = 2};
    struct buf errors = {0};
    struct refresh_set *s;

    assert_int_equal(refresh_set_new(&c, &errors, &s), 2);
    buf_add_char(&errors, '\0');
    assert_string_equal(errors.at, "t.conf:7: refresh_pattern: (a: not a regular expression: "
                                   "missing closing parenthesis (at 2)\n"
                                   "t.conf:9: refresh_pattern: [b: not a regular expression: "
                                   "missing terminating ] for character class (at 2)\n");
    buf_free(&errors);
    refresh_set_free(&s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_line_that_matches_decides),
        cmocka_unit_test(without_a_match_there_is_none),
        cmocka_unit_test(each_bad_pattern_is_told_with_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
