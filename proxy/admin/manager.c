/* proxy/admin/manager.c - finds the page, takes the view it is made from.
 *
 * One lock around the rings, the workers and the texts that a reload changes. It is held while
 * numbers are copied, never while a page is made, so a slow report delays no other. The store and
 * the answer cache have their own locks and are asked outside of ours. */
#include "proxy/admin/report.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "proxy/admin/readiness_log.h"

#define MANAGER_MAGIC 0x3a9a6e20u
#define RECENT_S 10 /* what "now" means for a rate */

struct manager {
    uint32_t magic;
    struct manager_options o;
    int64_t started_ns;
    int statm;            /* kept open: a page must not stir the census that it shows */
    pthread_mutex_t lock; /* all below */
    char *name;
    struct buf config;
    const struct readiness *workers[MANAGER_WORKERS];
    const char *backends[MANAGER_WORKERS];
    unsigned n_workers;
    struct sampler sampler;
    struct readiness_log *readiness_log; /* NULL: none */
};

static const char TEXT[] = "text/plain; charset=utf-8", HTML[] = "text/html; charset=utf-8";

/* The menu; names and texts are Squid's where it has them. */
static const struct report reports[] = {
    {"menu", "Cache Manager Menu", report_menu, TEXT},
    {"info", "General Runtime Information", report_info, TEXT},
    {"counters", "Traffic and Resource Counters", report_counters, TEXT},
    {"5min", "5 Minute Average of Counters", report_5min, TEXT},
    {"60min", "60 Minute Average of Counters", report_60min, TEXT},
    {"filedescriptors", "Process Filedescriptor Usage", report_filedescriptors, TEXT},
    {"readiness", "Cost of Finding Out What Is Ready", report_readiness, TEXT},
    {"histograms", "Full Histogram Counts", report_histograms, TEXT},
    {"ipcache", "IP Cache Stats and Contents", report_ipcache, TEXT},
    {"mem", "Memory Utilization", report_mem, TEXT},
    {"store", "The Store in Memory", report_store, TEXT},
    {"storedir", "Stores on disk", report_storedir, TEXT},
    {"config", "Current Cuttle Configuration", report_config, TEXT},
};

/* Reached by other ways than the menu. */
static const struct {
    const char *path;
    struct report report;
} others[] = {
    {"/", {.add = report_page, .content_type = HTML}},
    {"/squid-internal-mgr", {.add = report_page, .content_type = HTML}},
    {REPORT_ROOT, {.add = report_page, .content_type = HTML}},
    {REPORT_ROOT "live.json", {.add = report_live, .content_type = "application/json"}},
    {"/metrics",
     {.add = report_metrics, .content_type = "text/plain; version=0.0.4; charset=utf-8"}},
};

#define COUNT_OF(table) (sizeof(table) / sizeof *(table))

/* ---- life ---- */

static void
sample_now(struct manager *m, int64_t now_ns)
{
    struct totals *now = mem_alloc(sizeof *now);

    totals_take(now, m->workers, m->n_workers, now_ns);
    sampler_add(&m->sampler, now);
    if (readiness_log_is_due(m->readiness_log, now_ns))
        readiness_log_add(m->readiness_log, now, m->n_workers ? m->backends[0] : "none",
                          m->n_workers);
    mem_free(now);
}

static void
start_log(struct manager *m, const struct manager_options *o)
{
    struct totals *now = mem_alloc(sizeof *now);

    totals_take(now, m->workers, 0, m->started_ns);
    m->readiness_log = readiness_log_open(o->readiness_log, o->readiness_log_ms, now);
    m->o.readiness_log = NULL;
    mem_free(now);
}

static int
statm_open(void)
{
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    fds_adopt(fd, FD_OTHER);
    fds_note(fd, SPAN("statm"));
    return fd;
}

