"""Who may go where: closed unless opened, and decided on the address that is connected to."""
import harness
from harness import Client, Dns, Name, Scenario, reply, storable

SAFE = ("acl SSL_ports port 443", "http_access deny CONNECT !SSL_ports")


class Closed(Scenario):
    def test_without_an_access_list_nothing_is_allowed(self):
        o = self.origin(reply())
        p = self.cuttle(access=None)
        self.assertEqual(self.get(p, o.url("/")).status, 403)
        self.assertEqual(self.get(p, o.authority, method="CONNECT").status, 403)
        self.assertEqual(o.connections, 0)
        log = p.access_log(2)
        self.assertEqual([(a.code, a.status) for a in log], [("TCP_DENIED", 403)] * 2)

    def test_a_denied_client_gets_a_page_and_keeps_its_connection(self):
        p = self.cuttle(access="http_access deny all")
        with Client(p.address) as c:
            for _ in range(2):
                r = c.get("http://127.0.0.2:9/")
                self.assertEqual(r.status, 403)
                self.assertIn("http_request_denied", r.field("Proxy-Status"))
                self.assertGreater(len(r.body), 100)

    def test_a_denied_upload_ends_without_a_dead_lock(self):
        p = self.cuttle(access="http_access deny all")
        with Client(p.address) as c:
            c.request("POST", "http://127.0.0.2:9/", "Content-Length: 100000000")
            self.assertEqual(c.read_response().status, 403)
        with Client(p.address) as c:
            self.assertEqual(c.get("http://127.0.0.2:9/", method="POST", body=b"x" * 5000).status,
                             403)

    def test_connect_only_to_the_ports_named(self):
        o = self.origin(reply())
        p = self.cuttle(*SAFE)
        for port in (25, 22, 6379, 80, o.port):
            self.assertEqual(self.get(p, "127.0.0.1:%d" % port, method="CONNECT").status, 403)
        self.assertEqual(self.get(p, "127.0.0.1:%d" % (65536 + 443), method="CONNECT").status, 400)
        self.assertIn(self.get(p, "127.0.0.1:443", method="CONNECT").status, (200, 502, 503))
        self.assertEqual(o.connections, 0)

    def test_the_default_configuration_is_closed_to_loopback_and_to_others(self):
        """The embedded one: the rules for everybody, tried with a port of our own."""
        code, out, err = harness.run_cuttle("-k", "parse")
        self.assertEqual(code, 0, out + err)


class Loopback(Scenario):
    FORMS = ("127.0.0.1", "127.9.9.9", "0.0.0.0", "0", "[::]", "[::1]", "[::ffff:127.0.0.1]",
             "[::ffff:7f00:1]", "localhost", "LOCALHOST", "localhost.", "2130706433", "0x7f.1",
             "0x7f000001", "017700000001", "127.1", "127.0.1", "[0:0:0:0:0:0:0:1]",
             "[::ffff:0:127.0.0.1]", "[::127.0.0.1]", "inner.test", "mixed.test", "alias.test")

    def setUp(self):
        self.o = self.origin(reply(body=b"inside"), host="127.0.0.1")
        self.d = self.dns({"inner.test": Name(a=["127.0.0.1"]),
                           "alias.test": Name(cname="inner.test"),
                           "mixed.test": Name(a=["127.0.0.1"], aaaa=["::1"]),
                           "meta.test": Name(a=["169.254.169.254"])})
        self.p = self.cuttle("http_access deny to_localhost", "http_access deny to_linklocal",
                             self.d.conf, "dns_timeout 3 seconds")

    def test_no_form_of_a_loopback_address_gets_through(self):
        """After name resolution too, and by CONNECT as well."""
        for form in self.FORMS:
            for url, method in (("http://%s:%d/" % (form, self.o.port), "GET"),
                                ("%s:%d" % (form, self.o.port), "CONNECT")):
                r = self.get(self.p, url, method=method)
                self.assertIn(r.status, (400, 403, 502, 503), "%s %s" % (method, url))
        self.assertEqual(self.o.connections, 0)

    def test_the_forms_that_are_addresses_are_403(self):
        for form in ("127.0.0.1", "127.9.9.9", "0.0.0.0", "[::]", "[::1]", "[::ffff:127.0.0.1]",
                     "inner.test", "mixed.test", "alias.test"):
            self.assertEqual(self.get(self.p, "http://%s:%d/" % (form, self.o.port)).status, 403,
                             form)

    def test_they_are_403_by_connect_as_well(self):
        """And in every way to write them: decided on the address, after un-mapping it."""
        for form in ("127.0.0.1", "127.9.9.9", "0.0.0.0", "0.1.2.3", "[::]", "[::1]",
                     "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:0:0]", "localhost",
                     "LOCALHOST", "inner.test"):
            self.assertEqual(self.get(self.p, "%s:%d" % (form, self.o.port),
                                      method="CONNECT").status, 403, form)
            self.assertEqual(self.get(self.p, "http://%s:%d/" % (form, self.o.port)).status, 403,
                             form)
        for host in ("169.254.169.254", "[::ffff:a9fe:a9fe]", "[fe80::1]", "meta.test"):
            self.assertEqual(self.get(self.p, host + ":443", method="CONNECT").status, 403, host)
        self.assertEqual(self.o.connections, 0)

    def test_link_local_and_metadata_addresses_are_403(self):
        for host in ("169.254.169.254", "[fe80::1]", "[::ffff:a9fe:a9fe]", "[::ffff:169.254.0.1]",
                     "meta.test"):
            self.assertEqual(self.get(self.p, "http://%s/" % host).status, 403, host)

    def test_allowed_on_purpose_it_is_reachable(self):
        p = self.cuttle("http_access allow to_localhost", access="http_access deny all")
        self.assertEqual(self.get(p, self.o.url("/")).body, b"inside")


