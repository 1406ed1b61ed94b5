/* cache/disk/directory.c - rows of 24 bytes in open-addressed tables.
 *
 * A table is filled to 85 % and grows by an eighth, which keeps the memory of a row between 28 and
 * 32 bytes. Rows are searched one after the other from the place their hash names; taking one out
 * moves those behind it up, so there are no tombstones. */
#include "cache/disk/directory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { TABLES = 64, ROWS_AT_FIRST = 16 };

#define AT_BITS 40 /* in units of 16 bytes: 16 TB */
#define AT_MASK ((UINT64_C(1) << AT_BITS) - 1)
#define PIECE_BIT UINT32_C(0x80000000)
#define CHECKED_BIT UINT32_C(0x40000000)
#define USES_AT 28
#define USES_MOST 3u
#define UNITS_MASK UINT32_C(0x0fffffff) /* of 16 bytes: 4 GB a record */

struct slot {
    uint64_t hash;
    uint64_t at_tag; /* 40 bits of place, 24 bits of tag; the place is never 0 in a row in use */
    uint32_t units;  /* and whether it is a piece, and checked */
    uint32_t used_s;
};

struct table {
    pthread_mutex_t lock;
    struct slot *slots;
    size_t n, room, pieces;
    uint64_t units;
};

struct directory {
    struct table tables[TABLES];
};

struct directory *
directory_new(void)
{
    struct directory *d = mem_zalloc(sizeof *d);

    for (int i = 0; i < TABLES; i++) {
        pthread_mutex_init(&d->tables[i].lock, NULL);
        d->tables[i].room = ROWS_AT_FIRST;
        d->tables[i].slots = mem_zalloc(ROWS_AT_FIRST * sizeof(struct slot));
    }
    return d;
}

void
directory_free(struct directory **held)
{
    struct directory *d = *held;

    *held = NULL;
    for (int i = 0; i < TABLES; i++) {
        pthread_mutex_destroy(&d->tables[i].lock);
        mem_free(d->tables[i].slots);
    }
    mem_free(d);
}

static struct table *
table_of(struct directory *d, uint64_t hash)
{
    return &d->tables[hash >> 58];
}

/* The place a hash names: its lower bits spread over any number of slots. */
static size_t
home_of(const struct table *t, uint64_t hash)
{
    return (size_t)(((__uint128_t)(hash << 6) * t->room) >> 64);
}

static bool
is_free(const struct slot *s)
{
    return s->at_tag == 0;
}

static struct directory_row
row_of(const struct slot *s)
{
    return (struct directory_row){
        .hash = s->hash,
        .at = (s->at_tag & AT_MASK) * 16,
        .tag = (uint32_t)(s->at_tag >> AT_BITS),
        .bytes = (uint64_t)(s->units & UNITS_MASK) * 16,
        .used_s = s->used_s,
        .uses = (s->units >> USES_AT) & USES_MOST,
        .piece = s->units & PIECE_BIT,
        .checked = s->units & CHECKED_BIT,
    };
}

static struct slot
slot_of(const struct directory_row *r)
{
    CHECK(r->at % 16 == 0 && r->at / 16 <= AT_MASK && r->at > 0 && r->bytes / 16 <= UNITS_MASK);
    return (struct slot){
        .hash = r->hash,
        .at_tag = r->at / 16 | (uint64_t)r->tag << AT_BITS,
        .units = (uint32_t)(r->bytes / 16) | (r->piece ? PIECE_BIT : 0) |
                 (r->checked ? CHECKED_BIT : 0) | (uint32_t)(r->uses & USES_MOST) << USES_AT,
        .used_s = r->used_s,
    };
}

static size_t
next_of(const struct table *t, size_t i)
{
    return i + 1 == t->room ? 0 : i + 1;
}

static void
slot_insert(struct table *t, const struct slot *s)
{
    size_t i = home_of(t, s->hash);

    while (!is_free(&t->slots[i]))
        i = next_of(t, i);
    t->slots[i] = *s;
    t->n++;
    t->pieces += (s->units & PIECE_BIT) != 0;
    t->units += s->units & UNITS_MASK;
}

static void
table_resize(struct table *t, size_t room)
{
    struct slot *old = t->slots;
    size_t n_old = t->room;

    t->room = room;
    t->slots = mem_zalloc(t->room * sizeof *t->slots);
    t->n = t->pieces = 0;
    t->units = 0;
    for (size_t i = 0; i < n_old; i++)
        if (!is_free(&old[i]))
            slot_insert(t, &old[i]);
    mem_free(old);
}

