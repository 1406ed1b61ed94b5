/* log_quote.c - the encodings of Squid's logformat, and JSON strings (RFC 8259 section 7).
 *
 * One table says per byte which encodings touch it. Almost every value of almost every request
 * passes untouched, so that is found first and copied as a whole. */
#include "proxy/log/log_quote.h"

#include "base/check.h"

enum {
    P = 1 << QUOTE_PLAIN,
    U = 1 << QUOTE_UNSAFE | 1 << QUOTE_URL,
    S = 1 << QUOTE_STRING,
    B = 1 << QUOTE_BRACKETS,
    PERCENT = 1 << QUOTE_URL | 1 << QUOTE_BRACKETS,
    R = 1 << QUOTE_RAW,
    J = 1 << QUOTE_JSON,
};

static const uint8_t touched_by[256] = {
    [0 ... 9] = P | U | S | B | J,
    ['\n'] = P | U | S | B | R | J,
    [11 ... 12] = P | U | S | B | J,
    ['\r'] = P | U | S | B | R | J,
    [14 ... 31] = P | U | S | B | J,
    [' '] = P | U,
    ['"'] = U | S | J,
    ['#'] = U,
    ['%'] = PERCENT,
    ['\''] = U,
    ['<'] = U,
    ['>'] = U,
    ['['] = U | B,
    ['\\'] = U | S | B | J,
    [']'] = U | B,
    ['^'] = U,
    ['`'] = U,
    ['{'] = U,
    ['|'] = U,
    ['}'] = U,
    ['~'] = U,
    [127] = P | U | S | B,
    [128 ... 255] = P | U | B | J,
};

/* Eight bytes at once, none of which PLAIN touches? A byte below 0x21 borrows and one above 0x7e
 * carries into its top bit; what they then do to their neighbours does not matter. */
static bool
plain_word(const char *at)
{
    const uint64_t ones = 0x0101010101010101u, tops = ones << 7;
    uint64_t w;

    memcpy(&w, at, sizeof w);
    return (((w - ones * 0x21) | (w + ones) | w) & tops) == 0;
}

static size_t
untouched(enum log_quote q, struct span s)
{
    size_t n = 0;

    while (q == QUOTE_PLAIN && n + 8 <= s.n && plain_word(s.at + n))
        n += 8;
    while (n < s.n && !(touched_by[(unsigned char)s.at[n]] >> q & 1))
        n++;
    return n;
}

static void
add_hex(struct buf *out, const char *before, unsigned char c, const char *digits)
{
    buf_add(out, span_str(before));
    buf_add_char(out, digits[c >> 4]);
    buf_add_char(out, digits[c & 15]);
}

static void
add_escaped(struct buf *out, enum log_quote q, unsigned char c)
{
    static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
    bool backslashes =
        q == QUOTE_STRING || q == QUOTE_BRACKETS || q == QUOTE_RAW || q == QUOTE_JSON;

    if (backslashes && (c == '\r' || c == '\n')) {
        buf_add(out, c == '\r' ? SPAN("\\r") : SPAN("\\n"));
    } else if (backslashes && (c == '\\' || (c == '"' && q != QUOTE_BRACKETS))) {
        buf_add_char(out, '\\');
        buf_add_char(out, (char)c);
    } else if (c == '\t' && (q == QUOTE_STRING || q == QUOTE_JSON)) {
        BUF_ADD(out, "\\t");
    } else if (q == QUOTE_JSON) {
        add_hex(out, "\\u00", c, lower);
    } else if (q == QUOTE_STRING) {
        add_hex(out, "\\x", c, lower);
    } else {
        add_hex(out, "%", c, q == QUOTE_BRACKETS ? lower : upper);
    }
}

static bool
is_continuation(struct span s, size_t i)
{
    return i < s.n && ((unsigned char)s.at[i] & 0xc0) == 0x80;
}

/* Length of the well-formed UTF-8 sequence at the start of s (RFC 3629 section 4), 0 when there is
 * none. */
static size_t
utf8_length(struct span s)
{
    unsigned char a = (unsigned char)s.at[0], b = s.n > 1 ? (unsigned char)s.at[1] : 0;

    if (!is_continuation(s, 1) || a < 0xc2 || a > 0xf4)
        return 0;
    if (a < 0xe0)
        return 2;
    if (!is_continuation(s, 2) || (a == 0xe0 && b < 0xa0) || (a == 0xed && b > 0x9f))
        return 0;
    if (a < 0xf0)
        return 3;
    if (!is_continuation(s, 3) || (a == 0xf0 && b < 0x90) || (a == 0xf4 && b > 0x8f))
        return 0;
    return 4;
}

/* A JSON text is UTF-8 whatever a client sent: other bytes become the replacement character. */
static size_t
add_utf8(struct buf *out, struct span s)
{
    size_t n = utf8_length(s);

    if (n)
        buf_add(out, span_first(s, n));
    else
        BUF_ADD(out, "\\ufffd");
    return n ? n : 1;
}

void
log_quote_add(struct buf *out, enum log_quote q, struct span s)
{
    while (s.n) {
        size_t n = untouched(q, s);

        buf_add(out, span_first(s, n));
        s = span_skip(s, n);
        if (s.n == 0)
            return;
        if (q == QUOTE_JSON && (unsigned char)s.at[0] >= 0x80) {
            s = span_skip(s, add_utf8(out, s));
            continue;
        }
        add_escaped(out, q, (unsigned char)s.at[0]);
        s = span_skip(s, 1);
    }
}
