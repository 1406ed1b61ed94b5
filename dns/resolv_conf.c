/* dns/resolv_conf.c - the words of two kinds of line. */
#include "dns/resolv_conf.h"

#include <stdio.h>
#include <stdlib.h>

enum { FILE_LIMIT_BYTES = 64 * 1024 };

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct span
next_word(struct span *line)
{
    size_t n = 0;

    while (line->n > 0 && is_blank(line->at[0]))
        *line = span_skip(*line, 1);
    while (n < line->n && !is_blank(line->at[n]))
        n++;
    *line = span_skip(*line, n);
    return span_of(line->at - n, n);
}

static void
read_domains(struct resolv_conf *c, struct span words)
{
    struct span word;

    c->n_domains = 0;
    while (c->n_domains < RESOLV_DOMAINS_MOST && (word = next_word(&words)).n > 0)
        c->domains[c->n_domains++] = word;
}

static void
read_line(struct resolv_conf *c, struct span line)
{
    struct span first = next_word(&line);

    if (span_eq(first, SPAN("search")) || span_eq(first, SPAN("domain"))) {
        read_domains(c, line);
    } else if (span_eq(first, SPAN("nameserver")) && c->n_servers < RESOLV_SERVERS_MOST) {
        c->servers[c->n_servers] = next_word(&line);
        c->n_servers += c->servers[c->n_servers].n > 0;
    }
}

struct resolv_conf
resolv_conf_read(struct span text)
{
    struct resolv_conf c = {0};

    while (text.n > 0) {
        size_t n = span_index(text, '\n');

        read_line(&c, span_first(text, n));
        text = span_skip(text, n + 1);
    }
    return c;
}

static void
read_file(struct buf *text)
{
    FILE *f = fopen("/etc/resolv.conf", "re");

    if (!f)
        return;
    text->n += fread(buf_reserve(text, FILE_LIMIT_BYTES), 1, FILE_LIMIT_BYTES, f);
    fclose(f);
}

struct resolv_conf
resolv_conf_of_system(struct buf *text)
{
    const char *environment = getenv("LOCALDOMAIN");
    struct resolv_conf c;

    read_file(text);
    c = resolv_conf_read(buf_span(text));
    if (environment)
        read_domains(&c, span_str(environment));
    return c;
}
