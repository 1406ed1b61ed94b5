/* tools/trace/trace_reader.c - lines out of a file, a pipe or a gzip stream.
 *
 * One buffer: large reads fill it, lines are handed out in place, and only the piece of a line at
 * its end is moved to the front before the next read. So a line is looked at once and memory is
 * the same for any file. */
#include "tools/trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "http/coding.h"

enum {
    MAGIC = 0x54524452,
    LINE_MOST = 64 << 10,
    BUFFER_BYTES = 512 << 10,
    PACKED_BYTES = 128 << 10,
    TELLING_BYTES = 6 /* of the head of a file: enough to know what it is packed with */
};

struct trace_reader {
    uint32_t magic;
    int fd;
    uint64_t size, bytes; /* of the file; read of it */
    uint64_t lines, skipped[TRACE_VERDICTS], first_skipped[TRACE_VERDICTS];
    char buffer[BUFFER_BYTES];
    size_t begin, end;     /* of what is not handed out yet */
    bool at_end, in_long;  /* nothing more comes; the rest of an overlong line is being dropped */
    struct coding *coding; /* NULL: plain */
    enum coding_state coding_state;
    char packed[PACKED_BYTES];
    struct span packed_left;
    const char *fault;
    char fault_text[160];
};

static ssize_t
read_file(struct trace_reader *r, char *to, size_t room)
{
    ssize_t n;

    do
        n = read(r->fd, to, room);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        r->bytes += (uint64_t)n;
    if (n < 0) {
        snprintf(r->fault_text, sizeof(r->fault_text), "reading broke off: %s", strerror(errno));
        r->fault = r->fault_text;
    }
    return n;
}

static void
fill_plain(struct trace_reader *r, size_t until)
{
    ssize_t n = read_file(r, r->buffer + r->end, until - r->end);

    if (n <= 0)
        r->at_end = true;
    else
        r->end += (size_t)n;
}

/* More packed bytes; false: there are none. A cut stream is told apart from a whole one. */
static bool
feed(struct trace_reader *r)
{
    ssize_t n = read_file(r, r->packed, PACKED_BYTES);

    r->packed_left = span_of(r->packed, n > 0 ? (size_t)n : 0);
    if (n == 0 && r->coding_state != CODING_END)
        r->fault = "the gzip stream is cut off";
    return n > 0;
}

static void
fill_packed(struct trace_reader *r)
{
    size_t made = 0;

    while (made == 0 && !r->at_end) {
        if (r->packed_left.n == 0 && !feed(r)) {
            r->at_end = true;
            return;
        }
        r->coding_state = coding_decode(r->coding, &r->packed_left, r->buffer + r->end,
                                        BUFFER_BYTES - r->end, &made);
        r->end += made;
        if (r->coding_state == CODING_BAD)
            r->fault = "the gzip stream is damaged";
        if (r->coding_state == CODING_END && r->packed_left.n > 0 && made == 0)
            r->fault = "something that is not gzip follows the gzip stream";
        if (r->fault != NULL)
            r->at_end = true;
    }
}

static void
fill(struct trace_reader *r)
{
    memmove(r->buffer, r->buffer + r->begin, r->end - r->begin);
    r->end -= r->begin;
    r->begin = 0;
    if (r->coding != NULL)
        fill_packed(r);
    else
        fill_plain(r, BUFFER_BYTES);
}

static const char *
packed_otherwise(struct span head)
{
    static const struct {
        struct span magic;
        const char *why;
    } others[] = {{SPAN("\xfd"
                        "7zXZ"),
                   "it is packed with xz: xzcat FILE | ... -"},
                  {SPAN("\x28\xb5\x2f\xfd"), "it is packed with zstd: zstdcat FILE | ... -"},
                  {SPAN("BZh"), "it is packed with bzip2: bzcat FILE | ... -"},
                  {SPAN("PK\x03\x04"), "it is a zip archive: unzip -p FILE | ... -"}};

    for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (span_starts(head, others[i].magic))
            return others[i].why;
    return NULL;
}

