"""What may be handed to the next client, and until when (RFC 9111): variants, owners, stale and
stored errors, collapsed requests, and clocks and dates that cannot be trusted."""
import email.utils
import mmap
import os
import shutil
import struct
import subprocess
import tempfile
import threading
import time
import unittest

import harness
from harness import (CLOSE, Client, Incomplete, Scenario, chunks, pattern, reply, storable,
                     together)

BIG = "maximum_object_size 16 MB\nmaximum_object_size_in_memory 16 MB"


def http_date(offset_s):
    return email.utils.formatdate(time.time() + offset_s, usegmt=True)


class Selecting(Scenario):
    """RFC 9111 4.1."""

    def asked(self, p, *fields):
        """How many of two equal requests reach the origin."""
        o = self.origin(storable(b"v", *fields))
        for _ in range(2):
            self.assertEqual(self.get(p, o.url("/")).body, b"v")
        return len(o.requests)

    def test_a_star_in_vary_selects_nobody_however_it_is_written(self):
        p = self.cuttle()
        for fields in (["Vary: *"], ["Vary:  * "], ["Vary: *,"], ["Vary: X, *"], ["Vary: ,*"],
                       ["Vary: X", "Vary: *"], ["vary: *", "vary: X"]):
            self.assertEqual(self.asked(p, *fields), 2, fields)

    def test_a_member_of_vary_that_is_no_name_selects_nobody(self):
        """RFC 9110 12.5.5; and ten thousand names are not worth remembering."""
        p = self.cuttle()
        many = ",".join("n%d" % i for i in range(10_000))
        for value in ("Other:", ":", "a b", '"', "X, a;b", many):
            self.assertEqual(self.asked(p, "Vary: " + value), 2, value[:20])

    def test_a_vary_without_members_is_none(self):
        p = self.cuttle()
        for value in (",,,", " , "):
            self.assertEqual(self.asked(p, "Vary: " + value), 1, value)


class Owned(Scenario):
    """What belongs to one user (RFC 9111 3.5, 5.2.2.7)."""

    def setUp(self):
        self.p = self.cuttle()

    def bodies(self, control, *whose):
        """What clients with these credentials and cookies get, one after another."""
        o = self.origin(lambda q: reply(
            "200 OK", *control, body=(q.field("Authorization") or q.field("Cookie") or
                                      "nobody").encode()))
        return [self.get(self.p, o.url("/"), *fields).body for fields in whose]

    def test_a_page_for_one_user_is_never_given_to_another(self):
        users = (["Authorization: one"], ["Authorization: two"], [])
        self.assertEqual(self.bodies(["Cache-Control: max-age=60"], *users),
                         [b"one", b"two", b"nobody"])
        users = (["Cookie: one"], ["Cookie: two"], [])
        for control in ("private, max-age=60", "max-age=60, PRIVATE", "no-store, max-age=60",
                        'private="Set-Cookie", max-age=60'):
            self.assertEqual(self.bodies(["Cache-Control: " + control], *users),
                             [b"one", b"two", b"nobody"], control)

    def test_a_cookie_without_a_word_about_storing_is_for_one_user(self):
        users = (["Cookie: one"], ["Cookie: two"])
        unchanged = "Last-Modified: " + http_date(-86400 * 100)
        self.assertEqual(self.bodies([unchanged, "Set-Cookie: id=1"], *users), [b"one", b"two"])
        self.assertEqual(self.bodies([unchanged], *users), [b"one", b"one"], "without a cookie")

    def test_what_the_origin_calls_public_is_for_all(self):
        self.assertEqual(self.bodies(["Cache-Control: public, max-age=60", "Set-Cookie: id=1"],
                                     ["Cookie: one"], ["Cookie: two"]), [b"one", b"one"])

    def test_a_stored_cookie_goes_to_nobody_not_even_to_the_address_it_was_made_for(self):
        """RFC 9111 7.3 lets it be stored; behind one address there may be many clients."""
        for control in ("max-age=60", "public, max-age=60"):
            o = self.origin(reply("200 OK", "Cache-Control: " + control, "Set-Cookie: id=1",
                                  "Set-Cookie: b=2", "X-A: 1", body=pattern(5000)))
            first = self.get(self.p, o.url("/"))
            self.assertEqual(first.all("Set-Cookie"), ["id=1", "b=2"])
            for source in ("127.0.0.1", "127.0.0.2"):
                for range_ in ((), ("Range: bytes=0-9",), ("Range: bytes=0-9,20-29",)):
                    with Client(self.p.address, source=source) as c:
                        r = c.get(o.url("/"), *range_)
                    self.assertEqual((r.field("Set-Cookie"), r.field("X-A")), (None, "1"))
            self.assertEqual(len(o.requests), 1)

    def test_the_cookie_of_a_304_is_for_the_client_whose_request_it_answers(self):
        """And the stored one, made for another, goes to nobody again."""
        def answer(q):
            if q.field("If-None-Match"):
                return reply("304 Not Modified", "ETag: \"a\"", "Set-Cookie: new=" +
                             (q.field("Cookie") or "-"), length=False)
            return storable(b"x", 'ETag: "a"', "Set-Cookie: old=1", seconds=0)
        o = self.origin(answer)
        self.assertEqual(self.get(self.p, o.url("/")).all("Set-Cookie"), ["old=1"])
        for who in ("one", "two"):
            r = self.get(self.p, o.url("/"), "Cookie: " + who)
            self.assertEqual((r.status, r.body, r.all("Set-Cookie")), (200, b"x", ["new=" + who]))
        r = self.get(self.p, o.url("/"), "Cookie: three", 'If-None-Match: "a"')
        self.assertEqual((r.status, r.all("Set-Cookie")), (304, ["new=three"]))

    def test_a_rest_that_is_fetched_brings_its_own_cookie_and_not_that_of_the_beginning(self):
        whole = storable(pattern(50_000), 'ETag: "a"', "Set-Cookie: old=1")

        def answer(q):
            if not q.field("Range"):
                return (whole[:30_000], harness.CLOSE)
            at = int(q.field("Range")[6:-1])
            return reply("206 Partial Content", "Content-Range: bytes %d-49999/50000" % at,
                         'ETag: "a"', "Set-Cookie: new=1", body=pattern(50_000)[at:])
        o = self.origin(answer)
        with self.assertRaises(Incomplete):
            self.get(self.p, o.url("/"))
        r = self.get(self.p, o.url("/"))
        self.assertEqual((r.body, r.all("Set-Cookie")), (pattern(50_000), ["new=1"]))
        self.assertEqual(len(o.requests), 2)

    def test_who_waits_for_anothers_fetch_does_not_get_its_cookie(self):
        go = threading.Event()
        o = self.origin((reply("200 OK", "Cache-Control: max-age=60", "Set-Cookie: id=1",
                               "Content-Length: 5", length=False), go, b"hello"))
        p = self.cuttle()
        first, second = Client(p.address, source="127.0.0.1"), Client(p.address, source="127.0.0.2")
        first.request("GET", o.url("/"))
        o.wait_requests(1)
        second.request("GET", o.url("/"))
        go.set()
        got = first.read_response(), second.read_response()
        first.close(), second.close()
        self.assertEqual([r.body for r in got], [b"hello"] * 2)
        self.assertEqual([r.field("Set-Cookie") for r in got], ["id=1", None])


