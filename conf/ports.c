/* conf/ports.c - http_port: an address, and options of very different weight.
 *
 * An option that only tunes is passed over with a note. One without which clients would be treated
 * in another way than was meant (TLS opened, a PROXY header expected) refuses the file. vhost and
 * its like mean accel, as they did before that word was needed. */
#include "base/check.h"
#include "conf/reader.h"

enum option_kind { OPTION_TUNES, OPTION_MEANS_ACCEL, OPTION_NEEDS_TLS, OPTION_REFUSED };

static const struct {
    const char *name; /* up to '=' */
    enum option_kind kind;
    const char *why; /* it is refused */
} options[] = {
    {"act-as-origin", OPTION_TUNES, NULL},
    {"allow-direct", OPTION_TUNES, NULL},
    {"connection-auth", OPTION_TUNES, NULL},
    {"defaultsite", OPTION_MEANS_ACCEL, NULL},
    {"disable-pmtu-discovery", OPTION_TUNES, NULL},
    {"ignore-cc", OPTION_TUNES, NULL},
    {"no-vhost", OPTION_TUNES, NULL},
    {"protocol", OPTION_TUNES, NULL},
    {"tcpkeepalive", OPTION_TUNES, NULL},
    {"urlgroup", OPTION_TUNES, NULL},
    {"vhost", OPTION_MEANS_ACCEL, NULL},
    {"vport", OPTION_MEANS_ACCEL, NULL},
    {"worker-queues", OPTION_TUNES, NULL},
    {"cafile", OPTION_NEEDS_TLS, NULL},
    {"capath", OPTION_NEEDS_TLS, NULL},
    {"cert", OPTION_NEEDS_TLS, NULL},
    {"cipher", OPTION_NEEDS_TLS, NULL},
    {"clientca", OPTION_NEEDS_TLS, NULL},
    {"crlfile", OPTION_NEEDS_TLS, NULL},
    {"dhparams", OPTION_NEEDS_TLS, NULL},
    {"dynamic_cert_mem_cache_size", OPTION_NEEDS_TLS, NULL},
    {"generate-host-certificates", OPTION_NEEDS_TLS, NULL},
    {"key", OPTION_NEEDS_TLS, NULL},
    {"options", OPTION_NEEDS_TLS, NULL},
    {"sslcontext", OPTION_NEEDS_TLS, NULL},
    {"sslflags", OPTION_NEEDS_TLS, NULL},
    {"tls-cafile", OPTION_NEEDS_TLS, NULL},
    {"tls-cert", OPTION_NEEDS_TLS, NULL},
    {"tls-default-ca", OPTION_NEEDS_TLS, NULL},
    {"tls-dh", OPTION_NEEDS_TLS, NULL},
    {"tls-key", OPTION_NEEDS_TLS, NULL},
    {"tls-min-version", OPTION_NEEDS_TLS, NULL},
    {"tls-no-npn", OPTION_NEEDS_TLS, NULL},
    {"version", OPTION_NEEDS_TLS, NULL},
    {"no-connection-auth", OPTION_REFUSED, "log-ins of connections (NTLM, Negotiate) would pass"},
    {"require-proxy-header", OPTION_REFUSED, "the PROXY protocol is not understood"},
    {"ssl-bump", OPTION_REFUSED, "encrypted traffic would pass without being looked at"},
};

static bool
parse_port_number(struct span text, uint16_t *port)
{
    uint64_t v;

    if (!span_to_uint(text, 65535, &v))
        return false;
    *port = (uint16_t)v;
    return true;
}

static bool
parse_host(struct span host, struct addr *out)
{
    if (host.n >= 2 && host.at[0] == '[' && host.at[host.n - 1] == ']')
        return addr_parse(span_of(host.at + 1, host.n - 2), out) && out->sa.sa_family == AF_INET6;
    if (span_eq_ci(host, SPAN("localhost")))
        host = SPAN("127.0.0.1");
    return addr_parse(host, out) && out->sa.sa_family == AF_INET;
}

