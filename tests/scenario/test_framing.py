"""Where a message ends, asked of both sides: lengths, chunks, lines and what is too much."""
import harness
from harness import CLOSE, Client, Incomplete, Scenario, chunks, pattern, reply, storable

EVIL = "GET http://{o}/evil HTTP/1.1\r\nHost: {o}\r\n\r\n"


def bytewise(data, close=False):
    """An answer that comes a byte a write."""
    def answer(q, c):
        c.send(data, piece=1)
        if close:
            c.close()
    return answer


class Requests(Scenario):
    """One opinion about a request, or none at all."""

    def setUp(self):
        self.o = self.origin(reply(body=b"fine"))
        self.p = self.cuttle()

    def refuse(self, text, *statuses):
        """Nothing of it, nor of the request behind it, reaches the origin; the connection goes."""
        before = self.o.connections
        with Client(self.p.address) as c:
            c.send((text + EVIL).replace("{o}", self.o.authority))
            self.assertIn(c.read_response().status, statuses or (400,), text[:200])
            c.expect_close()
        self.assertEqual(self.o.connections, before, text[:200])

    def post(self, *fields, body=b"abc"):
        with Client(self.p.address) as c:
            r = c.get(self.o.url("/"), *fields, method="POST", body=body)
            self.assertEqual(r.status, 200, fields)
        return self.o.last()

    def test_a_body_under_two_framings_is_not_read_by_either(self):
        """RFC 9112 6.1: the length is exactly that of the smuggled request, or is one more."""
        body = ("0\r\n\r\n" + EVIL).replace("{o}", self.o.authority)
        for n in (len(body), len(body) + 1, 5):
            for fields in (["Content-Length: %d" % n, "Transfer-Encoding: chunked"],
                           ["Transfer-Encoding: chunked", "Content-Length: %d" % n]):
                for version in ("HTTP/1.1", "HTTP/1.0"):
                    self.refuse("POST http://{o}/ %s\r\nHost: {o}\r\n%s\r\n\r\n%s" % (
                        version, "\r\n".join(fields), body))

    def test_a_length_with_a_space_does_not_hide_beside_a_plain_one(self):
        """RFC 9112 5.1: in either order, and whether or not the two agree."""
        for lengths in (("Content-Length : 5", "Content-Length: 6"),
                        ("Content-Length: 6", "Content-Length : 5"),
                        ("Content-Length\t: 5", "Content-Length: 5"),
                        ("Content-Length: 5", "Transfer-Encoding : chunked"),
                        ("Content-Length: 5", "X: a", " Transfer-Encoding: chunked"),
                        ("Content-Length: 5", "X: a", "\tTransfer-Encoding: chunked")):
            self.refuse("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\n%s\r\n\r\nhello"
                        % "\r\n".join(lengths))

    def test_lengths_that_agree_leave_as_one(self):
        """RFC 9112 6.3 item 5."""
        for fields in (("Content-Length: 3", "Content-Length: 3"), ("Content-Length: 3, 3",),
                       ("content-length: 3", "CONTENT-LENGTH: 3,3")):
            seen = self.post(*fields)
            self.assertEqual((seen.all("Content-Length"), seen.body), (["3"], b"abc"), fields)

    def test_lengths_that_differ_end_the_connection(self):
        """The body under the longer one is a request."""
        body = EVIL.replace("{o}", self.o.authority)
        for first, second in ((len(body), 0), (0, len(body)), (len(body), len(body) - 1)):
            self.refuse("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: %d\r\n"
                        "Content-Length: %d\r\n\r\n%s" % (first, second, body))

    def test_a_line_that_ends_in_lf_alone_ends_the_connection(self):
        """RFC 9112 2.2: it is no line end here, so nobody behind us can think otherwise."""
        for text in ("GET http://{o}/ HTTP/1.1\nHost: {o}\n\n",
                     "GET http://{o}/ HTTP/1.1\r\nHost: {o}\r\nUseless: \n\n",
                     "GET http://{o}/ HTTP/1.1\r\nHost: {o}\r\nX: a\nY: b\r\n\r\n",
                     "GET http://{o}/ HTTP/1.1\r\nHost: {o}\r\n\n",
                     "GET http://{o}/ HTTP/1.1\r\nHost: {o}\n\r\n"):
            self.refuse(text)
        self.assertEqual(self.o.requests, [])

    def test_control_bytes_do_not_hide_behind_a_body(self):
        """RFC 9110 5.5, in the trailer section as well: the origin never gets a whole message."""
        for line in ("X: a\rTransfer-Encoding: chunked", "X: a\x00", "X : a", "X: a\nY: b",
                     " X: folded"):
            with Client(self.p.address) as c:
                c.send(("POST http://{o}/t HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n"
                        "\r\n1\r\nx\r\n0\r\n%s\r\n\r\n" % line).replace("{o}", self.o.authority))
                self.assertEqual(c.read_response().status, 400, line)
                c.expect_close()
        self.assertEqual(self.o.requests, [])
        self.o.faults.clear()

    def test_what_is_sent_on_is_chunked_anew(self):
        """RFC 9112 7.1.1: our own sizes, no extension, no leading zeros."""
        body = b"0003 ;x=\"y;z\"\r\nabc\r\n00000000000000002;q\r\nde\r\n0;z\r\n\r\n"
        seen = self.post("Transfer-Encoding: chunked", body=body)
        self.assertEqual(seen.body, b"abcde")
        sent = self.o.received[seen.connection]
        for text in (b";", b"0003", b"000000"):
            self.assertNotIn(text, sent[sent.index(b"\r\n\r\n"):])


