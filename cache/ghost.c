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

static struct row *
set_of(const struct ghost *g, uint64_t hash)
{
    return g->rows + (size_t)(hash % (g->n_rows / SET)) * SET;
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

/* What is remembered is lost when the table grows, which is seldom. */
void
ghost_size(struct ghost *g, uint64_t limit_bytes, size_t rows)
{
    size_t n = g->n_rows;

    g->limit = limit_bytes;
    while (n < rows)
        n *= 2;
    if (n == g->n_rows)
        return;
    mem_free(g->rows);
    g->n_rows = n;
    g->rows = mem_zalloc(n * sizeof *g->rows);
}

void
ghost_add(struct ghost *g, uint64_t hash, uint64_t n_bytes)
{
    struct row *set = set_of(g, hash), *to = set;

    g->clock += n_bytes;
    for (int i = 0; i < SET; i++) {
        if (set[i].mark == mark_of(hash) || !is_recent(g, &set[i])) {
            to = &set[i];
            break;
        }
        if (now_of(g) - set[i].at > now_of(g) - to->at)
            to = &set[i];
    }
    *to = (struct row){mark_of(hash), now_of(g)};
}

bool
ghost_take(struct ghost *g, uint64_t hash)
{
    struct row *set = set_of(g, hash);

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
