/* test_conf - configurations: what they mean, what is wrong in them, and that the dump reads back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "conf/conf.h"

#define PORT "http_port 3128\n"

static struct conf *
read_text(const char *text)
{
    return conf_read_text("t.conf", span_str(text));
}

static const char *
text_of(struct buf *b)
{
    buf_add_char(b, '\0');
    b->n--;
    return b->at;
}

static void
assert_reads(const struct conf *c)
{
    if (c->n_errors)
        print_error("%.*s", (int)c->errors.n, c->errors.at);
    assert_int_equal(c->n_errors, 0);
}

/* The text has just this one mistake. */
static void
assert_error(const char *text, const char *error)
{
    struct conf *c = read_text(text);

    assert_string_equal(text_of(&c->errors), error);
    assert_int_equal(c->n_errors, 1);
    conf_unref(&c);
}

/* A directive with these words behind it is one mistake. */
static void
assert_mistake(const char *directive, const char *words)
{
    struct buf text = {0};
    struct conf *c;

    buf_addf(&text, "%s %s\n%s", directive, words, PORT);
    c = conf_read_text("t.conf", buf_span(&text));
    if (c->n_errors != 1)
        fail_msg("%s %s: %u errors", directive, words, c->n_errors);
    conf_unref(&c);
    buf_free(&text);
}

/* The text reads, and this note is among what is said. */
static void
assert_note(const char *text, const char *note)
{
    struct conf *c = read_text(text);

    assert_reads(c);
    if (strstr(text_of(&c->notes), note) == NULL)
        fail_msg("no \"%s\" in: %s", note, c->notes.at);
    conf_unref(&c);
}

static void
assert_values(const struct conf *c, const char *name, const char *expected)
{
    const struct conf_acl *a = conf_acl_find(c, name);
    struct buf b = {0};

    assert_non_null(a);
    for (unsigned i = 0; i < a->n_values; i++)
        buf_addf(&b, "%s%s", i ? " " : "", a->values[i]);
    assert_string_equal(text_of(&b), expected);
    buf_free(&b);
}

/* Files of one test, in a folder of its own. */
static char folder[64];

