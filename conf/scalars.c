/* conf/scalars.c - setters of the directives that have one value.
 *
 * The row says where the value lives and what may stand there; given twice, the last one holds, as
 * in Squid. A value with words behind it is a mistake (two directives run together on one line, or
 * a unit nobody knows). */
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "conf/reader.h"
#include "conf/value.h"

enum { SERVERS_TEXT_MAX = 1024 };

static void *
member(struct reader *r, const struct directive *d)
{
    return (char *)r->c + d->offset;
}

static void
value_text(enum directive_type type, int64_t value, char *out)
{
    if (type == DIRECTIVE_SIZE || type == DIRECTIVE_SIZE_KB)
        value_size_text(value, out);
    else if (type == DIRECTIVE_TIME || type == DIRECTIVE_TIME_MS)
        value_time_text(value, out);
    else if (type == DIRECTIVE_OCTAL)
        value_octal_text(value, out);
    else
        snprintf(out, VALUE_TEXT_MAX, "%lld", (long long)value);
}

static unsigned
parse_number(const struct directive *d, const struct line *l, int64_t *value)
{
    switch (d->type) {
    case DIRECTIVE_SIZE:
        return value_size(l->words, l->n, 1, value);
    case DIRECTIVE_SIZE_KB:
        return value_size(l->words, l->n, 1024, value);
    case DIRECTIVE_TIME:
        return value_time(l->words, l->n, 1000, value);
    case DIRECTIVE_TIME_MS:
        return value_time(l->words, l->n, 1, value);
    case DIRECTIVE_OCTAL:
        return l->n && value_octal(l->words[0].text, value);
    default:
        return l->n && value_number(l->words[0].text, value);
    }
}

static const char *
expected(enum directive_type type)
{
    if (type == DIRECTIVE_SIZE || type == DIRECTIVE_SIZE_KB)
        return "a size such as 64 MB";
    if (type == DIRECTIVE_TIME || type == DIRECTIVE_TIME_MS)
        return "a time such as 30 seconds";
    if (type == DIRECTIVE_OCTAL)
        return "an octal number such as 027";
    return "a number";
}

static bool
is_in_range(struct reader *r, const struct directive *d, int64_t value)
{
    char given[VALUE_TEXT_MAX], limit[VALUE_TEXT_MAX];
    bool below = value < d->range.min;

    if (value == d->range.also || (!below && value <= d->range.max))
        return true;
    value_text(d->type, value, given);
    value_text(d->type, below ? d->range.min : d->range.max, limit);
    reader_error(r, "%s is %s %s", given, below ? "below" : "above", limit);
    return false;
}

static bool
rest_is_fine(struct reader *r, const struct line *l, unsigned used)
{
    if (used >= l->n)
        return true;
    reader_error(r, "expected one value, found \"%.*s\" behind it", SHOWN(l->words[used].text));
    return false;
}

void
set_number(struct reader *r, const struct directive *d, const struct line *l)
{
    int64_t value = 0;
    unsigned used = parse_number(d, l, &value);

    if (used == 0 && l->n == 0)
        reader_error(r, "expected %s", expected(d->type));
    else if (used == 0)
        reader_error(r, "expected %s, found \"%.*s\"", expected(d->type), SHOWN(l->words[0].text));
    else if (rest_is_fine(r, l, used) && is_in_range(r, d, value))
        *(int64_t *)member(r, d) = value;
}

void
set_flag(struct reader *r, const struct directive *d, const struct line *l)
{
    bool on;

    if (l->n == 0)
        reader_error(r, "expected on or off");
    else if (!value_flag(l->words[0].text, &on))
        reader_error(r, "expected on or off, found \"%.*s\"", SHOWN(l->words[0].text));
    else if (rest_is_fine(r, l, 1))
        *(bool *)member(r, d) = on;
}

/* Which word of the row's choices it is, or -1. */
static int
choice_index(const char *choices, struct span word)
{
    struct span rest = span_str(choices);

    for (int i = 0; rest.n; i++) {
        struct span choice = span_first(rest, span_index(rest, ' '));

        if (span_eq_ci(word, choice))
            return i;
        rest = span_skip(rest, choice.n + 1);
    }
    return -1;
}

