/* conf/lists.c - rules over acls, and refresh_pattern.
 *
 * The names in a rule are looked up when everything is read (finish.c): a file may name an acl
 * above the line that defines it, and a mistake in that line should not make a second one here. */
#include "base/check.h"
#include "conf/reader.h"
#include "conf/value.h"

enum {
    PERCENT_MAX = 1000000,
    CACHE_DIR_LEAST = 8, /* megabytes: less holds too little to go round */
    CACHE_DIR_MOST = 16 << 20,
    CACHE_DIR_LEVELS = 2, /* numbers of sub-folders that ufs and its kin take behind the size */
    MINUTES_MAX = INT32_MAX / 60 /* delta-seconds fit in 31 bits, RFC 9111 section 1.2.2 */
};

void
rule_terms(struct reader *r, const struct word *words, unsigned n, struct conf_rule *rule)
{
    rule->terms = arena_alloc(&r->c->arena, n * sizeof rule->terms[0]);
    rule->n = n;
    for (unsigned i = 0; i < n; i++) {
        struct span name = words[i].text;

        rule->terms[i].negated = name.n && name.at[0] == '!';
        rule->terms[i].acl = reader_str(r, span_skip(name, rule->terms[i].negated));
    }
}

void
set_rules(struct reader *r, const struct directive *d, const struct line *l)
{
    struct conf_rules *rules = (void *)((char *)r->c + d->offset);
    struct conf_rule rule = {.place = r->place};

    if (l->n)
        rule.allow = span_eq(l->words[0].text, SPAN("allow"));
    if (l->n == 0 || (!rule.allow && !span_eq(l->words[0].text, SPAN("deny")))) {
        reader_error(r, "expected allow or deny");
        return;
    }
    if (l->n == 1) {
        reader_error(r, "no acl behind %s; write \"all\" for everything",
                     rule.allow ? "allow" : "deny");
        return;
    }
    rule_terms(r, l->words + 1, l->n - 1, &rule);
    rules->at = reader_grow(rules->at, rules->n, sizeof rule);
    rules->at[rules->n++] = rule;
}

static const struct {
    const char *name;
    size_t offset;
} refresh_options[] = {
    {"override-expire", offsetof(struct conf_refresh, override_expire)},
    {"override-lastmod", offsetof(struct conf_refresh, override_lastmod)},
    {"reload-into-ims", offsetof(struct conf_refresh, reload_into_ims)},
    {"ignore-reload", offsetof(struct conf_refresh, ignore_reload)},
    {"ignore-no-store", offsetof(struct conf_refresh, ignore_no_store)},
    {"ignore-private", offsetof(struct conf_refresh, ignore_private)},
    {"ignore-auth", offsetof(struct conf_refresh, ignore_auth)},
    {"ignore-must-revalidate", offsetof(struct conf_refresh, ignore_must_revalidate)},
    {"store-stale", offsetof(struct conf_refresh, store_stale)},
    {"refresh-ims", offsetof(struct conf_refresh, refresh_ims)},
};

static bool
refresh_minutes(struct span word, int64_t *seconds)
{
    uint64_t minutes;

    if (!span_to_uint(word, INT64_MAX, &minutes))
        return false;
    *seconds = (int64_t)(minutes < MINUTES_MAX ? minutes : MINUTES_MAX) * 60;
    return true;
}

static bool
refresh_percent(struct span word, unsigned *percent)
{
    uint64_t v;

    if (word.n > 1 && word.at[word.n - 1] == '%')
        word.n--;
    if (!span_to_uint(word, INT64_MAX, &v))
        return false;
    *percent = v < PERCENT_MAX ? (unsigned)v : PERCENT_MAX;
    return true;
}

/* Of other versions of Squid, which passes them over by now too. */
static bool
is_bygone_refresh_option(struct span word)
{
    static const char *const bygone[] = {"ignore-no-cache", "ignore-stale-while-revalidate",
                                         "negative-ttl=", "stale-while-revalidate="};

    for (unsigned i = 0; i < sizeof bygone / sizeof bygone[0]; i++)
        if (span_starts(word, span_str(bygone[i])))
            return true;
    return false;
}

static void
refresh_option(struct reader *r, struct conf_refresh *p, struct span word)
{
    for (unsigned i = 0; i < sizeof refresh_options / sizeof refresh_options[0]; i++)
        if (span_eq(word, span_str(refresh_options[i].name))) {
            *(bool *)((char *)p + refresh_options[i].offset) = true;
            return;
        }
    if (span_starts(word, SPAN("max-stale="))) {
        if (!refresh_minutes(span_skip(word, 10), &p->max_stale_s))
            reader_error(r, "expected max-stale=MINUTES, found \"%.*s\"", SHOWN(word));
    } else if (is_bygone_refresh_option(word))
        reader_note(r, "the option \"%.*s\" is not used by cuttle, ignored", SHOWN(word));
    else
        reader_error(r, "unknown option \"%.*s\"", SHOWN(word));
}

static unsigned
refresh_flags(const struct line *l, struct conf_refresh *p)
{
    unsigned i = 0;

    for (; i < l->n && !l->words[i].quoted; i++) {
        if (span_eq(l->words[i].text, SPAN("-i")))
            p->ignore_case = true;
        else if (span_eq(l->words[i].text, SPAN("+i")))
            p->ignore_case = false;
        else
            break;
    }
    return i;
}

