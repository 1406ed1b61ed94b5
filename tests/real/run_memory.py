#!/usr/bin/env python3
"""What clients cost that are idle or slow, and origins that are slow: proportional set size of
the whole process, all of them at once. CUTTLE names the program."""
import os
import resource
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from real import MB, PeakMemory, Real, main, pss_kb                             # noqa: E402
from harness import Client, Origin, reply, wait_for                             # noqa: E402
from web import FRESH, large                                                    # noqa: E402

IDLE = 10000
IDLE_LIMIT_BYTES = 1024
SLOW = 20
SLOW_LIMIT_KB = 1024
GIGABYTE = 1024 * MB
NEVER = {"Cache-Control": "no-store"}
CHUNKED = dict(FRESH, **{"Transfer-Encoding": "chunked"})


class IdleClients(Real):
    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.connections = IDLE if hard < 0 else min(IDLE, hard - 500)
        super().setUp()
        self.w = self.web({"/a": (b"a" * 1000, "text/plain", FRESH)})
        self.ask = ("GET %s/a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % self.w.base).encode()

    def use(self, s):
        s.sendall(self.ask)
        got = b""
        while not got.endswith(b"\r\n\r\n" + b"a" * 1000):
            more = s.recv(4096)
            self.assertTrue(more, "closed after %r" % got[:200])
            got += more
        self.assertTrue(got.startswith(b"HTTP/1.1 200"), got[:200])

    def connect(self):
        s = socket.create_connection(self.p.address, timeout=20)
        self.addCleanup(s.close)
        return s

    def judge(self, kind, is_used):
        self.use(self.connect())
        descriptors, before_kb = self.p.descriptors(), pss_kb(self.p.pid)
        clients = []
        for _ in range(self.connections):
            clients.append(self.connect())
            if is_used:
                self.use(clients[-1])
        wait_for(lambda: self.p.descriptors() - descriptors >= len(clients), "all to be accepted")
        each = (pss_kb(self.p.pid) - before_kb) * 1024.0 / len(clients)
        print("    %d idle clients, %s: %d bytes each" % (len(clients), kind, each), flush=True)
        self.assertLess(each, IDLE_LIMIT_BYTES)
        for s in clients[::500] + clients[-1:]:
            self.use(s)                              # they are still there
        for s in clients:
            s.close()
        wait_for(lambda: self.p.descriptors() <= descriptors, "their descriptors to be closed")

    def test_an_idle_client_that_has_said_nothing_costs_less_than_a_kilobyte(self):
        self.judge("fresh", is_used=False)

    def test_an_idle_client_that_was_served_costs_less_than_a_kilobyte(self):
        self.judge("after a request", is_used=True)


class SlowEnds(Real):
    def judge(self, kind, connect):
        """Each of several ends takes 1,000 bytes five times a second from a gigabyte."""
        with PeakMemory(self.p.pid) as memory:
            slow = [connect(i) for i in range(SLOW)]
            for _ in range(10):
                time.sleep(0.2)
                for s in slow:
                    self.assertTrue(s.recv(1000), "%s: closed" % kind)
        for s in slow:
            s.close()
        each_kb = memory.grown_kb / SLOW
        print("    %s: %d KB each" % (kind, each_kb), flush=True)
        self.assertLess(each_kb, SLOW_LIMIT_KB)

    def request(self, w, path, version="1.1"):
        s = socket.create_connection(self.p.address, timeout=20)
        self.addCleanup(s.close)
        s.sendall(("GET %s%s HTTP/%s\r\nHost: 127.0.0.1:%d\r\n\r\n"
                   % (w.base, path, version, w.port)).encode())
        return s

    def gigabytes(self, fields):
        return self.web({"/g%d" % i: (large(GIGABYTE), "application/octet-stream", fields)
                         for i in range(SLOW)})

    def test_a_slow_client_of_a_gigabyte_costs_less_than_a_megabyte(self):
        w = self.gigabytes(NEVER)
        self.judge("slow client of 1 GB", lambda i: self.request(w, "/g%d" % i))

    def test_a_slow_client_of_a_storable_gigabyte_costs_less_than_a_megabyte(self):
        w = self.gigabytes(FRESH)
        self.judge("slow client of 1 GB, storable", lambda i: self.request(w, "/g%d" % i))

    def test_a_slow_client_of_a_gigabyte_in_chunks_costs_less_than_a_megabyte(self):
        w = self.gigabytes(CHUNKED)
        self.judge("slow client of 1 GB, chunked", lambda i: self.request(w, "/g%d" % i))

    def test_a_slow_http_1_0_client_of_a_gigabyte_costs_less_than_a_megabyte(self):
        w = self.gigabytes(CHUNKED)
        self.judge("slow client of 1 GB, HTTP/1.0", lambda i: self.request(w, "/g%d" % i, "1.0"))

    def test_slow_clients_of_one_gigabyte_cost_less_than_a_megabyte_each(self):
        w = self.gigabytes(CHUNKED)
        self.judge("slow client of one 1 GB for all", lambda i: self.request(w, "/g0"))

    def test_a_slow_client_of_a_tunnel_costs_less_than_a_megabyte(self):
        w = self.gigabytes(NEVER)

        def connect(i):
            c = Client(self.p.address)
            self.addCleanup(c.close)
            c.connect_tunnel("127.0.0.1:%d" % w.port)
            c.send("GET /g%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % i)
            return c.sock
        self.judge("slow client of 1 GB through a tunnel", connect)

    def upload(self, o):
        """A client that sends as much of a gigabyte as is taken."""
        s = socket.create_connection(self.p.address, timeout=20)
        self.addCleanup(s.close)
        s.sendall(("PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n"
                   % (o.url("/up"), o.authority, GIGABYTE)).encode())
        s.setblocking(False)
        return s

    def test_a_slow_origin_of_an_upload_costs_less_than_a_megabyte(self):
        def read_slowly(c):
            while not o.closing.wait(0.2) and c.sock.recv(1000):
                pass
        o = Origin(raw=read_slowly)
        self.addCleanup(o.close)
        piece, sent = large(GIGABYTE)(0, MB), 0
        with PeakMemory(self.p.pid) as memory:
            clients = [self.upload(o) for _ in range(SLOW)]
            for _ in range(20):
                time.sleep(0.1)
                for s in clients:
                    try:
                        sent += s.send(piece)
                    except BlockingIOError:
                        pass
        each_kb = memory.grown_kb / SLOW
        print("    slow origin of a 1 GB upload: %d KB each, %d KB were taken"
              % (each_kb, sent / SLOW / 1024), flush=True)
        self.assertEqual(o.connections, SLOW)
        self.assertLess(each_kb, SLOW_LIMIT_KB)

    def test_others_are_served_at_once_beside_slow_clients(self):
        w = self.gigabytes(NEVER)
        o = Origin(reply(body=b"quick"))
        self.addCleanup(o.close)
        slow = [self.request(w, "/g%d" % i) for i in range(SLOW)]
        for s in slow:
            self.assertTrue(s.recv(1000))
        began = time.monotonic()
        for _ in range(50):
            with Client(self.p.address) as c:
                self.assertEqual(c.get(o.url("/")).body, b"quick")
        self.assertLess(time.monotonic() - began, 5)


if __name__ == "__main__":
    main()
