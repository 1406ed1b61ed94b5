/* tools/trace/names.c - open addressing, at most half full. */
#include "tools/trace/names.h"

#include <xxhash.h>

#include "base/check.h"

enum { ROOM_LEAST = 1024 };

static uint32_t
slot_of(const struct names *t, uint64_t hash)
{
    uint32_t i = (uint32_t)(hash >> 32) & (t->room - 1);

    while (t->hashes[i] != 0 && t->hashes[i] != hash)
        i = (i + 1) & (t->room - 1);
    return i;
}

static void
grow(struct names *t)
{
    struct names old = *t;

    CHECK(old.room < UINT32_C(1) << 31);
    t->room = old.room ? old.room * 2 : ROOM_LEAST;
    t->hashes = mem_zalloc(t->room * sizeof(*t->hashes));
    t->numbers = mem_alloc(t->room * sizeof(*t->numbers));
    for (uint32_t i = 0; i < old.room; i++)
        if (old.hashes[i] != 0) {
            uint32_t to = slot_of(t, old.hashes[i]);

            t->hashes[to] = old.hashes[i];
            t->numbers[to] = old.numbers[i];
        }
    mem_free(old.hashes);
    mem_free(old.numbers);
}

static uint64_t
hash_of(struct span text)
{
    return XXH3_64bits(text.n ? text.at : "", text.n) | 1;
}

bool
names_has(const struct names *t, struct span text)
{
    return t->room > 0 && t->hashes[slot_of(t, hash_of(text))] != 0;
}

uint32_t
names_number(struct names *t, struct span text, bool *is_new)
{
    uint64_t hash = hash_of(text);
    uint32_t slot;

    if (t->n >= t->room / 2)
        grow(t);
    slot = slot_of(t, hash);
    if (is_new)
        *is_new = t->hashes[slot] == 0;
    if (t->hashes[slot] == 0) {
        t->hashes[slot] = hash;
        t->numbers[slot] = t->n++;
    }
    return t->numbers[slot];
}

void
names_free(struct names *t)
{
    mem_free(t->hashes);
    mem_free(t->numbers);
    *t = (struct names){0};
}
