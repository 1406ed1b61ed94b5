/* test_h1_frame - where bodies end (RFC 9112 sections 6, 7 and 9.3). */
#include <setjmp.h>
#include <stdio.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "http/h1_frame.h"
#include "http/h1_write.h"

static struct arena arena;
static struct framed framed;
static enum h1_reason why;

static int
open_arena(void **state)
{
    arena_init(&arena, NULL, 0);
    return 0;
}

static int
close_arena(void **state)
{
    arena_free(&arena);
    return 0;
}

/* "Name: value\r\n" lines, well-formed ones: the parser has its own tests. */
static struct fields
fields_of(const char *lines)
{
    struct span rest = span_str(lines);
    struct fields f = {0};

    while (rest.n > 0) {
        struct span line = span_first(rest, span_index(rest, '\r'));
        size_t colon = span_index(line, ':');

        fields_add(&f, &arena, span_first(line, colon), span_trim(span_skip(line, colon + 1)));
        rest = span_skip(rest, line.n + 2);
    }
    return f;
}

static enum h1_result
frame_request(enum method m, unsigned minor, const char *lines)
{
    struct request_head r = {.method = m, .minor = minor, .fields = fields_of(lines)};

    return h1_frame_request(&r, &framed, &why);
}

static enum h1_result
frame_response(enum method m, unsigned status, const char *lines)
{
    struct response_head r = {.status = status, .minor = 1, .fields = fields_of(lines)};

    return h1_frame_response(&r, m, &framed, &why);
}

#define TE "Transfer-Encoding: "
#define CL "Content-Length: "

static void
assert_request_bad(const char *lines, enum h1_reason reason)
{
    if (frame_request(METHOD_POST, 1, lines) != H1_BAD || why != reason)
        fail_msg("%s: reason %d", lines, (int)why);
}

static void
assert_request_length(const char *lines, uint64_t length)
{
    assert_int_equal(frame_request(METHOD_POST, 1, lines), H1_OK);
    assert_int_equal(framed.how, FRAMING_LENGTH);
    assert_int_equal(framed.length, length);
}

static void
assert_framed(enum framing how, bool must_close)
{
    assert_int_equal(framed.how, how);
    assert_int_equal(framed.must_close, must_close);
}

/* ---- requests ---- */

/* RFC 9112 section 6.3 */
static void
content_length_is_plain_digits(void **state)
{
    static const char *const wrong[] = {
        CL "+5\r\n",
        CL "-5\r\n",
        CL "0x5\r\n",
        CL "5 5\r\n",
        CL "\r\n",
        CL "5;x\r\n",
        CL "1_0\r\n",
        CL "5.0\r\n",
        CL "18446744073709551621\r\n",
        CL "4611686018427387905\r\n",
        CL "5\x0b\r\n",
        CL "\r\n" CL "5\r\n",
        CL "5,\r\n",
        CL ",5\r\n",
        CL "5,,5\r\n",
        CL "\"5\"\r\n",
    };

    assert_request_length(CL "5\r\n", 5);
    assert_request_length(CL "005\r\n", 5);
    assert_request_length(CL "0\r\n", 0);
    assert_request_length(CL "4611686018427387904\r\n", UINT64_C(1) << 62);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_request_bad(wrong[i], H1_BAD_LENGTH);
}

static void
equal_lengths_are_one_and_others_are_refused(void **state)
{
    assert_request_length(CL "5\r\n" CL "5\r\n", 5);
    assert_request_length(CL "5 , 5\r\n", 5);
    assert_request_bad(CL "5\r\n" CL "6\r\n", H1_BAD_LENGTH);
    assert_request_bad(CL "5, 6\r\n", H1_BAD_LENGTH);
    assert_request_bad(CL "5\r\n" CL "5x\r\n", H1_BAD_LENGTH);
}

static void
without_either_field_a_request_has_no_body(void **state)
{
    assert_int_equal(frame_request(METHOD_POST, 1, "Content-Type: a/b\r\n"), H1_OK);
    assert_framed(FRAMING_NONE, false);
}

