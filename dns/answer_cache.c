/* dns/answer_cache.c - answers and failures, kept for all workers.
 *
 * A hit is on the path of every request, so it takes one lock of a shard and allocates nothing.
 * Each shard evicts by its own exact LRU. The hosts table is read under the lock of the shard that
 * the name falls into; a new table is swapped in under all of them, in ascending order. */
#include "dns/answer_cache.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/check.h"
#include "base/clock.h"
#include "dns/hosts.h"
#include "dns/name_table.h"
#include "dns/setting.h"

#define CACHE_MAGIC 0xd25ca4e1u

enum {
    ENTRIES_DEFAULT = 4096,
    ENTRIES_MOST = 1 << 20,
    SHARDS = 16,
    ENTRIES_TO_SHARD = 1024, /* below that one exact LRU is worth more than the locks */
    HOSTS_CHECK_MS = 1000,
    LOCALHOST_TTL_S = 3600
};

struct shard {
    pthread_mutex_t lock;
    struct name_table names;
    uint64_t hits, misses, negative_hits;
};

struct answer_cache {
    uint32_t magic;
    unsigned n_shards;
    _Atomic int64_t positive_ttl_s, negative_ttl_s;
    _Atomic bool v4_first;
    _Atomic unsigned first_server;
    struct buf source;           /* who answers, in words; known to whoever reconfigures */
    struct hosts *hosts;         /* read under any shard lock, written under all */
    pthread_mutex_t hosts_check; /* the two below; before the shard locks */
    char *hosts_path;            /* NULL: none */
    struct hosts_stamp hosts_stamp;
    _Atomic int64_t hosts_due_ms;
    struct shard *shards;
};

/* ---- the hosts file ---- */

static void
hosts_swap(struct answer_cache *c, struct hosts *newer)
{
    struct hosts *old;

    for (unsigned i = 0; i < c->n_shards; i++)
        pthread_mutex_lock(&c->shards[i].lock);
    old = c->hosts;
    c->hosts = newer;
    for (unsigned i = 0; i < c->n_shards; i++)
        pthread_mutex_unlock(&c->shards[i].lock);
    hosts_free(&old);
}

/* One thread a second looks; whoever comes meanwhile goes on with the table there is. */
static void
hosts_follow(struct answer_cache *c)
{
    int64_t now_ms = clock_mono_ms();
    struct hosts *newer;

    if (now_ms < atomic_load_explicit(&c->hosts_due_ms, memory_order_relaxed))
        return;
    if (pthread_mutex_trylock(&c->hosts_check) != 0)
        return;
    atomic_store_explicit(&c->hosts_due_ms, now_ms + HOSTS_CHECK_MS, memory_order_relaxed);
    newer = c->hosts_path ? hosts_reread(c->hosts_path, &c->hosts_stamp) : NULL;
    if (newer)
        hosts_swap(c, newer);
    pthread_mutex_unlock(&c->hosts_check);
}

/* Reads the file at once. The names of another one before do not stay, even if it cannot be read.
 */
static void
hosts_choose(struct answer_cache *c, const char *path)
{
    struct hosts *newer = NULL;
    bool same;

    path = path && path[0] ? path : NULL;
    pthread_mutex_lock(&c->hosts_check);
    same = c->hosts && c->hosts_path && path && strcmp(c->hosts_path, path) == 0;
    if (!same) {
        mem_free(c->hosts_path);
        c->hosts_path = path ? mem_strdup(path) : NULL;
        c->hosts_stamp = (struct hosts_stamp){.ino = 0};
    }
    newer = path ? hosts_reread(path, &c->hosts_stamp) : NULL;
    if (newer || !same)
        hosts_swap(c, newer ? newer : hosts_new(SPAN_NONE));
    atomic_store_explicit(&c->hosts_due_ms, path ? clock_mono_ms() + HOSTS_CHECK_MS : INT64_MAX,
                          memory_order_relaxed);
    pthread_mutex_unlock(&c->hosts_check);
}

static void
localhost_answer(struct half_answer *h)
{
    for (unsigned i = 0; i < HALVES; i++) {
        struct addr a;

        h[i].kind = HALF_ADDRESSES;
        h[i].ttl_s = LOCALHOST_TTL_S;
        h[i].n = 0;
        if (addr_parse(i == HALF_V6 ? SPAN("::1") : SPAN("127.0.0.1"), &a))
            half_add(&h[i], &a);
    }
}

/* ---- a name ---- */

static const struct addr *
known_name_worked(const struct known_name *e)
{
    return e->worked.sa.sa_family == AF_UNSPEC ? NULL : &e->worked;
}

static void
known_name_read(const struct answer_cache *c, const struct known_name *e, int64_t now_ms,
                struct dns_answer *out)
{
    struct half_answer h[HALVES];

