"""Ranges and parts: cut from what is stored, kept, joined, completed (RFC 9110 14, RFC 9111 3.3)."""
import re
import threading
import time

import harness
from harness import CLOSE, Client, Scenario, pattern, reply, storable, wait_for

BIG = "maximum_object_size_in_memory 64 MB\nmaximum_object_size 64 MB"


def span_of(q, length):
    """First and last byte of a request's single Range; None without one."""
    one = re.fullmatch(r"bytes=(\d*)-(\d*)", q.field("Range") or "")
    if not one:
        return None
    first, last = one.groups()
    if not first:
        return max(0, length - int(last)), length - 1
    return int(first), min(int(last or length - 1), length - 1)


def file_server(body, *fields, tag='"a"'):
    """An origin that serves ranges, and looks at If-Range."""
    def answer(q):
        at = span_of(q, len(body))
        own = ("Cache-Control: max-age=60", "Accept-Ranges: bytes") + fields
        own += ("ETag: " + tag,) if tag else ()
        if not at or (q.field("If-Range") and q.field("If-Range") != tag):
            return reply("200 OK", *own, body=body)
        if at[0] >= len(body):
            return reply("416 Range Not Satisfiable", "Content-Range: bytes */%d" % len(body))
        return reply("206 Partial Content", *own, "Content-Range: bytes %d-%d/%d" % (
            at[0], at[1], len(body)), body=body[at[0]:at[1] + 1])
    return answer