class Waiters(Scenario):
    """Who waits for another's fetch gets what the store could give it without validation, and goes
    on by itself for the rest (RFC 9111 4)."""
    N = 3
    STALE = (["Cache-Control: max-age=0"], ["Expires: 0"], ["Expires: " + http_date(-86400)],
             ["Pragma: no-cache"], [], ['ETag: "a"'])
    FORBIDDEN = (["Cache-Control: no-cache", 'ETag: "a"'],
                 ["Cache-Control: max-age=0, must-revalidate", 'ETag: "a"'],
                 ["Cache-Control: s-maxage=0", 'ETag: "a"'],
                 ["Cache-Control: max-age=0", "Set-Cookie: id=1", 'ETag: "a"'])

    def setUp(self):
        self.p = self.cuttle("collapsed_forwarding on")

    def pages(self, fields, *asks, delay_s=0.4):
        """What users get who ask at once for a page that is made for each of them, and how long
        all of it took."""
        def page(q):
            whose = q.field("Cookie") or q.field("Authorization") or q.field("X-Me") or "nobody"
            return (delay_s, reply("200 OK", *fields, body=whose.encode()))
        o = self.origin(page)
        began = time.monotonic()
        got = together(self.N, lambda i: self.get(self.p, o.url("/"), *[f % i for f in asks]))
        return [r.body for r in got], len(o.requests), time.monotonic() - began

    def test_a_page_that_is_stale_on_arrival_is_never_given_to_another_user(self):
        for fields in self.STALE:
            for who in ("Cookie: %d", "Authorization: %d"):
                bodies, asked, took_s = self.pages(fields, who)
                self.assertEqual(bodies, [b"0", b"1", b"2"], (fields, who))
                self.assertLess(took_s, 1.1, "one behind the other")

    def test_where_nobody_sends_credentials_one_fetch_is_enough_for_it(self):
        for fields in self.STALE:
            bodies, asked, _ = self.pages(fields)
            self.assertEqual((bodies, asked), ([b"nobody"] * 3, 1), fields)

    def test_what_may_not_be_used_without_validation_is_for_no_waiter_at_all(self):
        for fields in self.FORBIDDEN:
            for who in ("Cookie: %d", "X-Me: %d"):
                bodies, asked, took_s = self.pages(fields, who)
                self.assertEqual((bodies, asked), ([b"0", b"1", b"2"], 3), (fields, who))
                self.assertLess(took_s, 1.1, "one behind the other")

    def test_a_user_does_not_get_what_came_for_nobody_nor_nobody_what_came_for_a_user(self):
        for first, second in ((("Cookie: one",), ()), ((), ("Cookie: two",))):
            o = self.origin(lambda q: (0.5, storable((q.field("Cookie") or "-").encode(),
                                                     seconds=0)))
            a, b = self.client(self.p), self.client(self.p)
            a.request("GET", o.url("/"), *first)
            o.wait_requests(1)
            b.request("GET", o.url("/"), *second)
            bodies = a.read_response().body, b.read_response().body
            self.assertEqual(bodies, (b"one", b"-") if first else (b"-", b"two"))

    def test_a_fresh_page_is_one_fetch_for_users_too(self):
        bodies, asked, _ = self.pages(["Cache-Control: max-age=60"], "Cookie: %d")
        self.assertEqual((len(set(bodies)), asked), (1, 1))

    def test_a_304_for_one_user_gives_nothing_stale_to_another(self):
        """max-age=0 beside a validator: each of them must ask."""
        def page(q):
            mine = '"%s"' % (q.field("Cookie") or "-")
            if mine in (q.field("If-None-Match") or ""):
                return (0.4, reply("304 Not Modified", "ETag: " + mine, length=False))
            return (0.4, storable(mine.encode(), "ETag: " + mine, seconds=0))
        o = self.origin(page)
        self.get(self.p, o.url("/"), "Cookie: 0")
        got = together(3, lambda i: self.get(self.p, o.url("/"), "Cookie: %d" % i))
        self.assertEqual([r.body for r in got], [b'"0"', b'"1"', b'"2"'])

    def test_the_cache_control_of_the_one_who_waits_counts(self):
        """Asked for with max-age or min-fresh, what comes too old is not what was asked for; a
        reload does not wait at all."""
        for control, asked in (("max-age=60", 1), ("max-age=5", 2), ("min-fresh=55", 2),
                               ("max-age=0", 2), ("no-cache", 2)):
            o = self.origin((0.4, storable(b"x", "Age: 10", seconds=60)))
            a, b = self.client(self.p), self.client(self.p)
            a.request("GET", o.url("/"))
            o.wait_requests(1)
            b.request("GET", o.url("/"), "Cache-Control: " + control)
            self.assertEqual((a.read_response().body, b.read_response().body), (b"x", b"x"))
            self.assertEqual(len(o.requests), asked, control)

    def test_who_waits_with_a_range_or_a_condition_is_judged_like_the_others(self):
        for field in ("Range: bytes=0-3", 'If-None-Match: "z"'):
            o = self.origin(lambda q: (0.4, storable((q.field("Cookie") or "-").encode() * 9,
                                                     'ETag: "%s"' % q.field("Cookie"), seconds=0)))
            a, b = self.client(self.p), self.client(self.p)
            a.request("GET", o.url("/"), "Cookie: one")
            o.wait_requests(1)
            b.request("GET", o.url("/"), "Cookie: two", field)
            self.assertEqual(a.read_response().body, b"one" * 9)
            self.assertIn(b.read_response().body, (b"two" * 9, b"twot"))

    def test_a_stale_response_in_place_of_an_error_costs_one_request_for_all(self):
        o = self.origin([storable(b"old", "Cache-Control: stale-if-error=60", seconds=1)] +
                        [(0.5, reply("503 Busy"))] * 9)
        self.get(self.p, o.url("/"))
        time.sleep(2.1)
        got = together(5, lambda i: self.get(self.p, o.url("/"), "Cookie: %d" % i))
        self.assertEqual({r.body for r in got}, {b"old"})
        self.assertLessEqual(len(o.requests), 2)

    def test_what_is_too_large_to_keep_is_waited_for_once_and_not_in_a_row(self):
        p = self.cuttle("collapsed_forwarding on", "maximum_object_size_in_memory 8 KB",
                        "maximum_object_size 8 KB")
        o = self.origin((0.5, storable(pattern(50_000))))
        began = time.monotonic()
        got = together(6, lambda i: self.get(p, o.url("/")))
        self.assertEqual({r.body == pattern(50_000) for r in got}, {True})
        self.assertLess(time.monotonic() - began, 1.6, "one behind the other")