/* RFC 9112 section 6.1 */
static void
chunked_must_be_the_only_coding_of_a_request(void **state)
{
    static const char *const good[] = {TE "chunked\r\n", TE "CHUNKED\r\n", TE ",chunked\r\n",
                                       TE ", chunked ,\r\n", TE "\r\n" TE "chunked\r\n"};
    static const char *const malformed[] = {
        TE "chunked, chunked\r\n",
        TE "chunked\r\n" TE "chunked\r\n",
        TE "chunked, identity\r\n",
        TE "\"chunked\"\r\n",
        TE "chunked;q=1\r\n",
        TE "\r\n",
        TE ",\r\n",
        TE "\xa0"
           "chunked\r\n",
        TE "gzip, \"chunked\"\r\n",
        TE "chun ked\r\n",
    };

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(frame_request(METHOD_POST, 1, good[i]), H1_OK);
        assert_framed(FRAMING_CHUNKED, false);
    }
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++)
        assert_request_bad(malformed[i], H1_BAD_TRANSFER_ENCODING);
    assert_request_bad(TE "gzip, chunked\r\n", H1_UNKNOWN_TRANSFER_CODING);
    assert_request_bad(TE "xchunked\r\n", H1_UNKNOWN_TRANSFER_CODING);
    assert_request_bad(TE "identity\r\n", H1_UNKNOWN_TRANSFER_CODING);
}

static void
two_framings_in_one_request_are_refused(void **state)
{
    assert_request_bad(CL "5\r\n" TE "chunked\r\n", H1_FRAMING_AMBIGUOUS);
    assert_request_bad(TE "chunked\r\n" CL "5\r\n", H1_FRAMING_AMBIGUOUS);
    assert_request_bad(TE "xchunked\r\n" CL "5\r\n", H1_FRAMING_AMBIGUOUS);
    assert_int_equal(frame_request(METHOD_POST, 0, TE "chunked\r\n"), H1_BAD);
}

/* RFC 9110 section 9.3.6 */
static void
connect_announces_no_body(void **state)
{
    assert_int_equal(frame_request(METHOD_CONNECT, 1, ""), H1_OK);
    assert_framed(FRAMING_NONE, false);
    assert_int_equal(frame_request(METHOD_CONNECT, 1, CL "0\r\n"), H1_OK);
    assert_framed(FRAMING_NONE, false);
    assert_int_equal(frame_request(METHOD_CONNECT, 1, CL "5\r\n"), H1_BAD);
    assert_int_equal(frame_request(METHOD_CONNECT, 1, TE "chunked\r\n"), H1_BAD);
}

/* ---- responses ---- */

static void
a_response_is_framed_in_the_order_of_the_standard(void **state)
{
    assert_int_equal(frame_response(METHOD_GET, 200, CL "5\r\n"), H1_OK);
    assert_framed(FRAMING_LENGTH, false);
    assert_int_equal(framed.length, 5);
    assert_int_equal(frame_response(METHOD_GET, 200, TE "chunked\r\n"), H1_OK);
    assert_framed(FRAMING_CHUNKED, false);
    assert_int_equal(frame_response(METHOD_GET, 200, ""), H1_OK);
    assert_framed(FRAMING_CLOSE, false);
}

