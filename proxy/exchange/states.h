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
#include "proxy/tunnel/tunnel.h"

#define EXCHANGE_MAGIC 0xe8c4a19eu

enum step { STEP_NEXT, STEP_WAIT, STEP_DONE };

enum exchange_state {
#define STATE(id, name, function, may_follow) id,
#include "proxy/exchange/states.def"
#undef STATE
    STATES
};

#define STATE(id, name, function, may_follow) enum step function(struct exchange *x);
#include "proxy/exchange/states.def"
#undef STATE

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

struct entry_source { /* a body reader as a source, cut to a range; `answer.out` of an exchange */
    struct source source;
    struct body_reader reader;
    uint64_t skip;  /* bytes to let pass first */
    uint64_t left;  /* bytes still to give, UINT64_MAX: to the end */
    bool open;      /* else the rest is being fetched, or `source.fault` says why not */
    bool own_fetch; /* which then goes on here */
    bool compares;  /* what is let pass, with what was sent */
};

#define RANGES_MAX 16 /* of one request; with more it gets the whole (RFC 9110 section 14.2) */

enum cause {
    CAUSE_CLIENT,
    CAUSE_BACKGROUND, /* nobody waits for the answer */
    CAUSE_REST        /* another exchange does: see rest.c */
};
enum life { LIFE_OPEN, LIFE_RESPONDED, LIFE_FINISHED };

/* What the driver is doing: a step asked for from inside a step only notes the wish. */
enum drive { DRIVE_STILL, DRIVE_RUNNING, DRIVE_AGAIN };

struct exchange_ranges {       /* of a GET */
    const struct field *field; /* Range; NULL: none */
    bool whole_asked;        /* without it: the range is cut from the whole (range_offset_limit) */
    struct byte_range *give; /* of the representation; arena */
    unsigned n_give;         /* 0: all that the entry has */
};

enum disk_use { DISK_NOT_ASKED, DISK_ASKED, DISK_FOUND };

/* Does it share another exchange's fetch? NEVER: what that brings is not for it, or too slow. */
enum sharing { SHARING_NOT, SHARING_WAITS, SHARING_GOT, SHARING_NEVER };

struct exchange_lookup { /* the store */
    bool may_store, may_serve;
    bool hit_denied; /* by send_hit */
    bool vary_miss;
    enum disk_use disk_use;
    struct tier_read *disk; /* under way, or to be released when its reader is open */
    struct entry *stored;   /* found; stale or fresh */
    struct reuse reuse;
    struct entry *part; /* the beginning of what is asked for; only the rest is asked for */
    struct ticket *ticket;
    struct store_waiter waiter;
    enum sharing sharing;
    unsigned n_waits;
};

/* Whose conditions go to the next hop? Others than the client's are judged here. */
enum conditions { CONDITIONS_CLIENTS, CONDITIONS_OURS, CONDITIONS_NONE };

struct exchange_hop { /* the next hop, and what it says */
    bool asked;
    bool bound; /* the answer came over a connection that is this client's alone */
    enum conditions conditions;
    struct entry *variants[8]; /* whose validators were sent */
    unsigned n_variants;
    struct fill *fill;
    const struct response_head *response; /* these three during the head event only */
    const struct framed *framing;
    const struct head_times *times;
    unsigned status;
    struct addr server;
    struct fill_times took;
};

enum kept { KEPT_NOT, KEPT_IN_STORE, KEPT_ON_DISK }; /* the latter: as it passes */

struct exchange_answer {
    enum how how;
    enum kept kept;
    unsigned status;
    struct entry *entry; /* being delivered */
    struct entry_source out;
    bool freshened;        /* a stored head with what came for this request (304, or the rest) */
    struct fields cookies; /* of the latter */
    enum fault fault;
    int error;                     /* errno; 0: none */
    enum exchange_state failed_in; /* with a fault: while doing what */
    const char *fault_detail;
    const char *own_type; /* content type of a page of ours */
    const char *fwd;      /* RFC 9211 fwd= */
    const char *unstored; /* why it was not stored */
};

struct exchange_rest {   /* what another fetch must bring of a response: see rest.c */
    struct exchange *by; /* for us */
    struct exchange *of; /* for that one, we */
    uint64_t from, end;  /* of the representation; end: UINT64_MAX: to its end */
    bool resumes;        /* by a strong validator */
};

enum ending { ENDING_NONE, ENDING_WHOLE, ENDING_ABORTED, ENDING_TIMED_OUT };

struct exchange_tally {
    int64_t started_ns;
    uint64_t sent_bytes, bytes_in, body_sent;
    enum ending ending;
};

struct exchange_tunnel {
    struct route route;  /* of CONNECT */
    struct conn *server; /* what the route found, or what a 101 left */
    struct tunnel *tunnel;
    struct buf early; /* from the server after a 101 */
};

