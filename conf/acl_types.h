/* conf/acl_types.h - the words that may stand behind the name of an acl.
 *
 * conf only needs to know whether a word is a type, and of what kind its values are; what a type
 * matches is the business of proxy/access. */
#ifndef CONF_ACL_TYPES_H
#define CONF_ACL_TYPES_H

#include <stdbool.h>

#include "base/span.h"

struct acl_type {
    const char *name;
    bool supported; /* false: one of Squid's that cuttle does not have */
    bool is_regex;  /* takes -i and +i */
    bool has_field; /* the first value is the name of a field */
    bool is_group;  /* the values are names of acls */
};

const struct acl_type *acl_type_find(struct span name);
const char *acl_type_nearest(struct span misspelled); /* a supported one, or NULL */
bool acl_flag_is_known(struct span word);             /* -i, +i, -n, and -- which ends them */
const char *acl_types_supported(void);                /* for messages */

#endif