    kept_read(&e->half[HALF_V6], HALF_V6, now_ms, &h[HALF_V6]);
    kept_read(&e->half[HALF_V4], HALF_V4, now_ms, &h[HALF_V4]);
    order_answer(h, known_name_worked(e), c->v4_first, out);
    out->from_cache = true;
}

/* ---- a shard, under its lock ---- */

static struct shard *
shard_of(struct answer_cache *c, const struct dns_name *name)
{
    return &c->shards[(name->hash >> 56) % c->n_shards];
}

/* ---- options ---- */

static uint64_t
entries_of(const struct resolver_options *o)
{
    uint64_t entries = o->cache_entries ? o->cache_entries : ENTRIES_DEFAULT;

    return entries < ENTRIES_MOST ? entries : ENTRIES_MOST;
}

static void
known_name_bound(const struct answer_cache *c, struct known_name *e, int64_t now_ms)
{
    for (unsigned i = 0; i < HALVES; i++) {
        bool good = e->half[i].kind == HALF_ADDRESSES;

        kept_bound(&e->half[i], good ? c->positive_ttl_s : c->negative_ttl_s, now_ms);
    }
}

static void
shard_reconfigure(const struct answer_cache *c, struct shard *s, uint64_t limit, bool forget)
{
    int64_t now_ms = clock_mono_ms();

    pthread_mutex_lock(&s->lock);
    s->names.limit = limit > 0 ? limit : 1;
    name_table_shrink(&s->names, forget ? 0 : s->names.limit);
    for (struct list *at = s->names.lru.next; at != &s->names.lru; at = at->next)
        known_name_bound(c, LIST_OWNER(at, struct known_name, link), now_ms);
    pthread_mutex_unlock(&s->lock);
}

/* Are other servers asked now, or about other names? */
static bool
source_changes(struct answer_cache *c, const struct resolver_options *o)
{
    struct buf source = {0};
    bool same;

    setting_describe(o, &source);
    same = span_eq(buf_span(&source), buf_span(&c->source));
    buf_free(&c->source);
    c->source = source;
    return !same;
}

/* The number of shards stays as it was made: names do not move between locks. */
void
answer_cache_reconfigure(struct answer_cache *c, const struct resolver_options *o)
{
    bool forget = source_changes(c, o);

    CHECK_OBJ(c, CACHE_MAGIC);
    c->positive_ttl_s = o->positive_ttl_s;
    c->negative_ttl_s = o->negative_ttl_s;
    c->v4_first = o->v4_first;
    if (forget)
        c->first_server = 0;
    for (unsigned i = 0; i < c->n_shards; i++)
        shard_reconfigure(c, &c->shards[i], entries_of(o) / c->n_shards, forget);
    hosts_choose(c, o->hosts_file);
}

/* ---- life ---- */

struct answer_cache *
answer_cache_new(const struct resolver_options *o)
{
    struct answer_cache *c = mem_zalloc(sizeof(*c));

    c->magic = CACHE_MAGIC;
    c->n_shards = entries_of(o) < ENTRIES_TO_SHARD ? 1 : SHARDS;
    c->shards = mem_zalloc(c->n_shards * sizeof(*c->shards));
    for (unsigned i = 0; i < c->n_shards; i++) {
        pthread_mutex_init(&c->shards[i].lock, NULL);
        name_table_init(&c->shards[i].names);
    }
    pthread_mutex_init(&c->hosts_check, NULL);
    answer_cache_reconfigure(c, o);
    return c;
}

void
answer_cache_free(struct answer_cache **held)
{
    struct answer_cache *c = *held;

    *held = NULL;
    if (c == NULL)
        return;
    CHECK_OBJ(c, CACHE_MAGIC);
    for (unsigned i = 0; i < c->n_shards; i++) {
        name_table_free(&c->shards[i].names);
        pthread_mutex_destroy(&c->shards[i].lock);
    }
    pthread_mutex_destroy(&c->hosts_check);
    hosts_free(&c->hosts);
    mem_free(c->hosts_path);
    buf_free(&c->source);
    mem_free(c->shards);
    FREE_OBJ(c);
}

/* ---- the front door ---- */

int64_t
answer_cache_lifetime(const struct answer_cache *c, const struct half_answer *h)
{
    int64_t most_s = c->negative_ttl_s, ttl_s = h->ttl_s;

    if (h->kind == HALF_ADDRESSES)
        most_s = c->positive_ttl_s;
    else if (h->kind == HALF_FAILED)
        ttl_s = FAILURE_TTL_S;
    else if (h->kind == HALF_TIMEOUT)
        ttl_s = TIMEOUT_TTL_S;
    ttl_s = ttl_s < most_s ? ttl_s : most_s;
    return ttl_s > 0 ? ttl_s : 0;
}

