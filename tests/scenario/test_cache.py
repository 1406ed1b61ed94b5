"""The memory store as clients see it (RFC 9111), told in Cache-Status (RFC 9211) and the log."""
import email.utils
import hashlib
import socket
import time

import harness
from harness import (CLOSE, Client, Incomplete, Scenario, chunked, chunks, pattern, reply, storable,
                     together, wait_for)

BIG = "maximum_object_size 16 MB\nmaximum_object_size_in_memory 16 MB"


def http_date(offset_s):
    return email.utils.formatdate(time.time() + offset_s, usegmt=True)


class Stored(Scenario):
    def assert_asked(self, o, n):
        self.assertEqual(len(o.requests), n, [q.start for q in o.requests])

    def test_the_second_get_is_a_hit_and_says_so(self):
        """RFC 9111 5.1: Age; RFC 9211: hit, or why the request went forward."""
        o = self.origin(storable(b"body", "X-A: b"))
        p = self.cuttle()
        first = self.get(p, o.url("/x"))
        self.assertRegex(first.cache_status, r"^cuttle\.test; *fwd=uri-miss")
        self.assertIn("stored", first.cache_status)
        self.assertFalse(first.hit)
        second = self.get(p, o.url("/x"))
        self.assertRegex(second.cache_status, r"^cuttle\.test; *hit")
        self.assertEqual((second.body, second.field("X-A")), (b"body", "b"))
        self.assertLessEqual(int(second.field("Age")), 2)
        self.assert_asked(o, 1)
        self.assertIsNone(second.field("X-Cache"))
        log = sorted(p.access_log(2), key=lambda line: line.code, reverse=True)
        self.assertEqual(log[0].code, "TCP_MISS")        # each worker writes its own blocks
        self.assertIn(log[1].code, ("TCP_MEM_HIT", "TCP_HIT"))
        self.assertEqual((log[1].hierarchy, log[1].peer), ("HIER_NONE", "-"))

    def test_age_starts_from_what_the_origin_said_and_grows(self):
        """RFC 9111 4.2.3."""
        o = self.origin(storable(b"x", "Age: 10", seconds=600))
        p = self.cuttle()
        self.get(p, o.url("/"))
        time.sleep(1.1)
        self.assertIn(int(self.get(p, o.url("/")).field("Age")), (11, 12, 13))

    def test_a_stored_chunked_response_comes_back_whole(self):
        o = self.origin(chunked(b"abc", pattern(70_000), fields=["Cache-Control: max-age=60"]))
        p = self.cuttle()
        for version in ("HTTP/1.1", "HTTP/1.1", "HTTP/1.0"):
            self.assertEqual(self.get(p, o.url("/"), version=version).body,
                             b"abc" + pattern(70_000))
        self.assert_asked(o, 1)

    def test_what_must_not_be_stored_is_not(self):
        """RFC 9111 3, 5.2.2.5, 5.2.2.7, 3.5; and a cookie belongs to one user."""
        for fields, asked in (
                (["Cache-Control: no-store"], []), (["Cache-Control: private, max-age=60"], []),
                (["Cache-Control: max-age=60"], ["Authorization: Basic dTpw"]),
                (["Cache-Control: max-age=60"], ["Cache-Control: no-store"]),
                (["Cache-Control: max-age=60", "Vary: *"], []),
                (["Cache-Control: max-age=60", "Vary: X,*"], []),
                (["Cache-Control: max-age=60", "Vary:  * "], []),
                (["Expires: 0"], []), (["Expires: " + http_date(-10)], []),
                (["Cache-Control: no-cache"], []), (["Cache-Control: max-age=0"], [])):
            o = self.origin(reply("200 OK", *fields, body=b"x"))
            p = self.cuttle()
            for _ in range(2):
                self.assertFalse(self.get(p, o.url("/"), *asked).hit, fields)
            self.assert_asked(o, 2)
            p.stop()

    def test_a_shared_answer_to_an_authorized_request_may_be_reused(self):
        """RFC 9111 3.5."""
        p = self.cuttle()
        for extra in ("public, max-age=60", "s-maxage=60", "must-revalidate, max-age=60"):
            o = self.origin(reply("200 OK", "Cache-Control: " + extra, body=b"x"))
            self.get(p, o.url("/"), "Authorization: Basic dTpw")
            self.assertTrue(self.get(p, o.url("/"), "Authorization: Basic eDp5").hit, extra)

    def test_s_maxage_wins_over_max_age(self):
        """RFC 9111 5.2.2.10."""
        o = self.origin(reply("200 OK", "Cache-Control: max-age=0, s-maxage=60", body=b"x"))
        p = self.cuttle()
        self.get(p, o.url("/"))
        self.assertTrue(self.get(p, o.url("/")).hit)

    def test_a_response_cut_short_is_never_stored(self):
        """RFC 9111 3.3."""
        whole = storable(pattern(1000))
        o = self.origin([(whole[:-500], 0.1, CLOSE), whole])
        p = self.cuttle()
        with self.assertRaises(Incomplete):
            self.get(p, o.url("/"))
        self.assertEqual(self.get(p, o.url("/")).body, pattern(1000))
        self.assertTrue(self.get(p, o.url("/")).hit)
        self.assert_asked(o, 2)

    def test_a_head_response_never_stands_in_for_a_get(self):
        """RFC 9110 9.3.2."""
        o = self.origin(lambda q: reply("200 OK", "Cache-Control: max-age=60",
                                        "Content-Length: 1000",
                                        body=b"" if q.method == "HEAD" else pattern(1000)))
        p = self.cuttle()
        self.get(p, o.url("/"), method="HEAD")
        self.assertEqual(self.get(p, o.url("/")).body, pattern(1000))

    def test_head_is_answered_from_a_stored_get(self):
        """RFC 9111 4."""
        o = self.origin(storable(pattern(1000)))
        p = self.cuttle()
        self.get(p, o.url("/"))
        with Client(p.address) as c:
            r = c.get(o.url("/"), method="HEAD")
            self.assertEqual((r.status, r.field("Content-Length")), (200, "1000"))
            self.assertTrue(r.hit)
            self.assertEqual(c.get(o.url("/")).body, pattern(1000))
        self.assert_asked(o, 1)

    def test_a_stored_204_has_no_framing(self):
        o = self.origin(reply("204 No Content", "Cache-Control: max-age=60", length=False))
        p = self.cuttle()
        for _ in range(2):
            self.assertEqual(self.get(p, o.url("/")).status, 204)
        self.assert_asked(o, 1)

    def test_a_stored_error_runs_out(self):
        """RFC 9111 4.2."""
        o = self.origin([storable(b"gone", status="404 Not Found", seconds=2), storable(b"here")])
        p = self.cuttle()
        self.assertEqual(self.get(p, o.url("/")).status, 404)
        self.assertEqual(self.get(p, o.url("/")).status, 404)
        time.sleep(3.1)
        self.assertEqual([r.body for r in together(5, lambda i: self.get(p, o.url("/")))],
                         [b"here"] * 5)

    def test_stored_under_the_uri_not_under_the_host_field(self):
        """RFC 9112 3.2.2: nobody poisons another site's objects."""
        a, b = self.origin(storable(b"a")), self.origin(storable(b"b"))
        p = self.cuttle()
        self.assertEqual(self.get(p, a.url("/x"), "Host: " + b.authority).body, b"a")
        self.assertEqual(self.get(p, b.url("/x")).body, b"b")
        self.assertEqual(self.get(p, a.url("/x")).body, b"a")

    def test_too_large_an_object_passes_and_is_not_stored(self):
        """KEEP turns into PASS half-way: the client notices nothing."""
        o = self.origin({"/l": storable(pattern(200_000)),
                         "/c": chunked(pattern(200_000), fields=["Cache-Control: max-age=60"])})
        p = self.cuttle("maximum_object_size 100 KB")
        for path in ("/l", "/l", "/c", "/c"):
            self.assertEqual(self.get(p, o.url(path)).body, pattern(200_000))
        self.assert_asked(o, 4)

    def test_cache_deny_keeps_it_out(self):
        o = self.origin(storable(b"x"))
        p = self.cuttle("acl no urlpath_regex ^/no", "cache deny no")
        for path, asked in (("/no", 1), ("/no", 2), ("/yes", 3), ("/yes", 3)):
            self.get(p, o.url(path))
            self.assert_asked(o, asked)

    def test_refresh_pattern_gives_a_lifetime_where_the_origin_gave_none(self):
        o = self.origin(reply("200 OK", "Last-Modified: " + http_date(-86400), body=b"x"))
        p = self.cuttle("refresh_pattern -i \\.jpg$ 10 50% 100", "refresh_pattern . 0 0% 0")
        for path, asked in (("/a.JPG", 1), ("/a.JPG", 1), ("/b", 2), ("/b", 3)):
            self.get(p, o.url(path))
            self.assert_asked(o, asked)

    def test_workers_share_one_store(self):
        o = self.origin(storable(pattern(10_000)))
        p = self.cuttle(workers=2)
        self.get(p, o.url("/"))
        for _ in range(20):
            r = self.get(p, o.url("/"))
            self.assertEqual((r.hit, r.body), (True, pattern(10_000)))
        self.assert_asked(o, 1)


