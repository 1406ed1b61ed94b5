/* tests/soak/soak_hit_ratio.c - what the real store hits of a list of requests, beside exact LRU.
 *
 *     soak_hit_ratio memory|disk lru|s3fifo BYTES LEAST [FOLDER] < LIST
 *
 * LIST has lines that end in `object size`. Each request takes a second of a clock of its own,
 * since what is carried forward on a disk depends on when it was used. Bodies have the list's
 * sizes. Exact LRU is computed twice over the same bytes: of bodies alone, and with what the store
 * spends on each object besides. Prints hit ratio and byte hit ratio in %; ends with 1 when one of
 * them is not LEAST points above exact LRU with the same overhead (below, when LEAST is negative:
 * -1 for lru; what s3fifo is worth depends on the list). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fds.h"
#include "cache/evict.h"
#include "cache/store.h"
#include "cache/tier.h"

#define OVERHEAD_MEMORY 1000 /* entry, head, body, node; measured by soak_store_memory */
#define OVERHEAD_DISK 304    /* a record's head image */

/* ---- a clock of our own ---- */

static int64_t now_s = 1900000000;

int __wrap_clock_gettime(clockid_t which, struct timespec *t);

int
__wrap_clock_gettime(clockid_t which, struct timespec *t)
{
    (void)which;
    *t = (struct timespec){.tv_sec = now_s};
    return 0;
}

/* ---- the list ---- */

struct object {
    char name[64];
    uint64_t size;
    uint64_t bytes[2]; /* charged by each exact LRU; 0: not there */
    uint32_t newer[2], older[2];
};

struct list_of_requests {
    struct object *objects;
    uint32_t n_objects, room_objects, *slots, n_slots;
    uint32_t *requests;
    uint64_t *sizes;
    size_t n, room;
};

static uint32_t
slot_of(const struct list_of_requests *l, const char *name)
{
    uint64_t h = 1469598103934665603u;
    uint32_t i;

    for (const char *c = name; *c; c++)
        h = (h ^ (unsigned char)*c) * 1099511628211u;
    for (i = (uint32_t)(h % l->n_slots); l->slots[i] != UINT32_MAX; i = (i + 1) % l->n_slots)
        if (strcmp(l->objects[l->slots[i]].name, name) == 0)
            break;
    return i;
}

static uint32_t
object_of(struct list_of_requests *l, const char *name)
{
    uint32_t slot = slot_of(l, name);

    if (l->slots[slot] != UINT32_MAX)
        return l->slots[slot];
    CHECK(l->n_objects < l->n_slots / 2);
    if (l->n_objects == l->room_objects) {
        l->room_objects = l->room_objects * 2 + 1024;
        l->objects = mem_realloc(l->objects, l->room_objects * sizeof *l->objects);
    }
    l->objects[l->n_objects] = (struct object){0};
    snprintf(l->objects[l->n_objects].name, sizeof l->objects->name, "%s", name);
    l->slots[slot] = l->n_objects;
    return l->n_objects++;
}

static void
request_add(struct list_of_requests *l, const char *name, uint64_t size)
{
    if (l->n == l->room) {
        l->room = l->room * 2 + 1024;
        l->requests = mem_realloc(l->requests, l->room * sizeof *l->requests);
        l->sizes = mem_realloc(l->sizes, l->room * sizeof *l->sizes);
    }
    l->requests[l->n] = object_of(l, name);
    if (l->objects[l->requests[l->n]].size == 0) /* an object has the size it had first */
        l->objects[l->requests[l->n]].size = size;
    l->n++;
}

static void
list_read(struct list_of_requests *l, FILE *from)
{
    char line[4096], *word[3];

    l->n_slots = 1u << 22;
    l->slots = mem_alloc(l->n_slots * sizeof *l->slots);
    memset(l->slots, 0xff, l->n_slots * sizeof *l->slots);
    while (fgets(line, sizeof line, from)) {
        int n = 0;

        for (char *w = strtok(line, " \t\r\n"); w && n < 3; w = strtok(NULL, " \t\r\n"))
            word[n++] = w;
        if (n >= 2 && strlen(word[n - 2]) < 60)
            request_add(l, word[n - 2], strtoull(word[n - 1], NULL, 10));
    }
}

