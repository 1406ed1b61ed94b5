/* tests/unit/test_manager.c - the reports: Squid's names where it has them, and the values that
 * were counted (proxy/admin). */
#include "tests/unit/heads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/loop.h"
#include "cache/store.h"
#include "proxy/admin/report.h"

#define MB (UINT64_C(1024) * 1024)
#define ROOT "/squid-internal-mgr/"

static struct manager *manager;
static struct store *store;
static struct answer_cache *answers;
static struct readiness worker;
static struct buf page;
static const char *type;

/* ---- the world ---- */

static int
world_make(void **state)
{
    struct resolver_options dns = {.positive_ttl_s = 60, .negative_ttl_s = 60};

    heads_init(state);
    fds_start(0);
    store = store_new(&(struct store_options){.limit_bytes = 64 * MB, .shards = 1});
    answers = answer_cache_new(&dns);
    memset(&worker, 0, sizeof worker);
    manager = manager_new(&(struct manager_options){.store = store,
                                                    .answers = answers,
                                                    .name = "proxy.test",
                                                    .version = "0.1",
                                                    .n_workers = 1,
                                                    .started_wall_s = T0});
    manager_add_worker(manager, 0, &worker, "epoll");
    return 0;
}

static int
world_unmake(void **state)
{
    buf_free(&page);
    manager_free(&manager);
    store_free(&store);
    answer_cache_free(&answers);
    return heads_free(state);
}

/* The text of a page, ending in NUL. */
static const char *
get(const char *path)
{
    page.n = 0;
    assert_true(manager_page(manager, span_str(path), &page, &type));
    *buf_reserve(&page, 1) = '\0';
    return page.at;
}

static bool
has(const char *path, const char *what)
{
    bool found = strstr(get(path), what) != NULL;

    if (!found)
        print_error("%s has no \"%s\":\n%s\n", path, what, page.at);
    return found;
}

/* The number behind "name = " at the beginning of a line, or behind "name " in metrics. */
static double
value(const char *path, const char *name, const char *separator)
{
    char line[200];
    const char *at;

    snprintf(line, sizeof line, "\n%s%s", name, separator);
    at = strstr(get(path), line);
    if (!at)
        fail_msg("%s: no line %s", path, line + 1);
    return strtod(at + strlen(line), NULL);
}

#define counter(name) value(ROOT "counters", name, " = ")
#define metric(name) value("/metrics", name, " ")
#define assert_near(a, b) assert_true((a) - (b) < 1e-6 && (b) - (a) < 1e-6)

static void
store_one(const char *uri)
{
    struct request_head r = request_of((struct request_text){.uri = uri});
    struct response_head answer = response(.fields = DATE_T0 "Cache-Control: max-age=60\r\n");
    struct head_times times = times_of((struct response_text){0});
    struct head *h = head_new(&r, &answer, &times);
    struct cache_key key = cache_key_of(span_str(uri));
    struct body *b = body_new(BODY_KEEP, 4, NULL, NULL);
    struct store_waiter w = {0};
    struct ticket *t;
    struct entry *e;

    body_append(b, SPAN("body"));
    body_complete(b, SPAN_NONE);
    e = entry_new(&h, &b, SPAN_NONE, 4);
    assert_int_equal(store_reserve(store, &key, &r, true, &w, &t), RESERVE_LEAD);
    store_publish(store, &t, e, SHARE_ALL);
    entry_unref(&e);
}

/* ---- dispatch ---- */

static void
the_menu_lists_actions_in_squids_form(void **state)
{
    assert_true(has(ROOT "menu", " info                  \tGeneral Runtime Information"));
    assert_true(has(ROOT "menu", "\tpublic\n"));
    assert_string_equal(type, "text/plain; charset=utf-8");
}

static void
every_action_of_the_menu_is_a_page(void **state)
{
    const struct report *r;

    for (unsigned i = 0; (r = report_at(i)) != NULL; i++) {
        char path[100];

        snprintf(path, sizeof path, ROOT "%s", r->name);
        get(path);
        assert_true(page.n > 0 || strcmp(r->name, "config") == 0);
    }
}

