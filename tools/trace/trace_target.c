/* tools/trace/trace_target.c - host and path of a logged request. */
#include "tools/trace/trace_target.h"

#include "http/uri.h"

enum { HOST_MOST = 253 };

/* ---- the host ---- */

static struct span
without_userinfo(struct span authority)
{
    size_t at = span_index(authority, '@');

    return at < authority.n ? span_skip(authority, at + 1) : authority;
}

/* "host", "host:port", "[::1]:80", and an address of version 6 without its brackets. */
static struct span
without_port(struct span authority)
{
    size_t colon = span_index(authority, ':');

    if (authority.n > 0 && authority.at[0] == '[') {
        struct span inside = span_skip(authority, 1);

        return span_first(inside, span_index(inside, ']'));
    }
    if (colon < authority.n && memchr(authority.at + colon + 1, ':', authority.n - colon - 1))
        return authority;
    return span_first(authority, colon);
}

/* The digits and letters of an address, with dashes, under a name that is nobody's (RFC 6761). */
static void
add_address_name(struct buf *room, const struct addr *a)
{
    char text[ADDR_TEXT_MAX];
    size_t n = addr_format(a, text);

    BUF_ADD(room, "a");
    for (size_t i = 0; i < n; i++)
        buf_add_char(room, text[i] == '.' || text[i] == ':' ? '-' : text[i]);
    if (text[n - 1] == ':') /* no label ends in a dash, and :: is ::0 */
        buf_add_char(room, '0');
    if (a->sa.sa_family == AF_INET)
        BUF_ADD(room, ".v4.test");
    else
        BUF_ADD(room, ".v6.test");
}

/* 127.1, 0x7f.1 and the like are numbers to some and refused by us: no host to ask for. */
static bool
ends_in_a_number(struct span host)
{
    size_t label = host.n;

    while (label > 0 && host.at[label - 1] != '.')
        label--;
    return label < host.n && host.at[label] >= '0' && host.at[label] <= '9';
}

static bool
add_host(struct buf *room, struct span authority)
{
    struct span host = without_port(without_userinfo(authority));
    struct addr literal;

    while (host.n > 0 && host.at[host.n - 1] == '.')
        host.n--;
    if (addr_parse(host, &literal)) {
        add_address_name(room, &literal);
        return true;
    }
    if (host.n == 0 || host.n > HOST_MOST || !uri_host_is_name(host) || ends_in_a_number(host))
        return false;
    for (size_t i = 0; i < host.n; i++)
        buf_add_char(room, host.at[i] >= 'A' && host.at[i] <= 'Z' ? host.at[i] + 32 : host.at[i]);
    return true;
}

/* ---- the path ---- */

static bool
may_stand_in_a_target(unsigned char c)
{
    return c > ' ' && c < 0x7f && c != '\\' && c != '"' && c != '<' && c != '>' && c != '^' &&
           c != '`' && c != '{' && c != '|' && c != '}';
}

static void
add_path(struct buf *room, struct span path)
{
    path = span_first(path, span_index(path, '#'));
    if (path.n == 0 || path.at[0] != '/')
        buf_add_char(room, '/');
    for (size_t i = 0; i < path.n; i++)
        if (may_stand_in_a_target((unsigned char)path.at[i]))
            buf_add_char(room, path.at[i]);
        else
            buf_addf(room, "%%%02X", (unsigned char)path.at[i]);
}

/* ---- both ---- */

static bool
cut_scheme(struct span *url)
{
    const struct span schemes[] = {SPAN("http://"), SPAN("https://")};

    for (unsigned i = 0; i < 2; i++)
        if (span_starts_ci(*url, schemes[i])) {
            *url = span_skip(*url, schemes[i].n);
            return true;
        }
    return false;
}

static size_t
authority_bytes(struct span url)
{
    size_t n = 0;

    while (n < url.n && url.at[n] != '/' && url.at[n] != '?' && url.at[n] != '#')
        n++;
    return n;
}

static bool
add_host_and_path(struct buf *room, const struct trace_line *t, struct span default_host,
                  size_t *host_bytes)
{
    struct span url = t->url, authority = default_host;
    bool is_list = t->format == TRACE_LIST || t->format == TRACE_TIMED_LIST;

    if (cut_scheme(&url)) {
        authority = span_first(url, authority_bytes(url));
        url = span_skip(url, authority.n);
    } else if (!is_list && (url.n == 0 || url.at[0] != '/')) {
        return false;
    }
    if (!add_host(room, authority))
        return false;
    *host_bytes = room->n;
    add_path(room, url);
    return true;
}

bool
trace_target(const struct trace_line *t, struct span default_host, struct buf *room,
             struct trace_target *out)
{
    size_t host_bytes = 0;
    bool askable;

    room->n = 0;
    out->tunnel = trace_line_is_tunnel(t);
    askable = out->tunnel ? add_host(room, t->url)
                          : add_host_and_path(room, t, default_host, &host_bytes);
    if (!askable)
        return false;
    if (out->tunnel)
        host_bytes = room->n;
    out->key = buf_span(room);
    out->host = span_first(out->key, host_bytes);
    out->path = span_skip(out->key, host_bytes);
    return true;
}
