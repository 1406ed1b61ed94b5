/* tools/trace/trace.h - access logs and lists of requests, line by line, for replay, origin and
 * predict.
 *
 * Read are Squid's native format (with what custom formats do to it: fields between " | ", other
 * fields in front or behind, ISO or bracketed times, whole seconds), the common and combined
 * formats of web servers, and lists of `object size` and `time object size`. Which of them a line
 * is, is told by the line itself. A line that is none of them is skipped, with a reason, and never
 * ends the reading. */
#ifndef TOOLS_TRACE_TRACE_H
#define TOOLS_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

enum trace_format {
    TRACE_NATIVE,
    TRACE_COMMON,    /* combined is common with two fields more, which nobody needs here */
    TRACE_LIST,      /* object size */
    TRACE_TIMED_LIST /* time object size */
};

/* One request. The texts borrow from the line. What a format does not tell is -1, 0 or empty. */
struct trace_line {
    enum trace_format format;
    int64_t end_us; /* when it was completed (Squid) or came (common), in microseconds since the
                       epoch; -1: no time */
    int64_t duration_us;     /* -1: not told */
    int64_t bytes;           /* to the client, with the head; -1: not told */
    int status;              /* 0: none */
    struct span client;      /* an address or a name */
    struct span word;        /* TCP_MISS, TCP_MEM_HIT, NONE, UDP_MISS... */
    struct span method, url; /* url: as written; `host:port` of CONNECT; a path where the log is a
                                web server's; the object of a list */
    struct span user;        /* "-" is empty */
    struct span hierarchy, peer, type; /* HIER_DIRECT, its address, text/html */
};

enum trace_verdict {
    TRACE_OK,
    TRACE_EMPTY,    /* nothing on the line, or a comment */
    TRACE_PROSE,    /* no known layout */
    TRACE_BAD_TIME, /* a layout, but its time can't be read */
    TRACE_BAD_SIZE,
    TRACE_NO_METHOD, /* error: pseudo-URLs, no request at all */
    TRACE_NO_URL,    /* cut off, or nothing that can be asked for */
    TRACE_NOT_HTTP,  /* ICP and other protocols' lines, bytes that are no request line */
    TRACE_VERDICTS
};

/* Pure. line: without its newline. */
enum trace_verdict trace_line_parse(struct span line, struct trace_line *out);
const char *trace_verdict_text(enum trace_verdict v); /* "no known layout" */

/* When the request came: its end minus its duration; -1 without a time. */
int64_t trace_line_arrival_us(const struct trace_line *t);
bool trace_line_is_tunnel(const struct trace_line *t); /* CONNECT */
/* An answer a shared cache without limits would have kept: GET, and 200, 203, 300, 301, 304, 308,
 * 404, 410 (a 304 stands for the object it confirms). */
bool trace_line_is_cacheable(const struct trace_line *t);
bool trace_line_is_hit(const struct trace_line *t); /* its word says that it came from a cache */

/* ---- a file or stdin; plain or gzip, told by its first bytes ---- */
struct trace_reader;

/* path "-" is stdin. NULL: *why says why not. Memory does not grow with the file. */
struct trace_reader *trace_reader_open(const char *path, char *why, unsigned why_bytes);
/* The next request; false at the end. What *out borrows lasts until the next call. Lines longer
 * than 64 KB are skipped as prose. */
bool trace_reader_next(struct trace_reader *r, struct trace_line *out);
uint64_t trace_reader_lines(const struct trace_reader *r); /* so far, skipped ones included */
uint64_t trace_reader_skipped(const struct trace_reader *r, enum trace_verdict v);
/* of the first skipped line of that kind: its number, from 1; 0: none */
uint64_t trace_reader_first_skipped(const struct trace_reader *r, enum trace_verdict v);
/* Bytes read of the file and its size, for a progress bar; size 0: not known (a pipe). */
uint64_t trace_reader_bytes(const struct trace_reader *r, uint64_t *size);
/* NULL: all was read to its end; else what broke off (a cut gzip, an input error): what came before
 * counts. */
const char *trace_reader_fault(const struct trace_reader *r);
void trace_reader_close(struct trace_reader **held);

#endif
