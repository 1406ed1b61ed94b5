"""Each system call fails, in turn and by chance, while requests of all kinds go through.

What may come of it: an answer is whole and right, or it is a 5xx, or the connection breaks off so
that the client sees it. What may not: a crash, a stall, wrong bytes that look whole, a POST that
reaches the origin twice, a descriptor that stays. And when the calls work again, so does the proxy.
"""
import contextlib
import errno
import mmap
import os
import random
import signal
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))
import harness  # noqa: E402
from harness import (Client, Incomplete, Name, Scenario, chunked, chunks,  # noqa: E402
                     pattern, reply, storable, together, wait_for)

CALLS = ["none", "read", "sendmsg", "accept4", "socket", "connect", "epoll_ctl", "epoll_wait",
         "splice", "pipe2", "shutdown", "setsockopt", "getsockopt", "open", "close", "write",
         "recvfrom", "datagram", "pwrite", "pread", "preadv2", "sendfile", "fallocate", "openat",
         "ftruncate", "fdatasync", "renameat"]
SHORT = 0                  # instead of an errno: one byte is read or written, not more
ALWAYS = 0x7fffffff
STALL_S = 4 * harness.TIMEOUT_S  # whatever takes longer hangs
TURNS = 8                  # calls of one kind that fail in turn; with more of them, some are drawn

BIG, SMALL = pattern(150_000, 1), pattern(1_500, 2)
PIECES = [pattern(2_500, i) for i in range(3, 6)]


class Plan:
    """The page that failing_calls.c looks at before each call."""

    def __init__(self, path):
        with open(path, "wb") as f:
            f.write(bytes(4096))
        self.file = open(path, "r+b")
        self.page = mmap.mmap(self.file.fileno(), 4096)

    def write(self, calls, skip=0, times=0, error=0, per_mille=0, seed=1):
        mask = sum(1 << CALLS.index(call) for call in calls)
        self.page[0:4] = struct.pack("=I", 0)
        self.page[4:32] = struct.pack("=7I", skip, times, error, per_mille, 0, 0, seed)
        self.page[0:4] = struct.pack("=I", mask)

    def fail(self, call, error, skip=0, times=1):
        self.write([call], skip, times, error)

    def fail_all(self, calls, error):
        self.write(calls, times=ALWAYS, error=error)

    def by_chance(self, per_mille, seed):
        self.write(CALLS, per_mille=per_mille, seed=seed)

    def end(self):
        """(calls seen, calls failed) since the plan was made."""
        self.page[0:4] = struct.pack("=I", 0)
        return struct.unpack("=2I", self.page[20:28])

    def seen(self):
        return struct.unpack("=I", self.page[20:24])[0]

    def close(self):
        self.page.close()
        self.file.close()


class Broken(Exception):
    """A transaction ended in a way its client can see."""