static int
make_folder(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/cuttle-test-conf-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static const char *
path_of(const char *name)
{
    static char path[2][256];
    static unsigned turn;

    turn ^= 1;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static void
put_file(const char *name, const char *text)
{
    FILE *f = fopen(path_of(name), "w");

    assert_non_null(f);
    assert_int_equal(fputs(text, f) < 0, 0);
    fclose(f);
}

static int
remove_folder(void **state)
{
    char command[128];

    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

static void
the_default_is_safe_and_reads_without_a_note(void **state)
{
    struct conf *c = conf_read(NULL);
    char text[ADDR_TEXT_MAX];

    assert_reads(c);
    assert_int_equal(c->notes.n, 0);
    assert_int_equal(c->n_ports, 1);
    addr_format_port(&c->ports[0].address, text);
    assert_string_equal(text, "127.0.0.1:3128");
    assert_false(c->ports[0].any);
    assert_false(c->http_access.at[c->http_access.n - 1].allow);
    assert_string_equal(c->http_access.at[c->http_access.n - 1].terms[0].acl, "all");
    assert_int_equal(c->cache_mem, 256 << 20);
    assert_int_equal(c->maximum_object_size_in_memory, 64 << 20);
    assert_string_equal(c->access_logs[0].where, "stdout");
    conf_unref(&c);
    assert_null(c);
}

static void
what_a_file_leaves_out_has_squids_defaults(void **state)
{
    struct conf *c = read_text(PORT);

    assert_reads(c);
    assert_int_equal(c->cache_mem, 256 << 20);
    assert_int_equal(c->maximum_object_size, 4 << 20);
    assert_int_equal(c->maximum_object_size_in_memory, 512 << 10);
    assert_int_equal(c->connect_timeout_ms, 60000);
    assert_int_equal(c->read_timeout_ms, 900000);
    assert_int_equal(c->client_lifetime_ms, 86400000);
    assert_int_equal(c->shutdown_lifetime_ms, 30000);
    assert_int_equal(c->positive_dns_ttl_ms, 6 * 3600000);
    assert_int_equal(c->quick_abort_min, 16384);
    assert_int_equal(c->quick_abort_pct, 95);
    assert_true(c->via && c->collapsed_forwarding && !c->offline_mode);
    assert_int_equal(c->forwarded_for, CONF_FF_ON);
    assert_string_equal(c->event_backend, "auto");
    assert_string_equal(c->hosts_file, "/etc/hosts");
    assert_null(c->pid_filename);
    assert_int_equal(c->http_access.n, 0);
    assert_int_equal(c->n_access_logs, 1);
    assert_string_equal(c->access_logs[0].where, "stdout");
    conf_unref(&c);
}

static void
values_are_taken_with_their_units(void **state)
{
    struct conf *c = read_text(PORT "cache_mem 8 GB\nmaximum_object_size 64MB # big\nvia off\n"
                                    "read_timeout 2 minutes\nhappy_eyeballs_connect_timeout 100\n"
                                    "quick_abort_min -1 KB\nquick_abort_max 32\nworkers 4\n"
                                    "forwarded_for delete\nevent_backend poll\npid_filename none\n"
                                    "max_stale 5 month\nvisible_hostname \"p.example.org\"\n"
                                    "shutdown_lifetime 0 seconds\ncache_mem 0\n");

    assert_reads(c);
    assert_int_equal(c->cache_mem, 0); /* given twice, the last one holds */
    assert_true(c->memory_cache_off);
    assert_int_equal(c->maximum_object_size, 64 << 20);
    assert_false(c->via);
    assert_int_equal(c->read_timeout_ms, 120000);
    assert_int_equal(c->happy_eyeballs_connect_timeout_ms, 100);
    assert_int_equal(c->quick_abort_min, -1);
    assert_int_equal(c->quick_abort_max, 32768);
    assert_int_equal(c->workers, 4);
    assert_int_equal(c->forwarded_for, CONF_FF_DELETE);
    assert_string_equal(c->event_backend, "poll");
    assert_int_equal(c->max_stale_ms, INT64_C(150) * 86400000);
    assert_string_equal(c->visible_hostname, "p.example.org");
    assert_int_equal(c->shutdown_lifetime_ms, 0);
    conf_unref(&c);
}

static void
a_value_out_of_range_names_both(void **state)
{
    assert_error(PORT "\ncache_mem 4 MB\n", "t.conf:3: cache_mem: 4 MB is below 8 MB\n");
    assert_error(PORT "workers 1000\n", "t.conf:2: workers: 1000 is above 256\n");
    assert_error(PORT "dns_timeout 2 hours\n", "t.conf:2: dns_timeout: 2 hours is above 1 hour\n");
    assert_error(PORT "maximum_object_size none\n",
                 "t.conf:2: maximum_object_size: -1 is below 0\n");
}

static void
a_wrong_value_says_what_was_expected(void **state)
{
    assert_error(PORT "cache_mem lots\n",
                 "t.conf:2: cache_mem: expected a size such as 64 MB, found \"lots\"\n");
    assert_error(PORT "cache_mem\n", "t.conf:2: cache_mem: expected a size such as 64 MB\n");
    assert_error(PORT "read_timeout soon\n",
                 "t.conf:2: read_timeout: expected a time such as 30 seconds, found \"soon\"\n");
    assert_error(PORT "via maybe\n", "t.conf:2: via: expected on or off, found \"maybe\"\n");
    assert_error(PORT "event_backend kqueue\n",
                 "t.conf:2: event_backend: expected one of auto epoll poll select io_uring, "
                 "found \"kqueue\"\n");
    assert_error(PORT "cache_mem 8 GB via off\n",
                 "t.conf:2: cache_mem: expected one value, found \"via\" behind it\n");
    assert_error(PORT "visible_hostname \"open\n",
                 "t.conf:2: visible_hostname: a quote is opened and not closed\n");
    assert_error(PORT "dns_nameservers 192.0.2.1 ns.example.org\n",
                 "t.conf:2: dns_nameservers: \"ns.example.org\" is not an address\n");
}

static void
ten_mistakes_give_ten_messages_with_lines(void **state)
{
    static const char *const wrong[] = {
        "cache_mem 1 KB",
        "workers none",
        "acl a src10.0.0.1",
        "htp_access deny all",
        "http_access permit all",
        "http_access allow nobody",
        "refresh_pattern . 0 20",
        "http_port 99999",
        "include /nonexistent/x.conf",
        "acl b dstdomain \"/nonexistent/list\"",
    };
    struct buf text = {0};
    struct conf *c;
    char at[32];

    for (unsigned i = 0; i < 10; i++)
        buf_addf(&text, "%s\n", wrong[i]);
    c = conf_read_text("t.conf", buf_span(&text));
    assert_int_equal(c->n_errors, 10);
    for (unsigned i = 1; i <= 10; i++) {
        snprintf(at, sizeof at, "t.conf:%u: ", i);
        assert_non_null(strstr(text_of(&c->errors), at));
    }
    conf_unref(&c);
    buf_free(&text);
}

/* Passing over a misspelled line would leave out what it was to deny. */
static void
an_unknown_directive_is_refused_with_a_hint(void **state)
{
    assert_error(PORT "htp_access deny all\n",
                 "t.conf:2: htp_access: unknown directive; did you mean http_access?\n");
    assert_error(PORT "refresh_pattern^gopher: 0 0% 0\n",
                 "t.conf:2: refresh_pattern^gopher:: unknown directive; did you mean "
                 "refresh_pattern?\n");
    assert_error(PORT "qwertyuiop 1\n", "t.conf:2: qwertyuiop: unknown directive\n");
}

static void
a_message_stays_one_line_whatever_the_word(void **state)
{
    struct conf *c = read_text(PORT "via \x1b[2J\x01\nb\rc\n");

    assert_string_equal(text_of(&c->errors), "t.conf:2: via: expected on or off, found \"?[2J?\"\n"
                                             "t.conf:3: b: unknown directive\n");
    conf_unref(&c);
    assert_error(PORT "vi\x01_x 1\n", "t.conf:2: vi?_x: unknown directive\n");
}

static void
what_only_tunes_is_taken_with_one_note(void **state)
{
    struct conf *c = read_text(PORT "http_access deny all\nlogfile_daemon /usr/lib/x\nicp_port 0\n"
                                    "cache_store_log /a\ncache_store_log /b\n"
                                    "debug_options ALL,1 33, 2\n");

    assert_reads(c);
    assert_string_equal(
        text_of(&c->notes),
        "t.conf:3: logfile_daemon: not used by cuttle, ignored\n"
        "t.conf:4: icp_port: not used by cuttle, ignored: no port is opened for it\n"
        "t.conf:5: cache_store_log: not used by cuttle, ignored\n"
        "t.conf:7: debug_options: not used by cuttle, ignored\n");
    conf_unref(&c);
}

static void
a_cache_dir_of_any_type_is_one_file(void **state)
{
    struct conf *c = read_text(PORT "cache_dir ufs /a 100 16 256\ncache_dir rock /b 2000 "
                                    "slot-size=32768 max-size=1000 min-size=10 no-store\n"
                                    "cache_dir null /tmp\n");

    assert_reads(c);
    assert_int_equal(c->n_cache_dirs, 2);
    assert_string_equal(c->cache_dirs[0].path, "/a");
    assert_int_equal(c->cache_dirs[0].bytes, INT64_C(100) << 20);
    assert_int_equal(c->cache_dirs[0].max_bytes, -1);
    assert_int_equal(c->cache_dirs[1].max_bytes, 1000);
    assert_int_equal(c->cache_dirs[1].min_bytes, 10);
    assert_true(c->cache_dirs[1].read_only && !c->cache_dirs[0].read_only);
    conf_unref(&c);
}

static void
no_option_of_a_cache_dir_is_passed_over_in_silence(void **state)
{
    static const char *const wrong[] = {"fast",        "max-sise=5", "max-size=5K",   "min-size=",
                                        "16 256 4096", "no-store=1", "16 min-size=-2"};

    assert_error(PORT "cache_dir zfs /a 100\n", "t.conf:2: cache_dir: expected ufs, aufs, diskd or "
                                                "rock, a folder and a number of megabytes\n");
    assert_error(PORT "cache_dir ufs /a 7 16 256\n",
                 "t.conf:2: cache_dir: expected 8 to 16777216 megabytes, found 7\n");
    assert_error(PORT "cache_dir ufs /a 100 16 256 max-sise=5\n",
                 "t.conf:2: cache_dir: expected min-size=BYTES, max-size=BYTES or no-store, found "
                 "\"max-sise=5\"\n");
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_mistake("cache_dir ufs /a 100", wrong[i]);
    assert_error(PORT "cache_dir ufs /a 100\ncache_dir rock /a 200\n",
                 "t.conf:3: cache_dir: expected a folder of its own; line 2 of t.conf has the "
                 "same\n");
    assert_note(PORT "cache_dir diskd /a 100 16 256 Q1=64 Q2=72\n",
                "t.conf:2: cache_dir: Q1=64 is not used by cuttle, ignored\n");
}

static void
range_offset_limits_are_sizes_with_acls(void **state)
{
    struct conf *c = read_text(PORT "acl big dstdomain .example\nrange_offset_limit none big\n"
                                    "range_offset_limit 10 KB\n");

    assert_reads(c);
    assert_int_equal(c->n_range_limits, 2);
    assert_int_equal(c->range_limits[0].bytes, -1);
    assert_int_equal(c->range_limits[0].condition.n, 1);
    assert_int_equal(c->range_limits[1].bytes, 10240);
    conf_unref(&c);
    assert_error(PORT "range_offset_limit x\n",
                 "t.conf:2: range_offset_limit: expected a size or none, and acls\n");
}

static void
what_narrows_access_is_refused_once_with_its_line(void **state)
{
    assert_error(PORT "auth_param basic program x\nauth_param basic realm y\n",
                 "t.conf:2: auth_param: not supported: nobody would be asked for a password\n");
    assert_error(PORT "never_direct allow all\n",
                 "t.conf:2: never_direct: not supported: requests would go straight to the "
                 "origins\n");
    assert_error(PORT "http_port 3129 intercept ssl-bump cert=/x\n",
                 "t.conf:2: http_port: ssl-bump is not supported: encrypted traffic would pass "
                 "without being looked at\n");
    assert_error(PORT "http_reply_access deny all\n",
                 "t.conf:2: http_reply_access: not supported: responses would pass that it "
                 "denies\n");
}

static void
a_refused_name_that_asks_for_nothing_is_fine(void **state)
{
    struct conf *c = read_text(PORT "http_reply_access allow all\nmiss_access allow all\n"
                                    "never_direct deny all\nurl_rewrite_program none\n"
                                    "delay_pools 0\nfollow_x_forwarded_for deny all\n"
                                    "request_header_access Via allow all\ncachemgr_passwd none\n");

    assert_reads(c);
    conf_unref(&c);
    c = read_text(PORT "tcp_incoming_address 0.0.0.0\nudp_outgoing_address 255.255.255.255\n"
                       "wccp_router 0.0.0.0\nemulate_httpd_log off\nuseragent_log none\n"
                       "ident_lookup_access deny all\nstore_id_program none\n"
                       "collapsed_forwarding_access allow all\nspoof_client_ip deny all\n");
    assert_reads(c);
    conf_unref(&c);
    c = read_text(PORT "miss_access allow all\nmiss_access deny all\nnever_direct deny a b\n"
                       "request_header_access Via deny all\n");
    assert_int_equal(c->n_errors, 2);
    conf_unref(&c);
}

/* Each of them changes what is sent, stored or logged, from where, or who may do what. */
static void
what_matters_and_is_not_there_is_refused(void **state)
{
    static const char *const lines[][2] = {{"tcp_incoming_address", "192.0.2.1"},
                                           {"udp_outgoing_address", "192.0.2.1"},
                                           {"store_id_program", "/usr/lib/squid/store_id"},
                                           {"deny_info", "http://192.0.2.1/login outsiders"},
                                           {"error_map", "http://192.0.2.1/404 404"},
                                           {"reply_header_add", "X-Frame-Options DENY"},
                                           {"collapsed_forwarding_access", "deny all"},
                                           {"httpd_accel_host", "virtual"},
                                           {"wccp2_router", "192.0.2.1"},
                                           {"clientside_tos", "0x20 all"},
                                           {"tcp_outgoing_tos", "0x20 all"},
                                           {"mark_client_packet", "0x20 all"},
                                           {"spoof_client_ip", "allow all"},
                                           {"emulate_httpd_log", "on"},
                                           {"ident_lookup_access", "allow all"},
                                           {"log_fqdn", "on"},
                                           {"referer_log", "/var/log/squid/referer.log"},
                                           {"useragent_log", "/var/log/squid/useragent.log"},
                                           {"fake_user_agent", "none/1.0"}};

    for (unsigned i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_mistake(lines[i][0], lines[i][1]);
    assert_error(PORT "tcp_incoming_address 192.0.2.1\n",
                 "t.conf:2: tcp_incoming_address: not supported: the ports would be open on all "
                 "addresses; write \"http_port ADDRESS:PORT\"\n");
    assert_note(PORT "always_direct deny all\n",
                "t.conf:2: always_direct: not used by cuttle, ignored: there are no parents, so "
                "every request goes straight to its origin, whatever it says\n");
}

static void
a_mask_is_for_ipv4_and_a_prefix_for_ipv6(void **state)
{
    static const struct {
        const char *words;
        unsigned v4_bits, v6_bits;
    } masks[] = {{"255.255.255.0", 24, 48},
                 {"24", 24, 48},
                 {"0.0.0.0", 0, 48},
                 {"255.255.255.255", 32, 128},
                 {"255.255.0.0 64", 16, 64}};
    static const char *const wrong[] = {"", "255.0.255.0", "33", "24 129", "24 48 8", "/24", "x"};

    for (unsigned i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        char text[100];
        struct conf *c;

        snprintf(text, sizeof text, PORT "client_netmask %s\n", masks[i].words);
        c = read_text(text);
        assert_reads(c);
        assert_int_equal(c->client_netmask.v4_bits, masks[i].v4_bits);
        assert_int_equal(c->client_netmask.v6_bits, masks[i].v6_bits);
        conf_unref(&c);
    }
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_mistake("client_netmask", wrong[i]);
}

static void
a_umask_is_octal(void **state)
{
    struct conf *c = read_text(PORT "umask 0077\n");

    assert_int_equal(c->umask, 0077);
    conf_unref(&c);
    c = read_text(PORT);
    assert_int_equal(c->umask, 0027);
    conf_unref(&c);
    assert_error(PORT "umask 028\n",
                 "t.conf:2: umask: expected an octal number such as 027, found \"028\"\n");
    assert_error(PORT "umask 1777\n", "t.conf:2: umask: 1777 is above 777\n");
    assert_mistake("umask", "00777");
}

static void
older_names_work_with_a_hint(void **state)
{
    struct conf *c = read_text(PORT "max_filedesc 8192\ncache_access_log /a/b\n"
                                    "no_cache deny all\npconn_timeout 3 minutes\n");

    assert_reads(c);
    assert_int_equal(c->max_filedescriptors, 8192);
    assert_string_equal(c->access_logs[0].where, "/a/b");
    assert_int_equal(c->cache.n, 1);
    assert_int_equal(c->server_idle_pconn_timeout_ms, 180000);
    assert_non_null(
        strstr(text_of(&c->notes), "t.conf:2: max_filedesc: is called max_filedescriptors now\n"));
    conf_unref(&c);
}

static void
ports_have_addresses_and_options(void **state)
{
    struct conf *c = read_text("http_port 3128\nhttp_port 192.0.2.1:3129 transparent\n"
                               "http_port [2001:db8::1]:3130 name=six tcpkeepalive=60,30,3\n"
                               "http_port localhost:3131 accel defaultsite=a\n"
                               "http_port 3132 tproxy\n");
    char text[ADDR_TEXT_MAX];

    assert_reads(c);
    assert_int_equal(c->n_ports, 5);
    assert_true(c->ports[0].any);
    assert_int_equal(addr_port(&c->ports[0].address), 3128);
    assert_string_equal(c->ports[0].name, "3128");
    assert_true(c->ports[1].intercept);
    addr_format_port(&c->ports[1].address, text);
    assert_string_equal(text, "192.0.2.1:3129");
    addr_format_port(&c->ports[2].address, text);
    assert_string_equal(text, "[2001:db8::1]:3130");
    assert_string_equal(c->ports[2].name, "six");
    assert_true(c->ports[3].accel);
    assert_true(addr_is_loopback(&c->ports[3].address));
    assert_true(c->ports[4].tproxy);
    conf_unref(&c);
}

static void
what_diverted_connections_need_is_understood(void **state)
{
    struct conf *c = read_text("http_port 3129 intercept\nhost_verify_strict on\n"
                               "client_dst_passthru off\n");

    assert_reads(c);
    assert_true(c->host_verify_strict);
    assert_non_null(strstr(text_of(&c->notes),
                           "t.conf:3: client_dst_passthru: not used by cuttle, ignored: a diverted "
                           "connection always goes on to where its client was going\n"));
    conf_unref(&c);
    c = read_text(PORT);
    assert_false(c->host_verify_strict);
    conf_unref(&c);
}

static void
a_port_that_is_none_is_refused(void **state)
{
    static const char *const wrong[] = {"",
                                        "65536",
                                        "a",
                                        ":3128",
                                        "proxy.example.org:3128",
                                        "::1:3128",
                                        "[192.0.2.1]:1",
                                        "192.0.2.1:",
                                        "-1",
                                        "3128 sll-bump",
                                        "3128 intercept tproxy",
                                        "3128 intercept vhost",
                                        "3128 name=",
                                        "3128 cert=/x",
                                        "3128 intercept tls-cert=/x key=/y",
                                        "3128 ssl-bump cert=/x key=/y",
                                        "3128 connection-auth=off",
                                        "3128 require-proxy-header"};

    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_mistake("http_port", wrong[i]);
    assert_error(
        "http_port 3128 cert=/x\n",
        "t.conf:1: http_port: cert is for TLS to clients, which is not supported; expected "
        "a port for plain HTTP\n");
    assert_note("http_port 3128 connection-auth=on\n", "connection-auth is not used by cuttle");
}

/* On another machine, or as somebody else, the name may be anybody's. */
static void
root_becomes_only_an_account_that_there_is(void **state)
{
    if (geteuid() != 0) {
        assert_note(PORT "cache_effective_user no-such-user\n",
                    "cache_effective_user: has no effect: the process is not root\n");
        return;
    }
    assert_error(PORT "cache_effective_user no-such-user\n",
                 "t.conf:2: cache_effective_user: expected a user of this machine, found "
                 "\"no-such-user\"\n");
    assert_error(PORT "cache_effective_group no-such-group\n",
                 "t.conf:2: cache_effective_group: expected a group of this machine, found "
                 "\"no-such-group\"\n");
    assert_error(PORT "cache_effective_group root wheel\n",
                 "t.conf:2: cache_effective_group: expected one value, found \"wheel\" behind "
                 "it\n");
}

static void
a_file_without_a_port_is_refused(void **state)
{
    assert_error("via off\nvia on\n",
                 "t.conf:2: http_port: there is no line, so nobody could connect\n");
}

static void
lines_of_one_acl_add_up(void **state)
{
    struct conf *c = read_text(PORT "acl net src 10.0.0.0/8\t# ours\nacl net src 192.0.2.1 ::1\n");

    assert_reads(c);
    assert_values(c, "net", "10.0.0.0/8 192.0.2.1 ::1");
    assert_values(c, "NET", "10.0.0.0/8 192.0.2.1 ::1");
    assert_int_equal(conf_acl_find(c, "net")->place.line, 2);
    assert_null(conf_acl_find(c, "nets"));
    conf_unref(&c);
}

/* In Squid a flag holds for its line only. */
static void
a_flag_ends_with_its_line(void **state)
{
    struct conf *c = read_text(PORT "acl u url_regex -i a b\nacl u url_regex C\n"
                                    "acl u url_regex -i d +i E\nacl u url_regex F\n"
                                    "acl h req_header User-Agent -i x\n"
                                    "acl h req_header user-agent Y\n");

    assert_reads(c);
    assert_values(c, "u", "-i a b +i C -i d +i E F");
    assert_values(c, "h", "User-Agent -i x +i Y");
    conf_unref(&c);
}

static void
built_in_acls_need_no_line_and_bear_one(void **state)
{
    struct conf *c = read_text(PORT "acl CONNECT method CONNECT\nacl all src\n"
                                    "acl all src 0.0.0.0/0.0.0.0\nacl manager proto cache_object\n"
                                    "acl manager url_regex -i ^cache_object:// +i "
                                    "^https?://[^/]+/squid-internal-mgr/\n"
                                    "acl localhost src 127.0.0.1/32 192.0.2.0/24\n"
                                    "http_access allow manager localhost\n"
                                    "http_access deny to_localhost\nhttp_access deny to_linklocal\n"
                                    "http_access deny connect\nhttp_access deny all\n");

    assert_reads(c);
    assert_values(c, "all", "0.0.0.0/0 ::/0");
    assert_int_equal(conf_acl_find(c, "all")->builtin, 1);
    assert_int_equal(conf_acl_find(c, "manager")->builtin, 1);
    assert_values(c, "localhost", "127.0.0.1/32 ::1/128 127.0.0.1/32 192.0.2.0/24");
    assert_int_equal(conf_acl_find(c, "localhost")->builtin, 0);
    assert_string_equal(c->http_access.at[3].terms[0].acl, "CONNECT");
    conf_unref(&c);
    assert_error(PORT "acl localhost dst 127.0.0.1\n",
                 "t.conf:2: acl: localhost is built in with the type src\n");
}

static void
a_flag_nobody_knows_is_no_value(void **state)
{
    struct conf *c = read_text(PORT "acl a url_regex -i -- -x\nacl b dstdomain -n .example\n"
                                    "acl d method GET -x\n");

    assert_reads(c);
    assert_values(c, "a", "-i -- -x");
    conf_unref(&c);
    assert_error(PORT "acl a method -x GET\n",
                 "t.conf:2: acl: unknown flag \"-x\"; expected -i, +i or -n, or -- before the "
                 "values\n");
    assert_mistake("acl", "a dstdomain -n --foo .example");
}

static void
a_name_that_stands_in_messages_is_one(void **state)
{
    assert_error(PORT "visible_hostname a,b\n",
                 "t.conf:2: visible_hostname: expected a host name, found \"a,b\"\n");
    assert_mistake("unique_hostname", "a b");
    assert_mistake("unique_hostname", "");
}

static void
one_name_has_one_type(void **state)
{
    assert_error(PORT "acl a src 10.0.0.1\nacl a dst 10.0.0.1\n",
                 "t.conf:3: acl: a has the type src in line 2 of t.conf\n");
    struct conf *c = read_text(PORT "acl p myport 80\nacl p localport 81\n");
    assert_reads(c);
    assert_values(c, "p", "80 81");
    conf_unref(&c);
}

static void
an_acl_type_nobody_knows_is_refused(void **state)
{
    struct conf *c = read_text(PORT "acl a scr 10.0.0.1\n");

    assert_int_equal(c->n_errors, 1);
    assert_non_null(
        strstr(text_of(&c->errors),
               "t.conf:2: acl: unknown type \"scr\", did you mean src; there are src,"));
    conf_unref(&c);
}

/* at_step is for ssl_bump, rep_header for workarounds of old times: of no account without a rule.
 */
static void
an_unsupported_acl_is_refused_only_where_a_rule_uses_it(void **state)
{
    assert_note(PORT "acl step1 at_step SslBump1\n",
                "t.conf:2: acl: step1 has the type at_step, which is not supported; no rule uses "
                "it, ignored\n");
    assert_note(PORT "acl x ssl::server_name \"/nonexistent\"\n", "no rule uses it");
    assert_error(PORT "acl auth proxy_auth REQUIRED\nhttp_access allow auth\n",
                 "t.conf:3: http_access: the acl auth has the type proxy_auth (line 2 of t.conf), "
                 "which is not supported\n");
    assert_error(PORT "acl auth proxy_auth REQUIRED\nacl g any-of auth\n",
                 "t.conf:3: acl: the acl auth has the type proxy_auth (line 2 of t.conf), which is "
                 "not supported\n");
    assert_error(PORT "acl auth proxy_auth REQUIRED\naccess_log /x squid !auth\n",
                 "t.conf:3: access_log: the acl auth has the type proxy_auth (line 2 of t.conf), "
                 "which is not supported\n");
}

static void
a_rule_names_acls_that_are_there(void **state)
{
    struct conf *c = read_text(PORT "http_access deny !Safe_ports later\nacl later src 10.0.0.1\n"
                                    "acl safe_ports port 80\nhttp_access deny all\n");

    assert_reads(c);
    assert_int_equal(c->http_access.n, 2);
    assert_int_equal(c->http_access.at[0].n, 2);
    assert_true(c->http_access.at[0].terms[0].negated);
    assert_string_equal(c->http_access.at[0].terms[0].acl, "safe_ports");
    assert_false(c->http_access.at[0].terms[1].negated);
    conf_unref(&c);
    assert_error(PORT "acl Safe_ports port 80\nhttp_access deny !Safe_port\n",
                 "t.conf:3: http_access: there is no acl \"Safe_port\", did you mean "
                 "Safe_ports?\n");
    assert_error(PORT "http_access deny\n",
                 "t.conf:2: http_access: no acl behind deny; write \"all\" for everything\n");
    assert_error(PORT "cache yes\n", "t.conf:2: cache: expected allow or deny\n");
}

static void
a_group_must_not_contain_itself(void **state)
{
    struct conf *c = read_text(PORT "acl a any-of b\nacl b all-of !a\nacl d any-of e\n"
                                    "acl e any-of localhost CONNECT\n");

    assert_int_equal(c->n_errors, 2);
    assert_non_null(strstr(text_of(&c->errors), "t.conf:2: acl: a is its own member"));
    conf_unref(&c);
    assert_error(PORT "acl a any-of a\n",
                 "t.conf:2: acl: a is its own member, or its groups are nested too deep\n");
}

static void
access_that_is_open_or_shut_to_all_is_told(void **state)
{
    assert_note(PORT, "t.conf:1: http_access: there is no line, so every request is denied\n");
    assert_note(PORT "http_access allow all\n",
                "t.conf:2: http_access: whoever reaches a port may use the proxy\n");
    assert_note(PORT "http_access deny manager\n", "what it does not deny is allowed");
}

static void
refresh_patterns_are_minutes_and_options(void **state)
{
    struct conf *c = read_text(
        PORT "refresh_pattern -i \\.deb$ 129600 100% 129600 override-expire max-stale=10\n"
             "refresh_pattern . 0 20 4320 ignore-no-cache\n"
             "refresh_pattern x 99999999999 99999999% 99999999999\n");

    assert_reads(c);
    assert_int_equal(c->n_refresh, 3);
    assert_string_equal(c->refresh[0].regex, "\\.deb$");
    assert_true(c->refresh[0].ignore_case && c->refresh[0].override_expire);
    assert_int_equal(c->refresh[0].min_s, 129600 * 60);
    assert_int_equal(c->refresh[0].percent, 100);
    assert_int_equal(c->refresh[0].max_stale_s, 600);
    assert_int_equal(c->refresh[1].percent, 20);
    assert_false(c->refresh[1].ignore_case);
    assert_int_equal(c->refresh[1].max_stale_s, -1);
    assert_true(c->refresh[2].min_s <= INT32_MAX); /* delta-seconds, RFC 9111 section 1.2.2 */
    assert_non_null(strstr(text_of(&c->notes), "\"ignore-no-cache\" is not used"));
    conf_unref(&c);
    assert_error(PORT "refresh_pattern . 0 20% 4320 override-expires\n",
                 "t.conf:2: refresh_pattern: unknown option \"override-expires\"\n");
    assert_error(PORT "refresh_pattern . 0 20%\n",
                 "t.conf:2: refresh_pattern: expected [-i] REGEX MINUTES PERCENT MINUTES "
                 "[OPTIONS]\n");
}

static void
access_logs_come_in_squids_three_ways(void **state)
{
    struct conf *c = read_text(PORT "access_log /a\naccess_log stdio:/b common localhost !CONNECT\n"
                                    "access_log daemon:/c logformat=mine on-error=drop all\n"
                                    "access_log stdio:/proc/self/fd/1 json\n"
                                    "access_log none manager\n"
                                    "logformat mine  %ts \"%{User-Agent}>h\" # %tl\n"
                                    "cache_log stdio:/dev/stderr\n");

    assert_reads(c);
    assert_int_equal(c->n_access_logs, 5);
    assert_string_equal(c->access_logs[0].where, "/a");
    assert_string_equal(c->access_logs[0].format, "squid");
    assert_int_equal(c->access_logs[0].condition.n, 0);
    assert_string_equal(c->access_logs[1].where, "/b");
    assert_string_equal(c->access_logs[1].format, "common");
    assert_int_equal(c->access_logs[1].condition.n, 2);
    assert_true(c->access_logs[1].condition.terms[1].negated);
    assert_string_equal(c->access_logs[2].format, "mine");
    assert_int_equal(c->access_logs[2].condition.n, 1);
    assert_string_equal(c->access_logs[3].where, "stdout");
    assert_string_equal(c->access_logs[3].format, "json");
    assert_string_equal(c->access_logs[4].where, "none");
    assert_int_equal(c->access_logs[4].condition.n, 1);
    assert_string_equal(c->logformats[0].text, "%ts \"%{User-Agent}>h\" # %tl");
    assert_string_equal(c->cache_log, "stderr");
    conf_unref(&c);
    assert_error(PORT "access_log /a mine\n",
                 "t.conf:2: access_log: there is no logformat \"mine\"\n");
    assert_error(PORT "access_log syslog:local4.info squid\n",
                 "t.conf:2: access_log: syslog is not supported; expected a file, "
                 "stdio:/dev/stdout or none\n");
    assert_mistake("access_log", "udp://192.0.2.1:514 squid");
    assert_mistake("access_log", "/a rotates=3 all");
    assert_note(PORT "logformat squid %ts\n", "squid is built in, the line is ignored");
}

static void
name_servers_add_up(void **state)
{
    struct conf *c = read_text(PORT "dns_nameservers 192.0.2.1 192.0.2.2:5353\n"
                                    "dns_nameservers 2001:db8::1 [2001:db8::2]:53\n");

    assert_reads(c);
    assert_string_equal(c->dns_nameservers,
                        "192.0.2.1 192.0.2.2:5353 2001:db8::1 [2001:db8::2]:53");
    conf_unref(&c);
}

static void
conditions_and_macros_are_squids(void **state)
{
    struct conf *c = read_text(PORT "if ${process_number} = 1\nvia off\nelse\nworkers 2\nendif\n"
                                    "if false\nif true\nno such line\nendif\nworkers 3\nendif\n"
                                    "visible_hostname ${service_name}-${process_number}.x\n");

    assert_reads(c);
    assert_false(c->via);
    assert_int_equal(c->workers, 1);
    assert_string_equal(c->visible_hostname, "cuttle-1.x");
    conf_unref(&c);
    assert_error(PORT "if true\n", "t.conf:2: an if has no endif\n");
    assert_error(PORT "endif\n", "t.conf:2: endif: there is no if before it\n");
    assert_error(PORT "if false\nvia off\nelse if true\nendif\n",
                 "t.conf:4: else: expected nothing behind it, found \"if\"\n");
    assert_error(PORT "if maybe\nendif\n",
                 "t.conf:2: if: expected true, false or number = number\n");
}

static void
files_are_included_by_name_pattern_and_folder(void **state)
{
    struct conf *c;

    mkdir(path_of("conf.d"), 0700);
    mkdir(path_of("conf.d/folder.conf"), 0700);
    put_file("conf.d/b.conf", "workers 3\n");
    put_file("conf.d/a.conf", "workers 2\nacl x src \"nets\"\n");
    put_file("conf.d/nets", "10.0.0.0/8 # ours\n# 11.0.0.0/8\n\n192.0.2.1\r\n");
    put_file("main.conf", PORT "include conf.d/?.conf\nvia off\n");
    c = conf_read(path_of("main.conf"));
    assert_reads(c);
    assert_int_equal(c->workers, 3); /* in the order of their names */
    assert_false(c->via);
    assert_values(c, "x", "10.0.0.0/8 192.0.2.1");
    conf_unref(&c);
    put_file("main.conf", PORT "include conf.d\ninclude conf.d/none*\n");
    c = conf_read(path_of("main.conf"));
    assert_reads(c);
    assert_int_equal(c->workers, 3);
    assert_non_null(strstr(text_of(&c->notes), "none*: no such file"));
    conf_unref(&c);
}

static void
mistakes_in_included_files_have_their_place(void **state)
{
    struct buf expected = {0};
    struct conf *c;

    put_file("sub.conf", "\nvia maybe\ninclude sub2.conf\n");
    put_file("main.conf", "include sub.conf\nworkers x\ninclude gone/*.conf\n" PORT);
    c = conf_read(path_of("main.conf"));
    buf_addf(&expected,
             "%s/sub.conf:2: via: expected on or off, found \"maybe\"\n"
             "%s/sub.conf:3: include: %s/sub2.conf: No such file or directory\n"
             "%s/main.conf:2: workers: expected a number, found \"x\"\n"
             "%s/main.conf:3: include: %s/gone/*.conf: no such folder\n",
             folder, folder, folder, folder, folder, folder);
    assert_string_equal(text_of(&c->errors), text_of(&expected));
    conf_unref(&c);
    buf_free(&expected);
}

static void
a_file_that_includes_itself_ends(void **state)
{
    struct conf *c;

    put_file("self.conf", "include self.conf\ninclude self.conf\n");
    c = conf_read(path_of("self.conf"));
    assert_true(c->n_errors > 0);
    assert_non_null(strstr(text_of(&c->errors), "nested more than 16 deep"));
    conf_unref(&c);
}

static void
what_is_no_plain_file_is_not_read(void **state)
{
    struct conf *c;

    put_file("main.conf", PORT "acl a src \"/dev/zero\"\nacl b src \"/\"\ninclude /dev/null\n");
    c = conf_read(path_of("main.conf"));
    assert_int_equal(c->n_errors, 3);
    assert_non_null(strstr(text_of(&c->errors), ":2: acl: /dev/zero: is not a plain file\n"));
    assert_non_null(strstr(text_of(&c->errors), ":3: acl: /: is a folder\n"));
    conf_unref(&c);
    c = conf_read(path_of("missing.conf"));
    assert_int_equal(c->n_errors, 1);
    assert_non_null(strstr(text_of(&c->errors), "No such file or directory"));
    conf_unref(&c);
}

static void
a_list_of_a_hundred_thousand_values_is_read(void **state)
{
    FILE *f = fopen(path_of("list"), "w");
    struct conf *c;

    assert_non_null(f);
    for (unsigned i = 0; i < 100000; i++)
        fprintf(f, ".d%u.example.org\n", i);
    fclose(f);
    put_file("main.conf", PORT "acl big dstdomain 'list'\n");
    c = conf_read(path_of("main.conf"));
    assert_reads(c);
    assert_int_equal(conf_acl_find(c, "big")->n_values, 100000);
    assert_string_equal(conf_acl_find(c, "big")->values[99999], ".d99999.example.org");
    conf_unref(&c);
}

static void
messages_are_bounded(void **state)
{
    struct buf text = {0};
    struct conf *c;

    for (unsigned i = 0; i < 5000; i++)
        BUF_ADD(&text, "nonsense\n");
    c = conf_read_text("t.conf", buf_span(&text));
    assert_int_equal(c->n_errors, 5001);
    assert_true(c->errors.n < 32768);
    assert_non_null(strstr(text_of(&c->errors), "t.conf: 4801 further mistakes\n"));
    conf_unref(&c);
    buf_free(&text);
}

static void
assert_dump_reads_back(const struct conf *c)
{
    struct buf once = {0}, twice = {0};
    struct conf *again;

    conf_dump(c, &once);
    again = conf_read_text("dump", buf_span(&once));
    assert_reads(again);
    conf_dump(again, &twice);
    assert_string_equal(text_of(&twice), text_of(&once));
    conf_unref(&again);
    buf_free(&once);
    buf_free(&twice);
}

static void
the_dump_reads_back_to_the_same(void **state)
{
    struct conf *c = conf_read(NULL);

    assert_dump_reads_back(c);
    conf_unref(&c);
    c = read_text("http_port 3128 intercept\nhttp_port [::1]:1 name=x\nacl u url_regex -i a\\ b\\\n"
                  "\nacl u url_regex C\nacl localhost src 10.0.0.1\nacl empty src\n"
                  "acl p port 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\nhttp_access deny !p u\n"
                  "http_access allow localhost\nhttp_access deny all\nsend_hit deny u\n"
                  "logformat f \"a # b\"\naccess_log \"/my logs/a\" f localhost\n"
                  "access_log none\nhosts_file none\npid_filename /x/y\nforwarded_for truncate\n"
                  "quick_abort_min -1\ncache_mem 12345678\n"
                  "dns_nameservers ::1\ncache_log /dev/stdout\n"
                  "refresh_pattern \"a b\" 1 2% 3 store-stale refresh-ims max-stale=0\n");
    assert_reads(c);
    assert_dump_reads_back(c);
    conf_unref(&c);
}

static void
a_snapshot_lives_as_long_as_somebody_holds_it(void **state)
{
    struct conf *c = read_text(PORT), *held = c;

    conf_ref(held);
    conf_unref(&c);
    assert_null(c);
    assert_int_equal(held->n_ports, 1);
    conf_unref(&held);
}

static void
a_reload_tells_what_needs_a_restart(void **state)
{
    struct conf *a = read_text(PORT "workers 2\nvia on\n"),
                *b = read_text(PORT "workers 3\nvia off\n");
    struct buf out = {0};

    conf_restart_notes(a, b, &out);
    assert_string_equal(text_of(&out),
                        "t.conf: workers: the change holds from the next start on\n");
    buf_free(&out);
    conf_unref(&a);
    conf_unref(&b);
}

static void
the_manual_tells_default_range_and_reload(void **state)
{
    struct buf manual = {0};

    conf_manual(&manual);
    assert_non_null(strstr(text_of(&manual), ".BR cache_mem \" size\"\n"));
    assert_non_null(strstr(manual.at, "Default: 256 MB. From 8 MB to 1 TB, or 0. A reconfigure"));
    assert_non_null(strstr(manual.at, ".B ssl_bump\n"));
    buf_free(&manual);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_is_safe_and_reads_without_a_note),
        cmocka_unit_test(what_a_file_leaves_out_has_squids_defaults),
        cmocka_unit_test(values_are_taken_with_their_units),
        cmocka_unit_test(a_value_out_of_range_names_both),
        cmocka_unit_test(a_wrong_value_says_what_was_expected),
        cmocka_unit_test(ten_mistakes_give_ten_messages_with_lines),
        cmocka_unit_test(an_unknown_directive_is_refused_with_a_hint),
        cmocka_unit_test(a_message_stays_one_line_whatever_the_word),
        cmocka_unit_test(a_cache_dir_of_any_type_is_one_file),
        cmocka_unit_test(no_option_of_a_cache_dir_is_passed_over_in_silence),
        cmocka_unit_test(range_offset_limits_are_sizes_with_acls),
        cmocka_unit_test(what_only_tunes_is_taken_with_one_note),
        cmocka_unit_test(what_narrows_access_is_refused_once_with_its_line),
        cmocka_unit_test(a_refused_name_that_asks_for_nothing_is_fine),
        cmocka_unit_test(what_matters_and_is_not_there_is_refused),
        cmocka_unit_test(a_mask_is_for_ipv4_and_a_prefix_for_ipv6),
        cmocka_unit_test(a_umask_is_octal),
        cmocka_unit_test(older_names_work_with_a_hint),
        cmocka_unit_test(ports_have_addresses_and_options),
        cmocka_unit_test(what_diverted_connections_need_is_understood),
        cmocka_unit_test(a_port_that_is_none_is_refused),
        cmocka_unit_test(root_becomes_only_an_account_that_there_is),
        cmocka_unit_test(a_file_without_a_port_is_refused),
        cmocka_unit_test(lines_of_one_acl_add_up),
        cmocka_unit_test(a_flag_ends_with_its_line),
        cmocka_unit_test(built_in_acls_need_no_line_and_bear_one),
        cmocka_unit_test(a_flag_nobody_knows_is_no_value),
        cmocka_unit_test(a_name_that_stands_in_messages_is_one),
        cmocka_unit_test(one_name_has_one_type),
        cmocka_unit_test(an_acl_type_nobody_knows_is_refused),
        cmocka_unit_test(an_unsupported_acl_is_refused_only_where_a_rule_uses_it),
        cmocka_unit_test(a_rule_names_acls_that_are_there),
        cmocka_unit_test(a_group_must_not_contain_itself),
        cmocka_unit_test(access_that_is_open_or_shut_to_all_is_told),
        cmocka_unit_test(refresh_patterns_are_minutes_and_options),
        cmocka_unit_test(access_logs_come_in_squids_three_ways),
        cmocka_unit_test(name_servers_add_up),
        cmocka_unit_test(conditions_and_macros_are_squids),
        cmocka_unit_test(files_are_included_by_name_pattern_and_folder),
        cmocka_unit_test(mistakes_in_included_files_have_their_place),
        cmocka_unit_test(a_file_that_includes_itself_ends),
        cmocka_unit_test(what_is_no_plain_file_is_not_read),
        cmocka_unit_test(a_list_of_a_hundred_thousand_values_is_read),
        cmocka_unit_test(messages_are_bounded),
        cmocka_unit_test(the_dump_reads_back_to_the_same),
        cmocka_unit_test(a_snapshot_lives_as_long_as_somebody_holds_it),
        cmocka_unit_test(a_reload_tells_what_needs_a_restart),
        cmocka_unit_test(the_manual_tells_default_range_and_reload),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
