/* proxy/admin/page.c - the live page and the small JSON it lives on.
 *
 * The page is whole without a script: the figures are in it when it is sent, and a browser without
 * scripts reloads it. The script fetches live.json and puts each of its numbers where an element
 * has its name, so a figure is one row of the table below and no more. Nothing comes from
 * elsewhere. */
#include "proxy/admin/page_parts.h"

#include <stdio.h>

#include "http/date.h"
#include "proxy/admin/report.h"

enum figure {
    REQUESTS_PER_S,
    HIT_PERCENT,
    DESCRIPTORS,
    READINESS_PERCENT,
    READINESS_5MIN_PERCENT,
    READINESS_ALL_PERCENT,
    CALLS_PER_S,
    EVENTS_PER_CALL,
    CPU_PER_CALL_US,
    BLOCKED_PERCENT,
    CPU_PERCENT,
    WATCHED,
    REQUESTS,
    HIT_5MIN_PERCENT,
    ERRORS,
    COLLAPSED,
    TUNNELS,
    IN_MB_PER_S,
    OUT_MB_PER_S,
    HIT_MS,
    MISS_MS,
    STORE_ENTRIES,
    STORE_MB,
    STORE_LIMIT_MB,
    RESIDENT_MB,
    DNS_NAMES,
    UPTIME_S,
    FIGURES
};

enum place { CARD, READINESS, TRAFFIC, MEMORY, NOWHERE };

static const struct {
    const char *id, *label, *unit;
    unsigned digits;
    enum place place;
} figures[FIGURES] = {
    [REQUESTS_PER_S] = {"requests_per_s", "requests a second", "", 1, CARD},
    [HIT_PERCENT] = {"hit_percent", "of requests were hits", "%", 1, CARD},
    [DESCRIPTORS] = {"descriptors", "descriptors in use", "", 0, CARD},
    [READINESS_PERCENT] = {"readiness_percent", "of CPU in the readiness call", "%", 1, CARD},
    [READINESS_5MIN_PERCENT] = {"readiness_5min_percent", "Share of CPU, 5 minutes", "%", 2,
                                READINESS},
    [READINESS_ALL_PERCENT] = {"readiness_all_percent", "Share of CPU, since start", "%", 2,
                               READINESS},
    [CALLS_PER_S] = {"calls_per_s", "Calls a second", "", 1, READINESS},
    [EVENTS_PER_CALL] = {"events_per_call", "Events a call", "", 2, READINESS},
    [CPU_PER_CALL_US] = {"cpu_per_call_us", "CPU a call", "\302\265s", 2, READINESS},
    [BLOCKED_PERCENT] = {"blocked_percent", "Time blocked (idle)", "%", 1, READINESS},
    [CPU_PERCENT] = {"cpu_percent", "CPU of the process", "%", 1, READINESS},
    [WATCHED] = {"watched", "Descriptors watched", "", 0, READINESS},
    [REQUESTS] = {"requests", "Requests, since start", "", 0, TRAFFIC},
    [HIT_5MIN_PERCENT] = {"hit_5min_percent", "Hits, 5 minutes", "%", 1, TRAFFIC},
    [ERRORS] = {"errors", "Error pages, since start", "", 0, TRAFFIC},
    [COLLAPSED] = {"collapsed", "Joined to another's fill", "", 0, TRAFFIC},
    [TUNNELS] = {"tunnels", "Tunnels opened", "", 0, TRAFFIC},
    [IN_MB_PER_S] = {"in_mb_per_s", "From origins", "MB/s", 3, TRAFFIC},
    [OUT_MB_PER_S] = {"out_mb_per_s", "To clients", "MB/s", 3, TRAFFIC},
    [HIT_MS] = {"hit_ms", "Median hit, 5 minutes", "ms", 2, TRAFFIC},
    [MISS_MS] = {"miss_ms", "Median miss, 5 minutes", "ms", 2, TRAFFIC},
    [STORE_ENTRIES] = {"store_entries", "Responses stored", "", 0, MEMORY},
    [STORE_MB] = {"store_mb", "Store", "MB", 1, MEMORY},
    [STORE_LIMIT_MB] = {"store_limit_mb", "Store, at most", "MB", 0, MEMORY},
    [RESIDENT_MB] = {"resident_mb", "Process, resident", "MB", 1, MEMORY},
    [DNS_NAMES] = {"dns_names", "Names resolved and kept", "", 0, MEMORY},
    [UPTIME_S] = {"uptime_s", "", "s", 0, NOWHERE},
};

