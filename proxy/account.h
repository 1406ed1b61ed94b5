/* proxy/account.h - who the process is once ports and logs are open. For root only. */
#ifndef PROXY_ACCOUNT_H
#define PROXY_ACCOUNT_H

#include <stdbool.h>
#include <sys/types.h>

struct account {
    const char *user; /* NULL: stays root */
    uid_t uid;
    gid_t gid;
};

/* Names out of a configuration, either NULL. False, with a line on standard error, when one is not
 * known. */
bool account_find(const char *user, const char *group, struct account *out);
/* A file that root has made, and that this account must be able to open again. */
void account_give(const struct account *a, const char *path);
/* For good. False, with a line on standard error, when the system does not let it: nobody should go
 * on as root then. */
bool account_become(const struct account *a);

#endif