struct exchange {
    uint32_t magic;
    struct list link;
    struct exchange_env *env;
    struct context *context;
    enum cause cause;
    enum exchange_state state;
    enum life life;
    enum drive drive;
    struct loop_task resume;
    struct loop_timer patience;    /* with what others bring; made when it is needed first */
    struct exchange_client client; /* ops NULL: nobody waits for the answer */
    struct source *body;           /* of the request; the client's */
    struct dns_query *query;       /* for context.dst, or to verify a host */
    struct exchange_ranges ranges;
    struct exchange_lookup look;
    struct exchange_hop hop;
    struct exchange_answer answer;
    struct exchange_rest rest;
    struct exchange_tally tally;
    struct exchange_tunnel tunnel;
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

enum step exchange_next(struct exchange *x, enum exchange_state s); /* STEP_NEXT */
const char *state_name(enum exchange_state s);
enum step exchange_fail(struct exchange *x, enum fault why, int error);
enum step exchange_tell(struct exchange *x, struct span text); /* 200 with a line of ours */
void exchange_resume(struct exchange *x);
/* For those who wait for what another brings. One at a time; loop_timer_stop ends it. */
void exchange_wait_at_most(struct exchange *x, int64_t ms, loop_fn *give_up);
void exchange_finish(struct exchange *x); /* log and free */
void exchange_respond(struct exchange *x, const struct outgoing *o);
/* text becomes the body. */
void exchange_respond_text(struct exchange *x, unsigned status, const struct edits *edits,
                           struct span text, bool close);
/* The fields of an answer of ours; content_type may be SPAN_NONE, and borrowed. */
struct edits exchange_own_fields(struct exchange *x, struct span content_type);
void exchange_drop_store(struct exchange *x); /* ticket, waiter, stored entries */
/* The next request goes without the validators of what is stored. */
void exchange_drop_variants(struct exchange *x);
bool exchange_is_head(const struct exchange *x);
bool exchange_from_store(const struct exchange *x); /* is the answer ours to cut and to judge? */
struct selected exchange_selected(const struct head *h);

/* needs.c: the rules of the policy, judged by the context's facts */
/* false: something is being asked for; wait, this step will run again. */
bool exchange_ask_rules(struct exchange *x, const struct acl_list *rules, bool *allow);
bool exchange_obtain(struct exchange *x, unsigned needs); /* the same, for rules judged later */
/* Where nobody can wait: all that the rules may need has been obtained. */
bool exchange_rules_allow(const struct exchange *x, const struct acl_list *rules);
/* The host has no addresses, as far as a rule has asked for them: nobody asks again for the fetch.
 */
enum fault exchange_dst_fault(const struct exchange *x);

/* entry_source.c */
/* wake: the puller's task. false: the bytes from there on are no longer kept. */
bool entry_source_open(struct entry_source *s, struct entry *e, uint64_t from, uint64_t n_bytes,
                       struct loop *l, struct loop_task *wake);
void entry_source_close(struct entry_source *s);
/* A closed one goes on from e, a fetch of its own, where skip bytes come first. compares: those
 * must be the same as in the entry it was opened with. */
void entry_source_go_on(struct entry_source *s, struct entry *e, uint64_t skip, bool compares);

/* rest.c: a response that shares a fetch goes on by another */
bool rest_may_resume(const struct exchange *x);   /* from any byte on */
bool rest_shares(const struct exchange *x);       /* its fetch is not its own */
bool rest_may_leave(const struct exchange *x);    /* when that fetch hangs */
enum source_state rest_begin(struct exchange *x); /* WAIT, or FAULT: it cannot */
void rest_change_request(struct exchange *y, struct fields *f);
enum step rest_judge(struct exchange *y);
void rest_end(struct exchange *x);                /* it finishes */

/* parts.c: what is stored of it in parts, and which part is wanted */
void parts_begin(struct exchange *x); /* reads Range: sets ranges.field and whole_asked */
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
const char *outcome_result(const struct exchange *x);            /* "TCP_MISS" */
void outcome_cache_status(struct exchange *x, struct fields *f); /* adds the field */
void outcome_proxy_status(struct exchange *x, struct fields *f);
void outcome_log(struct exchange *x);
bool outcome_is_hit(const struct exchange *x);

/* step_verify.c: requests on a port for diverted connections (exchange_client.intercepts) */
void diverted_target(struct exchange *x);                /* first: completes the target URI */
enum step diverted_admit(struct exchange *x);            /* refuses, or goes on to ACCESS */
uint16_t exchange_server_port(const struct exchange *x); /* that is connected to */

struct span forward_compose(void *owner, const struct hop *hop); /* step_forward.c */
extern const struct fill_events exchange_fill_events;            /* step_judge.c */
/* Another exchange in the context of this one; nobody waits for its answer. */
struct exchange *exchange_new_in_background(struct exchange *x);
void exchange_validate_in_background(struct exchange *x);

#endif