class Requests(Scenario):
    """What the client may ask of a cache (RFC 9111 5.2.1)."""

    def setUp(self):
        self.o = self.origin(lambda q: storable(q.target.encode(), seconds=20))
        self.p = self.cuttle()

    def asked(self, path, *fields):
        before = len(self.o.requests)
        r = self.get(self.p, self.o.url(path), *fields)
        return r.status, len(self.o.requests) - before

    def test_no_cache_goes_to_the_origin_and_refreshes_the_store(self):
        self.o.answer = [storable(b"old"), storable(b"new")]
        self.asked("/x")
        self.assertEqual(self.asked("/x", "Cache-Control: no-cache"), (200, 1))
        self.assertEqual(self.asked("/x"), (200, 0))
        self.assertEqual(self.get(self.p, self.o.url("/x")).body, b"new")

    def test_max_age_and_min_fresh(self):
        self.asked("/x")
        self.assertEqual(self.asked("/x", "Cache-Control: min-fresh=5"), (200, 0))
        self.assertEqual(self.asked("/x", "Cache-Control: min-fresh=30"), (200, 1))
        self.assertEqual(self.asked("/x", "Cache-Control: max-age=100"), (200, 0))
        self.assertEqual(self.asked("/x", "Cache-Control: max-age=0"), (200, 1))

    def test_only_if_cached_never_goes_to_the_origin(self):
        """RFC 9111 5.2.1.7."""
        self.assertEqual(self.asked("/x", "Cache-Control: only-if-cached"), (504, 0))
        self.asked("/x")
        self.assertEqual(self.asked("/x", "Cache-Control: only-if-cached"), (200, 0))

    def test_max_stale_accepts_what_has_run_out(self):
        self.o.answer = storable(b"x", seconds=1)
        self.asked("/x")
        time.sleep(2.1)
        self.assertEqual(self.asked("/x", "Cache-Control: max-stale=60"), (200, 0))
        self.assertEqual(self.asked("/x"), (200, 1))

    def test_another_query_is_another_object(self):
        self.assertEqual(self.asked("/x?a"), (200, 1))
        self.assertEqual(self.asked("/x?b"), (200, 1))
        self.assertEqual(self.asked("/x?a"), (200, 0))


