/* regex.c - pcre2 behind a fence.
 *
 * Patterns come from the operator, subjects from anybody: a careless (a+)+$ must not give every
 * client the power to stop a worker. pcre2 counts its steps per starting position, so the limit
 * shrinks with the length of the subject and their product stays bounded.
 *
 * Each pattern is tried alone instead of being folded into one big alternation: a backtracking
 * matcher tries the alternatives one by one at each position anyway, while a single pattern brings
 * its own first-byte search. One block of match data per thread is enough for all patterns, because
 * nobody asks where the match was. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "proxy/access/regex.h"

#include <pcre2.h>
#include <pthread.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/check.h"

enum {
    STEPS_PER_MATCH = 100 * 1000 * 1000,
    STEPS_PER_START_MOST = 100 * 1000,
    STEPS_PER_START_LEAST = 1000,
    HEAP_LIMIT_KIB = 1024,
};

struct regex {
    pcre2_code *code;
    bool has_jit;
};

struct regex_thread {
    pcre2_match_data *data;
    pcre2_match_context *context;
    uint32_t limit;
    struct buf scratch;
};

static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static _Thread_local struct regex_thread *thread_mine;

static void
thread_free(void *arg)
{
    struct regex_thread *t = arg;

    pcre2_match_data_free(t->data);
    pcre2_match_context_free(t->context);
    buf_free(&t->scratch);
    mem_free(t);
}

static void
thread_key_make(void)
{
    CHECK(pthread_key_create(&thread_key, thread_free) == 0);
}

static struct regex_thread *
thread_new(void)
{
    struct regex_thread *t = mem_zalloc(sizeof *t);

    pthread_once(&thread_once, thread_key_make);
    t->data = pcre2_match_data_create(1, NULL);
    t->context = pcre2_match_context_create(NULL);
    CHECK(t->data != NULL && t->context != NULL);
    pcre2_set_heap_limit(t->context, HEAP_LIMIT_KIB);
    pthread_setspecific(thread_key, t);
    thread_mine = t;
    return t;
}

static struct regex_thread *
thread_get(void)
{
    return thread_mine ? thread_mine : thread_new();
}

char *
regex_scratch(size_t n_bytes)
{
    struct regex_thread *t = thread_get();

    t->scratch.n = 0;
    return buf_reserve(&t->scratch, n_bytes ? n_bytes : 1);
}

static bool
is_star_or_plus(char c)
{
    return c == '*' || c == '+';
}

/* Length of the bracket expression at p, as pcre2 reads it; up to the end when it is not closed. */
static size_t
bracket_length(const char *p)
{
    size_t n = 1;

    if (p[n] == '^')
        n++;
    if (p[n] == ']')
        n++;
    while (p[n] && p[n] != ']') {
        if (p[n] == '\\' && p[n + 1])
            n++;
        else if (p[n] == '[' && p[n + 1] == ':' && strstr(p + n + 2, ":]"))
            n = (size_t)(strstr(p + n + 2, ":]") + 1 - p);
        n++;
    }
    return p[n] ? n + 1 : n;
}

/* Copies one escape; \< and \> are GNU's word boundaries. Returns what it took. */
static size_t
translate_escape(const char *p, struct buf *out)
{
    if (p[1] == '<') {
        BUF_ADD(out, "\\b(?=\\w)");
        return 2;
    }
    if (p[1] == '>') {
        BUF_ADD(out, "\\b(?<=\\w)");
        return 2;
    }
    buf_add(out, span_of(p, p[1] ? 2 : 1));
    return p[1] ? 2 : 1;
}

struct translation {
    bool nothing_before; /* at the start, or behind ( | ^: nothing a star could repeat */
    bool repeated;
    unsigned open; /* parentheses */
};

/* Is there nothing to copy, because this star or plus repeats nothing, or what is repeated already?
 */
static bool
drop_star_or_plus(struct translation *t, char c, struct buf *out)
{
    if (!is_star_or_plus(c) || (!t->nothing_before && !t->repeated))
        return false;
    if (t->repeated && out->at[out->n - 1] != c)
        out->at[out->n - 1] = '*';
    return true;
}

