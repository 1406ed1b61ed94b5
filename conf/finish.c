/* conf/finish.c - what can only be judged when everything is read.
 *
 * Names in rules are looked up, acls of types cuttle does not have are let go where no rule uses
 * them, and what a file leaves open is said: an omission can be as grave as a wrong word. */
#include "base/check.h"
#include "conf/reader.h"

enum { GROUP_DEPTH_MAX = 32 };

static const char *
nearest_acl(const struct conf *c, const char *name)
{
    const char *nearest = NULL;
    unsigned least = 3;

    for (unsigned i = 0; i < c->n_acls; i++) {
        unsigned d = spelling_distance(span_str(name), span_str(c->acls[i].name), 3);

        if (d < least) {
            least = d;
            nearest = c->acls[i].name;
        }
    }
    return nearest;
}

static void
undefined(struct reader *r, struct conf_place place, const char *directive, const char *name)
{
    const char *nearest = reader_shows_errors(r) ? nearest_acl(r->c, name) : NULL;

    reader_error_at(r, place, directive, "there is no acl \"%.80s\"%s%.80s%s", name,
                    nearest ? ", did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

/* The acl's name as it is spelled where it is defined, or NULL and an error. */
static const char *
resolve(struct reader *r, struct conf_place place, const char *directive, const char *name)
{
    const struct conf_acl *a = conf_acl_find(r->c, name);

    if (a == NULL) {
        undefined(r, place, directive, name);
        return NULL;
    }
    if (!acl_type_of(a)->supported) {
        r->acl_refused[a - r->c->acls] = true;
        reader_error_at(r, place, directive,
                        "the acl %.80s has the type %s (line %u of %.200s), which is not supported",
                        a->name, a->type, a->place.line, a->place.file);
        return NULL;
    }
    return a->name;
}

static void
resolve_rule(struct reader *r, struct conf_rule *rule, const char *directive)
{
    for (unsigned i = 0; i < rule->n; i++) {
        const char *name = resolve(r, rule->place, directive, rule->terms[i].acl);

        if (name)
            rule->terms[i].acl = name;
    }
}

static void
resolve_rules(struct reader *r)
{
    for (unsigned d = 0; d < n_directives; d++) {
        struct conf_rules *rules = (void *)((char *)r->c + directives[d].offset);

        if (directives[d].type != DIRECTIVE_RULES)
            continue;
        for (unsigned i = 0; i < rules->n; i++)
            resolve_rule(r, &rules->at[i], directives[d].name);
    }
    for (unsigned i = 0; i < r->c->n_range_limits; i++)
        resolve_rule(r, &r->c->range_limits[i].condition, "range_offset_limit");
    for (unsigned i = 0; i < r->c->n_access_logs; i++)
        resolve_rule(r, &r->c->access_logs[i].condition, "access_log");
}

/* The members of any-of and all-of. */
static void
resolve_groups(struct reader *r)
{
    for (unsigned i = 0; i < r->c->n_acls; i++) {
        struct conf_acl *a = &r->c->acls[i];

        if (!acl_type_of(a)->is_group)
            continue;
        for (unsigned k = 0; k < a->n_values; k++)
            resolve(r, a->place, "acl", a->values[k] + (a->values[k][0] == '!'));
    }
}

/* Does every member of this group hold without a group that is not known to end? */
static bool
group_ends(const struct conf *c, const struct conf_acl *a, const bool *ends)
{
    for (unsigned k = 0; k < a->n_values; k++) {
        const struct conf_acl *m = conf_acl_find(c, a->values[k] + (a->values[k][0] == '!'));

        if (m && !ends[m - c->acls])
            return false;
    }
    return true;
}

/* A group that has itself among its members, by whatever way, would never be decided. What is left
 * when no further group can be told to end goes in a circle. */
static void
refuse_circles(struct reader *r)
{
    struct conf *c = r->c;
    bool *ends = mem_zalloc(c->n_acls * sizeof *ends);
    bool more = true;

    for (unsigned i = 0; i < c->n_acls; i++)
        ends[i] = !acl_type_of(&c->acls[i])->is_group;
    for (unsigned depth = 0; more && depth < GROUP_DEPTH_MAX; depth++) {
        more = false;
        for (unsigned i = 0; i < c->n_acls; i++)
            if (!ends[i] && group_ends(c, &c->acls[i], ends))
                ends[i] = more = true;
    }
    for (unsigned i = 0; i < c->n_acls; i++)
        if (!ends[i])
            reader_error_at(r, c->acls[i].place, "acl",
                            "%.80s is its own member, or its groups are nested too deep",
                            c->acls[i].name);
    mem_free(ends);
}

/* Where a rule uses one, there is an error by now. */
static void
drop_unsupported_acls(struct reader *r)
{
    struct conf *c = r->c;
    unsigned kept = 0;

    for (unsigned i = 0; i < c->n_acls; i++) {
        if (acl_type_of(&c->acls[i])->supported) {
            c->acls[kept++] = c->acls[i];
            continue;
        }
        if (!r->acl_refused[i])
            reader_note_at(
                r, c->acls[i].place, "acl",
                "%.80s has the type %s, which is not supported; no rule uses it, ignored",
                c->acls[i].name, c->acls[i].type);
        mem_free(c->acls[i].values);
    }
    c->n_acls = kept;
    acl_index_rebuild(c);
}

static bool
format_exists(const struct conf *c, const char *name)
{
    static const char *const builtin[] = {"squid",    "common",    "combined",
                                          "referrer", "useragent", "json"};

    for (unsigned i = 0; i < sizeof builtin / sizeof builtin[0]; i++)
        if (strcmp(name, builtin[i]) == 0)
            return true;
    for (unsigned i = 0; i < c->n_logformats; i++)
        if (strcmp(name, c->logformats[i].name) == 0)
            return true;
    return false;
}

static void
check_logs(struct reader *r)
{
    struct conf *c = r->c;

    for (unsigned i = 0; i < c->n_access_logs; i++)
        if (!format_exists(c, c->access_logs[i].format))
            reader_error_at(r, c->access_logs[i].place, "access_log",
                            "there is no logformat \"%.80s\"", c->access_logs[i].format);
    if (c->n_access_logs)
        return;
    c->access_logs = reader_grow(NULL, 0, sizeof c->access_logs[0]);
    c->access_logs[c->n_access_logs++] = (struct conf_access_log){
        .where = "stdout",
        .format = "squid",
        .condition = {.allow = true},
        .place = {c->name, 0},
    };
    c->access_logs[0].condition.place = c->access_logs[0].place;
}

static bool
allows_everybody(const struct conf_rule *rule)
{
    if (!rule->allow)
        return false;
    for (unsigned i = 0; i < rule->n; i++)
        if (rule->terms[i].negated || strcmp(rule->terms[i].acl, "all") != 0)
            return false;
    return true;
}

static void
check_access(struct reader *r)
{
    const struct conf_rules *rules = &r->c->http_access;
    struct conf_place end = {r->c->name, r->place.line};

    if (rules->n == 0)
        reader_note_at(r, end, "http_access", "there is no line, so every request is denied");
    for (unsigned i = 0; i < rules->n; i++)
        if (allows_everybody(&rules->at[i])) {
            reader_note_at(r, rules->at[i].place, "http_access",
                           "whoever reaches a port may use the proxy");
            return;
        }
    if (rules->n && !rules->at[rules->n - 1].allow &&
        (rules->at[rules->n - 1].n != 1 || rules->at[rules->n - 1].terms[0].negated ||
         strcmp(rules->at[rules->n - 1].terms[0].acl, "all") != 0))
        reader_note_at(r, rules->at[rules->n - 1].place, "http_access",
                       "is the last line, so what it does not deny is allowed; end with deny all");
}

static void
check_numbers(struct reader *r)
{
    struct conf *c = r->c;
    struct conf_place end = {c->name, r->place.line};

    c->memory_cache_off = c->cache_mem == 0;
    if (c->negative_dns_ttl_ms > c->positive_dns_ttl_ms)
        reader_note_at(r, end, "negative_dns_ttl", "is longer than positive_dns_ttl");
    if (!r->port_seen && !r->include_failed)
        reader_error_at(r, end, "http_port", "there is no line, so nobody could connect");
}

void
reader_finish(struct reader *r)
{
    struct conf *c = r->c;

    r->acl_refused = mem_zalloc(c->n_acls * sizeof r->acl_refused[0]);
    resolve_rules(r);
    resolve_groups(r);
    refuse_circles(r);
    drop_unsupported_acls(r);
    mem_free(r->acl_refused);
    check_logs(r);
    check_access(r);
    check_numbers(r);
    if (c->n_errors > READER_MESSAGES_MAX)
        buf_addf(&c->errors, "%s: %u further mistakes\n", c->name,
                 c->n_errors - READER_MESSAGES_MAX);
    if (r->n_notes > READER_MESSAGES_MAX)
        buf_addf(&c->notes, "%s: %u further notes\n", c->name, r->n_notes - READER_MESSAGES_MAX);
}
