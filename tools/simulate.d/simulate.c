/* simulate - plays a list of requests against stores of a given size, one after the other.
 *
 *   simulate NAME@BYTES[:OPTION=VALUE...]... < REQUESTS
 *
 * REQUESTS is a run of pairs of 64-bit numbers, object and size; objects are numbered from 0
 * without gaps. Each argument is one store, which starts empty and prints one line: requests, hits,
 * bytes asked for, bytes hit, bytes admitted, bytes written, the most bytes it ever held.
 *
 * NAME is lru, fifo, clock, slru, s3fifo or regions. What a log could not do in place counts as
 * written: clock, slru and s3fifo write what they move, lru and fifo move nothing. A size that
 * differs from the stored one is a miss and replaces what was stored.
 *
 * Time is counted in requests, places in a log in bytes ever appended; so a place also says how old
 * what lies there is. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define MAX_USES 3

struct request {
    uint64_t object, size;
};

enum place { NOWHERE, FIRST, SECOND, GHOST }; /* which queue an object stands in; 0 is none */

struct object {
    uint64_t size;
    uint64_t at;      /* regions: where in the log its record begins */
    uint64_t used_at; /* regions: how long the log was when it was last asked for */
    uint32_t newer, older;
    uint8_t where, uses;
};

struct queue {
    uint32_t newest, oldest;
    uint64_t bytes;
    enum place place;
};

struct record {
    uint64_t at;
    uint32_t object;
};

/* The log: a ring of regions, of which head / region is being filled and tail / region is the
 * oldest. Records begin in one region and may go on in the next. */
struct log {
    uint64_t region, head, tail;
    struct record *records; /* a ring as well: from first on, n of them */
    uint64_t n_room, first, n;
    struct record *saved; /* what a reclaim carries, before it is appended again */
    uint64_t n_saved, saved_room;
};

struct rule {
    double carry; /* carried when used while the log's youngest such share was written; 0: never */
    double bound; /* of a region, at most so much is carried in a reclaim */
    double promote; /* a hit in the oldest such share of the log is appended again; 0: never */
    double large;   /* of a region: what is larger is not carried; 0: no limit */
    uint64_t region, spare;
};

struct store;

struct policy {
    const char *name;
    void (*hit)(struct store *s, uint32_t o);
    void (*admit)(struct store *s, uint32_t o);
    void (*forget)(struct store *s, uint32_t o);
};

struct store {
    const struct policy *policy;
    struct object *objects;
    struct queue first, second, ghost;
    struct log log;
    struct rule rule;
    uint64_t limit, held, peak;
    uint64_t hits, asked, hit_bytes, admitted, written;
};

static struct {
    struct request *of;
    uint64_t n, n_objects;
} trace;

static void
die(const char *what)
{
    fprintf(stderr, "simulate: %s\n", what);
    exit(1);
}

static void *
grown(void *block, uint64_t n, uint64_t size)
{
    void *out = realloc(block, n * size);

    if (out == NULL)
        die(strerror(errno));
    return out;
}

/* ---- queues, newest to oldest ---- */

static void
queue_push(struct store *s, struct queue *q, uint32_t o)
{
    struct object *x = &s->objects[o];

    x->where = q->place;
    x->newer = NONE;
    x->older = q->newest;
    if (q->newest != NONE)
        s->objects[q->newest].newer = o;
    else
        q->oldest = o;
    q->newest = o;
    q->bytes += x->size;
}

static void
queue_take(struct store *s, struct queue *q, uint32_t o)
{
    struct object *x = &s->objects[o];

    if (x->newer != NONE)
        s->objects[x->newer].older = x->older;
    else
        q->newest = x->older;
    if (x->older != NONE)
        s->objects[x->older].newer = x->newer;
    else
        q->oldest = x->newer;
    x->where = NOWHERE;
    q->bytes -= x->size;
}

static struct queue *
queue_of(struct store *s, uint32_t o)
{
    switch (s->objects[o].where) {
    case FIRST:
        return &s->first;
    case SECOND:
        return &s->second;
    case GHOST:
        return &s->ghost;
    }
    return NULL;
}

static void
queue_drop(struct store *s, uint32_t o)
{
    queue_take(s, queue_of(s, o), o);
}

/* Takes the oldest out of a queue; the caller says what becomes of it. */
static uint32_t
queue_pop(struct store *s, struct queue *q)
{
    uint32_t o = q->oldest;

    queue_take(s, q, o);
    return o;
}

static void
evict(struct store *s, struct queue *q)
{
    s->held -= s->objects[queue_pop(s, q)].size;
}

