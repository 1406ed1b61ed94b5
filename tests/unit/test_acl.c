/* test_acl - access rules compiled from plain data and matched against facts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/check.h"
#include "proxy/access/acl.h"

enum { ACLS_MOST = 24, VALUES_MOST = 24, RULES_MOST = 8 };

/* A configuration of literals: acls as "name type value value", rules as "allow a !b". */
struct set {
    struct conf conf;
    struct conf_acl acls[ACLS_MOST];
    char *values[ACLS_MOST][VALUES_MOST];
    char *texts[ACLS_MOST + RULES_MOST];
    unsigned n_texts;
    struct conf_rule rules[RULES_MOST];
    struct buf errors;
    struct acl_set *acls_compiled;
    struct acl_list *list;
};

static char *
own_text(struct set *s, const char *text)
{
    assert_true(s->n_texts < ACLS_MOST + RULES_MOST);
    return s->texts[s->n_texts++] = mem_strdup(text);
}

static void
add_acl(struct set *s, const char *text, int builtin)
{
    struct conf_acl *a = &s->acls[s->conf.n_acls];
    char *rest = own_text(s, text);

    *a = (struct conf_acl){.place = {"t.conf", s->conf.n_acls + 1}, .builtin = builtin};
    a->name = strsep(&rest, " ");
    a->type = strsep(&rest, " ");
    a->values = s->values[s->conf.n_acls];
    while (rest && a->n_values < VALUES_MOST)
        a->values[a->n_values++] = strsep(&rest, " ");
    s->conf.acls = s->acls;
    s->conf.n_acls++;
}

static void
add_rule(struct set *s, const char *text)
{
    struct conf_rule *r = &s->rules[s->conf.http_access.n];
    char *rest = own_text(s, text), *word;

    *r = (struct conf_rule){.place = {"t.conf", 100 + s->conf.http_access.n}};
    r->terms = mem_zalloc(8 * sizeof *r->terms);
    r->allow = strcmp(strsep(&rest, " "), "allow") == 0;
    while ((word = strsep(&rest, " ")) != NULL) {
        r->terms[r->n].negated = word[0] == '!';
        r->terms[r->n++].acl = word + (word[0] == '!');
    }
    s->conf.http_access.at = s->rules;
    s->conf.http_access.n++;
}

static struct set *
set_new(void)
{
    struct set *s = mem_zalloc(sizeof *s);

    add_acl(s, "all src all", 1);
    add_acl(s, "manager url_regex -i ^cache_object://", 1);
    return s;
}

static unsigned
compile(struct set *s)
{
    unsigned n = acl_set_new(&s->conf, &s->errors, &s->acls_compiled);

    return n + acl_list_new(s->acls_compiled, &s->conf.http_access, RULED_HTTP_ACCESS, &s->errors,
                            &s->list);
}

static void
set_free(struct set *s)
{
    acl_list_free(&s->list);
    acl_set_free(&s->acls_compiled);
    for (unsigned i = 0; i < s->n_texts; i++)
        mem_free(s->texts[i]);
    for (unsigned i = 0; i < s->conf.http_access.n; i++)
        mem_free(s->rules[i].terms);
    buf_free(&s->errors);
    mem_free(s);
}

/* One acl under "allow x": ALLOW means that it matches. */
static struct set *
set_of(const char *acl)
{
    struct set *s = set_new();

    add_acl(s, acl, 0);
    add_rule(s, "allow x");
    if (compile(s) != 0)
        fail_msg("%.*s", (int)s->errors.n, s->errors.at);
    return s;
}

static void
assert_errors(struct set *s, unsigned n, const char *text)
{
    assert_int_equal(compile(s), n);
    buf_add_char(&s->errors, '\0');
    assert_string_equal(s->errors.at, text);
    set_free(s);
}

static struct addr
address(const char *text, uint16_t port)
{
    struct addr a;

    assert_true(addr_parse(span_str(text), &a));
    addr_set_port(&a, port);
    return a;
}

static struct acl_facts
facts_of(const char *scheme, const char *host, uint16_t port, const char *path)
{
    static char url[4096];
    struct acl_facts f = {.client = address("192.0.2.7", 40000), .method = METHOD_GET};

    f.local = address("192.0.2.1", 3128);
    f.method_text = SPAN("GET");
    f.scheme = span_str(scheme);
    f.host = span_str(host);
    f.port = port;
    f.path = span_str(path);
    snprintf(url, sizeof url, "%s://%s%s", scheme, host, path);
    f.url = span_str(url);
    if (!addr_parse(f.host, &f.host_literal))
        f.host_literal = ADDR_NONE;
    return f;
}

static struct acl_facts
facts_for_host(const char *host)
{
    return facts_of("http", host, 80, "/");
}

static void
assert_answer(struct set *s, struct acl_facts f, enum acl_answer expected)
{
    assert_int_equal(acl_list_check(s->list, &f), expected);
}