static void
copy_char(struct translation *t, char c, struct buf *out)
{
    if (c == ')' && t->open == 0)
        buf_add_char(out, '\\');
    t->open += c == '(';
    t->open -= c == ')' && t->open > 0;
    buf_add_char(out, c);
}

/* Where pcre2 differs from what people are used to: a parenthesis that closes nothing is an
 * ordinary character and a second star or plus repeats the same thing (a++ is not possessive), as
 * POSIX and GNU have it. A star with nothing to repeat ("*.exe") is left out: Squid skips such a
 * pattern with a complaint, but only one thing can be meant. */
static void
translate(const char *p, struct buf *out)
{
    struct translation t = {.nothing_before = true};

    while (*p) {
        size_t took = 1;

        if (drop_star_or_plus(&t, *p, out)) {
            p++;
            continue;
        }
        if (*p == '\\') {
            took = translate_escape(p, out);
        } else if (*p == '[') {
            took = bracket_length(p);
            buf_add(out, span_of(p, took));
        } else {
            copy_char(&t, *p, out);
        }
        t.nothing_before = *p == '(' || *p == '|' || *p == '^';
        t.repeated = is_star_or_plus(*p) || *p == '?';
        p += took;
    }
}

static pcre2_code *
compile(struct span text, bool ignore_case, int *error, size_t *offset)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    /* NEVER_UTF: pcre2 must not take the subject for UTF-8 unchecked. */
    uint32_t options = PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF;
    pcre2_code *code;

    CHECK(context != NULL);
    pcre2_set_compile_extra_options(context, PCRE2_EXTRA_BAD_ESCAPE_IS_LITERAL);
    if (ignore_case)
        options |= PCRE2_CASELESS;
    code = pcre2_compile((PCRE2_SPTR)text.at, text.n, options, error, offset, context);
    pcre2_compile_context_free(context);
    return code;
}

struct regex *
regex_new(const char *pattern, bool ignore_case, char *why, size_t n_why)
{
    struct buf text = {0};
    struct regex *r;
    pcre2_code *code;
    size_t offset;
    int error;

    buf_reserve(&text, 1);
    translate(pattern, &text);
    code = compile(buf_span(&text), ignore_case, &error, &offset);
    buf_free(&text);
    if (code == NULL) {
        PCRE2_UCHAR said[120] = "";

        pcre2_get_error_message(error, said, sizeof said);
        snprintf(why, n_why, "%s (at %zu)", (const char *)said, offset);
        return NULL;
    }
    r = mem_zalloc(sizeof *r);
    r->code = code;
    r->has_jit = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
    return r;
}

void
regex_free(struct regex **held)
{
    struct regex *r = *held;

    *held = NULL;
    if (r == NULL)
        return;
    pcre2_code_free(r->code);
    mem_free(r);
}

static void
limit_for(struct regex_thread *t, size_t n_bytes)
{
    size_t limit = STEPS_PER_MATCH / (n_bytes + 1);

    if (limit > STEPS_PER_START_MOST)
        limit = STEPS_PER_START_MOST;
    if (limit < STEPS_PER_START_LEAST)
        limit = STEPS_PER_START_LEAST;
    if (t->limit == limit)
        return;
    t->limit = (uint32_t)limit;
    pcre2_set_match_limit(t->context, t->limit);
}

enum regex_answer
regex_match(const struct regex *r, struct span subject)
{
    struct regex_thread *t = thread_get();
    PCRE2_SPTR at = (PCRE2_SPTR)(subject.at ? subject.at : "");
    int rc = PCRE2_ERROR_JIT_STACKLIMIT;

    limit_for(t, subject.n);
    if (r->has_jit)
        rc = pcre2_jit_match(r->code, at, subject.n, 0, 0, t->data, t->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter has room the machine stack has not */
        rc = pcre2_match(r->code, at, subject.n, 0, PCRE2_NO_JIT, t->data, t->context);
    if (rc >= 0)
        return REGEX_YES;
    return rc == PCRE2_ERROR_NOMATCH ? REGEX_NO : REGEX_FAILED;
}
