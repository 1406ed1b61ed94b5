/* proxy/access/acl_set.h - compiled acls and the terms of rules (private to proxy/access). */
#ifndef PROXY_ACCESS_ACL_SET_H
#define PROXY_ACCESS_ACL_SET_H

#include "proxy/access/acl_type.h"

enum { ACL_NESTED_MOST = 16 }; /* groups in groups */

struct acl;

struct acl_term {
    const struct acl *acl;
    bool negated;
};

struct acl {
    char *name;
    char *type_name;
    const struct acl_type *type; /* NULL: a group, or a type we do not have */
    void *data;
    bool is_manager;            /* the built-in `manager` */
    bool is_group, all;         /* all-of, else any-of */
    const char *missing;        /* a type we do not have, here or in a member */
    unsigned properties, needs; /* of a group: of its members as well */
    unsigned n_members;
    struct acl_term *members;
};

/* By name, exactly if possible, else in any case, as Squid does; NULL when there is none. */
const struct acl *acl_set_find(const struct acl_set *s, const char *name);
enum acl_match acl_match_one(const struct acl *a, const struct acl_facts *f);

#endif