/* RFC 9112 section 6.3 items 1 and 2 */
static void
some_responses_never_have_a_body(void **state)
{
    static const struct {
        enum method m;
        unsigned status;
        bool must_close;
    } rows[] = {
        {METHOD_HEAD, 200, false}, {METHOD_GET, 304, false},    {METHOD_GET, 204, true},
        {METHOD_GET, 103, true},   {METHOD_CONNECT, 200, true}, {METHOD_HEAD, 204, true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(frame_response(rows[i].m, rows[i].status, CL "5\r\n"), H1_OK);
        assert_framed(FRAMING_NONE, rows[i].must_close);
        assert_int_equal(frame_response(rows[i].m, rows[i].status, ""), H1_OK);
        assert_framed(FRAMING_NONE, false);
    }
    assert_int_equal(frame_response(METHOD_GET, 204, CL "0\r\n"), H1_OK);
    assert_framed(FRAMING_NONE, false);
    assert_int_equal(frame_response(METHOD_CONNECT, 403, CL "5\r\n"), H1_OK);
    assert_framed(FRAMING_LENGTH, false);
}

static void
a_doubtful_response_costs_its_connection(void **state)
{
    struct response_head old = {.status = 200, .minor = 0, .fields = fields_of(TE "chunked\r\n")};

    assert_int_equal(frame_response(METHOD_GET, 200, CL "3\r\n" TE "chunked\r\n"), H1_OK);
    assert_framed(FRAMING_CHUNKED, true);
    assert_int_equal(h1_frame_response(&old, METHOD_GET, &framed, &why), H1_OK);
    assert_framed(FRAMING_CHUNKED, true);
}

/* By an application and once more by its server; RFC 9112 section 6.1 forbids to chunk twice. */
static void
chunked_said_twice_is_chunked_once_in_a_response(void **state)
{
    static const char *const twice[] = {TE "chunked\r\n" TE "chunked\r\n",
                                        TE "chunked, chunked\r\n",
                                        TE "chunked\r\n" TE "\r\n" TE "Chunked\r\n" CL "5\r\n"};

    for (size_t i = 0; i < sizeof twice / sizeof twice[0]; i++) {
        assert_int_equal(frame_response(METHOD_GET, 200, twice[i]), H1_OK);
        assert_framed(FRAMING_CHUNKED, true);
    }
}

/* RFC 2616 section 3.6 */
static void
identity_counts_for_nothing_in_a_response(void **state)
{
    assert_int_equal(frame_response(METHOD_GET, 200, TE "identity\r\n" CL "5\r\n"), H1_OK);
    assert_framed(FRAMING_LENGTH, true);
    assert_int_equal(framed.length, 5);
    assert_int_equal(frame_response(METHOD_GET, 200, TE "Identity\r\n"), H1_OK);
    assert_framed(FRAMING_CLOSE, true);
    assert_int_equal(frame_response(METHOD_HEAD, 200, TE "identity\r\n" CL "5\r\n"), H1_OK);
    assert_framed(FRAMING_NONE, true);
    assert_int_equal(frame_response(METHOD_GET, 200, TE "identity, chunked\r\n"), H1_BAD);
    assert_int_equal(frame_response(METHOD_GET, 200, TE "chunked, identity\r\n"), H1_BAD);
    assert_int_equal(frame_response(METHOD_GET, 200, TE "identity;q=1\r\n"), H1_BAD);
}

/* RFC 9112 section 2.2: read, but whoever wrote it may have meant otherwise. */
static void
a_head_with_bare_line_feeds_costs_its_connection(void **state)
{
    static const enum method methods[] = {METHOD_GET, METHOD_HEAD, METHOD_CONNECT};
    struct response_head r = {
        .status = 200, .minor = 1, .bare_lf = true, .fields = fields_of(CL "0\r\n")};

    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        assert_int_equal(h1_frame_response(&r, methods[i], &framed, &why), H1_OK);
        assert_true(framed.must_close);
    }
}

static void
undecidable_responses_are_refused(void **state)
{
    assert_int_equal(frame_response(METHOD_GET, 200, CL "5\r\n" CL "3\r\n"), H1_BAD);
    assert_int_equal(frame_response(METHOD_GET, 200, CL "+5\r\n"), H1_BAD);
    assert_int_equal(frame_response(METHOD_GET, 200, CL "x\r\n" TE "chunked\r\n"), H1_BAD);
    assert_int_equal(frame_response(METHOD_GET, 200, TE "xchunked\r\n"), H1_BAD);
    assert_int_equal(frame_response(METHOD_GET, 200, TE "chunked, gzip\r\n"), H1_BAD);
    assert_int_equal(frame_response(METHOD_GET, 200, TE "chunked, gzip, chunked\r\n"), H1_BAD);
    assert_int_equal(frame_response(METHOD_GET, 200, TE "\r\n"), H1_BAD);
    assert_int_equal(frame_response(METHOD_GET, 200, TE "chunked\r\n" TE "xchunked\r\n"), H1_BAD);
    assert_int_equal(frame_response(METHOD_GET, 200, CL "5\r\n" CL "5\r\n"), H1_OK);
}

/* ---- persistence ---- */

static bool
request_persists(unsigned minor, const char *lines)
{
    struct request_head r = {.minor = minor, .fields = fields_of(lines)};

    return h1_keeps_alive_request(&r);
}

static bool
response_persists(unsigned minor, const char *lines)
{
    struct response_head r = {.minor = minor, .fields = fields_of(lines)};

    return h1_keeps_alive_response(&r);
}

/* RFC 9112 section 9.3 */
static void
connections_persist_as_their_sender_says(void **state)
{
    assert_true(request_persists(1, ""));
    assert_false(request_persists(1, "Connection: foo, Close\r\n"));
    assert_false(request_persists(0, ""));
    assert_true(request_persists(0, "Connection: Keep-Alive\r\n"));
    assert_true(request_persists(0, "Proxy-Connection: keep-alive\r\n"));
    assert_false(request_persists(0, "Connection: keep-alive, close\r\n"));
    assert_true(request_persists(1, "Proxy-Connection: close\r\n"));
    assert_true(response_persists(1, ""));
    assert_false(response_persists(1, "Connection: close\r\n"));
    assert_false(response_persists(0, "Proxy-Connection: keep-alive\r\n"));
    assert_true(response_persists(0, "Connection: keep-alive\r\n"));
}

