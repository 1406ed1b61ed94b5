/* log_record.c - what of a record is logged, in whatever form. */
#include "proxy/log/log_op.h"

/* Query terms are private: strip_query_terms leaves their question mark, to show that there were
 * some. */
struct span
log_url_logged(const struct log_format *f, struct span url)
{
    return f->strip_query ? span_first(url, span_index(url, '?') + 1) : url;
}

/* Without parameters, as Squid's %mt. */
struct span
log_media_type(struct span content_type)
{
    size_t n = span_index(content_type, ';');

    content_type = span_first(content_type, n);
    content_type = span_first(content_type, span_index(content_type, ' '));
    return span_first(content_type, span_index(content_type, '\t'));
}