/* Is `home` outside of the cyclic interval (hole, i]? Then what stands at i may move to the hole.
 */
static bool
may_move(size_t home, size_t hole, size_t i)
{
    return hole <= i ? home <= hole || home > i : home <= hole && home > i;
}

static void
slot_remove(struct table *t, size_t hole)
{
    t->n--;
    t->pieces -= (t->slots[hole].units & PIECE_BIT) != 0;
    t->units -= t->slots[hole].units & UNITS_MASK;
    for (size_t i = next_of(t, hole); !is_free(&t->slots[i]); i = next_of(t, i)) {
        if (!may_move(home_of(t, t->slots[i].hash), hole, i))
            continue;
        t->slots[hole] = t->slots[i];
        hole = i;
    }
    t->slots[hole] = (struct slot){0};
}

/* The slot of hash whose place and tag, as far as the masks look, are `wanted`; room: none. */
static size_t
slot_find(const struct table *t, uint64_t hash, uint64_t mask, uint64_t wanted)
{
    for (size_t i = home_of(t, hash); !is_free(&t->slots[i]); i = next_of(t, i))
        if (t->slots[i].hash == hash && (t->slots[i].at_tag & mask) == wanted)
            return i;
    return t->room;
}

/* Rows that come in the order of their hashes would crowd in a table that is still to grow. */
void
directory_reserve(struct directory *d, uint64_t rows)
{
    size_t room = (size_t)(rows / TABLES * 100 / 84 + ROWS_AT_FIRST);

    for (int i = 0; i < TABLES; i++) {
        struct table *t = &d->tables[i];

        pthread_mutex_lock(&t->lock);
        if (room > t->room)
            table_resize(t, room);
        pthread_mutex_unlock(&t->lock);
    }
}

void
directory_put(struct directory *d, const struct directory_row *row)
{
    struct table *t = table_of(d, row->hash);
    struct slot s = slot_of(row);
    size_t old;

    pthread_mutex_lock(&t->lock);
    old = slot_find(t, row->hash, ~AT_MASK, s.at_tag & ~AT_MASK);
    if (old < t->room)
        slot_remove(t, old);
    if ((t->n + 1) * 100 > t->room * 85)
        table_resize(t, t->room + t->room / 8 + 4);
    slot_insert(t, &s);
    pthread_mutex_unlock(&t->lock);
}

unsigned
directory_find(struct directory *d, uint64_t hash, struct directory_row *out, unsigned max)
{
    struct table *t = table_of(d, hash);
    unsigned n = 0;

    pthread_mutex_lock(&t->lock);
    for (size_t i = home_of(t, hash); !is_free(&t->slots[i]) && n < max; i = next_of(t, i))
        if (t->slots[i].hash == hash)
            out[n++] = row_of(&t->slots[i]);
    pthread_mutex_unlock(&t->lock);
    return n;
}

/* Only while it lies where the row says. */
static bool
slot_mark(struct directory *d, const struct directory_row *row,
          void (*mark)(struct slot *, uint32_t), uint32_t arg)
{
    struct table *t = table_of(d, row->hash);
    size_t i;
    bool found;

    pthread_mutex_lock(&t->lock);
    i = slot_find(t, row->hash, AT_MASK, row->at / 16);
    found = i < t->room;
    if (found)
        mark(&t->slots[i], arg);
    pthread_mutex_unlock(&t->lock);
    return found;
}

static void
mark_used(struct slot *s, uint32_t now_s)
{
    uint32_t uses = (s->units >> USES_AT) & USES_MOST;

    s->used_s = now_s;
    if (uses < USES_MOST)
        s->units += UINT32_C(1) << USES_AT;
}

static void
mark_checked(struct slot *s, uint32_t arg)
{
    s->units |= CHECKED_BIT;
}

static void
mark_nothing(struct slot *s, uint32_t arg)
{
}

bool
directory_holds(struct directory *d, const struct directory_row *row)
{
    return slot_mark(d, row, mark_nothing, 0);
}

bool
directory_touch(struct directory *d, const struct directory_row *row, uint32_t now_s)
{
    return slot_mark(d, row, mark_used, now_s);
}

void
directory_check(struct directory *d, const struct directory_row *row)
{
    (void)slot_mark(d, row, mark_checked, 0);
}

bool
directory_remove(struct directory *d, uint64_t hash, uint64_t at)
{
    struct table *t = table_of(d, hash);
    size_t i;
    bool found;

    pthread_mutex_lock(&t->lock);
    i = slot_find(t, hash, AT_MASK, at / 16);
    found = i < t->room;
    if (found)
        slot_remove(t, i);
    pthread_mutex_unlock(&t->lock);
    return found;
}

