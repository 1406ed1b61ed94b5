/* conf/conf.h - a parsed configuration: plain data, immutable, counted.
 *
 * Times are milliseconds (_ms) or seconds (_s), sizes bytes. Strings are owned by the snapshot. A
 * running exchange keeps its own reference; a reload swaps the pointer. Errors are "file:line:
 * directive: what was expected", one line each, all of them, not only the first. */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/ref.h"

struct conf_place {
    const char *file;
    unsigned line;
};

struct conf_acl {            /* one name; several lines of one name add values */
    const char *name, *type; /* type as written: "src", "dstdomain", ... */
    struct conf_place place;
    char **values; /* words, quoted files already read in; flags such as -i, +i, -n stay in their
                      order */
    unsigned n_values;
    unsigned n_builtin; /* so many of the first are predefined */
    bool ignores_case;  /* a -i holds behind the last value; for the reader */
    int builtin;        /* 1: predefined, and no line of the file has added to it */
};

struct conf_rule { /* http_access allow !a b c */
    bool allow;
    unsigned n;
    struct {
        const char *acl;
        bool negated;
    } * terms;
    struct conf_place place;
};

struct conf_rules {
    struct conf_rule *at;
    unsigned n;
};

struct conf_port {
    struct addr address; /* with port; :: or 0.0.0.0 for all */
    bool any;            /* no address was given: listen on both families */
    bool intercept, tproxy, accel;
    const char *name;
    struct conf_place place;
};

struct conf_refresh {
    const char *regex;
    bool ignore_case;
    int64_t min_s, max_s, max_stale_s;
    unsigned percent;
    bool override_expire, override_lastmod, reload_into_ims, ignore_reload, ignore_no_store,
        ignore_private, ignore_auth, ignore_must_revalidate, store_stale, refresh_ims;
    struct conf_place place;
};

struct conf_range_limit {
    int64_t bytes; /* -1: none */
    struct conf_rule condition;
    struct conf_place place;
};

struct conf_cache_dir {
    const char *path;
    int64_t bytes, min_bytes, max_bytes; /* max_bytes -1: no limit of its own */
    bool read_only;
    struct conf_place place;
};

struct conf_access_log {
    const char
        *where; /* path, "stdout", "stderr", "none" ("stdio:" and "daemon:" prefixes removed) */
    const char *format; /* "squid", "common", "combined", "json", "referrer", "useragent" or a
                           logformat name */
    struct conf_rule condition; /* acls behind it; n 0: always */
    struct conf_place place;
};

struct conf_logformat {
    const char *name, *text;
    struct conf_place place;
};

struct conf_netmask { /* bits that are kept */
    unsigned v4_bits, v6_bits;
};

enum conf_forwarded_for {
    CONF_FF_ON,
    CONF_FF_OFF,
    CONF_FF_TRANSPARENT,
    CONF_FF_DELETE,
    CONF_FF_TRUNCATE
};

struct conf {
    uint32_t magic;
    struct ref refs;
    struct arena arena; /* owns the strings */
    const char *name;   /* the file's path as given, "built-in" for the embedded default */
    /* lists */
    struct conf_port *ports;
    unsigned n_ports;
    struct conf_acl *acls;
    unsigned n_acls;
    struct acl_index *acl_index; /* for conf_acl_find */
    struct conf_rules http_access, cache, send_hit, store_miss, log_access;
    struct conf_rules miss_access,
        http_reply_access; /* empty: a file that needs them is refused, `allow all` is dropped */
    struct conf_refresh *refresh;
    unsigned n_refresh;
    struct conf_cache_dir *cache_dirs;
    unsigned n_cache_dirs;
    struct conf_range_limit *range_limits;
    unsigned n_range_limits;
    struct conf_access_log *access_logs;
    unsigned n_access_logs;
    struct conf_logformat *logformats;
    unsigned n_logformats;
    /* sizes */
    int64_t cache_mem, maximum_object_size, maximum_object_size_in_memory, minimum_object_size,
        request_header_max_size, reply_header_max_size, request_body_max_size, quick_abort_min,
        quick_abort_max;
    int64_t quick_abort_pct;
    /* times */
    int64_t connect_timeout_ms, read_timeout_ms, write_timeout_ms, request_timeout_ms,
        request_start_timeout_ms, forward_timeout_ms, client_lifetime_ms,
        client_idle_pconn_timeout_ms, server_idle_pconn_timeout_ms, pconn_lifetime_ms,
        readiness_log_interval_ms, shutdown_lifetime_ms, dns_timeout_ms, dns_retransmit_interval_ms,
        positive_dns_ttl_ms, negative_dns_ttl_ms, negative_ttl_ms, max_stale_ms,
        happy_eyeballs_connect_timeout_ms, tunnel_idle_timeout_ms;
    /* numbers */
    int64_t workers, max_filedescriptors, logfile_rotate, ipcache_size, forward_max_tries, umask;
    /* on or off */
    bool via, host_verify_strict, collapsed_forwarding, client_persistent_connections,
        server_persistent_connections, offline_mode, reload_into_ims, dns_v4_first, dns_defnames,
        strip_query_terms, log_mime_hdrs, memory_cache_off, sendfile;
    enum conf_forwarded_for forwarded_for;
    struct conf_netmask client_netmask;
    /* strings; NULL when not given */
    const char *visible_hostname, *unique_hostname, *cache_log, *pid_filename, *hosts_file,
        *dns_nameservers, *append_domain, *event_backend, *readiness_log, *cache_replacement_policy,
        *memory_replacement_policy, *cache_mgr, *cache_effective_user, *cache_effective_group;
    /* what the reader said: notes are shown at start, errors refuse the configuration; each ends in
     * '\n' */
    struct buf notes, errors;
    unsigned n_errors;
};

/* acl names are found without regard to case, as in Squid; after conf_read every rule names an acl
 * that is in `acls`, spelled as there. */
/* path NULL: the embedded default configuration (conf_default_text). Never NULL: look at n_errors.
 */
struct conf *conf_read(const char *path);
struct conf *conf_read_text(const char *name, struct span text); /* for tests and the default */
void conf_ref(struct conf *c);
void conf_unref(struct conf **held);
const char *conf_default_text(void);
void conf_dump(const struct conf *c,
               struct buf *out);   /* every directive with its value, readable again by conf_read */
void conf_manual(struct buf *out); /* cuttle.conf(5) as roff, from directives.def */
/* Adds one line for each directive that differs and holds only from a restart on; after a reload.
 */
void conf_restart_notes(const struct conf *running, const struct conf *wanted, struct buf *out);
const struct conf_acl *conf_acl_find(const struct conf *c, const char *name);

#endif
