/* cache/vary.c - specs of variants.
 *
 * A spec repeats what the request that brought the response said in the fields its Vary names;
 * another request selects the response when it would make the same spec. So matching reads the
 * names from the spec, writes the line the request at hand would make, and compares bytes.
 * Vary comes from strangers: at most 64 names are taken, anything odd never matches. */
#include "cache/vary.h"

#define VARY_NAMES_MAX 64

struct names {
    struct span at[VARY_NAMES_MAX];
    unsigned n;
};

static int
name_order(struct span a, struct span b)
{
    int order = strncasecmp(a.at, b.at, a.n < b.n ? a.n : b.n);

    return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

/* Keeps the names sorted, each once; false when there are too many. */
static bool
names_add(struct names *names, struct span name)
{
    unsigned at = 0;

    while (at < names->n && name_order(names->at[at], name) < 0)
        at++;
    if (at < names->n && name_order(names->at[at], name) == 0)
        return true;
    if (names->n == VARY_NAMES_MAX)
        return false;
    memmove(&names->at[at + 1], &names->at[at], (names->n - at) * sizeof names->at[0]);
    names->at[at] = name;
    names->n++;
    return true;
}

/* The names of all Vary lines; false: nothing can be selected by them. */
static bool
names_read(struct names *names, const struct fields *response)
{
    const struct field *vary = fields_find(response, FIELD_VARY);
    struct span rest, member;

    names->n = 0;
    for (; vary; vary = fields_next(response, FIELD_VARY, vary)) {
        rest = vary->value;
        while (list_next(&rest, &member)) {
            if (span_eq(member, SPAN("*")) || !field_name_is_token(member))
                return false;
            if (!names_add(names, member))
                return false;
        }
    }
    return true;
}

static char
lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool
is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* Where a spec goes: into memory, or against a spec that is there already. */
struct sink {
    char *to;             /* NULL: compare */
    struct span expected; /* what is left of it */
    bool differs;
};

static void
sink_put(struct sink *sink, char c)
{
    if (sink->to)
        *sink->to++ = c;
    else if (sink->expected.n && sink->expected.at[0] == c)
        sink->expected = span_skip(sink->expected, 1);
    else
        sink->differs = true;
}

/* What writing a value must remember across its lines. */
struct folding {
    struct sink *sink;
    bool fold_case, quoted, escaped, after_comma;
};

static void
fold_byte(struct folding *w, char c)
{
    if (w->quoted) {
        w->quoted = c != '"' || w->escaped;
        w->escaped = c == '\\' && !w->escaped;
    } else if (c == '"') {
        w->quoted = true;
    }
    w->after_comma = c == ',';
    sink_put(w->sink, w->fold_case ? lower(c) : c);
}

/* Copies a value, which has no white space at its ends, without that around its commas. */
static void
fold(struct folding *w, struct span value)
{
    size_t i = 0, end;

    while (i < value.n && !w->sink->differs) {
        for (end = i; !w->quoted && end < value.n && is_space(value.at[end]);)
            end++;
        if (w->after_comma || (end < value.n && value.at[end] == ','))
            i = end;
        while (i < end)
            fold_byte(w, value.at[i++]);
        if (i < value.n)
            fold_byte(w, value.at[i++]);
    }
}

static bool
field_has_name(const struct field *f, enum field_id id, struct span name)
{
    return f->id == id && (id != FIELD_OTHER || span_eq_ci(f->name, name));
}

/* Room that the line of `name` needs at most. */
static size_t
line_room(struct span name, const struct fields *request)
{
    enum field_id id = field_id_of(name);
    size_t room = name.n + 3;

    for (unsigned i = 0; i < request->n; i++)
        if (field_has_name(&request->at[i], id, name))
            room += request->at[i].value.n + 1;
    return room;
}

static void
put_values(struct sink *sink, struct span name, const struct fields *request)
{
    enum field_id id = field_id_of(name);
    struct folding w = {.sink = sink,
                        .fold_case = id == FIELD_ACCEPT_LANGUAGE || id == FIELD_ACCEPT_ENCODING};
    bool first = true;

    for (unsigned i = 0; i < request->n && !sink->differs; i++) {
        if (!field_has_name(&request->at[i], id, name))
            continue;
        if (first) {
            sink_put(sink, ':');
            sink_put(sink, ' ');
        } else {
            fold_byte(&w, ',');
        }
        first = false;
        fold(&w, request->at[i].value);
    }
}

/* "name: value\n", or "name\n" when the request has no such field: an absent field only matches
 * an absent one (RFC 9111 section 4.1). Several lines are one list. */
static void
put_line(struct sink *sink, struct span name, const struct fields *request)
{
    for (size_t i = 0; i < name.n; i++)
        sink_put(sink, lower(name.at[i]));
    put_values(sink, name, request);
    sink_put(sink, '\n');
}

struct span
vary_spec(const struct fields *response, const struct fields *request, struct arena *a, bool *never)
{
    struct names names;
    struct sink sink = {0};
    size_t room = 0;
    char *spec;

    *never = !names_read(&names, response);
    if (*never || names.n == 0)
        return SPAN_NONE;
    for (unsigned i = 0; i < names.n; i++)
        room += line_room(names.at[i], request);
    spec = sink.to = arena_alloc(a, room);
    for (unsigned i = 0; i < names.n; i++)
        put_line(&sink, names.at[i], request);
    return span_of(spec, (size_t)(sink.to - spec));
}

bool
vary_is_never(const struct fields *response)
{
    struct names names;

    return !names_read(&names, response);
}

/* In place: a key may have many variants and a request long values. */
bool
vary_matches(struct span spec, const struct fields *request, struct arena *scratch)
{
    struct sink sink = {.expected = spec};

    while (sink.expected.n && !sink.differs) {
        struct span line = span_first(sink.expected, span_index(sink.expected, '\n'));

        put_line(&sink, span_first(line, span_index(line, ':')), request);
    }
    return !sink.differs;
}
