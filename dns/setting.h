/* dns/setting.h - how names are asked: of which servers, with how much patience, and with what
 * behind a short name. Immutable once made; a reload makes another one.
 *
 * A name without a dot has several candidates: completed with each domain of the search list, then
 * as it is (append_domain: completed only). */
#ifndef DNS_SETTING_H
#define DNS_SETTING_H

#include "base/buf.h"
#include "base/list.h"
#include "dns/name.h"
#include "dns/name_server.h"

enum { SEARCH_MOST = 8, SERVERS_MOST = 32 };

struct setting {
    struct list link;  /* resolver's retired ones */
    unsigned n_untold; /* lookups under it whose askers wait */
    int64_t timeout_ms, retransmit_ms;
    int64_t next_ms; /* a silent server has this long before the next is asked as well */
    bool v4_first, completed_only;
    unsigned n_servers; /* 0: every question fails */
    struct name_server *servers[SERVERS_MOST];
    unsigned n_search;
    char *search[SEARCH_MOST];
};

/* Nothing of o is kept. local_failures: name_server.h. */
struct setting *setting_new(struct loop *loop, const struct resolver_options *o,
                            uint64_t *local_failures);
/* Not from inside a flight's landing; lands those in the air with NULL. */
void setting_free(struct setting **s);
/* Servers and completions in words: options with equal words get equal answers. */
void setting_describe(const struct resolver_options *o, struct buf *out);
/* false: too long, as completed. */
bool setting_candidate(const struct setting *s, const struct dns_name *name, unsigned candidate,
                       char out[NAME_MAX_BYTES + 1]);
bool setting_candidate_is_last(const struct setting *s, const struct dns_name *name,
                               unsigned candidate);

#endif