class Patience(Scenario):
    """One fetch hangs: who shares it waits five seconds and goes on without it."""

    def read_in(self, c, least_s, most_s):
        began = time.monotonic()
        r = c.read_response()
        self.assertTrue(least_s <= time.monotonic() - began <= most_s, time.monotonic() - began)
        return r

    def test_who_waits_for_a_head_that_does_not_come_fetches_anew(self):
        """All at the same time; who comes later does not wait for the hanging one; and the first
        gets what it asked for when it comes."""
        for control in ("max-age=60", "no-store"):
            go = threading.Event()
            answer = reply("200 OK", "Cache-Control: " + control, body=b"quick")
            o = self.origin([(go, storable(b"slow"))] + [(0.3, answer)] * 9)
            p = self.cuttle("collapsed_forwarding on")
            first, *others = (self.client(p) for _ in range(5))
            first.request("GET", o.url("/"))
            o.wait_requests(1)
            for c in others:
                c.request("GET", o.url("/"))
            self.assertEqual(self.read_in(others[0], 3.5, 8).body, b"quick")
            for c in others[1:]:
                self.assertEqual(self.read_in(c, 0, 1).body, b"quick")
            self.assertEqual(self.read_in_new(p, o).body, b"quick")
            go.set()
            self.assertEqual(self.read_in(first, 0, 3).body, b"slow")

    def read_in_new(self, p, o):
        c = self.client(p)
        c.request("GET", o.url("/"))
        return self.read_in(c, 0, 2)

    def test_who_waits_for_a_validation_that_hangs_asks_for_itself(self):
        go = threading.Event()
        o = self.origin([storable(b"old", 'ETag: "a"', seconds=0), (go, CLOSE)] +
                        [reply("304 Not Modified", 'ETag: "a"', "Cache-Control: max-age=60",
                               length=False)] * 9)
        p = self.cuttle("collapsed_forwarding on")
        self.get(p, o.url("/"))
        first, second = self.client(p), self.client(p)
        first.request("GET", o.url("/"))
        o.wait_requests(2)
        second.request("GET", o.url("/"))
        self.assertEqual(self.read_in(second, 3.5, 8).body, b"old")
        go.set()


