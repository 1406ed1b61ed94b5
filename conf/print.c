/* conf/print.c - a snapshot written out as a configuration, and what a reload can't change.
 *
 * The dump reads back to the same snapshot: it is what `-k parse` shows, and the tests read it
 * again. Words are quoted where they would otherwise fall apart or be taken for a comment. */
#include <stdio.h>

#include "conf/acl_types.h"
#include "conf/conf.h"
#include "conf/table.h"
#include "conf/value.h"

enum { VALUES_PER_LINE = 8 };

static const void *
member(const struct conf *c, const struct directive *d)
{
    return (const char *)c + d->offset;
}

static void
add_word(struct buf *out, const char *word)
{
    char quote = strchr(word, '"') ? '\'' : '"';

    if (word[0] && !strpbrk(word, " \t") && word[0] != '#' && word[0] != '"' && word[0] != '\'') {
        buf_addf(out, " %s", word);
        return;
    }
    buf_addf(out, " %c%s%c", quote, word, quote);
}

/* A last word that ends in a backslash must not take in the next line. */
static void
end_line(struct buf *out)
{
    if (out->n && out->at[out->n - 1] == '\\')
        BUF_ADD(out, " #");
    buf_add_char(out, '\n');
}

static void
add_choice(struct buf *out, const char *choices, int i)
{
    struct span rest = span_str(choices);

    for (; i > 0; i--)
        rest = span_skip(rest, span_index(rest, ' ') + 1);
    buf_add_char(out, ' ');
    buf_add(out, span_first(rest, span_index(rest, ' ')));
}

static void
add_number(struct buf *out, const struct directive *d, int64_t value)
{
    char text[VALUE_TEXT_MAX];

    switch (d->type) {
    case DIRECTIVE_SIZE:
    case DIRECTIVE_SIZE_KB:
        value_size_text(value, text);
        break;
    case DIRECTIVE_TIME:
    case DIRECTIVE_TIME_MS:
        value_time_text(value, text);
        break;
    case DIRECTIVE_OCTAL:
        value_octal_text(value, text);
        break;
    default:
        snprintf(text, sizeof text, "%lld", (long long)value);
    }
    buf_addf(out, " %s", text);
}

static void
add_scalar(struct buf *out, const struct conf *c, const struct directive *d)
{
    const void *at = member(c, d);

    switch (d->type) {
    case DIRECTIVE_FLAG:
        buf_addf(out, " %s", *(const bool *)at ? "on" : "off");
        break;
    case DIRECTIVE_FORWARDED:
        add_choice(out, d->range.choices, (int)*(const enum conf_forwarded_for *)at);
        break;
    case DIRECTIVE_SERVERS:
        buf_addf(out, " %s", *(const char *const *)at);
        break;
    case DIRECTIVE_NETMASK:
        buf_addf(out, " %u %u", ((const struct conf_netmask *)at)->v4_bits,
                 ((const struct conf_netmask *)at)->v6_bits);
        break;
    default:
        if (directive_is_number(d))
            add_number(out, d, *(const int64_t *)at);
        else
            add_word(out, *(const char *const *)at);
    }
}

static bool
is_text(enum directive_type type)
{
    return type == DIRECTIVE_TEXT || type == DIRECTIVE_HOST || type == DIRECTIVE_USER ||
           type == DIRECTIVE_GROUP || type == DIRECTIVE_PATH || type == DIRECTIVE_CHOICE ||
           type == DIRECTIVE_SERVERS || type == DIRECTIVE_POLICY;
}

static void
dump_scalar(struct buf *out, const struct conf *c, const struct directive *d)
{
    bool has_value = !is_text(d->type) || *(const char *const *)member(c, d);

    if (!has_value && d->default_text == NULL)
        return;
    buf_addf(out, "%s", d->name);
    if (has_value)
        add_scalar(out, c, d);
    else
        BUF_ADD(out, " none");
    end_line(out);
}