class Ranges(Scenario):
    """RFC 9110 14 from the store."""
    BODY = pattern(5 << 20)

    def setUp(self):
        self.o = self.origin(storable(self.BODY, 'ETag: "a"', "Content-Type: text/plain"))
        self.p = self.cuttle(BIG)
        self.get(self.p, self.o.url("/"))

    def ask(self, value, *fields):
        return self.get(self.p, self.o.url("/"), "Range: " + value, *fields)

    def test_single_ranges_are_cut_exactly(self):
        end = len(self.BODY)
        for value, first, last in (("bytes=0-0", 0, 0), ("bytes=-1", end - 1, end - 1),
                                   ("bytes=1048575-1048577", 1048575, 1048577),
                                   ("bytes=%d-" % (end - 100), end - 100, end - 1),
                                   ("bytes=-100", end - 100, end - 1),
                                   ("bytes=0-99999999", 0, end - 1)):
            r = self.ask(value)
            self.assertEqual(r.status, 206, value)
            self.assertEqual(r.field("Content-Range"), "bytes %d-%d/%d" % (first, last, end))
            self.assertEqual(r.body, self.BODY[first:last + 1], value)
        self.assertEqual(len(self.o.requests), 1)

    def test_a_range_behind_the_end_is_416(self):
        r = self.ask("bytes=%d-" % len(self.BODY))
        self.assertEqual((r.status, r.field("Content-Range")),
                         (416, "bytes */%d" % len(self.BODY)))

    def test_odd_ranges_do_no_harm(self):
        """RFC 9110 14.2: what is not understood is ignored."""
        for value in ("bytes=", "bytes=-", "bytes=5-2", "lines=1-2", "bytes=a-b", "bytes=0-0,",
                      "bytes=99999999999999999999-", "bytes=-0", "bytes=0-1,3-4,99999999-",
                      "bytes=" + ",".join("%d-%d" % (i, i) for i in range(0, 20000, 2))):
            self.assertIn(self.ask(value).status, (200, 206, 416, 431), value[:40])

    def parts(self, r):
        """The Content-Range and the bytes of each part (RFC 2046 5.1.1)."""
        mark = re.fullmatch(r'multipart/byteranges; boundary=(\S+)', r.field("Content-Type"))
        pieces = (b"\r\n" + r.body).split(b"\r\n--" + mark.group(1).encode())
        self.assertEqual((pieces[0], pieces[-1]), (b"", b"--\r\n"))
        heads = [p.split(b"\r\n\r\n", 1) for p in pieces[1:-1]]
        for head, _ in heads:
            self.assertIn(b"\r\nContent-Type: text/plain", head)
        return [(re.search(rb"Content-Range: bytes (\S+)", head).group(1).decode(), body)
                for head, body in heads]

    def test_several_ranges_are_one_multipart_body(self):
        """RFC 9110 14.6; in the order asked for, and with the fields of the whole."""
        end = len(self.BODY)
        r = self.ask("bytes=200-299,0-99,-50")
        self.assertEqual((r.status, r.field("ETag"), r.field("Content-Range")), (206, '"a"', None))
        self.assertEqual(self.parts(r), [
            ("200-299/%d" % end, self.BODY[200:300]), ("0-99/%d" % end, self.BODY[:100]),
            ("%d-%d/%d" % (end - 50, end - 1, end), self.BODY[-50:])])

    def test_of_several_ranges_one_that_can_be_had_is_a_plain_206(self):
        """RFC 9110 15.3.7.2: a single part is never multipart."""
        r = self.ask("bytes=99999999-,0-9")
        self.assertEqual((r.status, r.body), (206, self.BODY[:10]))
        self.assertEqual(r.field("Content-Range"), "bytes 0-9/%d" % len(self.BODY))

    def test_ranges_that_add_up_to_more_than_the_whole_get_the_whole(self):
        """RFC 9110 17.15: nobody makes us send everything many times."""
        r = self.ask("bytes=" + ",".join(["0-"] * 10))
        self.assertEqual((r.status, r.body), (200, self.BODY))

    def test_many_small_ranges_get_the_whole(self):
        r = self.ask("bytes=" + ",".join("%d-%d" % (i, i) for i in range(0, 100, 2)))
        self.assertEqual((r.status, r.body), (200, self.BODY))

    def test_if_range_decides(self):
        """RFC 9110 13.1.5."""
        self.assertEqual(self.ask("bytes=0-9", 'If-Range: "a"').status, 206)
        self.assertEqual(self.ask("bytes=0-9", 'If-Range: "b"').status, 200)
        self.assertEqual(self.ask("bytes=0-9", 'If-Range: W/"a"').status, 200)

    def test_a_content_range_in_a_200_means_nothing(self):
        """RFC 9110 14.4."""
        o = self.origin(storable(pattern(1000), "Content-Range: bytes 0-9/1000"))
        for _ in range(2):
            r = self.get(self.p, o.url("/"))
            self.assertEqual((r.status, r.body), (200, pattern(1000)))
        r = self.get(self.p, o.url("/"), "Range: bytes=500-509")
        self.assertEqual((r.hit, r.body), (True, pattern(1000)[500:510]))
        self.assertEqual(r.all("Content-Range"), ["bytes 500-509/1000"])

    def test_a_200_for_a_range_is_whole(self):
        """RFC 9110 14.2: an origin may ignore the range."""
        o = self.origin(storable(pattern(1000)))
        r = self.get(self.p, o.url("/"), "Range: bytes=100-199")
        self.assertEqual(r.body, pattern(1000) if r.status == 200 else pattern(1000)[100:200])
        self.assertEqual(self.get(self.p, o.url("/")).body, pattern(1000))


