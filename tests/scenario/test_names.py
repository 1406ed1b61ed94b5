"""From a URL to an address: names, literals, what stands around them, and addresses that are dead."""
import socket
import time

import harness
from harness import A, AAAA, Client, Name, Scenario, reply, storable, wait_for


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False


class Asking(Scenario):
    def setUp(self):
        # Not to be stored: else a stored response stands in for an origin out of reach.
        self.o = self.origin(reply("200 OK", "Cache-Control: no-store"), host="127.0.0.2")
        self.d = self.dns()

    def proxy(self, *conf, **options):
        return self.cuttle(self.d.conf, "dns_timeout 3 seconds", "hosts_file none", *conf,
                           workers=1, **options)

    def status(self, p, host):
        return self.get(p, self.o.url("/", host)).status


class Answers(Asking):
    def test_an_address_whose_time_is_over_is_not_used_though_the_server_fails(self):
        """RFC 1035 3.2.1; and when the server is back, so is the name."""
        known = Name(a=["127.0.0.2"], ttl_s=1)
        self.d.names = {"bad.test": known, "gone.test": known}
        p = self.proxy("negative_dns_ttl 1 second")
        for name in self.d.names:
            self.assertEqual(self.status(p, name), 200)
        time.sleep(1.3)
        self.d.names = {"bad.test": Name(rcode=2)}
        self.assertIn(self.status(p, "bad.test"), (503, 504))
        self.assertEqual(self.status(p, "gone.test"), 503)
        self.d.names["bad.test"] = known
        wait_for(lambda: self.status(p, "bad.test") == 200, "the name to be known again")

    def test_an_odd_name_is_refused_at_once_and_never_asked_for(self):
        p = self.proxy()
        for host in (b"l" * 64 + b".test", b"n." * 130 + b"test", b"a..b", b".a", b"b\xc3\xbccher.test",
                     b"\xff", b"a_b c", b"0x7f.1", b"2130706433", b"017700000001", b"127.1",
                     b"1.2.3.4.5", b"256.1.1.1"):
            r = self.raw(p, b"GET http://%s/ HTTP/1.1\r\nHost: x\r\n\r\n" % host)
            self.assertIn(r.status, (400, 503), host)
        self.assertEqual(self.d.queries, [])

    def test_a_name_with_a_final_dot_is_the_same_name(self):
        self.d.names = {"a.test": Name(a=["127.0.0.2"])}
        p = self.proxy()
        for name in ("a.test.", "a.test", "A.TEST."):
            self.assertEqual(self.status(p, name), 200, name)
        self.assertEqual(len(self.d.asked("a.test", A)), 1)

    def test_a_bare_name_is_asked_for_as_it_is(self):
        self.d.names = {"intranet": Name(a=["127.0.0.2"])}
        p = self.proxy(environment={"LOCALDOMAIN": "one.test two.test"})
        self.assertEqual(self.status(p, "intranet"), 200)
        self.assertEqual({q[0] for q in self.d.queries}, {"intranet"})

    def test_a_bare_name_is_completed_where_that_is_wanted(self):
        self.d.names = {"intranet.one.test": Name(rcode=3),
                        "intranet.two.test": Name(a=["127.0.0.2"])}
        for conf in ("append_domain .two.test", "dns_defnames on"):
            p = self.proxy(conf, environment={"LOCALDOMAIN": "one.test two.test"})
            self.assertEqual(self.status(p, "intranet"), 200, conf)
            self.assertEqual(self.o.last().field("Host"), "intranet:%d" % self.o.port)
            self.assertEqual(self.status(p, "no.intranet"), 503, "a name with a dot is complete")