static void
assert_host(struct set *s, const char *host, bool matches)
{
    assert_answer(s, facts_for_host(host), matches ? ACL_ALLOW : ACL_DENY);
}

static void
assert_client(struct set *s, const char *client, bool matches)
{
    struct acl_facts f = facts_for_host("example.com");

    f.client = address(client, 1);
    assert_answer(s, f, matches ? ACL_ALLOW : ACL_DENY);
}

static void
src_takes_networks_ranges_old_masks_and_host_bits(void **state)
{
    struct set *s = set_of("x src 10.1.2.3/8 192.168.1.0/255.255.255.0 172.16.0.5-172.16.0.9 "
                           "2001:db8::/32 [fe80::]/10 10.2.0.0/16");

    assert_client(s, "10.255.255.255", true);
    assert_client(s, "11.0.0.0", false);
    assert_client(s, "192.168.1.255", true);
    assert_client(s, "192.168.2.0", false);
    assert_client(s, "172.16.0.4", false);
    assert_client(s, "172.16.0.5", true);
    assert_client(s, "172.16.0.9", true);
    assert_client(s, "172.16.0.10", false);
    assert_client(s, "2001:db8:ffff::1", true);
    assert_client(s, "2001:db9::", false);
    assert_client(s, "fe80::1", true);
    set_free(s);
}

static void
src_of_many_networks_finds_each_and_nothing_between(void **state)
{
    enum { N = 20000 };
    struct set *s = set_new();
    char **values = mem_zalloc(N * sizeof *values), text[32];

    add_acl(s, "x src", 0);
    for (unsigned i = 0; i < N; i++) {
        unsigned k = i * 7919 % N; /* not in order */
        snprintf(text, sizeof text, "%u.%u.%u.0/25", 10 + k / 65536, k / 256 % 256, k % 256);
        values[i] = mem_strdup(text);
    }
    s->acls[2].values = values;
    s->acls[2].n_values = N;
    add_rule(s, "allow x");
    assert_int_equal(compile(s), 0);
    for (unsigned i = 0; i < N; i += 97) {
        snprintf(text, sizeof text, "10.%u.%u.127", i / 256, i % 256);
        assert_client(s, text, true);
        snprintf(text, sizeof text, "10.%u.%u.128", i / 256, i % 256);
        assert_client(s, text, false);
    }
    for (unsigned i = 0; i < N; i++)
        mem_free(values[i]);
    mem_free(values);
    set_free(s);
}

static void
all_takes_both_families_however_it_is_spelled(void **state)
{
    static const char *const acls[] = {"x src all", "x src 0.0.0.0/0", "x src 0.0.0.0/0.0.0.0",
                                       "x src ipv4 ipv6"};

    for (size_t i = 0; i < 4; i++) {
        struct set *s = set_of(acls[i]);

        assert_client(s, "255.255.255.255", true);
        assert_client(s, "2001:db8::1", true);
        set_free(s);
    }
}

/* `acl all src` without a value stands in files people use. */
static void
redefining_all_with_nothing_leaves_it_whole(void **state)
{
    struct set *s = mem_zalloc(sizeof *s);

    add_acl(s, "all src", 0);
    add_rule(s, "deny all");
    assert_int_equal(compile(s), 0);
    assert_client(s, "192.0.2.7", false);
    set_free(s);
}

static void
dst_asks_for_addresses_only_when_they_decide(void **state)
{
    struct set *s = set_of("x dst 10.0.0.0/8 ::1");
    struct acl_facts f = facts_for_host("intranet.example");
    struct addr found[2] = {address("192.0.2.80", 0), address("10.0.0.80", 0)};

    assert_answer(s, f, ACL_NEED_DST);
    f.dst = found, f.n_dst = 1, f.dst_known = true;
    assert_answer(s, f, ACL_DENY);
    f.n_dst = 2; /* any one of them */
    assert_answer(s, f, ACL_ALLOW);
    f.n_dst = 0; /* the name does not resolve */
    assert_answer(s, f, ACL_DENY);
    assert_host(s, "10.1.1.1", true); /* a literal needs no question */
    assert_host(s, "::1", true);
    assert_host(s, "192.0.2.1", false);
    assert_host(s, "", false);
    set_free(s);
}

/* Host is only what the client says. */
static void
dst_is_where_a_diverted_connection_was_going(void **state)
{
    struct set *s = set_of("x dst 10.0.0.0/8");
    struct acl_facts f = facts_for_host("intranet.example");
    struct addr inside = address("10.0.0.80", 80), outside = address("192.0.2.80", 80);

    f.destination = &inside;
    assert_answer(s, f, ACL_ALLOW);
    f.destination = &outside;
    assert_answer(s, f, ACL_DENY);
    f = facts_for_host("10.1.1.1");
    f.destination = &outside;
    assert_answer(s, f, ACL_DENY);
    set_free(s);
}