class Parts(Scenario):
    """RFC 9111 3.3 and 3.4: a 206 is kept, cut and joined."""
    BODY = pattern(100_000)

    def setUp(self):
        self.o = self.origin(file_server(self.BODY))
        self.p = self.cuttle()

    def ask(self, value, *fields, o=None):
        fields += ("Range: " + value,) if value else ()
        return self.get(self.p, (o or self.o).url("/"), *fields)

    def check(self, r, first, last, hit):
        self.assertEqual((r.status, r.hit), (206, hit), r.fields)
        self.assertEqual(r.all("Content-Range"), ["bytes %d-%d/%d" % (first, last, len(self.BODY))])
        self.assertEqual(r.body, self.BODY[first:last + 1])

    def test_a_stored_part_answers_the_same_and_smaller_ranges(self):
        self.check(self.ask("bytes=1000-1999"), 1000, 1999, False)
        self.check(self.ask("bytes=1000-1999"), 1000, 1999, True)
        self.check(self.ask("bytes=1500-1500"), 1500, 1500, True)
        self.assertEqual(len(self.o.requests), 1)

    def test_a_suffix_and_an_open_end_are_found_in_a_part(self):
        self.check(self.ask("bytes=-5000"), 95_000, 99_999, False)
        self.check(self.ask("bytes=-100"), 99_900, 99_999, True)
        self.check(self.ask("bytes=99000-"), 99_000, 99_999, True)

    def test_a_range_that_sticks_out_of_the_part_goes_to_the_origin(self):
        self.ask("bytes=1000-1999")
        self.check(self.ask("bytes=1990-2010"), 1990, 2010, False)
        self.check(self.ask("bytes=0-10"), 0, 10, False)

    def test_parts_that_touch_become_one(self):
        self.ask("bytes=1000-1999")
        self.check(self.ask("bytes=1990-2999"), 1990, 2999, False)
        self.check(self.ask("bytes=3000-3999"), 3000, 3999, False)
        self.check(self.ask("bytes=1000-3999"), 1000, 3999, True)

    def test_parts_that_make_up_the_whole_answer_for_it(self):
        self.ask("bytes=0-49999")
        self.ask("bytes=50000-")
        r = self.ask(None)
        self.assertEqual((r.status, r.hit, r.body, r.field("Content-Range")),
                         (200, True, self.BODY, None))
        self.assertEqual(r.field("Content-Length"), "100000")

    def test_parts_of_different_versions_are_never_joined(self):
        """RFC 9110 15.3.7.3."""
        new = pattern(100_000, 9)
        o = self.origin([file_server(self.BODY, tag='"a"'), file_server(new, tag='"b"'),
                         file_server(new, tag='"b"')])
        self.ask("bytes=0-999", o=o)
        self.ask("bytes=1000-1999", o=o)
        r = self.ask("bytes=0-1999", o=o)
        self.assertEqual((r.hit, r.body), (False, new[:2000]))

    def test_without_a_strong_validator_parts_are_kept_but_not_joined(self):
        for tag in ('W/"a"', None):
            o = self.origin(file_server(self.BODY, tag=tag))
            self.ask("bytes=0-999", o=o)
            self.check(self.ask("bytes=0-999", o=o), 0, 999, True)
            self.ask("bytes=1000-1999", o=o)
            self.check(self.ask("bytes=0-1999", o=o), 0, 1999, False)

    def test_a_part_is_never_served_as_the_whole(self):
        self.ask("bytes=0-9")
        r = self.ask(None)
        self.assertEqual((r.status, r.body), (200, self.BODY))

    def test_a_whole_is_completed_by_asking_for_the_rest_only(self):
        self.ask("bytes=0-59999")
        r = self.ask(None)
        self.assertEqual((r.status, r.body, r.field("Content-Range")), (200, self.BODY, None))
        self.assertIn("fwd=partial", r.cache_status)
        self.assertEqual(self.o.last().field("Range"), "bytes=60000-")
        self.assertEqual(self.o.last().field("If-Range"), '"a"')
        self.assertTrue(self.ask(None).hit)

    def test_a_whole_that_has_changed_is_not_glued_to_the_old_beginning(self):
        new = pattern(120_000, 5)
        o = self.origin([file_server(self.BODY, tag='"a"'), file_server(new, tag='"b"')])
        self.ask("bytes=0-59999", o=o)
        r = self.ask(None, o=o)
        self.assertEqual((r.status, r.body), (200, new))
        r = self.ask(None, o=o)
        self.assertEqual((r.hit, r.body), (True, new))

    def test_an_origin_that_joins_what_does_not_fit_is_asked_again(self):
        """One that ignores If-Range, or that has become shorter, does no harm."""
        new = pattern(100_000, 5)
        liar = reply("206 Partial Content", 'ETag: "b"', "Cache-Control: max-age=60",
                     "Content-Range: bytes 60000-99999/100000", body=new[60_000:])
        gone = reply("416 Range Not Satisfiable", "Content-Range: bytes */10")
        short = reply("206 Partial Content", 'ETag: "a"', "Cache-Control: max-age=60",
                      "Content-Range: bytes 60000-69999/100000", body=new[60_000:70_000])
        for odd in (liar, gone, short):
            o = self.origin([file_server(self.BODY, tag='"a"'), odd, storable(new, 'ETag: "b"')])
            self.ask("bytes=0-59999", o=o)
            r = self.ask(None, o=o)
            self.assertEqual((r.status, r.body == new), (200, True))
            self.assertEqual(o.last().field("Range"), None)

    def test_a_range_of_whose_place_is_in_doubt_is_only_repeated(self):
        """Content-Range and length disagree: nothing is cut, the same request gets the same."""
        o = self.origin(reply("206 Partial Content", "Content-Range: bytes 4-9/10",
                              "Cache-Control: max-age=60", body=b"01234"))
        first, again = self.ask("bytes=-5", o=o), self.ask("bytes=-5", o=o)
        self.assertEqual((again.hit, again.status, again.body), (True, 206, b"01234"))
        self.assertEqual(again.field("Content-Range"), first.field("Content-Range"))
        self.assertFalse(self.ask("bytes=6-8", o=o).hit)
        self.assertFalse(self.ask("bytes=-1", o=o).hit)

    def test_a_part_that_may_not_be_stored_is_not(self):
        for fields in (("Cache-Control: no-store",), ("Cache-Control: private",), ("Vary: *",)):
            o = self.origin(reply("206 Partial Content", "Content-Range: bytes 0-9/100",
                                  *fields, body=pattern(10)))
            self.ask("bytes=0-9", o=o)
            self.assertFalse(self.ask("bytes=0-9", o=o).hit, fields)

    def test_a_part_runs_out_and_honours_the_clients_wishes(self):
        self.ask("bytes=0-9")
        self.assertFalse(self.ask("bytes=0-9", "Cache-Control: no-cache").hit)
        self.assertTrue(self.ask("bytes=0-9", 'If-Range: "a"').hit)
        self.assertFalse(self.ask("bytes=0-9", 'If-Range: "b"').hit)

    def test_parts_are_kept_apart_by_variant(self):
        """RFC 9111 4.1."""
        def answer(q):
            return file_server(self.BODY if q.field("X") == "1" else pattern(100_000, 7),
                               "Vary: X")(q)
        o = self.origin(answer)
        self.ask("bytes=0-9", "X: 1", o=o)
        self.assertFalse(self.ask("bytes=0-9", "X: 2", o=o).hit)
        self.check(self.ask("bytes=0-9", "X: 1", o=o), 0, 9, True)

    def test_an_unsafe_method_takes_the_parts_along(self):
        o = self.origin(lambda q: file_server(self.BODY)(q) if q.method == "GET" else reply())
        self.ask("bytes=0-9", o=o)
        self.get(self.p, o.url("/"), method="POST", body=b"x")
        self.assertFalse(self.ask("bytes=0-9", o=o).hit)

    def test_a_part_cut_short_is_kept_as_far_as_it_came(self):
        cut = [("HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nCache-Control: max-age=60\r\n"
                "Content-Range: bytes 100-199/100000\r\nContent-Length: 100\r\n\r\n").encode()
               + self.BODY[100:150], CLOSE]
        o = self.origin([tuple(cut), file_server(self.BODY)])
        with self.assertRaises(harness.Incomplete):
            self.ask("bytes=100-199", o=o)
        self.check(self.ask("bytes=100-149", o=o), 100, 149, True)
        self.check(self.ask("bytes=100-199", o=o), 100, 199, False)


