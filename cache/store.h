/* cache/store.h - the front door: lookup, reserve, publish, freshen, abandon, withdraw, purge.
 * Thread-safe.
 *
 * A sharded table of nodes, one per key; a node has its stored variants (newest first), its pending
 * fills (tickets) with waiters, and a memory of "not for all who wait" (RFC 9111 section 4,
 * collapsed requests). Exact LRU by bytes within a shard; the shard with the oldest tail gives way
 * first.
 *
 * Locks. A shard's lock is the outermost: no two of them are held at once, and nothing is held when
 * one is taken. Under it others are taken, one at a time and for a few lines each: a loop's post
 * lock, by loop_wake for the waiters of a ticket that ends; and by tiers_put, tiers_freshen,
 * tiers_used, tiers_have and tiers_remove a directory's table, the list of early removals, the
 * writer's queue. What those ask for is done on the writer's thread, which never comes back here.
 *
 * A body's lock is not among them: what the store asks of a body is atomic. That lock comes before
 * a loop's post lock and no other (cache/body.h).
 *
 * Under a shard's lock there is no I/O, and callbacks only look: fits of store_lookup_part, fn of
 * store_each. Entries are let go of after it, since the last reference frees a body. What is taken
 * out on purpose leaves the disk first, without the lock, and then memory; what comes from the disk
 * is adopted under it, if the disk has it still.
 *
 * Who outlives whom. An entry that is findable has a reference of its index; others may hold it
 * longer than it is findable, and longer than the store, but store_* wants the store. A ticket ends
 * before the store does, and so does a waiter. Tiers are closed when no loop runs any more and
 * every tier_reader is freed, before or after store_free, which does not touch them; after
 * tiers_close nothing else of the store may be called. Until then the writer's queue may hold
 * entries too.
 *
 * Bytes are charged at publish (head, entry, node, table slot) and when the body completes
 * (store_charge), all against limit_bytes. */
#ifndef CACHE_STORE_H
#define CACHE_STORE_H

#include "cache/entry.h"
#include "cache/storable.h"

struct store;
struct evict_policy;
struct ticket; /* the right (and duty) to bring a response for a key: ends by publish, freshen or
                  abandon, exactly once */

struct tiers; /* cache/tier.h */

struct store_options {
    uint64_t limit_bytes; /* cache_mem */
    unsigned shards;      /* 0: 16 */
    /* how long a key whose response was not for all who waited goes uncollapsed; 0: 10 s */
    int64_t unshared_ms;
    const struct evict_policy *policy; /* NULL: LRU */
    struct tiers *tiers;               /* what is complete is put there too; NULL: none */
};

struct store_waiter { /* inside its owner */
    struct list link;
    struct loop *loop;
    struct loop_task *task;  /* queued once when the ticket ends */
    struct store_node *node; /* NULL: not waiting; changes until the task runs, so ask only there */
    int64_t until_ms; /* monotonic: then the fetch has taken STORE_PATIENCE_MS without a head,
                         and who waits should go on by itself */
    /* When woken: what came, if this request selects it; a reference. That it came does not mean
     * that this request may have it: see reuse_collapsed, and with `failed` reuse_after_failure. */
    struct entry *entry;
    bool by_anonymous; /* the request that brought it had neither Cookie nor Authorization */
    bool failed;       /* the origin gave no usable answer; `entry` is what was stored */
    unsigned status;   /* with `failed`: of its answer; 0: none at all */
    struct store_shard *shard; /* private to store.c */
    /* set by store_reserve; must stay as it is while waiting: other threads read it */
    const struct request_head *request;
};

#define STORE_PATIENCE_MS 5000

enum reserve { RESERVE_LEAD, RESERVE_WAIT };

struct store *store_new(const struct store_options *o);
void store_free(struct store **s);
void store_limit(struct store *s,
                 uint64_t limit_bytes); /* a reload may change cache_mem; evicts at once */
