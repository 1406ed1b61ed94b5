/* proxy/log/log_sinks.h - the access logs of one configuration: where, in which form, on which
 * condition. Counted: the last worker to drop them closes them. */
#ifndef PROXY_LOG_LOG_SINKS_H
#define PROXY_LOG_LOG_SINKS_H

#include "base/ref.h"
#include "proxy/access/acl.h"
#include "proxy/log/access_log.h"

struct log_sink {
    struct access_log *log; /* NULL: none, what comes here is in no log behind it either */
    struct log_format *format;
    struct acl_cond *condition; /* NULL: always */
};

struct log_sinks {
    struct ref refs;
    struct acl_list *allowed; /* log_access; NULL: everything is logged */
    bool masks_clients;       /* only so many bits of their addresses are logged: */
    unsigned v4_bits, v6_bits;
    unsigned n;
    struct log_sink at[];
};

struct log_sinks *log_sinks_new(unsigned n);
void log_sinks_ref(struct log_sinks *s);
void log_sinks_unref(struct log_sinks **held);

/* One worker's side: a buffer for each sink. */
struct log_writer;
struct log_writer *log_writer_new(struct log_sinks *s); /* takes a reference of its own */
void log_writer_free(struct log_writer **w);            /* flushes */
void log_writer_write(struct log_writer *w, const struct log_record *r, const struct acl_facts *f);
void log_writer_flush(struct log_writer *w);

#endif
