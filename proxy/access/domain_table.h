/* proxy/access/domain_table.h - many domains, one question: is this host one of them, or below one
 * of them?
 *
 * "example.com" is that host, ".example.com" it and everything below it. Case and one trailing dot
 * do not count. Add all, then ask from any thread; a question costs one hash per label of the host,
 * whatever the number of domains. */
#ifndef PROXY_ACCESS_DOMAIN_TABLE_H
#define PROXY_ACCESS_DOMAIN_TABLE_H

#include "base/buf.h"

struct domain_slot;
struct domain_table { /* zeroed: empty */
    struct domain_slot *slots;
    unsigned n, n_slots; /* n_slots is a power of two, at least twice n */
    struct buf names;    /* the bytes of all names, one after the other */
};

void domain_table_add(struct domain_table *t, struct span domain,
                      bool with_below); /* without its leading dot */
bool domain_table_has(const struct domain_table *t, struct span host,
                      bool below); /* below: a name, look at its parents too */
void domain_table_free(struct domain_table *t);

#endif