static void
set_choice(struct reader *r, const struct directive *d, struct span word)
{
    int i = choice_index(d->range.choices, word);

    if (i < 0)
        reader_error(r, "expected one of %s, found \"%.*s\"", d->range.choices, SHOWN(word));
    else if (d->type == DIRECTIVE_FORWARDED)
        *(enum conf_forwarded_for *)member(r, d) = (enum conf_forwarded_for)i;
    else
        *(const char **)member(r, d) = reader_str(r, word);
}

static void
set_path(struct reader *r, const struct directive *d, struct span word)
{
    const char **at = member(r, d);

    if (strcmp(d->name, "cache_log") == 0) {
        *at = log_place(r, word);
        if (strcmp(*at, "none") == 0)
            *at = "/dev/null";
        if (strcmp(*at, "stdout") == 0)
            *at = "/dev/stdout"; /* the event log knows stderr only by name */
        return;
    }
    *at = span_eq(word, SPAN("none")) ? NULL : reader_str(r, word);
}

void
set_word(struct reader *r, const struct directive *d, const struct line *l)
{
    bool is_cache_log = strcmp(d->name, "cache_log") == 0;

    if (l->n == 0 || l->words[0].text.n == 0) {
        reader_error(r, "expected a value");
        return;
    }
    if (l->n > 1 && is_cache_log)
        reader_note(r, "\"%.*s\" behind the file is ignored", SHOWN(l->words[1].text));
    else if (!rest_is_fine(r, l, 1))
        return;
    if (d->type == DIRECTIVE_PATH)
        set_path(r, d, l->words[0].text);
    else if (d->type == DIRECTIVE_TEXT)
        *(const char **)member(r, d) = reader_str(r, l->words[0].text);
    else
        set_choice(r, d, l->words[0].text);
}

/* It stands in fields where a comma or a blank would end it (Via, RFC 9110 section 7.6.3). */
static bool
is_host_name(struct span word)
{
    for (size_t i = 0; i < word.n; i++)
        if (!(word.at[i] >= '0' && word.at[i] <= '9') &&
            !((word.at[i] | 0x20) >= 'a' && (word.at[i] | 0x20) <= 'z') &&
            !strchr("-._~", word.at[i]))
            return false;
    return word.n > 0;
}

void
set_host(struct reader *r, const struct directive *d, const struct line *l)
{
    struct span word = l->n ? l->words[0].text : SPAN_NONE;

    if (!is_host_name(word))
        reader_error(r, "expected a host name, found \"%.*s\"", SHOWN(word));
    else if (rest_is_fine(r, l, 1))
        *(const char **)member(r, d) = reader_str(r, word);
}

enum account { ACCOUNT_UNKNOWN, ACCOUNT_OURS, ACCOUNT_OTHER };

static enum account
user_look_up(const char *name)
{
    const struct passwd *user = getpwnam(name);

    return !user ? ACCOUNT_UNKNOWN : user->pw_uid == geteuid() ? ACCOUNT_OURS : ACCOUNT_OTHER;
}

static enum account
group_look_up(const char *name)
{
    const struct group *group = getgrnam(name);

    return !group ? ACCOUNT_UNKNOWN : group->gr_gid == getegid() ? ACCOUNT_OURS : ACCOUNT_OTHER;
}

/* Only root can become somebody else; for anyone else the name may be one of another machine. A
 * reload comes from who we became. */
void
set_account(struct reader *r, const struct directive *d, const struct line *l)
{
    bool is_user = d->type == DIRECTIVE_USER;
    const char *name;
    enum account account;

    if (l->n == 0 || l->words[0].text.n == 0) {
        reader_error(r, "expected the name of a %s", is_user ? "user" : "group");
        return;
    }
    if (!rest_is_fine(r, l, 1))
        return;
    name = reader_str(r, l->words[0].text);
    *(const char **)member(r, d) = name;
    account = is_user ? user_look_up(name) : group_look_up(name);
    if (geteuid() != 0 && account != ACCOUNT_OURS)
        reader_note(r, "has no effect: the process is not root");
    else if (account == ACCOUNT_UNKNOWN)
        reader_error(r, "expected a %s of this machine, found \"%.80s\"",
                     is_user ? "user" : "group", name);
}

