"""What belongs to one hop: fields, credentials, pages, loops of ours, and the ends of tunnels."""
import re
import threading
import time

import harness
from harness import Client, Scenario, reply, storable, together, wait_for


class Fields(Scenario):
    """RFC 9110 7.6.1."""
    OURS = ("Keep-Alive: timeout=5", "Proxy-Connection: keep-alive", "TE: gzip",
            "Trailer: X-Sum", "Upgrade: other/1", "X-A: 1", "x-b: 2", "X-AB: stays")
    GONE = ("Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Upgrade", "X-A", "X-B")

    def assert_cleaned(self, message):
        for name in self.GONE:
            self.assertIsNone(message.field(name), name)
        self.assertEqual(message.field("X-AB"), "stays")

    def test_the_fields_of_one_hop_go_no_further_and_are_not_stored(self):
        """RFC 9111 3.1: what the store gives out is as clean as what passed."""
        o = self.origin(storable(b"x", "Connection: X-A, , x-b", *self.OURS))
        p = self.cuttle()
        for hit in (False, True):
            r = self.get(p, o.url("/"), "Connection: X-A,x-b ,", *self.OURS)
            self.assertEqual(r.hit, hit)
            self.assert_cleaned(r)
        self.assert_cleaned(o.last())
        self.assertIsNone(o.last().field("Connection"))

    def test_connection_lines_are_read_together(self):
        o = self.origin(reply("200 OK", "Connection: X-A", "Connection: X-B", *self.OURS))
        r = self.get(self.cuttle(), o.url("/"), "connection: X-B", "CONNECTION: x-a", *self.OURS)
        self.assert_cleaned(o.last())
        self.assert_cleaned(r)

    def test_what_only_starts_like_close_closes_nothing(self):
        o = self.origin(reply("200 OK", "Connection: closee, clos", "closee: 1", "clos: 1"))
        with Client(self.cuttle(workers=1).address) as c:
            for _ in range(2):
                r = c.get(o.url("/"), "Connection: closee, xclose", "closee: 1", "xclose: 1")
                self.assertEqual(r.tokens("Connection"), [])
                for message in (r, o.last()):
                    self.assertEqual([n for n, _ in message.fields if "clos" in n.lower()], [])
        self.assertEqual(o.connections, 1)