struct manager *
manager_new(const struct manager_options *o)
{
    struct manager *m = mem_zalloc(sizeof *m);

    m->magic = MANAGER_MAGIC;
    m->o = *o;
    m->o.name = NULL; /* ours is the copy */
    m->name = mem_strdup(o->name ? o->name : "cuttle");
    m->started_ns = clock_exact_mono_ns();
    m->statm = statm_open();
    pthread_mutex_init(&m->lock, NULL);
    sampler_init(&m->sampler);
    sample_now(m, m->started_ns);
    if (o->readiness_log)
        start_log(m, o);
    return m;
}

void
manager_free(struct manager **held)
{
    struct manager *m = *held;

    CHECK_OBJ(m, MANAGER_MAGIC);
    *held = NULL;
    fds_close(m->statm);
    readiness_log_close(&m->readiness_log);
    sampler_free(&m->sampler);
    pthread_mutex_destroy(&m->lock);
    buf_free(&m->config);
    mem_free(m->name);
    FREE_OBJ(m);
}

void
manager_add_worker(struct manager *m, unsigned id, const struct readiness *r, const char *backend)
{
    CHECK_OBJ(m, MANAGER_MAGIC);
    CHECK(id < MANAGER_WORKERS);
    pthread_mutex_lock(&m->lock);
    m->workers[id] = r;
    m->backends[id] = backend;
    if (m->n_workers <= id)
        m->n_workers = id + 1;
    pthread_mutex_unlock(&m->lock);
}

void
manager_names(struct manager *m, const char *name)
{
    char *mine = mem_strdup(name), *old;

    CHECK_OBJ(m, MANAGER_MAGIC);
    pthread_mutex_lock(&m->lock);
    old = m->name;
    m->name = mine;
    pthread_mutex_unlock(&m->lock);
    mem_free(old);
}

void
manager_config(struct manager *m, struct span text)
{
    CHECK_OBJ(m, MANAGER_MAGIC);
    pthread_mutex_lock(&m->lock);
    m->config.n = 0;
    buf_add(&m->config, text);
    pthread_mutex_unlock(&m->lock);
}

/* The main thread has no loop that would keep its cached clock going: the exact one. */
void
manager_tick(struct manager *m)
{
    int64_t now_ns = clock_exact_mono_ns();

    CHECK_OBJ(m, MANAGER_MAGIC);
    pthread_mutex_lock(&m->lock);
    if (sampler_is_due(&m->sampler, now_ns) || readiness_log_is_due(m->readiness_log, now_ns))
        sample_now(m, now_ns);
    pthread_mutex_unlock(&m->lock);
}

void
manager_reopen(struct manager *m)
{
    CHECK_OBJ(m, MANAGER_MAGIC);
    pthread_mutex_lock(&m->lock);
    readiness_log_reopen(m->readiness_log);
    pthread_mutex_unlock(&m->lock);
}

/* ---- the view ---- */

