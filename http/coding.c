/* http/coding.c - a zlib stream behind the interface of a stage.
 *
 * zlib counts in unsigned int, so long spans go through in pieces. A member's end is not the
 * stream's: whether another one follows is only known when its first byte is there. */
#include "http/coding.h"

#include <zlib.h>

#include "base/check.h"

enum {
    MAGIC = 0x434f4444,
    PIECE_BYTES = 1 << 30,
    ANY_HEADER = MAX_WBITS + 32, /* zlib or gzip, told by the header */
    GZIP_HEADER = MAX_WBITS + 16,
    ZLIB_HEADER = MAX_WBITS,
    NO_HEADER = -MAX_WBITS,
    GZIP_FIRST_BYTE = 0x1f
};

struct coding {
    uint32_t magic;
    enum coding_kind kind;
    enum coding_state state;
    bool begun, gzip; /* gzip: only it may come in several members */
    z_stream z;
};

static void *
stage_alloc(void *unused, unsigned n, unsigned size)
{
    return mem_zalloc((size_t)n * size);
}

static void
stage_free(void *unused, void *p)
{
    mem_free(p);
}

struct coding *
coding_new(enum coding_kind kind)
{
    struct coding *c = mem_zalloc(sizeof(*c));

    c->magic = MAGIC;
    c->kind = kind;
    c->state = CODING_MORE;
    c->z.zalloc = stage_alloc;
    c->z.zfree = stage_free;
    CHECK(inflateInit2(&c->z, ANY_HEADER) == Z_OK);
    return c;
}

/* The first byte of a zlib header says "deflate" in its low half; as bare deflate it would be a
 * stored block with dirt in its padding, which nobody writes. */
static int
header_of(const struct coding *c, unsigned char first)
{
    if (c->kind == CODING_GZIP)
        return first == GZIP_FIRST_BYTE ? GZIP_HEADER : ZLIB_HEADER;
    return (first & 0x0f) == Z_DEFLATED && first >> 4 <= 7 ? ZLIB_HEADER : NO_HEADER;
}

static void
begin(struct coding *c, unsigned char first)
{
    int header = header_of(c, first);

    CHECK(inflateReset2(&c->z, header) == Z_OK);
    c->begun = true;
    c->gzip = header == GZIP_HEADER;
    c->state = CODING_MORE;
}

/* Behind a member: zeros pad (tapes, block devices), 0x1f begins another one. */
static bool
another_member(struct coding *c, struct span *in)
{
    while (c->gzip && in->n > 0 && in->at[0] == 0)
        *in = span_skip(*in, 1);
    return c->gzip && in->n > 0 && (unsigned char)in->at[0] == GZIP_FIRST_BYTE;
}

/* One call of zlib; false: nothing more can be done with this input and this room. */
static bool
turn(struct coding *c, struct span *in, char *out, size_t room, size_t *made)
{
    size_t give = in->n < PIECE_BYTES ? in->n : PIECE_BYTES;
    size_t space = room - *made < PIECE_BYTES ? room - *made : PIECE_BYTES;
    int result;

    c->z.next_in = (z_const Bytef *)in->at;
    c->z.avail_in = (unsigned)give;
    c->z.next_out = (Bytef *)out + *made;
    c->z.avail_out = (unsigned)space;
    result = inflate(&c->z, Z_NO_FLUSH);
    *in = span_skip(*in, give - c->z.avail_in);
    *made += space - c->z.avail_out;
    if (result == Z_STREAM_END)
        c->state = CODING_END;
    else if (result != Z_OK && result != Z_BUF_ERROR)
        c->state = CODING_BAD;
    return c->state == CODING_MORE && result == Z_OK && *made < room;
}

enum coding_state
coding_decode(struct coding *c, struct span *in, char *out, size_t room, size_t *made)
{
    CHECK_OBJ(c, MAGIC);
    *made = 0;
    for (;;) {
        if (c->state == CODING_BAD || room == *made)
            return c->state;
        if (c->state == CODING_END && !another_member(c, in))
            return CODING_END;
        if ((c->state == CODING_END || !c->begun) && in->n > 0)
            begin(c, (unsigned char)in->at[0]);
        if (!c->begun)
            return CODING_MORE;
        if (!turn(c, in, out, room, made) && c->state == CODING_MORE)
            return CODING_MORE;
    }
}

void
coding_free(struct coding **held)
{
    struct coding *c = *held;

    if (c == NULL)
        return;
    CHECK_OBJ(c, MAGIC);
    *held = NULL;
    inflateEnd(&c->z);
    FREE_OBJ(c);
}
