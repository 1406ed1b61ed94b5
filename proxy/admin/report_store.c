/* proxy/admin/report_store.c - `store`, `mem`, `ipcache`: what is kept in memory, and what it
 * costs. */
#include "cache/tier.h"
#include "proxy/admin/report.h"

#define NAME_COLUMNS 56 /* before the addresses */
#define NAMES_MAX                                                                                  \
    10000 /* a page is made in memory: an ipcache_size of a million is not listed whole */

static void
add_count(struct buf *out, const char *name, uint64_t n)
{
    buf_addf(out, "%-34s: %llu\n", name, (unsigned long long)n);
}

void
report_store(struct manager *m, const struct view *v, struct buf *out)
{
    const struct store_stats *s = &v->store;

    BUF_ADD(out, "Store in memory (heads, bodies and overhead all count):\n");
    add_count(out, "Store Entries", s->entries);
    add_count(out, "Keys", s->nodes);
    add_count(out, "Maximum Size, bytes", s->limit);
    add_count(out, "Current Size, bytes", s->bytes);
    buf_addf(out, "%-34s: %.2f%%\n", "Percent used",
             100 * figure_ratio((double)s->bytes, (double)s->limit));
    buf_addf(out, "%-34s: %.0f\n", "Mean entry, bytes",
             figure_ratio((double)s->bytes, (double)s->entries));
    add_count(out, "Responses stored", v->now.t.counters[COUNTER_STORED]);
    add_count(out, "Responses evicted", s->evicted);
    add_count(out, "Requests sent to validate", v->now.t.counters[COUNTER_VALIDATIONS]);
    add_count(out, "Answered not modified", v->now.t.counters[COUNTER_NOT_MODIFIED]);
    add_count(out, "Requests joined to another's fill", v->now.t.counters[COUNTER_COLLAPSED]);
}

static void
add_tier(struct buf *out, const struct tier_stats *s)
{
    buf_addf(out, "\nStore Directory: %s%s\n", s->path, s->ready ? "" : " (being read)");
    buf_addf(out, "%-34s: %s\n", "Replacement policy", s->policy);
    add_count(out, "Maximum Size, bytes", s->bytes);
    add_count(out, "Objects", s->objects);
    add_count(out, "Objects, bytes", s->live_bytes);
    buf_addf(out, "%-34s: %.2f%%\n", "Percent used by objects",
             100 * figure_ratio((double)s->live_bytes, (double)s->bytes));
    buf_addf(out, "%-34s: %.2f%%\n", "Fragmentation (dead of written)",
             100 * figure_ratio((double)s->dead_bytes, (double)s->written_bytes));
    if (s->oldest_age_s >= 0)
        add_count(out, "Age of the oldest, s (since used)", (uint64_t)s->oldest_age_s);
    add_count(out, "Directory in memory, bytes", s->directory_bytes);
    buf_addf(out, "%-34s: %.1f\n", "Directory in memory, bytes/object",
             figure_ratio((double)s->directory_bytes, (double)s->objects));
    if (s->ghost_bytes)
        add_count(out, "Memory of what was dropped, bytes", s->ghost_bytes);
    add_count(out, "Objects written", s->puts);
    add_count(out, "Objects not written (disk too slow)", s->dropped);
    add_count(out, "Bytes written", s->written);
    buf_addf(out, "%-34s: %.2f\n", "Write amplification",
             figure_ratio((double)(s->admitted + s->carried), (double)s->admitted));
    add_count(out, "Objects read", s->hits);
    add_count(out, "Objects not found", s->misses);
    add_count(out, "Faults of reading", s->read_faults);
    add_count(out, "Faults of writing", s->write_faults);
    add_count(out, "Records found spoilt", s->bad_records);
    add_count(out, "Bytes checked in idle time", s->checked);
}

void
report_storedir(struct manager *m, const struct view *v, struct buf *out)
{
    struct tiers *tiers = manager_tiers(m);
    struct tier_stats s;

    buf_addf(out, "Stores on disk: %u\n", tiers_count(tiers));
    for (unsigned i = 0; i < tiers_count(tiers); i++) {
        tiers_stats(tiers, i, &s);
        add_tier(out, &s);
    }
}

void
report_mem(struct manager *m, const struct view *v, struct buf *out)
{
    uint64_t clients = v->census[FD_CLIENT_ACTIVE].now + v->census[FD_CLIENT_IDLE].now;
    uint64_t rest = v->resident_bytes > v->store.bytes ? v->resident_bytes - v->store.bytes : 0;

    BUF_ADD(out, "Memory of the process:\n");
    add_count(out, "Resident, bytes", v->resident_bytes);
    add_count(out, "Resident at most, bytes", v->resident_peak_bytes);
    add_count(out, "Store, bytes", v->store.bytes);
    add_count(out, "Everything else, bytes", rest);
    buf_addf(out, "%-34s: %.2f\n", "Resident / cache_mem in use",
             figure_ratio((double)v->resident_bytes, (double)v->store.bytes));
    add_count(out, "Client connections", clients);
}

/* ---- ipcache ---- */

struct names {
    struct buf *out;
    uint64_t lines;
};

static void
add_name(void *arg, struct span name, const struct dns_answer *a, int64_t left_s)
{
    struct names *t = arg;
    char text[ADDR_TEXT_MAX];

    if (++t->lines > NAMES_MAX)
        return;
    buf_addf(t->out, " %-32.*s %3s %6s %6lld %4u", SPAN_ARG(name), a->status == DNS_OK ? "" : "N",
             "-", (long long)left_s, a->n);
    if (a->status != DNS_OK)
        buf_addf(t->out, " %s", resolver_status_text(a->status));
    for (unsigned i = 0; i < a->n && i < DNS_ADDRESSES; i++) {
        addr_format(&a->at[i], text);
        buf_addf(t->out, "%*s%s\n", i ? NAME_COLUMNS + 1 : 1, "", text);
    }
    if (a->n == 0)
        buf_add_char(t->out, '\n');
}

void
report_ipcache(struct manager *m, const struct view *v, struct buf *out)
{
    const struct answer_cache_stats *s = &v->answers;
    struct names t = {.out = out};

    BUF_ADD(out, "IP Cache Statistics:\n");
    buf_addf(out, "IPcache Entries Cached:  %llu\n", (unsigned long long)s->entries);
    buf_addf(out, "IPcache Requests: %llu\n", (unsigned long long)(s->hits + s->misses));
    buf_addf(out, "IPcache Hits:            %llu\n",
             (unsigned long long)(s->hits - s->negative_hits));
    buf_addf(out, "IPcache Negative Hits:       %llu\n", (unsigned long long)s->negative_hits);
    buf_addf(out, "IPcache Misses:          %llu\n", (unsigned long long)s->misses);
    buf_addf(out, "Names in the hosts file: %llu\n", (unsigned long long)s->hosts_entries);
    BUF_ADD(out, "\n\nIP Cache Contents:\n\n");
    buf_addf(out, " %-32s %3s %6s %6s %4s\n", "Hostname", "Flg", "lstref", "TTL", "N");
    if (manager_answers(m))
        answer_cache_each(manager_answers(m), add_name, &t);
    if (t.lines > NAMES_MAX)
        buf_addf(out, "... and %llu more\n", (unsigned long long)(t.lines - NAMES_MAX));
}
