/* proxy/log/access_log.h - one record of plain values per request -> squid, common, combined, json
 * or a custom line.
 *
 * A record is written into the worker's buffer (access_log_write) and leaves in blocks of up to 64
 * KB, at the latest after a second (access_log_tick), on an offload thread: a slow disk or a dead
 * pipe never blocks traffic (the queue is bounded; what is dropped is counted and said in the event
 * log). Rotation (access_log_reopen) loses, tears and doubles no line; at an orderly stop
 * everything is written. */
#ifndef PROXY_LOG_ACCESS_LOG_H
#define PROXY_LOG_ACCESS_LOG_H

#include "base/addr.h"
#include "base/buf.h"
#include "conf/conf.h"
#include "http/message.h"

struct log_record {
    int64_t end_wall_ms; /* completion time */
    int64_t elapsed_us;
    struct addr client, local; /* peer and our end */
    struct addr server;        /* AF_UNSPEC: none */
    const char *result;        /* "TCP_MISS", with suffix: "TCP_MISS_ABORTED" */
    unsigned status;           /* sent to the client; 0: nothing was sent */
    unsigned server_status;    /* from the origin; 0 none */
    uint64_t bytes_out;        /* to the client, heads included */
    uint64_t bytes_in;         /* request, head and body */
    uint64_t body_bytes_out;
    struct span method, url; /* url as Squid logs it: canonical URI; "host:port" for CONNECT;
                                "error:invalid-request" when unparsable */
    struct span path;
    unsigned minor;                       /* request HTTP/1.minor */
    const char *hierarchy;                /* "HIER_NONE", "HIER_DIRECT", "ORIGINAL_DST" */
    struct span server_host;              /* name asked for, for %<A */
    struct span content_type;             /* "-" when empty */
    const struct fields *request_fields;  /* may be NULL: %{Name}>h */
    const struct fields *response_fields; /* may be NULL: %{Name}<h */
    const char *error_page;               /* ERR_..., NULL: none: %err_code */
    const char *error_detail;             /* errno name or reason, NULL: %err_detail */
    int64_t dns_us, server_us;            /* -1: none: %dt, %<tt */
    uint64_t sequence;
    const char *port_name;
};

struct log_format; /* a compiled format */
/* Built-in names: squid common combined referrer useragent json. Problems as "file:line: logformat:
 * ..." lines in errors. */
unsigned log_format_new(const struct conf *c, const char *name, struct buf *errors,
                        struct log_format **out);
void log_format_free(struct log_format **f);
void log_format_write(const struct log_format *f, const struct log_record *r,
                      struct buf *out); /* one line with '\n' */

struct access_log; /* one destination, shared by the workers */
struct access_log *
access_log_open(const char *where, char *error,
                size_t n_error); /* NULL and a sentence in error when it can't be opened */
void access_log_close(struct access_log **l); /* writes everything out */
bool access_log_reopen(
    struct access_log *l); /* after a rename; false: keeps the old descriptor and says so */
bool access_log_rotate(
    struct access_log *l,
    int keep); /* logfile_rotate: renames to .0 .1 ... keep, then reopens; keep 0: only reopens */

struct access_log_buffer; /* one worker's lines for one destination */
struct access_log_buffer *access_log_buffer_new(struct access_log *l);
void access_log_buffer_free(struct access_log_buffer **b); /* flushes */
struct buf *access_log_buffer_lines(
    struct access_log_buffer *b); /* append whole lines here, then call .._wrote */
void access_log_buffer_wrote(struct access_log_buffer *b); /* hands a block over when it is full */
void access_log_buffer_flush(struct access_log_buffer *b); /* timer, rotation, stop */

#endif
