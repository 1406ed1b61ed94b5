"""What is not HTTP, or not safely so: refused with a clear status, never guessed, never fatal."""
import time

import harness
from harness import (CLOSE, RESET, SILENT, Client, Incomplete, ProtocolError, Scenario, chunks,
                     pattern, reply)

EVIL = "GET http://{o}/evil HTTP/1.1\r\nHost: {o}\r\n\r\n"


class Refused(Scenario):
    """Each test sends something refusable and sees to it that nothing of it reached the origin
    and that the proxy is as well as before."""

    def setUp(self):
        self.o = self.origin(reply(body=b"fine"))
        self.p = self.cuttle("request_timeout 2 seconds", "request_start_timeout 2 seconds")

    def refuse(self, text, *statuses, follow=EVIL, origin_untouched=True):
        """Sends text ({o}: the origin) with a request behind it; returns the response."""
        before = len(self.o.requests)
        text = text.replace("{o}", self.o.authority)
        with Client(self.p.address) as c:
            try:
                c.send(text + follow.replace("{o}", self.o.authority))
            except ConnectionError:
                pass                        # refused before the end of it
            r = c.read_response()
            self.assertIn(r.status, statuses or (400,), text[:200])
            c.expect_close()
        if origin_untouched:
            self.assertEqual(len(self.o.requests), before, text[:200])
        return r

    def tearDown(self):
        self.assertEqual(self.get(self.p, self.o.url("/alive")).body, b"fine")

    def test_garbage_gets_400_and_a_log_line(self):
        for garbage in ("\x00\x01\x02\x03\xff\xfe\r\n\r\n",
                        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n\r\n", "hello\r\n\r\n",
                        "GET\r\n\r\n", "  \r\n\r\n", ": :\r\n\r\n",
                        "GET  http://{o}/ HTTP/1.1\r\n\r\n", " http://{o}/ HTTP/1.1\r\n\r\n"):
            self.refuse(garbage, 400, 501, 505)
        self.assertTrue(all(line.status in (400, 501, 505) for line in self.p.access_log(8)))

    def test_versions_other_than_1_x_are_refused(self):
        for version in ("HTTP/2.0", "HTTP/0.9", "HTTP/1.10", "HTTP/11", "http/1.1", "HTTP/1.", "X"):
            self.refuse("GET http://{o}/ %s\r\nHost: {o}\r\n\r\n" % version, 400, 501, 505)

    def test_half_a_request_ends_with_408(self):
        """RFC 9110 15.5.9."""
        with Client(self.p.address) as c:
            c.send("GET %s HTTP/1.1\r\nHost: half" % self.o.url("/"))
            began = time.monotonic()
            self.assertEqual(c.read_response().status, 408)
            c.expect_close()
        self.assertLess(time.monotonic() - began, 6)
        self.assertEqual(self.p.access_log(1)[-1].status, 408)

    def test_a_head_that_trickles_in_for_ever_ends_as_well(self):
        """The time for a head runs from its first byte, not from its last."""
        with Client(self.p.address) as c:
            c.send("GET %s HTTP/1.1\r\nX: " % self.o.url("/"))
            began = time.monotonic()
            try:
                while time.monotonic() - began < 8:
                    c.send("x")
                    time.sleep(0.2)
            except OSError:
                pass
            self.assertLess(time.monotonic() - began, 6)

    def test_half_a_request_and_a_close_is_survived(self):
        for i in range(60):
            with Client(self.p.address) as c:
                c.send(("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"
                        % self.o.url("/"))[:i * 2 + 1])
                c.reset() if i % 2 else None

    def test_a_megabyte_of_head_gets_431(self):
        """RFC 6585 5."""
        start = "GET http://{o}/ HTTP/1.1\r\nHost: {o}\r\n"
        self.refuse(start + "X: " + "x" * (1 << 20) + "\r\n\r\n", 431)
        self.refuse(start + "X-Forwarded-For: " + ",1" * (1 << 19) + "\r\n\r\n", 431)
        self.refuse(start + "".join("X-%d: y\r\n" % i for i in range(70_000)) + "\r\n", 431)
        self.refuse(start + "A" * (1 << 20) + "\r\n\r\n", 400, 431)
        self.assertEqual([line.status for line in self.p.access_log(4)][:3], [431] * 3)

    def test_an_endless_head_is_cut_off(self):
        with Client(self.p.address) as c:
            c.send("GET %s HTTP/1.1\r\n" % self.o.url("/"))
            with self.assertRaises(OSError):
                for i in range(10_000):
                    c.send("X-%d: %s\r\n" % (i, "y" * 10_000))
        self.assertLess(self.p.memory_kb(), harness.MEMORY_FACTOR * (100 << 10))

    def test_a_long_url_gets_414_and_a_normal_one_passes(self):
        """RFC 9112 3: at least 8000 octets are to be understood."""
        for size in (65_536, 100_000, 1_000_000):
            self.refuse("GET http://{o}/%s HTTP/1.1\r\nHost: {o}\r\n\r\n" % ("u" * size), 414)
        self.assertEqual([line.status for line in self.p.access_log(3)], [414] * 3)
        long = "/" + "u" * 8000
        self.assertEqual(self.get(self.p, self.o.url(long)).body, b"fine")
        self.assertEqual(self.o.last().target, long)

    def test_both_lengths_at_once_are_refused(self):
        """RFC 9112 6.3: in either order, and in either version."""
        body = "0\r\n\r\n" + EVIL
        for fields in (["Content-Length: {n}", "Transfer-Encoding: chunked"],
                       ["Transfer-Encoding: chunked", "Content-Length: {n}"],
                       ["Content-Length: {n}", "transfer-encoding: Chunked"]):
            for version in ("HTTP/1.1", "HTTP/1.0"):
                self.refuse("POST http://{o}/ %s\r\nHost: {o}\r\n%s\r\n\r\n%s" % (
                    version, "\r\n".join(fields).replace("{n}", "%d" % len(body)), body))

    def test_lengths_that_are_no_single_number_are_refused(self):
        for lengths in (["34", "0"], ["3, 4"], ["+3"], ["-1"], ["0x3"], ["3 "  "4"], ["3a"], [""],
                        ["99999999999999999999999"], ["1e2"], ["3;"]):
            fields = "".join("Content-Length: %s\r\n" % n for n in lengths)
            self.refuse("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\n%s\r\nabc" % fields)

    def test_codings_other_than_chunked_once_are_refused(self):
        """RFC 9112 6.1."""
        for value in ("gzip", "identity", "chunked, chunked", "chunked, gzip", "xchunked", "chunke",
                      "chunked;q=1", "\"chunked\"", "chunked\x0b", "", "gzip, chunked",
                      ",chunked x"):
            self.refuse("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: %s\r\n\r\n"
                        "0\r\n\r\n" % value, 400, 501)
        self.refuse("POST http://{o}/ HTTP/1.0\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "0\r\n\r\n", 400, 501)

    def test_whitespace_before_the_colon_is_refused(self):
        """RFC 9112 5.1."""
        for field in ("Content-Length : 5", "Transfer-Encoding : chunked", "X\t: y", " X: y",
                      "X y: z", ": v", "X", "X\x00: y", "X(: y", "Hö: x"):
            self.refuse("GET http://{o}/ HTTP/1.1\r\nHost: {o}\r\n%s\r\n\r\n" % field)

    def test_folded_lines_and_control_bytes_never_pass(self):
        """RFC 9112 5.2, RFC 9110 5.5: refused, or replaced by spaces before anything looks."""
        for field in ("X: a\r\n b", "X: a\r\n\tb", "X: a\rTransfer-Encoding: chunked", "X: a\x00b",
                      "X: a\x01", "X: a\x7f"):
            self.refuse("GET http://{o}/ HTTP/1.1\r\nHost: {o}\r\n%s\r\n\r\n" % field)

    def test_a_bare_line_feed_never_reaches_an_origin(self):
        """RFC 9112 2.2: refused, or understood as a line end everywhere."""
        for text in ("GET http://{o}/ HTTP/1.1\nHost: {o}\n\n",
                     "GET http://{o}/ HTTP/1.1\r\nHost: {o}\r\nX: \n\nGET http://{o}/2 HTTP/1.1\n"
                     "Host: {o}\n\n"):
            with Client(self.p.address) as c:
                c.send(text.replace("{o}", self.o.authority))
                self.assertIn(c.read_response().status, (200, 400))
        for seen in self.o.received.values():
            self.assertNotIn(b"\n", seen.replace(b"\r\n", b""))

    def test_chunk_lines_that_are_no_chunk_lines_are_refused(self):
        """RFC 9112 7.1: the origin never sees a whole message."""
        start = ("POST http://{o}/chunk HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n"
                 "\r\n")
        for body in ("1these-bytes-never-get-validated\r\nx\r\n0\r\n\r\n", "0x1\r\nx\r\n0\r\n\r\n",
                     "+1\r\nx\r\n0\r\n\r\n", "-1\r\nx\r\n0\r\n\r\n", "\r\n", "1\r\nxy\r\n0\r\n\r\n",
                     "ffffffffffffffffff\r\nx\r\n0\r\n\r\n", "1\nx\n0\n\n", " 1\r\nx\r\n0\r\n\r\n",
                     "1;" + "e" * 100_000 + "\r\nx\r\n0\r\n\r\n",
                     "1\r\nx\r\n0\r\nbad trailer\r\n\r\n",
                     "1\r\nx\r\n0\r\n" + "T: x\r\n" * 200_000 + "\r\n"):
            self.refuse(start + body, 400, 413, 431)
        self.assertNotIn("/chunk", [q.target for q in self.o.requests if q.body == b"x"])
        self.o.faults.clear()

    def test_legal_chunk_extensions_are_dropped(self):
        for line in ("5 ;ext", '5;ext="a"', "5;a=b;c", "0005"):
            with Client(self.p.address) as c:
                r = c.get(self.o.url("/"), "Transfer-Encoding: chunked", method="POST",
                          body=line.encode() + b"\r\nhello\r\n0\r\n\r\n")
                self.assertEqual(r.status, 200, line)
            self.assertEqual(self.o.last().body, b"hello")

    def test_host_fields_that_are_missing_doubled_or_odd_are_refused(self):
        """RFC 9112 3.2."""
        for fields in ("", "Host: {o}\r\nHost: {o}\r\n", "Host: a b\r\n", "Host: a,b\r\n",
                       "Host: http://{o}/\r\n", "Host: a@b\r\n", "Host: [::1\r\n"):
            self.refuse("GET http://{o}/ HTTP/1.1\r\n%s\r\n" % fields)

    def test_connect_to_what_is_no_host_and_port_is_refused(self):
        """RFC 9110 9.3.6: the port checked is the port used."""
        port = self.o.port
        for target in ("[127.0.0.2]:%d" % port, "[localhost]:%d" % port, "127.0.0.2",
                       "127.0.0.2:70000", "127.0.0.1:%d" % (65536 + port), "127.0.0.2:0",
                       "127.0.0.2:", "http://{o}/", "/", "*", ":80", "a@{o}", "{o}/x", "[::1]",
                       "127.0.0.2:+80", "127.0.0.2:80x"):
            self.refuse("CONNECT %s HTTP/1.1\r\nHost: {o}\r\n\r\n" % target)
        self.refuse("CONNECT 127.0.0.2 :%d HTTP/1.1\r\nHost: {o}\r\n\r\n" % port)
        self.assertEqual(self.o.connections, 0)

    def test_schemes_and_urls_it_does_not_speak_are_refused(self):
        for url in ("urn:x:y", "gopher://{o}/", "whois://{o}/", "file:///etc/hosts", "://{o}/",
                    "http:{o}", "http://", "http:///x", "ftp://{o}/" + "p" * 8000, "https://{o}/",
                    "http://[::1/", "http://[zz]/", "http://{o}:80:80/", "http://127.0.0.2:99999/",
                    "http://127.0.0.2:-1/", "http://a b/", "http://\xff/", "http://{o}/a b"):
            r = self.refuse("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % url, 400, 501)
            self.assertGreater(len(r.body), 50)

    def test_a_name_no_resolver_accepts_is_answered_at_once(self):
        for name in ("l" * 64 + ".test", "n." * 130 + "test", "a..b", "-", "xn--", "..", "."):
            began = time.monotonic()
            with Client(self.p.address) as c:
                c.request("GET", "http://%s/" % name)
                self.assertIn(c.read_response().status, (400, 503, 504), name)
            if name not in ("-", "xn--"):
                self.assertLess(time.monotonic() - began, 1.0, name)


class BrokenOrigins(Scenario):
    """502, or a cut that the client can see (RFC 9112 8); the proxy lives on."""

    def setUp(self):
        self.p = self.cuttle("read_timeout 3 seconds")

    def ask(self, *steps):
        o = self.origin(tuple(steps))
        return self.get(self.p, o.url("/"))

    def assert_502(self, *steps):
        r = self.ask(*steps)
        self.assertEqual(r.status, 502, steps[0][:100])
        self.assertIn("error=", r.field("Proxy-Status") or "", steps[0][:100])

    def assert_cut(self, *steps):
        with self.assertRaises(Incomplete):
            if self.ask(*steps).status == 502:
                raise Incomplete("refused")

    def test_heads_that_are_no_heads_are_502(self):
        for head in ("hello\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n",
                     "HTTP/1.1 099 x\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "\r\n\r\n",
                     "HTTP/1.1\r\n\r\n", "\x00\x00\x00\x00\r\n\r\n", "<html>0.9</html>",
                     "HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n"):
            self.assert_502(head, CLOSE)

    def test_ambiguous_lengths_are_502(self):
        for fields in ("Content-Length: 3\r\nContent-Length: 5\r\n", "Content-Length: 3, 5\r\n",
                       "Content-Length: x\r\n", "Content-Length: -3\r\n",
                       "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: chunked, gzip\r\n"):
            self.assert_502("HTTP/1.1 200 OK\r\n%s\r\nhello" % fields, CLOSE)

    def test_chunked_beside_a_length_is_chunked_or_502_and_the_connection_goes(self):
        """RFC 9112 6.3: the length is dropped, and nothing follows on that connection."""
        o = self.origin(lambda q: reply("200 OK", "Transfer-Encoding: chunked",
                                        "Content-Length: 3") + chunks(b"hello"))
        with Client(self.p.address) as c:
            for _ in range(2):
                r = c.get(o.url("/"))
                self.assertIn((r.status, r.body == b"hello"), ((200, True), (502, False)))
        self.assertGreaterEqual(o.connections, 2)

    def test_a_close_or_reset_before_the_head_is_502(self):
        self.assert_502(b"", CLOSE)
        self.assert_502(b"", RESET)
        self.assert_502("HTTP/1.1 200 OK\r\nX: ", CLOSE)
        self.assert_502("HTTP/1.1 100 Continue\r\n\r\n", CLOSE)

    def test_an_oversized_or_endless_head_is_502(self):
        self.assert_502("HTTP/1.1 200 OK\r\nX: " + "x" * (1 << 20) + "\r\n\r\n", CLOSE)
        self.assert_502("HTTP/1.1 200 OK\r\n" + "X: y\r\n" * 200_000 + "\r\n", CLOSE)
        self.assert_502("HTTP/1.1 103 Hints\r\n\r\n" * 100_000, CLOSE)

    def test_silence_is_504(self):
        began = time.monotonic()
        self.assertEqual(self.ask(SILENT).status, 504)
        self.assertLess(time.monotonic() - began, 8)

    def test_bodies_that_break_off_are_cut_for_the_client(self):
        self.assert_cut(reply("200 OK", "Content-Length: 1000"), b"x" * 10, 0.1, CLOSE)
        self.assert_cut(reply("200 OK", "Content-Length: 1000"), b"x" * 10, 0.1, RESET)
        head = reply("200 OK", "Transfer-Encoding: chunked")
        for body in (chunks(b"abc", last=False), b"5\r\nab", b"5", b"3\r\nabc\r\n0\r\n",
                     b"zz\r\n", b"3\r\nabcde\r\n0\r\n\r\n", b"3\r\nabc\n0\r\n\r\n",
                     b"fffffffffffffffff\r\n", b"1junk\r\na\r\n0\r\n\r\n"):
            self.assert_cut(head, body, 0.1, CLOSE)

    def test_silence_in_a_body_ends_as_a_cut(self):
        self.assert_cut(reply("200 OK", "Content-Length: 1000"), b"x" * 10, SILENT)

    def test_a_cut_for_an_http_1_0_client_is_no_clean_close(self):
        """The length of a chunked response is unknown there, so only a reset tells it is short."""
        o = self.origin((reply("200 OK", "Transfer-Encoding: chunked"),
                         chunks(pattern(100), last=False), 0.1, CLOSE))
        with Client(self.p.address) as c:
            c.request("GET", o.url("/"), version="HTTP/1.0")
            c.sock.settimeout(5)
            with self.assertRaises(ConnectionResetError):
                while c.sock.recv(65536):
                    pass

    def test_a_line_that_is_no_field_is_dropped_or_502(self):
        for line in ("sh: can't create dev/null: x", "digest in image header", "X : y", ": y",
                     "X Y: z"):
            r = self.ask("HTTP/1.1 200 OK\r\nA: 1\r\n%s\r\nContent-Length: 2\r\nB: 2\r\n\r\nok"
                         % line, CLOSE)
            if r.status != 502:
                self.assertEqual((r.body, r.field("A"), r.field("B")), (b"ok", "1", "2"))

    def test_vary_members_that_are_no_names_do_no_harm(self):
        for value in ("Other:", ":", "a b", '"', ",,,", "x," * 10_000, "*"):
            r = self.ask(reply("200 OK", "Vary: " + value, "Cache-Control: max-age=60", body=b"v"))
            self.assertEqual((r.status, r.body), (200, b"v"), value[:20])

    def test_dates_that_are_cut_short_do_no_harm(self):
        for value in ("Sun, 06 No", "Sun, 06 Nov", "", "Sun, 99 Xxx 9999 99:99:99 GMT",
                      "x" * 10_000, "Thu, 01 Jan 1969 00:00:00 GMT",
                      "Sun, 06 Nov 2106 08:49:37 GMT"):
            r = self.ask(reply("200 OK", "Expires: " + value, "Last-Modified: " + value,
                               "Date: " + value, body=b"d", date=False))
            self.assertEqual((r.status, r.body), (200, b"d"), value[:40])

    def tearDown(self):
        self.assertEqual(self.ask(reply(body=b"fine")).body, b"fine")


class WorstCases(Scenario):
    def test_ten_thousand_bad_requests_leave_memory_as_before(self):
        p = self.cuttle(lean=True)
        bad = ["GET http://x/ HTTP/1.1\r\nX: " + "x" * 70_000 + "\r\n\r\n", "\0\r\n\r\n",
               "GET / HTTP/1.1\r\n\r\n", "CONNECT x HTTP/1.1\r\nHost: x\r\n\r\n"]

        def run(n):
            for i in range(n):
                with Client(p.address) as c:
                    try:
                        c.send(bad[i % len(bad)])
                        c.read_all()
                    except ConnectionError:
                        pass
        run(200)
        before = p.memory_kb()
        run(1000)
        self.assertLess(p.memory_kb() - before, harness.MEMORY_FACTOR * (2 << 10))

    def test_random_bytes_are_survived(self):
        import random
        source = random.Random(7)
        o = self.origin(reply(body=b"fine"))
        p = self.cuttle()
        seed = ("POST %s HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\nConnection: x\r\n"
                "\r\n5\r\nhello\r\n0\r\n\r\n" % (o.url("/"), o.authority)).encode()
        for _ in range(300):
            data = bytearray(seed)
            for _ in range(source.randrange(1, 5)):
                data[source.randrange(len(data))] = source.randrange(256)
            with Client(p.address) as c:
                try:
                    c.send(bytes(data))
                    c.half_close()
                    c.read_response("POST")
                except (OSError, ProtocolError):
                    pass
        o.faults.clear()
        self.assertEqual(self.get(p, o.url("/")).body, b"fine")


if __name__ == "__main__":
    harness.main()
