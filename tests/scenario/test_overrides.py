"""What an operator may decide against an origin's or a client's word, and what is the same object."""
import email.utils
import time

import harness
from harness import Client, Scenario, reply, storable


def http_date(offset_s):
    return email.utils.formatdate(time.time() + offset_s, usegmt=True)


class Decided(Scenario):
    def asks(self, p, answer, *fields, times=2):
        """How often the origin is asked when a URL is asked for twice."""
        o = self.origin(answer)
        for _ in range(times):
            self.last = self.get(p, o.url("/x.deb"), *fields)
        return len(o.requests)


class RefreshPattern(Decided):
    """Each option, with it and without."""
    def proxy(self, *options, bounds="10 50% 100"):
        return self.cuttle("refresh_pattern \\.deb$ %s %s" % (bounds, " ".join(options)))

    def with_and_without(self, option, answer, *fields, bounds="10 50% 100"):
        return (self.asks(self.proxy(option, bounds=bounds), answer, *fields),
                self.asks(self.proxy(bounds=bounds), answer, *fields))

    def test_minimum_holds_where_nothing_is_said(self):
        self.assertEqual(self.asks(self.proxy(), reply(body=b"x")), 1)
        self.assertEqual(self.asks(self.proxy(bounds="0 50% 100"), reply(body=b"x")), 2)

    def test_percent_is_a_share_of_the_time_since_it_was_modified(self):
        old = reply("200 OK", "Last-Modified: " + http_date(-10 * 86400), body=b"x")
        self.assertEqual(self.asks(self.proxy(bounds="0 50% 1000"), old), 1)
        self.assertEqual(self.asks(self.proxy(bounds="0 0% 1000"), old), 2)

    def test_override_expire(self):
        past = reply("200 OK", "Expires: " + http_date(-10), body=b"x")
        self.assertEqual(self.with_and_without("override-expire", past), (1, 2))

    def test_override_lastmod(self):
        young = reply("200 OK", "Last-Modified: " + http_date(-1), body=b"x")
        self.assertEqual(self.with_and_without("override-lastmod", young), (1, 2))

    def test_ignore_reload(self):
        self.assertEqual(self.with_and_without(
            "ignore-reload", storable(b"x"), "Cache-Control: no-cache"), (1, 2))

    def test_reload_into_ims(self):
        """The origin is asked whether it has changed, and says no."""
        for option, kind in (("reload-into-ims", '"a"'), ("", None)):
            o = self.origin(lambda q: reply("304 Not Modified", 'ETag: "a"', length=False)
                            if q.field("If-None-Match") else storable(b"x", 'ETag: "a"'))
            p = self.proxy(option)
            self.get(p, o.url("/x.deb"))
            self.get(p, o.url("/x.deb"), "Cache-Control: no-cache")
            self.assertEqual(o.last().field("If-None-Match"), kind)

    def test_ignore_no_store(self):
        self.assertEqual(self.with_and_without("ignore-no-store", reply(
            "200 OK", "Cache-Control: no-store, max-age=60", body=b"x")), (1, 2))

    def test_ignore_private(self):
        self.assertEqual(self.with_and_without("ignore-private", reply(
            "200 OK", "Cache-Control: private, max-age=60", body=b"x")), (1, 2))

    def test_ignore_auth(self):
        self.assertEqual(self.with_and_without(
            "ignore-auth", storable(b"x"), "Authorization: Basic dTpw"), (1, 2))

    def test_ignore_must_revalidate(self):
        """What must not be served stale is, to a client that takes it so."""
        for option, asked in (("ignore-must-revalidate", 1), ("", 2)):
            o = self.origin(reply("200 OK", "Cache-Control: max-age=1, must-revalidate", 'ETag: "a"',
                                  body=b"x"))
            p = self.proxy(option)
            self.get(p, o.url("/x.deb"))
            time.sleep(2.1)
            self.get(p, o.url("/x.deb"), "Cache-Control: max-stale=100")
            self.assertEqual(len(o.requests), asked, option)

    def test_store_stale(self):
        """Stale on arrival and without a validator, it serves those who take it stale."""
        self.assertEqual(self.with_and_without("store-stale", reply(
            "200 OK", "Cache-Control: max-age=0, must-revalidate", body=b"x"),
            bounds="0 0% 0"), (2, 2))
        for option, asked in (("store-stale ignore-must-revalidate", 1), ("", 2)):
            o = self.origin(reply("200 OK", "Cache-Control: max-age=0, must-revalidate", body=b"x"))
            p = self.proxy(option)
            for _ in range(2):
                self.get(p, o.url("/x.deb"), "Cache-Control: max-stale=100")
            self.assertEqual(len(o.requests), asked, option)

    def test_refresh_ims(self):
        """A client's own question is asked on, though the stored response is fresh."""
        answer = storable(b"x", "Last-Modified: " + http_date(-86400))
        self.assertEqual(self.with_and_without(
            "refresh-ims", answer, "If-Modified-Since: " + http_date(-86400)), (2, 1))

    def test_max_stale_of_a_rule(self):
        """How stale it may be when the origin is away."""
        for option, status in (("max-stale=0", 502), ("max-stale=10", 200)):
            o = self.origin(reply("200 OK", "Cache-Control: max-age=1", body=b"x"))
            p = self.proxy(option)
            url = o.url("/x.deb")
            self.get(p, url)
            o.close()
            time.sleep(2.1)
            self.assertEqual(self.get(p, url).status, status, option)

    def test_the_first_line_that_matches_holds(self):
        p = self.cuttle("refresh_pattern /x 10 0% 10", "refresh_pattern . 0 0% 0")
        self.assertEqual(self.asks(p, reply(body=b"x")), 1)