class HangingInBackground(Scenario):
    def test_a_validation_in_the_background_that_hangs_delays_nobody_for_long(self):
        """While stale may go out it does; later one fetch of one's own brings what is new."""
        go = threading.Event()
        o = self.origin([storable(b"old", "Cache-Control: stale-while-revalidate=2", seconds=1),
                         (go, CLOSE), storable(b"new")])
        p = self.cuttle()
        self.get(p, o.url("/"))
        time.sleep(2.1)
        for _ in range(2):
            self.assertEqual(self.get(p, o.url("/")).body, b"old")
        o.wait_requests(2)
        time.sleep(2.1)
        began = time.monotonic()
        self.assertEqual(self.get(p, o.url("/")).body, b"new")
        self.assertLess(time.monotonic() - began, 6)
        go.set()


class Halves(Scenario):
    """A fetch stops in the middle of the body: those who share it go on by another where that can
    bring the very same bytes, and end visibly where it cannot."""
    BODY = pattern(200_000)
    AT = 100_000
    TAG = 'ETag: "v1"'

    def share(self, then, *fields, ask=(), more=(), sends_length=True):
        """A fetch that stops half-way, and one who shares it: what the latter gets (None: the
        response broke off), and what the origin was asked then. The first client gets all."""
        go = threading.Event()
        control = () if any("Control" in f for f in fields) else ("Cache-Control: max-age=60",)
        if sends_length:
            whole = reply("200 OK", *control, *fields, body=self.BODY)
            cut = len(whole) - len(self.BODY) + self.AT
            first = (whole[:cut], go, whole[cut:])
        else:
            first = (reply("200 OK", *control, "Transfer-Encoding: chunked", *fields),
                     chunks(self.BODY[:self.AT], last=False), go, chunks(self.BODY[self.AT:]))
        o = self.origin([first, then])
        p = self.cuttle("collapsed_forwarding on", BIG)
        leader, other = self.client(p), self.client(p)
        leader.request("GET", o.url("/"))
        leader.read_until("\r\n\r\n")
        other.request("GET", o.url("/"), *ask)
        began = time.monotonic()
        try:
            got = other.read_response()
        except Incomplete:
            got = None
        self.took_s = time.monotonic() - began
        asked = o.requests[1] if len(o.requests) > 1 else None
        for c in more:
            c(p, o)
        go.set()
        self.assertEqual(len(leader.read_exactly(self.AT)), self.AT)
        return got, asked

    def rest(self, tag=TAG, whole=200_000):
        def answer(q):
            first, last = q.field("Range")[6:].split("-")
            first, last = int(first), int(last or whole - 1)
            return reply("206 Partial Content", tag,
                         "Content-Range: bytes %d-%d/%d" % (first, last, whole),
                         body=pattern(whole)[first:last + 1])
        return answer

    def test_the_rest_comes_by_a_range_where_there_is_a_strong_validator(self):
        for sends_length in (True, False):
            got, asked = self.share(self.rest(), self.TAG, sends_length=sends_length)
            self.assertEqual(got.body, self.BODY)
            self.assertEqual((asked.field("Range"), asked.field("If-Range")),
                             ("bytes=%d-" % self.AT, '"v1"'))
            self.assertTrue(4 < self.took_s < 9, self.took_s)

    def test_an_origin_that_knows_no_ranges_sends_the_whole_once_more(self):
        got, asked = self.share(storable(self.BODY, self.TAG), self.TAG)
        self.assertEqual(got.body, self.BODY)

    def test_of_a_range_only_what_is_missing_is_asked_for(self):
        got, asked = self.share(self.rest(), self.TAG, ask=["Range: bytes=50000-149999"])
        self.assertEqual((got.status, got.body), (206, self.BODY[50_000:150_000]))
        self.assertEqual(asked.field("Range"), "bytes=100000-149999")

    def test_without_a_validator_what_comes_is_compared_with_what_was_sent(self):
        got, asked = self.share(storable(self.BODY))
        self.assertEqual((got.body, asked.field("Range")), (self.BODY, None))
        newer = self.BODY[:150_000] + bytes(50_000)
        got, _ = self.share(storable(newer))
        self.assertEqual(got.body, newer, "one version, and that whole")

    def test_another_version_is_never_joined_to_the_beginning(self):
        other = bytes(50_000) + self.BODY[50_000:]
        cases = (((self.TAG,), storable(other, 'ETag: "v2"')),
                 ((self.TAG,), self.rest('ETag: "v2"')), ((self.TAG,), self.rest(whole=200_001)),
                 ((self.TAG,), storable(self.BODY, 'ETag: W/"v1"')),
                 ((), storable(other)), ((), storable(self.BODY[:-1])),
                 ((), storable(self.BODY, "Content-Type: text/x")),
                 ((), reply("503 Busy", body=self.BODY)))
        got = together(len(cases), lambda i: self.share(cases[i][1], *cases[i][0])[0])
        self.assertEqual(got, [None] * len(cases))

    def test_who_comes_later_does_not_join_it(self):
        def newcomer(p, o):
            began = time.monotonic()
            self.assertEqual(self.get(p, o.url("/")).body, self.BODY)
            self.assertLess(time.monotonic() - began, 2)
        got, _ = self.share(lambda q: self.rest()(q) if q.field("Range")
                            else storable(self.BODY, self.TAG), self.TAG, more=[newcomer])
        self.assertEqual(got.body, self.BODY)

    def test_pauses_that_are_short_disturb_nobody(self):
        whole = storable(self.BODY, self.TAG)
        o = self.origin((whole[:50_000], 3, whole[50_000:90_000], 3, whole[90_000:]))
        p = self.cuttle("collapsed_forwarding on", BIG)
        got = together(3, lambda i: self.get(p, o.url("/")))
        self.assertEqual([r.body == self.BODY for r in got], [True] * 3)
        self.assertEqual(len(o.requests), 1)

    def test_a_client_that_leaves_while_its_rest_is_fetched_takes_it_along(self):
        go = threading.Event()
        whole = storable(self.BODY, self.TAG)
        o = self.origin([(whole[:self.AT], go, whole[self.AT:]), (go, CLOSE)])
        p = self.cuttle("collapsed_forwarding on", BIG)
        leader, other = self.client(p), self.client(p)
        leader.request("GET", o.url("/"))
        leader.read_until("\r\n\r\n")
        other.request("GET", o.url("/"))
        o.wait_requests(2)
        other.reset()
        go.set()
        self.assertEqual(leader.read_exactly(200_000), self.BODY)
        self.assertTrue(p.is_running())


