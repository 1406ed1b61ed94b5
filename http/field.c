/* http/field.c - field names and lists of field lines.
 *
 * A name is recognised by a hash of its length and three of its letters, then compared eight bytes
 * at a time against words prepared from fields.def, so that a new line there needs no change here.
 * The masks fold letters only: "a\rb" is not "a-b", though they differ in the bit that folds case.
 */
#include "http/field.h"

#include "base/check.h"

enum {
    FLAG_HOP = 1,
    FLAG_FRAME = 2,
    HASH_SLOTS = 256,
    NAME_LONGEST = 32,
    NAME_WORDS = NAME_LONGEST / 8,
    FIRST_ROOM = 16,
};

#define HOP FLAG_HOP
#define FRAME FLAG_FRAME
#define SINGLE 0
#define LIST 0
static const struct {
    struct span name;
    unsigned flags;
} known[FIELDS] = {
    [FIELD_OTHER] = {{"", 0}, 0},
#define FIELD(id, name, flags) [FIELD_##id] = {{name, sizeof(name) - 1}, flags},
#include "http/fields.def"
#undef FIELD
};
#undef HOP
#undef FRAME
#undef SINGLE
#undef LIST

/* Lower-case name in words of 8 bytes, and the bit 0x20 of each byte that is a letter. */
static struct folded {
    uint64_t word[NAME_WORDS], mask[NAME_WORDS];
    unsigned n_words;
} folded[FIELDS];
static uint8_t slots[HASH_SLOTS];

_Static_assert(FIELDS <= 255, "slots hold a byte each");

#define TCHAR(c)                                                                                   \
    (((c) >= '0' && (c) <= '9') || ((c) >= 'A' && (c) <= 'Z') || ((c) >= 'a' && (c) <= 'z') ||     \
     (c) == '!' || ((c) >= '#' && (c) <= '\'') || (c) == '*' || (c) == '+' || (c) == '-' ||        \
     (c) == '.' || (c) == '^' || (c) == '_' || (c) == '`' || (c) == '|' || (c) == '~')

/* ---- recognising a name ---- */

static unsigned
hash_of(struct span name)
{
    const unsigned char *c = (const unsigned char *)name.at;
    unsigned first = c[0] | 0x20, last = c[name.n - 1] | 0x20, middle = c[name.n / 2] | 0x20;

    return (first * 7 + last * 61 + middle * 23 + (unsigned)name.n * 5) % HASH_SLOTS;
}

/* Bytes from `at` on of a name, as a word: at most 8, the last word of a long name overlaps. */
static uint64_t
word_of(struct span name, size_t at)
{
    uint64_t word = 0;

    if (name.n >= 8) {
        memcpy(&word, name.at + (at + 8 > name.n ? name.n - 8 : at), 8);
    } else if (name.n >= 4) {
        uint32_t head, tail;

        memcpy(&head, name.at, 4);
        memcpy(&tail, name.at + name.n - 4, 4);
        word = head | (uint64_t)tail << 32;
    } else {
        for (size_t i = 0; i < name.n; i++)
            word |= (uint64_t)(unsigned char)name.at[i] << 8 * i;
    }
    return word;
}

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void
fold(struct span name, struct folded *f)
{
    char lower[NAME_LONGEST], bits[NAME_LONGEST];

    CHECK(name.n > 0 && name.n <= NAME_LONGEST);
    for (size_t i = 0; i < name.n; i++) {
        bits[i] = is_letter(name.at[i]) ? 0x20 : 0;
        lower[i] = (char)(name.at[i] | bits[i]);
    }
    for (size_t at = 0; at < name.n; at += 8, f->n_words++) {
        f->word[f->n_words] = word_of(span_of(lower, name.n), at);
        f->mask[f->n_words] = word_of(span_of(bits, name.n), at);
    }
}

/* Before main, hence before any thread. */
__attribute__((constructor)) static void
prepare(void)
{
    for (unsigned id = 1; id < FIELDS; id++) {
        unsigned slot = hash_of(known[id].name);

        fold(known[id].name, &folded[id]);
        while (slots[slot])
            slot = (slot + 1) % HASH_SLOTS;
        slots[slot] = (uint8_t)id;
    }
}

static bool
is_named(unsigned id, struct span name)
{
    const struct folded *f = &folded[id];

    if (known[id].name.n != name.n)
        return false;
    for (unsigned i = 0; i < f->n_words; i++) {
        if ((word_of(name, 8 * i) | f->mask[i]) != f->word[i])
            return false;
    }
    return true;
}

enum field_id
field_id_of(struct span name)
{
    if (name.n == 0 || name.n > NAME_LONGEST)
        return FIELD_OTHER;
    for (unsigned slot = hash_of(name); slots[slot]; slot = (slot + 1) % HASH_SLOTS) {
        if (is_named(slots[slot], name))
            return (enum field_id)slots[slot];
    }
    return FIELD_OTHER;
}

struct span
field_name(enum field_id id)
{
    return known[id].name;
}

bool
field_is_hop_by_hop(enum field_id id)
{
    return known[id].flags & FLAG_HOP;
}

bool
field_is_framing(enum field_id id)
{
    return known[id].flags & FLAG_FRAME;
}

bool
field_name_is_token(struct span name)
{
    for (size_t i = 0; i < name.n; i++) {
        if (!TCHAR(name.at[i]))
            return false;
    }
    return name.n > 0;
}