/* ---- the figures ---- */

static void
take_readiness(const struct view *v, double at[FIGURES])
{
    const struct readiness_sum *r = &v->recent.t.readiness;
    double blocked; /* a wait is counted when it ends: it may have begun before this window */

    at[READINESS_PERCENT] = 100 * readiness_share(r);
    at[READINESS_5MIN_PERCENT] = 100 * readiness_share(&v->min5.t.readiness);
    at[READINESS_ALL_PERCENT] = 100 * readiness_share(&v->now.t.readiness);
    at[CALLS_PER_S] = figure_per_second(&v->recent, (double)r->calls);
    at[EVENTS_PER_CALL] = figure_ratio((double)r->events, (double)r->calls);
    at[CPU_PER_CALL_US] = figure_ratio((double)r->cpu_ns / 1e3, (double)r->calls);
    blocked = figure_ratio(figure_blocked_s(r), (double)r->elapsed_ns / 1e9);
    at[BLOCKED_PERCENT] = 100 * (blocked < 1 ? blocked : 1);
    at[CPU_PERCENT] = 100 * figure_cpu_share(&v->recent);
    at[WATCHED] = (double)v->now.t.readiness.watched;
}

static void
take_traffic(const struct view *v, double at[FIGURES])
{
    const uint64_t *all = v->now.t.counters, *recent = v->recent.t.counters;

    at[REQUESTS_PER_S] = figure_per_second(&v->recent, (double)recent[COUNTER_CLIENT_REQUESTS]);
    at[HIT_PERCENT] = 100 * figure_hit_share(&v->recent);
    at[HIT_5MIN_PERCENT] = 100 * figure_hit_share(&v->min5);
    at[REQUESTS] = (double)all[COUNTER_CLIENT_REQUESTS];
    at[ERRORS] = (double)all[COUNTER_CLIENT_ERRORS];
    at[COLLAPSED] = (double)all[COUNTER_COLLAPSED];
    at[TUNNELS] = (double)all[COUNTER_TUNNELS];
    at[IN_MB_PER_S] = figure_per_second(&v->recent, (double)recent[COUNTER_SERVER_BYTES_IN] / 1e6);
    at[OUT_MB_PER_S] =
        figure_per_second(&v->recent, (double)recent[COUNTER_CLIENT_KBYTES_OUT] / 1e6);
    at[HIT_MS] = 1000 * figure_median_s(&v->min5, HISTOGRAM_HIT_US);
    at[MISS_MS] = 1000 * figure_median_s(&v->min5, HISTOGRAM_MISS_US);
}

static void
take_figures(const struct view *v, double at[FIGURES])
{
    take_readiness(v, at);
    take_traffic(v, at);
    at[DESCRIPTORS] = (double)v->fds_in_use;
    at[STORE_ENTRIES] = (double)v->store.entries;
    at[STORE_MB] = (double)v->store.bytes / 1e6;
    at[STORE_LIMIT_MB] = (double)v->store.limit / 1e6;
    at[RESIDENT_MB] = (double)v->resident_bytes / 1e6;
    at[DNS_NAMES] = (double)v->answers.entries;
    at[UPTIME_S] = figure_seconds(&v->now);
}

/* "client active" -> "client_active": the names in the JSON and of the elements. */
static void
purpose_id(enum fd_purpose p, char out[32])
{
    snprintf(out, 32, "%s", fd_purpose_name(p));
    for (char *at = out; *at; at++)
        if (*at == ' ')
            *at = '_';
}

