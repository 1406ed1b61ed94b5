/* tests/unit/test_hosts.c - the hosts file, and the names that may stand in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "dns/hosts.h"

/* The addresses of a name, IPv6 first; "" when it is not there. */
static const char *
look_up(const struct hosts *t, const char *host)
{
    static char text[DNS_ADDRESSES * 2 * (ADDR_TEXT_MAX + 1)];
    struct half_answer h[HALVES];
    struct dns_name name;
    char *to = text;

    assert_true(name_read(span_str(host), &name));
    *to = '\0';
    if (!hosts_find(t, &name, h))
        return text;
    for (unsigned i = 0; i < h[HALF_V6].n + h[HALF_V4].n; i++) {
        bool v6 = i < h[HALF_V6].n;

        if (i > 0)
            *to++ = ' ';
        to += addr_format(v6 ? &h[HALF_V6].at[i] : &h[HALF_V4].at[i - h[HALF_V6].n], to);
    }
    *to = '\0';
    return text;
}

static void
names_and_aliases_are_found_without_case(void **state)
{
    struct hosts *t = hosts_new(SPAN("192.0.2.1 www.example.test WWW\n"
                                     "2001:db8::1\twww.example.test\n"
                                     "192.0.2.2 www.example.test # another\n"));

    assert_string_equal(look_up(t, "WWW.Example.Test"), "2001:db8::1 192.0.2.1 192.0.2.2");
    assert_string_equal(look_up(t, "www"), "192.0.2.1");
    assert_string_equal(look_up(t, "www."), "192.0.2.1");
    assert_string_equal(look_up(t, "www.example.test."), "2001:db8::1 192.0.2.1 192.0.2.2");
    assert_string_equal(look_up(t, "example.test"), "");
    assert_int_equal(hosts_count(t), 2);
    hosts_free(&t);
    assert_null(t);
}

static void
odd_lines_are_skipped_and_the_others_stay(void **state)
{
    struct hosts *t = hosts_new(SPAN("# 192.0.2.9 comment\r\n"
                                     "\n"
                                     "   \t \n"
                                     "192.0.2.1\n"
                                     "not-an-address name1\n"
                                     "300.0.2.1 name2\n"
                                     "192.0.2.2 bad/name good bad..name\r\n"
                                     "192.0.2.3 with#comment\n"
                                     "192.0.2.4 last"));

    assert_string_equal(look_up(t, "good"), "192.0.2.2");
    assert_string_equal(look_up(t, "with"), "192.0.2.3");
    assert_string_equal(look_up(t, "last"), "192.0.2.4");
    assert_int_equal(hosts_count(t), 3);
    hosts_free(&t);
}

static void
one_name_has_so_many_addresses_and_no_more(void **state)
{
    char text[64 * 32];
    size_t n = 0;
    struct hosts *t;
    struct dns_name name;
    struct half_answer h[HALVES];

    for (unsigned i = 1; i <= 60; i++)
        n += (size_t)sprintf(text + n, "192.0.2.%u many many\n", i);
    t = hosts_new(span_of(text, n));
    assert_true(name_read(SPAN("many"), &name));
    assert_true(hosts_find(t, &name, h));
    assert_int_equal(h[HALF_V4].n, DNS_ADDRESSES);
    assert_int_equal(h[HALF_V6].kind, HALF_NO_DATA);
    hosts_free(&t);
}

static void
a_block_list_of_many_names_is_a_table(void **state)
{
    size_t n = 0;
    char *text = malloc(20000 * 40);
    struct hosts *t;

    for (unsigned i = 0; i < 20000; i++)
        n += (size_t)sprintf(text + n, "0.0.0.0 blocked%u.test\n", i);
    t = hosts_new(span_of(text, n));
    assert_int_equal(hosts_count(t), 20000);
    assert_string_equal(look_up(t, "blocked0.test"), "0.0.0.0");
    assert_string_equal(look_up(t, "blocked19999.test"), "0.0.0.0");
    assert_string_equal(look_up(t, "blocked20000.test"), "");
    hosts_free(&t);
    free(text);
}