class Credentials(Scenario):
    """RFC 9110 11.7.2: what a client tells a proxy ends there. (No login here, no parent.)"""
    SECRET = "dTpwcm94eS1zZWNyZXQ="
    FIELD = "Proxy-Authorization: Basic " + SECRET

    def test_they_reach_no_origin_by_any_way(self):
        o = self.origin(reply(body=b"x"))
        p = self.cuttle()
        for method in ("GET", "POST", "OPTIONS", "TRACE", "FROB"):
            self.assertEqual(self.get(p, o.url("/"), self.FIELD, method=method).status, 200)
        self.get(p, o.url("/ws"), self.FIELD, "Upgrade: x", "Connection: Upgrade")
        self.get(p, o.url("/"), self.FIELD, "Connection: Proxy-Authorization", "Max-Forwards: 3",
                 method="OPTIONS")
        self.assertEqual(len(o.requests), 7)
        t = self.origin(raw=lambda c: c.send(c.read_exactly(5)))
        with Client(p.address) as c:
            self.assertEqual(c.get(t.authority, self.FIELD, method="CONNECT").status, 200)
            c.send("hello")
            self.assertEqual(c.read_exactly(5), b"hello")
        for seen in list(o.received.values()) + list(t.received.values()):
            self.assertNotIn(self.SECRET.encode(), seen)

    def test_they_come_back_in_no_answer_of_ours(self):
        """TRACE that ends here repeats the request; a page tells what was asked."""
        p = self.cuttle()
        dead = "http://127.0.0.2:%d/" % self.dead_port()
        for method, fields in (("TRACE", ("Max-Forwards: 0",)), ("GET", ())):
            r = self.get(p, dead, self.FIELD, *fields, method=method)
            self.assertNotIn(self.SECRET.encode(), r.raw_head + r.body)

    def test_no_log_has_them(self):
        """Those with all fields neither, and not for requests that were refused."""
        o = self.origin(reply(body=b"x"))
        folder = self.temporary_folder()
        p = self.cuttle("log_mime_hdrs on", "logformat all %ru %>h %{Proxy-Authorization}>h",
                        "access_log stdio:%s/squid squid" % folder,
                        "access_log stdio:%s/all all" % folder, arguments=("-d", "9"))
        self.get(p, o.url("/seen"), self.FIELD, "X-Other: told")
        self.get(p, "http://127.0.0.2:%d/dead" % self.dead_port(), self.FIELD)
        self.raw(p, "GET http://x/bad HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Length: x\r\n\r\n"
                 % self.FIELD)
        self.raw(p, "GET http://x/bad HTTP/1.1\r\nHost: x\r\n%s\r\nno field\r\n\r\n" % self.FIELD)
        p.stop()
        for name in ("squid", "all"):
            with open("%s/%s" % (folder, name)) as f:
                text = f.read()
            self.assertEqual(text.count("\n"), 4)
            self.assertIn("told", text)
            self.assertNotIn(self.SECRET, text)
        self.assertNotIn(self.SECRET, p.cache_log())

    def test_they_select_no_variant(self):
        """The origin never saw them, so its answer cannot depend on them, whatever Vary says."""
        o = self.origin(storable(b"x", "Vary: Proxy-Authorization"))
        p = self.cuttle()
        self.assertFalse(self.get(p, o.url("/"), self.FIELD).hit)
        for fields in ((self.FIELD,), (), ("Proxy-Authorization: Basic b3RoZXI=",)):
            r = self.get(p, o.url("/"), *fields)
            self.assertEqual((r.body, r.hit), (b"x", True), fields)
            self.assertNotIn(self.SECRET.encode(), r.raw_head)
        self.assertEqual(len(o.requests), 1)