static bool
has_room(const struct store *s, uint32_t o)
{
    return s->held + s->objects[o].size <= s->limit;
}

static void
hold(struct store *s, struct queue *q, uint32_t o)
{
    queue_push(s, q, o);
    s->held += s->objects[o].size;
    s->written += s->objects[o].size;
}

static void
queue_forget(struct store *s, uint32_t o)
{
    if (s->objects[o].where != GHOST)
        s->held -= s->objects[o].size;
    queue_drop(s, o);
}

/* ---- lru and fifo ---- */

static void
lru_hit(struct store *s, uint32_t o)
{
    queue_drop(s, o);
    queue_push(s, &s->first, o);
}

static void
nothing_at_hit(struct store *s, uint32_t o)
{
}

static void
lru_admit(struct store *s, uint32_t o)
{
    while (!has_room(s, o))
        evict(s, &s->first);
    hold(s, &s->first, o);
}

/* ---- clock: what was used since it was written goes round once more ---- */

static void
count_use(struct store *s, uint32_t o)
{
    struct object *x = &s->objects[o];

    if (x->uses < MAX_USES)
        x->uses++;
}

static void
move(struct store *s, uint32_t o, struct queue *to)
{
    queue_push(s, to, o);
    s->written += s->objects[o].size;
}

static void
clock_evict(struct store *s)
{
    uint32_t o = s->first.oldest;

    if (s->objects[o].uses == 0) {
        evict(s, &s->first);
        return;
    }
    s->objects[o].uses = 0;
    queue_drop(s, o);
    move(s, o, &s->first);
}

static void
clock_admit(struct store *s, uint32_t o)
{
    while (!has_room(s, o))
        clock_evict(s);
    s->objects[o].uses = 0;
    hold(s, &s->first, o);
}

/* ---- slru: a second use leads into the protected four fifths ---- */

static void
slru_hit(struct store *s, uint32_t o)
{
    if (s->objects[o].where == SECOND) {
        queue_drop(s, o);
        queue_push(s, &s->second, o);
        return;
    }
    queue_drop(s, o);
    move(s, o, &s->second);
    while (s->second.bytes > s->limit / 5 * 4)
        move(s, queue_pop(s, &s->second), &s->first);
}

static void
slru_admit(struct store *s, uint32_t o)
{
    while (!has_room(s, o))
        evict(s, s->first.oldest != NONE ? &s->first : &s->second);
    hold(s, &s->first, o);
}

/* ---- s3fifo (Yang et al., SOSP 2023), by bytes: small, main, and a ghost of main's size ---- */

static void
ghost_add(struct store *s, uint32_t o)
{
    queue_push(s, &s->ghost, o);
    while (s->ghost.bytes > s->limit / 10 * 9)
        queue_pop(s, &s->ghost);
}

static void
small_evict(struct store *s)
{
    uint32_t o = queue_pop(s, &s->first);

    if (s->objects[o].uses > 1) {
        s->objects[o].uses = 0;
        move(s, o, &s->second);
        return;
    }
    s->held -= s->objects[o].size;
    ghost_add(s, o);
}

static void
main_evict(struct store *s)
{
    uint32_t o = s->second.oldest;

    if (s->objects[o].uses == 0) {
        evict(s, &s->second);
        return;
    }
    s->objects[o].uses--;
    queue_drop(s, o);
    move(s, o, &s->second);
}

static void
s3fifo_admit(struct store *s, uint32_t o)
{
    bool known = s->objects[o].where == GHOST;

    if (known)
        queue_drop(s, o);
    while (!has_room(s, o)) {
        bool from_small = s->first.bytes > s->limit / 10 || s->second.oldest == NONE;

        (from_small ? small_evict : main_evict)(s);
    }
    s->objects[o].uses = 0;
    hold(s, known ? &s->second : &s->first, o);
}

/* ---- regions: a log whose oldest region is reclaimed when the free ones run out ---- */

static uint64_t
age(const struct log *l, uint64_t at)
{
    return l->head - at;
}

static void
records_grow(struct log *l)
{
    uint64_t n_room = l->n_room * 2;
    struct record *r = grown(NULL, n_room, sizeof *r);

    for (uint64_t i = 0; i < l->n; i++)
        r[i] = l->records[(l->first + i) % l->n_room];
    free(l->records);
    l->records = r;
    l->n_room = n_room;
    l->first = 0;
}