class Rules(Scenario):
    def setUp(self):
        self.o = self.origin(reply(body=b"x"))
        self.names = self.hosts(a_test="127.0.0.1", sub_a_test="127.0.0.1", b_test="127.0.0.1",
                                xa_test="127.0.0.1")

    def statuses(self, lines, asks):
        p = self.cuttle(self.names, *lines)
        try:
            return [self.get(p, self.o.url(path, host), method=method).status
                    for method, host, path in asks]
        finally:
            p.stop()

    def test_each_type_denies_what_it_names_and_nothing_else(self):
        port = self.o.port
        for acl, denied, allowed in (
                ("dstdomain .a.test", ("GET", "sub.a.test", "/"), ("GET", "xa.test", "/")),
                ("dstdomain .a.test", ("GET", "A.TEST", "/"), ("GET", "b.test", "/")),
                ("dstdomain a.test", ("GET", "a.test", "/"), ("GET", "sub.a.test", "/")),
                ("method POST DELETE", ("DELETE", "a.test", "/"), ("GET", "a.test", "/")),
                ("url_regex ^http://a", ("GET", "a.test", "/"), ("GET", "b.test", "/")),
                ("urlpath_regex -i \\.EXE$", ("GET", "a.test", "/x.exe"),
                 ("GET", "a.test", "/exe")),
                ("dst 127.0.0.1", ("GET", "a.test", "/"), None),
                ("src 127.0.0.0/8", ("GET", "a.test", "/"), None),
                ("src 10.0.0.0/8", None, ("GET", "a.test", "/")),
                ("port %d" % port, ("GET", "a.test", "/"), None),
                ("port 1-1024", None, ("GET", "a.test", "/")),
                ("proto HTTP", ("GET", "a.test", "/"), None),
                ("proto FTP", None, ("GET", "a.test", "/")),
                ("time SMTWHFA 00:00-24:00", ("GET", "a.test", "/"), None)):
            asks = [ask for ask in (denied, allowed) if ask]
            expected = [403] * bool(denied) + [200] * bool(allowed)
            self.assertEqual(self.statuses(["acl it " + acl, "http_access deny it"], asks),
                             expected, acl)

    def test_rules_are_read_in_order_and_all_terms_must_hold(self):
        lines = ["acl a dstdomain a.test", "acl post method POST", "http_access allow a !post",
                 "http_access deny a"]
        self.assertEqual(self.statuses(lines, [("GET", "a.test", "/"), ("POST", "a.test", "/"),
                                               ("POST", "b.test", "/")]), [200, 403, 200])

    def test_no_match_is_the_opposite_of_the_last_rule(self):
        for last, status in (("deny", 200), ("allow", 403)):
            p = self.cuttle(self.names, "acl a dstdomain a.test", "http_access %s a" % last,
                            access=None)
            self.assertEqual(self.get(p, self.o.url("/", "b.test")).status, status)

    def test_clients_are_told_apart_by_address_and_port(self):
        p = self.cuttle("acl five src 127.0.0.5", "http_access deny five")
        for source, status in (("127.0.0.5", 403), ("127.0.0.6", 200)):
            with Client(p.address, source=source) as c:
                self.assertEqual(c.get(self.o.url("/")).status, status)

    def test_a_denied_hit_is_denied(self):
        o = self.origin(storable(b"x"))
        p = self.cuttle("acl five src 127.0.0.5", "http_access deny five")
        self.get(p, o.url("/"))
        with Client(p.address, source="127.0.0.5") as c:
            self.assertEqual(c.get(o.url("/")).status, 403)

    def test_the_manager_is_for_whom_it_is_opened(self):
        p = self.cuttle("http_access allow localhost manager", "http_access deny manager")
        p.manager("menu")
        with Client(p.address, source="127.0.0.5") as c:
            r = c.get("/squid-internal-mgr/menu", "Host: 127.0.0.1:%d" % p.port)
            self.assertEqual(r.status, 403)

    def test_purge_is_denied_unless_allowed_by_name(self):
        o = self.origin(storable(b"x"))
        p = self.cuttle("acl purge method PURGE", "http_access deny purge")
        self.get(p, o.url("/"))
        self.assertEqual(self.get(p, o.url("/"), method="PURGE").status, 403)
        self.assertTrue(self.get(p, o.url("/")).hit)

    def test_the_address_checked_is_the_address_used(self):
        """A name that changes its address between check and connect gains nothing."""
        turn = []

        class Changing(Dns):
            def records(self, name, qtype, truncated):
                turn.append(qtype)
                inside = turn.count(harness.A) > 1
                name = Name(a=["127.0.0.1" if inside else "127.0.0.2"], ttl_s=0)
                return super().records(name, qtype, truncated)
        inside = self.origin(reply(body=b"inside"), host="127.0.0.1")
        d = Changing()
        self.addCleanup(d.close)
        p = self.cuttle("acl in dst 127.0.0.1", "http_access deny in", d.conf)
        for _ in range(3):
            self.assertIn(self.get(p, inside.url("/", "changing.test")).status, (403, 502, 503))
        self.assertEqual(inside.connections, 0)