/* ---- live.json ---- */

/* Flat: {"values": {name: number...}, "rates": [requests in each of the last seconds]}. */
void
report_live(struct manager *m, const struct view *v, struct buf *out)
{
    double at[FIGURES];

    take_figures(v, at);
    BUF_ADD(out, "{\"values\":{");
    for (unsigned i = 0; i < FIGURES; i++)
        buf_addf(out, "%s\"%s\":%.*f", i ? "," : "", figures[i].id, (int)figures[i].digits, at[i]);
    for (unsigned p = 0; p < FD_PURPOSES; p++) {
        const struct fd_census_row *row = &v->census[p];
        char id[32];

        purpose_id(p, id);
        buf_addf(out, ",\"%s\":%llu,\"%s_mean\":%.1f,\"%s_peak\":%llu", id,
                 (unsigned long long)row->now, id, row->mean, id, (unsigned long long)row->peak);
    }
    BUF_ADD(out, "},\"rates\":[");
    for (unsigned i = 0; i < v->n_rates; i++)
        buf_addf(out, "%s%.1f", i ? "," : "", v->rates[i]);
    BUF_ADD(out, "]}\n");
}

/* ---- the page ---- */

static void
add_escaped(struct buf *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            BUF_ADD(out, "&amp;");
            break;
        case '<':
            BUF_ADD(out, "&lt;");
            break;
        case '>':
            BUF_ADD(out, "&gt;");
            break;
        case '"':
            BUF_ADD(out, "&quot;");
            break;
        default:
            buf_add_char(out, *text);
        }
    }
}

static void
add_figure(struct buf *out, enum figure f, const double at[FIGURES])
{
    buf_addf(out, "<span id=\"%s\" data-d=\"%u\">%.*f</span>", figures[f].id, figures[f].digits,
             (int)figures[f].digits, at[f]);
    if (figures[f].unit[0])
        buf_addf(out, "<small> %s</small>", figures[f].unit);
}

static void
add_cards(struct buf *out, const double at[FIGURES])
{
    BUF_ADD(out, "<section class=\"cards\">\n");
    for (unsigned i = 0; i < FIGURES; i++) {
        if (figures[i].place != CARD)
            continue;
        BUF_ADD(out, "<div><b>");
        add_figure(out, i, at);
        buf_addf(out, "</b>%s</div>\n", figures[i].label);
    }
    BUF_ADD(out, "</section>\n");
}

static void
add_table(struct buf *out, const char *title, enum place place, const double at[FIGURES])
{
    buf_addf(out, "<section><h2>%s</h2><table>\n", title);
    for (unsigned i = 0; i < FIGURES; i++) {
        if (figures[i].place != place)
            continue;
        buf_addf(out, "<tr><th scope=\"row\">%s</th><td>", figures[i].label);
        add_figure(out, i, at);
        BUF_ADD(out, "</td></tr>\n");
    }
    BUF_ADD(out, "</table></section>\n");
}

static uint64_t
census_most(const struct view *v)
{
    uint64_t most = 1;

    for (unsigned p = 0; p < FD_PURPOSES; p++)
        most = v->census[p].now > most ? v->census[p].now : most;
    return most;
}

static void
add_purpose(struct buf *out, const struct view *v, enum fd_purpose p)
{
    const struct fd_census_row *row = &v->census[p];
    char date[DATE_TEXT_MAX] = "", id[32];

    purpose_id(p, id);
    if (row->peak_at_wall_s)
        date_format(row->peak_at_wall_s, date);
    buf_addf(out,
             "<tr><th scope=\"row\">%s</th><td id=\"%s\">%llu</td><td class=\"bar\"><i "
             "data-bar=\"%s\" style=\"width:%.1f%%\"></i></td>",
             fd_purpose_name(p), id, (unsigned long long)row->now, id,
             100 * figure_ratio((double)row->now, (double)census_most(v)));
    buf_addf(
        out,
        "<td id=\"%s_mean\" data-d=\"1\">%.1f</td><td id=\"%s_peak\" title=\"%s\">%llu</td></tr>\n",
        id, row->mean, id, date, (unsigned long long)row->peak);
}