/* ---- chunked coding ---- */

static struct buf body, trailer;
static struct span unread;

/* Feeds text in pieces of `piece` bytes; what is behind the end is left in unread. */
static enum chunked_result
decode_from(enum h1_sender sender, struct span text, size_t piece)
{
    struct chunked c;

    buf_free(&body);
    buf_free(&trailer);
    chunked_start(&c, sender);
    while (text.n > 0) {
        struct span in = span_first(text, piece), data;
        enum chunked_result r;

        while ((r = chunked_next(&c, &in, &data, &trailer)) == CHUNKED_DATA) {
            assert_true(data.n > 0);
            buf_add(&body, data);
        }
        text = span_of(in.at, (size_t)(text.at + text.n - in.at));
        if (r != CHUNKED_MORE) {
            unread = text;
            return r;
        }
        assert_int_equal(in.n, 0);
    }
    return CHUNKED_MORE;
}

static enum chunked_result
decode(struct span text, size_t piece)
{
    return decode_from(H1_CLIENT, text, piece);
}

static void
assert_decodes_from(enum h1_sender sender, struct span text, const char *want)
{
    for (size_t piece = 1; piece <= text.n; piece++) {
        assert_int_equal(decode_from(sender, text, piece), CHUNKED_END);
        assert_true(span_eq(buf_span(&body), span_str(want)));
    }
}

static void
assert_decodes(struct span text, const char *want)
{
    assert_decodes_from(H1_CLIENT, text, want);
    assert_decodes_from(H1_ORIGIN, text, want);
}

static void
assert_broken_from(enum h1_sender sender, struct span text)
{
    for (size_t piece = 1; piece <= text.n; piece++) {
        if (decode_from(sender, text, piece) != CHUNKED_BAD)
            fail_msg("not refused: %.*s", SPAN_ARG(text));
    }
}

/* RFC 9112 section 7.1 */
static void
chunks_are_read_however_they_arrive(void **state)
{
    assert_decodes(SPAN("5\r\nhello\r\n0\r\n\r\n"), "hello");
    assert_decodes(SPAN("00005\r\nhello\r\n1\r\n!\r\n000\r\n\r\n"), "hello!");
    assert_decodes(SPAN("a\r\n0123456789\r\n0\r\n\r\n"), "0123456789");
    assert_decodes(SPAN("A\r\n0123\r\n6789\r\n0\r\n\r\n"), "0123\r\n6789");
    assert_decodes(SPAN("0\r\n\r\n"), "");
}

static void
what_follows_the_last_chunk_is_not_ours(void **state)
{
    struct span text = SPAN("1\r\na\r\n0\r\n\r\nGET ");

    assert_int_equal(decode(text, text.n), CHUNKED_END);
    assert_true(span_eq(unread, SPAN("GET ")));
}

static void
every_cut_of_a_chunked_body_is_incomplete(void **state)
{
    struct span text = SPAN("5;a=\"b\"\r\nhello\r\n0;z\r\nX: 1\r\n\r\n");

    for (size_t n = 1; n < text.n; n++)
        assert_int_equal(decode(span_first(text, n), n), CHUNKED_MORE);
}

/* RFC 9112 section 7.1.1: ignored, but read as what they are. */
static void
extensions_are_skipped(void **state)
{
    assert_decodes(SPAN("5;a=b;c=\"d;e\"\r\nhello\r\n0;z\r\n\r\n"), "hello");
    assert_decodes(SPAN("5 \t;a\r\nhello\r\n0\r\n\r\n"), "hello");
    assert_decodes(SPAN("5;a=\"x\\\"y;\\\\\"\r\nhello\r\n0\r\n\r\n"), "hello");
}