class AddressesFirst(Scenario):
    """Rules that need the addresses of the host: known before they are judged, or refused."""
    LAN, WAN, STALE = "lan.test", "wan.test", "max-age=0, stale-while-revalidate=60"

    def setUp(self):
        self.o = self.origin(storable(b"x"), host="0.0.0.0")
        self.d = self.dns({self.LAN: Name(a=["127.0.0.3"], ttl_s=0),
                           self.WAN: Name(a=["127.0.0.4"], ttl_s=0)})

    def proxy(self, *lines):
        return self.cuttle(self.d.conf, "acl lan dst 127.0.0.3", *lines)

    def hits(self, p, host, path="/", o=None, **options):
        """Of two requests for the same, which are answered from the store?"""
        o = o or self.o
        return [self.get(p, o.url(path, host), **options).hit for _ in range(2)]

    def assert_only(self, p, host):
        """Only this one's pages come from the store."""
        for h in (self.LAN, self.WAN):
            self.assertEqual(self.hits(p, h), [False, h == host], h)

    def test_cache_stores_where_the_address_is_allowed_and_nothing_else(self):
        self.assert_only(self.proxy("cache allow lan", "cache deny all"), self.LAN)

    def test_cache_stores_nothing_where_the_address_is_denied(self):
        self.assert_only(self.proxy("cache deny lan"), self.WAN)

    def test_send_hit_sends_none_where_the_address_is_denied(self):
        self.assert_only(self.proxy("send_hit deny lan"), self.WAN)

    def test_store_miss_stores_none_where_the_address_is_denied(self):
        self.assert_only(self.proxy("store_miss deny lan"), self.WAN)
        self.assert_only(self.proxy("store_miss allow lan", "store_miss deny all"), self.LAN)

    def test_groups_and_negations_of_it_do_the_same(self):
        group = ("acl get method GET", "acl both all-of get lan", "acl it any-of both")
        for lines, host in ((("cache deny !it",), self.LAN), (("cache deny it",), self.WAN),
                            (("store_miss deny !it",), self.LAN),
                            (("send_hit deny it",), self.WAN)):
            self.assert_only(self.proxy(*group, *lines), host)

    def test_an_answer_to_post_that_stands_for_one_to_get_is_ruled_alike(self):
        o = self.origin(lambda q: storable(b"got") if q.method == "GET" else
                        storable(b"posted", "Content-Location: /"), host="0.0.0.0")
        for line in ("cache deny lan", "store_miss deny lan"):
            p = self.proxy(line)
            for host, body in ((self.LAN, b"got"), (self.WAN, b"posted")):
                self.get(p, o.url("/", host), method="POST", body=b"12345")
                self.assertEqual(self.get(p, o.url("/", host)).body, body, (line, host))

    def test_a_page_validated_in_the_background_is_ruled_alike(self):
        """The hit asked for no address; the fetch that it causes does."""
        o = self.origin([reply("200 OK", "Cache-Control: " + self.STALE, 'ETag: "1"', body=b"old"),
                         storable(b"new")], host="0.0.0.0")
        p = self.proxy("store_miss allow lan", "store_miss deny all")
        for _ in range(2):
            self.assertEqual(self.get(p, o.url("/", self.LAN)).body, b"old")
        o.wait_requests(2)
        harness.wait_for(lambda: self.get(p, o.url("/", self.LAN)).body == b"new", "the new page")

    def test_one_request_asks_for_the_addresses_once(self):
        """All of its rules and its connection go by the same answer."""
        p = self.proxy("http_access deny lan", "cache deny lan", "send_hit deny lan",
                       "store_miss deny lan")
        self.assertEqual(self.get(p, self.o.url("/", self.WAN)).status, 200)
        self.assertEqual([q[1] for q in self.d.queries].count(harness.A), 1)

    def test_a_name_that_is_gone_keeps_its_hits(self):
        """Not known means that dst does not match; only what must be fetched fails for it."""
        p = self.proxy("http_access deny lan", "cache deny lan", "send_hit deny lan",
                       "store_miss deny lan")
        self.assertFalse(self.get(p, self.o.url("/", self.WAN)).hit)
        del self.d.names[self.WAN]
        self.assertTrue(self.get(p, self.o.url("/", self.WAN)).hit)
        r = self.get(p, self.o.url("/other", self.WAN))
        self.assertEqual(r.status, 503)
        self.assertIn("dns_error", r.field("Proxy-Status"))
        self.assertEqual(self.get(p, self.WAN + ":443", method="CONNECT").status, 503)
        self.assertEqual(len(self.o.requests), 1)

    def test_a_name_that_is_gone_has_its_stale_pages(self):
        o = self.origin(reply("200 OK", "Cache-Control: max-age=0, stale-if-error=60",
                              'ETag: "1"', body=b"old"), host="0.0.0.0")
        p = self.proxy("http_access deny lan", "cache deny lan")
        self.get(p, o.url("/", self.WAN))
        del self.d.names[self.WAN]
        r = self.get(p, o.url("/", self.WAN))
        self.assertEqual((r.status, r.body), (200, b"old"))

    def test_clients_that_leave_while_the_rules_wait_leave_nothing_behind(self):
        for line in ("http_access deny lan", "cache deny lan", "store_miss deny lan"):
            p = self.proxy(line)
            self.d.names["slow.test"] = Name(a=["127.0.0.4"], delay_s=0.3)
            before = len(self.d.queries)
            with Client(p.address) as c:
                c.request("GET", self.o.url("/", "slow.test"))
                harness.wait_for(lambda: len(self.d.queries) > before, "the question")
            self.assertEqual(self.get(p, self.o.url("/", self.WAN)).status, 200)
            p.stop()

    def test_directives_that_cannot_wait_refuse_it_with_the_line(self):
        for line, acl in (("range_offset_limit none !lan", "lan (type dst)"),
                          ("access_log stdio:/dev/stdout squid g", "lan (type dst, in g)"),
                          ("log_access deny lan", "lan (type dst)")):
            path = self.write(self.temporary_folder(), "cuttle.conf", "\n".join((
                "http_port 3128", "acl lan dst 10.0.0.0/8", "acl g any-of lan",
                "http_access allow g", line, "")))
            code, out, err = harness.run_cuttle("-k", "parse", "-f", path)
            self.assertNotEqual(code, 0, line)
            name = line.split()[0]
            self.assertIn("%s:5: %s: acl %s needs the addresses of the host, which %s cannot wait "
                          "for\n" % (path, name, acl, name), out + err)


