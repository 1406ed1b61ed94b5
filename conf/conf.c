/* conf/conf.c - the life of a snapshot: defaults, a file on top, references.
 *
 * Defaults go through the same setters as a file, so a default that its own row does not allow
 * cannot be. The strings live in one arena and go with it. */
#include "base/check.h"
#include "conf/reader.h"

#define CONF_MAGIC UINT32_C(0xc04ff11e)

static void
set_defaults(struct reader *r)
{
    struct buf words = {0};

    r->place = (struct conf_place){"default", 0};
    for (unsigned i = 0; i < n_directives; i++) {
        struct line l = {0};

        if (directives[i].default_text == NULL)
            continue;
        l.text = span_str(directives[i].default_text);
        l.n = lexer_words(l.text, &words);
        l.words = (const struct word *)words.at;
        r->directive = directives[i].name;
        parser_set(r, &directives[i], &l);
    }
    r->directive = NULL;
    buf_free(&words);
    CHECK(r->c->n_errors == 0);
}

static void
reader_start(struct reader *r, const char *name)
{
    struct conf *c = mem_zalloc(sizeof *c);

    c->magic = CONF_MAGIC;
    ref_init(&c->refs);
    arena_init(&c->arena, NULL, 0);
    *r = (struct reader){.c = c};
    r->name_seen = mem_zalloc(n_other_names * sizeof r->name_seen[0]);
    c->name = reader_str(r, span_str(name));
    set_defaults(r);
    r->place = (struct conf_place){"built-in", 0};
    acls_builtin(r);
    r->place = (struct conf_place){c->name, 0};
}

static struct conf *
reader_end(struct reader *r)
{
    reader_finish(r);
    mem_free(r->name_seen);
    return r->c;
}

struct conf *
conf_read(const char *path)
{
    struct reader r;

    if (path == NULL)
        return conf_read_text("built-in", span_str(conf_default_text()));
    reader_start(&r, path);
    file_main(&r, path);
    return reader_end(&r);
}

struct conf *
conf_read_text(const char *name, struct span text)
{
    struct reader r;

    reader_start(&r, name);
    r.depth = 1;
    parser_text(&r, text);
    return reader_end(&r);
}

void
conf_ref(struct conf *c)
{
    CHECK_OBJ(c, CONF_MAGIC);
    ref_take(&c->refs);
}

static void
free_lists(struct conf *c)
{
    for (unsigned i = 0; i < c->n_acls; i++)
        mem_free(c->acls[i].values);
    for (unsigned i = 0; i < n_directives; i++)
        if (directives[i].type == DIRECTIVE_RULES)
            mem_free(((struct conf_rules *)(void *)((char *)c + directives[i].offset))->at);
    mem_free(c->acls);
    acl_index_free(c);
    mem_free(c->ports);
    mem_free(c->refresh);
    mem_free(c->range_limits);
    mem_free(c->cache_dirs);
    mem_free(c->access_logs);
    mem_free(c->logformats);
}

void
conf_unref(struct conf **held)
{
    struct conf *c = *held;

    CHECK_OBJ(c, CONF_MAGIC);
    *held = NULL;
    if (ref_drop(&c->refs) > 0)
        return;
    free_lists(c);
    buf_free(&c->notes);
    buf_free(&c->errors);
    arena_free(&c->arena);
    FREE_OBJ(c);
}
