"""Who outlives whom: clients that leave, origins that never end, halves of connections."""
import threading
import time

import harness
from harness import Client, Scenario, chunked, pattern, reply, storable, wait_for


class Owners(Scenario):
    """A fetch is started by one client and may go on for others."""

    def streams(self, first, then):
        """A storable chunked answer that starts, and goes on when told to."""
        go = threading.Event()

        def answer(q):
            return (reply("200 OK", "Cache-Control: max-age=60", "Transfer-Encoding: chunked"),
                    harness.chunks(first, last=False), go, then)
        return self.origin(answer), go

    def two_readers(self, p, url):
        """The first has long fields, so that its memory is a block of its own."""
        one, two = self.client(p), self.client(p)
        one.request("GET", url, "X-Long: " + "l" * 8000)
        one.read_until("start")
        two.request("GET", url)
        two.read_until("start")
        return one, two

    def test_a_bad_chunk_after_the_first_client_has_left(self):
        o, go = self.streams("start", b"not a size\r\n")
        p = self.cuttle(arguments=("-d", "5"))
        one, two = self.two_readers(p, o.url("/"))
        one.reset()
        p.logged("/")
        self.get(p, o.url("/", host="127.0.0.2"))  # takes over the memory of the first
        go.set()
        with self.assertRaises(harness.ProtocolError):
            two.read_until("0\r\n\r\n")
        self.assertIn("%s: The body" % o.authority, p.cache_log())

    def test_when_the_last_reader_has_left_the_origin_is_not_read_on(self):
        """An endless answer must not be fetched for nobody."""
        sent, gone = [0], threading.Event()

        def forever(c):
            try:
                while not c.origin.closing.is_set():
                    c.send(harness.chunks(pattern(1000), last=False))
                    sent[0] += 1
                    time.sleep(0.01)
            finally:
                gone.set()
        o, go = self.streams("start", forever)
        p = self.cuttle()
        one, two = self.two_readers(p, o.url("/"))
        go.set()
        one.reset()
        p.logged("/")
        two.read_until(pattern(1000))
        two.reset()
        p.logged("/", 2)
        self.assertTrue(gone.wait(5), "the origin is still read")


class Origins(Scenario):
    def test_interim_responses_without_end_are_a_bad_answer(self):
        """RFC 9110 section 15.2 allows several; memory for them is bounded all the same."""
        def flood(c):
            c.read_request()
            while True:
                c.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n" * 100)
        o = self.origin(raw=flood)
        p = self.cuttle()
        with Client(p.address) as c:
            c.request("GET", o.url("/"))
            r = c.read_response()
        self.assertEqual(r.status, 502)
        self.assertGreater(len(r.interim), 3)
        self.assertLess(len(r.interim), 200)

    def test_a_few_interim_responses_reach_the_client(self):
        hint = b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n"
        o = self.origin((hint * 5, reply(body=b"x")))
        p = self.cuttle()
        with Client(p.address) as c:
            r = c.get(o.url("/"))
        self.assertEqual((r.body, [i.status for i in r.interim]), (b"x", [103] * 5))


class Clients(Scenario):
    def test_a_request_that_got_nothing_is_logged_with_nothing(self):
        """And not with what the request before it on the same connection got."""
        o = self.origin({"/one": reply(body=pattern(50_000)), "/two": harness.SILENT})
        p = self.cuttle()
        with Client(p.address) as c:
            c.get(o.url("/one"))
            c.request("GET", o.url("/two"))
            o.wait_requests(2)
            c.reset()
        self.assertEqual(p.logged("/two")[0].bytes, 0)

    def test_the_answer_to_a_bad_head_survives_what_follows_it(self):
        """Closing with bytes unread would be a reset, which eats the answer (RFC 9112 9.6)."""
        p = self.cuttle()
        for _ in range(5):
            with Client(p.address) as c:
                c.send("GET http://x/ HTTP/1.1\r\nHost: x\r\nbad line\r\n\r\n" + "b" * 200_000)
                time.sleep(0.1)
                self.assertEqual(c.read_response().status, 400)

    def test_a_part_of_a_next_request_does_not_hold_up_the_end(self):
        o = self.origin(storable(b"x"))
        p = self.cuttle("shutdown_lifetime 20 seconds")
        c = self.client(p)
        c.send("GET %s HTTP/1.1\r\nHost: x\r\n\r\nGET http" % o.url("/"))
        self.assertEqual(c.read_response().body, b"x")
        self.assertLess(p.stop(), 5)


if __name__ == "__main__":
    harness.main()