/* ---- exact LRU; 0: bodies, 1: with overhead ---- */

struct lru {
    int which;
    uint64_t limit, held, overhead, hits, hit_bytes;
    uint32_t newest, oldest;
};

static void
lru_unlink(struct lru *s, struct object *o, uint32_t i)
{
    int w = s->which;

    if (o[i].newer[w] == UINT32_MAX)
        s->newest = o[i].older[w];
    else
        o[o[i].newer[w]].older[w] = o[i].older[w];
    if (o[i].older[w] == UINT32_MAX)
        s->oldest = o[i].newer[w];
    else
        o[o[i].older[w]].newer[w] = o[i].newer[w];
}

static void
lru_link(struct lru *s, struct object *o, uint32_t i)
{
    int w = s->which;

    o[i].newer[w] = UINT32_MAX;
    o[i].older[w] = s->newest;
    if (s->newest == UINT32_MAX)
        s->oldest = i;
    else
        o[s->newest].newer[w] = i;
    s->newest = i;
}

static void
lru_request(struct lru *s, struct object *o, uint32_t i)
{
    int w = s->which;

    if (o[i].bytes[w]) {
        s->hits++;
        s->hit_bytes += o[i].size;
        lru_unlink(s, o, i);
        lru_link(s, o, i);
        return;
    }
    if (o[i].size + s->overhead > s->limit)
        return;
    o[i].bytes[w] = o[i].size + s->overhead;
    s->held += o[i].bytes[w];
    lru_link(s, o, i);
    while (s->held > s->limit) {
        uint32_t last = s->oldest;

        s->held -= o[last].bytes[w];
        o[last].bytes[w] = 0;
        lru_unlink(s, o, last);
    }
}

/* ---- the product ---- */

static struct entry *
entry_made(uint64_t n_bytes)
{
    struct response_head r = {.status = 200, .minor = 1, .reason = SPAN("OK")};
    struct head_times times = {.request_wall_s = now_s, .response_wall_s = now_s};
    struct request_head request = {.method = METHOD_GET, .minor = 1};
    struct body *b = body_new(BODY_KEEP, n_bytes, NULL, NULL);
    struct head *h;
    struct arena a;
    char lent[2048];

    arena_init(&a, lent, sizeof lent);
    fields_add(&r.fields, &a, SPAN("Cache-Control"), SPAN("max-age=864000000"));
    fields_add(&r.fields, &a, SPAN("Content-Type"), SPAN("image/png"));
    h = head_new(&request, &r, &times);
    arena_free(&a);
    while (body_published(b) < n_bytes) {
        size_t room;
        char *to = body_room(b, &room);

        memset(to, 'x', room);
        body_commit(b, room);
    }
    body_complete(b, SPAN_NONE);
    return entry_new(&h, &b, SPAN_NONE, n_bytes);
}

static bool
memory_request(struct store *s, const char *name, uint64_t n_bytes)
{
    struct request_head request = {.method = METHOD_GET, .minor = 1};
    struct cache_key key = cache_key_of(span_str(name));
    struct ticket *ticket;
    bool vary_miss;
    struct entry *e = store_lookup(s, &key, &request, &vary_miss);
    bool hit = e != NULL;

    if (!hit) {
        CHECK(store_reserve(s, &key, &request, false, NULL, &ticket) == RESERVE_LEAD);
        e = entry_made(n_bytes);
        store_publish(s, &ticket, e, SHARE_ALL);
        store_charge(s, e);
    }
    entry_unref(&e);
    return hit;
}