static void
write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void
the_file_is_read_again_only_when_it_changed(void **state)
{
    char path[] = "/tmp/test_hosts.XXXXXX";
    struct hosts_stamp seen = {.ino = 0};
    struct hosts *t;

    close(mkstemp(path));
    write_file(path, "192.0.2.1 a\n");
    t = hosts_reread(path, &seen);
    assert_string_equal(look_up(t, "a"), "192.0.2.1");
    hosts_free(&t);
    assert_null(hosts_reread(path, &seen));
    write_file(path, "192.0.2.1 a bb\n");
    t = hosts_reread(path, &seen);
    assert_int_equal(hosts_count(t), 2);
    hosts_free(&t);
    unlink(path);
    t = hosts_reread(path, &seen); /* gone: no names any more, said once */
    assert_int_equal(hosts_count(t), 0);
    hosts_free(&t);
    assert_null(hosts_reread(path, &seen));
}

static void
a_pipe_in_its_place_does_not_hang(void **state)
{
    char folder[] = "/tmp/test_hosts.XXXXXX", path[64];
    struct hosts_stamp seen = {.ino = 0};

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(hosts_reread(path, &seen));
    assert_null(hosts_reread(folder, &seen));
    unlink(path);
    rmdir(folder);
}

static bool
is_name(const char *text)
{
    struct dns_name name;

    return name_read(span_str(text), &name);
}

/* RFC 1035 section 2.3.4: labels of 63, names of 253 as text. */
static void
names_have_the_lengths_of_the_dns(void **state)
{
    char label[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", longest[300];
    struct dns_name name;

    assert_int_equal(strlen(label), 64);
    assert_false(is_name(label));
    label[63] = '\0';
    assert_true(is_name(label));
    snprintf(longest, sizeof(longest), "%s.%s.%s.%.61s", label, label, label, label);
    assert_int_equal(strlen(longest), 253);
    assert_true(is_name(longest));
    strcat(longest, ".");
    assert_true(name_read(span_str(longest), &name));
    assert_int_equal(name.n, 253);
    longest[253] = 'a';
    assert_false(is_name(longest));
}

static void
names_consist_of_letters_digits_hyphen_and_underscore(void **state)
{
    assert_true(is_name("_dmarc.Ex-ample.test"));
    assert_true(is_name("a."));
    assert_false(is_name(""));
    assert_false(is_name("."));
    assert_false(is_name("a.."));
    assert_false(is_name(".a"));
    assert_false(is_name("a..b"));
    assert_false(is_name("a b"));
    assert_false(is_name("a\\.b"));
    assert_false(is_name("a%2eb"));
    assert_false(is_name("b\xc3\xbc" "cher.test"));
    assert_false(is_name("[::1"));
}

static void
the_key_ignores_case_and_a_dot_that_changes_nothing(void **state)
{
    struct dns_name a, b;

    assert_true(name_read(SPAN("WWW.Example.Test."), &a));
    assert_true(name_read(SPAN("www.example.test"), &b));
    assert_true(span_eq(name_key(&a), name_key(&b)));
    assert_true(a.hash == b.hash);
    assert_true(name_read(SPAN("printer."), &a) && name_read(SPAN("printer"), &b));
    assert_false(span_eq(name_key(&a), name_key(&b)));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_aliases_are_found_without_case),
        cmocka_unit_test(odd_lines_are_skipped_and_the_others_stay),
        cmocka_unit_test(one_name_has_so_many_addresses_and_no_more),
        cmocka_unit_test(a_block_list_of_many_names_is_a_table),
        cmocka_unit_test(the_file_is_read_again_only_when_it_changed),
        cmocka_unit_test(a_pipe_in_its_place_does_not_hang),
        cmocka_unit_test(names_have_the_lengths_of_the_dns),
        cmocka_unit_test(names_consist_of_letters_digits_hyphen_and_underscore),
        cmocka_unit_test(the_key_ignores_case_and_a_dot_that_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