static void
no_host_gets_a_diverted_connection_around_dst(void **state)
{
    struct set *s = set_of("x dst -n 10.0.0.0/8 trusted.example");
    struct acl_facts f = facts_for_host("trusted.example");
    struct addr inside = address("10.0.0.80", 80), outside = address("192.0.2.80", 80);

    assert_answer(s, f, ACL_ALLOW);
    f.destination = &outside;
    assert_answer(s, f, ACL_DENY);
    f.destination = &inside; /* known without asking anybody */
    assert_answer(s, f, ACL_ALLOW);
    set_free(s);
}

static void
dst_is_not_asked_behind_a_term_that_fails(void **state)
{
    struct set *s = set_new();

    add_acl(s, "ours src 10.0.0.0/8", 0);
    add_acl(s, "x dst 10.0.0.0/8", 0);
    add_acl(s, "quiet dst -n 10.0.0.0/8", 0);
    add_rule(s, "deny ours !x");
    add_rule(s, "deny quiet");
    add_rule(s, "allow all");
    assert_int_equal(compile(s), 0);
    assert_client(s, "192.0.2.7", true);
    struct acl_facts f = facts_for_host("example.com");
    f.client = address("10.0.0.1", 1);
    assert_answer(s, f, ACL_NEED_DST);
    assert_host(s, "10.0.0.1", false); /* -n still knows a literal */
    set_free(s);
}

static void
names_in_dst_are_compared_where_matching_opens_and_refused_where_it_closes(void **state)
{
    struct set *s = set_of("x dst cvmfs.example.org 10.0.0.1");
    struct acl_facts f = facts_for_host("cvmfs.example.org");

    assert_answer(s, f, ACL_ALLOW);
    set_free(s);

    s = set_new();
    add_acl(s, "x dst bad.example.org", 0);
    add_acl(s, "g any-of x", 0);
    add_rule(s, "deny x");
    add_rule(s, "allow !x");
    add_rule(s, "allow g");
    assert_errors(s, 3,
                  "t.conf:100: http_access: x: names in a dst list are not resolved; use dstdomain "
                  "or addresses here\n"
                  "t.conf:101: http_access: x: names in a dst list are not resolved; use dstdomain "
                  "or addresses here\n"
                  "t.conf:102: http_access: g: names in a dst list are not resolved; use dstdomain "
                  "or addresses here\n");
}

static void
dstdomain_knows_hosts_and_what_is_below(void **state)
{
    struct set *s = set_of("x dstdomain .example.com host.example.net Example.ORG. 192.0.2.9 [::1] "
                           ".a.example.com .a.example.com *.star.test");

    assert_host(s, "example.com", true);
    assert_host(s, "www.example.com", true);
    assert_host(s, "deep.a.example.com.", true);
    assert_host(s, "badexample.com", false);
    assert_host(s, "com", false);
    assert_host(s, "host.example.net", true);
    assert_host(s, "sub.host.example.net", false);
    assert_host(s, "example.net", false);
    assert_host(s, "example.org", true);
    assert_host(s, "EXAMPLE.org", true);
    assert_host(s, "192.0.2.9", true);
    assert_host(s, "192.0.2.99", false);
    assert_host(s, "0:0:0:0:0:0:0:1", true);
    assert_host(s, "x.star.test", true);
    assert_host(s, "", false);
    assert_host(s, ".", false);
    set_free(s);
}

static void
dstdomain_finds_each_of_100000(void **state)
{
    enum { N = 100000 };
    struct set *s = set_new();
    char **values = mem_zalloc(N * sizeof *values), text[64];

    add_acl(s, "x dstdomain", 0);
    for (unsigned i = 0; i < N; i++) {
        snprintf(text, sizeof text, ".d%u.example", i);
        values[i] = mem_strdup(text);
    }
    s->acls[2].values = values;
    s->acls[2].n_values = N;
    add_rule(s, "allow x");
    assert_int_equal(compile(s), 0);
    for (unsigned i = 0; i < N; i += 991) {
        snprintf(text, sizeof text, "www.d%u.example", i);
        assert_host(s, text, true);
        snprintf(text, sizeof text, "d%u.example.net", i);
        assert_host(s, text, false);
    }
    for (unsigned i = 0; i < N; i++)
        mem_free(values[i]);
    mem_free(values);
    set_free(s);
}

static void
ports_are_single_or_ranges(void **state)
{
    struct set *s = set_of("x port 80 443 1025-65535");
    struct acl_facts f = facts_for_host("example.com");
    static const struct {
        uint16_t port;
        bool has;
    } cases[] = {{80, true},   {443, true},   {81, false}, {1024, false},
                 {1025, true}, {65535, true}, {0, false}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        f.port = cases[i].port;
        assert_answer(s, f, cases[i].has ? ACL_ALLOW : ACL_DENY);
    }
    set_free(s);
}

