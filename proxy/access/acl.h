/* proxy/access/acl.h - access rules compiled from plain data; they match facts, not exchanges.
 *
 * acl_set_new compiles all acls once per configuration (regular expressions, domains, networks);
 * lists refer to them. Checking allocates nothing and asks nobody: a rule that cannot be judged by
 * what is known says what it needs; get it, fill in the facts, check again. Not each directive has
 * the time for that: ruled.def says which, and what one cannot wait for is refused with its line.
 */
#ifndef PROXY_ACCESS_ACL_H
#define PROXY_ACCESS_ACL_H

#include "base/addr.h"
#include "base/buf.h"
#include "conf/conf.h"
#include "http/message.h"

/* A need is never a match nor a mismatch. Here attach a log-in, a reverse name, a helper's answer:
 * each is an answer here, a fact below that also says when it could not be had, an acl type that
 * asks for it, and its way to be got (proxy/exchange/needs.c). */
enum acl_answer {
    ACL_DENY,
    ACL_ALLOW,
    ACL_NEED_DST /* the addresses of the host */
};
#define ACL_NEEDS(answer) (1u << (answer)) /* sets of needs are bits */

enum ruled { /* directives that rules decide */
#define RULED(id, name, when_empty, waits_for) RULED_##id,
#include "proxy/access/ruled.def"
#undef RULED
};

struct acl_facts {
    struct addr client;    /* peer, with its port */
    struct addr local;     /* our end, with the port it came in on */
    const char *port_name; /* http_port name=, or NULL */
    enum method method;
    struct span method_text;
    struct span scheme, host; /* of the target URI, lower case; host "" when there is none */
    struct addr host_literal; /* AF_UNSPEC for names */
    uint16_t port;
    struct span url;             /* canonical target URI */
    struct span path;            /* path and query */
    bool is_manager;             /* the request is for our own pages */
    const struct fields *fields; /* of the request; may be NULL */
    /* Its lines, which the request has no more: they are for the rules and for nobody else. */
    struct fields proxy_authorization;
    const struct addr
        *destination; /* where a diverted connection was going; NULL: none, addresses decide */
    const struct addr *dst; /* addresses the name has; NULL: not asked yet */
    unsigned n_dst;
    bool dst_known; /* dst and n_dst are final (0 when resolving failed) */
    int64_t wall_s;
};

struct acl_set;
struct acl_list;

/* Compiles; problems are added to errors as "file:line: acl: what" lines and counted in the result.
 * *out is usable only when it returns 0. */
unsigned acl_set_new(const struct conf *c, struct buf *errors, struct acl_set **out);
void acl_set_free(struct acl_set **s);
/* A list such as http_access. No rule matches: the opposite of the last rule. */
unsigned acl_list_new(struct acl_set *s, const struct conf_rules *rules, enum ruled directive,
                      struct buf *errors, struct acl_list **out);
void acl_list_free(struct acl_list **l);
enum acl_answer acl_list_check(const struct acl_list *l, const struct acl_facts *f);
/* All that some request may need for it: with that known beforehand, no check answers a need. */
unsigned acl_list_needs(const struct acl_list *l);
/* One rule whose terms all hold, of a directive that waits for nothing. */
struct acl_cond;
unsigned acl_cond_new(struct acl_set *s, const struct conf_rule *r, enum ruled directive,
                      struct buf *errors, struct acl_cond **out);
void acl_cond_free(struct acl_cond **c);
bool acl_cond_holds(const struct acl_cond *c, const struct acl_facts *f);

/* refresh_pattern: which line matches this URL? Index into conf->refresh, or -1. */
struct refresh_set;
unsigned refresh_set_new(const struct conf *c, struct buf *errors, struct refresh_set **out);
void refresh_set_free(struct refresh_set **s);
int refresh_set_match(const struct refresh_set *s, struct span url);

#endif