class Validation(Scenario):
    def serve(self, tag='"v1"', body=pattern(1000), control="max-age=0", **extra):
        def answer(q):
            if q.field("If-None-Match") == tag:
                return reply("304 Not Modified", "ETag: " + tag, "Cache-Control: max-age=60",
                             "X-B: new", "Content-Length: 0")
            return reply("200 OK", "ETag: " + tag, "Cache-Control: " + control, "X-B: old",
                         body=body)
        return answer

    def test_a_304_freshens_the_fields_and_keeps_the_body(self):
        """RFC 9111 4.3.4, 3.2: never the length of the 304."""
        o = self.origin(self.serve())
        p = self.cuttle()
        self.get(p, o.url("/"))
        r = self.get(p, o.url("/"))
        self.assertEqual(o.last().field("If-None-Match"), '"v1"')
        self.assertEqual((r.status, r.body, r.field("X-B")), (200, pattern(1000), "new"))
        self.assertRegex(r.cache_status, r"fwd=stale")
        r = self.get(p, o.url("/"))
        self.assertEqual((r.body, r.hit, r.field("X-B")), (pattern(1000), True, "new"))
        self.assertEqual(len(o.requests), 2)
        self.assertIn("TCP_REFRESH_UNMODIFIED", [a.code for a in p.access_log(3)])

    def test_last_modified_is_a_validator_too(self):
        stamp = http_date(-86400)

        def answer(q):
            if q.field("If-Modified-Since") == stamp:
                return reply("304 Not Modified", "Cache-Control: max-age=60", length=False)
            return reply("200 OK", "Last-Modified: " + stamp, "Cache-Control: max-age=0",
                         body=b"x")
        o = self.origin(answer)
        p = self.cuttle()
        self.get(p, o.url("/"))
        self.assertEqual(self.get(p, o.url("/")).body, b"x")
        self.assertTrue(self.get(p, o.url("/")).hit)

    def test_a_changed_object_replaces_the_stored_one(self):
        o = self.origin(self.serve())
        p = self.cuttle()
        self.get(p, o.url("/"))
        o.answer = self.serve('"v2"', b"changed", "max-age=60")
        self.assertEqual(self.get(p, o.url("/")).body, b"changed")
        self.assertEqual(self.get(p, o.url("/")).body, b"changed")
        self.assertEqual(len(o.requests), 2)
        self.assertIn("TCP_REFRESH_MODIFIED", [a.code for a in p.access_log(3)])

    def test_a_client_that_has_it_gets_304_from_the_store(self):
        """RFC 9111 4.3.2."""
        stamp = http_date(-1000)
        o = self.origin(storable(b"x", 'ETag: "a"', "Last-Modified: " + stamp))
        p = self.cuttle()
        self.get(p, o.url("/"))
        with Client(p.address) as c:
            for field, status in (('If-None-Match: "a"', 304), ('If-None-Match: W/"a"', 304),
                                  ('If-None-Match: "b", "a"', 304), ("If-None-Match: *", 304),
                                  ('If-None-Match: "b"', 200), ("If-Modified-Since: " + stamp, 304),
                                  ("If-Modified-Since: " + http_date(-2000), 200),
                                  ("If-Modified-Since: Sun, 06 No", 200)):
                r = c.get(o.url("/"), field)
                self.assertEqual(r.status, status, field)
                if status == 304:
                    self.assertEqual(r.field("ETag"), '"a"')
        self.assertEqual(len(o.requests), 1)

    def test_a_validation_for_us_is_not_a_304_for_the_client(self):
        """The client asked plainly: it gets a body even though the origin said 304."""
        o = self.origin(self.serve())
        p = self.cuttle()
        self.get(p, o.url("/"))
        self.assertEqual(self.get(p, o.url("/"), 'If-None-Match: "else"').status, 200)

    def test_stale_if_error_and_its_prohibition(self):
        """RFC 5861 4; RFC 9111 4.2.4."""
        for control, allowed in (("max-age=1, stale-if-error=60", True),
                                 ("max-age=1, must-revalidate", False),
                                 ("max-age=1, proxy-revalidate", False), ("s-maxage=1", False)):
            o = self.origin(reply("200 OK", "Cache-Control: " + control, 'ETag: "a"', body=b"old"))
            p = self.cuttle()
            self.get(p, o.url("/"))
            o.close()
            time.sleep(2.1)
            r = self.get(p, o.url("/"), "Cache-Control: max-stale=100")
            if allowed:
                self.assertEqual((r.status, r.body), (200, b"old"), control)
                self.assertIsNotNone(r.field("Age"))
            else:
                self.assertIn(r.status, (502, 503, 504), control)
            p.stop()


