/* http/uri.c - request targets and the target URI.
 *
 * Access lists, the store's key, the log and the connection must all see the same host. So a host
 * is reduced here, once, to the one text it has everywhere else: lower case, addresses in the form
 * that addr_format writes, and what another resolver might read as an address in some older
 * notation is refused. Paths are not normalised: that would be to ask for another resource. Only
 * what has no place in a request line is percent-encoded, before anybody looks at it. */
#include "http/uri.h"

#include "base/check.h"

enum { LABEL_MAX = 63, NAME_MAX_BYTES = 253 };

/* ---- characters ---- */

enum { REFUSED = 1, ENCODED = 2, IN_NAME = 4, UPPER = 8 };

/* What clients send raw in a path or query, and what becomes of it. Bytes beyond ASCII (curl, and
 * whoever writes UTF-8 or Latin-1 into a link) and the backslash, which some take for a slash, are
 * percent-encoded. The other visible characters that RFC 3986 does not list (" < > ^ ` { | }, which
 * browsers leave alone in queries) mean the same to everybody and go on as they came, since a proxy
 * must not modify a path or query without need (RFC 9110 section 7.7). Controls, spaces, DEL and a
 * fragment are refused. */
static const unsigned char classes[256] = {
    [0x00 ... ' '] = REFUSED,
    ['#'] = REFUSED,
    ['-' ... '.'] = IN_NAME,
    ['0' ... '9'] = IN_NAME,
    ['A' ... 'Z'] = IN_NAME | UPPER,
    ['\\'] = ENCODED,
    ['_'] = IN_NAME,
    ['a' ... 'z'] = IN_NAME,
    [0x7f] = REFUSED,
    [0x80 ... 0xff] = ENCODED,
};

static unsigned
class_of(char c)
{
    return classes[(unsigned char)c];
}

static bool
fail(const char **why, const char *sentence)
{
    if (why)
        *why = sentence;
    return false;
}

static unsigned
classes_in(struct span s)
{
    unsigned any = 0;

    for (size_t i = 0; i < s.n; i++)
        any |= class_of(s.at[i]);
    return any;
}

/* Borrows when there is nothing to lower. */
static struct span
lowered(struct span s, struct arena *a)
{
    char *text;

    if (!(classes_in(s) & UPPER))
        return s;
    text = arena_alloc(a, s.n);
    for (size_t i = 0; i < s.n; i++)
        text[i] = class_of(s.at[i]) & UPPER ? (char)(s.at[i] | 0x20) : s.at[i];
    return span_of(text, s.n);
}

/* RFC 3986 section 2.1 */
static struct span
percent_encoded(struct span s, struct arena *a)
{
    static const char digits[] = "0123456789ABCDEF";
    char *text = arena_alloc(a, 3 * s.n), *to = text;

    for (size_t i = 0; i < s.n; i++) {
        unsigned char byte = (unsigned char)s.at[i];

        if (classes[byte] & ENCODED) {
            *to++ = '%';
            *to++ = digits[byte >> 4];
            *to++ = digits[byte & 15];
        } else {
            *to++ = s.at[i];
        }
    }
    return span_of(text, (size_t)(to - text));
}

/* Path and query as everybody from here on sees them; false: there is something that must not be
 * in them. Borrows when there is nothing to encode. */
static bool
make_passable(struct span *path, struct arena *a, const char **why)
{
    unsigned any = classes_in(*path);

    if (any & REFUSED)
        return fail(why, "The URL contains a character that it must not.");
    if (any & ENCODED)
        *path = percent_encoded(*path, a);
    return true;
}

/* ---- host and port ---- */

bool
uri_host_is_name(struct span host)
{
    size_t label = 0;

    if (host.n > 0 && host.at[host.n - 1] == '.')
        host.n--;
    if (host.n == 0 || host.n > NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i < host.n; i++) {
        if (!(class_of(host.at[i]) & IN_NAME))
            return false;
        if (host.at[i] != '.' && ++label > LABEL_MAX)
            return false;
        if (host.at[i] == '.' && label == 0)
            return false;
        if (host.at[i] == '.')
            label = 0;
    }
    return label > 0;
}

