/* Root is needed for ports and for making files, not for serving. */
#include "proxy/account.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fds.h"

bool
account_find(const char *user, const char *group, struct account *out)
{
    const struct passwd *u = user ? getpwnam(user) : NULL;
    const struct group *g = group ? getgrnam(group) : NULL;

    if ((user && !u) || (group && !g)) {
        fprintf(stderr, "cuttle: there is no %s %s\n", user && !u ? "user" : "group",
                user && !u ? user : group);
        return false;
    }
    *out = (struct account){.user = user,
                            .uid = u ? u->pw_uid : geteuid(),
                            .gid = g   ? g->gr_gid
                                   : u ? u->pw_gid
                                       : getegid()};
    return true;
}

/* A link that somebody has put in its place is left alone. */
void
account_give(const struct account *a, const char *path)
{
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat s;

    if (fd < 0)
        return;
    fds_adopt(fd, FD_OTHER);
    if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_nlink == 1 && s.st_uid == 0)
        (void)!fchown(fd, a->uid, a->gid);
    fds_close(fd);
}

/* A group alone is taken without other groups: there is no user to have any. */
bool
account_become(const struct account *a)
{
    if ((a->user ? initgroups(a->user, a->gid) : setgroups(1, &a->gid)) == 0 &&
        setgid(a->gid) == 0 && setuid(a->uid) == 0)
        return true;
    fprintf(stderr, "cuttle: cannot become user %lu, group %lu: %s\n", (unsigned long)a->uid,
            (unsigned long)a->gid, strerror(errno));
    return false;
}
