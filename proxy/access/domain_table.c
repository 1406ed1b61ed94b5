/* domain_table.c - domains in one open-addressed hash table.
 *
 * The host is walked from its right end; at each label boundary the suffix is looked up. One kind
 * of key serves both forms: a flag says whether names below count. Overlapping entries are
 * therefore just two flags or two keys, never an error. Names come from the operator, so the hash
 * needs no seed: a client chooses what is looked up, not what is stored. */
#include "proxy/access/domain_table.h"

#include <xxhash.h>

#include "base/check.h"

/* A domain has at most 255 bytes. Its room has one more, a whole number of vectors: gcc -O3 else
 * believes that the loop of fold() could write past the end. */
enum { EXACT = 1, BELOW = 2, DOMAIN_MAX_BYTES = 255, ROOM_BYTES = 256 };

struct domain_slot {
    uint32_t hash, at; /* at: offset into names */
    uint8_t n, flags;  /* flags 0: the slot is free */
};

static uint32_t
hash_of(struct span s)
{
    return (uint32_t)XXH3_64bits(s.at, s.n);
}

static struct domain_slot *
slot_find(const struct domain_table *t, struct span name, uint32_t hash)
{
    for (unsigned i = hash & (t->n_slots - 1);; i = (i + 1) & (t->n_slots - 1)) {
        struct domain_slot *s = &t->slots[i];

        if (s->flags == 0)
            return s;
        if (s->hash == hash && s->n == name.n && memcmp(t->names.at + s->at, name.at, name.n) == 0)
            return s;
    }
}

static void
grow(struct domain_table *t)
{
    struct domain_table bigger = *t;

    bigger.n_slots = t->n_slots ? t->n_slots * 2 : 16;
    bigger.slots = mem_zalloc(bigger.n_slots * sizeof *bigger.slots);
    for (unsigned i = 0; i < t->n_slots; i++) {
        const struct domain_slot *s = &t->slots[i];

        if (s->flags)
            *slot_find(&bigger, span_of(t->names.at + s->at, s->n), s->hash) = *s;
    }
    mem_free(t->slots);
    *t = bigger;
}

/* Lower case, one trailing dot gone; false when it is no length a domain can have. */
static bool
fold(struct span name, char out[ROOM_BYTES], struct span *folded)
{
    if (name.n && name.at[name.n - 1] == '.')
        name.n--;
    if (name.n == 0 || name.n > DOMAIN_MAX_BYTES)
        return false;
    for (size_t i = 0; i < name.n; i++)
        out[i] = name.at[i] >= 'A' && name.at[i] <= 'Z' ? (char)(name.at[i] | 0x20) : name.at[i];
    *folded = span_of(out, name.n);
    return true;
}

void
domain_table_add(struct domain_table *t, struct span domain, bool with_below)
{
    char room[ROOM_BYTES];
    struct domain_slot *s;
    struct span name;
    uint32_t hash;

    if (!fold(domain, room, &name))
        return;
    if (t->n * 2 >= t->n_slots)
        grow(t);
    hash = hash_of(name);
    s = slot_find(t, name, hash);
    if (s->flags == 0) {
        *s = (struct domain_slot){.hash = hash, .at = (uint32_t)t->names.n, .n = (uint8_t)name.n};
        CHECK(t->names.n < UINT32_MAX - name.n);
        buf_add(&t->names, name);
        t->n++;
    }
    s->flags |= with_below ? BELOW : EXACT;
}

bool
domain_table_has(const struct domain_table *t, struct span host, bool below)
{
    char room[ROOM_BYTES];
    struct span name;

    if (t->n == 0 || !fold(host, room, &name))
        return false;
    if (slot_find(t, name, hash_of(name))->flags)
        return true;
    for (size_t i = name.n; below && i-- > 1;) {
        struct span suffix = span_skip(name, i);

        if (name.at[i - 1] == '.' && (slot_find(t, suffix, hash_of(suffix))->flags & BELOW))
            return true;
    }
    return false;
}

void
domain_table_free(struct domain_table *t)
{
    mem_free(t->slots);
    buf_free(&t->names);
    *t = (struct domain_table){0};
}