class Variants(Scenario):
    def test_each_variant_is_stored(self):
        """RFC 9111 4.1."""
        o = self.origin(lambda q: storable((q.field("Accept-Language") or "-").encode(),
                                           "Vary: Accept-Language"))
        p = self.cuttle()
        for language, asked in (("de", 1), ("en", 2), ("de", 2), ("en", 2), (None, 3), ("de", 3)):
            fields = ["Accept-Language: " + language] if language else []
            r = self.get(p, o.url("/"), *fields)
            self.assertEqual(r.body, (language or "-").encode())
            self.assertEqual(len(o.requests), asked)
        self.assertIn("fwd=vary-miss", self.get(p, o.url("/"), "Accept-Language: fr").cache_status)

    def test_members_are_compared_without_case_and_in_any_number(self):
        o = self.origin(storable(b"x", "Vary: accept, ACCEPT-encoding"))
        p = self.cuttle()
        self.get(p, o.url("/"), "Accept: a", "Accept-Encoding: gzip")
        self.assertTrue(self.get(p, o.url("/"), "ACCEPT: a", "accept-encoding: gzip").hit)
        self.assertFalse(self.get(p, o.url("/"), "Accept: a", "Accept-Encoding: br").hit)


class Invalidation(Scenario):
    """RFC 9111 4.4."""

    def test_an_unsafe_method_invalidates_what_it_changed(self):
        other = self.origin(storable(b"other"))
        o = self.origin({"/a": storable(b"a"), "/b": storable(b"b"), "/bad": storable(b"bad"),
                         "/c": reply("200 OK", "Location: /b"),
                         "/d": reply("200 OK", "Location: " + other.url("/"))})
        p = self.cuttle()

        def is_hit(url):
            return self.get(p, url).hit
        for url in (o.url("/a"), o.url("/b"), other.url("/")):
            self.get(p, url)
            self.assertTrue(is_hit(url))
        for method in ("POST", "PUT", "DELETE", "FROB"):
            o.answer["/a"] = lambda q: storable(b"a") if q.method == "GET" else reply()
            self.get(p, o.url("/a"), method=method, body=b"")
            self.assertFalse(is_hit(o.url("/a")), method)
            self.assertTrue(is_hit(o.url("/a")), method)
        self.get(p, o.url("/d"), method="POST", body=b"")
        self.assertTrue(is_hit(other.url("/")), "another host's object must stay")
        o.answer["/a"] = lambda q: storable(b"a") if q.method == "GET" else reply("500 No")
        self.get(p, o.url("/a"), method="POST", body=b"")
        self.assertTrue(is_hit(o.url("/a")), "a failure changes nothing")


