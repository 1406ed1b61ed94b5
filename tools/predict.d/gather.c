/* tools/predict.d/gather.c - one line at a time into counts, names and an interval. */
#include "tools/predict.d/gather.h"

#include <stdlib.h>

#include "base/check.h"

enum { REQUESTS_MOST = 0x7fffffff };

static uint64_t
told(int64_t bytes)
{
    return bytes > 0 ? (uint64_t)bytes : 0;
}

static void
count_method(struct gathered *g, struct span name)
{
    unsigned i;

    for (i = 0; i < g->n_methods; i++)
        if (span_eq(span_str(g->methods[i].name), name))
            break;
    if (i == g->n_methods && (name.n >= METHOD_BYTES || g->n_methods >= METHODS_MOST - 1)) {
        i = METHODS_MOST - 1;
        memcpy(g->methods[i].name, "others", sizeof("others"));
        g->methods[i].n++;
        return;
    }
    if (i == g->n_methods) {
        memcpy(g->methods[i].name, name.at, name.n);
        g->n_methods++;
    }
    g->methods[i].n++;
}

/* ---- where it goes ---- */

/* "host:port" as written, without scheme, user and path. The port stays away where it is not
 * written: only a scheme's default is missing then, so http and https are kept apart by it. */
static struct span
authority(struct span url, bool *https)
{
    const char *slashes = url.n > 3 ? memmem(url.at, url.n, "://", 3) : NULL;
    size_t n = 0;

    *https = span_starts_ci(url, SPAN("https:")) || span_starts_ci(url, SPAN("wss:"));
    if (slashes == NULL)
        return url.n > 0 && url.at[0] == '/' ? span_first(url, 0) : url;
    url = span_skip(url, (size_t)(slashes - url.at) + 3);
    while (n < url.n && url.at[n] != '/' && url.at[n] != '?' && url.at[n] != '#')
        n++;
    return span_first(url, n);
}

static uint32_t
server_number(struct gathered *g, const struct trace_line *t, const struct gather_options *o)
{
    bool https, list = t->format == TRACE_LIST || t->format == TRACE_TIMED_LIST;
    struct span name = list ? SPAN_NONE : authority(t->url, &https);
    char key[256];

    if (!list)
        names_number(&g->hosts, name, NULL);
    if (o->servers == SERVER_ONE || list)
        return names_number(&g->servers, SPAN_NONE, NULL);
    if (o->servers == SERVER_BY_PEER && t->peer.n > 0)
        name = t->peer;
    if (name.n + 1 > sizeof(key) || (name.n > 0 && span_index(name, ':') < name.n))
        return names_number(&g->servers, name, NULL);
    key[0] = https ? 's' : 'p';
    if (name.n > 0)
        memcpy(key + 1, name.at, name.n);
    return names_number(&g->servers, span_of(key, name.n + 1), NULL);
}

/* The hierarchy says it best: a hit that had to be validated went to the server, a denied request
 * did not. */
static bool
log_says_hit(const struct trace_line *t)
{
    if (t->hierarchy.n > 0)
        return span_eq(t->hierarchy, SPAN("NONE")) || span_eq(t->hierarchy, SPAN("HIER_NONE"));
    return trace_line_is_hit(t) || span_eq(t->word, SPAN("TCP_DENIED"));
}

static bool
is_answered_here(struct gathered *g, const struct trace_line *t, bool ideal_hit,
                 const struct gather_options *o)
{
    switch (o->hits) {
    case HITS_LOGGED:
        return t->word.n > 0 && log_says_hit(t);
    case HITS_IDEAL:
        return ideal_hit;
    case HITS_SHARE:
        g->share_due += trace_line_is_tunnel(t) ? 0 : o->hit_share;
        if (trace_line_is_tunnel(t) || g->share_due < 1)
            return false;
        g->share_due -= 1;
        return true;
    case HITS_NONE:
        return false;
    }
    UNREACHABLE();
}

/* Methods whose requests may be sent again, and have no body: these may go out on a connection
 * that the server is about to close. */