class Offset(Scenario):
    """range_offset_limit: the whole is fetched, the range is cut from it as it comes."""
    BODY = pattern(300_000)

    def proxy(self, *lines):
        return self.cuttle(BIG, *lines)

    def test_without_it_the_range_is_asked_for_as_it_is(self):
        o = self.origin(file_server(self.BODY))
        self.get(self.proxy(), o.url("/"), "Range: bytes=5-9")
        self.assertEqual(o.last().field("Range"), "bytes=5-9")

    def test_under_the_limit_the_whole_is_fetched_and_kept(self):
        o = self.origin(file_server(self.BODY))
        p = self.proxy("range_offset_limit 100 KB")
        r = self.get(p, o.url("/"), "Range: bytes=1000-1999")
        self.assertEqual((r.status, r.body), (206, self.BODY[1000:2000]))
        self.assertEqual(r.field("Content-Range"), "bytes 1000-1999/300000")
        self.assertEqual(o.last().field("Range"), None)
        whole = self.get(p, o.url("/"))
        self.assertEqual((whole.hit, whole.body == self.BODY), (True, True))

    def test_behind_the_limit_the_range_is_asked_for_as_it_is(self):
        o = self.origin(file_server(self.BODY))
        p = self.proxy("range_offset_limit 100 KB")
        for i, value in enumerate(("bytes=200000-200009", "bytes=0-9,200000-200009", "bytes=-5")):
            self.get(p, o.url("/%d" % i), "Range: " + value)
            self.assertEqual(o.last().field("Range"), value)

    def test_none_means_however_far(self):
        o = self.origin(file_server(self.BODY))
        p = self.proxy("range_offset_limit none")
        r = self.get(p, o.url("/"), "Range: bytes=-100")
        self.assertEqual((r.status, r.body), (206, self.BODY[-100:]))
        self.assertEqual(o.last().field("Range"), None)

    def test_it_may_hold_for_some_only(self):
        o = self.origin(file_server(self.BODY))
        p = self.proxy("acl updates urlpath_regex ^/updates/", "range_offset_limit none updates")
        self.get(p, o.url("/updates/x"), "Range: bytes=10-19")
        self.assertEqual(o.last().field("Range"), None)
        self.get(p, o.url("/x"), "Range: bytes=10-19")
        self.assertEqual(o.last().field("Range"), "bytes=10-19")

    def test_the_range_is_there_before_the_whole_is(self):
        go = threading.Event()
        o = self.origin((reply("200 OK", "Cache-Control: max-age=60", "Content-Length: 300000",
                               length=False), self.BODY[:5000], go, self.BODY[5000:]))
        p = self.proxy("range_offset_limit none")
        r = self.get(p, o.url("/"), "Range: bytes=1000-1999")
        self.assertEqual((r.status, r.body), (206, self.BODY[1000:2000]))
        go.set()
        wait_for(lambda: self.get(p, o.url("/")).hit, "the whole to be stored")
        self.assertEqual(len(o.requests), 1)

    def test_what_may_not_be_stored_is_cut_all_the_same(self):
        o = self.origin(reply("200 OK", "Cache-Control: no-store", body=self.BODY))
        p = self.proxy("range_offset_limit none")
        r = self.get(p, o.url("/"), "Range: bytes=150000-150009")
        self.assertEqual((r.status, r.body), (206, self.BODY[150_000:150_010]))

    def test_several_ranges_of_what_just_comes_in(self):
        o = self.origin(file_server(self.BODY))
        p = self.proxy("range_offset_limit none")
        r = self.get(p, o.url("/"), "Range: bytes=10-19,250000-250009")
        self.assertEqual(r.status, 206)
        self.assertIn(self.BODY[250_000:250_010], r.body)

    def test_a_range_behind_the_end_of_what_comes_in_is_416(self):
        o = self.origin(storable(self.BODY))
        p = self.proxy("range_offset_limit none")
        r = self.get(p, o.url("/"), "Range: bytes=300000-")
        self.assertEqual((r.status, r.field("Content-Range")), (416, "bytes */300000"))

    def test_if_range_is_judged_here_then(self):
        """RFC 9110 13.1.5."""
        for tag, status in (('"a"', 206), ('"b"', 200)):
            o = self.origin(file_server(self.BODY))
            p = self.proxy("range_offset_limit none")
            r = self.get(p, o.url("/"), "Range: bytes=0-9", "If-Range: " + tag)
            self.assertEqual(r.status, status)

    def test_waiting_ranges_share_the_fetch(self):
        def slow(q):
            time.sleep(0.5)
            return file_server(self.BODY)(q)
        o = self.origin(slow)
        p = self.proxy("range_offset_limit none")
        got = harness.together(10, lambda i: self.get(
            p, o.url("/"), "Range: bytes=%d-%d" % (i * 10, i * 10 + 9)).body)
        self.assertEqual(sorted(got), sorted(self.BODY[i * 10:i * 10 + 10] for i in range(10)))
        self.assertEqual(len(o.requests), 1)


