/* acl.c - all acls of a configuration, compiled once.
 *
 * Types know nothing of each other (acl_types.def); groups (any-of, all-of) are linked here, after
 * everything has its place, since they may name acls that come later in the file. Groups may nest,
 * but only so deep and never in a ring: both are found by letting depths grow until they settle.
 *
 * Each acl of a bad configuration is judged, so that one run tells all there is to mend. */
#include "proxy/access/acl.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "proxy/access/acl_set.h"

#define ACL_SET_MAGIC 0xac15e700u

enum { TOLD_PER_ACL = 20, TEXT_BYTES = 400 };

struct acl_set {
    uint32_t magic;
    unsigned n;
    struct acl acls[];
};

struct acl_kind {
    const char *name;
    const struct acl_type *type;
    bool is_group, all;
};

static const struct acl_kind kinds[] = {
#define ACL_TYPE(id, text) {.name = text, .type = &acl_type_##id},
#define ACL_GROUP(text, every) {.name = text, .is_group = true, .all = every},
#define ACL_LATER(text) {.name = text},
#include "proxy/access/acl_types.def"
#undef ACL_TYPE
#undef ACL_GROUP
#undef ACL_LATER
};

static const struct acl_kind *
kind_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcasecmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

void
acl_problem(struct acl_build *b, const char *format, ...)
{
    const struct conf_acl *a = b->acl;
    char text[TEXT_BYTES];
    va_list args;

    if (++b->n_problems > TOLD_PER_ACL)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    buf_addf(b->errors, "%s:%u: acl: %.60s: %s\n", a->place.file, a->place.line, a->name, text);
}

static void
tell_rest(const struct acl_build *b)
{
    const struct conf_acl *a = b->acl;

    if (b->n_problems > TOLD_PER_ACL)
        buf_addf(b->errors, "%s:%u: acl: %.60s: and %u more values like that\n", a->place.file,
                 a->place.line, a->name, b->n_problems - TOLD_PER_ACL);
}

/* Squid's built-in is a regular expression on the URL of its own pages; the request knows better.
 */
static bool
is_builtin_manager(const struct conf_acl *a)
{
    return a->builtin && strcasecmp(a->name, "manager") == 0;
}

static void
compile_one(struct acl *out, struct acl_build *b)
{
    const struct acl_kind *kind = kind_find(b->acl->type);

    out->name = mem_strdup(b->acl->name);
    out->type_name = mem_strdup(b->acl->type);
    if (is_builtin_manager(b->acl)) {
        out->is_manager = true;
        return;
    }
    if (kind == NULL) {
        acl_problem(b, "there is no acl type %s", b->acl->type);
        return;
    }
    out->type = kind->type;
    out->is_group = kind->is_group;
    out->all = kind->all;
    if (kind->type)
        out->data = kind->type->compile(b);
    else if (!kind->is_group)
        out->missing = out->type_name;
    out->properties = b->properties;
    out->needs = b->needs;
}

static void
link_member(const struct acl_set *s, struct acl *group, struct acl_build *b, const char *value)
{
    bool negated = value[0] == '!';
    const struct acl *member = acl_set_find(s, value + negated);

    if (member == NULL) {
        acl_problem(b, "there is no acl named %s", value + negated);
        return;
    }
    group->members[group->n_members++] = (struct acl_term){member, negated};
}

static void
link_group(const struct acl_set *s, struct acl *group, struct acl_build *b)
{
    if (!group->is_group)
        return;
    group->members = mem_zalloc((b->acl->n_values + 1) * sizeof *group->members);
    for (unsigned i = 0; i < b->acl->n_values; i++)
        link_member(s, group, b, b->acl->values[i]);
}

/* What a group takes over from a member; false: it has it all. */
static bool
take_over(struct acl *group, const struct acl *member)
{
    unsigned properties = group->properties | (member->properties & ACL_BY_TEXT);
    unsigned needs = group->needs | member->needs;
    const char *missing = group->missing ? group->missing : member->missing;
    bool changed =
        properties != group->properties || needs != group->needs || missing != group->missing;

    group->properties = properties;
    group->needs = needs;
    group->missing = missing;
    return changed;
}

