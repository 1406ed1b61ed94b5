/* dns/resolv_conf.h - the system's name servers and search domains (resolv.conf(5)).
 *
 * Read here because c-ares tells only what it was given itself since 1.20 or so, not what it found.
 * Each `nameserver` line adds one; of `search` and `domain` the last line counts. What else is
 * there, and what is too much, is passed over. */
#ifndef DNS_RESOLV_CONF_H
#define DNS_RESOLV_CONF_H

#include "base/buf.h"

enum { RESOLV_SERVERS_MOST = 8, RESOLV_DOMAINS_MOST = 8 };

struct resolv_conf { /* borrows from the text */
    unsigned n_servers, n_domains;
    struct span servers[RESOLV_SERVERS_MOST], domains[RESOLV_DOMAINS_MOST];
};

struct resolv_conf resolv_conf_read(struct span text);
/* Reads /etc/resolv.conf into text, the caller's; LOCALDOMAIN in the environment takes the place of
 * its domains. No file: nothing is known. */
struct resolv_conf resolv_conf_of_system(struct buf *text);

#endif