/* Bits of an address that are kept: 255.255.255.0, or 24. */
static bool
kept_bits(struct reader *r, struct span word, const char *of, unsigned *bits)
{
    struct net n;

    if (!net_parse(arena_printf(&r->c->arena, "%s/%.*s", of, SHOWN(word)), &n))
        return false;
    *bits = n.prefix;
    return true;
}

/* IPv4 is masked as is written. Who masks it wants no single clients in the log: of IPv6, where a
 * house has a /56 or /64, a site's /48 is left then. */
void
set_netmask(struct reader *r, const struct directive *d, const struct line *l)
{
    struct conf_netmask mask = {.v4_bits = 32, .v6_bits = 128};

    if (l->n == 0 || !kept_bits(r, l->words[0].text, "0.0.0.0", &mask.v4_bits) ||
        (l->n > 1 && !kept_bits(r, l->words[1].text, "::", &mask.v6_bits))) {
        reader_error(r, "expected a mask such as 255.255.255.0, and a prefix length for IPv6");
        return;
    }
    if (l->n == 1 && mask.v4_bits < 32)
        mask.v6_bits = 48;
    if (rest_is_fine(r, l, 2))
        *(struct conf_netmask *)member(r, d) = mask;
}

/* heap LRU is lru; what weighs sizes and frequencies (LFUDA, GDSF) is nearest to s3fifo. */
static const char *
policy_of_heap(struct span name)
{
    if (span_eq_ci(name, SPAN("LRU")))
        return "lru";
    return span_eq_ci(name, SPAN("LFUDA")) || span_eq_ci(name, SPAN("GDSF")) ? "s3fifo" : NULL;
}

void
set_policy(struct reader *r, const struct directive *d, const struct line *l)
{
    const char *policy;

    if (l->n == 0 || !span_eq(l->words[0].text, SPAN("heap"))) {
        set_word(r, d, l);
        return;
    }
    policy = l->n > 1 ? policy_of_heap(l->words[1].text) : NULL;
    if (policy == NULL) {
        reader_error(r, "expected heap LRU, LFUDA or GDSF, or one of: %s", d->range.choices);
        return;
    }
    if (!rest_is_fine(r, l, 2))
        return;
    reader_note(r, "heap %.*s is taken as %s", SHOWN(l->words[1].text), policy);
    *(const char **)member(r, d) = policy;
}

/* 192.0.2.1, 192.0.2.1:53, 2001:db8::1, [2001:db8::1], [2001:db8::1]:53 */
static bool
is_server(struct span word)
{
    struct addr a;
    uint64_t port;
    size_t end;

    if (addr_parse(word, &a))
        return true;
    if (word.n && word.at[0] == '[') {
        end = span_index(word, ']');
        if (end == word.n || !addr_parse(span_skip(span_first(word, end), 1), &a))
            return false;
        word = span_skip(word, end + 1);
        return word.n == 0 ||
               (word.at[0] == ':' && span_to_uint(span_skip(word, 1), 65535, &port) && port > 0);
    }
    end = span_index(word, ':');
    return addr_parse(span_first(word, end), &a) &&
           span_to_uint(span_skip(word, end + 1), 65535, &port) && port > 0;
}

void
set_servers(struct reader *r, const struct directive *d, const struct line *l)
{
    const char **at = member(r, d);

    if (l->n == 0)
        reader_error(r, "expected addresses");
    for (unsigned i = 0; i < l->n; i++) {
        struct span word = l->words[i].text;

        if (!is_server(word))
            reader_error(r, "\"%.*s\" is not an address", SHOWN(word));
        else if (*at && strlen(*at) > SERVERS_TEXT_MAX)
            reader_error(r, "too many name servers");
        else if (*at == NULL)
            *at = reader_str(r, word);
        else
            *at = arena_printf(&r->c->arena, "%s %.*s", *at, SPAN_ARG(word)).at;
    }
}
