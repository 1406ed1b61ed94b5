/* A page for people. Every inserted value is escaped; nothing of a raw head is shown. */
#include "base/clock.h"
#include "http/date.h"
#include "http/status.h"
#include "proxy/exchange/states.h"

#define SHOWN_BYTES 2000

static void
add_escaped(struct buf *b, struct span s)
{
    for (size_t i = 0; i < s.n && i < SHOWN_BYTES; i++) {
        unsigned char c = (unsigned char)s.at[i];

        switch (c) {
        case '&':
            BUF_ADD(b, "&amp;");
            break;
        case '<':
            BUF_ADD(b, "&lt;");
            break;
        case '>':
            BUF_ADD(b, "&gt;");
            break;
        case '"':
            BUF_ADD(b, "&quot;");
            break;
        case '\'':
            BUF_ADD(b, "&#39;");
            break;
        default:
            if (c < 0x20 || c >= 0x7f)
                buf_addf(b, "%%%02X", c);
            else
                buf_add_char(b, (char)c);
        }
    }
    if (s.n > SHOWN_BYTES)
        BUF_ADD(b, "...");
}

/* "<p>before VALUE after</p>", left out when there is no value. */
static void
add_line(struct buf *b, const char *before, struct span value, const char *after)
{
    if (!value.n)
        return;
    buf_addf(b, "<p>%s", before);
    add_escaped(b, value);
    buf_addf(b, "%s</p>\n", after);
}

static void
add_head(struct buf *b, unsigned status)
{
    struct span reason = status_reason(status);

    buf_addf(
        b,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%u %.*s</title>\n",
        status, SPAN_ARG(reason));
    BUF_ADD(b, "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:42em;margin:4em "
               "auto;padding:0 1em;color:#222}"
               "h1{font-size:1.4em}code{background:#eee;padding:.1em .3em;word-break:break-all}"
               "footer{color:#777;font-size:.85em;margin-top:3em}</style></head><body>\n");
    buf_addf(b, "<h1>%u %.*s</h1>\n", status, SPAN_ARG(reason));
}

void
error_page_write(struct buf *b, const struct exchange *x, enum fault why)
{
    char date[DATE_TEXT_MAX];

    date_format(clock_wall_s(), date);
    add_head(b, fault_status(why));
    buf_addf(b, "<p>%s</p>\n", fault_sentence(why));
    add_line(b, "Asked for: <code>", x->context->url, "</code>");
    add_line(b, "The system says: ", span_str(x->answer.error ? strerror(x->answer.error) : NULL),
             ".");
    add_line(b, "Detail: ", span_str(x->answer.fault_detail), "");
    add_line(b, "Questions go to ", span_str(x->context->policy->request.cache_mgr), ".");
    BUF_ADD(b, "<footer>");
    add_escaped(b, x->context->policy->visible_name);
    buf_addf(b, " (cuttle), %s, %s</footer>\n</body></html>\n", date, fault_page(why));
}
