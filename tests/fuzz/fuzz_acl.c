/* tests/fuzz/fuzz_acl.c - acls of any words, one a line, checked against a host and URL of any
 * bytes: a bad one is refused with a message, a good one answers. The last line is what the client
 * asked for. */
#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"
#include "proxy/access/acl.h"

enum { ACLS_MOST = 16, WORDS_MOST = 16, LINE_MOST = 512 };

struct input {
    struct conf conf;
    struct conf_acl acls[ACLS_MOST];
    struct conf_rule rules[ACLS_MOST];
    char *values[ACLS_MOST][WORDS_MOST];
    char *text;
};

static void
must(bool claim)
{
    if (!claim)
        abort();
}

static void
rule_add(struct input *in, const char *acl)
{
    struct conf_rule *r = &in->rules[in->conf.http_access.n++];

    *r = (struct conf_rule){.allow = in->conf.http_access.n & 1, .n = 1, .place = {"fuzz.conf", 1}};
    r->terms = mem_zalloc(sizeof *r->terms);
    r->terms[0].acl = acl;
    r->terms[0].negated = in->conf.http_access.n & 2;
    in->conf.http_access.at = in->rules;
}

static void
acl_add(struct input *in, char *line)
{
    struct conf_acl *a = &in->acls[in->conf.n_acls];

    *a = (struct conf_acl){.place = {"fuzz.conf", in->conf.n_acls + 1},
                           .values = in->values[in->conf.n_acls]};
    a->name = strsep(&line, " ");
    a->type = strsep(&line, " ");
    if (a->type == NULL)
        return;
    while (line && a->n_values < WORDS_MOST)
        a->values[a->n_values++] = strsep(&line, " ");
    in->conf.acls = in->acls;
    in->conf.n_acls++;
    rule_add(in, a->name);
}

/* Leaves the last line, the client's. */
static struct span
read_lines(struct input *in, const uint8_t *data, size_t size)
{
    char *rest, *line, *end;

    in->text = mem_zalloc(size + 1);
    if (size)
        memcpy(in->text, data, size);
    rest = in->text;
    while ((end = memchr(rest, '\n', (size_t)(in->text + size - rest))) != NULL) {
        line = rest;
        *end = '\0';
        rest = end + 1;
        if (in->conf.n_acls < ACLS_MOST && strlen(line) < LINE_MOST)
            acl_add(in, line);
    }
    return span_of(rest, (size_t)(in->text + size - rest));
}

static struct acl_facts
facts_of(struct span sent, struct field *line, struct fields *fields)
{
    struct acl_facts f = {
        .method = METHOD_GET, .method_text = SPAN("GET"), .scheme = SPAN("http"), .port = 80};

    f.host = span_first(sent, span_index(sent, '/'));
    f.path = span_skip(sent, f.host.n);
    f.url = sent;
    f.dst_known = sent.n & 1;
    f.wall_s = 1767571200 + (int64_t)sent.n * 3600;
    *line = (struct field){SPAN("User-Agent"), sent, FIELD_USER_AGENT};
    *fields = (struct fields){line, 1, 1};
    f.fields = fields;
    if (!addr_parse(f.host, &f.host_literal))
        f.host_literal = ADDR_NONE;
    must(addr_parse(SPAN("192.0.2.7"), &f.client) && addr_parse(SPAN("::1"), &f.local));
    return f;
}

/* A rule that a directive without time takes is one that can always be judged. */
static void
check_conditions(struct acl_set *s, const struct conf_rules *rules, const struct acl_facts *f)
{
    struct buf errors = {0};
    struct acl_cond *c;

    for (unsigned i = 0; i < rules->n; i++) {
        if (acl_cond_new(s, &rules->at[i], RULED_ACCESS_LOG, &errors, &c) == 0)
            (void)acl_cond_holds(c, f);
        acl_cond_free(&c);
    }
    buf_free(&errors);
}

static void
check(const struct acl_list *l, const struct acl_facts *f)
{
    enum acl_answer answer = acl_list_check(l, f);

    must(answer == ACL_ALLOW || answer == ACL_DENY ||
         (!f->dst_known && acl_list_needs(l) & ACL_NEEDS(answer)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input *in = mem_zalloc(sizeof *in);
    struct buf errors = {0};
    struct acl_set *s;
    struct acl_list *l = NULL;
    struct span sent = read_lines(in, data, size);
    unsigned n = acl_set_new(&in->conf, &errors, &s);

    log_show(LOG_FATAL);
    n += acl_list_new(s, &in->conf.http_access, RULED_HTTP_ACCESS, &errors, &l);
    must((n == 0) == (errors.n == 0));
    if (n == 0) {
        struct field line;
        struct fields fields;
        struct acl_facts f = facts_of(sent, &line, &fields);

        check(l, &f);
        check_conditions(s, &in->conf.http_access, &f);
    }
    acl_list_free(&l);
    acl_set_free(&s);
    for (unsigned i = 0; i < in->conf.http_access.n; i++)
        mem_free(in->rules[i].terms);
    buf_free(&errors);
    mem_free(in->text);
    mem_free(in);
    return 0;
}