class Pages(Scenario):
    """What people see of a fault is written by us alone."""
    SCRIPT, ATTRIBUTE = "<script>alert(1)</script>", "'\"onload=alert(1)"

    def judge(self, r, *statuses):
        self.assertIn(r.status, statuses)
        self.assertEqual(r.all("Content-Type"), ["text/html; charset=utf-8"])
        self.assertEqual(r.all("Cache-Control"), ["no-store"])
        self.assertEqual(r.all("X-Content-Type-Options"), ["nosniff"])
        text = r.body.decode("ascii")
        self.assertRegex(text, r"(?s)^<!DOCTYPE html>.*</html>\n$")
        self.assertEqual(re.findall(r"<(?!/?(?:!DOCTYPE|html|head|meta|title|style|body|h1|p|code|"
                                    r"footer)\b)", text), [])
        self.assertNotIn("(null)", text)
        self.assertNotRegex(text, r"onload=alert|X-Secret|['\"]onload")
        self.assertEqual([n for n, _ in r.fields if n.lower() in ("x", "y", "x-secret")], [])
        return text

    def test_urls_are_escaped_in_them(self):
        p = self.cuttle()
        dead = "http://127.0.0.2:%d/" % self.dead_port()
        for path in (self.SCRIPT, "%0d%0aY:z", "%3Cscript%3E", "&lt;script&amp;"):
            text = self.judge(self.get(p, dead + path, "X-Secret: X-Secret"), 502)
            shown = path.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            self.assertIn("<code>%s%s</code>" % (dead, shown), text)
        r = self.get(p, dead + self.ATTRIBUTE)
        self.assertIn(b"&#39;&quot;onload=alert(1)</code>", r.body)

    def test_a_long_url_does_not_outgrow_them(self):
        p = self.cuttle()
        r = self.get(p, "http://127.0.0.2:%d/" % self.dead_port() + "<" * 30_000)
        self.judge(r, 502)
        self.assertLess(len(r.body), 20_000)

    def test_heads_that_are_none_are_not_repeated_in_them(self):
        p = self.cuttle()
        for head in (" http://x/ HTTP/1.1\r\nHost: x", "GET http://x%0d%0aY:z/ HTTP/1.1\r\nHost: x",
                     "GET http://" + self.SCRIPT + "/ HTTP/1.1\r\nHost: x",
                     "GET http://x/ HTTP/1.1\r\nHost: " + self.SCRIPT,
                     "GET http://x/ HTTP/1.1\r\nHost: x\r\nX-Secret : " + self.SCRIPT,
                     self.SCRIPT + " / HTTP/1.1\r\nHost: x",
                     "GET http://x/%s\r\nX: y" % self.SCRIPT,
                     "\x00\x01<script>"):
            self.judge(self.raw(p, head + "\r\n\r\n"), 400)

    def test_other_faults_have_the_same_pages(self):
        d = self.dns()
        o = self.origin(b"HTTP/1.1 200 <script>\r\nX-Secret\x00: y\r\n\r\n")
        p = self.cuttle(d.conf, "acl no urlpath_regex no", "http_access deny no",
                        "cache_mgr <b>&'@a.test")
        self.assertIn("nowhere.test", self.judge(self.get(
            p, "http://nowhere.test/" + self.SCRIPT), 503))
        self.judge(self.get(p, o.url("/" + self.SCRIPT)), 502)
        self.judge(self.get(p, o.url("/no" + self.SCRIPT)), 403)
        self.judge(self.get(p, "gopher://x/" + self.SCRIPT), 501)
        self.judge(self.raw(p, "GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % self.SCRIPT), 400, 404)


class Loops(Scenario):
    """RFC 9110 7.6.3. (No parents here, and no intercepting ports.)"""

    def assert_loop(self, p, url, *fields, method="GET", source=None):
        with Client(p.address, source=source) as c:
            r = c.get(url, *fields, method=method)
        self.assertEqual(r.status, 508, url)
        self.assertIn("proxy_loop_detected", r.field("Proxy-Status"))

    def test_our_own_socket_is_no_destination_by_whatever_name(self):
        p = self.cuttle(self.hosts(me_test="127.0.0.1", cuttle_test="127.0.0.1"))
        urls = ["http://%s:%d/x%d" % (host, p.port, i) for i, host in enumerate(
            ("127.0.0.1", "me.test", "ME.test", "cuttle.test", "localhost", "[::ffff:127.0.0.1]"))]
        for url in urls:
            self.assert_loop(p, url)
        self.assert_loop(p, "me.test:%d" % p.port, method="CONNECT")
        lines = p.access_log(len(urls) + 1)
        self.assertEqual([a.status for a in lines], [508] * (len(urls) + 1))
        for i in range(len(urls)):
            wait_for(lambda: "/x%d:" % i in p.cache_log(), "a line about the loop")
            self.assertEqual(p.cache_log().count("/x%d:" % i), 1)

    def test_our_own_name_in_via_is_a_loop_and_that_of_others_is_not(self):
        o = self.origin(reply(body=b"x"))
        p = self.cuttle()
        for via in ("1.1 cuttle.test (cuttle)", "1.0 CUTTLE.test", "1.1 a, 1.1 cuttle.test, 1.1 b",
                    'HTTP/1.1 cuttle.test', '1.1 "a, 1.1 cuttle.test'):
            self.assert_loop(p, o.url("/"), "Via: " + via)
        self.assertEqual(o.connections, 0)
        for via in ("1.1 xcuttle.test", "1.1 cuttle.test.a", "1.1 a (1.1 cuttle.test)"):
            r = self.get(p, o.url("/"), "Via: " + via)
            self.assertEqual(r.status, 200, via)
            self.assertEqual(o.last().field("Via"), via + ", 1.1 cuttle.test (cuttle)")
            self.assertEqual(r.field("Via"), "1.1 cuttle.test (cuttle)")

    def test_a_request_for_the_proxy_itself_is_answered_here(self):
        p = self.cuttle()
        for host in ("127.0.0.1:%d" % p.port, "cuttle.test:%d" % p.port, "elsewhere.test"):
            r = self.raw(p, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
            self.assertEqual(r.status, 200)
            self.assertIn(b"cuttle", r.body)
        self.assertEqual(len(p.access_log(3)), 3)

    def test_another_proxy_on_this_machine_is_no_loop(self):
        """The same address, another port."""
        o = self.origin(reply(body=b"x"))
        inner, outer = self.cuttle("visible_hostname inner.test"), self.cuttle()
        with Client(outer.address) as c:
            c.connect_tunnel("127.0.0.1:%d" % inner.port)
            self.assertEqual(c.get(o.url("/")).body, b"x")
        self.assertRegex(o.last().field("Via"), r"^1\.1 inner\.test")


class MaxForwards(Scenario):
    """RFC 9110 7.6.2."""

    def test_every_number_is_counted_down_and_what_is_none_is_dropped(self):
        o = self.origin(reply())
        p = self.cuttle()
        for given, sent in (("1", "0"), ("012", "11"), ("2", "1"), ("255", "254"), ("x", None),
                            ("-1", None), ("1 2", None), ("", None)):
            for method in ("OPTIONS", "TRACE"):
                self.get(p, o.url("/"), "Max-Forwards: " + given, method=method)
                self.assertEqual((o.last().method, o.last().field("Max-Forwards")), (method, sent))
        self.get(p, o.url("/"), "Max-Forwards: " + "9" * 21, method="OPTIONS")
        self.assertRegex(o.last().field("Max-Forwards"), r"^[1-9][0-9]{0,9}$")

    def test_zero_ends_here_however_it_is_written(self):
        o = self.origin(reply())
        p = self.cuttle()
        for given in ("0", "000", "0" * 21):
            for method in ("OPTIONS", "TRACE"):
                r = self.get(p, o.url("/"), "Max-Forwards: " + given, method=method)
                self.assertEqual(r.status, 200)
        self.assertEqual(o.connections, 0)

    def test_other_methods_pass_it_by(self):
        o = self.origin(reply(body=b"x"))
        self.assertEqual(self.get(self.cuttle(), o.url("/"), "Max-Forwards: 0").body, b"x")


class Closed(Scenario):
    def test_purge_is_off_until_a_rule_names_it(self):
        o = self.origin(storable(b"x"))
        p = self.cuttle()
        self.get(p, o.url("/"))
        self.assertEqual(self.get(p, o.url("/"), method="PURGE").status, 403)
        self.assertTrue(self.get(p, o.url("/")).hit)
        p = self.cuttle("acl purge method PURGE", "http_access allow localhost purge",
                        "http_access deny purge")
        self.get(p, o.url("/"))
        with Client(p.address, source="127.0.0.5") as c:
            self.assertEqual(c.get(o.url("/"), method="PURGE").status, 403)
            self.assertTrue(c.get(o.url("/")).hit)
        self.assertEqual(self.get(p, o.url("/"), method="PURGE").status, 200)
        self.assertFalse(self.get(p, o.url("/")).hit)
        self.assertNotIn("PURGE", [q.method for q in o.requests])


class Connect(Scenario):
    def test_a_name_and_both_kinds_of_addresses_are_accepted(self):
        """RFC 9110 9.3.6."""
        four = self.origin(raw=lambda c: c.send(b"four"))
        p = self.cuttle(self.hosts(name_test="127.0.0.1"))
        targets = [("127.0.0.1:%d" % four.port, b"four"), ("name.test:%d" % four.port, b"four"),
                   ("NAME.test.:%d" % four.port, b"four")]
        try:
            six = self.origin(raw=lambda c: c.send(b"six"), host="::1")
            targets.append(("[::1]:%d" % six.port, b"six"))
        except OSError:
            pass                                    # no IPv6 here
        for target, said in targets:
            with Client(p.address) as c:
                c.connect_tunnel(target)
                self.assertEqual(c.read_all(), said, target)

    def test_the_first_and_the_last_port_are_ports(self):
        p = self.cuttle()
        for port, statuses in ((1, (200, 502, 503)), (65535, (200, 502, 503)), (0, (400,)),
                               (65536, (400,))):
            r = self.get(p, "127.0.0.2:%d" % port, method="CONNECT")
            self.assertIn(r.status, statuses, port)

    def test_what_is_no_host_and_port_opens_nothing_and_ends_the_connection(self):
        o = self.origin(raw=lambda c: c.read_all())
        p = self.cuttle(self.hosts(name_test="127.0.0.1"))
        n = o.port
        for target in ("[127.0.0.1]:%d" % n, "[name.test]:%d" % n, "[localhost]:%d" % n,
                       "[::1%%lo]:%d" % n, "::1:%d" % n, "127.0.0.1 :%d" % n, "127.0.0.1: %d" % n,
                       "127.0.0.1:%d:%d" % (n, n), "name.test", "http://name.test:%d/" % n,
                       "name.test:%d/" % n, "name.test:%d?" % n, "user@name.test:%d" % n,
                       "name.test:0x%x" % n, "name.test:%d" % (n + 65536), "name%%2etest:%d" % n):
            with Client(p.address) as c:
                c.send("CONNECT %s HTTP/1.1\r\nHost: name.test:%d\r\n\r\nhello" % (target, n))
                self.assertEqual(c.read_response("CONNECT").status, 400, target)
                c.expect_close()
        self.assertEqual(o.connections, 0)


class TunnelEnds(Scenario):
    """RFC 9110 9.3.6: an end is an end, a reset is one, and neither leaves anything behind."""

    def test_a_reset_of_the_client_is_one_for_the_origin(self):
        told = threading.Event()

        def serve(c):
            c.send("hello")
            try:
                while c.sock.recv(1000):
                    pass
            except ConnectionResetError:
                told.set()
        o = self.origin(raw=serve)
        p = self.cuttle()
        with Client(p.address) as c:
            c.connect_tunnel(o.authority)
            self.assertEqual(c.read_exactly(5), b"hello")
            c.reset()
        self.assertTrue(told.wait(harness.TIMEOUT_S), "the origin saw no reset")
        self.assertEqual(len(p.access_log(1)), 1)

    def test_a_reset_of_the_origin_is_one_for_the_client(self):
        o = self.origin(raw=lambda c: (c.read_exactly(5), c.reset()))
        p = self.cuttle()
        with Client(p.address) as c:
            c.connect_tunnel(o.authority)
            c.send("hello")
            with self.assertRaises(ConnectionResetError):
                c.sock.recv(1000)
        self.assertEqual(len(p.access_log(1)), 1)

    def test_a_thousand_resets_leave_no_descriptor_behind(self):
        o = self.origin(raw=lambda c: c.reset() if c.read_exactly(1) == b"r" else c.read_all())
        p = self.cuttle()

        def run(i):
            for n in range(125):
                with Client(p.address) as c:
                    c.connect_tunnel(o.authority)
                    c.send("r" if n % 2 else "s")
                    c.read_all() if n % 2 else c.reset()
        with Client(p.address) as c:
            c.connect_tunnel(o.authority)
            before = p.descriptors()
        together(8, run)
        wait_for(lambda: p.descriptors() <= before, "the descriptors to come back")
        wait_for(lambda: not o.open, "the origin's connections to end")

    def test_half_a_tunnel_ends_when_the_other_half_says_nothing(self):
        """Both ways round; the origin and the client wait for ever."""
        for end in ("client", "origin"):
            over = threading.Event()

            def serve(c):
                if end == "origin":
                    c.half_close()
                c.read_all()
                c.origin.closing.wait(1 if end == "client" else 0)
                while c.fill():
                    pass
                over.set()
            o = self.origin(raw=serve)
            p = self.cuttle("tunnel_idle_timeout 1 second")
            with Client(p.address) as c:
                c.connect_tunnel(o.authority)
                if end == "client":
                    c.half_close()
                self.assertEqual(c.read_all(), b"")
                wait_for(lambda: len(p.access_log()) == 1, "the tunnel to end")
            self.assertTrue(over.wait(harness.TIMEOUT_S))


class QuietTunnels(Scenario):
    """The clocks of requests and answers stop when a tunnel begins; it has one of its own."""
    SHORT = ("request_start_timeout 2 seconds", "request_timeout 2 seconds",
             "read_timeout 2 seconds",
             "write_timeout 2 seconds", "client_idle_pconn_timeout 2 seconds",
             "server_idle_pconn_timeout 2 seconds", "connect_timeout 2 seconds")
    SWITCH = (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"
              b"\x81\x00")

    def test_silence_beyond_all_other_times_cuts_nothing(self):
        """A WebSocket through CONNECT: to the proxy its 101 and its frames are bytes."""
        def serve(c):
            c.read_until("\r\n\r\n")
            c.send(self.SWITCH)
            while True:
                c.send(c.read_exactly(4)[::-1])
        o = self.origin(raw=serve)
        p = self.cuttle(*self.SHORT)
        with Client(p.address) as c:
            c.connect_tunnel(o.authority)
            c.send("GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
            self.assertEqual(c.read_exactly(len(self.SWITCH)), self.SWITCH)
            for silence_s in (4, 0.1):
                c.expect_silence(silence_s)
                c.send("abcd")
                self.assertEqual(c.read_exactly(4), b"dcba")
        self.assertGreater(p.access_log(1)[0].elapsed_ms, 4000)

    def test_an_upgraded_connection_is_as_patient(self):
        def answer(q, c):
            c.send(self.SWITCH)
            while True:
                c.send(c.read_exactly(4)[::-1])
        o = self.origin(answer)
        with Client(self.cuttle(*self.SHORT).address) as c:
            c.request("GET", o.url("/ws"), "Upgrade: x", "Connection: Upgrade")
            self.assertEqual(c.read_response().status, 101)
            c.read_exactly(2)
            c.expect_silence(4)
            c.send("abcd")
            self.assertEqual(c.read_exactly(4), b"dcba")

    def test_traffic_in_either_direction_counts_and_silence_in_both_ends_it(self):
        """Six seconds of one-way traffic under an idle time of four."""
        quiet = threading.Event()

        def serve(c):
            talks = c.read_exactly(1) == b"o"
            for _ in range(20 if talks else 0):
                c.send("tick")
                time.sleep(0.3)
            c.read_all()
            quiet.set()
        o = self.origin(raw=serve)
        p = self.cuttle("tunnel_idle_timeout 4 seconds")

        def run(i):
            with Client(p.address) as c:
                c.connect_tunnel(o.authority)
                c.send("o" if i else "c")
                for _ in range(0 if i else 20):
                    c.send("tick")
                    time.sleep(0.3)
                self.assertEqual(c.read_all(), b"tick" * 20 if i else b"")
        together(2, run)
        self.assertTrue(quiet.wait(harness.TIMEOUT_S))
        for line in p.access_log(2):
            self.assertGreater(line.elapsed_ms, 5900)
            self.assertGreaterEqual(line.bytes, 80 if line.bytes > 40 else 0)

    def test_the_system_looks_for_dead_peers_on_both_sides(self):
        """TCP keepalive: /proc/net/tcp tells which timer of a socket runs, and 02 is this one."""
        o = self.origin(raw=lambda c: c.read_all())
        p = self.cuttle()

        def timers(port_of_ours, port_of_theirs):
            with open("/proc/net/tcp") as f:
                rows = [line.split() for line in f.read().splitlines()[1:]]
            return [row[5].split(":")[0] for row in rows if row[3] == "01"
                    and port_of_ours in (None, int(row[1].split(":")[1], 16))
                    and port_of_theirs == int(row[2].split(":")[1], 16)]
        with Client(p.address) as c:
            c.connect_tunnel(o.authority)
            own = c.sock.getsockname()[1]
            wait_for(lambda: timers(p.port, own) == ["02"], "keepalive towards the client")
            wait_for(lambda: timers(None, o.port) == ["02"], "keepalive towards the origin")


if __name__ == "__main__":
    harness.main()