static void
what_is_no_page_is_refused_and_adds_nothing(void **state)
{
    static const char *const paths[] = {"",           "/x",           ROOT "inf",
                                        ROOT "info/", ROOT "INFO",    "/metrics/",
                                        "//",         ROOT "../info", "squid-internal-mgr/info"};

    page.n = 0;
    for (unsigned i = 0; i < sizeof paths / sizeof *paths; i++)
        assert_false(manager_page(manager, span_str(paths[i]), &page, &type));
    assert_false(manager_page(manager, SPAN_NONE, &page, &type));
    assert_int_equal(page.n, 0);
}

static void
a_query_does_not_hide_a_page(void **state)
{
    assert_true(has(ROOT "menu?x=/y", " info"));
}

/* ---- counters ---- */

static void
counters_go_up_by_what_was_counted(void **state)
{
    double requests = counter("client_http.requests"), kbytes = counter("client_http.kbytes_out");
    double exact = counter("client_http.bytes_out"), ours = counter("collapsed_requests");

    counter_add(COUNTER_CLIENT_REQUESTS, 7);
    counter_add(COUNTER_CLIENT_KBYTES_OUT, 10 * 1024);
    counter_add(COUNTER_COLLAPSED, 2);
    assert_near(counter("client_http.requests"), requests + 7);
    assert_near(counter("client_http.kbytes_out"), kbytes + 10);
    assert_near(counter("client_http.bytes_out"), exact + 10240);
    assert_near(counter("collapsed_requests"), ours + 2);
}

static void
all_servers_are_http_servers(void **state)
{
    counter_add(COUNTER_SERVER_REQUESTS, 3);
    assert_true(counter("server.all.requests") >= 3);
    assert_near(counter("server.all.requests"), counter("server.http.requests"));
}

/* Programs split at "=": a line without one is an error to them. */
static void
every_line_of_counters_is_a_name_and_a_number_and_no_name_comes_twice(void **state)
{
    char seen[200][64];
    unsigned n = 0;

    get(ROOT "counters");
    for (char *line = strtok(page.at, "\n"); line; line = strtok(NULL, "\n")) {
        char *equals = strstr(line, " = ");

        assert_non_null(equals);
        *equals = '\0';
        assert_true((equals[3] >= '0' && equals[3] <= '9') || equals[3] == '-');
        for (unsigned i = 0; i < n; i++)
            assert_string_not_equal(seen[i], line);
        assert_true(n < 200);
        snprintf(seen[n++], sizeof seen[0], "%s", line);
    }
    assert_true(n > 40);
}

static void
the_select_counters_are_the_stopwatchs(void **state)
{
    atomic_store(&worker.calls, 10);
    atomic_store(&worker.events, 25);
    atomic_store(&worker.wall_ns, 5000000000);
    atomic_store(&worker.cpu_ns, 300000);
    atomic_store(&worker.thread_cpu_ns, 1200000);
    atomic_store(&worker.events_histogram[1], 3);
    atomic_store(&worker.events_histogram[3], 7);
    assert_near(counter("select_loops"), 10);
    assert_near(counter("select_fds"), 25);
    assert_near(counter("syscalls.selects"), 10);
    assert_near(counter("average_select_fd_period"), 0.2);
    assert_near(counter("readiness.share"), 0.25);
    assert_true(counter("median_select_fds") >= 3 && counter("median_select_fds") <= 4);
}

/* ---- averages ---- */

static void
five_minutes_are_told_as_rates(void **state)
{
    counter_add(COUNTER_CLIENT_REQUESTS, 1);
    assert_true(has(ROOT "5min", "client_http.requests = "));
    assert_true(has(ROOT "5min", "/sec\n"));
    assert_true(has(ROOT "5min", "client_http.all_median_svc_time = "));
    assert_true(has(ROOT "60min", "cpu_usage = "));
    assert_true(value(ROOT "60min", "client_http.requests", " = ") > 0);
    assert_true(value(ROOT "60min", "wall_time", " = ") > 0);
}

