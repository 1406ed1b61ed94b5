/* base/span.h - borrowed bytes.
 *
 * A span owns nothing: whoever hands one out says from whom it borrows and until when.
 * Bytes need not end in NUL. Comparisons marked _ci fold ASCII letters only. */
#ifndef BASE_SPAN_H
#define BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct span {
    const char *at;
    size_t n;
};

#define SPAN(literal) ((struct span){(literal), sizeof(literal) - 1})
#define SPAN_NONE ((struct span){NULL, 0})
#define SPAN_ARG(s) (int)(s).n, (s).at /* for "%.*s" */

static inline struct span
span_of(const void *at, size_t n)
{
    return (struct span){at, n};
}

static inline struct span
span_str(const char *text)
{
    return (struct span){text, text ? strlen(text) : 0};
}

static inline bool
span_eq(struct span a, struct span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.at, b.at, a.n) == 0);
}

static inline bool
span_eq_ci(struct span a, struct span b)
{
    return a.n == b.n && (a.n == 0 || strncasecmp(a.at, b.at, a.n) == 0);
}

static inline bool
span_starts(struct span s, struct span prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.at, prefix.at, prefix.n) == 0);
}

static inline bool
span_starts_ci(struct span s, struct span prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || strncasecmp(s.at, prefix.at, prefix.n) == 0);
}

static inline struct span
span_skip(struct span s, size_t n)
{
    if (s.n == 0) /* it may be NULL, to which not even 0 may be added */
        return s;
    return n >= s.n ? (struct span){s.at + s.n, 0} : (struct span){s.at + n, s.n - n};
}

static inline struct span
span_first(struct span s, size_t n)
{
    return (struct span){s.at, n < s.n ? n : s.n};
}

/* Index of the first c, or s.n when there is none. */
static inline size_t
span_index(struct span s, char c)
{
    const char *hit = s.n ? memchr(s.at, c, s.n) : NULL;

    return hit ? (size_t)(hit - s.at) : s.n;
}

/* Without the SP and HTAB at both ends (OWS, RFC 9110 section 5.6.3). */
static inline struct span
span_trim(struct span s)
{
    while (s.n && (s.at[0] == ' ' || s.at[0] == '\t'))
        s.at++, s.n--;
    while (s.n && (s.at[s.n - 1] == ' ' || s.at[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* Decimal digits only; false when empty, not all digits, or above max. */
static inline bool
span_to_uint(struct span s, uint64_t max, uint64_t *value)
{
    uint64_t v = 0;

    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned digit = (unsigned char)s.at[i] - '0';

        if (digit > 9 || v > (max - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *value = v;
    return true;
}

#endif