class RawTargets(Scenario):
    """What curl, old browsers and links that nobody encoded send in a path or query."""
    RAW = "/caf\xe9\\x?q=\xc3\xa9\\"
    URL = "/caf%E9%5Cx?q=%C3%A9%5C"

    def test_rules_key_log_and_origin_see_one_encoded_url(self):
        o = self.origin(storable(b"fine"))
        p = self.cuttle("strip_query_terms off", access="acl no urlpath_regex ^/n\u00e9$\n"
                        "http_access deny no\nhttp_access allow all")
        for path, hit in ((self.RAW, False), (self.URL, True), (self.RAW, True)):
            r = self.get(p, o.url(path))
            self.assertEqual((r.status, r.body, r.hit), (200, b"fine", hit))
        self.assertEqual([q.target for q in o.requests], [self.URL])
        self.assertEqual([line.url for line in p.access_log(3)], [o.url(self.URL)] * 3)
        for path in ("/n\xc3\xa9", "/n%C3%A9", "/n%c3\xa9"):    # rules read escapes decoded
            self.assertEqual(self.get(p, o.url(path)).status, 403)

    def test_other_visible_characters_arrive_as_they_were_sent(self):
        """RFC 9110 7.7: a proxy changes no path that it can send on."""
        path = "/a\"<>^`{|}[]'?\"<>^`{|}[]'%zz"
        o = self.origin(reply(body=b"fine"))
        p = self.cuttle()
        self.assertEqual(self.get(p, o.url(path)).body, b"fine")
        self.assertEqual(o.last().target, path)

    def test_controls_spaces_and_odd_hosts_are_400(self):
        o = self.origin(reply())
        p = self.cuttle()
        for target in ("{o}/\x7f", "{o}/\x01", "{o}/a b", "{o}/\xe9\t", "{o}/\xe9#x", "{o}\\/",
                       "x\\@{o}/", "x\xe9@{o}/", "\xe9.test/"):
            with Client(p.address) as c:
                c.send("GET http://%s HTTP/1.1\r\nHost: x\r\n\r\n"
                       % target.replace("{o}", o.authority))
                self.assertEqual(c.read_response().status, 400, target)
        self.assertEqual(o.connections, 0)

    def test_a_url_too_long_once_encoded_is_414(self):
        """Sixteen thousand bytes may come; three times as many may not go on."""
        o = self.origin(reply(body=b"fine"))
        p = self.cuttle()
        self.assertEqual(self.get(p, o.url("/" + "\xe9" * 5000)).body, b"fine")
        self.assertEqual(o.last().target, "/" + "%E9" * 5000)
        self.assertEqual(self.get(p, o.url("/" + "\xe9" * 16_000)).status, 414)


