/* dns/resolver_private.h - the parts of the resolver: resolver.c (the front door, and reloads)
 * stands on queries.c (those who ask), this on lookup.c (a name under way), this on setting.c and
 * name_server.c. Other files see resolver.h. */
#ifndef DNS_RESOLVER_PRIVATE_H
#define DNS_RESOLVER_PRIVATE_H

#include "dns/answer_cache.h"
#include "dns/setting.h"

enum { LOOKUP_BUCKETS = 256 };

struct resolver {
    uint32_t magic;
    struct loop *loop;
    struct answer_cache *cache;
    struct setting *setting; /* of new questions */
    struct list retired;     /* settings of earlier ones that are still under way */
    uint64_t local_failures;
    struct loop_task task;      /* tells the askers */
    struct list due, lingering; /* lookups to be told; those that nobody can join any more */
    struct list buckets[LOOKUP_BUCKETS];
};

struct family {
    unsigned n_asked;       /* servers, of this candidate */
    unsigned n_waiting;     /* for that many replies */
    enum half_kind failure; /* the worst of those that failed; HALF_NONE: none */
};

/* asking (in a bucket: can be joined; detached: lingering) -> due (its task will run) -> asking,
 * with the next candidate | told (lingers until its flights have landed). */
struct lookup {
    uint32_t magic;
    struct resolver *resolver;
    struct setting *setting;
    struct list link; /* bucket while it can be joined, else resolver's lingering */
    struct list due;
    struct list queries;
    struct loop_timer timer; /* the earlier of the two below */
    int64_t deadline_ms;     /* then the askers are told, whatever is known */
    int64_t next_ms;         /* then the next server is asked */
    int64_t started_ns;
    uint64_t local_failures; /* of the resolver when this began */
    unsigned candidate;      /* which completion of the name is asked now */
    unsigned first;          /* which server is asked first */
    unsigned in_air;         /* flights, of all candidates */
    bool told, ok, expired;
    struct family family[HALVES];
    struct half_answer half[HALVES];
    struct dns_name name;
};

struct dns_query {
    uint32_t magic;
    struct list link; /* lookup's queries */
    dns_fn *fn;
    void *owner;
};

/* ---- lookup.c ---- */

/* Under the resolver's setting; in no bucket yet, and nobody asked. */
struct lookup *lookup_new(struct resolver *r, const struct dns_name *name);
/* The servers about the candidate of the moment; what comes of it makes the lookup due. */
void lookup_ask(struct lookup *l);
/* One that has been told frees itself when its last flight lands. */
void lookup_free(struct lookup *l);
bool lookup_useful(const struct lookup *l); /* some address */
bool lookup_absent(const struct lookup *l); /* both families: none */
bool lookup_is_current(const struct lookup *l);

/* ---- queries.c ---- */

/* Joins the lookup under way for this name, or starts one. */
struct dns_query *query_join(struct resolver *r, const struct dns_name *name, dns_fn *fn,
                             void *owner);
void dns_query_free(struct dns_query **q);
/* The loop's task: tells the askers of what is due. owner: the resolver. */
void queries_tell(void *owner);
/* From now on no question joins these, and what they bring is for their askers only. */
void queries_detach(struct resolver *r);
/* All lookups and their queries go, without a word; nothing may be in the air. */
void queries_end(struct resolver *r);

#endif