class Faults(Scenario):
    def setUp(self):
        folder = self.temporary_folder()
        self.plan = Plan(os.path.join(folder, "plan"))
        self.addCleanup(self.plan.close)
        self.lock, self.serial, self.posts, self.big = threading.Lock(), 0, {}, BIG
        self.o = self.origin(self.answer)
        self.echo = self.origin(raw=self.echoes)
        self.names = self.dns()
        self.names.names = Everywhere()
        self.p = self.cuttle(self.names.conf, "cache_mem 64 MB", "event_backend epoll",
                             "dns_retransmit_interval 1 second",
                             environment={"CUTTLE_FAULTS": os.path.join(folder, "plan")})
        self.everything(strict=True)
        self.o.close_connections()
        self.settled()
        self.at_rest = self.p.descriptors()

    # ---- both ends

    def answer(self, q):
        if q.method in ("POST", "PUT"):
            with self.lock:
                self.posts[q.target] = self.posts.get(q.target, 0) + 1
            return reply(body=q.body)
        if "chunked" in q.target:
            return chunked(*PIECES, trailers=["X-Sum: 1"])
        return storable(self.big if "big" in q.target else SMALL)

    @staticmethod
    def echoes(c):
        while c.pending or c.fill():
            c.send(c.take(len(c.pending)))
        c.half_close()

    # ---- transactions

    def number(self):
        with self.lock:
            self.serial += 1
            return self.serial

    def expect(self, r, body):
        if r.status >= 500:
            raise Broken("%d" % r.status)
        self.assertEqual(r.status, 200)
        self.assertEqual(len(r.body), len(body))
        self.assertTrue(r.body == body, "wrong bytes in a whole body")

    def hit(self):
        with Client(self.p.address, STALL_S) as c:
            for _ in range(2):
                self.expect(c.get(self.o.url("/hit")), SMALL)

    def pipelined(self):
        paths = ["/hit", "/new%d" % self.number(), "/hit"]
        with Client(self.p.address, STALL_S) as c:
            c.send("".join("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % self.o.url(p) for p in paths))
            for _ in paths:
                self.expect(c.read_response(), SMALL)

    def miss(self):
        with Client(self.p.address, STALL_S) as c:
            self.expect(c.get(self.o.url("/big%d" % self.number())), self.big)
            self.expect(c.get(self.o.url("/new%d" % self.number())), SMALL)

    def by_name(self):
        n = self.number()
        with Client(self.p.address, STALL_S) as c:
            self.expect(c.get(self.o.url("/new%d" % n, host="n%d.test" % n)), SMALL)

    def chunks(self):
        with Client(self.p.address, STALL_S) as c:
            r = c.get(self.o.url("/chunked%d" % self.number()))
            self.expect(r, b"".join(PIECES))
            self.assertEqual(r.trailers, [("X-Sum", "1")])

    def post(self):
        url = self.o.url("/post%d" % self.number())
        try:
            with Client(self.p.address, STALL_S) as c:
                self.expect(c.get(url, method="POST", body=SMALL), SMALL)
                c.request("PUT", url + "c", "Transfer-Encoding: chunked",
                          body=chunks(*PIECES))
                self.expect(c.read_response(), b"".join(PIECES))
        finally:
            self.assertLessEqual(self.posts.get(url.split(self.o.authority)[1], 0), 1)

    def tunnel(self):
        with Client(self.p.address, STALL_S) as c:
            r = c.get(self.echo.authority, method="CONNECT")
            if r.status >= 500:
                raise Broken("%d" % r.status)
            self.assertEqual(r.status, 200)
            back = []
            reader = threading.Thread(target=lambda: back.append(read_quietly(c)), daemon=True)
            reader.start()
            with contextlib.suppress(OSError):    # what came back is judged all the same
                c.send(self.big)
                c.half_close()
            reader.join(STALL_S)
            self.assertTrue(back, "the tunnel hangs")
            if len(back[0]) < len(self.big):    # what came is right, the rest is missing to be seen
                self.assertEqual(back[0], self.big[:len(back[0])])
                raise Broken("tunnel")
            self.assertTrue(back[0] == self.big, "wrong bytes in a tunnel")

    def everything(self, strict=False):
        for one in (self.hit, self.pipelined, self.miss, self.by_name, self.chunks, self.post,
                    self.tunnel):
            try:
                one()
            except (Broken, Incomplete, ConnectionError, BrokenPipeError) as e:
                if strict:
                    raise AssertionError("%s: %r" % (one.__name__, e))
            except socket.timeout:
                raise AssertionError("%s: hangs" % one.__name__)
            self.assertTrue(self.p.is_running(), "it has died")

    # ---- afterwards

    def settled(self):
        seen = [0, 1]
        while len(set(seen[-4:])) > 1:
            time.sleep(0.03)
            seen.append(self.p.descriptors())

    def works_again(self, what):
        try:
            self.everything(strict=True)
            self.o.close_connections()
            wait_for(lambda: self.p.descriptors() <= self.at_rest, "descriptors to come back")
        except AssertionError as e:
            raise AssertionError("after %s: %s\n%s" % (what, e, self.p.cache_log()[-2000:]))

    def in_turn(self, call, *errors):
        """The first, second, third… of these calls fails, each time with everything on the way."""
        self.plan.fail(call, 0, times=0)
        self.everything(strict=True)
        seen, _ = self.plan.end()
        self.assertGreater(seen, 0, call)
        for error in errors:
            turns = range(seen) if seen <= TURNS else sorted(
                random.Random(error).sample(range(seen), TURNS))
            for n in turns:
                what = "%s number %d: %s" % (call, n + 1, errno.errorcode.get(error, "short"))
                self.plan.fail(call, error, skip=n)
                try:
                    self.everything()
                except AssertionError as e:
                    raise AssertionError("%s: %s\n%s" % (what, e, self.p.cache_log()[-2000:]))
                self.plan.end()
            self.works_again(what)

    def storm(self, call, error, times=ALWAYS):
        """All of these calls fail, or so many in a row."""
        self.plan.fail(call, error, times=times)
        self.everything()
        _, failed = self.plan.end()
        self.assertGreater(failed, 0)
        self.works_again("a storm of %s: %d" % (call, error))

    def clients(self, n):
        return [self.client(self.p, timeout_s=STALL_S) for _ in range(n)]

    def reserves(self):
        """Descriptors kept open so that one can be given up; the first one is its input."""
        folder = "/proc/%d/fd" % self.p.pid
        names = [n for n in os.listdir(folder) if n != "0"]
        return sum(target(os.path.join(folder, n)) == "/dev/null" for n in names)

    def does_not_spin(self):
        before = self.p.cpu_s()
        time.sleep(1)
        self.assertLess(self.p.cpu_s() - before, 0.5)

    # ---- the tests

    def test_reads_fail(self):
        self.in_turn("read", errno.ECONNRESET, errno.EAGAIN, errno.EINTR)
        self.storm("read", errno.EAGAIN, 100)

    def test_reads_of_one_byte(self):
        self.big = BIG[:8_000]
        self.storm("read", SHORT)

    def test_writes_fail(self):
        self.in_turn("sendmsg", errno.ECONNRESET, errno.EPIPE, errno.EAGAIN, errno.ENOBUFS)
        self.storm("sendmsg", errno.EAGAIN, 100)

    def test_writes_of_one_byte(self):
        self.big = BIG[:8_000]
        self.storm("sendmsg", SHORT)

    def test_accept_fails(self):
        self.in_turn("accept4", errno.EMFILE, errno.ECONNABORTED, errno.ENOMEM, errno.EAGAIN)

    def test_connecting_fails(self):
        self.in_turn("socket", errno.EMFILE, errno.ENOBUFS)
        self.in_turn("connect", errno.ECONNREFUSED, errno.EADDRNOTAVAIL, errno.ENETUNREACH)
        self.in_turn("getsockopt", errno.ENOBUFS)

    def test_watching_and_waiting_fail(self):
        self.in_turn("epoll_ctl", errno.ENOMEM, errno.ENOSPC)
        self.in_turn("epoll_wait", errno.EINTR)

    def test_splices_and_pipes_fail(self):
        self.in_turn("splice", errno.EAGAIN, errno.EPIPE, errno.ECONNRESET, SHORT)
        self.in_turn("pipe2", errno.EMFILE)

    def test_options_and_ends_cannot_be_set(self):
        self.in_turn("setsockopt", errno.EINVAL)
        self.in_turn("shutdown", errno.ENOTCONN)
        self.in_turn("close", errno.EINTR, errno.EIO)

    def test_name_servers_break_off(self):
        self.in_turn("recvfrom", errno.EAGAIN, errno.ECONNREFUSED)
        self.in_turn("datagram", errno.EAGAIN, errno.ENOBUFS, errno.ECONNREFUSED)

    def test_names_whose_questions_nobody_heard_are_asked_again(self):
        """No route or no memory on this machine is nothing to remember of a name."""
        for call, error in (("socket", errno.EMFILE), ("connect", errno.ENETUNREACH),
                            ("datagram", errno.ENOBUFS), ("datagram", errno.ENETUNREACH)):
            url = self.o.url("/new%d" % self.number(), host="%s%d.test" % (call, error))
            with self.subTest(call=call, error=error):
                self.plan.fail_all([call], error)
                self.assertGreaterEqual(self.get(self.p, url).status, 500)
                self.assertGreater(self.plan.end()[1], 0)
                self.assertEqual(self.get(self.p, url).status, 200)

    def test_no_descriptors_under_load(self):
        """Idle connections give way, a request under way does not; nothing spins, and afterwards
        those who waited are served and there is a reserve again."""
        go_on = threading.Event()
        slow = self.origin((reply("200 OK", "Content-Length: 20"), b"x" * 10, go_on, b"y" * 10))
        idle, busy = self.clients(20), self.clients(1)[0]
        for c in idle:
            c.get(self.o.url("/hit"))
        busy.request("GET", slow.url("/"))
        busy.read_until("\r\n\r\n")
        self.plan.fail_all(["accept4", "open", "socket", "pipe2"], errno.EMFILE)
        waiting = self.clients(10)
        for c in waiting:
            c.request("GET", self.o.url("/hit"))
        for c in idle:
            c.expect_close()
        wait_for(lambda: self.reserves() == 0, "the reserve to be spent")
        self.does_not_spin()
        go_on.set()
        self.assertEqual(busy.read_exactly(20), b"x" * 10 + b"y" * 10)
        self.plan.end()
        for c in waiting:
            self.expect(c.read_response(), SMALL)
        wait_for(self.reserves, "the reserve to be filled up")
        for c in [busy] + waiting:
            c.close()
        slow.close()
        self.works_again("a time without descriptors")

    def test_logs_that_cannot_be_opened_anew(self):
        self.plan.fail_all(["open"], errno.EMFILE)
        self.p.send_signal(signal.SIGUSR1)
        wait_for(lambda: "reopen the access log" in self.p.cache_log(), "the attempt to rotate")
        self.get(self.p, self.o.url("/between"))
        self.plan.end()
        self.p.send_signal(signal.SIGUSR1)
        wait_for(lambda: os.path.exists(self.p.path("access.log")), "the logs to rotate")
        self.get(self.p, self.o.url("/after"))
        self.p.logged("/after")
        old = "".join(self.p.read("access.log.%d" % i) for i in range(3))
        self.assertIn("/between", old)

    def test_everything_by_chance(self):
        """Several clients, several seeds; each kind of call fails now and then."""
        for seed in range(1, 4):
            self.plan.by_chance(30, seed)
            together(3, lambda i: [self.everything() for _ in range(4)])
            _, failed = self.plan.end()
            self.assertGreater(failed, 20)
            self.works_again("chance with seed %d" % seed)

    def test_the_disk_of_the_log_is_full(self):
        self.plan.fail("write", errno.ENOSPC, times=ALWAYS)
        self.everything(strict=True)
        time.sleep(1.2)
        self.assertGreater(self.plan.end()[1], 0)
        before = len(self.p.access_log())
        self.get(self.p, self.o.url("/hit"))
        self.p.logged("/hit", before and 1)


class Everywhere(dict):
    """Any name lives on this machine."""

    def get(self, name, default=None):
        return Name(a=["127.0.0.1"])


def target(path):
    try:
        return os.readlink(path)
    except OSError:            # closed in the meantime
        return ""


def read_quietly(c):
    try:
        return c.read_all()
    except OSError:
        return b""


if __name__ == "__main__":
    harness.main()