static void
dump_ports(struct buf *out, const struct conf *c)
{
    char text[ADDR_TEXT_MAX];

    for (unsigned i = 0; i < c->n_ports; i++) {
        const struct conf_port *p = &c->ports[i];

        addr_format_port(&p->address, text);
        if (p->any)
            snprintf(text, sizeof text, "%u", addr_port(&p->address));
        buf_addf(out, "http_port %s%s%s%s", text, p->intercept ? " intercept" : "",
                 p->tproxy ? " tproxy" : "", p->accel ? " accel" : "");
        buf_addf(out, " name=%s", p->name);
        end_line(out);
    }
}

/* Values out of a file may; on a line of their own they would be taken for one. */
static bool
begins_like_a_flag(const struct conf_acl *a)
{
    for (unsigned k = a->n_builtin; k < a->n_values; k++)
        if (!acl_flag_is_known(span_str(a->values[k])))
            return a->values[k][0] == '-';
        else if (strcmp(a->values[k], "--") == 0)
            return false;
    return false;
}

/* A value in quotes would be a file, so values stand bare; none has a blank in it. */
static void
dump_acls(struct buf *out, const struct conf *c)
{
    for (unsigned i = 0; i < c->n_acls; i++) {
        const struct conf_acl *a = &c->acls[i];

        if (a->builtin)
            continue;
        BUF_ADD(out, "acl");
        add_word(out, a->name);
        buf_addf(out, " %s", a->type);
        if (begins_like_a_flag(a))
            BUF_ADD(out, " --");
        for (unsigned k = a->n_builtin; k < a->n_values; k++) {
            if (k > a->n_builtin && (k - a->n_builtin) % VALUES_PER_LINE == 0)
                BUF_ADD(out, " \\\n   ");
            buf_addf(out, " %s", a->values[k]);
        }
        end_line(out);
    }
}

static void
add_terms(struct buf *out, const struct conf_rule *rule)
{
    for (unsigned i = 0; i < rule->n; i++)
        if (rule->terms[i].negated)
            buf_addf(out, " !%s", rule->terms[i].acl);
        else
            add_word(out, rule->terms[i].acl);
}

static void
dump_rules(struct buf *out, const struct directive *d, const struct conf_rules *rules)
{
    for (unsigned i = 0; i < rules->n; i++) {
        buf_addf(out, "%s %s", d->name, rules->at[i].allow ? "allow" : "deny");
        add_terms(out, &rules->at[i]);
        end_line(out);
    }
}

static void
dump_refresh(struct buf *out, const struct conf *c)
{
    for (unsigned i = 0; i < c->n_refresh; i++) {
        const struct conf_refresh *p = &c->refresh[i];
        const struct {
            bool on;
            const char *name;
        } options[] = {
            {p->override_expire, "override-expire"},
            {p->override_lastmod, "override-lastmod"},
            {p->reload_into_ims, "reload-into-ims"},
            {p->ignore_reload, "ignore-reload"},
            {p->ignore_no_store, "ignore-no-store"},
            {p->ignore_private, "ignore-private"},
            {p->ignore_auth, "ignore-auth"},
            {p->store_stale, "store-stale"},
            {p->refresh_ims, "refresh-ims"},
            {p->ignore_must_revalidate, "ignore-must-revalidate"},
        };

        buf_addf(out, "refresh_pattern%s", p->ignore_case ? " -i" : "");
        add_word(out, p->regex);
        buf_addf(out, " %lld %u%% %lld", (long long)p->min_s / 60, p->percent,
                 (long long)p->max_s / 60);
        for (unsigned k = 0; k < sizeof options / sizeof options[0]; k++)
            if (options[k].on)
                buf_addf(out, " %s", options[k].name);
        if (p->max_stale_s >= 0)
            buf_addf(out, " max-stale=%lld", (long long)p->max_stale_s / 60);
        end_line(out);
    }
}