static void
at_second(struct sampler *s, unsigned second, uint64_t requests, uint64_t slow)
{
    struct totals t = {0};

    t.t.at_ns = second * INT64_C(1000000000);
    t.t.counters[COUNTER_CLIENT_REQUESTS] = requests;
    t.histogram[HISTOGRAM_ALL_US][histogram_bucket(1000)] = requests;
    t.histogram[HISTOGRAM_ALL_US][histogram_bucket(64000)] = slow;
    if (sampler_is_due(s, t.t.at_ns))
        sampler_add(s, &t);
}

/* 10 requests a second for an hour and a half, then 100: the rings have wrapped. */
static void
a_window_covers_its_span_and_not_more(void **state)
{
    struct sampler s;
    struct totals now = {0}, then;
    uint64_t requests = 0;

    sampler_init(&s);
    for (unsigned i = 0; i <= 5400; i++)
        at_second(&s, i, requests += i > 5100 ? 100 : 10, 0);
    now.t.at_ns = 5400 * INT64_C(1000000000);
    now.t.counters[COUNTER_CLIENT_REQUESTS] = requests;
    sampler_since(&s, RING_5MIN, 300, &now, &then);
    assert_near(figure_seconds(&then), 300);
    assert_near(figure_per_second(&then, (double)then.t.counters[COUNTER_CLIENT_REQUESTS]), 100);
    sampler_since(&s, RING_60MIN, 3600, &now, &then);
    assert_near(figure_seconds(&then), 3600);
    assert_int_equal(then.t.counters[COUNTER_CLIENT_REQUESTS], 300 * 100 + 3300 * 10);
    sampler_since(&s, RING_SECONDS, 10, &now, &then);
    assert_int_equal(then.t.counters[COUNTER_CLIENT_REQUESTS], 1000);
    sampler_free(&s);
}

static void
a_young_process_is_averaged_over_its_life(void **state)
{
    struct sampler s;
    struct totals now = {.t.at_ns = INT64_C(4000000000)}, then;

    sampler_init(&s);
    sampler_since(&s, RING_5MIN, 300, &now, &then); /* no sample at all: what there is */
    assert_near(figure_seconds(&then), 4);
    at_second(&s, 2, 5, 0);
    now.t.counters[COUNTER_CLIENT_REQUESTS] = 11;
    sampler_since(&s, RING_5MIN, 300, &now, &then);
    assert_near(figure_per_second(&then, (double)then.t.counters[COUNTER_CLIENT_REQUESTS]), 3);
    sampler_free(&s);
}

static void
a_median_is_of_the_window_and_not_of_the_past(void **state)
{
    struct sampler s;
    struct totals now = {.t.at_ns = INT64_C(400000000000)}, then;

    sampler_init(&s);
    at_second(&s, 100, UINT64_C(5000000000), 0); /* more than 32 bits hold */
    now.histogram[HISTOGRAM_ALL_US][histogram_bucket(1000)] = UINT64_C(5000000000);
    now.histogram[HISTOGRAM_ALL_US][histogram_bucket(64000)] = 9;
    sampler_since(&s, RING_5MIN, 300, &now, &then);
    assert_true(figure_median_s(&then, HISTOGRAM_ALL_US) > 0.06);
    sampler_free(&s);
}

/* A signal wakes the ticking thread early: no sample is added between two seconds. */
static void
a_tick_that_comes_early_adds_nothing(void **state)
{
    struct sampler s;
    double rates[60];
    struct totals t = {.t.at_ns = INT64_C(1000000000)};

    sampler_init(&s);
    sampler_add(&s, &t);
    assert_false(sampler_is_due(&s, t.t.at_ns + 500000000));
    assert_true(sampler_is_due(&s, t.t.at_ns + 990000000));
    for (unsigned i = 2; i < 200; i++)
        at_second(&s, i, i * i, 0);
    assert_int_equal(sampler_rates(&s, COUNTER_CLIENT_REQUESTS, rates, 60), 60);
    assert_near(rates[59], 199 * 199 - 198 * 198);
    assert_near(rates[0], 140 * 140 - 139 * 139);
    assert_int_equal(sampler_rates(&s, COUNTER_CLIENT_REQUESTS, rates, 1), 1);
    assert_near(rates[0], 199 * 199 - 198 * 198);
    sampler_free(&s);
}