class Together(Scenario):
    """Many clients at once for what is not there (RFC 9111 4, last paragraphs)."""
    N = 50

    def ask(self, o, *fields_of_i):
        p = self.cuttle(BIG)
        return together(self.N, lambda i: self.get(
            p, o.url("/"), *(f(i) for f in fields_of_i)))

    def test_a_response_that_is_stale_on_arrival_is_still_one_fetch(self):
        body = pattern(1 << 20)
        o = self.origin((0.7, storable(body, seconds=0)))
        self.assertEqual({r.body == body for r in self.ask(o)}, {True})
        self.assertLessEqual(len(o.requests), 3)     # who comes after it may not use it

    def test_who_waits_reads_along(self):
        """All get what has come while the rest is still on its way."""
        go = threading.Event()
        whole = storable(pattern(200_000))
        o = self.origin((0.5, whole[:100_000], go, whole[100_000:]))
        p = self.cuttle(BIG)
        clients = [self.client(p) for _ in range(5)]
        for c in clients:
            c.request("GET", o.url("/"))
        for c in clients:
            c.read_until("\r\n\r\n")
            self.assertEqual(c.read_exactly(50_000), pattern(50_000))
        go.set()
        for c in clients:
            self.assertEqual(c.read_exactly(150_000), pattern(200_000)[50_000:])
        self.assertEqual(len(o.requests), 1)

    def test_an_error_is_one_fetch_too(self):
        o = self.origin((0.7, storable(b"gone", status="404 Not Found")))
        self.assertEqual({(r.status, r.body) for r in self.ask(o)}, {(404, b"gone")})
        self.assertEqual(len(o.requests), 1)

    def test_each_variant_is_one_fetch(self):
        """Before the first answer nobody knows what selects; then the others are sorted."""
        o = self.origin(lambda q: (0.7, storable(q.field("X-A").encode(), "Vary: X-A")))
        got = self.ask(o, lambda i: "X-A: %d" % (i % 2))
        self.assertEqual([r.body for r in got], [b"%d" % (i % 2) for i in range(self.N)])
        self.assertEqual(len(o.requests), 2)

    def test_after_a_fetch_that_broke_the_next_client_is_served(self):
        whole = storable(pattern(200_000))
        o = self.origin([(whole[:100_000], 0.5, harness.RESET), whole])
        p = self.cuttle(BIG)

        def run(i):
            try:
                return self.get(p, o.url("/")).body == pattern(200_000)
            except Incomplete:
                return None
        self.assertNotIn(False, together(10, run))
        r = self.get(p, o.url("/"))
        self.assertEqual(r.body, pattern(200_000))