unsigned
directory_remove_all(struct directory *d, uint64_t hash)
{
    struct table *t = table_of(d, hash);
    unsigned n = 0;
    size_t i;

    pthread_mutex_lock(&t->lock);
    while ((i = slot_find(t, hash, 0, 0)) < t->room) {
        slot_remove(t, i);
        n++;
    }
    pthread_mutex_unlock(&t->lock);
    return n;
}

void
directory_clear(struct directory *d)
{
    for (int k = 0; k < TABLES; k++) {
        struct table *t = &d->tables[k];

        pthread_mutex_lock(&t->lock);
        memset(t->slots, 0, t->room * sizeof *t->slots);
        t->n = t->pieces = 0;
        t->units = 0;
        pthread_mutex_unlock(&t->lock);
    }
}

/* A removal moves others to where we are, so the same place is looked at again; what it moves from
 * the end of the array round to its start was either seen or will be. */
static void
table_take_range(struct table *t, uint64_t from, uint64_t to,
                 void (*taken)(void *arg, const struct directory_row *row), void *arg)
{
    for (size_t i = 0; i < t->room;) {
        struct directory_row row = row_of(&t->slots[i]);

        if (is_free(&t->slots[i]) || row.at + row.bytes <= from || row.at >= to) {
            i++;
            continue;
        }
        taken(arg, &row);
        slot_remove(t, i);
    }
}

void
directory_take_range(struct directory *d, uint64_t from, uint64_t to,
                     void (*taken)(void *arg, const struct directory_row *row), void *arg)
{
    for (int k = 0; k < TABLES; k++) {
        struct table *t = &d->tables[k];

        pthread_mutex_lock(&t->lock);
        table_take_range(t, from, to, taken, arg);
        table_take_range(t, from, to, taken, arg); /* what wrapped round the end */
        pthread_mutex_unlock(&t->lock);
    }
}

void
directory_each(struct directory *d, void (*fn)(void *arg, const struct directory_row *row),
               void *arg)
{
    for (int k = 0; k < TABLES; k++) {
        struct table *t = &d->tables[k];

        pthread_mutex_lock(&t->lock);
        for (size_t i = 0; i < t->room; i++)
            if (!is_free(&t->slots[i])) {
                struct directory_row row = row_of(&t->slots[i]);

                fn(arg, &row);
            }
        pthread_mutex_unlock(&t->lock);
    }
}

struct within {
    uint64_t from, to;
    struct directory_row *rows;
    size_t n, room;
};

static void
row_within(void *arg, const struct directory_row *row)
{
    struct within *w = arg;

    if (row->at < w->from || row->at >= w->to)
        return;
    if (w->n == w->room) {
        w->room = w->room ? w->room * 2 : 256;
        w->rows = mem_realloc(w->rows, w->room * sizeof *w->rows);
    }
    w->rows[w->n++] = *row;
}

static int
by_place(const void *a, const void *b)
{
    uint64_t x = ((const struct directory_row *)a)->at, y = ((const struct directory_row *)b)->at;

    return (x > y) - (x < y);
}

struct directory_row *
directory_rows_in(struct directory *d, uint64_t from, uint64_t to, size_t *n)
{
    struct within w = {.from = from, .to = to};

    directory_each(d, row_within, &w);
    if (w.n)
        qsort(w.rows, w.n, sizeof *w.rows, by_place);
    *n = w.n;
    return w.rows;
}

static uint64_t
sum_of(struct directory *d, uint64_t (*of)(const struct table *t))
{
    uint64_t sum = 0;

    for (int k = 0; k < TABLES; k++) {
        pthread_mutex_lock(&d->tables[k].lock);
        sum += of(&d->tables[k]);
        pthread_mutex_unlock(&d->tables[k].lock);
    }
    return sum;
}

static uint64_t
rows_of(const struct table *t)
{
    return t->n;
}

static uint64_t
objects_of(const struct table *t)
{
    return t->n - t->pieces;
}

static uint64_t
bytes_of(const struct table *t)
{
    return t->units * 16;
}

static uint64_t
memory_of(const struct table *t)
{
    return sizeof *t + t->room * sizeof *t->slots;
}

uint64_t
directory_count(struct directory *d)
{
    return sum_of(d, objects_of);
}

uint64_t
directory_rows(struct directory *d)
{
    return sum_of(d, rows_of);
}

uint64_t
directory_live_bytes(struct directory *d)
{
    return sum_of(d, bytes_of);
}

uint64_t
directory_memory(struct directory *d)
{
    return sum_of(d, memory_of);
}