static void
our_own_end_is_known_by_port_address_and_name(void **state)
{
    static const char *const hits[] = {"x localport 3128", "x myport 3000-4000",
                                       "x localip 192.0.2.1", "x myportname 3128"};
    static const char *const misses[] = {"x localport 80", "x localip 192.0.2.7",
                                         "x myportname guests"};
    struct acl_facts f = facts_for_host("example.com");

    for (size_t i = 0; i < 4; i++) {
        struct set *s = set_of(hits[i]);

        assert_answer(s, f, ACL_ALLOW);
        set_free(s);
    }
    for (size_t i = 0; i < 3; i++) {
        struct set *s = set_of(misses[i]);

        assert_answer(s, f, ACL_DENY);
        set_free(s);
    }
    f.port_name = "guests";
    struct set *s = set_of("x myportname guests");
    assert_answer(s, f, ACL_ALLOW);
    set_free(s);
}

/* RFC 9110 section 9.1: methods are case-sensitive; a rule that says `connect` still means CONNECT.
 */
static void
methods_known_and_unknown(void **state)
{
    struct set *s = set_of("x method connect BREW");
    struct acl_facts f = facts_for_host("example.com");

    assert_answer(s, f, ACL_DENY);
    f.method = METHOD_CONNECT, f.method_text = SPAN("CONNECT");
    assert_answer(s, f, ACL_ALLOW);
    f.method = METHOD_OTHER, f.method_text = SPAN("BREW");
    assert_answer(s, f, ACL_ALLOW);
    f.method_text = SPAN("brew");
    assert_answer(s, f, ACL_DENY);
    set_free(s);
}

static void
proto_is_the_scheme_and_none_for_connect(void **state)
{
    struct set *s = set_of("x proto FTP NONE cache_object");
    struct acl_facts f = facts_for_host("example.com");

    assert_answer(s, f, ACL_DENY);
    f.scheme = SPAN("ftp");
    assert_answer(s, f, ACL_ALLOW);
    f.scheme = SPAN_NONE;
    assert_answer(s, f, ACL_ALLOW);
    f.scheme = SPAN("http"), f.is_manager = true;
    assert_answer(s, f, ACL_ALLOW);
    set_free(s);
}

static void
the_builtin_manager_is_what_the_request_knows(void **state)
{
    struct set *s = set_new();
    struct acl_facts f = facts_for_host("example.com");

    add_rule(s, "allow manager");
    assert_int_equal(compile(s), 0);
    assert_answer(s, f, ACL_DENY);
    f.is_manager = true;
    assert_answer(s, f, ACL_ALLOW);
    set_free(s);
}

static void
regex_flags_hold_from_where_they_stand(void **state)
{
    struct set *s = set_of("x url_regex One -i TWO +i Three");

    assert_answer(s, facts_of("http", "h.example", 80, "/One"), ACL_ALLOW);
    assert_answer(s, facts_of("http", "h.example", 80, "/one"), ACL_DENY);
    assert_answer(s, facts_of("http", "h.example", 80, "/two"), ACL_ALLOW);
    assert_answer(s, facts_of("http", "h.example", 80, "/three"), ACL_DENY);
    assert_answer(s, facts_of("http", "h.example", 80, "/Three"), ACL_ALLOW);
    set_free(s);
}

/* However a client writes it, the pattern sees what the origin will understand. */
static void
url_regex_sees_through_escapes_and_the_trailing_dot(void **state)
{
    struct set *s = set_of("x url_regex ^http://bad\\.example/secret");

    assert_answer(s, facts_of("http", "bad.example", 80, "/%73ecret"), ACL_ALLOW);
    assert_answer(s, facts_of("http", "bad.example.", 80, "/secret"), ACL_ALLOW);
    assert_answer(s, facts_of("http", "bad.example", 80, "/%zzsecret"), ACL_DENY);
    assert_answer(s, facts_of("http", "bad.example", 80, "/%"), ACL_DENY);
    assert_answer(s, facts_of("http", "bad.example", 80, "/%7"), ACL_DENY);
    set_free(s);
    s = set_of("x urlpath_regex \\.(exe|com)$ cgi-bin \\?");
    assert_answer(s, facts_of("http", "a.com", 80, "/x"), ACL_DENY);
    assert_answer(s, facts_of("http", "a.com", 80, "/x.%65xe"), ACL_ALLOW);
    assert_answer(s, facts_of("http", "a.com", 80, "/x.exe%0a"), ACL_DENY); /* $ is the very end */
    assert_answer(s, facts_of("http", "a.com", 80, "/x?y"), ACL_ALLOW);
    assert_answer(s, facts_of("http", "a.com", 80, ""), ACL_DENY);
    set_free(s);
    s = set_of("x dstdom_regex (^|\\.)ads\\.example$");
    assert_host(s, "ads.example.", true);
    assert_host(s, "www.ads.example", true);
    assert_host(s, "bads.example", false);
    set_free(s);
}

