/* http/message.h - heads as plain data. All spans borrow from what was parsed or from the arena. */
#ifndef HTTP_MESSAGE_H
#define HTTP_MESSAGE_H

#include "http/field.h"
#include "http/method.h"
#include "http/uri.h"

struct request_head {
    enum method method;
    struct span method_text;
    struct span target; /* as received: what goes on, is logged and compared is uri */
    struct uri uri;     /* of the target; filled by h1_parse_request */
    unsigned minor;     /* HTTP/1.minor */
    struct fields fields;
};

struct response_head {
    unsigned status, minor; /* status: 100 to 999 */
    bool bare_lf;           /* some line of it ended in LF alone */
    struct span reason;
    struct fields fields;
};

#endif