class Errors(Scenario):
    """RFC 9111 4.2.2: an error is stored for its time and not a moment longer."""

    def five(self, p, o):
        return {r.status for r in together(5, lambda i: self.get(p, o.url("/")))}

    def test_nobody_joins_a_stored_error_after_its_end(self):
        o = self.origin([storable(b"no", status="404 Not Found", seconds=1), storable(b"yes")])
        p = self.cuttle()
        self.assertLessEqual(self.five(p, o), {404, 200})
        time.sleep(0.5)
        self.five(p, o)
        time.sleep(1)
        for _ in range(2):
            self.assertEqual(self.five(p, o), {200})

    def test_an_error_that_took_the_place_of_a_stale_response_runs_out_as_well(self):
        o = self.origin([storable(b"old", 'ETag: "a"', seconds=1),
                         (0.2, storable(b"no", status="404 Not Found", seconds=1)),
                         storable(b"new")])
        p = self.cuttle()
        self.get(p, o.url("/"))
        time.sleep(1.1)
        self.assertLessEqual(self.five(p, o), {404, 200})
        time.sleep(1.2)
        self.assertEqual({r.body for r in together(5, lambda i: self.get(p, o.url("/")))},
                         {b"new"})


class Stale(Scenario):
    """RFC 9111 4.2.4: the origin is gone, and what is stored has run out."""

    FORBIDDEN = ("max-age=1, must-revalidate", "max-age=1, proxy-revalidate", "s-maxage=1",
                 "max-age=1, stale-if-error=60, must-revalidate")
    ALLOWED = ("max-age=1", "max-age=1, stale-if-error=60")

    def test_what_the_origin_forbids_no_client_allows(self):
        def answer(q):
            return reply("200 OK", "Cache-Control: " + controls[int(q.target[1:])], body=b"old")
        controls = self.FORBIDDEN + self.ALLOWED
        o = self.origin(answer)
        p = self.cuttle()
        for i in range(len(controls)):
            self.get(p, o.url("/%d" % i))
        o.close()
        time.sleep(1.2)
        for i, control in enumerate(controls):
            for fields in ([], ["Cache-Control: max-stale=100"], ["Cache-Control: max-stale"]):
                r = self.get(p, o.url("/%d" % i), *fields)
                if control in self.ALLOWED:
                    self.assertEqual((r.status, r.body), (200, b"old"), control)
                    self.assertGreaterEqual(int(r.field("Age")), 1, control)
                else:
                    self.assertIn(r.status, (502, 503, 504), control)
                    self.assertNotEqual(r.body, b"old")

    def test_stale_if_error_bridges_its_time_and_no_more(self):
        """RFC 5861 4."""
        o = self.origin({"/60": [storable(b"old", "Cache-Control: stale-if-error=60", seconds=1),
                                 reply("503 Busy")],
                         "/0": [storable(b"old", "Cache-Control: stale-if-error=0", seconds=1),
                                reply("503 Busy")]})
        p = self.cuttle()
        for path in ("/60", "/0"):
            self.get(p, o.url(path))
        time.sleep(2.1)
        self.assertEqual(self.get(p, o.url("/60")).body, b"old")
        self.assertEqual(self.get(p, o.url("/0")).status, 503)