static void
broken_chunks_are_refused(void **state)
{
    static const struct span wrong[] = {
        {"5;a\nhello\r\n0\r\n\r\n", 18},
        {"5;a\r\rX\r\nhello\r\n0\r\n\r\n", 21},
        {"5\r\r;ABCD\r\n", 10},
        {"5;a\0\r\n", 6},
        {"5;a=\"x\r\nhello", 13},
        {"5;a=\"x\\\r\nhello", 14},
        {"5\nhello\r\n", 9},
        {"5\r\nhello\n", 9},
        {"5\r\nhelloXX", 10},
        {"5\r\nhello\rX", 10},
        {"0x5\r\n", 5},
        {"+5\r\n", 4},
        {"-5\r\n", 4},
        {" 5\r\n", 4},
        {"5 0\r\n", 5},
        {"5 \n", 3},
        {"5 \r\r\n", 5},
        {"\r\n", 2},
        {";a\r\n", 4},
        {"5g\r\n", 4},
        {"0_5\r\n", 5},
        {"10000000000000005\r\n", 19},
        {"7fffffffffffffff\r\n", 18},
        {"0\r\n\n", 4},
        {"0\n\n", 3},
        {"0\r\n\rX", 5},
        {"0\r\nX: a\nY: b\r\n", 14},
        {"0\r\nX: a\0\r\n", 10},
        {"0\r\nX: a\rb\r\n", 11},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_broken_from(H1_CLIENT, wrong[i]);
        assert_broken_from(H1_ORIGIN, wrong[i]);
    }
}

/* As old servers and small devices send them. */
static void
padded_sizes_are_taken_from_origins_only(void **state)
{
    struct span padded = SPAN("5   \r\nhello\r\n1\t \r\n!\r\n0  \r\n\r\n");

    assert_decodes_from(H1_ORIGIN, padded, "hello!");
    assert_broken_from(H1_CLIENT, padded);
    assert_broken_from(H1_CLIENT, SPAN("0 \r\n\r\n"));
}

static void
a_broken_body_stays_broken(void **state)
{
    struct span in = SPAN("x"), data;
    struct chunked c;

    chunked_start(&c, H1_ORIGIN);
    assert_int_equal(chunked_next(&c, &in, &data, NULL), CHUNKED_BAD);
    in = SPAN("0\r\n\r\n");
    assert_int_equal(chunked_next(&c, &in, &data, NULL), CHUNKED_BAD);
    in = SPAN("");
    assert_int_equal(chunked_next(&c, &in, &data, NULL), CHUNKED_BAD);
}

/* RFC 9110 section 6.5.1 */
static void
trailers_without_framing_or_credentials_are_kept(void **state)
{
    struct span text = SPAN("0\r\nX-T: 1\r\nContent-Length: 9\r\nHost: e\r\nSet-Cookie: a\r\n"
                            "Content-MD5: x\r\nx-u:2\r\n\r\n");

    for (size_t piece = 1; piece <= text.n; piece++) {
        assert_int_equal(decode(text, piece), CHUNKED_END);
        assert_true(span_eq(buf_span(&trailer), SPAN("X-T: 1\r\nx-u:2\r\n")));
    }
}

/* RFC 9112 section 7.1.2: a trailer section is field lines; anything else is broken framing from a
 * client, and is passed over from an origin, whose body is whole by then. */
static void
a_trailer_line_that_is_no_field_is_passed_over_from_origins_only(void **state)
{
    static const char *const LINES[] = {"no field", ": x", "Y :1", "\"a: b"};
    char text[64];

    for (size_t i = 0; i < sizeof LINES / sizeof LINES[0]; i++) {
        int n = snprintf(text, sizeof text, "0\r\nA: 1\r\n%s\r\nB: 2\r\n\r\n", LINES[i]);
        struct span section = span_of(text, (size_t)n);

        assert_broken_from(H1_CLIENT, section);
        assert_decodes_from(H1_ORIGIN, section, "");
        assert_true(span_eq(buf_span(&trailer), SPAN("A: 1\r\nB: 2\r\n")));
    }
}

/* RFC 9112 section 2.2 lets a bare LF end the lines of a head, not those behind a body. */
static void
a_trailer_section_is_strict_about_its_line_ends(void **state)
{
    static const char *const SECTIONS[] = {"0\r\nA: 1\n\r\n",         "0\r\nA: 1\r\n\n",
                                           "0\r\nA: a\rb\r\n\r\n",    "0\r\na\x01: b\r\n\r\n",
                                           "0\r\nA: 1\r\n b\r\n\r\n", "0\r\n\tb\r\n\r\n"};

    for (size_t i = 0; i < sizeof SECTIONS / sizeof SECTIONS[0]; i++) {
        assert_broken_from(H1_CLIENT, span_str(SECTIONS[i]));
        assert_broken_from(H1_ORIGIN, span_str(SECTIONS[i]));
    }
}

