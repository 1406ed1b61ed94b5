/* proxy/exchange/exchange.h - one request and its response: admit -> access -> lookup -> forward ->
 * deliver, or tunnel.
 *
 * The client makes an exchange (exchange_new), parses a head into its arena and starts it; it ends
 * by exchange_sent, exchange_abort or by its tunnel's end, logs itself and goes back to the
 * worker's free list. It never outlives its worker. */
#ifndef PROXY_EXCHANGE_EXCHANGE_H
#define PROXY_EXCHANGE_EXCHANGE_H

#include "proxy/exchange/context.h"
#include "proxy/exchange/responder.h"
#include "proxy/log/access_log.h"
#include "proxy/upstream/fill.h"

struct exchange;

struct exchange_env { /* one per worker */
    struct loop *loop;
    struct upstream *upstream;
    struct store *store;
    struct policy *policy; /* the current one; each exchange takes a reference */
    struct list all;       /* exchanges alive */
    struct list spare;     /* recycled memory */
    unsigned n_spare, n_alive;
    struct context_pool contexts;
    struct buf head; /* scratch for response fields of ours */
    void *owner;
    void (*log)(void *owner, const struct log_record *r,
                const struct acl_facts *f); /* access log of this worker */
    /* A page of our own: fills body and content type; false: no such page. */
    bool (*page)(void *owner, struct span path, struct buf *body, const char **content_type);
    uint64_t sequence;
    struct tier_reader *disk; /* NULL: there is no disk */
};

struct exchange_client { /* whom it answers */
    const struct responder_ops *ops;
    void *responder;
    struct loop_task *wake; /* what a body source wakes */
};

struct exchange *exchange_new(struct exchange_env *env, const struct exchange_client *c,
                              const struct asker *from);
struct arena *exchange_arena(struct exchange *x);
struct request_head *exchange_request(struct exchange *x);
struct policy *exchange_policy(struct exchange *x);
/* Takes Proxy-Authorization out of the request; only the rules find it from then on. */
void exchange_hide_credentials(struct exchange *x);
/* The head is parsed. body: the request body, NULL when there is none; stays the client's.
 * bytes_in: of the head. */
void exchange_start(struct exchange *x, struct source *body, const struct framed *framing,
                    uint64_t bytes_in);
/* The head could not be parsed, or did not come: answer with this fault and close. detail: why, for
 * the log; may be NULL. */
void exchange_refuse(struct exchange *x, enum fault why, const char *detail);
/* The response is with the kernel (whole), or broke off. Ends the exchange. */
void exchange_sent(struct exchange *x, uint64_t bytes, uint64_t body_bytes, bool whole);
/* The client is gone, or out of time. Ends the exchange. */
void exchange_abort(struct exchange *x, bool timed_out, uint64_t bytes);
/* Nothing was asked after all (an idle connection closed): no log line. */
void exchange_drop(struct exchange *x);
/* Is there a client side to this exchange, and what is it doing (for the active requests report)?
 */
const char *exchange_state_name(const struct exchange *x);
struct span exchange_url(const struct exchange *x);
int64_t exchange_started_ms(const struct exchange *x);
void exchange_bytes_in(struct exchange *x, uint64_t n_bytes); /* of the request body */
void
exchange_env_close(struct exchange_env *env); /* ends tunnels and background work; frees spares */
unsigned exchange_env_tunnels(const struct exchange_env *env);

#endif
