/* refresh_set.c - which refresh_pattern line matches a URL?
 *
 * The first that does, in the order of the file. The URL is matched as it stands, escapes and all,
 * as Squid does: unlike an access rule nothing is to be guarded here. A pattern that runs into its
 * limit is passed over, and the next one decides. The catch-all "." that ends nearly every file is
 * known without asking pcre2. */
#include <stdio.h>

#include "base/check.h"
#include "proxy/access/acl.h"
#include "proxy/access/regex.h"

struct refresh_set {
    unsigned n;
    struct regex *patterns[]; /* NULL: matches everything */
};

static bool
matches_everything(const char *pattern)
{
    return strcmp(pattern, ".") == 0 || strcmp(pattern, ".*") == 0;
}

unsigned
refresh_set_new(const struct conf *c, struct buf *errors, struct refresh_set **out)
{
    struct refresh_set *s = mem_zalloc(sizeof *s + c->n_refresh * sizeof s->patterns[0]);
    unsigned n_problems = 0;
    char why[160];

    s->n = c->n_refresh;
    for (unsigned i = 0; i < s->n; i++) {
        const struct conf_refresh *r = &c->refresh[i];

        if (matches_everything(r->regex))
            continue;
        s->patterns[i] = regex_new(r->regex, r->ignore_case, why, sizeof why);
        if (s->patterns[i])
            continue;
        n_problems++;
        buf_addf(errors, "%s:%u: refresh_pattern: %.200s: not a regular expression: %s\n",
                 r->place.file, r->place.line, r->regex, why);
    }
    *out = s;
    return n_problems;
}

void
refresh_set_free(struct refresh_set **held)
{
    struct refresh_set *s = *held;

    *held = NULL;
    for (unsigned i = 0; s && i < s->n; i++)
        regex_free(&s->patterns[i]);
    mem_free(s);
}

int
refresh_set_match(const struct refresh_set *s, struct span url)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->patterns[i] == NULL || regex_match(s->patterns[i], url) == REGEX_YES)
            return (int)i;
    return -1;
}