/* Looks at the first bytes. A gzip file's go through the decoder, a plain one's stay. */
static const char *
tell_packing(struct trace_reader *r)
{
    struct span head;

    while (r->end < TELLING_BYTES && !r->at_end)
        fill_plain(r, PACKED_BYTES);
    if (r->fault != NULL)
        return r->fault;
    head = span_of(r->buffer, r->end);
    if (span_starts(head, SPAN("\x1f\x8b"))) {
        memcpy(r->packed, r->buffer, r->end);
        r->packed_left = span_of(r->packed, r->end);
        r->coding = coding_new(CODING_GZIP);
        r->end = 0;
        r->at_end = false;
    }
    return packed_otherwise(head);
}

static const char *
open_file(struct trace_reader *r, const char *path)
{
    struct stat st;

    r->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (r->fd < 0 || fstat(r->fd, &st) < 0)
        return strerror(errno);
    if (S_ISDIR(st.st_mode))
        return "it is a folder";
    if (S_ISREG(st.st_mode))
        r->size = (uint64_t)st.st_size;
    posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return NULL;
}

struct trace_reader *
trace_reader_open(const char *path, char *why, unsigned why_bytes)
{
    struct trace_reader *r = mem_zalloc(sizeof(*r));
    const char *wrong;

    r->magic = MAGIC;
    wrong = open_file(r, path);
    if (wrong == NULL)
        wrong = tell_packing(r);
    if (wrong == NULL)
        return r;
    snprintf(why, why_bytes, "%s: %s", path, wrong);
    trace_reader_close(&r);
    return NULL;
}

/* Drops the rest of an overlong line; true: its end was found. */
static bool
drop_long(struct trace_reader *r, const char *newline)
{
    r->begin = newline ? (size_t)(newline - r->buffer) + 1 : r->end;
    r->in_long = newline == NULL && !r->at_end;
    return !r->in_long;
}

/* The next line without its newline; false at the end. *too_long: it was dropped. */
static bool
next_line(struct trace_reader *r, struct span *line, bool *too_long)
{
    size_t seen = 0;

    for (;;) {
        const char *at = r->buffer + r->begin;
        size_t n = r->end - r->begin;
        const char *newline = n > seen ? memchr(at + seen, '\n', n - seen) : NULL;
        size_t length = newline ? (size_t)(newline - at) : n;

        if (newline == NULL && r->at_end && n == 0 && !r->in_long)
            return false;
        *too_long = r->in_long || length > LINE_MOST;
        if (*too_long && drop_long(r, newline))
            return true;
        if (!*too_long && (newline != NULL || r->at_end)) {
            *line = span_of(at, length);
            r->begin += length + (newline != NULL);
            return true;
        }
        seen = r->end - r->begin;
        fill(r);
    }
}

bool
trace_reader_next(struct trace_reader *r, struct trace_line *out)
{
    struct span line;
    bool too_long;

    while (next_line(r, &line, &too_long)) {
        enum trace_verdict v = too_long ? TRACE_PROSE : trace_line_parse(line, out);

        r->lines++;
        if (v == TRACE_OK)
            return true;
        if (r->skipped[v]++ == 0)
            r->first_skipped[v] = r->lines;
    }
    return false;
}

uint64_t
trace_reader_lines(const struct trace_reader *r)
{
    return r->lines;
}

uint64_t
trace_reader_skipped(const struct trace_reader *r, enum trace_verdict v)
{
    return r->skipped[v];
}

uint64_t
trace_reader_first_skipped(const struct trace_reader *r, enum trace_verdict v)
{
    return r->first_skipped[v];
}

uint64_t
trace_reader_bytes(const struct trace_reader *r, uint64_t *size)
{
    *size = r->size;
    return r->bytes;
}

const char *
trace_reader_fault(const struct trace_reader *r)
{
    return r->fault;
}

void
trace_reader_close(struct trace_reader **held)
{
    struct trace_reader *r = *held;

    if (r == NULL)
        return;
    CHECK_OBJ(r, MAGIC);
    *held = NULL;
    if (r->fd > STDIN_FILENO)
        close(r->fd);
    coding_free(&r->coding);
    FREE_OBJ(r);
}