class Authority(Scenario):
    """RFC 9112 3.2.2: the target decides; the Host field beside it is nothing."""

    def test_access_lists_see_the_host_that_is_asked(self):
        o = self.origin(reply(body=b"x"))
        p = self.cuttle(self.hosts(good_test="127.0.0.1", bad_test="127.0.0.1"),
                        "acl bad dstdomain bad.test", "http_access deny bad")
        good, bad = ("%s:%d" % (name, o.port) for name in ("good.test", "bad.test"))
        self.assertEqual(self.get(p, "http://%s/" % bad, "Host: " + good).status, 403)
        self.assertEqual(o.requests, [])
        self.assertEqual(self.get(p, "http://%s/" % good, "Host: " + bad).status, 200)
        self.assertEqual(o.last().all("Host"), [good])

    def test_a_path_alone_reaches_no_origin_by_its_host_field(self):
        o = self.origin(storable(b"x"))
        p = self.cuttle()
        r = self.raw(p, "GET /x HTTP/1.1\r\nHost: %s\r\n\r\n" % o.authority)
        self.assertIn(r.status, (400, 404))
        self.assertEqual(o.connections, 0)

    def test_an_empty_path_and_a_slash_are_one_object(self):
        o = self.origin(storable(b"x"))
        p = self.cuttle()
        self.get(p, "http://" + o.authority)
        self.assertEqual(o.last().target, "/")
        self.assertTrue(self.get(p, o.url("/")).hit)


class Methods(Scenario):
    def test_a_head_without_body_is_not_stored_as_one(self):
        """RFC 9110 9.3.2: asked twice, and in between a GET gets all of it."""
        o = self.origin(lambda q: reply("200 OK", "Cache-Control: max-age=60", 'ETag: "a"',
                                        "Content-Length: 1000",
                                        body=b"" if q.method == "HEAD" else pattern(1000)))
        p = self.cuttle()
        with Client(p.address) as c:
            for _ in range(2):
                self.assertEqual(c.get(o.url("/"), method="HEAD").field("Content-Length"), "1000")
            for method in ("GET", "HEAD", "GET"):
                r = c.get(o.url("/"), method=method)
                self.assertEqual(r.body, pattern(1000) if method == "GET" else b"")

    def test_a_new_place_on_the_same_host_is_invalidated_with_it(self):
        """RFC 9111 4.4: Location and Content-Location of a request that changed something."""
        for field in ("Location", "Content-Location"):
            o = self.origin({"/b": storable(b"b"), "/c": lambda q: reply(
                "201 Created", "%s: /b" % field)})
            p = self.cuttle()
            self.get(p, o.url("/b"))
            self.assertTrue(self.get(p, o.url("/b")).hit)
            self.get(p, o.url("/c"), method="POST", body=b"")
            self.assertFalse(self.get(p, o.url("/b")).hit, field)


class Dates(Scenario):
    """RFC 9110 5.6.7."""
    ODD = ("Sun, 06 No", "Sun, 06 Nov", "", "Sun, 99 Xxx 9999 99:99:99 GMT",
           "Thu, 01 Jan 1969 00:00:00 GMT", "S", "Sunday, 06-Nov-9", "Sun Nov  6 08:49:3",
           "x" * 10_000)

    def forms(self, at_s):
        """One time as IMF-fixdate, as RFC 850 and as asctime wrote it."""
        t = time.gmtime(at_s)
        return (time.strftime("%a, %d %b %Y %H:%M:%S GMT", t),
                time.strftime("%A, %d-%b-%y %H:%M:%S GMT", t), time.asctime(t))

    def test_a_condition_with_an_odd_date_is_none(self):
        at_s = int(time.time()) - 86400
        o = self.origin(storable(pattern(1000), "Last-Modified: " + self.forms(at_s)[0]))
        p = self.cuttle()
        self.get(p, o.url("/"))
        with Client(p.address) as c:
            for odd in self.ODD:
                r = c.get(o.url("/"), "If-Modified-Since: " + odd)
                self.assertEqual((r.status, r.body), (200, pattern(1000)), odd[:40])
                r = c.get(o.url("/"), "Range: bytes=0-9", "If-Range: " + odd)
                self.assertIn((r.status, r.body), ((200, pattern(1000)), (206, pattern(10))))
                self.assertTrue(r.status == 200 or not odd, odd[:40])
            for form in self.forms(at_s):
                self.assertEqual(c.get(o.url("/"), "If-Modified-Since: " + form).status, 304, form)
                r = c.get(o.url("/"), "Range: bytes=0-9", "If-Range: " + form)
                self.assertEqual((r.status, r.body), (206, pattern(10)), form)
        self.assertEqual(len(o.requests), 1)

    def test_an_odd_expires_means_expired_and_the_three_forms_are_understood(self):
        """RFC 9111 5.3."""
        p = self.cuttle()
        for expires, hit in [(odd, False) for odd in self.ODD] + [
                (form, True) for form in self.forms(time.time() + 3600)] + [
                ("Sat, 06 Nov 2106 08:49:37 GMT", True)]:
            o = self.origin(reply("200 OK", "Expires: " + expires, body=b"x"))
            self.get(p, o.url("/"))
            self.assertEqual(self.get(p, o.url("/")).hit, hit, expires[:40])

    def test_another_odd_date_counts_as_absent(self):
        p = self.cuttle()
        for odd in self.ODD:
            o = self.origin(reply("200 OK", "Cache-Control: max-age=60", "Date: " + odd,
                                  "Last-Modified: " + odd, body=b"x", date=False))
            self.get(p, o.url("/"))
            r = self.get(p, o.url("/"))
            year_known = "1969" in odd      # a date, though an old one: it may well be stale
            self.assertTrue(r.hit or year_known, odd[:40])