class Directives(Decided):
    def test_negative_ttl_holds_for_errors_that_say_nothing(self):
        for status in ("403 Forbidden", "404 Not Found", "503 Service Unavailable"):
            self.assertEqual(self.asks(self.cuttle("negative_ttl 1 minute"), reply(status)), 1)
            self.assertEqual(self.asks(self.cuttle(), reply(status)), 2, status)

    def test_negative_ttl_ends(self):
        o = self.origin([reply("404 Not Found"), storable(b"there")])
        p = self.cuttle("negative_ttl 1 second")
        self.get(p, o.url("/"))
        time.sleep(2.1)
        self.assertEqual(self.get(p, o.url("/")).status, 200)

    def test_negative_ttl_does_not_overrule_an_origin(self):
        p = self.cuttle("negative_ttl 1 minute")
        self.assertEqual(self.asks(p, reply("404 Not Found", "Cache-Control: max-age=0")), 2)
        self.assertEqual(self.asks(p, reply("404 Not Found", "Cache-Control: no-store")), 2)
        self.assertEqual(self.asks(p, reply("200 OK", body=b"x")), 2)

    def test_offline_mode_serves_what_has_run_out(self):
        answer = reply("200 OK", "Cache-Control: max-age=0", 'ETag: "a"', body=b"x")
        self.assertEqual(self.asks(self.cuttle("offline_mode on"), answer), 1)
        self.assertEqual(self.asks(self.cuttle(), answer), 2)

    def test_max_stale_bounds_what_is_served_while_the_origin_is_away(self):
        for line, status in (("max_stale 0 seconds", 502), ("max_stale 1 week", 200)):
            o = self.origin(reply("200 OK", "Cache-Control: max-age=1", body=b"x"))
            p = self.cuttle(line)
            url = o.url("/")
            self.get(p, url)
            o.close()
            time.sleep(2.1)
            self.assertEqual(self.get(p, url).status, status, line)

    def test_a_server_error_is_bridged_by_what_is_stored(self):
        """RFC 9111 4.3.3: like no answer, unless the origin forbids it."""
        for cc, status in (("max-age=1", 200), ("max-age=1, must-revalidate", 503)):
            o = self.origin([reply("200 OK", "Cache-Control: " + cc, 'ETag: "a"', body=b"x"),
                             reply("503 Service Unavailable")])
            p = self.cuttle()
            self.get(p, o.url("/"))
            time.sleep(2.1)
            self.assertEqual(self.get(p, o.url("/")).status, status, cc)

    def test_cache_deny_neither_stores_nor_answers(self):
        self.assertEqual(self.asks(self.cuttle("cache deny all"), storable(b"x")), 2)

    def test_store_miss_deny_does_not_store(self):
        self.assertEqual(self.asks(self.cuttle("store_miss deny all"), storable(b"x")), 2)

    def test_send_hit_deny_stores_for_others(self):
        p = self.cuttle("acl no req_header X-No .", "send_hit deny no")
        o = self.origin(storable(b"x"))
        self.get(p, o.url("/"))
        self.assertFalse(self.get(p, o.url("/"), "X-No: 1").hit)
        self.assertTrue(self.get(p, o.url("/")).hit)

    def test_reload_into_ims_for_all(self):
        o = self.origin(lambda q: reply("304 Not Modified", 'ETag: "a"', length=False)
                        if q.field("If-None-Match") else storable(b"x", 'ETag: "a"'))
        p = self.cuttle("reload_into_ims on")
        self.get(p, o.url("/"))
        r = self.get(p, o.url("/"), "Cache-Control: no-cache")
        self.assertEqual((r.status, r.body, o.last().field("If-None-Match")), (200, b"x", '"a"'))

    def test_minimum_object_size_keeps_small_ones_out(self):
        p = self.cuttle("minimum_object_size 100 bytes")
        self.assertEqual(self.asks(p, storable(b"x" * 99)), 2)
        self.assertEqual(self.asks(p, storable(b"x" * 100)), 1)

    def test_collapsed_forwarding_off_asks_for_each(self):
        def slow(q):
            time.sleep(0.5)
            return storable(b"x")
        for value, asked in (("on", 1), ("off", 5)):
            o = self.origin(slow)
            p = self.cuttle("collapsed_forwarding " + value)
            harness.together(5, lambda i: self.get(p, o.url("/")))
            self.assertEqual(len(o.requests), asked)