class Expectations(Scenario):
    """RFC 9110 10.1.1, where the origin does not play along."""

    def ask(self, c, o, version="HTTP/1.1"):
        c.request("POST", o.url("/up"), "Expect: 100-continue", "Content-Length: 1000000",
                  version=version)

    def test_a_final_answer_reaches_who_still_waits_and_ends_the_connection(self):
        for status in ("417 Expectation Failed", "403 Forbidden"):
            o = self.origin(reply(status, body=b"no"), reads_bodies=False)
            with Client(self.cuttle().address) as c:
                self.ask(c, o)
                r = c.read_response()
                self.assertEqual((r.status, r.body, r.interim), (int(status[:3]), b"no", []))
                self.assertIn("close", r.tokens("Connection"))
                c.expect_close()
            self.assertEqual(o.received[0].split(b"\r\n\r\n")[1], b"", "a body nobody asked for")

    def test_an_http_1_0_origin_gets_the_body_without_saying_100(self):
        def answer(q, c):
            c.send(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold")
        o = self.origin(answer, continues=False)
        with Client(self.cuttle().address) as c:
            self.ask(c, o)
            self.assertEqual(c.read_response_head().status, 100)
            c.send(pattern(1_000_000))
            self.assertEqual(c.read_response().body, b"old")
        self.assertEqual(o.last().body, pattern(1_000_000))

    def test_an_http_1_0_client_is_never_told_to_go_on(self):
        """RFC 9110 10.1.1: its expectation is ignored."""
        o = self.origin(reply(body=b"got it"))
        with Client(self.cuttle().address) as c:
            self.ask(c, o, version="HTTP/1.0")
            c.send(pattern(1_000_000))
            r = c.read_response()
            self.assertEqual((r.body, r.interim), (b"got it", []))
        self.assertEqual(o.last().body, pattern(1_000_000))


class Replies(Scenario):
    """What an origin says about its body, and what of that a client gets to hear."""

    def setUp(self):
        self.p = self.cuttle(workers=1)

    def ask(self, *steps, path="/", **options):
        o = self.origin(tuple(steps))
        return self.get(self.p, o.url(path), **options)

    def test_a_space_before_the_colon_is_dropped(self):
        """RFC 9112 5.1: and the field counts as what it is, a length as a length."""
        r = self.ask("HTTP/1.1 200 OK\r\nContent-Length : 2\r\nX-A\t: b\r\n\r\nokmore")
        self.assertEqual((r.body, r.field("X-A"), r.field("Content-Length")), (b"ok", "b", "2"))
        r = self.ask("HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n", chunks(b"abc"))
        self.assertEqual(r.body, b"abc")
        r = self.ask("HTTP/1.1 200 OK\r\nContent-Length : 2\r\nContent-Length: 3\r\n\r\nabc")
        self.assertEqual(r.status, 502)

    def test_a_folded_line_arrives_as_one(self):
        """RFC 9112 5.2."""
        r = self.ask("HTTP/1.1 200 OK\r\nX-A: a\r\n  b\r\n\tc\r\nContent-Length:\r\n 2\r\n\r\nok")
        self.assertEqual((r.body, r.field("X-A")), (b"ok", "a b c"))
        self.assertNotRegex(r.raw_head, rb"\r\n[ \t]")

    def test_lines_that_end_in_lf_alone_are_read(self):
        """RFC 9112 2.2: of devices and CGI programs, also mixed; what is sent on has CRLF."""
        for head in ("HTTP/1.1 200 OK\nX-A: b\nContent-Length: 2\n\n",
                     "HTTP/1.1 200 OK\r\nX-A: b\nContent-Length: 2\n\r\n",
                     "HTTP/1.1 200 OK\nX-A:\n b\r\nno field\nContent-Length : 2\r\n\n",
                     "HTTP/1.0 200\nX-A: b\n\n"):
            r = self.ask(head + "ok", CLOSE)
            self.assertEqual((r.status, r.body, r.field("X-A")), (200, b"ok", "b"), head)
            o = self.origin(bytewise(head + "ok", close=True))
            r = self.get(self.p, o.url("/"))
            self.assertEqual((r.status, r.body, r.field("X-A")), (200, b"ok", "b"), head)

    def test_a_body_behind_lines_of_lf_begins_at_once(self):
        """However it begins, and in chunks, too."""
        for body in ("\n\r\n\r\n", "\r\nX: y\n\n", "\r"):
            head = "HTTP/1.1 200 OK\nContent-Length: %d\n\n" % len(body)
            self.assertEqual(self.ask(head + body).body, body.encode())
        r = self.ask("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", chunks(b"\n\n", b"abc"))
        self.assertEqual(r.body, b"\n\nabc")

    def test_a_head_with_lf_lines_ends_its_connection(self):
        """Whoever wrote it, or let it through, may have meant something else by it."""
        o = self.origin({"/lf": "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
                         "/mixed": "HTTP/1.1 200 OK\r\nX: a\nContent-Length: 2\r\n\r\nok",
                         "/interim": "HTTP/1.1 103 Early Hints\n\n"
                                     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                         "/crlf": reply(body=b"ok")})
        with Client(self.p.address) as c:
            for path in ("/crlf", "/lf", "/mixed", "/interim", "/crlf"):
                self.assertEqual(c.get(o.url(path)).body, b"ok", path)
        self.assertEqual([q.connection for q in o.requests], [0, 0, 1, 2, 3])

    def test_a_cr_that_ends_no_line_is_502_among_lf_lines_too(self):
        for head in ("HTTP/1.1 200 OK\nX: a\rSet-Cookie: b\n\n", "HTTP/1.1 200 OK\r\r\n\n",
                     "HTTP/1.1 200 OK\nX: a\r\r\n\n", "HTTP/1.1 200 OK\nX: a\n\r\r\n\n",
                     "HTTP/1.1 200 OK\nX: a\x00\n\n", "HTTP/1.1 200 OK\nX: a\n"):
            r = self.ask(head, CLOSE)
            self.assertEqual((r.status, r.field("Set-Cookie")), (502, None), repr(head))

    def test_a_nul_or_a_bare_cr_is_502(self):
        """RFC 9110 5.5: in a value, a name, the reason, or a line that would be dropped."""
        for line in ("X: a\rSet-Cookie: b", "X: a\x00b", "X\x00: a", "no field \r here",
                     "X: a\r\r", "X: a\r\n b\x00"):
            r = self.ask("HTTP/1.1 200 OK\r\n%s\r\nContent-Length: 2\r\n\r\nok" % line)
            self.assertEqual((r.status, r.field("Set-Cookie")), (502, None), repr(line))
        r = self.ask("HTTP/1.1 200 O\x00K\r\nContent-Length: 2\r\n\r\nok")
        self.assertEqual(r.status, 502)

    def test_a_short_reply_looks_short_and_is_asked_for_again(self):
        """RFC 9112 8, RFC 9111 3.3: even when not a byte of the body came."""
        head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"
        for framing, part in (("Content-Length: 10\r\n\r\n", b"12345"),
                              ("Content-Length: 10\r\n\r\n", b""),
                              ("Transfer-Encoding: chunked\r\n\r\n", b""),
                              ("Transfer-Encoding: chunked\r\n\r\n", b"5\r\n12345\r\n"),
                              ("Transfer-Encoding: chunked\r\n\r\n", b"5\r\n12345\r\n0\r\n")):
            o = self.origin([(head + framing, part, 0.3, CLOSE), storable(b"0123456789")])
            with Client(self.p.address) as c:
                c.request("GET", o.url("/"))
                try:
                    self.assertEqual(c.read_response().status, 502, (framing, part))
                except Incomplete as short:
                    self.assertLessEqual(len(short.partial), 5)
            self.assertEqual(self.get(self.p, o.url("/")).body, b"0123456789")
            self.assertEqual(len(o.requests), 2)

    def test_a_reply_with_both_lengths_is_stored_as_its_chunks(self):
        """RFC 9112 6.3: the length goes, for this client and for those served from the store."""
        o = self.origin(lambda q: reply("200 OK", "Cache-Control: max-age=60",
                                        "Transfer-Encoding: chunked", "Content-Length: 3")
                        + chunks(b"hello"))
        with Client(self.p.address) as c:
            for path in ("/a", "/a", "/b"):
                self.assertEqual(c.get(o.url(path)).body, b"hello")
        self.assertEqual([(q.target, q.connection) for q in o.requests], [("/a", 0), ("/b", 1)])

    def test_sizes_padded_with_blanks_are_read(self):
        """As small devices send them. From a client they are refused."""
        padded = b"5   \r\nhello\r\n1 \t\r\n!\r\n0  \r\n\r\n"
        o = self.origin(bytewise(reply("200 OK", "Cache-Control: max-age=60",
                                       "Transfer-Encoding: chunked") + padded))
        for hit in (False, True):
            r = self.get(self.p, o.url("/"))
            self.assertEqual((r.status, r.body, r.hit), (200, b"hello!", hit))
        with Client(self.p.address) as c:
            c.request("POST", o.url("/"), "Transfer-Encoding: chunked")
            c.send(padded)
            self.assertEqual(c.read_response("POST").status, 400)
        with self.assertRaises(Incomplete):
            r = self.ask(reply("200 OK", "Transfer-Encoding: chunked"), b"5 0\r\nhello\r\n", CLOSE)
            if r.status == 502:
                raise Incomplete("refused before the head went out")
        o.faults.clear()

    def test_a_trailer_line_that_is_no_field_does_not_spoil_the_body(self):
        """It is whole by then; RFC 9112 5, as in the head."""
        o = self.origin((reply("200 OK", "Cache-Control: max-age=60", "Transfer-Encoding: chunked"),
                         b"2\r\nok\r\n0\r\nX-A: 1\r\nno field\r\nX-B : 2\r\nX-C: 3\r\n\r\n"))
        with Client(self.p.address) as c:
            r = c.get(o.url("/"), "TE: trailers")
            self.assertEqual((r.status, r.body), (200, b"ok"))
            self.assertNotIn("no field", repr(r.trailers) + repr(r.fields))
            self.assertTrue(c.get(o.url("/")).hit)

    def test_chunked_said_twice_is_read_as_chunked_once(self):
        """By an application and once more by its server: as browsers and curl take it."""
        for fields in (("Transfer-Encoding: chunked", "transfer-encoding: chunked"),
                       ("Transfer-Encoding: chunked, chunked",)):
            o = self.origin(lambda q: reply("200 OK", *fields) + chunks(b"hello"))
            with Client(self.p.address) as c:
                for path in ("/a", "/b"):
                    self.assertEqual(c.get(o.url(path)).body, b"hello")
            self.assertEqual([q.connection for q in o.requests], [0, 1])

    def test_the_coding_identity_counts_for_nothing(self):
        """RFC 2616 3.6: neither passed on nor a reason not to believe the length."""
        o = self.origin(lambda q: reply("200 OK", "Transfer-Encoding: identity",
                                        "Content-Length: 2") + b"ok")
        with Client(self.p.address) as c:
            for path in ("/a", "/b"):
                r = c.get(o.url(path))
                self.assertEqual((r.body, r.field("Transfer-Encoding")), (b"ok", None))
        self.assertEqual([q.connection for q in o.requests], [0, 1])
        r = self.ask("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nok", CLOSE)
        self.assertEqual((r.status, r.body), (200, b"ok"))

    def test_a_304_brings_fields_but_nothing_that_describes_a_body(self):
        """RFC 9111 3.2, 4.3.4."""
        misleading = ("Content-Length: 0", "Content-Encoding: br", "Content-Range: bytes 0-0/1")

        def answer(q):
            if q.field("If-None-Match"):
                return reply("304 Not Modified", 'ETag: "v"', "Cache-Control: max-age=60",
                             "X-B: new", *misleading, length=False)
            return reply("200 OK", 'ETag: "v"', "Cache-Control: max-age=0", "X-B: old",
                         body=pattern(1000))
        o = self.origin(answer)
        with Client(self.p.address) as c:
            for n_asked, x_b in ((1, "old"), (2, "new"), (2, "new"), (2, "new")):
                r = c.get(o.url("/"))
                self.assertEqual((r.status, r.body, r.field("X-B")), (200, pattern(1000), x_b))
                self.assertEqual((r.field("Content-Encoding"), r.field("Content-Range")),
                                 (None, None))
                self.assertEqual(len(o.requests), n_asked)

    def test_statuses_that_the_standard_does_not_know_are_passed_on_unstored(self):
        """RFC 9110 15: 600 to 999 are invalid, but sites send them; like a 5xx, and no more."""
        for status in ("600 Odd", "999 Request denied"):
            o = self.origin(storable(b"no", status=status))
            for _ in range(2):
                r = self.get(self.p, o.url("/"))
                self.assertEqual((r.status, r.body, r.hit), (int(status[:3]), b"no", False))

    def test_replies_without_a_body_end_with_their_head(self):
        """RFC 9112 6.3: whatever length they announce; the next request is served at once."""
        heads = ("HTTP/1.1 204 No Content\r\n\r\n",
                 "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
                 "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
                 "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n")
        o = self.origin(dict({"/%d" % i: head for i, head in enumerate(heads)},
                             **{"/head": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                                "/next": reply(body=b"next")}))
        asked = [("GET", "/%d" % i) for i in range(len(heads))] + [("HEAD", "/head")]
        with Client(self.p.address) as c:
            for method, path in asked:
                c.request(method, o.url(path), 'If-None-Match: "a"')
                c.request("GET", o.url("/next"))
            for method, path in asked:
                self.assertIn(c.read_response(method).status, (200, 204, 304))
                self.assertEqual(c.read_response().body, b"next", path)

    def test_a_204_leaves_without_a_length_from_the_store_too(self):
        """RFC 9110 8.6: also when its origin announced one. (The client checks the fields.)"""
        o = self.origin(reply("204 No Content", "Cache-Control: max-age=60", "Content-Length: 0"))
        with Client(self.p.address) as c:
            for hit in (False, True, True):
                r = c.get(o.url("/"))
                self.assertEqual((r.status, r.hit), (204, hit))
        self.assertEqual(len(o.requests), 1)

    def test_interim_replies_of_any_kind_are_neither_final_nor_stored(self):
        """RFC 9110 15.2: also a 100 that nobody asked for."""
        o = self.origin(("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n",
                         "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nLink: </b>\r\n\r\n", 0.2,
                         storable(b"final", "Link: </c>")))
        with Client(self.p.address) as c:
            r = c.get(o.url("/"))
            self.assertEqual((r.status, r.body, r.field("Link")), (200, b"final", "</c>"))
            self.assertLessEqual({i.status for i in r.interim}, {100, 102, 103})
            for _ in range(2):
                r = c.get(o.url("/"))
                self.assertEqual((r.hit, r.body, r.interim), (True, b"final", []))
                self.assertEqual(r.field("Link"), "</c>")


class SmallChunks(Scenario):
    """RFC 9112 7.1: framing that outweighs the body."""
    BODY = pattern(20_000)

    def arrives(self, o):
        p = self.cuttle()
        for _ in range(2):
            self.assertEqual(self.get(p, o.url("/")).body, self.BODY)
        self.assertEqual(len(o.requests), 1, "the second comes from the store")

    def head(self):
        return reply("200 OK", "Cache-Control: max-age=60", "Transfer-Encoding: chunked")

    def ones(self, extension=b""):
        return [b"1%s\r\n%c\r\n" % (extension, byte) for byte in self.BODY]

    def test_one_byte_chunks_one_a_write_arrive_whole(self):
        def answer(q, c):
            c.send(self.head())
            for chunk in self.ones():
                c.send(chunk)
            c.send(b"0\r\n\r\n")
        self.arrives(self.origin(answer))

    def test_one_byte_chunks_a_byte_a_write_arrive_whole(self):
        def answer(q, c):
            c.send(self.head())
            c.send(b"".join(self.ones()[:2000]), piece=1)
            c.send(b"".join(self.ones()[2000:]) + b"0\r\n\r\n")
        self.arrives(self.origin(answer))

    def test_one_byte_chunks_with_long_extensions_arrive_whole(self):
        extension = b';x="' + b"e" * 196 + b'"'
        self.arrives(self.origin((self.head(), b"".join(self.ones(extension)) + b"0\r\n\r\n")))

    def test_extensions_without_end_around_little_body_are_cut(self):
        def answer(q, c):
            c.send(self.head())
            for _ in range(1000):                   # 64 MB around 16 KB
                c.send((b"1;" + b"e" * 4000 + b"\r\nx\r\n") * 16)
            c.send(b"0\r\n\r\n")
        o = self.origin(answer)
        p = self.cuttle("read_timeout 1 minute")
        with self.assertRaises(Incomplete):
            self.get(p, o.url("/"))


class Heads(Scenario):
    """Large heads: those within the limits work, the others are refused while they come in."""
    LETTERS = ", ".join("abcdefghij")

    def members(self, n_bytes):
        """A list of single letters."""
        return (self.LETTERS + ", ") * (n_bytes // (len(self.LETTERS) + 2)) + "z"

    def test_long_lists_within_the_limit_are_passed_on(self):
        o = self.origin(reply(body=b"fine"))
        given = ",1" * 30_000
        r = self.get(self.cuttle(), o.url("/"), "X-Forwarded-For: " + given)
        self.assertEqual(r.body, b"fine")
        self.assertEqual(o.last().field("X-Forwarded-For"), given + ", 127.0.0.1")

    def test_five_thousand_fields_are_431(self):
        o = self.origin(reply())
        r = self.get(self.cuttle("request_header_max_size 1 MB"), o.url("/"),
                     *("X-%d: y" % i for i in range(5000)))
        self.assertEqual((r.status, o.connections), (431, 0))

    def test_a_large_head_is_stored_beside_its_body_not_in_it(self):
        control = "max-age=60, " + self.members(60_000)
        o = self.origin(reply("200 OK", "Cache-Control: " + control, body=pattern(70_000)))
        p = self.cuttle()
        for hit in (False, True, True):
            r = self.get(p, o.url("/"))
            self.assertEqual((r.body, r.field("Cache-Control"), r.hit),
                             (pattern(70_000), control, hit))

    def test_heads_of_replies_beyond_the_limit_are_502(self):
        p = self.cuttle()
        for lines in (["Cache-Control: " + self.members(70_000)], ["X: " + "x" * (1 << 20)],
                      ["Cache-Control: " + self.members(3000)] * 25,
                      ["X-%d: y" % i for i in range(5000)]):
            o = self.origin(reply("200 OK", *lines, body=b"never"))
            r = self.get(p, o.url("/"))
            self.assertEqual(r.status, 502, lines[0][:20])
            self.assertIn("http_response_header_section_size", r.field("Proxy-Status"))

    def test_a_field_without_end_is_502_and_takes_no_memory(self):
        def answer(q, c):
            c.send(b"HTTP/1.1 200 OK\r\nX: ")
            while not c.origin.closing.is_set():
                c.send(b"x" * 100_000)
        o = self.origin(answer)
        p = self.cuttle(lean=True)
        before = p.memory_kb()
        self.assertEqual(self.get(p, o.url("/")).status, 502)
        self.assertLess(p.memory_kb() - before, harness.MEMORY_FACTOR * (4 << 10))

    def test_refused_heads_of_either_side_leave_memory_as_before(self):
        o = self.origin(reply("200 OK", "Cache-Control: " + self.members(70_000)))
        p = self.cuttle(lean=True, workers=1)
        bad = ("GET {} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: " + ",1" * 33_000 + "\r\n\r\n",
               "GET {} HTTP/1.1\r\nHost: x\r\n" + "X: y\r\n" * 5000 + "\r\n",
               "GET {}" + "u" * 100_000 + " HTTP/1.1\r\nHost: x\r\n\r\n",
               "GET {} HTTP/1.1\r\nHost: x\r\n\r\n")

        def run(n):
            for i in range(n):
                with Client(p.address) as c:
                    c.send(bad[i % 4].replace("{}", o.url("/")))
                    self.assertIn(c.read_response().status, (414, 431, 502))
        run(600)
        before = p.memory_kb()
        run(1000)
        self.assertLess(p.memory_kb() - before, harness.MEMORY_FACTOR * (2 << 10))


if __name__ == "__main__":
    harness.main()