static bool
is_hex_digit(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* No top-level domain is a number, so a name whose last label is one means an address: 127.1,
 * 2130706433, 0x7f.1, 127.0.0.1. (with a dot behind it). */
static bool
ends_in_number(struct span name)
{
    struct span last;
    size_t at;
    bool hex;

    if (name.n > 0 && name.at[name.n - 1] == '.')
        name.n--;
    for (at = name.n; at > 0 && name.at[at - 1] != '.'; at--)
        ;
    last = span_skip(name, at);
    hex = last.n >= 2 && last.at[0] == '0' && (last.at[1] | 0x20) == 'x';
    for (size_t i = hex ? 2 : 0; i < last.n; i++) {
        if (hex ? !is_hex_digit(last.at[i]) : last.at[i] < '0' || last.at[i] > '9')
            return false;
    }
    return last.n > 0;
}

/* The host of an address is its canonical text, which is also un-mapped: [::ffff:127.0.0.1] is
 * 127.0.0.1 and [0::1] is ::1 to whoever compares. */
static bool
set_literal(struct uri *u, struct span text, struct arena *a)
{
    char canonical[ADDR_TEXT_MAX];
    struct span host;

    if (!addr_parse(text, &u->literal))
        return false;
    host = span_of(canonical, addr_format(&u->literal, canonical));
    u->host = span_eq(host, text) ? text : arena_copy(a, host);
    return true;
}

static bool
set_name(struct uri *u, struct span text, struct arena *a, const char **why)
{
    u->literal = ADDR_NONE;
    if (text.n == 0)
        return fail(why, "There is no host.");
    if (!uri_host_is_name(text))
        return fail(why, "The host is not a valid name.");
    if (ends_in_number(text) && !set_literal(u, text, a))
        return fail(why, "The host is a number, but not an IPv4 address.");
    if (u->literal.sa.sa_family == AF_UNSPEC)
        u->host = lowered(text, a);
    return true;
}

static bool
set_port(struct uri *u, struct span text, const char **why)
{
    uint64_t port;

    if (!span_to_uint(text, 65535, &port) || port == 0)
        return fail(why, "The port is not a number from 1 to 65535.");
    u->port = (uint16_t)port;
    u->port_given = true;
    return true;
}

/* host [ ":" [ port ] ]: an empty port is the default one (RFC 3986 section 3.2.3). */
static bool
set_authority(struct uri *u, struct span text, struct arena *a, const char **why)
{
    size_t end = span_index(text, ':');

    if (text.n > 0 && text.at[0] == '[') {
        end = span_index(text, ']');
        if (memchr(text.at, ':', end) == NULL || !set_literal(u, span_of(text.at + 1, end - 1), a))
            return fail(why, "The host in brackets is not an IPv6 address.");
        end++;
    } else if (!set_name(u, span_first(text, end), a, why)) {
        return false;
    }
    if (end >= text.n)
        return end == text.n || fail(why, "The host in brackets is not an IPv6 address.");
    if (text.at[end] != ':')
        return fail(why, "Something stands behind the host.");
    text = span_skip(text, end + 1);
    return (text.n == 0 && u->port != 0) || set_port(u, text, why);
}

/* RFC 9110 section 7.2, RFC 9112 section 3.2.3: no userinfo here. */
bool
uri_parse_authority(struct span text, uint16_t default_port, struct arena *a, struct uri *out,
                    const char **why)
{
    *out = (struct uri){.form = URI_AUTHORITY, .port = default_port, .path = SPAN("")};
    out->scheme = SPAN("");
    if (!set_authority(out, text, a, why))
        return false;
    return out->port != 0 || fail(why, "The port is missing.");
}

/* ---- the four forms ---- */

static const struct scheme {
    struct span name;
    uint16_t port;
} schemes[] = {{{"http", 4}, 80}, {{"https", 5}, 443}, {{"ftp", 3}, 21}};

static uint16_t
default_port(struct span scheme)
{
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (span_eq(schemes[i].name, scheme))
            return schemes[i].port;
    }
    return 0;
}

