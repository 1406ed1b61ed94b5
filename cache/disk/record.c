/* cache/disk/record.c - encoding and decoding of records.
 *
 * The fixed part is 152 bytes: magic, version, checksums, numbers, the lengths of the texts. The
 * texts follow in the order of the struct, then the sums, then zeros up to the alignment. */
#include "cache/disk/record.h"

#include <string.h>
#include <xxhash.h>

#define MAGIC UINT64_C(0x3144434552545543) /* "CUTRECD1" read as a number */
#define TEXT_MAX (16u << 20)
#define HEAD_MAX (64u << 20)
#define BODY_MAX (UINT64_C(1) << 44)

enum { TEXTS = 6, SPARE = 32, AUTHORIZED = 1, DATED = 2, PART = 4, KIND_AT = 3, FLAGS_MAX = 31 };

struct fixed { /* in memory as on disk, but for the order of the bytes */
    uint64_t magic;
    uint64_t image_sum; /* of all behind the fixed part */
    uint64_t digest[2], generation, sequence;
    uint64_t response_wall_ms, initial_age_s, part_from, part_whole, body_bytes;
    uint64_t chain, chain_bytes;
    uint32_t piece_bytes, head_bytes;
    uint32_t texts[TEXTS];
    uint16_t status, version;
    uint32_t flags;
    uint64_t fixed_sum; /* of all before it */
};
_Static_assert(sizeof(struct fixed) == 152, "the fixed part has 152 bytes");

static uint64_t
aligned(uint64_t n)
{
    return (n + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
}

uint64_t
record_blocks(uint64_t body_bytes)
{
    return (body_bytes + RECORD_BLOCK - 1) / RECORD_BLOCK;
}

/* The same order on disk and here. */
static const struct span *
text_of(const struct record *r, unsigned i)
{
    const struct span *const texts[TEXTS] = {&r->uri,   &r->vary,  &r->reason,
                                             &r->block, &r->range, &r->trailer};

    return texts[i];
}

static uint64_t
texts_bytes(const struct record *r)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < TEXTS; i++)
        n += text_of(r, i)->n;
    return n;
}

static uint64_t
bytes_needed(const struct record *r)
{
    return sizeof(struct fixed) + texts_bytes(r) + record_blocks(r->body_bytes) * sizeof(uint64_t);
}

/* Nothing of a piece or a tombstone ever changes. */
size_t
record_head_bytes(const struct record *r)
{
    bool fixed = r->kind == RECORD_PIECE || r->status == 0;

    return r->head_room ? r->head_room : (size_t)aligned(bytes_needed(r) + (fixed ? 0 : SPARE));
}

bool
record_head_fits(const struct record *r)
{
    return bytes_needed(r) <= r->head_room;
}

uint64_t
record_length(const struct record *r)
{
    return r->kind == RECORD_CHAIN ? r->chain_bytes : r->body_bytes;
}

uint64_t
record_bytes(const struct record *r)
{
    return record_head_bytes(r) + aligned(r->body_bytes);
}

uint64_t
record_sum(struct span bytes)
{
    return XXH3_64bits(bytes.at, bytes.n);
}

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "the order of the bytes on disk is that of little-endian machines"
#endif

static struct fixed
fixed_of(const struct record *r)
{
    struct fixed f = {
        .magic = MAGIC,
        .digest = {r->digest[0], r->digest[1]},
        .generation = r->generation,
        .sequence = r->sequence,
        .response_wall_ms = (uint64_t)r->response_wall_ms,
        .initial_age_s = (uint64_t)r->initial_age_s,
        .part_from = r->part_from,
        .part_whole = r->part_whole,
        .body_bytes = r->body_bytes,
        .chain = r->chain,
        .chain_bytes = r->chain_bytes,
        .piece_bytes = r->piece_bytes,
        .head_bytes = (uint32_t)record_head_bytes(r),
        .status = (uint16_t)r->status,
        .version = RECORD_VERSION,
    };

    f.flags = (r->had_authorization ? AUTHORIZED : 0) | (r->date_given ? DATED : 0) |
              (r->is_part ? PART : 0) | (uint32_t)r->kind << KIND_AT;
    for (unsigned i = 0; i < TEXTS; i++)
        f.texts[i] = (uint32_t)text_of(r, i)->n;
    return f;
}