static void
append(struct log *l, uint32_t o, uint64_t size)
{
    if (l->n == l->n_room)
        records_grow(l);
    l->records[(l->first + l->n++) % l->n_room] = (struct record){l->head, o};
    l->head += size;
}

static void
write_anew(struct store *s, uint32_t o)
{
    struct object *x = &s->objects[o];

    x->where = FIRST;
    x->uses = 0;
    x->at = s->log.head;
    append(&s->log, o, x->size);
    s->written += x->size;
}

static bool
worth_carrying(const struct store *s, uint32_t o)
{
    const struct object *x = &s->objects[o];

    if (s->rule.large > 0 && (double)x->size > s->rule.large * (double)s->log.region)
        return false;
    return x->uses > 0 && (double)age(&s->log, x->used_at) < s->rule.carry * (double)s->limit;
}

static void
save(struct log *l, struct record r)
{
    if (l->n_saved == l->saved_room) {
        l->saved_room = 2 * l->saved_room + 16;
        l->saved = grown(l->saved, l->saved_room, sizeof *l->saved);
    }
    l->saved[l->n_saved++] = r;
}

/* Empties the oldest region. A record is live when its object still points at it. */
static void
collect(struct store *s)
{
    struct log *l = &s->log;

    l->n_saved = 0;
    l->tail += l->region;
    for (; l->n > 0 && l->records[l->first].at < l->tail; l->n--) {
        struct record r = l->records[l->first];
        struct object *x = &s->objects[r.object];

        l->first = (l->first + 1) % l->n_room;
        if (x->where == NOWHERE || x->at != r.at)
            continue;
        x->where = NOWHERE;
        if (worth_carrying(s, r.object))
            save(l, (struct record){x->used_at, r.object});
    }
}

/* Equal uses in the order of the objects' numbers, so that every run gives the same figures. */
static int
latest_first(const void *a, const void *b)
{
    const struct record *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? 1 : -1;
    return (x->object > y->object) - (x->object < y->object);
}

/* The bound makes sure that a reclaim gains more than it writes; within it the latest used come
 * first. */
static void
reclaim(struct store *s)
{
    struct log *l = &s->log;
    uint64_t left = (uint64_t)(s->rule.bound * (double)l->region);

    collect(s);
    qsort(l->saved, l->n_saved, sizeof *l->saved, latest_first);
    for (uint64_t i = 0; i < l->n_saved; i++) {
        uint64_t size = s->objects[l->saved[i].object].size;

        if (size <= left) {
            left -= size;
            write_anew(s, l->saved[i].object);
        }
    }
}

/* The bytes that may lie between tail and head: whole regions, without those kept free. */
static uint64_t
usable(const struct store *s)
{
    return (s->limit / s->log.region - s->rule.spare) * s->log.region;
}

static void
make_room(struct store *s, uint64_t size)
{
    while (s->log.head + size - s->log.tail > usable(s))
        reclaim(s);
}

/* What is dead but not yet reclaimed takes room as well. */
static void
count_held(struct store *s)
{
    s->held = s->log.head - s->log.tail;
}

static void
regions_admit(struct store *s, uint32_t o)
{
    struct object *x = &s->objects[o];

    if (x->size > usable(s))
        return;
    make_room(s, x->size);
    write_anew(s, o);
    count_held(s);
}

/* Making room may carry the very object forward, which is what was wanted, or drop it: then it is
 * written once more from the response that is being served, which a store could do too. */
static void
promote(struct store *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    uint64_t was_at = x->at;

    make_room(s, x->size);
    if (x->where == NOWHERE || x->at == was_at) {
        write_anew(s, o);
    }
    count_held(s);
}

static void
regions_hit(struct store *s, uint32_t o)
{
    struct object *x = &s->objects[o];

    count_use(s, o);
    x->used_at = s->log.head;
    if ((double)age(&s->log, x->at) > (1 - s->rule.promote) * (double)s->limit)
        promote(s, o);
}

static void
regions_forget(struct store *s, uint32_t o)
{
    s->objects[o].where = NOWHERE;
}

/* ---- one store through the whole trace ---- */

static const struct policy policies[] = {
    {"lru", lru_hit, lru_admit, queue_forget},
    {"fifo", nothing_at_hit, lru_admit, queue_forget},
    {"clock", count_use, clock_admit, queue_forget},
    {"slru", slru_hit, slru_admit, queue_forget},
    {"s3fifo", count_use, s3fifo_admit, queue_forget},
    {"regions", regions_hit, regions_admit, regions_forget},
};

static bool
is_held(const struct object *x)
{
    return x->where != NOWHERE && x->where != GHOST;
}