/* ---- info ---- */

static void
info_has_the_words_that_templates_look_for(void **state)
{
    static const char *const words[] = {
        "Connection information for cuttle:\n",
        "\tNumber of HTTP requests received:\t",
        "\tSelect loop called: 10 times, ",
        " ms avg\n",
        "Cache information for cuttle:\n",
        "\tHits as % of all requests:\t5min: ",
        "\tStorage Mem size:\t",
        "Median Service Times (seconds)  5 min    60 min:\n\tHTTP Requests (All):   ",
        "\tCPU Usage:\t",
        "\tMaximum Resident Size: ",
        "\tMaximum number of file descriptors: ",
        "\tLargest file desc currently in use: ",
        "\tNumber of file desc currently in use: ",
        "\tAvailable number of file descriptors: ",
        "\tReserved number of file descriptors: ",
        "Start Time:\tTue, 01 Jan 2030 00:00:00 GMT\n",
    };

    atomic_store(&worker.calls, 10);
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        assert_true(has(ROOT "info", words[i]));
}

static void
what_is_stored_is_told(void **state)
{
    struct store_stats s;
    char line[100];

    store_one("http://o.example/a");
    store_one("http://o.example/b");
    store_stats(store, &s);
    snprintf(line, sizeof line, "%6llu StoreEntries\n", (unsigned long long)s.entries);
    assert_true(s.entries >= 2 && has(ROOT "info", line));
    assert_near(counter("store.entries"), (double)s.entries);
    assert_near(metric("cuttle_store_bytes"), (double)s.bytes);
    snprintf(line, sizeof line, "Current Size, bytes               : %llu\n",
             (unsigned long long)s.bytes);
    assert_true(has(ROOT "store", line));
    assert_true(has(ROOT "mem", "Resident, bytes"));
}

static void
a_name_follows_a_reload_and_is_escaped_in_html(void **state)
{
    manager_names(manager, "a<b>&\"c");
    assert_true(has(ROOT "info", "Visible Hostname: a<b>&\"c\n"));
    assert_true(has("/", "a&lt;b&gt;&amp;&quot;c"));
    assert_null(strstr(page.at, "a<b>"));
    manager_names(manager, "proxy.test");
}

static void
config_is_what_was_read_last(void **state)
{
    manager_config(manager, SPAN("http_port 3128\n"));
    manager_config(manager, SPAN("via off\n"));
    assert_string_equal(get(ROOT "config"), "via off\n");
}

/* ---- descriptors ---- */

static void
descriptors_are_listed_after_the_census(void **state)
{
    int fds[2];
    char line[100];

    assert_int_equal(pipe(fds), 0);
    fds_adopt(fds[0], FD_CLIENT_IDLE);
    fds_note(fds[0], SPAN("192.0.2.7:4711"));
    fds_adopt(fds[1], FD_LOG);
    fds_note(fds[1], SPAN("access.log"));
    snprintf(line, sizeof line,
             "%4d Socket    -        -        - 192.0.2.7:4711        client idle, open ", fds[0]);
    assert_true(has(ROOT "filedescriptors", line));
    snprintf(line, sizeof line,
             "%4d Log       -        -        - -                     log access.log, open ",
             fds[1]);
    assert_true(has(ROOT "filedescriptors", line));
    assert_true(has(ROOT "filedescriptors", "\nclient idle          1 "));
    assert_near(metric("cuttle_descriptors{purpose=\"client idle\"}"), 1);
    assert_true(has(ROOT "live.json", "\"client_idle\":1,"));
    fds_close(fds[0]);
    fds_close(fds[1]);
    assert_near(metric("cuttle_descriptors{purpose=\"client idle\"}"), 0);
    assert_near(metric("cuttle_descriptors_peak{purpose=\"client idle\"}"), 1);
}