/* Pages of memory from /proc; 0 where that is not to be had. */
static uint64_t
resident_bytes(int statm)
{
    char text[128];
    unsigned long long pages = 0;
    ssize_t n = statm < 0 ? 0 : pread(statm, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    if (sscanf(text, "%*u %llu", &pages) != 1)
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void
view_process(const struct manager *m, struct view *v)
{
    struct rusage used = {0};

    v->resident_bytes = resident_bytes(m->statm);
    getrusage(RUSAGE_SELF, &used);
    v->resident_peak_bytes = (uint64_t)used.ru_maxrss * 1024;
    if (v->resident_peak_bytes < v->resident_bytes)
        v->resident_peak_bytes = v->resident_bytes; /* the kernel brings it up to date lazily */
    fds_census(v->census);
    v->fds_in_use = fds_in_use();
    v->fds_peak = fds_peak();
    v->fds_limit = fds_limit();
    v->fds_largest = fds_largest();
    v->fds_free = v->fds_limit > v->fds_in_use ? v->fds_limit - v->fds_in_use : 0;
}

static void
view_counted(struct manager *m, struct view *v)
{
    pthread_mutex_lock(&m->lock);
    snprintf(v->name, sizeof v->name, "%s", m->name);
    v->n_workers = m->n_workers ? m->n_workers : m->o.n_workers;
    totals_take(&v->now, m->workers, m->n_workers, clock_exact_mono_ns());
    sampler_since(&m->sampler, RING_SECONDS, RECENT_S, &v->now, &v->recent);
    sampler_since(&m->sampler, RING_5MIN, 300, &v->now, &v->min5);
    sampler_since(&m->sampler, RING_60MIN, 3600, &v->now, &v->min60);
    v->n_rates = sampler_rates(&m->sampler, COUNTER_CLIENT_REQUESTS, v->rates, VIEW_RATES);
    pthread_mutex_unlock(&m->lock);
    v->now.t.at_ns -= m->started_ns; /* from here on: since start, as in the others */
}

static struct view *
view_new(struct manager *m)
{
    struct view *v = mem_zalloc(sizeof *v);

    v->version = m->o.version ? m->o.version : "";
    v->started_wall_s = m->o.started_wall_s;
    v->now_wall_ms = clock_wall_ms();
    view_process(m, v);
    view_counted(m, v);
    if (m->o.store)
        store_stats(m->o.store, &v->store);
    if (m->o.answers)
        answer_cache_stats(m->o.answers, &v->answers);
    return v;
}

/* ---- what reports ask beyond the view ---- */

struct tiers *
manager_tiers(struct manager *m)
{
    return m->o.tiers;
}

struct answer_cache *
manager_answers(struct manager *m)
{
    return m->o.answers;
}

void
manager_config_add(struct manager *m, struct buf *out)
{
    pthread_mutex_lock(&m->lock);
    buf_add(out, buf_span(&m->config));
    pthread_mutex_unlock(&m->lock);
}

bool
manager_worker(struct manager *m, unsigned id, struct readiness_sum *out, const char **backend)
{
    bool started;

    *out = (struct readiness_sum){0};
    pthread_mutex_lock(&m->lock);
    started = id < m->n_workers && m->workers[id];
    if (started) {
        readiness_add(out, m->workers[id]);
        *backend = m->backends[id];
    }
    pthread_mutex_unlock(&m->lock);
    return started;
}

const char *
manager_backend(struct manager *m)
{
    const char *backend = "none";
    struct readiness_sum ignored;

    (void)manager_worker(m, 0, &ignored, &backend);
    return backend;
}

/* ---- dispatch ---- */

const struct report *
report_at(unsigned i)
{
    return i < COUNT_OF(reports) ? &reports[i] : NULL;
}

void
report_menu(struct manager *m, const struct view *v, struct buf *out)
{
    for (unsigned i = 0; i < COUNT_OF(reports); i++)
        buf_addf(out, " %-22s\t%-32s\tpublic\n", reports[i].name, reports[i].text);
}

void
report_config(struct manager *m, const struct view *v, struct buf *out)
{
    manager_config_add(m, out);
}

static const struct report *
report_find(struct span path)
{
    path = span_first(path, span_index(path, '?'));
    for (unsigned i = 0; i < COUNT_OF(others); i++)
        if (span_eq(path, span_str(others[i].path)))
            return &others[i].report;
    if (!span_starts(path, SPAN(REPORT_ROOT)))
        return NULL;
    path = span_skip(path, sizeof REPORT_ROOT - 1);
    for (unsigned i = 0; i < COUNT_OF(reports); i++)
        if (span_eq(path, span_str(reports[i].name)))
            return &reports[i];
    return NULL;
}

bool
manager_page(struct manager *m, struct span path, struct buf *out, const char **content_type)
{
    const struct report *r = report_find(path);
    struct view *v;

    CHECK_OBJ(m, MANAGER_MAGIC);
    if (!r)
        return false;
    v = view_new(m);
    *content_type = r->content_type;
    r->add(m, v, out);
    mem_free(v);
    return true;
}
