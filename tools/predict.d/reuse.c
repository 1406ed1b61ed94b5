/* tools/predict.d/reuse.c - each use of an object takes the next slot and gives back its old one.
 *
 * The bytes in the slots behind an object's are what was used since: with the object's own size
 * that is the smallest LRU cache that still has it. When the slots are used up the objects move
 * together, in their order, so there are never more than twice as many slots as objects. */
#include "tools/predict.d/reuse.h"

#include "base/check.h"

enum { SLOTS_LEAST = 4096 };

struct reuse *
reuse_new(void)
{
    return mem_zalloc(sizeof(struct reuse));
}

void
reuse_any(struct reuse *r, struct span url, uint64_t bytes)
{
    bool is_new;

    names_number(&r->any, url, &is_new);
    if (is_new)
        return;
    r->any_hits++;
    r->any_hit_bytes += bytes;
}

/* ---- the tree ---- */

static void
tree_add(struct reuse *r, uint32_t slot, uint64_t bytes) /* modulo 2^64: also to take away */
{
    for (uint32_t i = slot; i <= r->tree_room; i += i & -i)
        r->tree[i] += bytes;
}

static uint64_t
tree_sum(const struct reuse *r, uint32_t slot)
{
    uint64_t sum = 0;

    for (uint32_t i = slot; i > 0; i -= i & -i)
        sum += r->tree[i];
    return sum;
}

/* Room for as many uses again as there are objects; the objects keep their order. */
static void
tree_pack(struct reuse *r)
{
    uint32_t room = r->cacheable.n < SLOTS_LEAST / 2 ? SLOTS_LEAST : r->cacheable.n * 2;
    uint32_t *owners = mem_alloc(((size_t)room + 1) * sizeof(*owners));
    uint32_t to = 1;

    CHECK(r->cacheable.n < UINT32_C(1) << 30);
    for (uint32_t slot = 1; slot < r->next_slot; slot++)
        if (r->owners[slot] != REUSE_NOBODY) {
            owners[to] = r->owners[slot];
            r->slots[owners[to]] = to;
            to++;
        }
    mem_free(r->owners);
    mem_free(r->tree);
    r->owners = owners;
    r->tree = mem_zalloc(((size_t)room + 1) * sizeof(*r->tree));
    r->tree_room = room;
    r->next_slot = to;
    for (uint32_t slot = 1; slot < to; slot++)
        tree_add(r, slot, r->sizes[owners[slot]]);
}

static void
use(struct reuse *r, uint32_t object, uint64_t bytes)
{
    if (r->next_slot == 0 || r->next_slot > r->tree_room)
        tree_pack(r);
    r->slots[object] = r->next_slot;
    r->owners[r->next_slot] = object;
    r->sizes[object] = bytes;
    tree_add(r, r->next_slot++, bytes);
    r->held_bytes += bytes;
}

static void
give_back(struct reuse *r, uint32_t object)
{
    tree_add(r, r->slots[object], -r->sizes[object]);
    r->owners[r->slots[object]] = REUSE_NOBODY;
    r->held_bytes -= r->sizes[object];
}

/* ---- objects ---- */

static void
new_object(struct reuse *r, uint32_t object, uint64_t bytes)
{
    if (object >= r->objects_room) {
        r->objects_room = r->objects_room ? r->objects_room * 2 : 1024;
        r->sizes = mem_realloc(r->sizes, r->objects_room * sizeof(*r->sizes));
        r->slots = mem_realloc(r->slots, r->objects_room * sizeof(*r->slots));
    }
    r->unique_bytes += bytes;
    use(r, object, bytes);
}

static void
count_hit(struct reuse *r, uint32_t object, uint64_t bytes)
{
    uint64_t since = r->held_bytes - tree_sum(r, r->slots[object]);
    uint32_t step = scale_step(since + r->sizes[object]);

    r->hits++;
    r->hit_bytes += bytes;
    r->hits_at[step]++;
    r->bytes_at[step] += bytes;
}

bool
reuse_cacheable(struct reuse *r, struct span url, uint64_t bytes, bool confirms)
{
    bool is_new;
    uint32_t object;

    if (confirms && !names_has(&r->cacheable, url))
        return false;
    object = names_number(&r->cacheable, url, &is_new);
    if (is_new) {
        new_object(r, object, bytes);
        return false;
    }
    count_hit(r, object, bytes);
    give_back(r, object);
    if (confirms)
        bytes = r->sizes[object];
    r->unique_bytes += bytes - r->sizes[object];
    use(r, object, bytes);
    return true;
}

/* The step that the size falls into counts whole. */
void
reuse_lru_at(const struct reuse *r, uint64_t cache_bytes, uint64_t *hits, uint64_t *hit_bytes)
{
    uint32_t last = scale_step(cache_bytes);

    *hits = *hit_bytes = 0;
    for (uint32_t i = 0; i <= last; i++) {
        *hits += r->hits_at[i];
        *hit_bytes += r->bytes_at[i];
    }
}

void
reuse_free(struct reuse **held)
{
    struct reuse *r = *held;

    if (r == NULL)
        return;
    *held = NULL;
    names_free(&r->any);
    names_free(&r->cacheable);
    mem_free(r->sizes);
    mem_free(r->slots);
    mem_free(r->tree);
    mem_free(r->owners);
    mem_free(r);
}
