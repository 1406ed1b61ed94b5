/* tests/soak/soak_store_memory.c - what a full store of small objects really costs.
 *
 *     soak_store_memory [objects [limit_mb [body_bytes [threads [most_percent]]]]]
 *                        2000000  256       1024        1        150
 *
 * Stores that many responses with heads of some 300 bytes through the same calls as a fill, so that
 * most of them are evicted again, and compares the process's resident memory with the limit.
 * body_bytes 0: sizes between 1 and 8191 bytes. Ends with 1 when the process takes more than
 * most_percent of the limit. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "cache/store.h"

#define MB (UINT64_C(1024) * 1024)

struct piece {
    pthread_t thread;
    struct store *store;
    unsigned from, to, seed;
    size_t body_bytes;
};

static double
now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t
resident_bytes(void)
{
    unsigned long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    CHECK(f && fscanf(f, "%lu %lu", &size, &resident) == 2);
    fclose(f);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What a small static site says. */
static void
response_fill(struct response_head *r, struct arena *a, unsigned i, size_t n_bytes)
{
    struct fields *f = &r->fields;

    *r = (struct response_head){.status = 200, .minor = 1, .reason = SPAN("OK")};
    fields_add(f, a, SPAN("Date"), SPAN("Tue, 01 Jan 2030 00:00:00 GMT"));
    fields_add(f, a, SPAN("Server"), SPAN("Example/1.2.3 (Unix)"));
    fields_add(f, a, SPAN("Content-Type"), SPAN("image/png"));
    fields_add(f, a, SPAN("Content-Length"), arena_printf(a, "%zu", n_bytes));
    fields_add(f, a, SPAN("Last-Modified"), SPAN("Mon, 31 Dec 2029 11:22:33 GMT"));
    fields_add(f, a, SPAN("ETag"), arena_printf(a, "\"5f1b-%x-%zx\"", i * 2654435761u, n_bytes));
    fields_add(f, a, SPAN("Cache-Control"), SPAN("public, max-age=86400"));
    fields_add(f, a, SPAN("Accept-Ranges"), SPAN("bytes"));
    fields_add(f, a, SPAN("X-Content-Type-Options"), SPAN("nosniff"));
}

static struct body *
body_of(size_t n_bytes)
{
    struct body *b = body_new(BODY_KEEP, n_bytes, NULL, NULL);

    while (body_published(b) < n_bytes) {
        size_t room;
        char *to = body_room(b, &room);

        memset(to, 'x', room);
        body_commit(b, room);
    }
    body_complete(b, SPAN_NONE);
    return b;
}

static void
store_one(struct store *s, struct arena *a, unsigned i, size_t n_bytes)
{
    struct span uri = arena_printf(a, "http://www.example.com/images/gallery/%u/thumb.png", i);
    struct head_times times = {.request_wall_s = 1893456000, .response_wall_s = 1893456000};
    struct request_head request = {.method = METHOD_GET, .minor = 1};
    struct cache_key key = cache_key_of(uri);
    struct response_head response;
    struct ticket *ticket;
    struct entry *e;
    struct body *body;
    struct head *head;

    CHECK(store_reserve(s, &key, &request, false, NULL, &ticket) == RESERVE_LEAD);
    response_fill(&response, a, i, n_bytes);
    head = head_new(&request, &response, &times);
    body = body_of(n_bytes);
    e = entry_new(&head, &body, SPAN_NONE, n_bytes);
    store_publish(s, &ticket, e, SHARE_ALL);
    store_charge(s, e);
    entry_unref(&e);
}

static void *
part_run(void *arg)
{
    struct piece *p = arg;
    char lent[4096];
    struct arena a;

    arena_init(&a, lent, sizeof lent);
    for (unsigned i = p->from; i < p->to; i++) {
        if (i % 64 == 0)
            clock_tick();
        store_one(p->store, &a, i,
                  p->body_bytes ? p->body_bytes : (size_t)rand_r(&p->seed) % 8191 + 1);
        arena_free(&a);
    }
    return NULL;
}

static void
run(struct store *s, unsigned objects, size_t body_bytes, unsigned threads)
{
    struct piece *parts = mem_zalloc(threads * sizeof *parts);

    for (unsigned i = 0; i < threads; i++) {
        parts[i] = (struct piece){.store = s, .seed = i + 1, .body_bytes = body_bytes};
        parts[i].from = (unsigned)((uint64_t)objects * i / threads);
        parts[i].to = (unsigned)((uint64_t)objects * (i + 1) / threads);
        CHECK(pthread_create(&parts[i].thread, NULL, part_run, &parts[i]) == 0);
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(parts[i].thread, NULL);
    mem_free(parts);
}

static unsigned
argument(int argc, char **argv, int i, unsigned or)
{
    return argc > i ? (unsigned)strtoul(argv[i], NULL, 10) : or ;
}

int
main(int argc, char **argv)
{
    unsigned objects = argument(argc, argv, 1, 2000000), threads = argument(argc, argv, 4, 1);
    uint64_t limit = argument(argc, argv, 2, 256) * MB, before = resident_bytes(), after;
    struct store *s = store_new(&(struct store_options){.limit_bytes = limit});
    struct store_stats stats;
    double started = now_s(), took;

    run(s, objects, argument(argc, argv, 3, 1024), threads ? threads : 1);
    took = now_s() - started;
    after = resident_bytes();
    store_stats(s, &stats);
    printf("stored %u, evicted %llu, kept %llu (%.0f bytes each), %.2f us each\n", objects,
           (unsigned long long)stats.evicted, (unsigned long long)stats.entries,
           (double)stats.bytes / (double)(stats.entries ? stats.entries : 1),
           took * 1e6 / (objects ? objects : 1));
    printf(
        "limit %.1f MB, charged %.1f MB, resident %.1f MB (%.1f MB before): %.2f times the limit\n",
        (double)limit / MB, (double)stats.bytes / MB, (double)after / MB, (double)before / MB,
        (double)after / (double)limit);
    store_free(&s);
    return after * 100 > limit * argument(argc, argv, 5, 150);
}