/* What POSIX or people take for a pattern and pcre2 alone would refuse. */
static void
posix_habits_are_understood(void **state)
{
    struct set *s =
        set_of("x url_regex *\\.exe (*zip|+rar) \\<porn\\> a\\yz++$ [[:digit:]]{5}[]x] q)w");

    assert_answer(s, facts_of("http", "h", 80, "/setup.exe"), ACL_ALLOW);
    assert_answer(s, facts_of("http", "h", 80, "/a.rar"), ACL_ALLOW);
    assert_answer(s, facts_of("http", "h", 80, "/free-porn-here"), ACL_ALLOW);
    assert_answer(s, facts_of("http", "h", 80, "/popcorn"), ACL_DENY);
    assert_answer(s, facts_of("http", "h", 80, "/ayzzz"), ACL_ALLOW);
    assert_answer(s, facts_of("http", "h", 80, "/12345]"), ACL_ALLOW);
    assert_answer(s, facts_of("http", "h", 80, "/q)w"), ACL_ALLOW);
    assert_answer(s, facts_of("http", "h", 80, "/qw"), ACL_DENY);
    set_free(s);
}

/* (a+)+$ costs 2^n steps on a line of a's that ends otherwise. */
static void
a_pattern_that_explodes_denies_instead_of_hanging(void **state)
{
    struct set *s = set_new();
    char path[2000];
    struct timespec t0, t1;

    add_acl(s, "x url_regex ((a+)+)+b(a+)+$", 0);
    add_rule(s, "deny x");
    add_rule(s, "allow all");
    assert_int_equal(compile(s), 0);
    memset(path, 'a', sizeof path);
    path[0] = '/';
    path[sizeof path - 2] = '!';
    path[sizeof path - 1] = '\0';
    path[500] = 'b';
    clock_gettime(CLOCK_MONOTONIC, &t0);
    assert_answer(s, facts_of("http", "h", 80, path), ACL_DENY);
    clock_gettime(CLOCK_MONOTONIC, &t1);
    assert_true(t1.tv_sec - t0.tv_sec < 5);
    set_free(s);
}

static void
patterns_on_fields_of_the_request(void **state)
{
    struct set *s = set_of("x browser -i mozilla");
    struct field at[] = {{SPAN("User-Agent"), SPAN("Mozilla/5.0"), FIELD_USER_AGENT},
                         {SPAN("Referer"), SPAN("http://a.example/"), FIELD_REFERER},
                         {SPAN("X-Odd"), SPAN("first"), FIELD_OTHER},
                         {SPAN("x-odd"), SPAN("second"), FIELD_OTHER}};
    struct fields fields = {at, 4, 4};
    struct acl_facts f = facts_for_host("example.com");

    assert_answer(s, f, ACL_DENY); /* no fields at all */
    f.fields = &fields;
    assert_answer(s, f, ACL_ALLOW);
    set_free(s);
    s = set_of("x referer_regex ^http://a\\.");
    assert_answer(s, f, ACL_ALLOW);
    set_free(s);
    s = set_of("x req_header X-Odd ^second$");
    assert_answer(s, f, ACL_ALLOW);
    set_free(s);
    s = set_of("x req_header X-Even .");
    assert_answer(s, f, ACL_DENY);
    set_free(s);
}

/* It lies apart from the other fields, so that those who walk along them do not meet it. */
static void
what_is_told_to_the_proxy_alone_is_told_to_its_rules(void **state)
{
    struct field lines[] = {
        {SPAN("Proxy-Authorization"), SPAN("Negotiate YII"), FIELD_PROXY_AUTHORIZATION},
        {SPAN("Proxy-Authorization"), SPAN("Basic dTpw"), FIELD_PROXY_AUTHORIZATION}};
    struct acl_facts f = facts_for_host("example.com");
    struct set *s = set_of("x req_header proxy-authorization ^Basic");

    assert_answer(s, f, ACL_DENY);
    f.proxy_authorization = (struct fields){lines, 1, 2};
    assert_answer(s, f, ACL_DENY);
    f.proxy_authorization.n = 2;
    assert_answer(s, f, ACL_ALLOW);
    set_free(s);
    s = set_of("x req_header Authorization .");
    assert_answer(s, f, ACL_DENY);
    set_free(s);
}

static void
assert_at(struct set *s, int64_t wall_s, bool matches)
{
    struct acl_facts f = facts_for_host("example.com");

    f.wall_s = wall_s;
    assert_answer(s, f, matches ? ACL_ALLOW : ACL_DENY);
}

/* 2026-01-05 was a Monday; local time is UTC here. */
static void
time_is_days_and_hours_of_the_local_day(void **state)
{
    const int64_t monday = 1767571200, hour = 3600, day = 24 * 3600;
    struct set *s = set_of("x time MTWHF 08:00-17:30 A");

    assert_at(s, monday + 8 * hour - 1, false);
    assert_at(s, monday + 8 * hour, true);
    assert_at(s, monday + 17 * hour + 30 * 60, true);
    assert_at(s, monday + 17 * hour + 31 * 60, false);
    assert_at(s, monday + 5 * day + 3 * hour, true);  /* Saturday, all day */
    assert_at(s, monday + 6 * day + 9 * hour, false); /* Sunday */
    set_free(s);
    s = set_of("x time 00:00-24:00");
    assert_at(s, monday - 1, true);
    set_free(s);
}

