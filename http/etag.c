/* http/etag.c - entity tags.
 *
 * A tag is compared as bytes and only when it is one: an unquoted or misspelt tag (w/"a", W"a")
 * equals nothing, not even itself. An origin that sends such a tag gets whole requests, never a
 * wrong 304. */
#include "http/etag.h"

/* etagc: visible bytes but the double quote, and obs-text. There is no escape in a tag. */
static bool
is_etagc(char c)
{
    unsigned char b = (unsigned char)c;

    return b >= 0x21 && b != '"' && b != 0x7f;
}

/* The tag at the front of s with its quotes; empty when there is none. */
static struct span
leading_tag(struct span s)
{
    size_t at = s.n >= 2 && s.at[0] == 'W' && s.at[1] == '/' ? 2 : 0;

    if (at >= s.n || s.at[at] != '"')
        return span_first(s, 0);
    at++;
    while (at < s.n && is_etagc(s.at[at]))
        at++;
    return at < s.n && s.at[at] == '"' ? span_first(s, at + 1) : span_first(s, 0);
}

static struct span
opaque(struct span tag)
{
    return etag_is_weak(tag) ? span_skip(tag, 2) : tag;
}

bool
etag_is_valid(struct span tag)
{
    return tag.n > 0 && leading_tag(tag).n == tag.n;
}

bool
etag_is_weak(struct span tag)
{
    return tag.n >= 2 && tag.at[0] == 'W' && tag.at[1] == '/';
}

/* RFC 9110 section 8.8.3.2 */
bool
etag_match_weak(struct span a, struct span b)
{
    return etag_is_valid(a) && etag_is_valid(b) && span_eq(opaque(a), opaque(b));
}

bool
etag_match_strong(struct span a, struct span b)
{
    return etag_match_weak(a, b) && !etag_is_weak(a) && !etag_is_weak(b);
}

static struct span
skip_to_comma(struct span s)
{
    return span_skip(s, span_index(s, ','));
}

/* A tag may hold commas, so members are read as tags; what is none is skipped up to its comma. */
bool
etag_list_has(struct span value, struct span tag, bool strong)
{
    struct span rest = value;

    while ((rest = span_trim(rest)).n > 0) {
        struct span member = leading_tag(rest);
        struct span behind = span_trim(span_skip(rest, member.n));

        if (member.n > 0 && (behind.n == 0 || behind.at[0] == ',')) {
            if (strong ? etag_match_strong(member, tag) : etag_match_weak(member, tag))
                return true;
        } else {
            behind = skip_to_comma(behind);
        }
        rest = span_skip(behind, 1);
    }
    return false;
}
