/* dns/setting.c - options become name servers and completions.
 *
 * Completing short names (search list, append_domain) is done here and not by ares_search, so that
 * both families are asked under the same name and the one that has neither leads to the next. */
#include "dns/setting.h"

#include <stdio.h>

#include "base/check.h"
#include "base/log.h"
#include "dns/resolv_conf.h"

enum {
    TIMEOUT_DEFAULT_MS = 30000,
    TIMEOUT_MOST_MS = 600000,
    RETRANSMIT_DEFAULT_MS = 5000,
    RETRANSMIT_MOST_MS = 60000,
    NEXT_SERVER_MS = 1000,
    SERVER_TEXT_BYTES = 128
};

/* ---- name servers ---- */

static void
server_add(struct setting *s, struct name_server_options *o, struct span address)
{
    char text[SERVER_TEXT_BYTES];

    if (s->n_servers == SERVERS_MOST) {
        log_event(LOG_WARN, "name server %.*s is one too many: %d are asked", SPAN_ARG(address),
                  SERVERS_MOST);
        return;
    }
    snprintf(text, sizeof(text), "%.*s", SPAN_ARG(address));
    o->address = text;
    s->servers[s->n_servers] = name_server_new(o);
    s->n_servers += s->servers[s->n_servers] != NULL;
}

/* The list may be written with commas, spaces or both. */
static void
servers_from_list(struct setting *s, struct name_server_options *o, const char *list)
{
    while (*(list += strspn(list, ", \t"))) {
        size_t n = strcspn(list, ", \t");

        server_add(s, o, span_of(list, n));
        list += n;
    }
}

/* resolv.conf(5): without a line, the one on this machine. */
static void
servers_from_system(struct setting *s, struct name_server_options *o,
                    const struct resolv_conf *system)
{
    for (unsigned i = 0; i < system->n_servers; i++)
        server_add(s, o, system->servers[i]);
    if (system->n_servers == 0)
        server_add(s, o, SPAN("127.0.0.1"));
}

/* ---- completions ---- */

static void
search_add(struct setting *s, struct span domain)
{
    struct dns_name name;

    while (domain.n > 0 && domain.at[0] == '.')
        domain = span_skip(domain, 1);
    if (s->n_search == SEARCH_MOST || !name_read(domain, &name))
        return;
    s->search[s->n_search] = mem_alloc(domain.n + 1);
    memcpy(s->search[s->n_search], domain.at, domain.n);
    s->search[s->n_search++][domain.n] = '\0';
}

static void
search_setup(struct setting *s, const struct resolver_options *o, const struct resolv_conf *system)
{
    if (o->append_domain && o->append_domain[0]) {
        search_add(s, span_str(o->append_domain));
        s->completed_only = s->n_search > 0;
        return;
    }
    for (unsigned i = 0; o->defnames && i < system->n_domains; i++)
        search_add(s, system->domains[i]);
}

static bool
is_completed(const struct setting *s, const struct dns_name *name)
{
    return s->n_search > 0 && !name->dotted && !name->absolute;
}

bool
setting_candidate(const struct setting *s, const struct dns_name *name, unsigned candidate,
                  char out[NAME_MAX_BYTES + 1])
{
    bool completed = is_completed(s, name) && candidate < s->n_search;
    int n = snprintf(out, NAME_MAX_BYTES + 1, completed ? "%.*s.%s" : "%.*s%s",
                     SPAN_ARG(name_text(name)), completed ? s->search[candidate] : "");

    return n <= NAME_MAX_BYTES;
}

bool
setting_candidate_is_last(const struct setting *s, const struct dns_name *name, unsigned candidate)
{
    return !is_completed(s, name) || candidate >= s->n_search - s->completed_only;
}

/* ---- in words ---- */

static void
describe_all(const struct span *words, unsigned n, struct buf *out)
{
    for (unsigned i = 0; i < n; i++)
        buf_addf(out, " %.*s", SPAN_ARG(words[i]));
}

void
setting_describe(const struct resolver_options *o, struct buf *out)
{
    struct buf text = {0};
    struct resolv_conf system = resolv_conf_of_system(&text);

    BUF_ADD(out, "servers ");
    if (o->nameservers && o->nameservers[0])
        buf_add(out, span_str(o->nameservers));
    else
        describe_all(system.servers, system.n_servers, out);
    BUF_ADD(out, " domains ");
    if (o->append_domain && o->append_domain[0])
        buf_addf(out, "only %s", o->append_domain);
    else if (o->defnames)
        describe_all(system.domains, system.n_domains, out);
    buf_free(&text);
}

/* ---- life ---- */

static int64_t
within(int64_t value, int64_t preset, int64_t most)
{
    if (value <= 0)
        return preset;
    return value < most ? value : most;
}

struct setting *
setting_new(struct loop *loop, const struct resolver_options *o, uint64_t *local_failures)
{
    struct setting *s = mem_zalloc(sizeof(*s));
    struct buf text = {0};
    struct resolv_conf system = resolv_conf_of_system(&text);
    struct name_server_options server = {.loop = loop, .local_failures = local_failures};

    list_init(&s->link);
    s->v4_first = o->v4_first;
    s->timeout_ms = within(o->timeout_ms, TIMEOUT_DEFAULT_MS, TIMEOUT_MOST_MS);
    s->retransmit_ms = within(o->retransmit_ms, RETRANSMIT_DEFAULT_MS, RETRANSMIT_MOST_MS);
    s->next_ms = s->retransmit_ms < NEXT_SERVER_MS ? s->retransmit_ms : NEXT_SERVER_MS;
    server.timeout_ms = s->timeout_ms;
    server.retransmit_ms = s->retransmit_ms;
    if (o->nameservers && o->nameservers[0])
        servers_from_list(s, &server, o->nameservers);
    else
        servers_from_system(s, &server, &system);
    search_setup(s, o, &system);
    buf_free(&text);
    return s;
}

void
setting_free(struct setting **held)
{
    struct setting *s = *held;

    *held = NULL;
    list_remove(&s->link);
    for (unsigned i = 0; i < s->n_servers; i++)
        name_server_free(&s->servers[i]);
    for (unsigned i = 0; i < s->n_search; i++)
        mem_free(s->search[i]);
    mem_free(s);
}
