/* acl_list.c - lists of rules (http_access and its kin) and single conditions.
 *
 * Rules are tried in order, terms from left to right, and the first term that does not hold ends
 * the rule: people rely on that order, and an expensive term behind a cheap one is rarely reached.
 * All terms lie in one array behind the rules, so that a stock configuration is checked within a
 * few cache lines.
 *
 * What cannot be known denies. A pattern that ran into its limit may stand in a `deny` or in an
 * `allow`; taking it for a mismatch would open the first. */
#include <stdio.h>

#include "base/check.h"
#include "base/log.h"
#include "proxy/access/acl_set.h"

#define ACL_LIST_MAGIC 0xac1115f0u

struct rule {
    bool allow;
    unsigned first, n;
};

struct acl_list {
    uint32_t magic;
    enum acl_answer when_empty;
    unsigned needs;
    unsigned n;
    struct rule *rules;
    struct acl_term *terms;
};

struct acl_cond {
    unsigned n;
    struct acl_term terms[];
};

static const struct {
    const char *name;
    enum acl_answer when_empty;
    unsigned waits_for;
} directives[] = {
#define RULED(id, name, when_empty, waits_for) {name, when_empty, waits_for},
#include "proxy/access/ruled.def"
#undef RULED
};

static const char *const need_words[] = {[ACL_NEED_DST] = "the addresses of the host"};

static void
problem(struct buf *errors, const struct conf_rule *r, enum ruled directive, const char *name,
        const char *what)
{
    buf_addf(errors, "%s:%u: %s: %.60s: %s\n", r->place.file, r->place.line,
             directives[directive].name, name, what);
}

/* Names in a dst list match less than they should: good enough where a match opens, not where it
 * closes. In a group it may do either. */
static bool
matching_less_opens(const struct conf_rule *r, unsigned term, const struct acl *a)
{
    return a->properties & ACL_BY_TEXT && (a->is_group || r->allow == r->terms[term].negated);
}

/* The member that brings a need into a group. A ring, refused elsewhere, must not hold us here. */
static const struct acl *
who_needs(const struct acl *a, unsigned need)
{
    for (unsigned deep = 0; a->is_group && deep < ACL_NESTED_MOST; deep++) {
        unsigned m = 0;

        while (!(a->members[m].acl->needs & need))
            m++;
        a = a->members[m].acl;
    }
    return a;
}

static void
cannot_wait(struct buf *errors, const struct conf_rule *r, enum ruled directive,
            const struct acl *a, enum acl_answer need)
{
    const struct acl *who = who_needs(a, ACL_NEEDS(need));

    buf_addf(errors, "%s:%u: %s: acl %.60s (type %s", r->place.file, r->place.line,
             directives[directive].name, who->name, who->type_name);
    if (who != a)
        buf_addf(errors, ", in %.60s", a->name);
    buf_addf(errors, ") needs %s, which %s cannot wait for\n", need_words[need],
             directives[directive].name);
}

static unsigned
term_new(const struct acl_set *s, const struct conf_rule *r, unsigned i, enum ruled directive,
         struct buf *errors, struct acl_term *out)
{
    const char *name = r->terms[i].acl;
    unsigned too_slow;
    char text[120];

    *out = (struct acl_term){acl_set_find(s, name), r->terms[i].negated};
    if (out->acl == NULL) {
        problem(errors, r, directive, name, "there is no such acl");
        return 1;
    }
    if (out->acl->missing) {
        snprintf(text, sizeof text, "acls of type %.60s are not supported yet", out->acl->missing);
        problem(errors, r, directive, name, text);
        return 1;
    }
    if (matching_less_opens(r, i, out->acl)) {
        problem(errors, r, directive, name,
                "names in a dst list are not resolved; use dstdomain or addresses here");
        return 1;
    }
    too_slow = out->acl->needs & ~directives[directive].waits_for;
    if (too_slow)
        cannot_wait(errors, r, directive, out->acl, (enum acl_answer)__builtin_ctz(too_slow));
    return too_slow != 0;
}

static unsigned
terms_new(const struct acl_set *s, const struct conf_rule *r, enum ruled directive,
          struct buf *errors, struct acl_term *out)
{
    unsigned n_problems = 0;