class Reaching(Asking):
    """RFC 8305: the addresses of a name race, so that a dead one costs a moment."""

    def hole(self, *hosts):
        """Addresses at the origin's port that answer no SYN: their queues are full."""
        for host in hosts:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            full = socket.socket(family, socket.SOCK_STREAM)
            full.bind((host, self.o.port))
            full.listen(0)
            self.addCleanup(full.close)
            for _ in range(4):
                s = socket.socket(family, socket.SOCK_STREAM)
                s.setblocking(False)
                s.connect_ex((host, self.o.port))
                self.addCleanup(s.close)

    def timed(self, p, name):
        began = time.monotonic()
        status = self.status(p, name)
        return status, time.monotonic() - began

    def test_black_holes_cost_a_moment_each_and_leave_nothing_behind(self):
        self.hole("127.0.0.3", "127.0.0.4", "127.0.0.5")
        self.d.names = {"holes.test": Name(a=["127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.2"]),
                        "good.test": Name(a=["127.0.0.2"])}
        p = self.proxy("connect_timeout 8 seconds", "server_persistent_connections off")
        self.assertEqual(self.status(p, "good.test"), 200)
        before = p.descriptors()
        status, took = self.timed(p, "holes.test")
        self.assertEqual(status, 200)
        self.assertTrue(0.7 < took < 4, took)
        wait_for(lambda: p.descriptors() <= before + 1, "the losers of the race to be closed")
        status, took = self.timed(p, "holes.test")
        self.assertEqual(status, 200)
        self.assertLess(took, 4)

    def test_the_wait_before_the_next_address_can_be_set(self):
        self.hole("127.0.0.3")
        self.d.names = {"hole.test": Name(a=["127.0.0.3", "127.0.0.2"])}
        status, took = self.timed(self.proxy("happy_eyeballs_connect_timeout 800"), "hole.test")
        self.assertEqual(status, 200)
        self.assertGreater(took, 0.7)

    def test_nothing_but_black_holes_is_504_in_time(self):
        self.hole("127.0.0.3", "127.0.0.4")
        self.d.names = {"holes.test": Name(a=["127.0.0.3", "127.0.0.4"])}
        status, took = self.timed(self.proxy("connect_timeout 1 second"), "holes.test")
        self.assertEqual(status, 504)
        self.assertLess(took, 6)

    def test_each_address_has_connect_timeout_for_itself(self):
        """The first one's time runs out before the second is tried at the side."""
        self.hole("127.0.0.3")
        self.d.names = {"hole.test": Name(a=["127.0.0.3", "127.0.0.2"])}
        p = self.proxy("connect_timeout 1 second", "happy_eyeballs_connect_timeout 20000")
        status, took = self.timed(p, "hole.test")
        self.assertEqual(status, 200)
        self.assertTrue(0.9 < took < 6, took)
        with Client(p.address) as c:
            c.connect_tunnel("hole.test:%d" % self.o.port)
            self.assertEqual(c.get("/", "Host: x").status, 200)

    def test_forward_timeout_bounds_all_addresses_together(self):
        self.hole("127.0.0.3", "127.0.0.4", "127.0.0.5")
        self.d.names = {"holes.test": Name(a=["127.0.0.3", "127.0.0.4", "127.0.0.5"])}
        p = self.proxy("connect_timeout 5 seconds", "forward_timeout 2 seconds")
        for target, method in ((self.o.url("/", "holes.test"), "GET"),
                               ("holes.test:%d" % self.o.port, "CONNECT")):
            began = time.monotonic()
            self.assertEqual(self.get(p, target, method=method).status, 504, method)
            self.assertTrue(1.9 < time.monotonic() - began < 4.5, method)
        self.assertIn("127.0.0.", p.access_log(2)[0].peer)

    def test_looking_up_the_name_counts_towards_forward_timeout(self):
        self.hole("127.0.0.3")
        self.d.names = {"late.test": Name(a=["127.0.0.3"], delay_s={A: 2})}
        status, took = self.timed(self.proxy("forward_timeout 3 seconds"), "late.test")
        self.assertEqual(status, 504)
        self.assertTrue(2.9 < took < 6, took)

    def test_a_family_that_leads_nowhere_is_a_moment_too(self):
        if not has_ipv6():
            self.skipTest("no IPv6 here")
        self.hole("::1")
        self.d.names = {"six.test": Name(a=["127.0.0.2"], aaaa=["::1"])}
        status, took = self.timed(self.proxy("connect_timeout 8 seconds"), "six.test")
        self.assertEqual(status, 200)
        self.assertTrue(0.2 < took < 4, took)

    def test_answers_that_come_apart_are_not_waited_for(self):
        """RFC 8305 3: whichever family is there first is tried."""
        late = 8
        self.d.names = {"together.test": Name(a=["127.0.0.2"], aaaa=["::1"]),
                        "soon.test": Name(a=["127.0.0.2"], delay_s={AAAA: 0.06}),
                        "four.test": Name(a=["127.0.0.2"], aaaa=["::1"], delay_s={AAAA: late})}
        p = self.proxy("dns_timeout 20 seconds")
        for name in self.d.names:
            status, took = self.timed(p, name)
            self.assertEqual(status, 200, name)
            self.assertLess(took, late / 2, name)
        if has_ipv6():
            six = self.origin(reply(body=b"six"), host="::1")
            self.d.names["six.test"] = Name(a=["127.0.0.2"], aaaa=["::1"], delay_s={A: late})
            began = time.monotonic()
            self.assertEqual(self.get(p, six.url("/", "six.test")).body, b"six")
            self.assertLess(time.monotonic() - began, late / 2)