/* RFC 9110 section 5.5: these three can end a line for somebody. */
bool
field_value_is_valid(struct span value)
{
    for (size_t i = 0; i < value.n; i++) {
        if (value.at[i] == '\r' || value.at[i] == '\n' || value.at[i] == '\0')
            return false;
    }
    return true;
}

/* ---- lists of field lines ---- */

static void
grow(struct fields *f, struct arena *a)
{
    unsigned cap = f->cap ? f->cap * 2 : FIRST_ROOM;
    struct field *at = arena_alloc(a, cap * sizeof *at);

    if (f->n)
        memcpy(at, f->at, f->n * sizeof *at);
    f->at = at;
    f->cap = cap;
}

static void
add(struct fields *f, struct arena *a, enum field_id id, struct span name, struct span value)
{
    if (f->n == f->cap)
        grow(f, a);
    f->at[f->n++] = (struct field){.name = name, .value = value, .id = id};
}

void
fields_add(struct fields *f, struct arena *a, struct span name, struct span value)
{
    add(f, a, field_id_of(name), name, value);
}

void
fields_add_id(struct fields *f, struct arena *a, enum field_id id, struct span value)
{
    add(f, a, id, known[id].name, value);
}

/* What a caller asks for: a known field by its number, any other by its name. */
struct wanted {
    enum field_id id;
    struct span name;
};

static bool
is_wanted(const struct field *field, struct wanted w)
{
    return field->id == w.id && (w.id != FIELD_OTHER || span_eq_ci(field->name, w.name));
}

static const struct field *
find_from(const struct fields *f, struct wanted w, unsigned from)
{
    for (unsigned i = from; i < f->n; i++) {
        if (is_wanted(&f->at[i], w))
            return &f->at[i];
    }
    return NULL;
}

const struct field *
fields_find(const struct fields *f, enum field_id id)
{
    for (unsigned i = 0; i < f->n; i++) {
        if (f->at[i].id == id)
            return &f->at[i];
    }
    return NULL;
}

const struct field *
fields_next(const struct fields *f, enum field_id id, const struct field *after)
{
    for (const struct field *field = after + 1; field < f->at + f->n; field++) {
        if (field->id == id)
            return field;
    }
    return NULL;
}

const struct field *
fields_find_name(const struct fields *f, struct span name)
{
    return find_from(f, (struct wanted){field_id_of(name), name}, 0);
}

unsigned
fields_count(const struct fields *f, enum field_id id)
{
    unsigned n = 0;

    for (unsigned i = 0; i < f->n; i++)
        n += f->at[i].id == id;
    return n;
}

void
fields_remove(struct fields *f, enum field_id id)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < f->n; i++) {
        if (f->at[i].id != id)
            f->at[kept++] = f->at[i];
    }
    f->n = kept;
}

void
fields_remove_name(struct fields *f, struct span name)
{
    struct wanted w = {field_id_of(name), name};
    unsigned kept = 0;

    for (unsigned i = 0; i < f->n; i++) {
        if (!is_wanted(&f->at[i], w))
            f->at[kept++] = f->at[i];
    }
    f->n = kept;
}

/* ---- list values ---- */

static struct span
join(const struct fields *f, struct arena *a, struct wanted w)
{
    const struct field *first = find_from(f, w, 0), *field;
    size_t n = 0, lines = 0;
    char *text, *to;

    if (first == NULL)
        return SPAN_NONE;
    for (field = first; field; field = find_from(f, w, (unsigned)(field - f->at) + 1), lines++)
        n += field->value.n + 2;
    if (lines == 1)
        return first->value;
    to = text = arena_alloc(a, n);
    for (field = first; field; field = find_from(f, w, (unsigned)(field - f->at) + 1)) {
        if (field != first)
            *to++ = ',', *to++ = ' ';
        if (field->value.n)
            memcpy(to, field->value.at, field->value.n);
        to += field->value.n;
    }
    return span_of(text, (size_t)(to - text));
}

struct span
fields_join(const struct fields *f, struct arena *a, enum field_id id)
{
    return join(f, a, (struct wanted){id, known[id].name});
}

struct span
fields_join_name(const struct fields *f, struct arena *a, struct span name)
{
    return join(f, a, (struct wanted){field_id_of(name), name});
}

/* Length of the member at the front: up to a comma outside quotes. An open quote takes the rest. */
static size_t
member_length(struct span s)
{
    bool quoted = false;

    for (size_t i = 0; i < s.n; i++) {
        char c = s.at[i];

        if (c == '"')
            quoted = !quoted;
        else if (quoted && c == '\\')
            i++;
        else if (!quoted && c == ',')
            return i;
    }
    return s.n;
}

/* RFC 9110 section 5.6.1.2 */
bool
list_next(struct span *rest, struct span *member)
{
    while (rest->n > 0) {
        size_t n = member_length(*rest);

        *member = span_trim(span_first(*rest, n));
        *rest = span_skip(*rest, n + 1);
        if (member->n > 0)
            return true;
    }
    return false;
}

bool
fields_has_token(const struct fields *f, enum field_id id, struct span token)
{
    for (unsigned i = 0; i < f->n; i++) {
        struct span rest = f->at[i].value, member;

        if (f->at[i].id != id)
            continue;
        while (list_next(&rest, &member)) {
            if (span_eq_ci(span_trim(span_first(member, span_index(member, ';'))), token))
                return true;
        }
    }
    return false;
}