CLOCK_C = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long *step_s;

__attribute__((constructor)) static void
clock_open(void)
{
    int fd = open(getenv("CLOCK_STEP"), O_RDONLY);

    step_s = mmap(NULL, sizeof *step_s, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
}

int
clock_gettime(clockid_t id, struct timespec *t)
{
    int result = (int)syscall(SYS_clock_gettime, id, t);

    if (step_s && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        t->tv_sec += *step_s;
    return result;
}

int
gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    tv->tv_sec = t.tv_sec;
    tv->tv_usec = t.tv_nsec / 1000;
    return 0;
}

time_t
time(time_t *at)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    if (at)
        *at = t.tv_sec;
    return t.tv_sec;
}
"""


@unittest.skipUnless(shutil.which("cc"), "no compiler for a clock that can be set")
@unittest.skipIf(os.environ.get("CUTTLE_SANITIZE") == "thread", "it wants the clock for itself")
class Clock(Scenario):
    """The wall clock is set while the proxy runs (RFC 9111 4.2.3)."""
    DAY_S = 86400

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="cuttle-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.library = os.path.join(folder, "clock.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-x", "c", "-o", cls.library, "-"],
                       input=CLOCK_C.encode(), check=True)

    def proxy(self, *conf):
        step = os.path.join(self.temporary_folder(), "step")
        with open(step, "wb") as f:
            f.write(bytes(8))
        with open(step, "r+b") as f:
            self.step = mmap.mmap(f.fileno(), 8)
        self.addCleanup(self.step.close)
        options = [o for o in (os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0") if o]
        return self.cuttle(*conf, environment={"LD_PRELOAD": self.library, "CLOCK_STEP": step,
                                               "ASAN_OPTIONS": ":".join(options)})

    def set_clock(self, seconds):
        self.step[:] = struct.pack("q", seconds)

    def test_the_proxy_sees_the_clock_that_is_set(self):
        """Else the tests below would prove nothing."""
        o = self.origin(reply(body=b"x"))
        p = self.proxy()
        self.set_clock(-2 * self.DAY_S)
        self.get(p, o.url("/"))
        p.stop()
        self.assertLess(abs(p.access_log()[0].time + 2 * self.DAY_S - time.time()), 100)

    def test_what_is_stored_ages_by_the_time_that_passes(self):
        o = self.origin(storable(b"x"))
        p = self.proxy()
        self.get(p, o.url("/"))
        for step in (-self.DAY_S, self.DAY_S, -self.DAY_S, 0):
            self.set_clock(step)
            time.sleep(0.1)
            r = self.get(p, o.url("/"))
            self.assertEqual(r.body, b"x")
            self.assertTrue(0 <= int(r.field("Age") or 0) < 60)
            self.assertTrue(r.hit or step > 0, "after a step back it is as fresh as before")

    def test_a_clock_that_is_behind_or_ahead_makes_no_negative_ages(self):
        """A date in the future counts as now; one long ago as stale, not as fresh for ever."""
        for step, hits in ((-self.DAY_S, True), (2 * self.DAY_S, False)):
            o = self.origin(lambda q: storable(b"x", seconds=3600))
            p = self.proxy()
            self.set_clock(step)
            time.sleep(0.1)
            self.get(p, o.url("/"))
            r = self.get(p, o.url("/"))
            self.assertEqual((r.body, r.hit), (b"x", hits), step)
            self.assertGreaterEqual(int(r.field("Age") or 0), 0)

    def test_timeouts_neither_fire_at_a_step_nor_wait_for_the_clock(self):
        o = self.origin({"/x": reply(body=b"x"), "/silent": harness.SILENT})
        p = self.proxy("client_idle_pconn_timeout 2 seconds", "read_timeout 2 seconds")
        idle, waits = self.client(p), self.client(p)
        idle.get(o.url("/x"))
        waits.request("GET", o.url("/silent"))
        for step in (2 * self.DAY_S, -self.DAY_S):
            self.set_clock(step)
            idle.expect_silence(0.4)
            waits.expect_silence(0.1)
        idle.expect_close()
        self.assertEqual(waits.read_response().status, 504)


if __name__ == "__main__":
    harness.main()