static void
dump_cache_dirs(struct buf *out, const struct conf *c)
{
    for (unsigned i = 0; i < c->n_cache_dirs; i++) {
        const struct conf_cache_dir *d = &c->cache_dirs[i];

        BUF_ADD(out, "cache_dir rock");
        add_word(out, d->path);
        buf_addf(out, " %lld", (long long)(d->bytes >> 20));
        if (d->min_bytes)
            buf_addf(out, " min-size=%lld", (long long)d->min_bytes);
        if (d->max_bytes >= 0)
            buf_addf(out, " max-size=%lld", (long long)d->max_bytes);
        buf_addf(out, "%s", d->read_only ? " no-store" : "");
        end_line(out);
    }
}

static void
dump_range_limits(struct buf *out, const struct conf *c)
{
    char text[VALUE_TEXT_MAX];

    for (unsigned i = 0; i < c->n_range_limits; i++) {
        const struct conf_range_limit *l = &c->range_limits[i];

        value_size_text(l->bytes, text);
        buf_addf(out, "range_offset_limit %s", l->bytes < 0 ? "none" : text);
        add_terms(out, &l->condition);
        end_line(out);
    }
}

static void
dump_logs(struct buf *out, const struct conf *c)
{
    for (unsigned i = 0; i < c->n_access_logs; i++) {
        const struct conf_access_log *log = &c->access_logs[i];
        bool standard = strcmp(log->where, "stdout") == 0 || strcmp(log->where, "stderr") == 0;

        BUF_ADD(out, "access_log");
        if (standard)
            buf_addf(out, " stdio:/dev/%s", log->where);
        else
            add_word(out, log->where);
        buf_addf(out, " logformat=%s", log->format);
        add_terms(out, &log->condition);
        end_line(out);
    }
}

static void
dump_logformats(struct buf *out, const struct conf *c)
{
    for (unsigned i = 0; i < c->n_logformats; i++) {
        BUF_ADD(out, "logformat");
        add_word(out, c->logformats[i].name);
        buf_addf(out, " %s", c->logformats[i].text);
        end_line(out);
    }
}

static void
dump_list(struct buf *out, const struct conf *c, const struct directive *d)
{
    switch (d->type) {
    case DIRECTIVE_PORT:
        dump_ports(out, c);
        break;
    case DIRECTIVE_ACL:
        dump_acls(out, c);
        break;
    case DIRECTIVE_RULES:
        dump_rules(out, d, member(c, d));
        break;
    case DIRECTIVE_REFRESH:
        dump_refresh(out, c);
        break;
    case DIRECTIVE_CACHE_DIR:
        dump_cache_dirs(out, c);
        break;
    case DIRECTIVE_RANGE_LIMIT:
        dump_range_limits(out, c);
        break;
    case DIRECTIVE_ACCESS_LOG:
        dump_logs(out, c);
        break;
    case DIRECTIVE_LOGFORMAT:
        dump_logformats(out, c);
        break;
    default:
        break; /* what was included stands in its place */
    }
}

void
conf_dump(const struct conf *c, struct buf *out)
{
    for (unsigned i = 0; i < n_directives; i++)
        if (directive_is_list(&directives[i]))
            dump_list(out, c, &directives[i]);
        else
            dump_scalar(out, c, &directives[i]);
}

static void
directive_text(const struct conf *c, const struct directive *d, struct buf *out)
{
    out->n = 0;
    if (directive_is_list(d))
        dump_list(out, c, d);
    else
        dump_scalar(out, c, d);
}

void
conf_restart_notes(const struct conf *running, const struct conf *wanted, struct buf *out)
{
    struct buf now = {0}, then = {0};

    for (unsigned i = 0; i < n_directives; i++) {
        if (directives[i].reload != RELOAD_RESTART)
            continue;
        directive_text(running, &directives[i], &now);
        directive_text(wanted, &directives[i], &then);
        if (!span_eq(buf_span(&now), buf_span(&then)))
            buf_addf(out, "%s: %s: the change holds from the next start on\n", wanted->name,
                     directives[i].name);
    }
    buf_free(&now);
    buf_free(&then);
}
