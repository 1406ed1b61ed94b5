/* proxy/exchange/states.h - the exchange as its steps see it, and its states. Private to
 * proxy/exchange. */
#ifndef PROXY_EXCHANGE_STATES_H
#define PROXY_EXCHANGE_STATES_H

#include "cache/reuse.h"
#include "proxy/exchange/exchange.h"
#include "proxy/net/body_writer.h"
#include "proxy/net/dial.h"
#include "proxy/tunnel/tunnel.h"

#define EXCHANGE_MAGIC 0xe8c4a19eu
#define EXCHANGE_LENT 2048

enum step { STEP_NEXT, STEP_WAIT, STEP_DONE };

struct exchange_state {
    const char *name; /* "looking up": stands in log lines */
    enum step (*step)(struct exchange *x);
};

enum how { /* where the response came from: log tag and Cache-Status derive from it (outcome.c) */
           HOW_NONE,
           HOW_HIT,
           HOW_COLLAPSED,
           HOW_IMS_HIT,
           HOW_NEGATIVE_HIT,
           HOW_OFFLINE_HIT,
           HOW_MISS,
           HOW_CLIENT_REFRESH,
           HOW_UNMODIFIED,
           HOW_MODIFIED,
           HOW_FAIL_OLD,
           HOW_FAIL_ERROR,
           HOW_DENIED,
           HOW_TUNNEL,
           HOW_STALE_WHILE,
           HOWS
};

struct entry_source { /* a body reader as a source, cut to a range */
    struct source source;
    struct body_reader reader;
    uint64_t left; /* bytes still to give, UINT64_MAX: to the end */
    bool open;
};

struct exchange {
    uint32_t magic;
    struct list link;
    struct exchange_env *env;
    struct policy *policy;
    struct exchange_client client; /* ops NULL: nobody waits for the answer (background) */
    const struct exchange_state *state;
    bool running, again, responded, finished, background;
    struct loop_task resume;
    /* the request */
    struct arena arena;
    struct request_head request;
    struct framed framing;
    struct source *body;
    struct cache_control cc;
    struct span url;
    struct cache_key key;
    struct acl_facts facts;
    const struct refresh_rule *rule;
    struct dns_query *query;
    struct dns_answer *dst; /* when access rules needed it, or where it was going; arena */
    bool host_elsewhere;    /* diverted from an address that its host does not have */
    bool may_store, may_serve;
    /* the store */
    struct entry *stored; /* found; stale or fresh */
    struct reuse reuse;
    struct ticket *ticket;
    struct store_waiter waiter;
    bool waited, vary_miss, conditions_ours, collapsed;
    unsigned waits;
    struct entry *variants[8]; /* whose validators were sent */
    unsigned n_variants;
    /* the next hop */
    struct fill *fill;
    const struct response_head *response; /* during the head event only */
    const struct framed *response_framing;
    const struct head_times *response_times;
    struct addr server;
    unsigned server_status;
    struct fill_times times;
    bool stored_ok, asked_server;
    /* the answer */
    struct entry *entry; /* being delivered */
    struct entry_source out;
    enum how how;
    enum fault fault;
    int error;
    const char *fault_detail;
    const char *own_type; /* content type of a page of ours */
    const char *fwd;      /* RFC 9211 fwd= */
    unsigned status;
    uint64_t sent_bytes, bytes_in, body_sent;
    bool sent_whole, timed_out, aborted;
    int64_t started_ns;
    /* tunnel */
    struct dial *dial;
    bool redialled; /* after making room */
    bool dialled;   /* dialled_fd holds the outcome: a descriptor or -errno */
    int dialled_fd;
    struct tunnel *tunnel;
    struct conn *upgraded;
    struct buf early; /* from the server after a 101 */
    char lent[EXCHANGE_LENT];
};

extern const struct exchange_state ADMIT, ACCESS, VERIFY, LOOKUP, RESERVE, FORWARD, VALIDATE, JUDGE,
    DELIVER, CONNECT, TUNNEL, LOCAL, PURGE, FAIL, ANSWERED;

static inline enum step
exchange_next(struct exchange *x, const struct exchange_state *s)
{
    x->state = s;
    return STEP_NEXT;
}

enum step exchange_fail(struct exchange *x, enum fault why, int error);
void exchange_resume(struct exchange *x);
void exchange_finish(struct exchange *x); /* log and free */
void exchange_respond(struct exchange *x, const struct outgoing *o);
void exchange_drop_store(struct exchange *x);         /* ticket, waiter, stored entries */
bool exchange_denies_local(const struct exchange *x); /* see policy.local_ruled */
bool exchange_is_head(const struct exchange *x);

/* entry_source.c */
/* wake: the puller's task. false: the bytes from there on are no longer kept. */
bool entry_source_open(struct entry_source *s, struct entry *e, uint64_t from, uint64_t n_bytes,
                       struct loop *l, struct loop_task *wake);
void entry_source_close(struct entry_source *s);

/* error_page.c: a page for people; body is HTML */
void error_page_write(struct buf *b, const struct exchange *x, enum fault why);

/* outcome.c: the words for logs and Cache-Status */
const char *outcome_result(const struct exchange *x); /* "TCP_MISS" */
void outcome_cache_status(const struct exchange *x, struct buf *out);
void outcome_proxy_status(const struct exchange *x, struct buf *out);
void outcome_log(struct exchange *x);
bool outcome_is_hit(const struct exchange *x);

/* step_verify.c: requests on a port for diverted connections (exchange_client.intercepts) */
void diverted_target(struct exchange *x);     /* first: completes the target URI */
enum step diverted_admit(struct exchange *x); /* refuses, or goes on to ACCESS */
void diverted_copy(struct exchange *to, const struct exchange *from);
uint16_t exchange_server_port(const struct exchange *x); /* that is connected to */

/* step_forward.c */
extern const struct fill_events exchange_fill_events;
void exchange_validate_in_background(struct exchange *x);

#endif