static void
groups_are_any_or_all_of_their_members(void **state)
{
    struct set *s = set_new();

    add_acl(s, "both all-of get !bad", 0); /* names that come later in the file */
    add_acl(s, "x any-of both ours", 0);
    add_acl(s, "get method GET", 0);
    add_acl(s, "bad dstdomain bad.example", 0);
    add_acl(s, "ours src 10.0.0.0/8", 0);
    add_rule(s, "allow X"); /* names are found in any case, as with Squid */
    assert_int_equal(compile(s), 0);
    assert_host(s, "good.example", true);
    assert_host(s, "bad.example", false);
    assert_client(s, "10.0.0.1", true);
    set_free(s);
}

static void
a_need_is_no_match_and_no_mismatch_however_deep_it_is(void **state)
{
    static const char *const rules[] = {"deny x", "deny !x", "deny get x", "allow either",
                                        "deny !neither"};
    struct acl_facts f = facts_for_host("intranet.example");

    for (size_t i = 0; i < 5; i++) {
        struct set *s = set_new();

        add_acl(s, "x dst 10.0.0.0/8", 0);
        add_acl(s, "get method GET", 0);
        add_acl(s, "both all-of get x", 0);
        add_acl(s, "either any-of both get", 0);
        add_acl(s, "neither all-of !both !get", 0);
        add_rule(s, rules[i]);
        add_rule(s, "allow all");
        assert_int_equal(compile(s), 0);
        assert_answer(s, f, ACL_NEED_DST);
        assert_int_equal(acl_list_needs(s->list), ACL_NEEDS(ACL_NEED_DST));
        set_free(s);
    }
}

static void
a_list_that_asks_for_nothing_says_so(void **state)
{
    static const char *const acls[] = {"x src 10.0.0.0/8", "x dst -n 10.0.0.0/8", "x dst all",
                                       "x dst host.example", "x any-of all"};

    for (size_t i = 0; i < 5; i++) {
        struct set *s = set_of(acls[i]);

        assert_int_equal(acl_list_needs(s->list), 0);
        set_free(s);
    }
}

/* The rules once more, each as the condition of a directive that waits for nothing. */
static unsigned
compile_conditions(struct set *s, enum ruled directive)
{
    unsigned n = 0;
    struct acl_cond *c;

    for (unsigned i = 0; i < s->conf.http_access.n; i++) {
        n += acl_cond_new(s->acls_compiled, &s->rules[i], directive, &s->errors, &c);
        acl_cond_free(&c);
    }
    return n;
}

static void
assert_refused_as_condition(struct set *s, enum ruled directive, unsigned n, const char *text)
{
    assert_int_equal(compile(s), 0); /* http_access waits */
    assert_int_equal(compile_conditions(s, directive), n);
    buf_add_char(&s->errors, '\0');
    assert_string_equal(s->errors.at, text);
    set_free(s);
}

static void
what_a_directive_cannot_wait_for_is_refused_with_its_line(void **state)
{
    struct set *s = set_new();

    add_acl(s, "lan dst 10.0.0.0/8", 0);
    add_acl(s, "quiet dst -n 10.0.0.0/8", 0);
    add_acl(s, "both all-of all either", 0);
    add_acl(s, "either any-of quiet !lan", 0);
    add_rule(s, "allow lan");
    add_rule(s, "allow all !lan");
    add_rule(s, "allow quiet");
    add_rule(s, "allow !both");
    assert_refused_as_condition(
        s, RULED_ACCESS_LOG, 3,
        "t.conf:100: access_log: acl lan (type dst) needs the addresses of the host, which "
        "access_log cannot wait for\n"
        "t.conf:101: access_log: acl lan (type dst) needs the addresses of the host, which "
        "access_log cannot wait for\n"
        "t.conf:103: access_log: acl lan (type dst, in both) needs the addresses of the host, "
        "which access_log cannot wait for\n");
    s = set_new();
    add_acl(s, "lan dst 10.0.0.0/8", 0);
    add_rule(s, "allow lan");
    assert_refused_as_condition(
        s, RULED_RANGE_OFFSET_LIMIT, 1,
        "t.conf:100: range_offset_limit: acl lan (type dst) needs the addresses of the host, which "
        "range_offset_limit cannot wait for\n");
}

/* Depth comes to `b` and `c` along the upper groups at once, the need from below one line a time.
 */