static void
miss(struct store *s, uint32_t o, uint64_t size)
{
    struct object *x = &s->objects[o];

    if (x->where != NOWHERE && x->size != size)
        s->policy->forget(s, o);
    x->size = size;
    if (size > s->limit)
        return;
    s->policy->admit(s, o);
    if (is_held(x))
        s->admitted += size;
    if (s->held > s->peak)
        s->peak = s->held;
}

static void
ask(struct store *s, const struct request *r)
{
    uint32_t o = (uint32_t)r->object;
    struct object *x = &s->objects[o];

    s->asked += r->size;
    if (!is_held(x) || x->size != r->size) {
        miss(s, o, r->size);
        return;
    }
    s->hits++;
    s->hit_bytes += r->size;
    s->policy->hit(s, o);
    if (s->held > s->peak)
        s->peak = s->held;
}

static void
print_result(const struct store *s)
{
    printf("%llu %llu %llu %llu %llu %llu %llu\n", (unsigned long long)trace.n,
           (unsigned long long)s->hits, (unsigned long long)s->asked,
           (unsigned long long)s->hit_bytes, (unsigned long long)s->admitted,
           (unsigned long long)s->written, (unsigned long long)s->peak);
}

static void
set_option(struct store *s, const char *name, const char *value)
{
    struct rule *r = &s->rule;

    if (strcmp(name, "carry") == 0)
        r->carry = atof(value);
    else if (strcmp(name, "bound") == 0)
        r->bound = atof(value);
    else if (strcmp(name, "promote") == 0)
        r->promote = atof(value);
    else if (strcmp(name, "large") == 0)
        r->large = atof(value);
    else if (strcmp(name, "spare") == 0)
        r->spare = strtoull(value, NULL, 10);
    else if (strcmp(name, "region") == 0)
        r->region = strtoull(value, NULL, 10);
    else
        die("no such option");
}

static void
set_policy(struct store *s, const char *name)
{
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        if (strcmp(policies[i].name, name) == 0)
            s->policy = &policies[i];
    if (s->policy == NULL)
        die("no such policy");
}

/* NAME@BYTES:OPTION=VALUE... */
static void
parse(struct store *s, char *spec)
{
    char *bytes = strchr(spec, '@'), *at;

    if (bytes == NULL)
        die("a store is NAME@BYTES");
    *bytes++ = 0;
    set_policy(s, spec);
    s->limit = strtoull(bytes, &at, 10);
    for (char *word = strtok(at, ":"); word != NULL; word = strtok(NULL, ":")) {
        char *value = strchr(word, '=');

        if (value == NULL)
            die("an option is NAME=VALUE");
        *value++ = 0;
        set_option(s, word, value);
    }
}

static void
prepare(struct store *s)
{
    struct log *l = &s->log;

    s->objects = calloc(trace.n_objects + 1, sizeof *s->objects);
    if (s->objects == NULL)
        die(strerror(errno));
    s->first = (struct queue){NONE, NONE, 0, FIRST};
    s->second = (struct queue){NONE, NONE, 0, SECOND};
    s->ghost = (struct queue){NONE, NONE, 0, GHOST};
    l->region = s->rule.region > 0 ? s->rule.region : s->limit / 64;
    if (l->region == 0)
        l->region = 1;
    if (s->limit / l->region <= s->rule.spare)
        l->region = s->limit / (s->rule.spare + 1);
    l->n_room = 1024;
    l->records = grown(NULL, l->n_room, sizeof *l->records);
}

static void
play(char *spec)
{
    struct store s = {.rule = {.carry = 1, .bound = 0.5, .spare = 1}};

    parse(&s, spec);
    prepare(&s);
    for (uint64_t i = 0; i < trace.n; i++)
        ask(&s, &trace.of[i]);
    print_result(&s);
    free(s.objects);
    free(s.log.records);
    free(s.log.saved);
}

static void
read_trace(void)
{
    uint64_t room = 0;
    struct request r;

    while (fread(&r, sizeof r, 1, stdin) == 1) {
        if (trace.n == room) {
            room = 2 * room + 4096;
            trace.of = grown(trace.of, room, sizeof *trace.of);
        }
        if (r.object >= NONE)
            die("too many objects");
        if (r.object >= trace.n_objects)
            trace.n_objects = r.object + 1;
        trace.of[trace.n++] = r;
    }
}

int
main(int n_words, char **words)
{
    read_trace();
    for (int i = 1; i < n_words; i++)
        play(words[i]);
    free(trace.of);
    return 0;
}