/* Looking must not change what is looked at. */
static void
a_page_opens_no_descriptor(void **state)
{
    struct fd_census_row before[FD_PURPOSES], after[FD_PURPOSES];

    fds_census(before);
    get(ROOT "mem");
    fds_census(after);
    assert_int_equal(after[FD_OTHER].opened, before[FD_OTHER].opened);
    assert_true(value(ROOT "counters", "process.resident_bytes", " = ") > 100000);
}

/* ---- readiness ---- */

static void
readiness_is_told_in_sum_and_by_worker(void **state)
{
    static struct readiness second;

    memset(&worker, 0, sizeof worker);
    atomic_store(&worker.calls, 4);
    atomic_store(&worker.events, 8);
    atomic_store(&worker.cpu_ns, 4000);
    atomic_store(&worker.wall_ns, 1000004000);
    atomic_store(&worker.thread_cpu_ns, 10000);
    atomic_store(&worker.kind_calls[LOOP_CLIENT], 8);
    atomic_store(&worker.kind_ns[LOOP_CLIENT], 4000);
    atomic_store(&worker.events_histogram[4], 4);
    atomic_store(&second.thread_cpu_ns, 10000);
    manager_add_worker(manager, 2, &second, "poll"); /* 1 is still to come */
    assert_true(has(ROOT "readiness", "All workers (3), since start"));
    assert_true(has(ROOT "readiness", "readiness_share = 20.00%\n"));
    assert_true(has(ROOT "readiness", "Worker 0, since start:\n    backend = epoll\n"));
    assert_true(has(ROOT "readiness", "readiness_share = 40.00%\n"));
    assert_true(has(ROOT "readiness", "(1.000 us a call, 0.500 us an event)"));
    assert_true(has(ROOT "readiness", "blocked = 1.000000 s"));
    assert_true(has(ROOT "readiness", "Worker 2, since start:\n    backend = poll\n"));
    assert_true(has(ROOT "readiness", "    5-8                        4  100.00%\n"));
    assert_true(
        has(ROOT "readiness", "    client                     8       0.000004          500\n"));
    assert_null(strstr(page.at, "Worker 1"));
    assert_near(metric("cuttle_readiness_cpu_seconds_total{worker=\"0\"}"), 0.000004);
    assert_near(metric("cuttle_readiness_events_per_call_bucket{worker=\"0\",le=\"4\"}"), 0);
    assert_near(metric("cuttle_readiness_events_per_call_bucket{worker=\"0\",le=\"8\"}"), 4);
    assert_near(metric("cuttle_callbacks_total{worker=\"0\",kind=\"client\"}"), 8);
}

static void
the_buckets_of_events_meet_without_gap(void **state)
{
    for (unsigned i = 0; i + 1 < READINESS_BUCKETS; i++) {
        assert_int_equal(events_bucket_low(i + 1), events_bucket_high(i) + 1);
        assert_int_equal(readiness_bucket(events_bucket_low(i)), i);
        assert_int_equal(readiness_bucket(events_bucket_high(i)), i);
    }
}

/* ---- metrics ---- */

static void
a_counter_becomes_a_metric_with_its_unit_last(void **state)
{
    double before = metric("cuttle_client_http_out_bytes_total");

    counter_add(COUNTER_CLIENT_KBYTES_OUT, 100);
    assert_near(metric("cuttle_client_http_out_bytes_total"), before + 100);
    assert_true(has("/metrics", "# TYPE cuttle_client_http_hit_out_bytes_total counter\n"));
    assert_true(has("/metrics", "# TYPE cuttle_tunnel_bytes_total counter\n"));
    assert_true(metric("cuttle_client_http_requests_total") > 0);
    assert_string_equal(type, "text/plain; version=0.0.4; charset=utf-8");
}

