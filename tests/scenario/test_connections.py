"""Connections on both sides, as they are in life: pipelines, kept ones that die, clients that leave
or say nothing, and many that read slowly."""
import contextlib
import socket
import threading
import time

import harness
from harness import (CLOSE, MEMORY_FACTOR, RESET, SILENT, Client, Incomplete, Scenario, pattern,
                     reply, storable, together, wait_for)

BIG = "maximum_object_size 64 MB\nmaximum_object_size_in_memory 64 MB"


def gets(o, *paths):
    """Requests as they stand in one write."""
    return "".join("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (o.url(path), o.authority)
                   for path in paths)


class Pipelines(Scenario):
    """RFC 9112 9.3.2, 9.6."""

    def body(self, i):
        return pattern((0, 300_000, 10, 1_000_000, 100_000, 1)[i % 6], i)

    def objects(self):
        """/h are stored, /m are not, /m0 takes its time."""
        return self.origin(lambda q: (0.4 if q.target == "/m0" else 0.0, (
            storable if q.target[1] == "h" else reply)(body=self.body(int(q.target[2:])))))

    def test_hits_and_misses_in_one_write_keep_their_order(self):
        o = self.objects()
        p = self.cuttle(BIG)
        for i in range(1, 10, 2):
            self.get(p, o.url("/h%d" % i))
        with Client(p.address) as c:
            c.send(gets(o, *("/%s%d" % ("mh"[i % 2], i) for i in range(10))))
            for i in range(10):
                r = c.read_response()
                self.assertEqual((r.hit, r.body), (i % 2 == 1, self.body(i)), i)
            c.expect_silence(0.05)

    def assert_ended_without_reset(self, c):
        """The harness takes a reset for an end; here the difference counts."""
        self.assertEqual(c.pending, b"")
        self.assertEqual(c.sock.recv(100), b"")

    def test_an_early_end_is_told_and_eats_nothing(self):
        """What is behind the last request answered must not turn the close into a reset."""
        o = self.objects()
        p = self.cuttle(BIG)
        with Client(p.address) as c:
            c.send(gets(o, "/m1") + "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                   % o.url("/m3") + gets(o, *["/m5"] * 2000))
            self.assertEqual(c.read_response().body, self.body(1))
            time.sleep(0.2)
            r = c.read_response()
            self.assertIn("close", r.tokens("Connection"))
            self.assertEqual(r.body, self.body(3))
            self.assert_ended_without_reset(c)
        self.assertNotIn("/m5", [q.target for q in o.requests])

    def test_a_response_that_breaks_off_ends_the_pipeline_there(self):
        """Nothing of the next response may be taken for the rest of this one."""
        o = self.origin(lambda q: (reply("200 OK", "Content-Length: 1000"), b"x" * 500, 0.1, RESET)
                        if q.target == "/1" else reply(body=b"whole"))
        p = self.cuttle()
        with Client(p.address) as c:
            c.send(gets(o, "/0", "/1", "/2"))
            self.assertEqual(c.read_response().body, b"whole")
            with self.assertRaises(Incomplete) as told:
                c.read_response()
            self.assertEqual(told.exception.partial, b"x" * 500)


class Kept(Scenario):
    """A kept origin connection may be dead (RFC 9110 9.2.2, RFC 9112 9.3.1)."""

    def setUp(self):
        self.p = self.cuttle(workers=1)

    def second(self, *steps):
        """An origin that answers the first request and plays steps on all that follow."""
        return self.origin(lambda q: reply(body=b"first") if q.target == "/1" else steps)

    def ask(self, o, method="GET", body=None):
        """The second request's response, and how often it came to the origin."""
        with Client(self.p.address) as c:
            self.assertEqual(c.get(o.url("/1")).body, b"first")
            r = c.get(o.url("/2"), method=method, body=body)
        return r, len([q for q in o.requests if q.target == "/2"])

    def test_idle_connections_that_close_while_we_ask_are_no_error(self):
        def answer(c):
            while c.read_request():
                c.send(reply(body=b"x"))
                c.sock.settimeout(0.1)
        o = self.origin(raw=answer)
        with Client(self.p.address) as c:
            for i in range(12):
                self.assertEqual(c.get(o.url("/%d" % i)).status, 200)
                time.sleep(0.095 + i % 4 * 0.003)
        self.assertGreater(o.connections, 1)

    def test_a_new_connection_that_dies_too_is_the_end(self):
        for end in (CLOSE, RESET):
            r, n = self.ask(self.second(end))
            self.assertEqual((r.status, n), (502, 2), end)

    def test_a_first_connection_that_dies_is_not_tried_again(self):
        o = self.origin(CLOSE)
        self.assertEqual(self.get(self.p, o.url("/")).status, 502)
        self.assertEqual(len(o.requests), 1)

    def test_after_one_byte_of_an_answer_nothing_is_sent_again(self):
        for part in ("H", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n"):
            r, n = self.ask(self.second(part, 0.1, CLOSE))
            self.assertEqual((r.status, n), (502, 1), part)

    def test_what_may_have_been_done_is_never_done_twice(self):
        for method, body in (("POST", b"pay"), ("POST", b""), ("POST", None), ("PATCH", b"x"),
                             ("FROB", None)):
            r, n = self.ask(self.second(CLOSE), method, body)
            self.assertEqual((r.status, n), (502, 1), method)


class Leaving(Scenario):
    """The client goes in the middle (RFC 9111 3.3)."""
    SIZE = 5 << 20
    BODY = pattern(SIZE)

    def started(self, *conf, end=None):
        """A download of which a part has come when its client resets: (proxy, origin, go on)."""
        go, gone, whole = threading.Event(), threading.Event(), storable(self.BODY)

        def first(q, c):
            c.send(whole[:2 << 20])
            go.wait(harness.TIMEOUT_S)
            try:
                c.send(whole[2 << 20:4 << 20])
                if end:
                    c.play(end)
                else:
                    c.send(whole[4 << 20:])
            except OSError:
                gone.set()
                raise
        o = self.origin([first, whole])
        p = self.cuttle(BIG, *conf)
        with Client(p.address) as c:
            c.request("GET", o.url("/"))
            c.read_exactly(1 << 20)
            c.reset()
        p.logged("/")
        return p, o, go, gone

    def test_a_fetch_for_nobody_is_given_up_and_stores_nothing(self):
        p, o, go, gone = self.started()
        go.set()
        self.assertTrue(gone.wait(harness.TIMEOUT_S), "the origin is still read")
        for hit in (False, True):
            r = self.get(p, o.url("/"))
            self.assertEqual((r.hit, r.body == self.BODY), (hit, True))
        self.assertEqual(len(o.requests), 2)

    def test_a_fetch_may_be_told_to_go_on_for_those_who_come_later(self):
        p, o, go, _ = self.started("quick_abort_min -1 KB")
        go.set()
        for _ in range(2):
            self.assertTrue(self.get(p, o.url("/")).body == self.BODY)
        self.assertEqual(len(o.requests), 1)

    def test_half_a_body_is_nobodys_whole_one(self):
        """The second client came in time for the fetch, then the origin dies as well."""
        p, o, go, _ = self.started("quick_abort_min -1 KB", end=RESET)
        with Client(p.address) as c:
            c.request("GET", o.url("/"))
            c.read_until("\r\n\r\n")
            go.set()
            with self.assertRaises(Incomplete):
                c.read_exactly(self.SIZE)
        for hit in (False, True):
            r = self.get(p, o.url("/"))
            self.assertEqual((r.hit, r.body == self.BODY), (hit, True))

    def test_who_resets_before_an_answer_does_not_keep_the_origin(self):
        heard = threading.Event()

        def serve(c):
            c.read_request()
            c.read_all()
            heard.set()
        o = self.origin(raw=serve)
        p = self.cuttle()
        with Client(p.address) as c:
            c.request("GET", o.url("/"))
            wait_for(lambda: o.connections, "the request")
            time.sleep(0.1)
            c.reset()
        self.assertTrue(heard.wait(harness.TIMEOUT_S), "the origin waits for nobody")


class Silence(Scenario):
    """Every wait has an end, whatever trickles in meanwhile (RFC 9110 15.5.9)."""

    def setUp(self):
        self.o = self.origin({"/": reply(body=b"x"), "/up": SILENT}, reads_bodies=False)
        self.p = self.cuttle("request_start_timeout 2 seconds", "request_timeout 2 seconds",
                             "client_idle_pconn_timeout 2 seconds", "client_lifetime 3 seconds")

    def trickle(self, c, until_s=15):
        """A byte now and then until the proxy has had enough; the seconds that took."""
        began = time.monotonic()
        c.sock.settimeout(0.1)
        while time.monotonic() - began < until_s:
            try:
                c.send("x")
                if not c.fill():
                    break
                if b"\r\n\r\n" in c.pending:
                    break
            except socket.timeout:
                continue
            except OSError:
                break
        c.sock.settimeout(harness.TIMEOUT_S)
        return time.monotonic() - began

    def quiet(self):
        """Connections that do not speak, not again, or stop in the middle of a second head."""
        fresh, idle, half = (self.client(self.p) for _ in range(3))
        for c in (idle, half):
            c.get(self.o.url("/"))
        half.send("GET http://x/ HTTP/1.1\r\nHo")
        return fresh, idle, half

    def busy(self, downloads):
        """How long a connection lives on which there is always something going on."""
        began = time.monotonic()
        with Client(self.p.address) as c, contextlib.suppress(Incomplete, OSError):
            if downloads:
                c.get(self.o.url("/drip"))
            while time.monotonic() - began < 12:
                c.get(self.o.url("/"))
                time.sleep(0.1)
        self.assertGreater(time.monotonic() - began, 2)
        return time.monotonic() - began

    def test_connections_without_a_request_end(self):
        fresh, idle, half = self.quiet()
        began = time.monotonic()
        fresh.expect_close()
        idle.expect_close()
        self.assertEqual(half.read_response().status, 408)
        half.expect_close()
        self.assertGreater(time.monotonic() - began, 1)

    def test_bytes_that_trickle_do_not_set_the_clock_back(self):
        """In a first head, a second one, a request's body, a response's, and in many requests."""
        def drip(q, c):
            c.send(reply("200 OK", "Content-Length: 100000"))
            while not c.origin.closing.is_set():
                c.send("x")
                time.sleep(0.1)
        self.o.answer["/drip"] = drip

        def first():
            c = self.client(self.p)
            c.send("GET %s HTTP/1.1\r\nX: " % self.o.url("/"))
            return c, 408

        def second():
            c = self.client(self.p)
            c.get(self.o.url("/"))
            c.send("GET %s HTTP/1.1\r\nX: " % self.o.url("/"))
            return c, 408

        def upload():
            c = self.client(self.p)
            c.request("POST", self.o.url("/up"), "Content-Length: 100000")
            return c, None

        def run(i):
            if i > 2:
                self.assertLess(self.busy(i == 3), 10)
                return
            c, status = (first, second, upload)[i]()
            self.assertLess(self.trickle(c), 12, "it trickles on for ever")
            if status:
                self.assertEqual(c.read_response().status, status)
            c.expect_close()
        together(5, run)


class SilentUploads(Scenario):
    def test_a_client_that_stops_in_its_upload_is_told_so_not_the_origin(self):
        """RFC 9110 15.5.9: 408, where a silent origin is 504."""
        o = self.origin(SILENT, reads_bodies=False)
        p = self.cuttle("read_timeout 1 second")
        for sent, status in (("half", 408), ("x" * 100, 504)):
            with Client(p.address) as c:
                c.request("POST", o.url("/"), "Content-Length: 100")
                c.send(sent)
                self.assertEqual(c.read_response().status, status)


class SlowReaders(Scenario):
    """Memory for one connection does not depend on what it has asked for."""

    def crowd(self, p, urls):
        """Clients that take the head and a little more, and then nothing."""
        clients = []
        for url in urls:
            c = self.client(p)
            c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            c.request("GET", url)
            clients.append(c)
        for c in clients:
            c.read_until("\r\n\r\n")
            c.read_exactly(1000)
        time.sleep(0.5)
        return clients

    def test_many_slow_readers_of_a_stored_object_share_it(self):
        body = pattern(1 << 20)
        o = self.origin(storable(body * 16))
        p = self.cuttle(BIG, lean=True)
        self.get(p, o.url("/"))
        before = p.memory_kb()
        slow = self.crowd(p, [o.url("/")] * 100)
        self.assertLess(p.memory_kb() - before, MEMORY_FACTOR * 100 * 50)
        self.assertEqual(slow[50].read_exactly(20_000), body[1000:21_000])

    def test_many_slow_readers_of_what_is_not_stored_stop_their_origins(self):
        n, size = 10, 32 << 20
        sent = [0] * n

        def stream(q, c):
            i = int(q.target[1:])
            c.send(reply("200 OK", "Content-Length: %d" % size))
            for at in range(0, size, 1 << 16):
                c.send(bytes(1 << 16))
                sent[i] = at + (1 << 16)
        o = self.origin(stream)
        p = self.cuttle(lean=True)
        before = p.memory_kb()
        self.crowd(p, [o.url("/%d" % i) for i in range(n)])
        self.assertLess(p.memory_kb() - before, MEMORY_FACTOR * n * 400)
        self.assertLess(max(sent), size, "nobody stopped it")


if __name__ == "__main__":
    harness.main()
