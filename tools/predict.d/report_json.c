/* tools/predict.d/report_json.c - the same figures for programs. Ratios are 0 to 1, times ISO. */
#include "tools/predict.d/report.h"

static void
json_string(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < 0x20 || c > 0x7e)
            fprintf(to, "\\u%04x", c);
        else
            fputc(c, to);
    }
    fputc('"', to);
}

static void
json_time(FILE *to, const char *name, int64_t at_us)
{
    char at[ISO_BYTES];

    iso_time(at_us, at);
    fprintf(to, "\"%s\": \"%s\"", name, at);
}

static double
ratio(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void
json_skipped(FILE *to, const struct trace_reader *reader)
{
    const char *comma = "";

    fprintf(to, "  \"skipped\": [");
    for (int v = TRACE_EMPTY; v < TRACE_VERDICTS; v++) {
        if (trace_reader_skipped(reader, v) == 0)
            continue;
        fprintf(to, "%s{\"reason\": ", comma);
        json_string(to, trace_verdict_text(v));
        fprintf(to, ", \"lines\": %llu, \"first_line\": %llu}",
                (unsigned long long)trace_reader_skipped(reader, v),
                (unsigned long long)trace_reader_first_skipped(reader, v));
        comma = ", ";
    }
    fprintf(to, "],\n");
}

static void
json_counts(FILE *to, const struct gathered *g)
{
    const char *comma = "";

    fprintf(to, "  \"methods\": {");
    for (unsigned i = 0; i < METHODS_MOST; i++)
        if (g->methods[i].n > 0) {
            fprintf(to, "%s", comma);
            json_string(to, g->methods[i].name);
            fprintf(to, ": %llu", (unsigned long long)g->methods[i].n);
            comma = ", ";
        }
    fprintf(to, "},\n  \"status_classes\": {");
    comma = "";
    for (unsigned i = 0; i < 10; i++)
        if (g->by_status[i] > 0) {
            fprintf(to, "%s\"%u\": %llu", comma, i, (unsigned long long)g->by_status[i]);
            comma = ", ";
        }
    fprintf(to, "},\n");
}

static void
json_scale(FILE *to, const char *name, const struct scale *s, double unit)
{
    fprintf(to,
            "  \"%s\": {\"n\": %llu, \"p50\": %.10g, \"p90\": %.10g, \"p99\": %.10g, \"max\": "
            "%.10g},\n",
            name, (unsigned long long)s->n, (double)scale_percentile(s, 0.5) / unit,
            (double)scale_percentile(s, 0.9) / unit, (double)scale_percentile(s, 0.99) / unit,
            (double)s->most / unit);
}

static void
json_log(FILE *to, const struct report *r)
{
    const struct gathered *g = r->g;

    fprintf(to, "  \"log\": ");
    json_string(to, r->log);
    fprintf(to,
            ",\n  \"lines\": %llu, \"requests\": %llu, \"tunnels\": %llu, \"clients\": %u, "
            "\"hosts\": %u,\n",
            (unsigned long long)trace_reader_lines(r->reader), (unsigned long long)g->read,
            (unsigned long long)g->tunnels, g->clients.n, g->hosts.n);
    fprintf(to, "  \"bytes\": %llu, \"without_time\": %llu, \"without_duration\": %llu,\n",
            (unsigned long long)g->bytes, (unsigned long long)g->without_time,
            (unsigned long long)g->without_duration);
    fprintf(to, "  \"fault\": ");
    if (trace_reader_fault(r->reader))
        json_string(to, trace_reader_fault(r->reader));
    else
        fprintf(to, "null");
    fprintf(to, ",\n");
    json_skipped(to, r->reader);
    json_counts(to, g);
    json_scale(to, "size_bytes", &g->sizes, 1);
    json_scale(to, "duration_s", &g->durations_us, 1e6);
}

static void
json_level(FILE *to, const char *name, const struct level_summary *l)
{
    fprintf(to, "    \"%s\": {\"mean\": %.4f, \"p99\": %u, \"peak\": %u, ", name, l->mean, l->p99,
            l->peak);
    json_time(to, "peak_at", l->peak_at_us);
    fprintf(to, "},\n");
}

static void
json_concurrency(FILE *to, const struct report *r)
{
    const struct study *s = r->s;
    double span_s = (double)(s->last_us - s->first_us) / 1e6;

    fprintf(to, "  \"concurrency\": {\n    ");
    json_time(to, "first", s->first_us);
    fprintf(to, ", ");
    json_time(to, "last", s->last_us);
    fprintf(to, ", \"span_s\": %.3f,\n    \"modelled_delay_s\": %.3f,\n", span_s,
            r->g->without_duration > 0 && r->o->gather.delay_us > 0
                ? (double)r->o->gather.delay_us / 1e6
                : 0);
    json_level(to, "requests", &s->requests);
    json_level(to, "tunnels", &s->tunnels);
    json_level(to, "all", &s->all);
    fprintf(to, "    \"busiest_hour\": {");
    json_time(to, "start", s->busiest.start_s * 1000000);
    fprintf(
        to,
        ", \"rate\": %.5f, \"mean_duration_s\": %.5f, \"little\": %.4f, \"mean\": %.4f}\n  },\n",
        (double)s->busiest.came / 3600, s->busiest.duration_s,
        (double)s->busiest.came / 3600 * s->busiest.duration_s, s->busiest.open_mean);
}

static void
json_arm(FILE *to, const struct report *r, const struct arm *a)
{
    const struct arm *off = &r->s->arms[0];
    const struct fd_need *n = &a->need;
    double fixed = r->o->fixed;

    fprintf(to, "      {\"persistence\": \"%s\", \"client_idle_s\": %g, \"server_idle_s\": %g,\n",
            persistence_name(a->persistence), (double)a->idle.client_us / 1e6,
            (double)a->idle.server_us / 1e6);
    fprintf(to, "       \"mean\": %.3f, \"p99\": %.0f, \"peak\": %.0f, ", a->held.mean + fixed,
            a->held.p99 + fixed, a->held.peak + fixed);
    json_time(to, "peak_at", n->peak_at_us);
    fprintf(to, ", \"client_mean\": %.3f, \"server_mean\": %.3f,\n", n->client_mean,
            n->server_mean);
    fprintf(to,
            "       \"at_peak\": {\"client_active\": %u, \"client_idle\": %u, \"server_active\": "
            "%u, \"server_idle\": %u},\n",
            n->at_peak.client_active, n->at_peak.client_idle, n->at_peak.server_active,
            n->at_peak.server_idle);
    fprintf(to,
            "       \"client_opened\": %llu, \"server_opened\": %llu, \"mean_to_off\": %.4f, "
            "\"peak_to_off\": %.4f}",
            (unsigned long long)n->client_opened, (unsigned long long)n->server_opened,
            (a->held.mean + fixed) / (off->held.mean + fixed),
            (a->held.peak + fixed) / (off->held.peak + fixed));
}

static void
json_descriptors(FILE *to, const struct report *r)
{
    fprintf(to,
            "  \"descriptors\": {\"fixed\": %u, \"hits\": \"%s\", \"to_server\": %llu, "
            "\"servers\": %u,\n    \"arms\": [\n",
            r->o->fixed, hit_rule_name(r->o->gather.hits), (unsigned long long)r->g->to_server,
            r->g->servers.n);
    for (unsigned i = 0; i < r->s->n_arms; i++) {
        json_arm(to, r, &r->s->arms[i]);
        fprintf(to, i + 1 < r->s->n_arms ? ",\n" : "\n");
    }
    fprintf(to, "    ]\n  },\n");
}

static void
json_caching(FILE *to, const struct report *r)
{
    const struct gathered *g = r->g;
    const struct reuse *u = g->reuse;

    fprintf(
        to,
        "  \"caching\": {\n    \"logged_hit_ratio\": %.5f, \"gets\": %llu, \"unique_get_urls\": "
        "%u,\n    \"ideal_any_get\": {\"hit_ratio\": %.5f, \"hit_ratio_of_get\": %.5f, "
        "\"byte_hit_ratio\": %.5f},\n",
        ratio(g->logged_hits, g->read), (unsigned long long)g->gets, u->any.n,
        ratio(u->any_hits, g->read), ratio(u->any_hits, g->gets),
        ratio(u->any_hit_bytes, g->bytes));
    fprintf(to,
            "    \"cacheable\": %llu, \"objects\": %u, \"unique_bytes\": %llu,\n"
            "    \"ideal_cacheable\": {\"hit_ratio\": %.5f, \"hit_ratio_of_cacheable\": %.5f, "
            "\"byte_hit_ratio\": %.5f},\n    \"lru\": [",
            (unsigned long long)g->cacheable, u->cacheable.n, (unsigned long long)u->unique_bytes,
            ratio(u->hits, g->read), ratio(u->hits, g->cacheable), ratio(u->hit_bytes, g->bytes));
    for (unsigned i = 0; i < r->s->n_curve; i++) {
        const struct curve_point *p = &r->s->curve[i];

        fprintf(to,
                "%s\n      {\"bytes\": %llu, \"percent_of_unique\": %.4f, \"hit_ratio\": %.5f, "
                "\"byte_hit_ratio\": %.5f}",
                i > 0 ? "," : "", (unsigned long long)p->bytes, p->percent,
                ratio(p->hits, g->cacheable), ratio(p->hit_bytes, g->cacheable_bytes));
    }
    fprintf(to, "]\n  }\n");
}

void
report_json(FILE *to, const struct report *r)
{
    fprintf(to, "{\n");
    json_log(to, r);
    if (r->s->n_arms > 0) {
        json_concurrency(to, r);
        json_descriptors(to, r);
    } else {
        fprintf(to, "  \"concurrency\": null,\n  \"descriptors\": null,\n");
    }
    json_caching(to, r);
    fprintf(to, "}\n");
}