static void
a_need_reaches_each_group_in_whatever_order_they_stand(void **state)
{
    struct set *s = set_new();

    add_acl(s, "p any-of all", 0);
    add_acl(s, "q any-of p", 0);
    add_acl(s, "r any-of q", 0);
    add_acl(s, "c any-of b", 0);
    add_acl(s, "b any-of r a", 0);
    add_acl(s, "a any-of z", 0);
    add_acl(s, "z any-of lan", 0);
    add_acl(s, "lan dst 10.0.0.0/8", 0);
    add_rule(s, "allow c");
    assert_refused_as_condition(s, RULED_ACCESS_LOG, 1,
                                "t.conf:100: access_log: acl lan (type dst, in c) needs the "
                                "addresses of the host, which access_log cannot wait for\n");
}

static void
groups_in_a_ring_are_refused(void **state)
{
    struct set *s = set_new();

    add_acl(s, "a any-of b", 0);
    add_acl(s, "b any-of c", 0);
    add_acl(s, "c all-of a nobody", 0);
    assert_errors(s, 4,
                  "t.conf:5: acl: c: there is no acl named nobody\n"
                  "t.conf:3: acl: a: refers to itself, or nests deeper than 16\n"
                  "t.conf:4: acl: b: refers to itself, or nests deeper than 16\n"
                  "t.conf:5: acl: c: refers to itself, or nests deeper than 16\n");
}

static void
every_bad_value_is_told_with_its_line(void **state)
{
    struct set *s = set_new();

    add_acl(s, "Safe_ports port 80 65979 90-80 http", 0);
    add_acl(s, "SSH dst ip/32", 0);
    add_acl(s, "lan src 10.0.0.0/33 example.com", 0);
    add_acl(s, "b dstdomain http://example.com/ ok.example", 0);
    add_acl(s, "r url_regex (a", 0);
    add_acl(s, "t time MX 9-17", 0);
    add_acl(s, "o srcc 10.0.0.1", 0);
    assert_errors(
        s, 11,
        "t.conf:3: acl: Safe_ports: 65979: expected a port or a range such as 1025-65535\n"
        "t.conf:3: acl: Safe_ports: 90-80: expected a port or a range such as 1025-65535\n"
        "t.conf:3: acl: Safe_ports: http: expected a port or a range such as 1025-65535\n"
        "t.conf:4: acl: SSH: ip/32: expected an address, a network (10.0.0.0/8) or a range\n"
        "t.conf:5: acl: lan: 10.0.0.0/33: expected an address, a network (10.0.0.0/8) or a range\n"
        "t.conf:5: acl: lan: example.com: an address is expected here, not a name\n"
        "t.conf:6: acl: b: http://example.com/: expected a domain such as .example.com\n"
        "t.conf:7: acl: r: (a: not a regular expression: missing closing parenthesis (at 2)\n"
        "t.conf:8: acl: t: MX: expected days out of SMTWHFA (D: Monday to Friday)\n"
        "t.conf:8: acl: t: 9-17: expected hours such as 08:00-17:30, the earlier first\n"
        "t.conf:9: acl: o: there is no acl type srcc\n");
}

/* Most definitions of types we lack are only used by directives that are ignored. */
static void
a_type_we_lack_is_refused_where_a_rule_needs_it(void **state)
{
    struct set *s = set_new();

    add_acl(s, "step1 at_step SslBump1", 0);
    add_acl(s, "users proxy_auth REQUIRED", 0);
    add_acl(s, "g any-of users", 0);
    add_rule(s, "allow users");
    add_rule(s, "deny g");
    add_rule(s, "deny nowhere");
    assert_errors(s, 3,
                  "t.conf:100: http_access: users: acls of type proxy_auth are not supported yet\n"
                  "t.conf:101: http_access: g: acls of type proxy_auth are not supported yet\n"
                  "t.conf:102: http_access: nowhere: there is no such acl\n");
}

static void
no_rule_matching_is_the_opposite_of_the_last(void **state)
{
    struct set *s = set_new();

    add_acl(s, "x dstdomain x.example", 0);
    add_rule(s, "allow x");
    add_rule(s, "deny x");
    assert_int_equal(compile(s), 0);
    assert_host(s, "x.example", true);
    assert_host(s, "y.example", true);
    set_free(s);
}

static void
an_empty_list_is_what_its_directive_says(void **state)
{
    struct set *s = set_new();
    struct acl_list *l;
    struct acl_facts f = facts_for_host("example.com");

    assert_int_equal(compile(s), 0);
    assert_answer(s, f, ACL_DENY);
    assert_int_equal(
        acl_list_new(s->acls_compiled, &s->conf.http_access, RULED_CACHE, &s->errors, &l), 0);
    assert_int_equal(acl_list_check(l, &f), ACL_ALLOW);
    acl_list_free(&l);
    set_free(s);
}

static void
a_condition_holds_when_all_its_terms_do(void **state)
{
    struct set *s = set_new();
    struct acl_cond *c;
    struct acl_facts f = facts_for_host("x.example");

    add_acl(s, "x dstdomain x.example", 0);
    add_rule(s, "allow x !manager");
    assert_int_equal(compile(s), 0);
    assert_int_equal(acl_cond_new(s->acls_compiled, &s->rules[0], RULED_ACCESS_LOG, &s->errors, &c),
                     0);
    assert_true(acl_cond_holds(c, &f));
    f.is_manager = true;
    assert_false(acl_cond_holds(c, &f));
    acl_cond_free(&c);
    set_free(s);
}