void
set_refresh(struct reader *r, const struct directive *d, const struct line *l)
{
    struct conf_refresh p = {.max_stale_s = -1, .place = r->place};
    unsigned i = refresh_flags(l, &p);
    const struct word *w = l->words + i;

    if (l->n < i + 4 || !refresh_minutes(w[1].text, &p.min_s) ||
        !refresh_percent(w[2].text, &p.percent) || !refresh_minutes(w[3].text, &p.max_s)) {
        reader_error(r, "expected [-i] REGEX MINUTES PERCENT MINUTES [OPTIONS]");
        return;
    }
    p.regex = reader_str(r, w[0].text);
    for (unsigned k = i + 4; k < l->n; k++)
        refresh_option(r, &p, l->words[k].text);
    r->c->refresh = reader_grow(r->c->refresh, r->c->n_refresh, sizeof p);
    r->c->refresh[r->c->n_refresh++] = p;
}

/* "none" and -1 are the same. */
static unsigned
range_limit_bytes(const struct line *l, int64_t *bytes)
{
    if (l->n && span_eq(l->words[0].text, SPAN("none"))) {
        *bytes = -1;
        return 1;
    }
    return value_size(l->words, l->n, 1, bytes);
}

void
set_range_limit(struct reader *r, const struct directive *d, const struct line *l)
{
    struct conf_range_limit limit = {.place = r->place,
                                     .condition = {.allow = true, .place = r->place}};
    unsigned taken = range_limit_bytes(l, &limit.bytes);

    (void)d;
    if (taken == 0) {
        reader_error(r, "expected a size or none, and acls");
        return;
    }
    rule_terms(r, l->words + taken, l->n - taken, &limit.condition);
    r->c->range_limits = reader_grow(r->c->range_limits, r->c->n_range_limits, sizeof limit);
    r->c->range_limits[r->c->n_range_limits++] = limit;
}

static bool
is_cache_type(struct span word)
{
    static const char *const types[] = {"ufs", "aufs", "diskd", "rock", "cuttle"};

    for (unsigned i = 0; i < sizeof types / sizeof types[0]; i++)
        if (span_eq(word, span_str(types[i])))
            return true;
    return false;
}

static bool
cache_dir_size(struct span word, const char *name, int64_t *bytes)
{
    size_t n = strlen(name);

    return span_starts(word, span_of(name, n)) && value_number(span_skip(word, n), bytes) &&
           *bytes >= -1;
}

/* For Squid's stores, which cuttle does not have. */
static bool
tunes_squids_store(struct span word)
{
    static const char *const names[] = {
        "Q1=", "Q2=", "max-swap-rate=", "slot-size=", "swap-timeout="};

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (span_starts(word, span_str(names[i])))
            return true;
    return false;
}

static void
cache_dir_option(struct reader *r, struct conf_cache_dir *d, struct span word)
{
    if (span_eq(word, SPAN("no-store")) || span_eq(word, SPAN("read-only")))
        d->read_only = true;
    else if (tunes_squids_store(word))
        reader_note(r, "%.*s is not used by cuttle, ignored", SHOWN(word));
    else if (!cache_dir_size(word, "min-size=", &d->min_bytes) &&
             !cache_dir_size(word, "max-size=", &d->max_bytes))
        reader_error(r, "expected min-size=BYTES, max-size=BYTES or no-store, found \"%.*s\"",
                     SHOWN(word));
}

static bool
cache_dir_megabytes(struct reader *r, const struct line *l, int64_t *megabytes)
{
    if (l->n < 3 || !is_cache_type(l->words[0].text) ||
        !value_number(l->words[2].text, megabytes)) {
        reader_error(r, "expected ufs, aufs, diskd or rock, a folder and a number of megabytes");
        return false;
    }
    if (*megabytes >= CACHE_DIR_LEAST && *megabytes <= CACHE_DIR_MOST)
        return true;
    reader_error(r, "expected %d to %d megabytes, found %lld", CACHE_DIR_LEAST, CACHE_DIR_MOST,
                 (long long)*megabytes);
    return false;
}

/* Two stores in one file would destroy each other. */
static bool
is_free_folder(struct reader *r, const char *path)
{
    for (unsigned i = 0; i < r->c->n_cache_dirs; i++) {
        const struct conf_cache_dir *other = &r->c->cache_dirs[i];

        if (strcmp(other->path, path) != 0)
            continue;
        reader_error(r, "expected a folder of its own; line %u of %.200s has the same",
                     other->place.line, other->place.file);
        return false;
    }
    return true;
}

void
set_cache_dir(struct reader *r, const struct directive *d, const struct line *l)
{
    struct conf_cache_dir dir = {.max_bytes = -1, .place = r->place};
    int64_t megabytes, folders;
    unsigned i = 3;

    (void)d;
    if (l->n && span_eq(l->words[0].text, SPAN("null")))
        return;
    if (!cache_dir_megabytes(r, l, &megabytes))
        return;
    dir.path = reader_str(r, l->words[1].text);
    if (!is_free_folder(r, dir.path))
        return;
    dir.bytes = megabytes << 20;
    while (i < l->n && i < 3 + CACHE_DIR_LEVELS && value_number(l->words[i].text, &folders))
        i++;
    for (; i < l->n; i++)
        cache_dir_option(r, &dir, l->words[i].text);
    r->c->cache_dirs = reader_grow(r->c->cache_dirs, r->c->n_cache_dirs, sizeof dir);
    r->c->cache_dirs[r->c->n_cache_dirs++] = dir;
}