class Aborted(Scenario):
    """quick_abort_*: what has come of it is not thrown away."""
    BODY = pattern(400_000)

    def broken_off(self, p, *fields, tag='ETag: "a"', have=100_000):
        """A client leaves in the middle of a download that is not worth finishing."""
        def answer(q):
            if len(o.requests) > 1:
                return file_server(self.BODY)(q)
            return (reply("200 OK", "Cache-Control: max-age=60", tag, *fields,
                          "Content-Length: %d" % len(self.BODY), length=False),
                    self.BODY[:have], harness.SILENT)
        o = self.origin(answer)
        with Client(p.address) as c:
            c.request("GET", o.url("/"))
            c.read_until(self.BODY[have - 100:have])
            c.reset()
        p.logged("/")
        return o

    def test_the_rest_of_an_aborted_download_is_asked_for_later(self):
        p = self.cuttle("quick_abort_min 0 KB", "quick_abort_max 0 KB")
        o = self.broken_off(p)
        r = self.get(p, o.url("/"))
        self.assertEqual((r.status, r.body == self.BODY), (200, True))
        self.assertEqual(o.last().field("Range"), "bytes=100000-")
        self.assertEqual(o.last().field("If-Range"), '"a"')
        self.assertTrue(self.get(p, o.url("/")).hit)

    def test_a_range_of_what_has_come_is_answered_from_it(self):
        p = self.cuttle("quick_abort_min 0 KB", "quick_abort_max 0 KB")
        o = self.broken_off(p)
        r = self.get(p, o.url("/"), "Range: bytes=50000-50009")
        self.assertEqual((r.hit, r.body), (True, self.BODY[50_000:50_010]))

    def test_a_weak_validator_is_no_ground_to_go_on_from(self):
        """RFC 9110 13.1.5."""
        p = self.cuttle("quick_abort_min 0 KB", "quick_abort_max 0 KB")
        o = self.broken_off(p, tag='ETag: W/"a"')
        self.assertEqual(self.get(p, o.url("/")).body, self.BODY)
        self.assertEqual(o.last().field("Range"), None)

    def test_an_old_last_modified_is_strong_enough(self):
        p = self.cuttle("quick_abort_min 0 KB", "quick_abort_max 0 KB")
        o = self.broken_off(p, tag="Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT")
        self.get(p, o.url("/"))
        self.assertEqual(o.last().field("If-Range"), "Sun, 06 Nov 1994 08:49:37 GMT")

    def test_what_an_origin_cut_short_is_completed_too(self):
        p = self.cuttle()
        o = self.origin([(reply("200 OK", "Cache-Control: max-age=60", 'ETag: "a"',
                                "Content-Length: 400000", length=False), self.BODY[:1000], CLOSE),
                         file_server(self.BODY)])
        with self.assertRaises(harness.Incomplete):
            self.get(p, o.url("/"))
        self.assertEqual(self.get(p, o.url("/")).body, self.BODY)
        self.assertEqual(o.last().field("Range"), "bytes=1000-")


if __name__ == "__main__":
    harness.main()