class Literals(Scenario):
    """IPv6 addresses in URLs (RFC 3986 3.2.2)."""

    def setUp(self):
        self.d = self.dns()

    def test_brackets_stay_where_they_belong_and_nothing_is_looked_up(self):
        if not has_ipv6():
            self.skipTest("no IPv6 here")
        o = self.origin(reply(body=b"six"), host="::1")
        p = self.cuttle(self.d.conf)
        for host in ("[::1]", "[0:0:0:0:0:0:0:1]"):
            r = self.get(p, "http://%s:%d/x" % (host, o.port))
            self.assertEqual((r.status, r.body), (200, b"six"))
            self.assertEqual(o.last().field("Host"), o.authority)
        with Client(p.address) as c:
            c.connect_tunnel(o.authority)
            self.assertEqual(c.get("/y", "Host: " + o.authority).body, b"six")
        p.stop()
        self.assertEqual({a.peer for a in p.access_log()}, {"::1"})
        self.assertEqual({a.url for a in p.access_log()}, {o.url("/x"), o.authority})
        self.assertEqual(self.d.queries, [])

    def test_access_lists_see_the_address(self):
        if not has_ipv6():
            self.skipTest("no IPv6 here")
        o = self.origin(reply(body=b"six"), host="::1")
        p = self.cuttle(self.d.conf, "acl six dst ::1", "http_access deny six")
        for url, method in ((o.url("/"), "GET"), (o.authority, "CONNECT"),
                            ("http://[0::0:1]:%d/" % o.port, "GET")):
            self.assertEqual(self.get(p, url, method=method).status, 403, url)
        self.assertEqual(o.connections, 0)

    def test_an_address_out_of_reach_is_an_error_page(self):
        """Without IPv6 at once, with it after the time for connecting (RFC 3849: nobody's)."""
        p = self.cuttle(self.d.conf, "connect_timeout 1 second")
        for url, method in (("http://[2001:db8::1]:9/", "GET"), ("[2001:db8::1]:9", "CONNECT")):
            r = self.get(p, url, method=method)
            self.assertIn(r.status, (502, 503, 504), method)
            self.assertGreater(len(r.body), 100)
        self.assertEqual(self.d.queries, [])


class Urls(Scenario):
    def setUp(self):
        self.o = self.origin(lambda q: storable(q.target.encode()))

    def test_user_information_is_no_host_and_no_part_of_the_key(self):
        """RFC 9110 4.2.4: access lists see the host behind the @."""
        p = self.cuttle("acl trusted dstdomain trusted.example", "http_access allow trusted",
                        "acl ours dst %s" % self.o.host, "http_access deny ours")
        for user in ("trusted.example", "trusted.example:80", "u:trusted.example"):
            url = "http://%s@%s/x" % (user, self.o.authority)
            self.assertIn(self.get(p, url, "Host: trusted.example").status, (400, 403), user)
        self.assertEqual(self.o.connections, 0)
        p = self.cuttle()
        for user in ("u:secret@", "", "other:secret@", "u%zz:secret@", "secret@"):
            r = self.get(p, "http://%s%s/x" % (user, self.o.authority), "Host: x")
            self.assertIn(r.status, (200, 400), user)
        self.assertEqual([q.target for q in self.o.requests], ["/x"], "one object for all")
        p.stop()
        self.assertEqual(len(p.access_log()), 5)
        self.assertNotIn("secret", p.read("access.log") + p.cache_log())

    def test_a_bad_escape_is_refused_or_goes_on_as_it_came(self):
        p = self.cuttle()
        for path in ("/%zz", "/%", "/%1", "/a%00b", "/%c0%af", "/x?q=%%", "/%7e/~"):
            r = self.get(p, "http://%s%s" % (self.o.authority, path))
            self.assertIn(r.status, (200, 400), path)
            if r.status == 200:
                self.assertEqual((r.body, self.o.last().target), (path.encode(), path))

    def test_a_space_or_a_control_byte_is_not_repaired(self):
        """RFC 9112 3.2: another URL than the one that was asked for is nobody's wish."""
        p = self.cuttle()
        for path in ("/a b", "/a\tb", "/a b c", "/ ", "/a\x0bb", "/a\x7fb"):
            r = self.raw(p, "GET http://%s%s HTTP/1.1\r\nHost: x\r\n\r\n"
                         % (self.o.authority, path))
            self.assertEqual(r.status, 400, path)
        self.assertEqual(self.o.connections, 0)

    def test_schemes_that_are_not_spoken_are_refused_however_long_they_are(self):
        p = self.cuttle()
        for url in ("ftp://{o}/" + "p" * 60_000, "ftp://{o}/" + "%20" * 20_000, "ftp://{o}/%0d%0a",
                    "urn:" + "x" * 60_000, "gopher://{o}/0" + "/" * 60_000, "wais://{o}/",
                    "ws://{o}/", "cache_object://{o}/", "javascript:1", "file:", "http:",
                    "HTTP:/{o}/", "x" * 60_000 + "://{o}/"):
            r = self.raw(p, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n"
                         % url.replace("{o}", self.o.authority))
            self.assertIn(r.status, (400, 414, 501), url[:40])
        self.assertEqual(self.o.connections, 0)


if __name__ == "__main__":
    harness.main()
