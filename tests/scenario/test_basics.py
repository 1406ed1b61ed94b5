"""What passes through the proxy, and what must not: methods, bodies, connections, fields."""
import re
import socket
import threading
import time

import harness
from harness import (CLOSE, MEMORY_FACTOR, SILENT, Client, Incomplete, Scenario, chunked, chunks,
                     pattern, reply, together, wait_for)


class Messages(Scenario):
    def test_a_get_leaves_as_origin_form_and_comes_back_whole(self):
        """RFC 9112 3.2.1: an origin server gets the path; RFC 9110 7.6.3: Via both ways."""
        o = self.origin(reply("200 OK", "X-From: origin", body=pattern(5000)))
        p = self.cuttle()
        r = self.get(p, o.url("/a/b?c=d"), "X-To: origin")
        self.assertEqual((r.status, r.body, r.field("X-From")), (200, pattern(5000), "origin"))
        self.assertEqual(r.version, "HTTP/1.1")
        self.assertRegex(r.field("Via"), r"^1\.1 cuttle\.test")
        q = o.last()
        self.assertEqual(q.start, "GET /a/b?c=d HTTP/1.1")
        self.assertEqual((q.field("Host"), q.field("X-To")), (o.authority, "origin"))
        self.assertRegex(q.field("Via"), r"^1\.1 cuttle\.test")

    def test_an_empty_path_becomes_a_slash(self):
        o = self.origin(reply())
        self.get(self.cuttle(), "http://" + o.authority)
        self.assertEqual(o.last().target, "/")

    def test_a_head_response_keeps_its_length_and_has_no_body(self):
        o = self.origin(reply("200 OK", "Content-Length: 1000", body=b""))
        with Client(self.cuttle().address) as c:
            for _ in range(2):
                r = c.get(o.url("/h"), method="HEAD")
                self.assertEqual((r.status, r.field("Content-Length")), (200, "1000"))

    def test_a_post_with_a_length_arrives(self):
        o = self.origin(reply(body=b"thanks"))
        r = self.get(self.cuttle(), o.url("/p"), method="POST", body=pattern(3_000_000))
        self.assertEqual((r.status, r.body), (200, b"thanks"))
        self.assertEqual((o.last().method, o.last().body), ("POST", pattern(3_000_000)))

    def test_a_chunked_post_arrives(self):
        o = self.origin(reply(body=b"thanks"))
        body = chunks(b"a", pattern(100_000), b"z" * 7, trailers=["X-Sum: 1"])
        with Client(self.cuttle().address) as c:
            r = c.get(o.url("/p"), "Transfer-Encoding: chunked", method="POST", body=body)
            self.assertEqual(r.status, 200)
            self.assertEqual(o.last().body, b"a" + pattern(100_000) + b"z" * 7)
            self.assertEqual(c.get(o.url("/next")).status, 200)

    def test_an_empty_body_is_a_body(self):
        o = self.origin(reply())
        with Client(self.cuttle().address) as c:
            c.get(o.url("/p"), method="POST", body=b"")
            self.assertEqual(o.last().field("Content-Length"), "0")
            c.get(o.url("/p"), "Transfer-Encoding: chunked", method="POST", body=chunks())
            self.assertEqual(o.last().body, b"")

    def test_unknown_methods_pass(self):
        o = self.origin(reply(body=b"ok"))
        p = self.cuttle()
        for method in ("PROPFIND", "FROB", "x-my.method", "PATCH", "DELETE"):
            self.assertEqual(self.get(p, o.url("/m"), method=method).body, b"ok")
            self.assertEqual(o.last().method, method)

    def test_options_of_a_whole_server_becomes_an_asterisk(self):
        """RFC 9112 3.2.4: no path and no query in OPTIONS means the server itself."""
        o = self.origin(reply())
        self.get(self.cuttle(), "http://" + o.authority, method="OPTIONS")
        self.assertEqual(o.last().target, "*")

    def test_an_asterisk_is_answered_here(self):
        r = self.raw(self.cuttle(), "OPTIONS * HTTP/1.1\r\nHost: cuttle.test\r\n\r\n")
        self.assertIn(r.status, (200, 204))

    def test_max_forwards_counts_down_and_ends_here(self):
        """RFC 9110 7.6.2."""
        o = self.origin(reply())
        p = self.cuttle()
        self.assertIn(self.get(p, o.url("/"), "Max-Forwards: 0", method="OPTIONS").status,
                      (200, 204))
        self.get(p, o.url("/"), "Max-Forwards: 0", method="TRACE")
        self.assertEqual(o.requests, [])
        self.get(p, o.url("/"), "Max-Forwards: 5", method="OPTIONS")
        self.assertEqual(o.last().field("Max-Forwards"), "4")
        self.get(p, o.url("/"), method="OPTIONS")
        self.assertIsNone(o.last().field("Max-Forwards"))

    def test_204_and_304_end_with_their_head(self):
        """RFC 9112 6.3: neither has a body, and the connection goes on."""
        o = self.origin({"/204": reply("204 No Content", length=False),
                         "/304": reply("304 Not Modified", 'ETag: "a"', length=False),
                         "/200": reply(body=b"next")})
        with Client(self.cuttle().address) as c:
            c.request("GET", o.url("/204"))
            c.request("GET", o.url("/304"), 'If-None-Match: "a"')
            c.request("GET", o.url("/200"))
            self.assertEqual(c.read_response().status, 204)
            r = c.read_response()
            self.assertEqual((r.status, r.field("ETag")), (304, '"a"'))
            self.assertEqual(c.read_response().body, b"next")

    def test_a_304_passed_on_says_the_length_the_origin_said_or_none(self):
        """RFC 9110 8.6: it would be the length of the 200, which nobody here knows."""
        o = self.origin({"/silent": reply("304 Not Modified", 'ETag: "a"', length=False),
                         "/says": reply("304 Not Modified", "Content-Length: 5", length=False)})
        with Client(self.cuttle().address) as c:
            for path, length in (("/silent", None), ("/says", "5")):
                for method in ("GET", "HEAD"):
                    c.request(method, o.url(path), 'If-None-Match: "a"')
                    r = c.read_response(method)
                    self.assertEqual((r.status, r.field("Content-Length")), (304, length))

    def test_early_hints_pass_and_the_final_response_follows(self):
        hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nLink: </b.css>\r\n\r\n"
        o = self.origin((hints, 0.2, hints, reply(body=b"final")))
        with Client(self.cuttle().address) as c:
            for _ in range(2):
                r = c.get(o.url("/%d" % time.monotonic_ns()))
                self.assertEqual((r.status, r.body), (200, b"final"))
                self.assertEqual([i.status for i in r.interim], [103, 103])
                self.assertIn("</a.css>", r.interim[0].field("Link"))

    def test_early_hints_never_reach_an_http_1_0_client(self):
        """RFC 9110 15.2."""
        o = self.origin(("HTTP/1.1 103 Early Hints\r\n\r\n", reply(body=b"final")))
        r = self.get(self.cuttle(), o.url("/"), version="HTTP/1.0")
        self.assertEqual((r.status, r.body, r.interim), (200, b"final", []))

    def test_trailers_never_become_fields(self):
        """RFC 9110 6.5.1."""
        o = self.origin(chunked(b"abc", b"def", trailers=["X-Sum: 1", "Set-Cookie: a=b"]))
        with Client(self.cuttle().address) as c:
            for _ in range(2):
                r = c.get(o.url("/t"), "TE: trailers", "Connection: TE")
                self.assertEqual(r.body, b"abcdef")
                self.assertIsNone(r.field("X-Sum"))
                self.assertIsNone(r.field("Set-Cookie"))
                self.assertIn(("X-Sum", "1"), r.trailers)

    def test_trailers_of_a_stored_response_are_no_fields_either(self):
        """Framing and cookies are not taken from behind a body, whether the client wants any."""
        trailers = ["X-Sum: 1", "Content-Length: 9", "Transfer-Encoding: x", "Set-Cookie: a=b"]
        o = self.origin(chunked(b"abc", b"def", fields=["Cache-Control: max-age=60"],
                                trailers=trailers))
        p = self.cuttle()
        for fields in ([], ["TE: trailers", "Connection: TE"], []):
            r = self.get(p, o.url("/"), *fields)
            self.assertEqual((r.status, r.body), (200, b"abcdef"))
            for name in ("X-Sum", "Set-Cookie"):
                self.assertIsNone(r.field(name))
            self.assertFalse({n.lower() for n, _ in r.trailers} &
                             {"content-length", "transfer-encoding"}, r.trailers)
        self.assertEqual(self.get(p, o.url("/"), version="HTTP/1.0").body, b"abcdef")
        self.assertEqual(len(o.requests), 1)

    def test_a_megabyte_of_trailers_is_cut_off(self):
        """What is kept of them is bounded; the response must not look whole then, or lacks them."""
        many = ["X-%d: %s" % (i, "t" * 100) for i in range(10_000)]
        o = self.origin(chunked(b"abc", trailers=many, fields=["Cache-Control: max-age=60"]))
        p = self.cuttle(lean=True)
        before = p.memory_kb()
        for _ in range(10):
            try:
                r = self.get(p, o.url("/"))
                self.assertEqual(r.body, b"abc")
                self.assertLess(sum(len(n) + len(v) for n, v in r.trailers), 128 << 10)
            except Incomplete as e:
                self.assertIn(e.partial, (b"", b"abc"))
        self.assertLess(p.memory_kb() - before, MEMORY_FACTOR * (4 << 10))

    def test_a_body_that_ends_with_the_connection_is_passed_on(self):
        o = self.origin((reply(length=False), pattern(300_000), 0.1, b"end", CLOSE))
        with Client(self.cuttle().address) as c:
            r = c.get(o.url("/"))
            self.assertEqual(r.body, pattern(300_000) + b"end")

    def test_one_byte_chunks_arrive_whole(self):
        body = pattern(20_000)
        o = self.origin(lambda q: (reply("200 OK", "Transfer-Encoding: chunked"),
                                   chunks(*[body[i:i + 1] for i in range(len(body))])))
        self.assertEqual(self.get(self.cuttle(), o.url("/")).body, body)

    def test_bytes_that_trickle_in_are_a_request_and_a_response(self):
        o = self.origin(lambda q, c: c.send(reply(body=b"slow"), piece=3, pause_s=0.002))
        with Client(self.cuttle().address) as c:
            c.send("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (o.url("/"), o.authority), 2, 0.002)
            self.assertEqual(c.read_response().body, b"slow")


class Expectations(Scenario):
    def upload(self, c, o, *fields):
        c.request("POST", o.url("/up"), "Expect: 100-continue", "Content-Length: 100000", *fields)

    def test_the_client_is_told_to_go_on(self):
        o = self.origin(reply(body=b"got it"))
        with Client(self.cuttle().address) as c:
            self.upload(c, o)
            self.assertEqual(c.read_response_head().status, 100)
            c.send(pattern(100_000))
            self.assertEqual(c.read_response().body, b"got it")
        self.assertEqual(o.last().body, pattern(100_000))

    def test_a_refusal_comes_before_the_body(self):
        """RFC 9110 10.1.1: the final status is passed on while the client still waits."""
        o = self.origin(reply("403 Forbidden", body=b"no"), reads_bodies=False)
        with Client(self.cuttle().address) as c:
            self.upload(c, o)
            r = c.read_response()
            self.assertEqual((r.status, r.body), (403, b"no"))

    def test_a_body_that_is_already_there_is_no_dead_lock(self):
        o = self.origin(reply(body=b"got it"))
        with Client(self.cuttle().address) as c:
            self.upload(c, o)
            c.send(pattern(100_000))
            self.assertEqual(c.read_response().body, b"got it")
        self.assertEqual(o.last().body, pattern(100_000))

    def test_an_origin_that_ignores_the_expectation_still_gets_the_body(self):
        o = self.origin(reply(body=b"got it"), continues=False)
        with Client(self.cuttle().address) as c:
            self.upload(c, o)
            self.assertEqual(c.read_response_head().status, 100)
            c.send(pattern(100_000))
            self.assertEqual(c.read_response().body, b"got it")

    def test_a_response_in_the_middle_of_an_upload_is_passed_on(self):
        """RFC 9112 9.3: the origin may answer early; nothing hangs."""
        o = self.origin((reply("413 Content Too Large", "Connection: close", body=b"big"), 0.3,
                         CLOSE), reads_bodies=False)
        with Client(self.cuttle().address) as c:
            c.request("POST", o.url("/up"), "Content-Length: 50000000")
            try:
                for _ in range(100):
                    c.send(b"x" * 10_000)
            except OSError:
                pass
            self.assertEqual(c.read_response().status, 413)


class Connections(Scenario):
    def test_both_sides_are_kept(self):
        o = self.origin(lambda q: reply(body=q.target.encode()))
        p = self.cuttle(workers=1)
        with Client(p.address) as c:
            for i in range(10):
                self.assertEqual(c.get(o.url("/%d" % i)).body, b"/%d" % i)
        self.assertEqual((len(o.requests), o.connections), (10, 1))

    def test_persistence_can_be_switched_off(self):
        o = self.origin(reply(body=b"x"))
        p = self.cuttle("client_persistent_connections off", "server_persistent_connections off")
        for _ in range(3):
            with Client(p.address) as c:
                r = c.get(o.url("/"))
                self.assertIn("close", r.tokens("Connection"))
                c.expect_close()
        self.assertEqual(o.connections, 3)

    def test_a_close_of_the_client_is_honoured(self):
        o = self.origin(reply(body=b"x"))
        with Client(self.cuttle().address) as c:
            r = c.get(o.url("/"), "Connection: close")
            self.assertIn("close", r.tokens("Connection"))
            c.expect_close()
        self.assertNotIn("close", o.last().tokens("Connection"))

    def test_pipelined_requests_are_answered_in_order(self):
        """RFC 9112 9.3.2."""
        sizes = [300_000, 10, 0, 2_000_000, 1, 5000, 100_000, 3, 70_000, 12]

        def answer(q):
            i = int(q.target[1:])
            return (0.5 if i == 0 else 0.0, reply(body=pattern(sizes[i], i)))
        o = self.origin(answer)
        with Client(self.cuttle().address) as c:
            c.send("".join("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (o.url("/%d" % i), o.authority)
                           for i in range(10)))
            for i in range(10):
                self.assertEqual(c.read_response().body, pattern(sizes[i], i))

    def test_a_close_delimited_response_in_a_pipeline_spoils_nothing(self):
        o = self.origin(lambda q: (reply(length=False), pattern(100_000, 1), CLOSE)
                        if q.target == "/1" else reply(body=pattern(1000, int(q.target[1:]))))
        with Client(self.cuttle().address) as c:
            for i in range(3):
                c.request("GET", o.url("/%d" % i))
            self.assertEqual(c.read_response().body, pattern(1000, 0))
            r = c.read_response()
            self.assertEqual(r.body, pattern(100_000, 1))
            if not r.until_close:
                self.assertEqual(c.read_response().body, pattern(1000, 2))

    def test_a_pipelined_post_does_not_swallow_the_next_request(self):
        o = self.origin(lambda q: reply(body=q.body + q.target.encode()))
        with Client(self.cuttle().address) as c:
            c.send("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 3\r\n\r\nabc"
                   "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n"
                   % (o.url("/1"), o.authority, o.url("/2"), o.authority))
            self.assertEqual(c.read_response().body, b"abc/1")
            self.assertEqual(c.read_response().body, b"/2")

    def test_an_http_1_0_client_gets_no_chunks(self):
        """RFC 9112 6.1, C.2.2."""
        o = self.origin({"/c": chunked(b"abc", pattern(50_000)), "/l": reply(body=b"xyz")})
        p = self.cuttle()
        with Client(p.address) as c:
            r = c.get(o.url("/c"), version="HTTP/1.0")
            self.assertEqual(r.body, b"abc" + pattern(50_000))
            self.assertIsNone(r.field("Transfer-Encoding"))
            c.expect_close()
        with Client(p.address) as c:
            self.assertEqual(c.get(o.url("/l"), version="HTTP/1.0").body, b"xyz")
            c.expect_close()

    def test_an_http_1_0_client_may_ask_to_be_kept(self):
        o = self.origin(reply(body=b"xyz"))
        with Client(self.cuttle().address) as c:
            for field in ("Connection: keep-alive", "Proxy-Connection: keep-alive"):
                r = c.get(o.url("/"), field, version="HTTP/1.0")
                self.assertEqual(r.body, b"xyz")
                if "keep-alive" not in r.tokens("Connection") + r.tokens("Proxy-Connection"):
                    c.expect_close()
                    return

    def test_an_http_1_0_client_is_kept_only_with_a_length(self):
        """RFC 9112 9.3: the end of what has none is told by the close; once stored, it has one."""
        body = b"abc" + pattern(50_000)
        o = self.origin(chunked(body[:3], body[3:], fields=["Cache-Control: max-age=60"]))
        p = self.cuttle()
        for field in ("Connection: keep-alive", "Proxy-Connection: keep-alive"):
            for turn in range(2):
                with Client(p.address) as c:
                    r = c.get(o.url("/" + field[:1]), field, version="HTTP/1.0")
                    self.assertEqual((r.body, r.field("Transfer-Encoding")), (body, None))
                    if turn == 1:
                        self.assertEqual(r.field("Content-Length"), str(len(body)))
                    if r.until_close or "keep-alive" not in r.tokens("Connection"):
                        c.expect_close()
                    else:
                        self.assertEqual(c.get(o.url("/" + field[:1]), version="HTTP/1.0").body,
                                         body)

    def test_an_http_1_0_origin_is_understood(self):
        o = self.origin((b"HTTP/1.0 200 OK\r\nX-A: b\r\n\r\nold", CLOSE))
        r = self.get(self.cuttle(), o.url("/"))
        self.assertEqual((r.status, r.body, r.version), (200, b"old", "HTTP/1.1"))

    def test_a_half_closed_client_still_gets_its_answer(self):
        """RFC 9112 9.6: the end of the requests is not the end of the client."""
        o = self.origin((0.5, reply(body=b"late")))
        p = self.cuttle()
        for body in (None, b"abc"):
            with Client(p.address) as c:
                c.request("POST" if body else "GET", o.url("/"), body=body)
                c.half_close()
                self.assertEqual(c.read_response().body, b"late")
                c.expect_close()

    def test_a_dead_idle_connection_is_invisible_to_the_client(self):
        o = self.origin((reply(body=b"x"), CLOSE))
        p = self.cuttle()
        with Client(p.address) as c:
            for i in range(5):
                self.assertEqual(c.get(o.url("/%d" % i)).body, b"x")
                time.sleep(0.05)

    def test_a_kept_connection_that_dies_on_us_is_tried_once_more(self):
        """RFC 9112 9.3.1: the request was never answered, and GET may be repeated."""
        def answer(q, c):
            c.play(CLOSE if q.connection == 0 and q.target == "/2" else reply(body=b"x"))
        o = self.origin(answer)
        p = self.cuttle(workers=1)
        with Client(p.address) as c:
            self.assertEqual(c.get(o.url("/1")).body, b"x")
            self.assertEqual(c.get(o.url("/2")).body, b"x")
        self.assertEqual([q.target for q in o.requests], ["/1", "/2", "/2"])

    def test_a_post_is_never_sent_twice(self):
        """RFC 9110 9.2.2: it may have been acted upon."""
        def answer(q, c):
            c.play(CLOSE if q.method == "POST" else reply(body=b"x"))
        o = self.origin(answer)
        with Client(self.cuttle(workers=1).address) as c:
            self.assertEqual(c.get(o.url("/1")).body, b"x")
            self.assertEqual(c.get(o.url("/2"), method="POST", body=b"pay").status, 502)
        self.assertEqual(len([q for q in o.requests if q.method == "POST"]), 1)

    def test_a_new_connection_that_says_nothing_is_502(self):
        o = self.origin(CLOSE)
        p = self.cuttle()
        r = self.get(p, o.url("/"))
        self.assertEqual(r.status, 502)
        self.assertLessEqual(len(o.requests), 2)

    def test_unasked_bytes_on_an_idle_connection_answer_nobody(self):
        """What an origin sends ahead of a request must not become its response."""
        o = self.origin(lambda q: (reply(body=b"right"), reply(body=b"smuggled")))
        p = self.cuttle(workers=1)
        with Client(p.address) as c:
            self.assertEqual(c.get(o.url("/1")).body, b"right")
            time.sleep(0.1)
            self.assertEqual(c.get(o.url("/2")).body, b"right")

    def test_a_slow_client_stops_the_origin(self):
        """Not asking is the back-pressure: little of a large body is held in between."""
        sent = [0]

        def stream(q, c):
            c.send(reply("200 OK", "Content-Length: %d" % (128 << 20)))
            block = pattern(1 << 20)
            for _ in range(128):
                c.send(block)
                sent[0] += len(block)
        o = self.origin(stream)
        p = self.cuttle(lean=True)
        before = p.memory_kb()
        with Client(p.address) as c:
            c.request("GET", o.url("/big"))
            c.read_until("\r\n\r\n")
            time.sleep(1.0)
            self.assertLess(sent[0], 64 << 20)
            self.assertLess(p.memory_kb() - before, MEMORY_FACTOR * (4 << 10))
            for _ in range(128):
                self.assertEqual(c.read_exactly(1 << 20), pattern(1 << 20))
            self.assertLess(p.memory_kb() - before, MEMORY_FACTOR * (4 << 10))

    def test_an_origin_that_does_not_read_stops_the_client(self):
        o = self.origin(SILENT, reads_bodies=False)
        p = self.cuttle(lean=True)
        before = p.memory_kb()
        with Client(p.address) as c:
            c.request("POST", o.url("/up"), "Content-Length: %d" % (256 << 20))
            c.sock.settimeout(1.0)
            sent = 0
            with self.assertRaises(socket.timeout):
                while sent < 256 << 20:
                    sent += c.sock.send(b"x" * (1 << 16))
            self.assertLess(sent, 64 << 20)
            self.assertLess(p.memory_kb() - before, MEMORY_FACTOR * (4 << 10))


class Fields(Scenario):
    HOP_BY_HOP = ("Keep-Alive: timeout=5", "Proxy-Connection: keep-alive", "X-A: 1", "x-b: 2")

    def test_fields_named_by_connection_stop_here_and_no_others(self):
        """RFC 9110 7.6.1, both ways."""
        o = self.origin(reply("200 OK", "Connection: close, X-A, x-b", *self.HOP_BY_HOP,
                              "X-AB: stays", "Proxy-Authenticate: Basic"))
        r = self.get(self.cuttle(), o.url("/"), "Connection: closee, X-A, x-b", *self.HOP_BY_HOP,
                     "X-AB: stays", "closee: gone", "Proxy-Authorization: Basic dTpw")
        for m in (o.last(), r):
            for name in ("X-A", "X-B", "Keep-Alive", "Proxy-Connection", "closee"):
                self.assertIsNone(m.field(name), name)
            self.assertEqual(m.field("X-AB"), "stays")
        self.assertIsNone(o.last().field("Proxy-Authorization"))

    def test_the_uri_decides_not_the_host_field(self):
        """RFC 9112 3.2.2."""
        o = self.origin(reply())
        self.get(self.cuttle(), o.url("/"), "Host: elsewhere.test")
        self.assertEqual(o.last().all("Host"), [o.authority])

    def test_user_information_is_neither_sent_nor_logged(self):
        """RFC 9110 4.2.4."""
        o = self.origin(reply())
        p = self.cuttle()
        r = self.get(p, "http://user:secret@%s/x" % o.authority, "Host: " + o.authority)
        self.assertIn(r.status, (200, 400))
        p.access_log(1)
        self.assertNotIn(b"secret", b"".join(o.received.values()))
        self.assertNotIn("secret", p.read("access.log"))

    def test_forwarded_for_follows_its_setting(self):
        o = self.origin(reply())
        for setting, given, sought in (
                ("on", None, "127.0.0.1"), ("on", "1.2.3.4", "1.2.3.4, 127.0.0.1"),
                ("off", None, "unknown"), ("delete", "1.2.3.4", None),
                ("transparent", "1.2.3.4", "1.2.3.4"), ("transparent", None, None),
                ("truncate", "1.2.3.4", "127.0.0.1")):
            fields = ["X-Forwarded-For: " + given] if given else []
            self.get(self.cuttle("forwarded_for " + setting), o.url("/"), *fields)
            self.assertEqual(o.last().field("X-Forwarded-For"), sought, setting)

    def test_via_off_leaves_no_trace(self):
        o = self.origin(reply())
        r = self.get(self.cuttle("via off"), o.url("/"))
        self.assertIsNone(o.last().field("Via"))
        self.assertIsNone(r.field("Via"))

    def test_a_via_of_others_is_kept(self):
        o = self.origin(reply("200 OK", "Via: 1.0 inner"))
        r = self.get(self.cuttle(), o.url("/"), "Via: 1.0 outer")
        self.assertRegex(o.last().field("Via"), r"^1\.0 outer, 1\.1 cuttle\.test")
        self.assertRegex(r.field("Via"), r"^1\.0 inner, 1\.1 cuttle\.test")

    def test_a_request_that_came_back_is_a_loop(self):
        """RFC 9110 7.6.3: our own name in Via; or our own address as the destination."""
        o = self.origin(reply())
        p = self.cuttle()
        r = self.get(p, o.url("/"), "Via: 1.1 cuttle.test (cuttle)")
        self.assertIn(r.status, (403, 508))
        self.assertEqual(o.requests, [])
        r = self.get(p, "http://127.0.0.1:%d/x" % p.port)
        self.assertIn(r.status, (403, 404, 508))

    def test_an_ipv6_literal_needs_no_lookup(self):
        try:
            o = self.origin(reply(body=b"six"), host="::1")
        except OSError:
            self.skipTest("no IPv6 here")
        r = self.get(self.cuttle(), o.url("/"))
        self.assertEqual((r.status, r.body), (200, b"six"))
        self.assertEqual(o.last().field("Host"), o.authority)

    def test_a_fault_is_told_three_ways(self):
        """A page for people, a status with Proxy-Status (RFC 9209), a log line."""
        p = self.cuttle()
        port = self.dead_port()
        r = self.get(p, 'http://127.0.0.2:%d/<script>"&' % port)
        if r.status == 400:
            r = self.get(p, "http://127.0.0.2:%d/%%3Cscript%%3E'&" % port)
        self.assertIn(r.status, (502, 503))
        self.assertRegex(r.field("Proxy-Status"), r"cuttle\.test; *error=connection_refused")
        self.assertIn("text/html", r.field("Content-Type"))
        self.assertIn("charset", r.field("Content-Type").lower())
        self.assertIn("no-store", r.field("Cache-Control") or "no-store")
        self.assertNotIn(b"<script>", r.body)
        self.assertNotIn(b"%d/%%3Cscript%%3E'&" % port, r.body)
        line = p.access_log(1)[-1]
        self.assertEqual(line.status, r.status)

    def test_an_origin_form_request_for_nothing_of_ours_is_an_error(self):
        r = self.raw(self.cuttle(), "GET /x HTTP/1.1\r\nHost: somewhere.test\r\n\r\n")
        self.assertIn(r.status, (400, 404))
        self.assertGreater(len(r.body), 100)

    def test_http_0_9_is_refused(self):
        o = self.origin(reply())
        p = self.cuttle()
        with Client(p.address) as c:
            c.send("GET %s\r\n\r\n" % o.url("/"))
            self.assertIn(c.read_response().status, (400, 505))
            c.expect_close()
        self.assertEqual(o.connections, 0)

    def test_the_access_log_has_squids_native_format(self):
        o = self.origin(reply("200 OK", "Content-Type: text/plain; charset=x", body=b"abc"))
        p = self.cuttle()
        before = time.time()
        with Client(p.address) as c:
            c.request("GET", o.url("/logged?q=1"))
            data = c.read_until("\r\n\r\n") + c.read_exactly(3)
        line = p.access_log(1)[0]
        self.assertRegex(line.text, r"^\d{10}\.\d{3} +\d+ 127\.0\.0\.1 TCP_MISS/200 %d GET %s - "
                         r"HIER_DIRECT/127\.0\.0\.1 text/plain$"
                         % (len(data), re.escape(o.url("/logged?"))))
        self.assertLess(abs(line.time - before), 5)

    def test_an_aborted_download_is_logged_as_such(self):
        o = self.origin((reply("200 OK", "Content-Length: 100000000"), pattern(1000), SILENT))
        p = self.cuttle()
        with Client(p.address) as c:
            c.request("GET", o.url("/gone"))
            c.read_until("\r\n\r\n")
            c.reset()
        self.assertIn("ABORTED", p.logged("/gone")[0].code)


class Tunnels(Scenario):
    def test_connect_carries_bytes_both_ways(self):
        o = self.origin(raw=lambda c: [c.send(c.read_exactly(10)[::-1]) for _ in range(3)])
        p = self.cuttle()
        with Client(p.address) as c:
            r = c.connect_tunnel(o.authority)
            self.assertIsNone(r.field("Content-Length"))
            self.assertIsNone(r.field("Transfer-Encoding"))
            for _ in range(3):
                c.send("0123456789")
                self.assertEqual(c.read_exactly(10), b"9876543210")
        line = p.access_log(1)[0]
        self.assertEqual((line.code, line.status, line.method, line.url),
                         ("TCP_TUNNEL", 200, "CONNECT", o.authority))
        self.assertGreaterEqual(line.bytes, 30)

    def test_bytes_sent_with_the_connect_are_not_lost(self):
        o = self.origin(raw=lambda c: c.send(c.read_exactly(5)))
        with Client(self.cuttle().address) as c:
            c.send("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\nhello" % (o.authority, o.authority))
            self.assertEqual(c.read_response("CONNECT").status, 200)
            self.assertEqual(c.read_exactly(5), b"hello")

    def test_the_end_of_the_client_is_passed_on_and_the_answer_still_comes(self):
        def serve(c):
            asked = c.read_all()
            time.sleep(0.3)
            c.send(asked + pattern(1 << 20))
        o = self.origin(raw=serve)
        with Client(self.cuttle().address) as c:
            c.connect_tunnel(o.authority)
            c.send("ask")
            c.half_close()
            self.assertEqual(c.read_all(), b"ask" + pattern(1 << 20))

    def test_the_end_of_the_origin_is_passed_on_and_it_still_hears(self):
        heard = []

        def serve(c):
            c.send("hello")
            c.half_close()
            heard.append(c.read_all())
        o = self.origin(raw=serve)
        with Client(self.cuttle().address) as c:
            c.connect_tunnel(o.authority)
            self.assertEqual(c.read_all(), b"hello")
            c.send(pattern(1 << 20))
            c.half_close()
            wait_for(lambda: heard, "the origin to hear the end")
        self.assertEqual(heard, [pattern(1 << 20)])

    def test_a_megabyte_each_way_at_once(self):
        def serve(c):
            sender = threading.Thread(target=c.send, args=(pattern(8 << 20),))
            sender.start()
            self.assertEqual(c.read_exactly(8 << 20), pattern(8 << 20, 1))
            sender.join()
        o = self.origin(raw=serve)
        with Client(self.cuttle().address) as c:
            c.connect_tunnel(o.authority)
            sender = threading.Thread(target=c.send, args=(pattern(8 << 20, 1),))
            sender.start()
            self.assertEqual(c.read_exactly(8 << 20), pattern(8 << 20))
            sender.join()

    def test_resets_leave_no_descriptor_behind(self):
        o = self.origin(raw=lambda c: c.read_exactly(1) and c.reset())
        p = self.cuttle()
        for _ in range(3):
            with Client(p.address) as c:
                c.connect_tunnel(o.authority)
        before = wait_for(p.descriptors)
        for i in range(100):
            c = Client(p.address)
            c.connect_tunnel(o.authority)
            c.reset() if i % 2 else (c.send("x"), c.read_all())
            c.close()
        wait_for(lambda: p.descriptors() <= before + 2, "the descriptors to come back")

    def test_connect_to_a_dead_port_is_told(self):
        p = self.cuttle()
        r = self.get(p, "127.0.0.2:%d" % self.dead_port(), method="CONNECT")
        self.assertIn(r.status, (502, 503))

    def test_an_upgrade_becomes_a_tunnel_after_101(self):
        """RFC 9110 7.8: 101 ends HTTP on this connection."""
        def answer(q, c):
            self.assertEqual(q.field("Upgrade"), "websocket")
            self.assertIn("upgrade", q.tokens("Connection"))
            c.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                   "Connection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\nfirst")
            while True:
                c.send(c.read_exactly(4)[::-1])
        o = self.origin(answer)
        with Client(self.cuttle().address) as c:
            c.request("GET", o.url("/ws"), "Upgrade: websocket", "Connection: Upgrade",
                      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13")
            r = c.read_response()
            self.assertEqual((r.status, r.field("Upgrade")), (101, "websocket"))
            self.assertIn("upgrade", r.tokens("Connection"))
            self.assertEqual(c.read_exactly(5), b"first")
            for _ in range(3):
                c.send("abcd")
                self.assertEqual(c.read_exactly(4), b"dcba")

    def test_an_upgrade_may_follow_a_body(self):
        """As docker exec does it: a POST with JSON, then raw bytes both ways."""
        def answer(q, c):
            self.assertEqual((q.field("Upgrade"), q.body), ("tcp", b'{"Tty": true}'))
            c.send("HTTP/1.1 101 UPGRADED\r\nUpgrade: tcp\r\nConnection: Upgrade\r\n\r\n")
            while True:
                c.send(c.read_exactly(4)[::-1])
        o = self.origin(answer)
        p = self.cuttle()
        for framing in (), ("Transfer-Encoding: chunked",):
            body = b'd\r\n{"Tty": true}\r\n0\r\n\r\n' if framing else b'{"Tty": true}'
            with Client(p.address) as c:
                c.request("POST", o.url("/exec/start"), "Upgrade: tcp", "Connection: Upgrade",
                          *framing, body=body)
                self.assertEqual(c.read_response("POST").status, 101)
                c.send("abcdefgh")
                self.assertEqual(c.read_exactly(8), b"dcbahgfe")

    def test_a_refused_upgrade_is_a_normal_response(self):
        o = self.origin(reply(body=b"plain"))
        with Client(self.cuttle().address) as c:
            for _ in range(2):
                r = c.get(o.url("/ws"), "Upgrade: websocket", "Connection: Upgrade")
                self.assertEqual((r.status, r.body), (200, b"plain"))

    def test_an_upgrade_nobody_asked_for_is_502(self):
        o = self.origin("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"
                        "Connection: Upgrade\r\n\r\n")
        self.assertEqual(self.get(self.cuttle(), o.url("/")).status, 502)


class Many(Scenario):
    def test_many_clients_get_their_own_bodies(self):
        o = self.origin(lambda q: reply(body=pattern(20_000, int(q.target[1:]))))
        p = self.cuttle()

        def run(i):
            with Client(p.address) as c:
                for j in range(20):
                    n = i * 100 + j
                    self.assertEqual(c.get(o.url("/%d" % n)).body, pattern(20_000, n))
        together(16, run)
        self.assertEqual(len(p.access_log(320)), 320)

    def test_a_cut_response_is_cut_for_the_client_too(self):
        """RFC 9112 8: an incomplete message must look incomplete."""
        o = self.origin((reply("200 OK", "Content-Length: 1000"), b"x" * 500, 0.1, CLOSE))
        with self.assertRaises(Incomplete) as told:
            self.get(self.cuttle(), o.url("/"))
        self.assertEqual(told.exception.partial, b"x" * 500)


if __name__ == "__main__":
    harness.main()
