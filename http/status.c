/* http/status.c - status codes.
 *
 * What has a name here is what this proxy claims to understand; must-understand (RFC 9111 section
 * 5.2.2.3) and the reason phrases it writes both hang on that one list. */
#include "http/status.h"

#define FIRST_STATUS 100u
#define LAST_STATUS 599u

#define NAMED(code, reason) [code - FIRST_STATUS] = {reason, sizeof(reason) - 1}

static const struct span reasons[LAST_STATUS - FIRST_STATUS + 1] = {
    NAMED(100, "Continue"),
    NAMED(101, "Switching Protocols"),
    NAMED(102, "Processing"),
    NAMED(103, "Early Hints"),
    NAMED(200, "OK"),
    NAMED(201, "Created"),
    NAMED(202, "Accepted"),
    NAMED(203, "Non-Authoritative Information"),
    NAMED(204, "No Content"),
    NAMED(205, "Reset Content"),
    NAMED(206, "Partial Content"),
    NAMED(207, "Multi-Status"),
    NAMED(300, "Multiple Choices"),
    NAMED(301, "Moved Permanently"),
    NAMED(302, "Found"),
    NAMED(303, "See Other"),
    NAMED(304, "Not Modified"),
    NAMED(305, "Use Proxy"),
    NAMED(307, "Temporary Redirect"),
    NAMED(308, "Permanent Redirect"),
    NAMED(400, "Bad Request"),
    NAMED(401, "Unauthorized"),
    NAMED(402, "Payment Required"),
    NAMED(403, "Forbidden"),
    NAMED(404, "Not Found"),
    NAMED(405, "Method Not Allowed"),
    NAMED(406, "Not Acceptable"),
    NAMED(407, "Proxy Authentication Required"),
    NAMED(408, "Request Timeout"),
    NAMED(409, "Conflict"),
    NAMED(410, "Gone"),
    NAMED(411, "Length Required"),
    NAMED(412, "Precondition Failed"),
    NAMED(413, "Content Too Large"),
    NAMED(414, "URI Too Long"),
    NAMED(415, "Unsupported Media Type"),
    NAMED(416, "Range Not Satisfiable"),
    NAMED(417, "Expectation Failed"),
    NAMED(421, "Misdirected Request"),
    NAMED(422, "Unprocessable Content"),
    NAMED(423, "Locked"),
    NAMED(424, "Failed Dependency"),
    NAMED(425, "Too Early"),
    NAMED(426, "Upgrade Required"),
    NAMED(428, "Precondition Required"),
    NAMED(429, "Too Many Requests"),
    NAMED(431, "Request Header Fields Too Large"),
    NAMED(451, "Unavailable For Legal Reasons"),
    NAMED(500, "Internal Server Error"),
    NAMED(501, "Not Implemented"),
    NAMED(502, "Bad Gateway"),
    NAMED(503, "Service Unavailable"),
    NAMED(504, "Gateway Timeout"),
    NAMED(505, "HTTP Version Not Supported"),
    NAMED(507, "Insufficient Storage"),
    NAMED(508, "Loop Detected"),
    NAMED(511, "Network Authentication Required"),
};

bool
status_is_known(unsigned status)
{
    return status >= FIRST_STATUS && status <= LAST_STATUS && reasons[status - FIRST_STATUS].n > 0;
}

struct span
status_reason(unsigned status)
{
    return status_is_known(status) ? reasons[status - FIRST_STATUS] : SPAN("Unknown");
}

bool
status_is_heuristically_cacheable(unsigned status)
{
    switch (status) {
    case 200:
    case 203:
    case 204:
    case 206:
    case 300:
    case 301:
    case 308:
    case 404:
    case 405:
    case 410:
    case 414:
    case 501:
        return true;
    default:
        return false;
    }
}

bool
status_has_no_body(unsigned status)
{
    return (status >= 100 && status < 200) || status == 204 || status == 304;
}