static void
size_lines_and_trailers_are_bounded(void **state)
{
    struct buf b = {0};

    BUF_ADD(&b, "5;");
    for (int i = 0; i < 100000; i++)
        buf_add_char(&b, 'a');
    assert_int_equal(decode(buf_span(&b), 4096), CHUNKED_BAD);
    buf_free(&b);
    for (int i = 0; i < 100000; i++)
        buf_add_char(&b, '0');
    assert_int_equal(decode(buf_span(&b), 4096), CHUNKED_BAD);
    buf_free(&b);
    BUF_ADD(&b, "0\r\n");
    while (b.n < 1000000)
        BUF_ADD(&b, "X: y\r\n");
    assert_int_equal(decode(buf_span(&b), 4096), CHUNKED_BAD);
    assert_true(trailer.n < 100000);
    buf_free(&b);
}

static void
chunks_of_one_byte_are_fine(void **state)
{
    struct buf b = {0};

    for (int i = 0; i < 20000; i++)
        BUF_ADD(&b, "1\r\nx\r\n");
    BUF_ADD(&b, "0\r\n\r\n");
    assert_int_equal(decode(buf_span(&b), b.n), CHUNKED_END);
    assert_int_equal(body.n, 20000);
    buf_free(&b);
}

static void
endless_framing_around_little_body_is_refused(void **state)
{
    static char line[4000];
    enum chunked_result r = CHUNKED_MORE;
    struct chunked c;
    unsigned n = 0;

    memset(line, 'a', sizeof line);
    memcpy(line, "1;", 2);
    memcpy(line + sizeof line - 5, "\r\nx\r\n", 5);
    chunked_start(&c, H1_ORIGIN);
    while (r != CHUNKED_BAD && n++ < 20000) {
        struct span in = span_of(line, sizeof line), data;

        while ((r = chunked_next(&c, &in, &data, NULL)) == CHUNKED_DATA)
            ;
    }
    assert_int_equal(r, CHUNKED_BAD);
    assert_true(n > 1000);
}

static void
a_chunk_head_is_lower_case_hex(void **state)
{
    char out[20];

    assert_int_equal(h1_chunk_head(out, 0x1a2b), 6);
    assert_memory_equal(out, "1a2b\r\n", 6);
    assert_int_equal(h1_chunk_head(out, 0), 3);
    assert_memory_equal(out, "0\r\n", 3);
    assert_int_equal(h1_chunk_head(out, UINT64_MAX), 18);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, open_arena, close_arena)

static int
free_buffers(void **state)
{
    buf_free(&body);
    buf_free(&trailer);
    return 0;
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(content_length_is_plain_digits),
        CASE(equal_lengths_are_one_and_others_are_refused),
        CASE(without_either_field_a_request_has_no_body),
        CASE(chunked_must_be_the_only_coding_of_a_request),
        CASE(two_framings_in_one_request_are_refused),
        CASE(connect_announces_no_body),
        CASE(a_response_is_framed_in_the_order_of_the_standard),
        CASE(some_responses_never_have_a_body),
        CASE(a_doubtful_response_costs_its_connection),
        CASE(chunked_said_twice_is_chunked_once_in_a_response),
        CASE(identity_counts_for_nothing_in_a_response),
        CASE(a_head_with_bare_line_feeds_costs_its_connection),
        CASE(undecidable_responses_are_refused),
        CASE(connections_persist_as_their_sender_says),
        CASE(chunks_are_read_however_they_arrive),
        CASE(what_follows_the_last_chunk_is_not_ours),
        CASE(every_cut_of_a_chunked_body_is_incomplete),
        CASE(extensions_are_skipped),
        CASE(broken_chunks_are_refused),
        CASE(a_broken_body_stays_broken),
        CASE(trailers_without_framing_or_credentials_are_kept),
        CASE(padded_sizes_are_taken_from_origins_only),
        CASE(a_trailer_line_that_is_no_field_is_passed_over_from_origins_only),
        CASE(a_trailer_section_is_strict_about_its_line_ends),
        CASE(size_lines_and_trailers_are_bounded),
        CASE(chunks_of_one_byte_are_fine),
        CASE(endless_framing_around_little_body_is_refused),
        CASE(a_chunk_head_is_lower_case_hex),
    };

    return cmocka_run_group_tests_name("h1_frame", tests, NULL, free_buffers);
}