/* The rules of a stock squid.conf: the shape of what stands before every request. */
static void
a_stock_configuration_answers_as_squid_does(void **state)
{
    struct set *s = set_new();
    struct acl_facts f = facts_for_host("example.com");

    add_acl(s, "localhost src 127.0.0.1/32 ::1", 1);
    add_acl(s, "to_localhost dst 127.0.0.0/8 0.0.0.0/32 ::1/128 ::/128", 1);
    add_acl(s, "localnet src 0.0.0.1-0.255.255.255 10.0.0.0/8 192.168.0.0/16 fc00::/7", 0);
    add_acl(s, "SSL_ports port 443", 0);
    add_acl(s, "Safe_ports port 80 21 443 1025-65535", 0);
    add_acl(s, "CONNECT method CONNECT", 1);
    add_rule(s, "deny !Safe_ports");
    add_rule(s, "deny CONNECT !SSL_ports");
    add_rule(s, "allow localhost manager");
    add_rule(s, "deny manager");
    add_rule(s, "deny to_localhost");
    add_rule(s, "allow localnet");
    add_rule(s, "deny all");
    assert_int_equal(compile(s), 0);
    f.dst_known = true;
    assert_answer(s, f, ACL_DENY);
    f.client = address("10.9.9.9", 1);
    assert_answer(s, f, ACL_ALLOW);
    f.method = METHOD_CONNECT, f.port = 8443;
    assert_answer(s, f, ACL_DENY);
    f.port = 443;
    assert_answer(s, f, ACL_ALLOW);
    f.is_manager = true;
    assert_answer(s, f, ACL_DENY);
    f.client = address("127.0.0.1", 1);
    assert_answer(s, f, ACL_ALLOW);
    set_free(s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(src_takes_networks_ranges_old_masks_and_host_bits),
        cmocka_unit_test(src_of_many_networks_finds_each_and_nothing_between),
        cmocka_unit_test(all_takes_both_families_however_it_is_spelled),
        cmocka_unit_test(redefining_all_with_nothing_leaves_it_whole),
        cmocka_unit_test(dst_asks_for_addresses_only_when_they_decide),
        cmocka_unit_test(dst_is_where_a_diverted_connection_was_going),
        cmocka_unit_test(no_host_gets_a_diverted_connection_around_dst),
        cmocka_unit_test(dst_is_not_asked_behind_a_term_that_fails),
        cmocka_unit_test(
            names_in_dst_are_compared_where_matching_opens_and_refused_where_it_closes),
        cmocka_unit_test(dstdomain_knows_hosts_and_what_is_below),
        cmocka_unit_test(dstdomain_finds_each_of_100000),
        cmocka_unit_test(ports_are_single_or_ranges),
        cmocka_unit_test(our_own_end_is_known_by_port_address_and_name),
        cmocka_unit_test(methods_known_and_unknown),
        cmocka_unit_test(proto_is_the_scheme_and_none_for_connect),
        cmocka_unit_test(the_builtin_manager_is_what_the_request_knows),
        cmocka_unit_test(regex_flags_hold_from_where_they_stand),
        cmocka_unit_test(url_regex_sees_through_escapes_and_the_trailing_dot),
        cmocka_unit_test(posix_habits_are_understood),
        cmocka_unit_test(a_pattern_that_explodes_denies_instead_of_hanging),
        cmocka_unit_test(patterns_on_fields_of_the_request),
        cmocka_unit_test(what_is_told_to_the_proxy_alone_is_told_to_its_rules),
        cmocka_unit_test(time_is_days_and_hours_of_the_local_day),
        cmocka_unit_test(groups_are_any_or_all_of_their_members),
        cmocka_unit_test(a_need_is_no_match_and_no_mismatch_however_deep_it_is),
        cmocka_unit_test(a_list_that_asks_for_nothing_says_so),
        cmocka_unit_test(what_a_directive_cannot_wait_for_is_refused_with_its_line),
        cmocka_unit_test(a_need_reaches_each_group_in_whatever_order_they_stand),
        cmocka_unit_test(groups_in_a_ring_are_refused),
        cmocka_unit_test(every_bad_value_is_told_with_its_line),
        cmocka_unit_test(a_type_we_lack_is_refused_where_a_rule_needs_it),
        cmocka_unit_test(no_rule_matching_is_the_opposite_of_the_last),
        cmocka_unit_test(an_empty_list_is_what_its_directive_says),
        cmocka_unit_test(a_condition_holds_when_all_its_terms_do),
        cmocka_unit_test(a_stock_configuration_answers_as_squid_does),
    };

    setenv("TZ", "UTC0", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