class Collapsing(Scenario):
    """RFC 9111 4, last paragraphs: one request for many (with collapsed_forwarding on)."""
    ON = "collapsed_forwarding on"

    def fifty(self, p, o, path="/", n=50, *fields):
        return together(n, lambda i: self.get(p, o.url(path), *fields))

    def test_fifty_clients_cost_one_fetch(self):
        body = pattern(1 << 20)
        whole = storable(body)
        o = self.origin((0.7, whole[:5000], 0.3, whole[5000:]))
        p = self.cuttle(self.ON, BIG)
        results = self.fifty(p, o)
        self.assertEqual([r.body == body for r in results], [True] * 50)
        self.assertEqual(len(o.requests), 1)
        self.assertTrue(any("collapsed" in r.cache_status for r in results))

    def test_what_may_not_be_shared_is_fetched_by_each(self):
        o = self.origin(lambda q: (0.2, reply("200 OK", "Cache-Control: private",
                                              body=(q.field("X-Me") or "").encode())))
        p = self.cuttle(self.ON)
        began = time.monotonic()
        results = together(20, lambda i: self.get(p, o.url("/"), "X-Me: %d" % i))
        self.assertEqual([r.body for r in results], [b"%d" % i for i in range(20)])
        self.assertLess(time.monotonic() - began, 5, "one after another")

    def test_each_variant_is_fetched_once(self):
        o = self.origin(lambda q: (0.5, storable(q.field("X-A").encode(), "Vary: X-A")))
        p = self.cuttle(self.ON)
        results = together(30, lambda i: self.get(p, o.url("/"), "X-A: %d" % (i % 2)))
        self.assertEqual([r.body for r in results], [b"%d" % (i % 2) for i in range(30)])
        self.assertLessEqual(len(o.requests), 30)

    def test_a_fetch_that_dies_leaves_no_mark(self):
        o = self.origin([(0.3, CLOSE)] * 100)
        p = self.cuttle(self.ON)
        self.assertTrue(all(r.status == 502 for r in self.fifty(p, o, n=10)))
        o.answer = storable(b"back")
        self.assertEqual(self.get(p, o.url("/")).body, b"back")

    def test_a_fetch_cut_in_the_middle_is_a_cut_for_all_and_stored_for_nobody(self):
        whole = storable(pattern(100_000))
        o = self.origin([(whole[:50_000], 0.5, CLOSE)] + [whole])
        p = self.cuttle(self.ON)

        def run(i):
            try:
                return self.get(p, o.url("/")).body == pattern(100_000)
            except Incomplete:
                return None
        self.assertNotIn(False, together(10, run))
        self.assertEqual(self.get(p, o.url("/")).body, pattern(100_000))

    def test_the_leader_leaves_and_the_others_still_get_all(self):
        body = pattern(3_000_000)
        whole = storable(body)
        o = self.origin((whole[:1_000_000], 1.0, whole[1_000_000:]))
        p = self.cuttle(self.ON, BIG)
        leader = self.client(p)
        leader.request("GET", o.url("/"))
        o.wait_requests(1)
        leader.read_until("\r\n\r\n")
        late = [self.client(p) for _ in range(5)]
        for c in late:
            c.request("GET", o.url("/"))
        time.sleep(0.2)
        leader.reset()
        for c in late:
            self.assertEqual(c.read_response().body, body)
        self.assertLessEqual(len(o.requests), 2)

    def test_a_client_that_leaves_in_the_middle_poisons_nothing(self):
        body = pattern(2_000_000)
        whole = storable(body)
        o = self.origin((whole[:500_000], 0.5, whole[500_000:]))
        p = self.cuttle(BIG)
        with Client(p.address) as c:
            c.request("GET", o.url("/"))
            c.read_until("\r\n\r\n")
            c.reset()
        for _ in range(3):
            self.assertEqual(self.get(p, o.url("/")).body, body)

    def test_two_workers_collapse_into_one_fetch(self):
        o = self.origin((0.7, storable(pattern(200_000))))
        p = self.cuttle(self.ON, workers=2)
        self.assertEqual([len(r.body) for r in self.fifty(p, o)], [200_000] * 50)
        self.assertEqual(len(o.requests), 1)