static void
durations_are_cumulative(void **state)
{
    double below = metric("cuttle_hit_duration_seconds_bucket{le=\"0.001024\"}");
    double up_to = metric("cuttle_hit_duration_seconds_bucket{le=\"0.002048\"}");
    double all = metric("cuttle_hit_duration_seconds_count");

    histogram_add(HISTOGRAM_HIT_US, 1500);
    assert_near(metric("cuttle_hit_duration_seconds_bucket{le=\"0.001024\"}"), below);
    assert_near(metric("cuttle_hit_duration_seconds_bucket{le=\"0.002048\"}"), up_to + 1);
    assert_near(metric("cuttle_hit_duration_seconds_bucket{le=\"+Inf\"}"), all + 1);
    assert_near(metric("cuttle_hit_duration_seconds_count"), all + 1);
}

static bool
is_metric_line(const char *line)
{
    size_t name = strspn(line, "abcdefghijklmnopqrstuvwxyz0123456789_");
    const char *at = line + name;
    char *end;

    if (strncmp(line, "# HELP ", 7) == 0 || strncmp(line, "# TYPE ", 7) == 0)
        return true;
    if (name == 0 || (*at == '{' && (at = strchr(at, '}')) == NULL))
        return false;
    at += *at == '}';
    strtod(at, &end);
    return *at == ' ' && end != at && *end == '\0';
}

/* Each family is announced once, and no series comes twice. */
static void
metrics_are_well_formed(void **state)
{
    static char seen[2000][120];
    unsigned n = 0;

    get("/metrics");
    assert_int_equal(page.at[page.n - 1], '\n');
    for (char *line = strtok(page.at, "\n"); line; line = strtok(NULL, "\n")) {
        assert_true(is_metric_line(line));
        if (line[0] != '#')
            *strrchr(line, ' ') = '\0';
        assert_true(n < 2000);
        snprintf(seen[n], sizeof seen[0], "%s", line);
        for (unsigned i = 0; i < n; i++)
            assert_string_not_equal(seen[i], seen[n]);
        n++;
    }
}

/* ---- the live page ---- */

static void
the_page_is_whole_by_itself(void **state)
{
    static const char *const same[] = {"/", ROOT, "/squid-internal-mgr"};

    for (unsigned i = 0; i < 3; i++) {
        get(same[i]);
        assert_string_equal(type, "text/html; charset=utf-8");
        assert_non_null(strstr(page.at, "proxy.test"));
        assert_non_null(strstr(page.at, "<a href=\"" ROOT "readiness\">"));
        assert_non_null(strstr(page.at, "client idle"));
        assert_null(strstr(page.at, "http://"));
        assert_null(strstr(page.at, "https://"));
        assert_null(strstr(page.at, " src="));
        assert_non_null(strstr(page.at, "</html>\n"));
    }
}

/* Every number of the JSON has its place on the page: the script finds elements by these names. */
static void
every_live_value_has_an_element(void **state)
{
    struct buf live = {0}, id = {0};
    char *values, *end;

    get(ROOT "live.json");
    assert_string_equal(type, "application/json");
    buf_add(&live, buf_span(&page));
    buf_add_char(&live, '\0');
    values = strstr(live.at, "{\"values\":{") + strlen("{\"values\":{");
    end = strchr(values, '}');
    assert_non_null(end);
    *end = '\0';
    get("/");
    for (char *pair = strtok(values, ","); pair; pair = strtok(NULL, ",")) {
        char *close = strchr(pair + 1, '"');

        assert_int_equal(pair[0], '"');
        id.n = 0;
        buf_addf(&id, "id=\"%.*s\"", (int)(close - pair - 1), pair + 1);
        buf_add_char(&id, '\0');
        if (!strstr(page.at, id.at))
            fail_msg("no element with %s", id.at);
    }
    buf_free(&live);
    buf_free(&id);
}

