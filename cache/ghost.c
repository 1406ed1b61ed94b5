/* cache/ghost.c - rows of a mark and a time, in sets of four. The time is the bytes dropped so far,
 * in units of 1 KB; of a full set the oldest gives way. */
#include "cache/ghost.h"

#include "base/check.h"

enum { SET = 4, ROWS_LEAST = 64 };

struct row {
    uint32_t mark, at; /* mark 0: free */
};

struct ghost {
    struct row *rows;
    size_t n_rows; /* a power of two */
    uint64_t limit, clock;
};

struct ghost *
ghost_new(void)
{
    struct ghost *g = mem_zalloc(sizeof *g);

    g->n_rows = ROWS_LEAST;
    g->rows = mem_zalloc(g->n_rows * sizeof *g->rows);
    return g;
}

void
ghost_free(struct ghost **held)
{
    struct ghost *g = *held;

    *held = NULL;
    if (!g)
        return;
    mem_free(g->rows);
    mem_free(g);
}

static uint32_t
mark_of(uint64_t hash)
{
    uint32_t mark = (uint32_t)(hash >> 32);

    return mark ? mark : 1;
}

/* From the mark, so that rows find their sets again in a larger table. */
static struct row *
set_of(const struct ghost *g, uint32_t mark)
{
    return g->rows + (size_t)(mark % (g->n_rows / SET)) * SET;
}

static uint32_t
now_of(const struct ghost *g)
{
    return (uint32_t)(g->clock >> 10);
}

static bool
is_recent(const struct ghost *g, const struct row *r)
{
    return r->mark && now_of(g) - r->at <= g->limit >> 10;
}

/* The row of that mark, a free one, or the oldest of its set. */
static struct row *
place_for(const struct ghost *g, uint32_t mark)
{
    struct row *set = set_of(g, mark), *oldest = set;

    for (int i = 0; i < SET; i++) {
        if (set[i].mark == mark || !is_recent(g, &set[i]))
            return &set[i];
        if (now_of(g) - set[i].at > now_of(g) - oldest->at)
            oldest = &set[i];
    }
    return oldest;
}

static void
grow(struct ghost *g, size_t n_rows)
{
    struct row *old = g->rows;
    size_t n_old = g->n_rows;

    g->n_rows = n_rows;
    g->rows = mem_zalloc(n_rows * sizeof *g->rows);
    for (size_t i = 0; i < n_old; i++)
        if (is_recent(g, &old[i]))
            *place_for(g, old[i].mark) = old[i];
    mem_free(old);
}

void
ghost_size(struct ghost *g, uint64_t limit_bytes, size_t rows)
{
    size_t n = g->n_rows;

    g->limit = limit_bytes;
    while (n < rows)
        n *= 2;
    if (n > g->n_rows)
        grow(g, n);
}

void
ghost_add(struct ghost *g, uint64_t hash, uint64_t n_bytes)
{
    g->clock += n_bytes;
    *place_for(g, mark_of(hash)) = (struct row){mark_of(hash), now_of(g)};
}

bool
ghost_take(struct ghost *g, uint64_t hash)
{
    struct row *set = set_of(g, mark_of(hash));

    for (int i = 0; i < SET; i++)
        if (set[i].mark == mark_of(hash)) {
            bool recent = is_recent(g, &set[i]);

            set[i].mark = 0;
            return recent;
        }
    return false;
}

size_t
ghost_memory(const struct ghost *g)
{
    return g ? sizeof *g + g->n_rows * sizeof *g->rows : 0;
}