void
answer_cache_put(struct answer_cache *c, const struct dns_name *name, const struct half_answer *h)
{
    struct shard *s = shard_of(c, name);
    int64_t ttl_s[HALVES], now_ms = clock_mono_ms();
    struct known_name *e;

    for (unsigned i = 0; i < HALVES; i++)
        ttl_s[i] = h[i].kind == HALF_NONE ? 0 : answer_cache_lifetime(c, &h[i]);
    pthread_mutex_lock(&s->lock);
    e = name_table_find(&s->names, name);
    if (e == NULL && (ttl_s[HALF_V6] > 0 || ttl_s[HALF_V4] > 0))
        e = name_table_add(&s->names, name);
    for (unsigned i = 0; e && i < HALVES; i++)
        kept_put(&e->half[i], i, &h[i], ttl_s[i], now_ms);
    pthread_mutex_unlock(&s->lock);
}

static bool
shard_find(struct answer_cache *c, struct shard *s, const struct dns_name *name,
           struct dns_answer *out)
{
    struct known_name *e = name_table_find(&s->names, name);
    int64_t now_ms = clock_mono_ms();

    if (e == NULL || !known_name_answers(e, now_ms)) {
        s->misses++;
        return false;
    }
    name_table_touch(&s->names, e);
    known_name_read(c, e, now_ms, out);
    s->hits++;
    s->negative_hits += out->status != DNS_OK;
    return true;
}

bool
answer_cache_find(struct answer_cache *c, const struct dns_name *name, struct dns_answer *out)
{
    struct shard *s = shard_of(c, name);
    struct half_answer h[HALVES];
    bool local, found;

    hosts_follow(c);
    pthread_mutex_lock(&s->lock);
    local = hosts_find(c->hosts, name, h);
    found = !local && !name_is_localhost(name) && shard_find(c, s, name, out);
    pthread_mutex_unlock(&s->lock);
    if (!local && name_is_localhost(name)) {
        localhost_answer(h);
        local = true;
    }
    if (local) {
        order_answer(h, NULL, c->v4_first, out);
        out->from_cache = true;
    }
    return local || found;
}

void
answer_cache_prefer(struct answer_cache *c, const struct dns_name *name, const struct addr *worked)
{
    struct shard *s = shard_of(c, name);
    struct known_name *e;

    pthread_mutex_lock(&s->lock);
    e = name_table_find(&s->names, name);
    if (e)
        e->worked = *worked;
    pthread_mutex_unlock(&s->lock);
}

bool
answer_cache_worked(struct answer_cache *c, const struct dns_name *name, struct addr *out)
{
    struct shard *s = shard_of(c, name);
    struct known_name *e;

    *out = ADDR_NONE;
    pthread_mutex_lock(&s->lock);
    e = name_table_find(&s->names, name);
    if (e)
        *out = e->worked;
    pthread_mutex_unlock(&s->lock);
    return out->sa.sa_family != AF_UNSPEC;
}

unsigned
answer_cache_first_server(const struct answer_cache *c)
{
    return atomic_load_explicit(&c->first_server, memory_order_relaxed);
}

/* Written only when it is another one: the line is read by all workers. */
void
answer_cache_answered(struct answer_cache *c, unsigned server)
{
    if (answer_cache_first_server(c) != server)
        atomic_store_explicit(&c->first_server, server, memory_order_relaxed);
}

/* ---- reports ---- */

void
answer_cache_stats(struct answer_cache *c, struct answer_cache_stats *out)
{
    memset(out, 0, sizeof(*out));
    for (unsigned i = 0; i < c->n_shards; i++) {
        struct shard *s = &c->shards[i];

        pthread_mutex_lock(&s->lock);
        out->entries += s->names.n;
        out->hits += s->hits;
        out->misses += s->misses;
        out->negative_hits += s->negative_hits;
        out->hosts_entries = hosts_count(c->hosts);
        pthread_mutex_unlock(&s->lock);
    }
}

/* A shard's entries are copied first: fn may take its time, and the lock must not. */
void
answer_cache_each(struct answer_cache *c,
                  void (*fn)(void *arg, struct span name, const struct dns_answer *a,
                             int64_t left_s),
                  void *arg)
{
    int64_t now_ms = clock_mono_ms();

    for (unsigned i = 0; i < c->n_shards; i++) {
        struct shard *s = &c->shards[i];
        struct dns_answer answer;
        struct list copies;

        list_init(&copies);
        pthread_mutex_lock(&s->lock);
        name_table_copy(&s->names, now_ms, &copies);
        pthread_mutex_unlock(&s->lock);
        for (struct list *at = copies.next; at != &copies; at = at->next) {
            struct known_name *e = LIST_OWNER(at, struct known_name, link);

            known_name_read(c, e, now_ms, &answer);
            fn(arg, name_key(&e->name), &answer, answer.ttl_s);
        }
        known_names_free(&copies);
    }
}