/* ---- threads ---- */

static void *
read_pages(void *arg)
{
    struct buf out = {0};
    const char *its_type;

    for (unsigned i = 0; i < 30; i++) {
        out.n = 0;
        CHECK(manager_page(manager, i % 2 ? SPAN(ROOT "info") : SPAN("/metrics"), &out, &its_type));
        CHECK(manager_page(manager, SPAN(ROOT "readiness"), &out, &its_type));
        CHECK(manager_page(manager, SPAN(ROOT "config"), &out, &its_type));
    }
    buf_free(&out);
    return NULL;
}

static void
pages_are_read_while_the_main_thread_ticks_and_reloads(void **state)
{
    pthread_t threads[2];

    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_pages, NULL), 0);
    for (unsigned i = 0; i < 200; i++) {
        manager_tick(manager);
        manager_names(manager, i % 2 ? "proxy.test" : "a.longer.name.for.the.same.proxy.test");
        manager_config(manager, i % 2 ? SPAN("via off\n") : SPAN("via on\ncache_mem 64 MB\n"));
    }
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void
a_manager_without_parts_has_pages_too(void **state)
{
    struct manager *bare = manager_new(&(struct manager_options){0});
    const struct report *r;
    struct buf out = {0};

    for (unsigned i = 0; (r = report_at(i)) != NULL; i++) {
        char path[100];

        snprintf(path, sizeof path, ROOT "%s", r->name);
        assert_true(manager_page(bare, span_str(path), &out, &type));
    }
    assert_true(manager_page(bare, SPAN("/"), &out, &type));
    assert_true(manager_page(bare, SPAN("/metrics"), &out, &type));
    *buf_reserve(&out, 1) = '\0';
    assert_null(strstr(out.at, "nan"));
    assert_null(strstr(out.at, "inf\n"));
    buf_free(&out);
    manager_free(&bare);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_menu_lists_actions_in_squids_form),
        cmocka_unit_test(every_action_of_the_menu_is_a_page),
        cmocka_unit_test(what_is_no_page_is_refused_and_adds_nothing),
        cmocka_unit_test(a_query_does_not_hide_a_page),
        cmocka_unit_test(counters_go_up_by_what_was_counted),
        cmocka_unit_test(all_servers_are_http_servers),
        cmocka_unit_test(every_line_of_counters_is_a_name_and_a_number_and_no_name_comes_twice),
        cmocka_unit_test(the_select_counters_are_the_stopwatchs),
        cmocka_unit_test(five_minutes_are_told_as_rates),
        cmocka_unit_test(a_window_covers_its_span_and_not_more),
        cmocka_unit_test(a_young_process_is_averaged_over_its_life),
        cmocka_unit_test(a_median_is_of_the_window_and_not_of_the_past),
        cmocka_unit_test(a_tick_that_comes_early_adds_nothing),
        cmocka_unit_test(info_has_the_words_that_templates_look_for),
        cmocka_unit_test(what_is_stored_is_told),
        cmocka_unit_test(a_name_follows_a_reload_and_is_escaped_in_html),
        cmocka_unit_test(config_is_what_was_read_last),
        cmocka_unit_test(descriptors_are_listed_after_the_census),
        cmocka_unit_test(a_page_opens_no_descriptor),
        cmocka_unit_test(readiness_is_told_in_sum_and_by_worker),
        cmocka_unit_test(the_buckets_of_events_meet_without_gap),
        cmocka_unit_test(a_counter_becomes_a_metric_with_its_unit_last),
        cmocka_unit_test(durations_are_cumulative),
        cmocka_unit_test(metrics_are_well_formed),
        cmocka_unit_test(the_page_is_whole_by_itself),
        cmocka_unit_test(every_live_value_has_an_element),
        cmocka_unit_test(pages_are_read_while_the_main_thread_ticks_and_reloads),
        cmocka_unit_test(a_manager_without_parts_has_pages_too),
    };

    return cmocka_run_group_tests(tests, world_make, world_unmake);
}