static bool
disk_request(struct tiers *t, const char *name, uint64_t n_bytes, struct entry *any)
{
    struct span uri = span_str(name);
    bool hit = tiers_have(t, uri);

    if (hit)
        tiers_used(t, uri, any);
    else {
        struct entry *e = entry_made(n_bytes);

        tiers_put(t, uri, e);
        entry_unref(&e);
        tiers_sync(t);
    }
    return hit;
}

/* What a run before has left would be in the way. */
static void
folder_empty(const char *folder)
{
    static const char *const names[] = {"cuttle.store", "cuttle.index"};
    char path[4096];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
}

static double
percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

int
main(int argc, char **argv)
{
    struct list_of_requests l = {0};
    bool disk = argc > 3 && strcmp(argv[1], "disk") == 0;
    uint64_t bytes = argc > 3 ? strtoull(argv[3], NULL, 10) : 0, hits = 0, hit_bytes = 0, asked = 0;
    struct lru plain = {0, bytes, .newest = UINT32_MAX, .oldest = UINT32_MAX};
    struct lru fair = {1, bytes, .newest = UINT32_MAX, .oldest = UINT32_MAX};
    const char *folder = argc > 5 ? argv[5] : "soak.ratio";
    double least = argc > 4 ? strtod(argv[4], NULL) : 0;
    struct tiers *tiers = NULL;
    struct store *store = NULL;
    struct entry *any;
    char why[256];

    if (bytes == 0 || argc < 5) {
        fprintf(stderr,
                "usage: soak_hit_ratio memory|disk lru|s3fifo BYTES LEAST [FOLDER] < LIST\n");
        return 2;
    }
    fds_start(0);
    clock_tick();
    fair.overhead = disk ? OVERHEAD_DISK : OVERHEAD_MEMORY;
    list_read(&l, stdin);
    any = entry_made(1);
    if (disk) {
        folder_empty(folder);
        tiers = tiers_new();
        if (!tiers_add(tiers,
                       &(struct tier_options){.path = folder,
                                              .bytes = bytes,
                                              .scan_resistant = strcmp(argv[2], "s3fifo") == 0},
                       why, sizeof why)) {
            fprintf(stderr, "%s\n", why);
            return 2;
        }
        tiers_sync(tiers);
    } else
        store = store_new(
            &(struct store_options){.limit_bytes = bytes, .policy = evict_policy_named(argv[2])});
    for (size_t i = 0; i < l.n; i++, now_s++) {
        struct object *o = &l.objects[l.requests[i]];
        bool hit;

        clock_tick();
        lru_request(&plain, l.objects, l.requests[i]);
        lru_request(&fair, l.objects, l.requests[i]);
        hit = disk ? disk_request(tiers, o->name, o->size, any)
                   : memory_request(store, o->name, o->size);
        hits += hit;
        hit_bytes += hit ? o->size : 0;
        asked += o->size;
    }
    printf(
        "%-6s %-6s %11llu bytes  %6.2f %6.2f   exact LRU %6.2f %6.2f (%+.2f %+.2f)   with overhead "
        "%6.2f %6.2f (%+.2f %+.2f)\n",
        argv[1], argv[2], (unsigned long long)bytes, percent(hits, l.n), percent(hit_bytes, asked),
        percent(plain.hits, l.n), percent(plain.hit_bytes, asked),
        percent(hits, l.n) - percent(plain.hits, l.n),
        percent(hit_bytes, asked) - percent(plain.hit_bytes, asked), percent(fair.hits, l.n),
        percent(fair.hit_bytes, asked), percent(hits, l.n) - percent(fair.hits, l.n),
        percent(hit_bytes, asked) - percent(fair.hit_bytes, asked));
    entry_unref(&any);
    if (store)
        store_free(&store);
    tiers_close(&tiers);
    mem_free(l.objects);
    mem_free(l.slots);
    mem_free(l.requests);
    mem_free(l.sizes);
    return percent(hits, l.n) < percent(fair.hits, l.n) + least ||
           percent(hit_bytes, asked) < percent(fair.hit_bytes, asked) + least;
}