    for (unsigned i = 0; i < r->n; i++)
        n_problems += term_new(s, r, i, directive, errors, &out[i]);
    return n_problems;
}

/* Room for all rules and their terms. Returns how many terms. */
static unsigned
lay_out(struct acl_list *l, const struct conf_rules *rules)
{
    unsigned n_terms = 0;

    l->n = rules->n;
    l->rules = mem_zalloc((rules->n + 1) * sizeof *l->rules);
    for (unsigned i = 0; i < rules->n; i++) {
        l->rules[i] = (struct rule){rules->at[i].allow, n_terms, rules->at[i].n};
        n_terms += rules->at[i].n;
    }
    l->terms = mem_zalloc((n_terms + 1) * sizeof *l->terms);
    return n_terms;
}

unsigned
acl_list_new(struct acl_set *s, const struct conf_rules *rules, enum ruled directive,
             struct buf *errors, struct acl_list **out)
{
    struct acl_list *l = mem_zalloc(sizeof *l);
    unsigned n_terms = lay_out(l, rules), n_problems = 0;

    l->magic = ACL_LIST_MAGIC;
    l->when_empty = directives[directive].when_empty;
    for (unsigned i = 0; i < rules->n; i++)
        n_problems += terms_new(s, &rules->at[i], directive, errors, &l->terms[l->rules[i].first]);
    for (unsigned i = 0; i < n_terms; i++)
        l->needs |= l->terms[i].acl ? l->terms[i].acl->needs : 0;
    *out = l;
    return n_problems;
}

void
acl_list_free(struct acl_list **held)
{
    struct acl_list *l = *held;

    *held = NULL;
    if (l == NULL)
        return;
    CHECK_OBJ(l, ACL_LIST_MAGIC);
    mem_free(l->rules);
    mem_free(l->terms);
    FREE_OBJ(l);
}

static enum acl_match
match_terms(const struct acl_term *terms, unsigned n, const struct acl_facts *f)
{
    for (unsigned i = 0; i < n; i++) {
        enum acl_match m = acl_match_one(terms[i].acl, f);

        if (m > ACL_MATCH_YES)
            return m;
        if ((m == ACL_MATCH_YES) == terms[i].negated)
            return ACL_MATCH_NO;
    }
    return ACL_MATCH_YES;
}

static enum acl_answer
deny_unknowable(const struct acl_facts *f)
{
    log_event_every(5000, LOG_WARN,
                    "a regular expression of an acl ran into its limit; denied: %.*s",
                    SPAN_ARG(span_first(f->url, 200)));
    return ACL_DENY;
}

enum acl_answer
acl_list_check(const struct acl_list *l, const struct acl_facts *f)
{
    for (unsigned i = 0; i < l->n; i++) {
        const struct rule *r = &l->rules[i];

        switch (match_terms(&l->terms[r->first], r->n, f)) {
        case ACL_MATCH_NO:
            continue;
        case ACL_MATCH_YES:
            return r->allow ? ACL_ALLOW : ACL_DENY;
        case ACL_MATCH_NEEDS_DST:
            return ACL_NEED_DST;
        case ACL_MATCH_FAILED:
            return deny_unknowable(f);
        }
    }
    if (l->n == 0)
        return l->when_empty;
    return l->rules[l->n - 1].allow ? ACL_DENY : ACL_ALLOW;
}

unsigned
acl_list_needs(const struct acl_list *l)
{
    return l->needs;
}

unsigned
acl_cond_new(struct acl_set *s, const struct conf_rule *r, enum ruled directive, struct buf *errors,
             struct acl_cond **out)
{
    struct acl_cond *c = mem_zalloc(sizeof *c + (r->n + 1) * sizeof c->terms[0]);

    CHECK(directives[directive].waits_for == 0); /* a condition can only hold or not */
    c->n = r->n;
    *out = c;
    return terms_new(s, r, directive, errors, c->terms);
}

void
acl_cond_free(struct acl_cond **held)
{
    mem_free(*held);
    *held = NULL;
}

bool
acl_cond_holds(const struct acl_cond *c, const struct acl_facts *f)
{
    enum acl_match m = match_terms(c->terms, c->n, f);

    CHECK(m != ACL_MATCH_NEEDS_DST); /* such terms have been refused */
    return m == ACL_MATCH_YES;
}
