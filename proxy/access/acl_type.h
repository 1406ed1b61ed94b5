/* proxy/access/acl_type.h - what an acl type is to acl.c (private to proxy/access).
 *
 * A type compiles the values of one acl once, judging each of them, and then answers for facts
 * without allocating, locking or asking anybody. acl_types.def lists the types; each is one
 * acl_type_<name>. */
#ifndef PROXY_ACCESS_ACL_TYPE_H
#define PROXY_ACCESS_ACL_TYPE_H

#include "proxy/access/acl.h"

/* NEEDS_DST: the addresses of the name decide, and nobody has asked for them yet. FAILED: it cannot
 * be known (a regular expression ran into its limit): a list then denies, whatever the rule says.
 */
enum acl_match { ACL_MATCH_NO, ACL_MATCH_YES, ACL_MATCH_NEEDS_DST, ACL_MATCH_FAILED };

/* A property of acls: names in a dst list, compared as text, match less than Squid's would. */
enum { ACL_BY_TEXT = 1 };

struct acl_build { /* one acl while it is compiled */
    const struct conf_acl *acl;
    struct buf *errors;
    unsigned n_problems;
    unsigned properties; /* ACL_BY_TEXT, set by compile */
    unsigned needs;      /* what it may ask for: ACL_NEEDS(...), set by compile */
};

/* Adds "file:line: acl: NAME: ..." and counts it; of one acl only the first few are told, a list
 * may have 100,000 values. */
void acl_problem(struct acl_build *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

struct acl_type {
    const char *name;
    void *(*compile)(struct acl_build *b); /* never NULL; what it returns is only used when there
                                              was no problem */
    enum acl_match (*match)(const void *data, const struct acl_facts *f);
    void (*free)(void *data);
};

/* A type with two names is declared twice, which C allows. */
#define ACL_TYPE(id, name) extern const struct acl_type acl_type_##id;
#define ACL_GROUP(name, all)
#define ACL_LATER(name)
#include "proxy/access/acl_types.def"
#undef ACL_TYPE
#undef ACL_GROUP
#undef ACL_LATER

#endif
