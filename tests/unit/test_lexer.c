/* test_lexer - squid.conf text to logical lines and words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conf/lexer.h"

#define assert_text(s, literal)                                                                    \
    do {                                                                                           \
        struct span text_ = (s);                                                                   \
        assert_int_equal(text_.n, strlen(literal));                                                \
        assert_memory_equal(text_.at ? text_.at : "", literal, text_.n);                           \
    } while (0)

static bool
is_acl(struct span word)
{
    return span_eq(word, SPAN("acl"));
}

static void
assert_line(struct lexer *l, unsigned number, const char *text)
{
    struct lexer_line line;

    assert_true(lexer_next(l, &line));
    assert_int_equal(line.number, number);
    assert_text(line.text, text);
}

static void
assert_end(struct lexer *l)
{
    struct lexer_line line;

    assert_false(lexer_next(l, &line));
}

static void
blank_lines_and_comments_are_left_out_and_counted(void **state)
{
    struct lexer l;

    lexer_init(&l, SPAN("# first\n\n  \t\nvia off\n   # indented\n  via on"));
    assert_line(&l, 4, "via off");
    assert_line(&l, 6, "via on");
    assert_end(&l);
}

static void
crlf_and_a_byte_order_mark_are_no_part_of_a_line(void **state)
{
    struct lexer l;

    lexer_init(&l, SPAN("\xef\xbb\xbfvia off\r\n\r\nvia on\r\n"));
    assert_line(&l, 1, "via off");
    assert_line(&l, 3, "via on");
    assert_end(&l);
}

static void
a_backslash_joins_lines_without_a_blank(void **state)
{
    struct lexer l;

    lexer_init(&l, SPAN("acl a src 10.0.0.1 \\\r\n\t10.0.0.2\\\n3\nvia on\n"));
    assert_line(&l, 1, "acl a src 10.0.0.1 \t10.0.0.23");
    assert_line(&l, 4, "via on");
    assert_end(&l);
}

static void
a_backslash_at_the_end_of_the_file_joins_nothing(void **state)
{
    struct lexer l;

    lexer_init(&l, SPAN("via on\\"));
    assert_line(&l, 1, "via on");
    assert_end(&l);
    lexer_init(&l, SPAN("via on\\\n"));
    assert_line(&l, 1, "via on");
    assert_end(&l);
}

/* Whoever comments a line out means that line. */
static void
a_backslash_in_a_comment_swallows_nothing(void **state)
{
    struct lexer l;

    lexer_init(&l, SPAN("# acl a src 1 \\\nvia off\nvia on # or off \\\nhttp_port 1\n"));
    assert_line(&l, 2, "via off");
    assert_line(&l, 3, "via on # or off \\");
    assert_line(&l, 4, "http_port 1");
    assert_end(&l);
}

static void
a_directive_swallowed_by_a_backslash_is_told(void **state)
{
    struct lexer l;
    struct lexer_line line;

    lexer_init(&l, SPAN("acl a url_regex depot\\\nacl b src 1\nacl c src \\\n acl\n"));
    l.is_directive = is_acl;
    assert_true(lexer_next(&l, &line));
    assert_int_equal(line.swallowed, 2);
    assert_true(lexer_next(&l, &line));
    assert_int_equal(line.swallowed, 0); /* indented: it was meant */
    assert_end(&l);
}

static void
words_end_at_blanks_and_at_a_comment(void **state)
{
    struct span rest = SPAN("  http_port\t3128 a#b # c d");
    struct word w;

    assert_true(lexer_word(&rest, &w));
    assert_text(w.text, "http_port");
    assert_false(w.quoted);
    assert_true(lexer_word(&rest, &w));
    assert_text(w.text, "3128");
    assert_true(lexer_word(&rest, &w));
    assert_text(w.text, "a#b");
    assert_false(lexer_word(&rest, &w));
    assert_int_equal(rest.n, 0);
}

static void
quotes_of_both_kinds_hold_blanks_together(void **state)
{
    struct span rest = SPAN("\"a b\" 'c \"d' \"\" it's \"open # ");
    struct word w;

    assert_true(lexer_word(&rest, &w) && w.quoted);
    assert_text(w.text, "a b");
    assert_true(lexer_word(&rest, &w) && w.quoted);
    assert_text(w.text, "c \"d");
    assert_true(lexer_word(&rest, &w) && w.quoted && !w.open);
    assert_text(w.text, "");
    assert_true(lexer_word(&rest, &w) && !w.quoted);
    assert_text(w.text, "it's");
    assert_true(lexer_word(&rest, &w) && w.quoted && w.open);
    assert_text(w.text, "open # ");
    assert_false(lexer_word(&rest, &w));
}

static void
all_words_of_a_text_are_counted(void **state)
{
    struct buf words = {0};

    assert_int_equal(lexer_words(SPAN("acl a src \"file\" # x"), &words), 4);
    assert_int_equal(lexer_words(SPAN(""), &words), 0);
    buf_free(&words);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blank_lines_and_comments_are_left_out_and_counted),
        cmocka_unit_test(crlf_and_a_byte_order_mark_are_no_part_of_a_line),
        cmocka_unit_test(a_backslash_joins_lines_without_a_blank),
        cmocka_unit_test(a_backslash_at_the_end_of_the_file_joins_nothing),
        cmocka_unit_test(a_backslash_in_a_comment_swallows_nothing),
        cmocka_unit_test(a_directive_swallowed_by_a_backslash_is_told),
        cmocka_unit_test(words_end_at_blanks_and_at_a_comment),
        cmocka_unit_test(quotes_of_both_kinds_hold_blanks_together),
        cmocka_unit_test(all_words_of_a_text_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
