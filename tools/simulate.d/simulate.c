/* simulate - plays a list of requests against stores of a given size, one after the other.
 *
 *   simulate NAME@BYTES[:OPTION=VALUE...]... < REQUESTS
 *
 * REQUESTS is a run of pairs of 64-bit numbers, object and size; objects are numbered from 0
 * without gaps. Each argument is one store, which starts empty and prints one line: requests, hits,
 * bytes asked for, bytes hit, bytes admitted, bytes written, the most bytes it ever held.
 *
 * NAME is lru, fifo, clock, slru, s3fifo, regions or twologs. What a log could not do in place
 * counts as written: clock, slru and s3fifo write what they move, lru and fifo move nothing. A size
 * that differs from the stored one is a miss and replaces what was stored.
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

/* A ring of regions, of which head / region is being filled and tail / region is the oldest.
 * Records begin in one region and may go on in the next. */
struct log {
    uint64_t region, limit, room; /* room: between tail and head, without what is kept free */
    uint64_t head, tail;
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
    double small;   /* twologs: the share of the log for what is new */
    double memory;  /* an lru of such a share stands in front */
    bool told;      /* of the hits in memory */
    uint64_t region, spare, uses; /* uses: twologs: that lead from the small log to the main one */
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
    struct log log, main;
    struct rule rule;
    struct store *memory;
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

/* ---- logs of regions; the oldest region is reclaimed when the free ones run out ---- */

static void
records_grow(struct log *l)
{
    uint64_t n_room = l->n_room * 2 + 1024;
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
write_anew(struct store *s, struct log *l, uint32_t o)
{
    struct object *x = &s->objects[o];

    x->where = l == &s->log ? FIRST : SECOND;
    x->uses = 0;
    x->at = l->head;
    append(l, o, x->size);
    s->written += x->size;
}

/* How much was written since the log was as long as at. */
static double
age(const struct log *l, uint64_t at)
{
    return (double)(l->head - at);
}

/* Of two logs, the one for what is new. */
static bool
leads_to_main(const struct store *s, const struct log *l)
{
    return l == &s->log && s->main.room > 0;
}

static bool
worth_carrying(const struct store *s, const struct log *l, const struct object *x)
{
    if (s->rule.large > 0 && (double)x->size > s->rule.large * (double)l->region)
        return false;
    if (leads_to_main(s, l))
        return x->uses >= s->rule.uses;
    return x->uses > 0 && age(l, x->used_at) < s->rule.carry * (double)l->limit;
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

static bool
is_live(const struct store *s, const struct log *l, struct record r)
{
    const struct object *x = &s->objects[r.object];

    return x->where == (l == &s->log ? FIRST : SECOND) && x->at == r.at;
}

/* Only the log for what is new remembers what it dropped. */
static void
drop(struct store *s, const struct log *l, uint32_t o)
{
    s->objects[o].where = NOWHERE;
    if (leads_to_main(s, l))
        ghost_add(s, o);
}

/* Empties the oldest region; what is to be carried stands in saved, with the time of its last use.
 */
static void
collect(struct store *s, struct log *l)
{
    l->n_saved = 0;
    l->tail += l->region;
    for (; l->n > 0 && l->records[l->first].at < l->tail; l->n--) {
        struct record r = l->records[l->first];
        struct object *x = &s->objects[r.object];

        l->first = (l->first + 1) % l->n_room;
        if (!is_live(s, l, r))
            continue;
        if (worth_carrying(s, l, x))
            save(l, (struct record){x->used_at, r.object});
        else
            drop(s, l, r.object);
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

static void make_room(struct store *s, struct log *l, uint64_t size);

/* The bound makes sure that a reclaim gains more than it writes; within it the latest used come
 * first. What is carried out of the log for the new goes into the main one, where room is made by
 * the same rule. */
static void
reclaim(struct store *s, struct log *l)
{
    struct log *to = leads_to_main(s, l) ? &s->main : l;
    uint64_t left = (uint64_t)(s->rule.bound * (double)l->region);

    collect(s, l);
    if (l->n_saved > 0)
        qsort(l->saved, l->n_saved, sizeof *l->saved, latest_first);
    for (uint64_t i = 0; i < l->n_saved; i++) {
        uint32_t o = l->saved[i].object;
        uint64_t size = s->objects[o].size;

        if (size > left) {
            drop(s, l, o);
            continue;
        }
        left -= size;
        if (to != l)
            make_room(s, to, size);
        write_anew(s, to, o);
    }
}

static void
make_room(struct store *s, struct log *l, uint64_t size)
{
    while (l->head + size - l->tail > l->room)
        reclaim(s, l);
}

/* What is dead but not yet reclaimed takes room as well. */
static void
count_held(struct store *s)
{
    s->held = s->log.head - s->log.tail + s->main.head - s->main.tail;
}

static void
log_put(struct store *s, struct log *l, uint32_t o)
{
    if (s->objects[o].size > l->room)
        return;
    make_room(s, l, s->objects[o].size);
    write_anew(s, l, o);
    count_held(s);
}

static void
regions_admit(struct store *s, uint32_t o)
{
    log_put(s, &s->log, o);
}

/* Making room may carry the very object forward, which is what was wanted, or drop it: then it is
 * written once more from the response that is being served, which a store could do too. */
static void
promote(struct store *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    uint64_t was_at = x->at;

    make_room(s, &s->log, x->size);
    if (x->where == NOWHERE || x->at == was_at)
        write_anew(s, &s->log, o);
    count_held(s);
}

static void
log_use(struct store *s, const struct log *l, uint32_t o)
{
    count_use(s, o);
    s->objects[o].used_at = l->head;
}

static void
regions_hit(struct store *s, uint32_t o)
{
    const struct log *l = &s->log;

    log_use(s, l, o);
    if (age(l, s->objects[o].at) > (1 - s->rule.promote) * (double)l->limit)
        promote(s, o);
}

static void
regions_forget(struct store *s, uint32_t o)
{
    if (s->objects[o].where == GHOST)
        queue_drop(s, o);
    s->objects[o].where = NOWHERE;
}

/* twologs: s3fifo with logs. What is used in the small one, or comes again soon after it was
 * dropped from there, is written to the main one. */
static void
twologs_admit(struct store *s, uint32_t o)
{
    bool known = s->objects[o].where == GHOST;

    if (known)
        queue_drop(s, o);
    log_put(s, known || s->objects[o].size > s->log.room ? &s->main : &s->log, o);
}

static void
twologs_hit(struct store *s, uint32_t o)
{
    log_use(s, s->objects[o].where == FIRST ? &s->log : &s->main, o);
}

/* ---- one store through the whole trace ---- */

static const struct policy policies[] = {
    {"lru", lru_hit, lru_admit, queue_forget},
    {"fifo", nothing_at_hit, lru_admit, queue_forget},
    {"clock", count_use, clock_admit, queue_forget},
    {"slru", slru_hit, slru_admit, queue_forget},
    {"s3fifo", count_use, s3fifo_admit, queue_forget},
    {"regions", regions_hit, regions_admit, regions_forget},
    {"twologs", twologs_hit, twologs_admit, regions_forget},
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
}

static bool
has(const struct store *s, const struct request *r)
{
    return is_held(&s->objects[r->object]) && s->objects[r->object].size == r->size;
}

static void
look_up(struct store *s, const struct request *r)
{
    uint32_t o = (uint32_t)r->object;

    if (has(s, r))
        s->policy->hit(s, o);
    else
        miss(s, o, r->size);
    if (s->held > s->peak)
        s->peak = s->held;
}

/* Memory keeps what was asked for last. Its hits never get as far as the store behind it, which
 * may be told of them nevertheless, so that it knows what is in use. */
static void
ask(struct store *s, const struct request *r)
{
    bool in_memory = s->memory != NULL && has(s->memory, r), here = has(s, r);

    s->asked += r->size;
    if (in_memory || here) {
        s->hits++;
        s->hit_bytes += r->size;
    }
    if (s->memory != NULL)
        look_up(s->memory, r);
    if (!in_memory || (here && s->rule.told))
        look_up(s, r);
}

static void
print_result(const struct store *s)
{
    printf("%llu %llu %llu %llu %llu %llu %llu\n", (unsigned long long)trace.n,
           (unsigned long long)s->hits, (unsigned long long)s->asked,
           (unsigned long long)s->hit_bytes, (unsigned long long)s->admitted,
           (unsigned long long)s->written, (unsigned long long)s->peak);
}

static double *
share_option(struct rule *r, const char *name)
{
    const struct {
        const char *name;
        double *value;
    } all[] = {{"carry", &r->carry}, {"bound", &r->bound}, {"promote", &r->promote},
               {"large", &r->large}, {"small", &r->small}, {"memory", &r->memory}};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].value;
    return NULL;
}

static void
set_option(struct rule *r, const char *name, const char *value)
{
    double *share = share_option(r, name);

    if (share != NULL)
        *share = atof(value);
    else if (strcmp(name, "spare") == 0)
        r->spare = strtoull(value, NULL, 10);
    else if (strcmp(name, "uses") == 0)
        r->uses = strtoull(value, NULL, 10);
    else if (strcmp(name, "region") == 0)
        r->region = strtoull(value, NULL, 10);
    else if (strcmp(name, "told") == 0)
        r->told = value[0] == '1';
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
        set_option(&s->rule, word, value);
    }
}

static void
prepare_queues(struct store *s)
{
    s->objects = grown(NULL, trace.n_objects + 1, sizeof *s->objects);
    memset(s->objects, 0, (trace.n_objects + 1) * sizeof *s->objects);
    s->first = (struct queue){NONE, NONE, 0, FIRST};
    s->second = (struct queue){NONE, NONE, 0, SECOND};
    s->ghost = (struct queue){NONE, NONE, 0, GHOST};
}

/* Two logs take their regions, and the free ones, from one store. */
static void
prepare_logs(struct store *s)
{
    uint64_t region = s->rule.region;
    uint64_t n = region > 0 ? s->limit / region : 0, n_small = 0;

    if (s->policy->admit != regions_admit && s->policy->admit != twologs_admit)
        return;
    if (n < s->rule.spare + 2)
        die("the store is too small for such regions");
    if (s->policy->admit == twologs_admit) {
        n_small = (uint64_t)(s->rule.small * (double)n);
        n_small += n_small == 0;
        s->main.region = region;
        s->main.limit = (n - n_small) * region;
        s->main.room = (n - n_small - s->rule.spare) * region;
    }
    s->log.region = region;
    s->log.limit = n_small > 0 ? n_small * region : s->limit;
    s->log.room = n_small > 0 ? n_small * region : (n - s->rule.spare) * region;
}

static void
prepare_memory(struct store *s, struct store *memory)
{
    *memory = (struct store){.limit = (uint64_t)(s->rule.memory * (double)s->limit)};
    set_policy(memory, "lru");
    prepare_queues(memory);
    s->memory = memory;
}

static void
play(char *spec)
{
    struct store s = {.rule = {.carry = 1, .bound = 0.5, .small = 0.1, .spare = 1, .uses = 1}};
    struct store memory = {0};

    parse(&s, spec);
    prepare_queues(&s);
    prepare_logs(&s);
    if (s.rule.memory > 0)
        prepare_memory(&s, &memory);
    for (uint64_t i = 0; i < trace.n; i++)
        ask(&s, &trace.of[i]);
    print_result(&s);
    free(s.objects);
    free(s.log.records);
    free(s.log.saved);
    free(s.main.records);
    free(s.main.saved);
    free(memory.objects);
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
