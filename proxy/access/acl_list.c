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
    bool when_empty;
    unsigned n;
    struct rule *rules;
    struct acl_term *terms;
};

struct acl_cond {
    unsigned n;
    struct acl_term terms[];
};

static void
problem(struct buf *errors, const struct conf_rule *r, const char *directive, const char *name,
        const char *what)
{
    buf_addf(errors, "%s:%u: %s: %.60s: %s\n", r->place.file, r->place.line, directive, name, what);
}

/* Names in a dst list match less than they should: good enough where a match opens, not where it
 * closes. In a group it may do either. */
static bool
matching_less_opens(const struct conf_rule *r, unsigned term, const struct acl *a)
{
    return a->properties & ACL_BY_TEXT && (a->is_group || r->allow == r->terms[term].negated);
}

static unsigned
term_new(const struct acl_set *s, const struct conf_rule *r, unsigned i, const char *directive,
         struct buf *errors, struct acl_term *out)
{
    const char *name = r->terms[i].acl;
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
    return 0;
}

static unsigned
terms_new(const struct acl_set *s, const struct conf_rule *r, const char *directive,
          struct buf *errors, struct acl_term *out)
{
    unsigned n_problems = 0;

    for (unsigned i = 0; i < r->n; i++)
        n_problems += term_new(s, r, i, directive, errors, &out[i]);
    return n_problems;
}

unsigned
acl_list_new(struct acl_set *s, const struct conf_rules *rules, const char *directive,
             bool when_empty, struct buf *errors, struct acl_list **out)
{
    struct acl_list *l = mem_zalloc(sizeof *l);
    unsigned n_terms = 0, n_problems = 0;

    l->magic = ACL_LIST_MAGIC;
    l->when_empty = when_empty;
    l->n = rules->n;
    l->rules = mem_zalloc((rules->n + 1) * sizeof *l->rules);
    for (unsigned i = 0; i < rules->n; i++) {
        l->rules[i] = (struct rule){rules->at[i].allow, n_terms, rules->at[i].n};
        n_terms += rules->at[i].n;
    }
    l->terms = mem_zalloc((n_terms + 1) * sizeof *l->terms);
    for (unsigned i = 0; i < rules->n; i++)
        n_problems += terms_new(s, &rules->at[i], directive, errors, &l->terms[l->rules[i].first]);
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
        return l->when_empty ? ACL_ALLOW : ACL_DENY;
    return l->rules[l->n - 1].allow ? ACL_DENY : ACL_ALLOW;
}

static bool
rule_is_always(const struct acl_list *l, const struct rule *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        const struct acl_term *t = &l->terms[r->first + i];

        if (t->negated || !(t->acl->properties & ACL_ALWAYS))
            return false;
    }
    return true;
}

/* Constant up to the first rule that takes everybody: "deny sometimes" before "deny all" changes
 * nothing. */
bool
acl_list_is_constant(const struct acl_list *l, bool *allow)
{
    *allow = l->n ? l->rules[0].allow : l->when_empty;
    for (unsigned i = 0; i < l->n; i++) {
        if (l->rules[i].allow != *allow)
            return false;
        if (rule_is_always(l, &l->rules[i]))
            return true;
    }
    return l->n == 0;
}

unsigned
acl_cond_new(struct acl_set *s, const struct conf_rule *r, const char *directive,
             struct buf *errors, struct acl_cond **out)
{
    struct acl_cond *c = mem_zalloc(sizeof *c + (r->n + 1) * sizeof c->terms[0]);

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
    return match_terms(c->terms, c->n, f) == ACL_MATCH_YES;
}