/* The newest variant this request selects (its age by Date, then arrival), complete or still
 * filling, with a reference; NULL: none. Touches LRU. *vary_miss: there were variants, none fits.
 */
struct entry *store_lookup(struct store *s, const struct cache_key *key,
                           const struct request_head *request, bool *vary_miss);
/* The newest part this request selects and that fits(arg, it); with a reference; NULL: none.
 * fits runs under the shard's lock: it must only look. */
struct entry *store_lookup_part(struct store *s, const struct cache_key *key,
                                const struct request_head *request,
                                bool (*fits)(const void *arg, const struct entry *e),
                                const void *arg);
/* All variants under a key that have a validator, for one If-None-Match; references in out; returns
 * how many. */
unsigned store_variants(struct store *s, const struct cache_key *key, struct entry **out,
                        unsigned max);
/* LEAD: *ticket is ours. WAIT: another's fill is pending for what this request would select; w is
 * queued and its task runs when that ends. collapse false: always LEAD, and nobody waits for us. A
 * key whose last response was not for such as this request: likewise. Nobody joins a fetch that has
 * taken STORE_PATIENCE_MS already. */
enum reserve store_reserve(struct store *s, const struct cache_key *key,
                           const struct request_head *request, bool collapse,
                           struct store_waiter *w, struct ticket **ticket);
void store_wait_cancel(struct store *s, struct store_waiter *w); /* also drops w->entry */
/* These four end the ticket. share: for whom what came is, in general; with SHARE_NONE and
 * SHARE_ANONYMOUS this is remembered, so that those who could not use it do not wait next time. */
/* The response head is here: e becomes findable (replacing the variant it matches) and the waiters
 * may judge it. */
void store_publish(struct store *s, struct ticket **t, struct entry *e, enum share share);
/* A 304 came: `fresh` (entry_freshened) replaces `old`, waiters may judge it. */
void store_freshen(struct store *s, struct ticket **t, struct entry *old, struct entry *fresh,
                   enum share share);
/* The origin gave no usable answer (status; 0: none at all): stale `e` goes out instead, and the
 * waiters judge whether it may for them. */
void store_stand_in(struct store *s, struct ticket **t, struct entry *e, unsigned status);
/* Nothing storable came: waiters try again, with SHARE_NONE all at the same time. */
void store_abandon(struct store *s, struct ticket **t, enum share share);
/* An entry that came from a tier becomes findable, unless there is one already, or it was never
 * used there before. */
void store_adopt(struct store *s, const struct cache_key *key, struct entry *e);
void store_charge(struct store *s,
                  struct entry *e); /* the body grew or is complete: count it, evict others */
void store_withdraw(struct store *s,
                    struct entry *e); /* no longer findable (fill failed, too large, invalid) */
/* Its fill broke off: what came of it is kept as a part where the rest can be asked for (RFC 9111
 * section 3.3), else it is withdrawn. Before body_fail. */
void store_salvage(struct store *s, struct entry *e);
/* `fresh` (entry_freshened) takes the place of old, if that is still there. */
void store_refresh(struct store *s, struct entry *old, struct entry *fresh);
unsigned
store_invalidate(struct store *s,
                 const struct cache_key *key); /* all variants; returns how many there were */
/* Keys whose URI starts so; returns how many responses of them memory had. The disk follows at once
 * for those who ask, and in its own time on its medium. */
uint64_t store_purge_prefix(struct store *s, struct span prefix);
void store_purge_all(struct store *s); /* at once, however much there is */

struct store_stats {
    uint64_t entries, bytes, limit, evicted, nodes;
};
void store_stats(struct store *s, struct store_stats *out);
/* Calls fn for up to max entries (any order), under the shard lock: copy what you need. */
void store_each(struct store *s, void (*fn)(void *arg, struct span uri, const struct entry *e),
                void *arg, unsigned max);

#endif
