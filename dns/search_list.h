/* dns/search_list.h - the domains that complete names without a dot: LOCALDOMAIN in the
 * environment, else the last `search` or `domain` line of /etc/resolv.conf (resolv.conf(5)). */
#ifndef DNS_SEARCH_LIST_H
#define DNS_SEARCH_LIST_H

/* Calls found for each, in order. No file, no domains: nothing is called. */
void search_list_read(void (*found)(void *owner, const char *domain), void *owner);

#endif