class Explained(Decided):
    """RFC 9211: why."""
    def test_a_miss_says_what_became_of_it(self):
        p = self.cuttle()
        for fields, what in ((("Cache-Control: max-age=60",), "; stored; ttl="),
                             (("Cache-Control: no-store",), "; detail=no-store"),
                             (("Cache-Control: private",), "; detail=private"),
                             (("Vary: *",), "; detail=vary")):
            self.asks(p, reply("200 OK", *fields, body=b"x"), times=1)
            self.assertIn(what, self.last.cache_status)

    def test_each_reason_to_go_forward_has_its_word(self):
        p = self.cuttle("acl no urlpath_regex ^/no", "cache deny no")
        o = self.origin(lambda q: storable(b"x", "Vary: X") if q.method == "GET" else reply())
        ask = lambda *fields, path="/", **options: self.get(p, o.url(path), *fields, **options)
        self.assertIn("fwd=uri-miss", ask().cache_status)
        self.assertIn("fwd=vary-miss", ask("X: 1").cache_status)
        self.assertIn("fwd=request", ask("Cache-Control: no-cache").cache_status)
        self.assertIn("fwd=method", ask(method="POST", body=b"x").cache_status)
        self.assertIn("fwd=bypass", ask(path="/no").cache_status)

    def test_a_hit_says_how_long_it_is_good_for(self):
        p = self.cuttle()
        self.asks(p, storable(b"x", seconds=600))
        self.assertRegex(self.last.cache_status, r"; hit; ttl=(600|59\d)$")


