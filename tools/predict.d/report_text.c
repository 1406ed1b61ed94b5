/* tools/predict.d/report_text.c - what a person reads: sentences for what was assumed, tables for
 * what is compared. */
#include <time.h>

#include "tools/predict.d/report.h"

void
iso_time(int64_t at_us, char text[ISO_BYTES])
{
    time_t at_s = (time_t)(at_us / 1000000);
    struct tm tm;

    if (gmtime_r(&at_s, &tm) == NULL || tm.tm_year > 8099 ||
        strftime(text, ISO_BYTES, "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
        snprintf(text, ISO_BYTES, "%lld s", (long long)at_s);
        return;
    }
    snprintf(text + strlen(text), ISO_BYTES - strlen(text), ".%03dZ",
             (int)(at_us / 1000 % 1000) % 1000);
}

const char *
hit_rule_name(enum hit_rule r)
{
    static const char *const names[] = {"logged", "ideal", "share", "none"};

    return names[r];
}

static double
percent(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100 * (double)part / (double)whole : 0;
}

/* "9.7 GB", as decimal units */
static const char *
bytes_text(uint64_t n, char text[32])
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)n;
    unsigned unit = 0;

    while (value >= 999.5 && unit < 6) {
        value /= 1000;
        unit++;
    }
    snprintf(text, 32, value < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

static const char *
seconds_text(double s, char text[32])
{
    if (s < 1)
        snprintf(text, 32, "%.0f ms", s * 1000);
    else if (s < 600)
        snprintf(text, 32, "%.3g s", s);
    else if (s < 7200)
        snprintf(text, 32, "%.0f min", s / 60);
    else
        snprintf(text, 32, "%.1f h", s / 3600);
    return text;
}

/* ---- the log ---- */

static void
print_skipped(FILE *to, const struct trace_reader *reader)
{
    for (int v = TRACE_EMPTY; v < TRACE_VERDICTS; v++)
        if (trace_reader_skipped(reader, v) > 0)
            fprintf(to, "  skipped      %llu: %s (first: line %llu)\n",
                    (unsigned long long)trace_reader_skipped(reader, v), trace_verdict_text(v),
                    (unsigned long long)trace_reader_first_skipped(reader, v));
}

static void
print_methods(FILE *to, const struct gathered *g)
{
    fprintf(to, "  methods     ");
    for (unsigned i = 0; i < METHODS_MOST; i++)
        if (g->methods[i].n > 0)
            fprintf(to, " %s %llu", g->methods[i].name, (unsigned long long)g->methods[i].n);
    fprintf(to, "\n  status      ");
    for (unsigned i = 1; i < 10; i++)
        if (g->by_status[i] > 0)
            fprintf(to, " %uxx %llu", i, (unsigned long long)g->by_status[i]);
    if (g->by_status[0] > 0)
        fprintf(to, " none %llu", (unsigned long long)g->by_status[0]);
    fprintf(to, "\n");
}

static void
print_scales(FILE *to, const struct gathered *g)
{
    static const double shares[] = {0.5, 0.9, 0.99};
    char text[32];

    fprintf(to, "  sizes       ");
    for (unsigned i = 0; i < 3; i++)
        fprintf(to, " p%.0f %s,", shares[i] * 100,
                bytes_text(scale_percentile(&g->sizes, shares[i]), text));
    fprintf(to, " largest %s", bytes_text(g->sizes.most, text));
    fprintf(to, ", together %s\n", bytes_text(g->bytes, text));
    if (g->durations_us.n == 0)
        return;
    fprintf(to, "  durations   ");
    for (unsigned i = 0; i < 3; i++)
        fprintf(to, " p%.0f %s,", shares[i] * 100,
                seconds_text((double)scale_percentile(&g->durations_us, shares[i]) / 1e6, text));
    fprintf(to, " longest %s\n", seconds_text((double)g->durations_us.most / 1e6, text));
}

static void
print_log(FILE *to, const struct report *r)
{
    const struct gathered *g = r->g;

    fprintf(to, "%s\n  lines        %llu, requests %llu, tunnels %llu (%.1f %%)\n", r->log,
            (unsigned long long)trace_reader_lines(r->reader), (unsigned long long)g->read,
            (unsigned long long)g->tunnels, percent(g->tunnels, g->read));
    print_skipped(to, r->reader);
    if (trace_reader_fault(r->reader))
        fprintf(to, "  broken off   %s; what came before it counts\n",
                trace_reader_fault(r->reader));
    fprintf(to, "  clients      %u, hosts %u, unique URLs of GET %u\n", g->clients.n, g->hosts.n,
            g->reuse->any.n);
    print_methods(to, g);
    print_scales(to, g);
}

/* ---- concurrency ---- */

/* What is missing is said before any figure that lacks it. */
static bool
print_missing(FILE *to, const struct report *r)
{
    const struct gathered *g = r->g;

    if (!r->s->has_times)
        fprintf(to, "  not predicted: the log has no times%s\n",
                g->is_ordered ? " (its first column only counts the lines)" : "");
    else if (!r->s->has_durations)
        fprintf(to, "  not predicted: the log has no durations. --delay MS gives every request "
                    "the same one, as a model\n");
    if (!r->s->has_times || !r->s->has_durations)
        return false;
    if (g->without_duration > 0 && r->o->gather.delay_us > 0)
        fprintf(to,
                "  MODEL: %llu requests have no duration; each is taken to last %lld ms "
                "(--delay)\n",
                (unsigned long long)g->without_duration, (long long)(r->o->gather.delay_us / 1000));
    else if (g->without_duration > 0)
        fprintf(to, "  %llu requests have no duration and are taken to last no time (--delay MS)\n",
                (unsigned long long)g->without_duration);
    if (g->without_time > 0)
        fprintf(to, "  %llu requests have no time and are left out here\n",
                (unsigned long long)g->without_time);
    return true;
}

static void
print_level(FILE *to, const char *name, const struct level_summary *l)
{
    char at[ISO_BYTES] = "-";

    if (l->peak > 0)
        iso_time(l->peak_at_us, at);
    fprintf(to, "  %-14s %10.2f %8u %8u   %s\n", name, l->mean, l->p99, l->peak, at);
}

static void
print_little(FILE *to, const struct report *r)
{
    const struct study *s = r->s;
    double span_s = (double)(s->last_us - s->first_us) / 1e6;
    double rate = span_s > 0 ? (double)r->g->n / span_s : 0;
    char at[ISO_BYTES], mean[32];

    fprintf(to,
            "  Little's law   %.3g requests/s x %s = %.2f (equal to the mean above: every request "
            "lies within the log)\n",
            rate, seconds_text(rate > 0 ? s->all.mean / rate : 0, mean), s->all.mean);
    iso_time(s->busiest.start_s * 1000000, at);
    fprintf(to, "  busiest hour   from %s: %.3g requests/s x %s = %.2f; by overlap %.2f\n", at,
            (double)s->busiest.came / 3600, seconds_text(s->busiest.duration_s, mean),
            (double)s->busiest.came / 3600 * s->busiest.duration_s, s->busiest.open_mean);
}

static void
print_concurrency(FILE *to, const struct report *r)
{
    const struct study *s = r->s;
    char first[ISO_BYTES], last[ISO_BYTES], span[32];

    iso_time(s->first_us, first);
    iso_time(s->last_us, last);
    fprintf(to, "  %s to %s, %s\n", first, last,
            seconds_text((double)(s->last_us - s->first_us) / 1e6, span));
    fprintf(to, "  under way            mean      p99     peak   peak at\n");
    print_level(to, "requests", &s->requests);
    print_level(to, "tunnels", &s->tunnels);
    print_level(to, "together", &s->all);
    print_little(to, r);
}

/* ---- descriptors ---- */

static void
print_rules(FILE *to, const struct report *r)
{
    const struct gather_options *o = &r->o->gather;

    fprintf(to, "Descriptors: connections to clients and servers, and %u that are always there\n",
            r->o->fixed);
    if (o->hits == HITS_LOGGED && r->g->has_words)
        fprintf(to, "  to a server goes what the log says went there");
    else if (o->hits == HITS_IDEAL)
        fprintf(to, "  to a server goes what a cache without end would not have");
    else if (o->hits == HITS_SHARE)
        fprintf(to, "  %.4g %% of the requests that are no tunnels are answered from the cache",
                o->hit_share * 100);
    else
        fprintf(to, "  every request goes to a server");
    fprintf(to, ": %llu of %llu requests, %u servers\n", (unsigned long long)r->g->to_server,
            (unsigned long long)r->g->n, r->g->servers.n);
}

static void
print_arm(FILE *to, const struct report *r, const struct arm *a)
{
    const struct arm *off = &r->s->arms[0];
    double fixed = r->o->fixed;
    char idle[32] = "-", at[ISO_BYTES];

    if (a->persistence != PERSIST_OFF && a->idle.client_us == a->idle.server_us)
        snprintf(idle, sizeof(idle), "%g", (double)a->idle.client_us / 1e6);
    else if (a->persistence != PERSIST_OFF)
        snprintf(idle, sizeof(idle), "%g/%g", (double)a->idle.client_us / 1e6,
                 (double)a->idle.server_us / 1e6);
    iso_time(a->need.peak_at_us, at);
    fprintf(to, "  %-11s %7s %9.1f %6.0f %6.0f %7.2f %7.2f %9llu %9llu   %s\n",
            persistence_name(a->persistence), idle, a->held.mean + fixed, a->held.p99 + fixed,
            a->held.peak + fixed, (a->held.mean + fixed) / (off->held.mean + fixed),
            (a->held.peak + fixed) / (off->held.peak + fixed),
            (unsigned long long)a->need.client_opened, (unsigned long long)a->need.server_opened,
            at);
}

static void
print_descriptors(FILE *to, const struct report *r)
{
    print_rules(to, r);
    fprintf(to, "                                                     to off           opened\n"
                "  persistence  idle s      mean    p99   peak    mean    peak   clients   servers"
                "   peak at\n");
    for (unsigned i = 0; i < r->s->n_arms; i++)
        print_arm(to, r, &r->s->arms[i]);
}

/* ---- caching ---- */

static void
print_curve(FILE *to, const struct report *r)
{
    char text[32];

    fprintf(to, "  LRU          of unique      size   hits %%   misses %%   byte hits %%   (of "
                "cacheable; exact stack distances)\n");
    for (unsigned i = 0; i < r->s->n_curve; i++) {
        const struct curve_point *p = &r->s->curve[i];

        fprintf(to, "              %9.4g %% %9s %8.2f %10.2f %13.2f\n", p->percent,
                bytes_text(p->bytes, text), percent(p->hits, r->g->cacheable),
                100 - percent(p->hits, r->g->cacheable),
                percent(p->hit_bytes, r->g->cacheable_bytes));
    }
}

static void
print_caching(FILE *to, const struct report *r)
{
    const struct gathered *g = r->g;
    char text[32];

    fprintf(to, "Caching\n");
    if (g->has_words)
        fprintf(to, "  as logged            %.1f %% of requests were hits\n",
                percent(g->logged_hits, g->read));
    fprintf(to,
            "  ideal, any GET       %.1f %% of requests (%.1f %% of GET), %.1f %% of bytes; every "
            "answer to a GET is stored for ever\n",
            percent(g->reuse->any_hits, g->read), percent(g->reuse->any_hits, g->gets),
            percent(g->reuse->any_hit_bytes, g->bytes));
    fprintf(to,
            "  ideal, cacheable     %.1f %% of requests (%.1f %% of cacheable), %.1f %% of bytes; "
            "by status\n",
            percent(g->reuse->hits, g->read), percent(g->reuse->hits, g->cacheable),
            percent(g->reuse->hit_bytes, g->bytes));
    fprintf(to, "  cacheable            %llu requests, %u objects, %s of unique bytes\n",
            (unsigned long long)g->cacheable, g->reuse->cacheable.n,
            bytes_text(g->reuse->unique_bytes, text));
    if (g->cacheable > 0)
        print_curve(to, r);
}

void
report_text(FILE *to, const struct report *r)
{
    print_log(to, r);
    fprintf(to, "\nConcurrency, by overlap of the requests' intervals\n");
    if (print_missing(to, r)) {
        print_concurrency(to, r);
        fprintf(to, "\n");
        print_descriptors(to, r);
    }
    fprintf(to, "\n");
    print_caching(to, r);
}

void
report_minutes(FILE *to, const struct report *r)
{
    const struct minutes *m = &r->s->minutes;

    fprintf(to, "minute,requests,mean_duration_s,open_mean,open_p99,open_peak,tunnels_peak,"
                "descriptors_peak\n");
    for (size_t i = 0; i < m->n; i++) {
        const struct minute *row = &m->rows[i];
        char at[ISO_BYTES];

        iso_time(row->minute * 60000000, at);
        fprintf(to, "%.16sZ,%llu,%.3f,%.3f,%u,%u,%u,%u\n", at, (unsigned long long)row->came,
                row->duration_s, row->open_mean, row->open_p99, row->open_peak, row->tunnels_peak,
                row->descriptors_peak + r->o->fixed);
    }
}
