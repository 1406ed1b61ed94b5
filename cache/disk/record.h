/* cache/disk/record.h - one stored response as bytes on a disk: a head image, then the body. Pure.
 *
 * Little-endian, everything on RECORD_ALIGN. The head image has a fixed part with a checksum of its
 * own, so that lengths are never believed from garbage, and one over the whole image; it is whole
 * or it is none. Each RECORD_BLOCK of the body has a checksum in the head image. A record with
 * status 0 is a tombstone: what has its key and came before it is void.
 *
 * A large body is a chain: pieces, each a record with a digest of its own, and a record with the
 * head and no body, written when all pieces are, that names them by the chain's number. */
#ifndef CACHE_DISK_RECORD_H
#define CACHE_DISK_RECORD_H

#include "base/span.h"

#define RECORD_ALIGN 16
#define RECORD_BLOCK 65536
#define RECORD_VERSION 2

enum record_kind {
    RECORD_WHOLE,
    RECORD_PIECE,
    RECORD_CHAIN,
    RECORD_BAN /* what came before it and starts with its URI is void */
};

struct record {
    uint64_t digest[2];  /* of the key, seeded by the store's file */
    uint64_t generation; /* of the file when it was written: others are void */
    uint64_t sequence;   /* grows with each record; of two of one key and variant the higher counts
                          */
    unsigned status;
    enum record_kind kind;
    uint64_t chain; /* its number; of a piece and of the head of a chain */
    uint64_t
        chain_bytes; /* RECORD_CHAIN: of the whole body; RECORD_PIECE: where in it this stands */
    uint32_t piece_bytes;     /* RECORD_CHAIN: of each piece but the last */
    uint32_t head_room;       /* bytes of the head image, some spare, so that a new head fits in its
                                 place;       0: the usual */
    int64_t response_wall_ms; /* when it arrived, or was last freshened */
    int64_t initial_age_s;    /* at that time (RFC 9111 section 4.2.3) */
    bool had_authorization, date_given, is_part;
    uint64_t part_from, part_whole; /* cache/part.h */
    uint64_t body_bytes;
    /* block: the fields as in struct head. After decoding all borrow from the bytes. */
    struct span uri, vary, reason, block, range, trailer;
    struct span sums; /* after decoding: record_blocks() numbers of 8 bytes */
};

enum record_result {
    RECORD_OK,
    RECORD_MORE, /* the bytes end too early */
    RECORD_BAD   /* no record, a torn one, or one of another version */
};

uint64_t record_blocks(uint64_t body_bytes);
size_t record_head_bytes(const struct record *r); /* of the head image */
bool record_head_fits(const struct record *r);    /* into its head_room */
uint64_t record_bytes(const struct record *r);    /* of head image and body */
uint64_t record_length(const struct record *r);   /* of the response's body, chained or not */
/* The head image, with its padding. sums: one for each block. */
void record_encode(const struct record *r, const uint64_t *sums, char *to);
uint64_t record_sum(struct span bytes); /* of one block */
/* Do eight bytes look like the start of a record? */
bool record_may_start(const char *bytes);
/* With MORE *head_bytes and the numbers of *out are set once the fixed part is there and sound
 * (else *head_bytes is 0), the texts never. */
enum record_result record_decode(struct span bytes, struct record *out, size_t *head_bytes);
bool record_block_is_sound(const struct record *r, uint64_t block, struct span bytes);

#endif