/* 3128, 192.0.2.1:3128, [2001:db8::1]:3128, localhost:3128 */
static bool
parse_place(struct span word, struct conf_port *p)
{
    size_t colon = word.n;
    uint16_t port;

    while (colon > 0 && word.at[colon - 1] != ':')
        colon--;
    if (!parse_port_number(span_skip(word, colon), &port))
        return false;
    p->any = colon == 0;
    if (p->any)
        addr_parse(SPAN("::"), &p->address);
    else if (!parse_host(span_first(word, colon - 1), &p->address))
        return false;
    addr_set_port(&p->address, port);
    return true;
}

static int
option_find(struct span word)
{
    struct span name = span_first(word, span_index(word, '='));

    if (span_eq(word, SPAN("connection-auth=off")))
        name = SPAN("no-connection-auth");
    for (unsigned i = 0; i < sizeof options / sizeof options[0]; i++)
        if (span_eq(name, span_str(options[i].name)))
            return (int)i;
    return -1;
}

static void
other_option(struct reader *r, struct conf_port *p, struct span word)
{
    int i = option_find(word);

    if (i < 0) {
        reader_error(r, "unknown option \"%.*s\"", SHOWN(word));
        return;
    }
    switch (options[i].kind) {
    case OPTION_TUNES:
        reader_note(r, "%s is not used by cuttle, ignored", options[i].name);
        return;
    case OPTION_MEANS_ACCEL:
        p->accel = true;
        return;
    case OPTION_NEEDS_TLS:
        return; /* seen to when all are read */
    case OPTION_REFUSED:
        reader_error(r, "%.*s is not supported: %s", SHOWN(word), options[i].why);
    }
}

/* Beside ssl-bump, which is refused by itself, they need no word of their own. */
static void
refuse_tls(struct reader *r, const struct line *l)
{
    for (unsigned i = 1; i < l->n; i++) {
        int k = option_find(l->words[i].text);

        if (k < 0 || options[k].kind != OPTION_NEEDS_TLS)
            continue;
        reader_error(r,
                     "%s is for TLS to clients, which is not supported; expected a port for "
                     "plain HTTP",
                     options[k].name);
        return;
    }
}

static void
set_option(struct reader *r, struct conf_port *p, struct span word)
{
    struct span name = span_first(word, span_index(word, '='));
    struct span value = span_skip(word, name.n + 1);

    if (span_eq(word, SPAN("intercept")) || span_eq(word, SPAN("transparent")))
        p->intercept = true;
    else if (span_eq(word, SPAN("tproxy")))
        p->tproxy = true;
    else if (span_eq(word, SPAN("accel")))
        p->accel = true;
    else if (span_eq(name, SPAN("name")) && value.n)
        p->name = reader_str(r, value);
    else
        other_option(r, p, word);
}

static bool
is_taken(struct reader *r, const struct conf_port *p)
{
    for (unsigned i = 0; i < r->c->n_ports; i++) {
        const struct conf_port *q = &r->c->ports[i];

        if (addr_port(&p->address) == addr_port(&q->address) && addr_port(&p->address) != 0 &&
            addr_compare(&p->address, &q->address) == 0) {
            reader_note(r, "is the same as in line %u of %.200s, ignored", q->place.line,
                        q->place.file);
            return true;
        }
    }
    return false;
}

void
set_port(struct reader *r, const struct directive *d, const struct line *l)
{
    struct conf_port p = {.place = r->place};
    unsigned errors = r->c->n_errors;

    r->port_seen = true;
    if (l->n == 0 || !parse_place(l->words[0].text, &p)) {
        reader_error(r, "expected PORT or ADDRESS:PORT, found \"%.*s\"",
                     SHOWN(l->n ? l->words[0].text : SPAN("")));
        return;
    }
    p.name = reader_str(r, l->words[0].text);
    for (unsigned i = 1; i < l->n; i++)
        set_option(r, &p, l->words[i].text);
    if (r->c->n_errors == errors)
        refuse_tls(r, l);
    if (p.intercept + p.tproxy + p.accel > 1)
        reader_error(r, "intercept, tproxy and accel exclude each other");
    if (r->c->n_ports >= READER_PORTS_MAX)
        reader_error(r, "more than %d ports", READER_PORTS_MAX);
    if (r->c->n_errors != errors || is_taken(r, &p))
        return;
    r->c->ports = reader_grow(r->c->ports, r->c->n_ports, sizeof p);
    r->c->ports[r->c->n_ports++] = p;
}