static bool
is_alpha(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* Length of the scheme in front of a colon (RFC 3986 section 3.1); 0: there is none. */
static size_t
scheme_length(struct span s)
{
    size_t i = 0;

    if (s.n == 0 || !is_alpha(s.at[0]))
        return 0;
    while (i < s.n && (is_alpha(s.at[i]) || (s.at[i] >= '0' && s.at[i] <= '9') || s.at[i] == '+' ||
                       s.at[i] == '-' || s.at[i] == '.'))
        i++;
    return i < s.n && s.at[i] == ':' ? i : 0;
}

static void
set_scheme(struct uri *u, struct span scheme, struct arena *a)
{
    u->scheme = lowered(scheme, a);
    u->port = default_port(u->scheme);
}

static struct span
with_slash(struct span query, struct arena *a)
{
    char *text = arena_alloc(a, query.n + 1);

    text[0] = '/';
    memcpy(text + 1, query.at, query.n);
    return span_of(text, query.n + 1);
}

/* An empty path is "/" (RFC 9110 section 4.2.3), and for OPTIONS it asks about the whole server
 * (RFC 9112 section 3.2.4). */
static void
set_path(struct uri *u, struct span path, enum method m, struct arena *a)
{
    if (path.n == 0)
        u->path = m == METHOD_OPTIONS ? SPAN("*") : SPAN("/");
    else
        u->path = path.at[0] == '/' ? path : with_slash(path, a);
}

static size_t
authority_length(struct span s)
{
    size_t i = 0;

    while (i < s.n && s.at[i] != '/' && s.at[i] != '?')
        i++;
    return i;
}

/* Nothing is mended in front of a host: what is odd there may be the end of it to others, as the
 * backslash of http://one\@other/ is to browsers. */
static bool
drop_userinfo(struct uri *u, struct span *authority, const char **why)
{
    size_t at = span_index(*authority, '@');

    u->had_userinfo = at < authority->n;
    if (!u->had_userinfo)
        return true;
    if (classes_in(span_first(*authority, at)) & (REFUSED | ENCODED))
        return fail(why, "The user name contains a character that it must not.");
    *authority = span_skip(*authority, at + 1);
    return true;
}

/* "//" authority path, with the scheme set. */
static bool
parse_hierarchy(struct span s, enum method m, struct arena *a, struct uri *u, const char **why)
{
    struct span authority, path;

    if (!span_starts(s, SPAN("//")))
        return fail(why, "The URL has no host.");
    s = span_skip(s, 2);
    authority = span_first(s, authority_length(s));
    path = span_skip(s, authority.n);
    if (!make_passable(&path, a, why) || !drop_userinfo(u, &authority, why))
        return false;
    set_path(u, path, m, a);
    return set_authority(u, authority, a, why);
}

static bool
parse_absolute(struct span target, enum method m, struct arena *a, struct uri *u, const char **why)
{
    size_t n = scheme_length(target);

    if (n == 0)
        return fail(why, "The URL is neither absolute nor a path.");
    set_scheme(u, span_first(target, n), a);
    return parse_hierarchy(span_skip(target, n + 1), m, a, u, why);
}

/* RFC 9112 section 3.2 */
bool
uri_parse_target(struct span target, enum method m, struct arena *a, struct uri *out,
                 const char **why)
{
    *out = (struct uri){.form = URI_ABSOLUTE, .scheme = SPAN(""), .host = SPAN("")};
    if (target.n == 0)
        return fail(why, "The request has no URL.");
    if (m == METHOD_CONNECT)
        return uri_parse_authority(target, 0, a, out, why);
    if (target.at[0] == '/') {
        out->form = URI_ORIGIN;
        out->path = target;
        return make_passable(&out->path, a, why);
    }
    if (span_eq(target, SPAN("*"))) {
        out->form = URI_ASTERISK;
        out->path = target;
        return m == METHOD_OPTIONS || fail(why, "Only OPTIONS may ask for the asterisk.");
    }
    return parse_absolute(target, m, a, out, why);
}

/* ---- text ---- */

static char *
put(char *to, struct span s)
{
    if (s.n)
        memcpy(to, s.at, s.n);
    return to + s.n;
}

static char *
put_port(char *to, uint16_t port)
{
    char digits[5];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + port % 10);
    while ((port /= 10) != 0);
    *to++ = ':';
    return put(to, span_of(digits + at, sizeof digits - at));
}

enum { PORT_ROOM = sizeof ":65535[]" };

static char *
put_host(char *to, const struct uri *u)
{
    bool brackets = u->literal.sa.sa_family == AF_INET6;

    if (brackets)
        *to++ = '[';
    to = put(to, u->host);
    if (brackets)
        *to++ = ']';
    return u->port != 0 && u->port != default_port(u->scheme) ? put_port(to, u->port) : to;
}

