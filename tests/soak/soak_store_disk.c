/* tests/soak/soak_store_disk.c - what many objects on disk cost in memory, and how soon they are
 * known again.
 *
 *     soak_store_disk FOLDER [objects [body_bytes]]
 *                              1000000  128
 *
 * Puts that many, ends in order, starts again; then starts once more as after a crash. Prints the
 * times and the bytes of memory for each object; ends with 1 when an object is lost that there was
 * room for, or costs more than 32 bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fds.h"
#include "cache/tier.h"

#define MB (UINT64_C(1024) * 1024)

static double
now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static struct tiers *
opened(const char *folder, uint64_t bytes, double *took_s)
{
    struct tiers *t = tiers_new();
    double from_s = now_s();
    struct tier_stats stats;
    char why[256];

    if (!tiers_add(t, &(struct tier_options){.path = folder, .bytes = bytes}, why, sizeof why)) {
        fprintf(stderr, "%s: %s\n", folder, why);
        exit(2);
    }
    do {
        pause_ms(1);
        tiers_stats(t, 0, &stats);
    } while (!stats.ready);
    *took_s = now_s() - from_s;
    return t;
}

static struct entry *
one(unsigned i, size_t body_bytes)
{
    struct response_head r = {.status = 200, .minor = 1, .reason = SPAN("OK")};
    struct head_times times = {.request_wall_s = 1893456000, .response_wall_s = 1893456000};
    struct request_head request = {.method = METHOD_GET, .minor = 1};
    struct body *b = body_new(BODY_KEEP, body_bytes, NULL, NULL);
    struct head *h;
    struct arena a;
    char lent[2048], text[64];

    arena_init(&a, lent, sizeof lent);
    fields_add(&r.fields, &a, SPAN("Cache-Control"), SPAN("max-age=86400"));
    fields_add(&r.fields, &a, SPAN("Content-Type"), SPAN("image/png"));
    snprintf(text, sizeof text, "\"%x\"", i);
    fields_add(&r.fields, &a, SPAN("ETag"), span_str(text));
    h = head_new(&request, &r, &times);
    arena_free(&a);
    while (body_published(b) < body_bytes) {
        size_t room;
        char *to = body_room(b, &room);

        memset(to, 'x', room);
        body_commit(b, room);
    }
    body_complete(b, SPAN_NONE);
    return entry_new(&h, &b, SPAN_NONE, body_bytes);
}

static void
put_all(struct tiers *t, unsigned objects, size_t body_bytes)
{
    for (unsigned i = 0; i < objects; i++) {
        char uri[64];
        struct entry *e = one(i, body_bytes);

        snprintf(uri, sizeof uri, "http://www.example.com/%u", i);
        tiers_put(t, span_str(uri), e);
        entry_unref(&e);
        if (i % 1000 == 999)
            tiers_sync(t);
    }
    tiers_sync(t);
}

static int
check(struct tiers *t, unsigned objects, const char *what, double took_s)
{
    struct tier_stats s;

    tiers_stats(t, 0, &s);
    printf("%-28s %8.2f s %10llu objects %6.1f bytes of memory each\n", what, took_s,
           (unsigned long long)s.objects, (double)s.directory_bytes / (double)(s.objects + 1));
    return s.objects != objects || (objects >= 10000 && s.directory_bytes > objects * 32ull);
}

int
main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "soak.store";
    unsigned objects = argc > 2 ? (unsigned)atoi(argv[2]) : 1000000;
    size_t body_bytes = argc > 3 ? (size_t)atoi(argv[3]) : 128;
    uint64_t bytes = (uint64_t)objects * (512 + body_bytes) + 64 * MB;
    char index[4096];
    struct tiers *t;
    double took_s;
    int bad;

    fds_start(0);
    clock_tick();
    t = opened(folder, bytes, &took_s);
    took_s = now_s();
    put_all(t, objects, body_bytes);
    bad = check(t, objects, "put", now_s() - took_s);
    tiers_close(&t);
    t = opened(folder, bytes, &took_s);
    bad += check(t, objects, "known after an orderly end", took_s);
    tiers_close(&t);
    snprintf(index, sizeof index, "%s/cuttle.index", folder);
    CHECK(unlink(index) == 0);
    t = opened(folder, bytes, &took_s);
    bad += check(t, objects, "known after a crash", took_s);
    tiers_close(&t);
    return bad != 0;
}