void
record_encode(const struct record *r, const uint64_t *sums, char *to)
{
    struct fixed f = fixed_of(r);
    size_t head_bytes = record_head_bytes(r);
    char *at = to + sizeof f;

    for (unsigned i = 0; i < TEXTS; i++) {
        if (text_of(r, i)->n)
            memcpy(at, text_of(r, i)->at, text_of(r, i)->n);
        at += text_of(r, i)->n;
    }
    if (record_blocks(r->body_bytes))
        memcpy(at, sums, (size_t)record_blocks(r->body_bytes) * sizeof *sums);
    at += record_blocks(r->body_bytes) * sizeof *sums;
    memset(at, 0, (size_t)(to + head_bytes - at));
    f.image_sum = XXH3_64bits(to + sizeof f, head_bytes - sizeof f);
    f.fixed_sum = XXH3_64bits(&f, offsetof(struct fixed, fixed_sum));
    memcpy(to, &f, sizeof f);
}

bool
record_may_start(const char *bytes)
{
    uint64_t magic;

    memcpy(&magic, bytes, sizeof magic);
    return magic == MAGIC;
}

static uint64_t
image_needs(const struct fixed *f)
{
    uint64_t n = sizeof *f + record_blocks(f->body_bytes) * sizeof(uint64_t);

    for (unsigned i = 0; i < TEXTS; i++)
        n += f->texts[i];
    return n;
}

static bool
numbers_are_sound(const struct fixed *f)
{
    for (unsigned i = 0; i < TEXTS; i++)
        if (f->texts[i] >= TEXT_MAX)
            return false;
    return f->body_bytes <= BODY_MAX && f->chain_bytes <= BODY_MAX && f->flags <= FLAGS_MAX &&
           f->flags >> KIND_AT <= RECORD_BAN && f->head_bytes % RECORD_ALIGN == 0 &&
           f->head_bytes < HEAD_MAX && image_needs(f) <= f->head_bytes;
}

/* A chain has a body in pieces of whole blocks, and none of its own. */
static bool
chain_is_sound(const struct fixed *f)
{
    return f->flags >> KIND_AT != RECORD_CHAIN ||
           (f->body_bytes == 0 && f->chain_bytes > 0 && f->piece_bytes > 0 &&
            f->piece_bytes % RECORD_BLOCK == 0);
}

static bool
fixed_is_sound(const struct fixed *f)
{
    return f->magic == MAGIC && f->version == RECORD_VERSION &&
           f->fixed_sum == XXH3_64bits(f, offsetof(struct fixed, fixed_sum)) &&
           numbers_are_sound(f) && chain_is_sound(f);
}

static struct record
numbers_of(const struct fixed *f)
{
    return (struct record){
        .digest = {f->digest[0], f->digest[1]},
        .generation = f->generation,
        .sequence = f->sequence,
        .status = f->status,
        .kind = (enum record_kind)(f->flags >> KIND_AT),
        .chain = f->chain,
        .chain_bytes = f->chain_bytes,
        .piece_bytes = f->piece_bytes,
        .head_room = f->head_bytes,
        .response_wall_ms = (int64_t)f->response_wall_ms,
        .initial_age_s = (int64_t)f->initial_age_s,
        .had_authorization = f->flags & AUTHORIZED,
        .date_given = f->flags & DATED,
        .is_part = f->flags & PART,
        .part_from = f->part_from,
        .part_whole = f->part_whole,
        .body_bytes = f->body_bytes,
    };
}

static void
borrow_texts(struct record *r, const struct fixed *f, const char *at)
{
    struct span *const texts[TEXTS] = {&r->uri,   &r->vary,  &r->reason,
                                       &r->block, &r->range, &r->trailer};

    for (unsigned i = 0; i < TEXTS; i++) {
        *texts[i] = span_of(at, f->texts[i]);
        at += f->texts[i];
    }
    r->sums = span_of(at, (size_t)record_blocks(f->body_bytes) * sizeof(uint64_t));
}

enum record_result
record_decode(struct span bytes, struct record *out, size_t *head_bytes)
{
    struct fixed f;

    *head_bytes = 0;
    if (bytes.n < sizeof f)
        return bytes.n >= sizeof f.magic && !record_may_start(bytes.at) ? RECORD_BAD : RECORD_MORE;
    memcpy(&f, bytes.at, sizeof f);
    if (!fixed_is_sound(&f))
        return RECORD_BAD;
    *out = numbers_of(&f);
    *head_bytes = f.head_bytes;
    if (bytes.n < *head_bytes)
        return RECORD_MORE;
    borrow_texts(out, &f, bytes.at + sizeof f);
    if (f.image_sum != XXH3_64bits(bytes.at + sizeof f, *head_bytes - sizeof f))
        return RECORD_BAD;
    return RECORD_OK;
}

bool
record_block_is_sound(const struct record *r, uint64_t block, struct span bytes)
{
    uint64_t sum;

    if (block >= r->sums.n / sizeof sum)
        return false;
    memcpy(&sum, r->sums.at + block * sizeof sum, sizeof sum);
    return sum == record_sum(bytes);
}