class ProxyAuthorization(Scenario):
    """RFC 9110 11.7.2: it is for this proxy, whose rules see it; nothing else does."""
    SECRET = "dTpwcm94eS1zZWNyZXQ="
    BASIC, OTHER = "Proxy-Authorization: Basic " + SECRET, "Proxy-Authorization: Bearer " + SECRET
    ACL = "acl basic req_header Proxy-Authorization ^Basic"

    def test_a_rule_sees_it(self):
        o = self.origin(reply(body=b"x"))
        p = self.cuttle(self.ACL, "http_access deny !basic")
        for fields, status in (((), 403), ((self.BASIC,), 200), ((self.OTHER,), 403),
                               ((self.OTHER, self.BASIC), 200),
                               (("Authorization: Basic " + self.SECRET,), 403)):
            self.assertEqual(self.get(p, o.url("/"), *fields).status, status, fields)
        with Client(p.address) as c:
            self.assertEqual(c.get(o.authority, self.BASIC, method="CONNECT").status, 200)

    def test_it_holds_for_its_request_alone(self):
        o = self.origin(reply(body=b"x"))
        with Client(self.cuttle(self.ACL, "http_access deny !basic", workers=1).address) as c:
            for fields, status in (((self.BASIC,), 200), ((), 403), ((self.BASIC,), 200)):
                self.assertEqual(c.get(o.url("/"), *fields).status, status)

    def test_a_rule_of_the_store_sees_it(self):
        o = self.origin(storable(b"x"))
        p = self.cuttle(self.ACL, "cache deny basic")
        self.assertEqual([self.get(p, o.url("/"), *fields).hit
                          for fields in ((self.BASIC,), (), (self.BASIC,), ())],
                         [False, False, False, True])

    def test_with_a_rule_that_sees_it_nothing_else_does(self):
        """No origin, no log, no page of ours and no TRACE."""
        o = self.origin(reply(body=b"x"))
        folder = self.temporary_folder()
        p = self.cuttle(self.ACL, "http_access deny !basic", "log_mime_hdrs on",
                        "logformat all %ru %>h %{Proxy-Authorization}>h",
                        "access_log stdio:%s/squid squid basic" % folder,
                        "access_log stdio:%s/all all" % folder, arguments=("-d", "9"))
        dead = "http://127.0.0.2:%d/" % self.dead_port()
        for url, method, field, status in ((o.url("/"), "GET", self.BASIC, 200),
                                           (o.url("/"), "POST", self.BASIC, 200),
                                           (dead, "GET", self.BASIC, 502),
                                           (dead, "TRACE", self.BASIC, 200),
                                           (dead, "GET", self.OTHER, 403)):
            r = self.get(p, url, field, "Max-Forwards: 0", "X-Other: told", method=method)
            self.assertEqual(r.status, status, (url, method, field))
            self.assertNotIn(self.SECRET.encode(), r.raw_head + r.body)
        p.stop()
        for seen in o.received.values():
            self.assertNotIn(self.SECRET.encode(), seen)
        for name, lines in (("squid", 4), ("all", 5)):
            with open("%s/%s" % (folder, name)) as f:
                text = f.read()
            self.assertEqual(text.count("\n"), lines)
            self.assertIn("told", text)
            self.assertNotIn(self.SECRET, text)
        self.assertNotIn(self.SECRET, p.cache_log())


if __name__ == "__main__":
    harness.main()