static void
add_descriptors(struct buf *out, const struct view *v)
{
    BUF_ADD(out, "<section class=\"wide\"><h2>Descriptors by purpose</h2><table>\n<tr><td></td><th "
                 "scope=\"col\">now</th><td class=\"bar\"></td>"
                 "<th scope=\"col\">mean</th><th scope=\"col\">peak</th></tr>\n");
    for (unsigned p = 0; p < FD_PURPOSES; p++)
        add_purpose(out, v, p);
    buf_addf(out, "</table><p>Limit %llu, most in use at once %llu.</p></section>\n",
             (unsigned long long)v->fds_limit, (unsigned long long)v->fds_peak);
}

/* 60 seconds on 240 x 40; the script draws the same. */
static void
add_rates(struct buf *out, const struct view *v)
{
    double most = 1;

    for (unsigned i = 0; i < v->n_rates; i++)
        most = v->rates[i] > most ? v->rates[i] : most;
    BUF_ADD(out, "<section class=\"all\"><h2>Requests a second, last minute</h2><svg viewBox=\"0 "
                 "0 240 42\" preserveAspectRatio=\"none\" "
                 "role=\"img\" aria-label=\"requests a second over the last minute\"><polyline "
                 "id=\"line\" points=\"");
    for (unsigned i = 0; i < v->n_rates; i++)
        buf_addf(out, "%.1f,%.1f ", 240 - 4.0 * (v->n_rates - 1 - i), 41 - 40 * v->rates[i] / most);
    buf_addf(out,
             "\"/></svg><p>Highest: <span id=\"most\" data-d=\"1\">%.1f</span></p></section>\n",
             v->n_rates ? most : 0.0);
}

static void
add_links(struct buf *out)
{
    const struct report *r;

    BUF_ADD(out, "<nav><h2>Reports</h2><ul>\n");
    for (unsigned i = 0; (r = report_at(i)) != NULL; i++)
        buf_addf(out, "<li><a href=\"" REPORT_ROOT "%s\">%s</a> %s</li>\n", r->name, r->name,
                 r->text);
    BUF_ADD(out,
            "<li><a href=\"/metrics\">/metrics</a> for Prometheus</li>\n<li><a href=\"" REPORT_ROOT
            "live.json\">live.json</a> this "
            "page's figures</li>\n</ul></nav>\n");
}

void
report_page(struct manager *m, const struct view *v, struct buf *out)
{
    double at[FIGURES];
    char date[DATE_TEXT_MAX];

    take_figures(v, at);
    date_format(v->now_wall_ms / 1000, date);
    BUF_ADD(out, PAGE_HEAD);
    add_escaped(out, v->name);
    BUF_ADD(out, " - cuttle</title>\n" PAGE_STYLE "</head><body>\n<header><h1>cuttle <small>");
    add_escaped(out, v->name);
    buf_addf(out,
             "</small></h1>\n<p>Version %s, %s, %u worker%s, up <span id=\"uptime_s\">%.0f</span> "
             "s. <span id=\"state\">As of %s.</span></p></header>\n<main>\n",
             v->version, manager_backend(m), v->n_workers, v->n_workers == 1 ? "" : "s",
             at[UPTIME_S], date);
    add_cards(out, at);
    add_rates(out, v);
    add_descriptors(out, v);
    add_table(out, "The readiness call", READINESS, at);
    add_table(out, "Traffic", TRAFFIC, at);
    add_table(out, "Memory", MEMORY, at);
    add_links(out);
    BUF_ADD(out, "</main>\n" PAGE_SCRIPT "</body></html>\n");
}
