/* dns/soa.c - the SOA of a negative answer.
 *
 * Names are only skipped, so compression pointers are never followed: each step goes forward, and
 * the length of the message bounds the work whatever its counts say. */
#include "dns/soa.h"

enum { HEADER_BYTES = 12, TYPE_SOA = 6, CLASS_IN = 1 };
enum { QUESTION_TAIL_BYTES = 4, RECORD_TAIL_BYTES = 10, SOA_NUMBERS_BYTES = 20 };

struct record {
    unsigned type, class;
    uint32_t ttl_s;
    struct span data;
};

static unsigned
u16_at(const char *p)
{
    return (unsigned)(unsigned char)p[0] << 8 | (unsigned char)p[1];
}

static uint32_t
u32_at(const char *p)
{
    return (uint32_t)u16_at(p) << 16 | u16_at(p + 2);
}

/* RFC 2181 section 8: a TTL with the highest bit set is taken for 0. */
static uint32_t
ttl_at(const char *p)
{
    uint32_t ttl = u32_at(p);

    return ttl > INT32_MAX ? 0 : ttl;
}

/* RFC 1035 section 4.1.4: a name ends with an empty label or with a pointer of two bytes. */
static bool
skip_name(struct span *rest)
{
    while (rest->n > 0) {
        unsigned n = (unsigned char)rest->at[0];
        bool pointer = (n & 0xc0) == 0xc0;

        if (!pointer && n > 63)
            return false;
        if (rest->n < (pointer ? 2 : n + 1))
            return false;
        *rest = span_skip(*rest, pointer ? 2 : n + 1);
        if (pointer || n == 0)
            return true;
    }
    return false;
}

static bool
skip_question(struct span *rest)
{
    if (!skip_name(rest) || rest->n < QUESTION_TAIL_BYTES)
        return false;
    *rest = span_skip(*rest, QUESTION_TAIL_BYTES);
    return true;
}

static bool
next_record(struct span *rest, struct record *r)
{
    size_t n;

    if (!skip_name(rest) || rest->n < RECORD_TAIL_BYTES)
        return false;
    r->type = u16_at(rest->at);
    r->class = u16_at(rest->at + 2);
    r->ttl_s = ttl_at(rest->at + 4);
    n = u16_at(rest->at + 8);
    *rest = span_skip(*rest, RECORD_TAIL_BYTES);
    if (rest->n < n)
        return false;
    r->data = span_first(*rest, n);
    *rest = span_skip(*rest, n);
    return true;
}

/* RFC 1035 section 3.3.13: MNAME, RNAME, then five numbers, MINIMUM the last. */
static bool
soa_ttl(const struct record *r, uint32_t *ttl_s)
{
    struct span data = r->data;
    uint32_t minimum_s;

    if (!skip_name(&data) || !skip_name(&data) || data.n < SOA_NUMBERS_BYTES)
        return false;
    minimum_s = ttl_at(data.at + SOA_NUMBERS_BYTES - 4);
    *ttl_s = r->ttl_s < minimum_s ? r->ttl_s : minimum_s;
    return true;
}

bool
soa_negative_ttl(struct span message, uint32_t *ttl_s)
{
    unsigned questions, answers, authorities;
    struct record r;

    if (message.n < HEADER_BYTES)
        return false;
    questions = u16_at(message.at + 4);
    answers = u16_at(message.at + 6);
    authorities = u16_at(message.at + 8);
    message = span_skip(message, HEADER_BYTES);
    while (questions-- > 0) {
        if (!skip_question(&message))
            return false;
    }
    while (answers-- > 0) {
        if (!next_record(&message, &r))
            return false;
    }
    while (authorities-- > 0) {
        if (!next_record(&message, &r))
            return false;
        if (r.type == TYPE_SOA && r.class == CLASS_IN)
            return soa_ttl(&r, ttl_s);
    }
    return false;
}