class Speeds(Scenario):
    """Two clients share a response that outgrows the memory half-way; one of them is slow, or reads
    no more. The other is not held up for its sake (cache/body.h)."""
    SIZE = 48 << 20
    LIMITS = ("collapsed_forwarding on\nmaximum_object_size 2 MB\n"
              "maximum_object_size_in_memory 2 MB")

    def setUp(self):
        self.piece = pattern(1 << 16)
        self.body_hash = self.hash_of(self.piece for _ in range(self.SIZE >> 16))

    def hash_of(self, pieces):
        h = hashlib.sha1()
        for piece in pieces:
            h.update(piece)
        return h.hexdigest()

    def stream(self, *fields):
        def answer(q, c):
            at = 0
            if q.field("Range"):
                at = int(q.field("Range")[6:-1])
                c.send(reply("206 Partial Content", "Content-Range: bytes %d-%d/%d" %
                             (at, self.SIZE - 1, self.SIZE), *fields,
                             "Content-Length: %d" % (self.SIZE - at)))
            else:
                time.sleep(0.3)
                c.send(reply("200 OK", "Cache-Control: max-age=60", "Transfer-Encoding: chunked",
                             *fields))
            while at < self.SIZE:
                piece = self.piece[at % (1 << 16):]
                c.send(piece if q.field("Range") else chunks(piece, last=False))
                at += len(piece)
            if not q.field("Range"):
                c.send(chunks(b""))
        return answer

    def two(self, p, o):
        """The leader, and one who shares its fetch."""
        pair = [self.client(p) for _ in range(2)]
        for i, c in enumerate(pair):
            c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            c.request("GET", o.url("/"))
            if i == 0:
                o.wait_requests(1)
        for c in pair:
            c.read_until("\r\n\r\n")
        return pair

    def read(self, c, pause_s=0.0):
        """All chunks; their hash."""
        def pieces():
            while True:
                n = int(c.read_until("\r\n"), 16)
                if n:
                    yield c.read_exactly(n)
                c.read_exactly(2)
                if not n:
                    return
                time.sleep(pause_s)
        return self.hash_of(pieces())

    def test_whoever_stops_reading_the_other_goes_on(self):
        """The one who stopped gets the rest by a Range request of its own."""
        for stops in (0, 1):
            o = self.origin(self.stream('ETag: "a"'))
            p = self.cuttle(self.LIMITS)
            pair = self.two(p, o)
            began = time.monotonic()
            self.assertEqual(self.read(pair[1 - stops]), self.body_hash)
            self.assertLess(time.monotonic() - began, harness.TIMEOUT_S)
            wait_for(lambda: len(o.requests) == 2, "the fetch of the other")
            self.assertEqual(o.last().field("If-Range"), '"a"')
            self.assertEqual(self.read(pair[stops]), self.body_hash)
            p.stop()

    def test_without_a_validator_the_one_who_stops_is_cut_off_visibly(self):
        for stops in (0, 1):
            o = self.origin(self.stream())
            p = self.cuttle(self.LIMITS)
            pair = self.two(p, o)
            began = time.monotonic()
            self.assertEqual(self.read(pair[1 - stops]), self.body_hash)
            self.assertLess(time.monotonic() - began, 8 + harness.TIMEOUT_S / 4)
            with self.assertRaises((Incomplete, ConnectionError)):
                self.read(pair[stops])
            self.assertEqual(len(o.requests), 1)
            p.stop()

    def test_without_a_validator_who_is_slow_but_reads_on_is_not_cut_off(self):
        o = self.origin(self.stream())
        p = self.cuttle(self.LIMITS)
        pair = self.two(p, o)
        hashes = together(2, lambda i: self.read(pair[i], i * 0.004))
        self.assertEqual(hashes, [self.body_hash] * 2)
        self.assertEqual(len(o.requests), 1)

    def test_a_304_for_a_body_that_has_outgrown_the_memory_meanwhile_is_asked_for_anew(self):
        """Without our validators: another 304 would only say the same."""
        body = pattern(4 << 20)
        head = reply("200 OK", "Cache-Control: max-age=0", 'ETag: "a"', "Transfer-Encoding: chunked")

        def answer(q):
            if q.field("If-None-Match"):
                return (2, reply("304 Not Modified", 'ETag: "a"', length=False))
            return (head, chunks(body[:1 << 20], last=False), 1, chunks(body[1 << 20:]))
        o = self.origin(answer)
        p = self.cuttle(self.LIMITS)
        first, second = self.client(p), self.client(p)
        first.request("GET", o.url("/"))
        first.read_until("\r\n\r\n")
        second.request("GET", o.url("/"))
        self.assertEqual(self.read(first), self.hash_of([body]))
        self.assertEqual(second.read_response().body, body)
        self.assertEqual([q.field("If-None-Match") for q in o.requests], [None, '"a"', None])

    def test_the_memory_for_the_slow_one_is_bounded(self):
        for fields in (['ETag: "a"'], []):
            o = self.origin(self.stream(*fields))
            p = self.cuttle(self.LIMITS, lean=True)
            self.get(p, o.url("/warm"), "Range: bytes=%d-" % (self.SIZE - 100))
            before = p.memory_kb()
            pair = self.two(p, o)
            self.read(pair[0])
            self.assertLess(p.memory_kb() - before, harness.MEMORY_FACTOR * (8 << 10))
            p.stop()