/* The asterisk stands for no path at all (RFC 9112 section 3.3); a CONNECT target has no scheme. */
struct span
uri_text(const struct uri *u, struct arena *a)
{
    char *text = arena_alloc(a, u->scheme.n + 3 + u->host.n + PORT_ROOM + u->path.n), *to = text;

    if (u->host.n > 0) {
        if (u->scheme.n > 0)
            to = put(put(to, u->scheme), SPAN("://"));
        to = put_host(to, u);
    }
    if (u->host.n == 0 || !span_eq(u->path, SPAN("*")))
        to = put(to, u->path);
    return span_of(text, (size_t)(to - text));
}

struct span
uri_host_field(const struct uri *u, struct arena *a)
{
    char *text = arena_alloc(a, u->host.n + PORT_ROOM);

    return span_of(text, (size_t)(put_host(text, u) - text));
}

bool
uri_same_origin(const struct uri *a, const struct uri *b)
{
    return a->port == b->port && span_eq(a->scheme, b->scheme) && span_eq(a->host, b->host);
}

/* ---- references (RFC 3986 section 5.2) ---- */

static size_t
path_length(struct span s)
{
    return span_index(s, '?');
}

/* Back over the last segment of what is written so far, its slash included. */
static size_t
without_last_segment(const char *text, size_t n)
{
    while (n > 0 && text[n - 1] != '/')
        n--;
    return n > 0 ? n - 1 : 0;
}

/* Section 5.2.4 for a path that starts with a slash, in place: the result is never longer. */
static size_t
remove_dot_segments(char *text, size_t n)
{
    size_t at = 0, out = 0;

    while (at < n) {
        size_t segment = 1 + span_index(span_of(text + at + 1, n - at - 1), '/');
        struct span name = span_of(text + at + 1, segment - 1);
        bool last = at + segment == n;

        if (span_eq(name, SPAN(".")) || span_eq(name, SPAN(".."))) {
            if (name.n == 2)
                out = without_last_segment(text, out);
            if (last)
                text[out++] = '/';
        } else {
            memmove(text + out, text + at, segment);
            out += segment;
        }
        at += segment;
    }
    return out;
}

/* front + tail, without dot segments; a query behind the tail's path stays as it is. */
static struct span
merged(struct span front, struct span tail, struct arena *a)
{
    size_t n_path = front.n + path_length(tail), n;
    char *text = arena_alloc(a, front.n + tail.n);

    put(put(text, front), tail);
    n = remove_dot_segments(text, n_path);
    memmove(text + n, text + n_path, front.n + tail.n - n_path);
    return span_of(text, n + front.n + tail.n - n_path);
}

/* The base's path up to and with its last slash (5.2.3). */
static struct span
folder_of(struct span path)
{
    struct span folder = span_first(path, path_length(path));

    while (folder.n > 1 && folder.at[folder.n - 1] != '/')
        folder.n--;
    return folder;
}

static struct span
joined(struct span front, struct span tail, struct arena *a)
{
    char *text = arena_alloc(a, front.n + tail.n);

    put(put(text, front), tail);
    return span_of(text, front.n + tail.n);
}

static struct span
resolved_path(const struct uri *base, struct span reference, struct arena *a)
{
    bool rooted = base->path.n > 0 && base->path.at[0] == '/'; /* no asterisk, no CONNECT */
    struct span path = rooted ? base->path : SPAN("/");

    if (reference.n == 0)
        return path;
    if (reference.at[0] == '?')
        return joined(span_first(path, path_length(path)), reference, a);
    if (reference.at[0] == '/')
        return merged(SPAN(""), reference, a);
    return merged(folder_of(path), reference, a);
}

bool
uri_resolve(const struct uri *base, struct span reference, struct arena *a, struct uri *out)
{
    struct span r = span_first(reference, span_index(reference, '#'));
    struct uri u = {.form = URI_ABSOLUTE, .scheme = base->scheme};
    const char *why;

    if (scheme_length(r) > 0 || span_starts(r, SPAN("//"))) {
        u.port = default_port(u.scheme);
        if (scheme_length(r) > 0 ? !parse_absolute(r, METHOD_GET, a, &u, &why)
                                 : !parse_hierarchy(r, METHOD_GET, a, &u, &why))
            return false;
        u.path = merged(SPAN(""), u.path, a);
    } else {
        if (!make_passable(&r, a, &why))
            return false;
        u = *base;
        u.form = URI_ABSOLUTE;
        u.had_userinfo = false;
        u.path = resolved_path(base, r, a);
    }
    *out = u;
    return u.scheme.n > 0 && u.host.n > 0;
}
