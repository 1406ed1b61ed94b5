/* proxy/exchange/states.h - the exchange as its steps see it, and its states. Private to
 * proxy/exchange. */
#ifndef PROXY_EXCHANGE_STATES_H
#define PROXY_EXCHANGE_STATES_H

#include "cache/reuse.h"
#include "cache/tier.h"
#include "http/conditional.h"
#include "http/range.h"
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
           HOW_DISK_HIT,
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
           HOWS
};

struct entry_source { /* a body reader as a source, cut to a range */
    struct source source;
    struct body_reader reader;
    uint64_t skip; /* bytes to let pass first */
    uint64_t left; /* bytes still to give, UINT64_MAX: to the end */
    bool open;
};

#define RANGES_MAX 16 /* of one request; with more it gets the whole (RFC 9110 section 14.2) */

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
    const struct field *range; /* of a GET; NULL: none */
    bool whole_asked; /* without it: the range is cut from the whole (range_offset_limit) */
    /* the store */
    struct tier_read *disk; /* under way, or to be released when its reader is open */
    bool disk_asked, from_disk;
    bool asked_plainly;   /* without the client's conditions, which are judged here then */
    struct entry *stored; /* found; stale or fresh */
    struct reuse reuse;
    struct ticket *ticket;
    struct store_waiter waiter;
    bool waited, vary_miss, conditions_ours, collapsed;
    unsigned waits;
    struct entry *variants[8]; /* whose validators were sent */
    unsigned n_variants;
    struct entry *part; /* the beginning of what is asked for; only the rest was asked for */
    /* the next hop */
    struct fill *fill;
    const struct response_head *response; /* during the head event only */
    const struct framed *response_framing;
    const struct head_times *response_times;
    struct addr server;
    unsigned server_status;
    struct fill_times times;
    bool stored_ok, spooled, asked_server;
    /* the answer */
    struct entry *entry; /* being delivered */
    struct entry_source out;
    struct byte_range *give; /* of the representation; arena */
    unsigned n_give;         /* 0: all that entry has */
    enum how how;
    enum fault fault;
    int error;
    const char *fault_detail;
    const char *own_type; /* content type of a page of ours */
    const char *fwd;      /* RFC 9211 fwd= */
    const char *unstored; /* why the answer was not stored */
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

struct arrival {                   /* an answer on its way into an entry */
    const struct response_head *r; /* cleaned */
    struct head *head;
    uint64_t length;      /* of the entry's body, UINT64_MAX: not known */
    uint64_t announced;   /* for Content-Length: not that of the body after HEAD */
    struct part part;     /* when is_part */
    bool is_part, spool;  /* spool: to the disk as it comes */
    struct entry *before; /* whose first n_before bytes come first; NULL: none */
    uint64_t n_before;
};

extern const struct exchange_state ADMIT, ACCESS, VERIFY, LOOKUP, DISK, RESERVE, FORWARD, VALIDATE,
    JUDGE, DELIVER, CONNECT, TUNNEL, LOCAL, PURGE, FAIL, ANSWERED;

static inline enum step
exchange_next(struct exchange *x, const struct exchange_state *s)
{
    x->state = s;
    return STEP_NEXT;
}

enum step exchange_fail(struct exchange *x, enum fault why, int error);
enum step exchange_tell(struct exchange *x, struct span text); /* 200 with a line of ours */
void exchange_resume(struct exchange *x);
void exchange_finish(struct exchange *x); /* log and free */
void exchange_respond(struct exchange *x, const struct outgoing *o);
void exchange_drop_store(struct exchange *x);         /* ticket, waiter, stored entries */
bool exchange_denies_local(const struct exchange *x); /* see policy.local_ruled */
bool exchange_is_head(const struct exchange *x);
bool exchange_from_store(const struct exchange *x); /* is the answer ours to cut and to judge? */
struct selected exchange_selected(const struct head *h);
uint32_t exchange_client_mark(const struct exchange *x); /* of its address; never 0 */

/* entry_source.c */
/* wake: the puller's task. false: the bytes from there on are no longer kept. */
bool entry_source_open(struct entry_source *s, struct entry *e, uint64_t from, uint64_t n_bytes,
                       struct loop *l, struct loop_task *wake);
void entry_source_close(struct entry_source *s);

/* parts.c: what is stored of it in parts, and which part is wanted */
void parts_begin(struct exchange *x); /* reads Range: sets range and whole_asked */
void parts_look(struct exchange *x);  /* sets stored to a part that answers, when there is one */
void parts_look_for_beginning(struct exchange *x); /* sets part */
void parts_change_request(struct exchange *x, struct fields *f);
/* The rest came: the arrival becomes the whole. false: it does not belong to the beginning. */
bool parts_take_rest(struct exchange *x, struct arrival *a);
/* A 206 that may be stored: as which part, behind which other? false: not at all. */
bool parts_take_part(struct exchange *x, struct arrival *a);
enum range_result parts_choose(struct exchange *x); /* sets give and n_give */

/* multipart.c: several ranges as one body (RFC 9110 section 14.6) */
struct source *multipart_new(struct exchange *x, uint64_t *length, struct span *type);

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

extern const struct fill_events exchange_fill_events; /* step_judge.c */
void exchange_validate_in_background(struct exchange *x);

#endif