static bool
needs_fresh_connection(struct span method)
{
    return !span_eq(method, SPAN("GET")) && !span_eq(method, SPAN("HEAD")) &&
           !span_eq(method, SPAN("OPTIONS")) && !span_eq(method, SPAN("TRACE")) &&
           !span_eq(method, SPAN("DELETE"));
}

/* ---- when ---- */

static void
note_order(struct gathered *g, const struct trace_line *t)
{
    if (t->end_us < 0)
        return;
    if (g->read == 1)
        g->is_ordered = t->format == TRACE_TIMED_LIST;
    else if (t->end_us != g->last_end_us + 1000000)
        g->is_ordered = false;
    if (t->end_us < g->last_end_us)
        g->out_of_order++;
    g->last_end_us = t->end_us;
}

static struct fd_request *
new_request(struct gathered *g)
{
    if (g->n == g->room) {
        g->room = g->room ? g->room + g->room / 2 : 4096;
        g->requests = mem_realloc(g->requests, g->room * sizeof(*g->requests));
    }
    return &g->requests[g->n++];
}

/* A log's time is that of the end where a duration is told; else that of the arrival. */
static void
add_interval(struct gathered *g, const struct trace_line *t, bool here, uint32_t server,
             const struct gather_options *o)
{
    struct fd_request *q;
    int64_t us = t->duration_us;

    if (t->end_us < 0 || g->n >= REQUESTS_MOST) {
        g->without_time++;
        return;
    }
    if (us < 0)
        us = o->delay_us > 0 ? o->delay_us : 0;
    if (here && o->hit_delay_us >= 0)
        us = o->hit_delay_us;
    us += trace_line_is_tunnel(t) ? 0 : o->overhead_us;
    q = new_request(g);
    *q = (struct fd_request){.start_us = trace_line_arrival_us(t),
                             .client = names_number(&g->clients, t->client, NULL),
                             .server = here ? FD_NO_SERVER : server,
                             .tunnel = trace_line_is_tunnel(t),
                             .fresh = needs_fresh_connection(t->method)};
    q->end_us = q->start_us + us;
    g->to_server += !here;
}

/* ---- all ---- */

static void
count(struct gathered *g, const struct trace_line *t)
{
    g->read++;
    g->by_format[t->format]++;
    g->by_status[t->status / 100 % 10]++;
    g->tunnels += trace_line_is_tunnel(t);
    g->logged_hits += trace_line_is_hit(t);
    g->has_words |= t->word.n > 0;
    g->bytes += told(t->bytes);
    count_method(g, t->method);
    if (t->bytes >= 0)
        scale_add(&g->sizes, told(t->bytes));
    else
        g->without_size++;
    if (t->duration_us >= 0)
        scale_add(&g->durations_us, (uint64_t)t->duration_us);
    else
        g->without_duration++;
    note_order(g, t);
}

/* True: a cache without end would have it. */
static bool
count_reuse(struct gathered *g, const struct trace_line *t)
{
    bool confirms = t->status == 304;

    if (span_eq(t->method, SPAN("GET"))) {
        g->gets++;
        reuse_any(g->reuse, t->url, told(t->bytes));
    }
    if (!trace_line_is_cacheable(t))
        return false;
    g->cacheable++;
    g->cacheable_bytes += told(t->bytes);
    return reuse_cacheable(g->reuse, t->url, told(t->bytes), confirms);
}

struct gathered *
gather(struct trace_reader *r, const struct gather_options *o)
{
    struct gathered *g = mem_zalloc(sizeof(*g));
    struct trace_line t;

    g->reuse = reuse_new();
    while ((o->limit < 0 || g->read < (uint64_t)o->limit) && trace_reader_next(r, &t)) {
        bool ideal_hit;

        count(g, &t);
        ideal_hit = count_reuse(g, &t);
        add_interval(g, &t, is_answered_here(g, &t, ideal_hit, o), server_number(g, &t, o), o);
    }
    return g;
}

void
gathered_free(struct gathered **held)
{
    struct gathered *g = *held;

    if (g == NULL)
        return;
    *held = NULL;
    reuse_free(&g->reuse);
    names_free(&g->clients);
    names_free(&g->hosts);
    names_free(&g->servers);
    mem_free(g->requests);
    mem_free(g);
}
