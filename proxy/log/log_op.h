/* proxy/log/log_op.h - a compiled format is a row of these (private to proxy/log). */
#ifndef PROXY_LOG_LOG_OP_H
#define PROXY_LOG_LOG_OP_H

#include "proxy/log/access_log.h"
#include "proxy/log/log_quote.h"

enum log_code {
    LOG_LITERAL,
    LOG_CLIENT_IP,
    LOG_CLIENT_PORT,
    LOG_SERVER_IP,
    LOG_SERVER_NAME,
    LOG_SERVER_PORT,
    LOG_LOCAL_IP,
    LOG_LOCAL_PORT,
    LOG_TIME_S,
    LOG_TIME_PART,
    LOG_TIME_START,
    LOG_TIME_LOCAL,
    LOG_TIME_GMT,
    LOG_ELAPSED_MS,
    LOG_DNS_MS,
    LOG_SERVER_MS,
    LOG_METHOD,
    LOG_URL_LOGGED,
    LOG_URL,
    LOG_PATH,
    LOG_VERSION,
    LOG_SCHEME,
    LOG_HOST,
    LOG_PORT,
    LOG_STATUS,
    LOG_SERVER_STATUS,
    LOG_BYTES_BOTH,
    LOG_BYTES_OUT,
    LOG_BYTES_IN,
    LOG_HEAD_BYTES_OUT,
    LOG_RESULT,
    LOG_HIERARCHY,
    LOG_MEDIA_TYPE,
    LOG_NOBODY,
    LOG_MISSING,
    LOG_REQUEST_FIELDS,
    LOG_RESPONSE_FIELDS,
    LOG_ERROR_PAGE,
    LOG_ERROR_DETAIL,
    LOG_SEQUENCE
};

struct log_op {
    enum log_code code;
    bool quote_given; /* by %" and the like, or by the quotes or brackets around it */
    enum log_quote quote;
    bool left, zero;
    unsigned width, most; /* most 0: unlimited */
    struct span text;     /* of a literal; the argument in braces, else n 0 */
    enum field_id field;  /* of %{Name}>h */
};

struct log_format {
    bool json, strip_query;
    unsigned n, cap;
    struct log_op *ops;
    char *text; /* literals and arguments borrow from it */
};

void log_json_write(const struct log_format *f, const struct log_record *r, struct buf *out);
struct span log_url_logged(const struct log_format *f, struct span url);
struct span log_media_type(struct span content_type);

#endif