class Keys(Scenario):
    """What only the origin can tell apart is kept apart; what is the same for it is one object."""
    def setUp(self):
        self.names = self.dns()
        self.names.names = {"name.test": harness.Name(a=["127.0.0.1"])}
        self.p = self.cuttle(self.names.conf)
        self.o = self.origin(storable(b"x"))

    def hit(self, first, second):
        """Is the second a hit after the first? Each pair has a path of its own."""
        self.n = getattr(self, "n", 0) + 1
        got = []
        for text in (first, second):
            with Client(self.p.address) as c:
                c.send("GET %s HTTP/1.1\r\nHost: h\r\n\r\n" % text.format(p=self.o.port, n=self.n))
                got.append(c.read_response())
        self.assertEqual([r.status for r in got], [200, 200], (first, second))
        return got[1].hit

    def test_the_same(self):
        for first, second in (
                ("http://name.test:{p}/{n}", "http://NAME.Test:{p}/{n}"),
                ("http://name.test:{p}/{n}", "HTTP://name.test:{p}/{n}"),
                ("http://name.test:{p}/{n}", "http://name.test:0{p}/{n}"),
                ("http://name.test:{p}/{n}", "http://user@name.test:{p}/{n}"),
                ("http://name.test:{p}/{n}", "http://user:word@name.test:{p}/{n}"),
                ("http://name.test:{p}?{n}", "http://name.test:{p}/?{n}")):
            self.assertTrue(self.hit(first, second), (first, second))

    def test_not_the_same(self):
        for first, second in (
                ("http://name.test:{p}/{n}/a", "http://name.test:{p}/{n}/A"),
                ("http://name.test:{p}/{n}/a", "http://name.test:{p}/{n}/%61"),
                ("http://name.test:{p}/{n}/%2f", "http://name.test:{p}/{n}/%2F"),
                ("http://name.test:{p}/{n}/%2F", "http://name.test:{p}/{n}//"),
                ("http://name.test:{p}/{n}", "http://name.test:{p}/{n}/"),
                ("http://name.test:{p}/{n}", "http://name.test:{p}/{n}?"),
                ("http://name.test:{p}/{n}?a=1&b=2", "http://name.test:{p}/{n}?b=2&a=1"),
                ("http://name.test:{p}/{n}/../x", "http://name.test:{p}/x"),
                ("http://name.test:{p}/{n}/./x", "http://name.test:{p}/{n}/x"),
                ("http://name.test:{p}/{n}", "http://name.test.:{p}/{n}"),
                ("http://name.test:{p}/{n}", "http://127.0.0.1:{p}/{n}")):
            self.assertFalse(self.hit(first, second), (first, second))

    def test_another_port_is_another_origin(self):
        other = self.origin(storable(b"other"))
        self.get(self.p, self.o.url("/"))
        self.assertEqual(self.get(self.p, other.url("/")).body, b"other")

    def test_a_fragment_never_leaves_a_client(self):
        """RFC 9112 3.2: it is no part of a target."""
        self.assertEqual(self.get(self.p, self.o.url("/x#part")).status, 400)


class PostForGet(Scenario):
    """RFC 9110 9.3.3: a POST may bring what a GET would."""
    def post_then_get(self, *fields):
        def answer(q):
            if q.method == "GET":
                return storable(b"got")
            return reply("200 OK", *(f.format(url=o.url("/x")) for f in fields), body=b"posted")
        o = self.origin(answer)
        p = self.cuttle()
        self.get(p, o.url("/x"), method="POST", body=b"12345")
        return self.get(p, o.url("/x")).body

    def test_with_its_own_location_and_a_lifetime_it_is_reused(self):
        for location in ("Content-Location: {url}", "Content-Location: /x"):
            self.assertEqual(self.post_then_get("Cache-Control: max-age=60", location), b"posted")

    def test_without_either_it_is_not(self):
        for fields in (("Cache-Control: max-age=60",), ("Content-Location: {url}",),
                       ("Cache-Control: max-age=60", "Content-Location: /y"),
                       ("Cache-Control: private, max-age=60", "Content-Location: /x"),
                       ("Cache-Control: max-age=60", "Content-Location: http://127.0.0.9/x")):
            self.assertEqual(self.post_then_get(*fields), b"got", fields)


class HeadFreshens(Scenario):
    """RFC 9111 4.3.5."""
    def seen(self, *head_fields):
        """The stored GET's fields after a HEAD has told of it anew."""
        o = self.origin(lambda q: reply("200 OK", *head_fields, "Content-Length: 4", length=False)
                        if q.method == "HEAD" else
                        reply("200 OK", "Cache-Control: max-age=1", 'ETag: "a"', "X-V: 1",
                              body=b"body"))
        p = self.cuttle()
        self.get(p, o.url("/"))
        time.sleep(2.1)
        self.get(p, o.url("/"), method="HEAD")
        return self.get(p, o.url("/"))

    def test_fields_and_lifetime_are_taken_over(self):
        r = self.seen("Cache-Control: max-age=60", 'ETag: "a"', "X-V: 2")
        self.assertEqual((r.hit, r.body, r.field("X-V")), (True, b"body", "2"))

    def test_another_representation_is_no_longer_served(self):
        r = self.seen("Cache-Control: max-age=60", 'ETag: "b"')
        self.assertFalse(r.hit)

    def test_what_may_no_longer_be_stored_is_gone(self):
        self.assertFalse(self.seen("Cache-Control: no-store", 'ETag: "a"').hit)


if __name__ == "__main__":
    harness.main()