/* How deep a group nests goes to the depth of each. */
static bool
grow_depth(unsigned *group, unsigned member)
{
    unsigned depth = member + 1;

    if (depth > ACL_NESTED_MOST + 1) /* a ring would grow for ever */
        depth = ACL_NESTED_MOST + 1;
    if (depth <= *group)
        return false;
    *group = depth;
    return true;
}

/* The two come along different ways, the one sooner than the other: it is over when both rest. */
static bool
settle_round(struct acl_set *s, unsigned *depths)
{
    bool changed = false;

    for (unsigned i = 0; i < s->n; i++) {
        struct acl *a = &s->acls[i];

        for (unsigned m = 0; m < a->n_members; m++) {
            const struct acl *member = a->members[m].acl;

            changed |= take_over(a, member);
            changed |= grow_depth(&depths[i], depths[member - s->acls]);
        }
    }
    return changed;
}

static void
settle(struct acl_set *s, struct acl_build *builds)
{
    unsigned *depths = mem_zalloc((s->n + 1) * sizeof *depths);

    while (settle_round(s, depths))
        continue;
    for (unsigned i = 0; i < s->n; i++)
        if (depths[i] > ACL_NESTED_MOST)
            acl_problem(&builds[i], "refers to itself, or nests deeper than %d", ACL_NESTED_MOST);
    mem_free(depths);
}

unsigned
acl_set_new(const struct conf *c, struct buf *errors, struct acl_set **out)
{
    struct acl_set *s = mem_zalloc(sizeof *s + c->n_acls * sizeof s->acls[0]);
    struct acl_build *builds = mem_zalloc((c->n_acls + 1) * sizeof *builds);
    unsigned n_problems = 0;

    s->magic = ACL_SET_MAGIC;
    s->n = c->n_acls;
    for (unsigned i = 0; i < s->n; i++) {
        builds[i] = (struct acl_build){.acl = &c->acls[i], .errors = errors};
        compile_one(&s->acls[i], &builds[i]);
    }
    for (unsigned i = 0; i < s->n; i++)
        link_group(s, &s->acls[i], &builds[i]);
    settle(s, builds);
    for (unsigned i = 0; i < s->n; i++) {
        tell_rest(&builds[i]);
        n_problems += builds[i].n_problems;
    }
    mem_free(builds);
    *out = s;
    return n_problems;
}

void
acl_set_free(struct acl_set **held)
{
    struct acl_set *s = *held;

    *held = NULL;
    if (s == NULL)
        return;
    CHECK_OBJ(s, ACL_SET_MAGIC);
    for (unsigned i = 0; i < s->n; i++) {
        struct acl *a = &s->acls[i];

        if (a->data)
            a->type->free(a->data);
        mem_free(a->members);
        mem_free(a->name);
        mem_free(a->type_name);
    }
    FREE_OBJ(s);
}

const struct acl *
acl_set_find(const struct acl_set *s, const char *name)
{
    const struct acl *similar = NULL;

    for (unsigned i = 0; i < s->n; i++) {
        if (strcmp(s->acls[i].name, name) == 0)
            return &s->acls[i];
        if (similar == NULL && strcasecmp(s->acls[i].name, name) == 0)
            similar = &s->acls[i];
    }
    return similar;
}

/* Nested no deeper than ACL_NESTED_MOST, which acl_set_new has made sure of. */
static enum acl_match
match_group(const struct acl *a, const struct acl_facts *f)
{
    for (unsigned i = 0; i < a->n_members; i++) {
        enum acl_match m = acl_match_one(a->members[i].acl, f);

        if (m != ACL_MATCH_YES && m != ACL_MATCH_NO)
            return m;
        if (a->members[i].negated)
            m = m == ACL_MATCH_YES ? ACL_MATCH_NO : ACL_MATCH_YES;
        if ((m == ACL_MATCH_YES) != a->all)
            return m;
    }
    return a->all && a->n_members ? ACL_MATCH_YES : ACL_MATCH_NO;
}

enum acl_match
acl_match_one(const struct acl *a, const struct acl_facts *f)
{
    if (a->type)
        return a->type->match(a->data, f);
    if (a->is_manager)
        return f->is_manager ? ACL_MATCH_YES : ACL_MATCH_NO;
    return match_group(a, f);
}