class Replacement(Scenario):
    def test_the_least_recently_used_go_first_and_memory_stays_bounded(self):
        o = self.origin(lambda q: storable(pattern(20_000, int(q.target[1:]))))
        p = self.cuttle("cache_mem 8 MB", lean=True)
        with Client(p.address) as c:
            before = p.memory_kb()
            for i in range(1200):
                self.assertEqual(c.get(o.url("/%d" % i)).body, pattern(20_000, i))
                if i % 10 == 0:
                    self.assertTrue(c.get(o.url("/0")).hit or i == 0, "used all the time: %d" % i)
            self.assertLess(p.memory_kb() - before, harness.MEMORY_FACTOR * (14 << 10))

            def hits(numbers):
                return sum(c.get(o.url("/%d" % i), "Cache-Control: only-if-cached").status == 200
                           for i in numbers)
            self.assertEqual(hits(range(1150, 1200)), 50)
            self.assertLess(hits(range(1, 400)), 40)

    def test_small_objects_are_counted_with_their_overhead(self):
        o = self.origin(lambda q: storable(b"x" * 100))
        p = self.cuttle("cache_mem 8 MB", lean=True)
        with Client(p.address) as c:
            for i in range(3000):
                c.get(o.url("/warm%d" % i))
            before = p.memory_kb()
            for i in range(8000):
                c.get(o.url("/%d" % i))
        self.assertLess(p.memory_kb() - before, harness.MEMORY_FACTOR * (8 << 10))

    def test_objects_being_read_survive_their_eviction(self):
        o = self.origin(lambda q: storable(pattern(2 << 20, int(q.target[1:]))))
        p = self.cuttle("cache_mem 8 MB", BIG)
        slow = []
        for i in range(12):
            c = self.client(p)
            c.request("GET", o.url("/%d" % i))
            c.read_until("\r\n\r\n")
            slow.append(c)
        for i, c in enumerate(slow):
            self.assertEqual(c.read_exactly(2 << 20), pattern(2 << 20, i))
        wait_for(lambda: self.get(p, o.url("/11")).body == pattern(2 << 20, 11), "the object")


if __name__ == "__main__":
    harness.main()
