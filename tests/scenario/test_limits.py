"""At its limits: out of descriptors, on its way out, and after many requests."""
import os
import signal
import threading
import time

import harness
from harness import (Client, Incomplete, ProtocolError, Scenario, pattern, reply, storable,
                     together, wait_for)


class Descriptors(Scenario):
    """64 descriptors and more clients than that (DESIGN 5: idle connections are shed first)."""

    def setUp(self):
        self.o = self.origin(storable(b"x"))
        self.p = self.cuttle(prefix=("prlimit", "--nofile=64:64", "--"), workers=1)
        self.get(self.p, self.o.url("/"))

    def crowd(self, n):
        clients = []
        for _ in range(n):
            c = Client(self.p.address)
            self.addCleanup(c.close)
            clients.append(c)
        return clients

    def test_a_crowd_costs_no_cpu_and_no_flood_of_log_lines(self):
        crowd = self.crowd(200)
        time.sleep(1)
        before, lines = self.p.cpu_s(), self.p.cache_log().count("\n")
        time.sleep(4)
        self.assertLess(self.p.cpu_s() - before, 1.0)
        self.assertLess(self.p.cache_log().count("\n") - lines, 20)
        for c in crowd:
            c.close()
        wait_for(lambda: self.get(self.p, self.o.url("/")).status == 200, "service again")

    def test_it_keeps_serving_at_the_limit(self):
        """Idle connections give way; who has a request gets an answer."""
        for c in self.crowd(200):
            try:
                c.send("")
            except OSError:
                pass
        for i in range(20):
            with Client(self.p.address) as c:
                self.assertIn(c.get(self.o.url("/")).status, (200, 503))

    def test_misses_still_find_a_descriptor(self):
        self.crowd(100)
        statuses = [self.get(self.p, self.o.url("/miss%d" % i)).status for i in range(20)]
        self.assertGreater(statuses.count(200), 0, statuses)
        self.assertLessEqual(set(statuses), {200, 503})

    def test_busy_clients_are_not_cut_for_new_ones(self):
        slow = self.origin((reply("200 OK", "Content-Length: 20"), b"x" * 10, 3.0, b"y" * 10))
        busy = self.client(self.p)
        busy.request("GET", slow.url("/"))
        busy.read_until("\r\n\r\n")
        self.crowd(150)
        self.assertEqual(busy.read_exactly(20), b"x" * 10 + b"y" * 10)


class IdleConnections(Scenario):
    def test_requests_that_need_a_new_connection_do_not_pile_up_idle_ones(self):
        """A POST never goes out on a kept connection, but leaves one behind."""
        o = self.origin(lambda q: reply(body=b"x"))
        p = self.cuttle()
        with Client(p.address) as c:
            for _ in range(400):
                self.assertEqual(c.get(o.url("/"), method="POST", body=b"y").status, 200)
        row = next(line for line in p.manager("filedescriptors").splitlines() if line.startswith("server idle"))
        self.assertLessEqual(int(row.split()[2]), 256)


class Leaving(Scenario):
    def test_it_ends_at_once_when_idle(self):
        o = self.origin(reply())
        for number in (signal.SIGTERM, signal.SIGINT):
            p = self.cuttle("shutdown_lifetime 30 seconds")
            idle = self.client(p)
            idle.get(o.url("/"))
            self.assertLess(p.stop(number), 3 if harness.MEMORY_FACTOR > 1 else 1)
            idle.expect_close()

    def test_sigterm_under_load_loses_no_complete_response(self):
        """What was asked before the signal is answered whole; later, whole or not at all."""
        o = self.origin(lambda q: (0.02, reply(body=pattern(50_000))) if "slow" in q.target
                        else storable(pattern(50_000)))
        p = self.cuttle("shutdown_lifetime 5 seconds")
        told, torn, lost = [None], [], []

        def run(i):
            if i == 0:
                time.sleep(1.0)
                told[0] = time.monotonic()
                p.send_signal(signal.SIGTERM)
                return
            n = 0
            try:
                with Client(p.address) as c:
                    while True:
                        asked = time.monotonic()
                        c.request("GET", o.url("/%s%d" % ("slow" if i % 2 else "hit", n % 50)))
                        self.assertEqual(c.read_response().body, pattern(50_000))
                        n += 1
            except Incomplete as e:
                if e.partial:
                    torn.append(len(e.partial))
                elif told[0] is None or asked < told[0] - 0.05:
                    lost.append((asked, told[0]))
            except OSError:
                pass
        together(12, run)
        p.stop()
        self.assertEqual((torn, lost), ([], []))

    def test_a_long_download_gets_the_grace_time(self):
        o = self.origin((reply("200 OK", "Content-Length: 20"), b"x" * 10, 1.0, b"y" * 10))
        p = self.cuttle("shutdown_lifetime 10 seconds")
        with Client(p.address) as c:
            c.request("GET", o.url("/"))
            c.read_until("\r\n\r\n")
            p.send_signal(signal.SIGTERM)
            self.assertEqual(c.read_exactly(20), b"x" * 10 + b"y" * 10)
        self.assertLess(p.stop(), 5)

    def test_the_grace_time_ends(self):
        o = self.origin((reply("200 OK", "Content-Length: 20"), harness.SILENT))
        t = self.origin(raw=lambda c: c.read_all())
        p = self.cuttle("shutdown_lifetime 1 second")
        c, tunnel = self.client(p), self.client(p)
        c.request("GET", o.url("/"))
        tunnel.connect_tunnel(t.authority)
        c.read_until("\r\n\r\n")
        self.assertLess(p.stop(), 6)

    def test_listeners_close_at_once(self):
        o = self.origin((1.5, reply()))
        p = self.cuttle("shutdown_lifetime 10 seconds")
        c = self.client(p)
        c.request("GET", o.url("/"))
        o.wait_requests(1)
        p.send_signal(signal.SIGTERM)
        wait_for(lambda: not harness.is_listening(p.port), "the listeners to close", 1.4)
        r = c.read_response()
        self.assertEqual(r.status, 200)
        self.assertIn("close", r.tokens("Connection"))
        p.stop()


class NoOtherPorts(Scenario):
    def test_icp_htcp_and_snmp_open_nothing(self):
        """No datagram can reach a parser that is not there."""
        ports = [harness.PortLease() for _ in range(3)]
        for port in ports:
            self.addCleanup(port.release)
        p = self.cuttle("icp_port %d" % ports[0].number, "htcp_port %d" % ports[1].number,
                        "snmp_port %d" % ports[2].number)
        ours = {os.readlink("/proc/%d/fd/%s" % (p.pid, fd)) for fd in os.listdir("/proc/%d/fd" % p.pid)}
        lines = [line.split() for name in ("udp", "udp6")
                 for line in harness.read_text("/proc/%d/net/%s" % (p.pid, name)).splitlines()[1:]]
        opened = {int(line[1].rsplit(":", 1)[1], 16) for line in lines
                  if "socket:[%s]" % line[9] in ours}
        self.assertEqual(opened & {port.number for port in ports}, set())


class Killed(Scenario):
    def test_after_a_kill_every_answer_is_right(self):
        """Whatever was half done: bytes of its own URL, or a miss."""
        o = self.origin(lambda q: storable(harness.pattern(20_000, hash(q.target) & 0xff)))
        p = self.cuttle()
        paths = ["/%d" % i for i in range(50)]
        for round_ in range(3):
            stop = threading.Event()

            def load(i):
                while not stop.is_set():
                    try:
                        self.get(p, o.url(paths[(i * 7 + len(o.requests)) % 50]))
                    except (OSError, AssertionError):
                        return
            loads = [threading.Thread(target=load, args=(i,), daemon=True) for i in range(4)]
            for t in loads:
                t.start()
            time.sleep(0.2)
            p.kill()
            stop.set()
            for t in loads:
                t.join()
            p.start()
            for path in paths:
                self.assertEqual(self.get(p, o.url(path)).body,
                                 harness.pattern(20_000, hash(path) & 0xff), path)


class Endurance(Scenario):
    def test_descriptors_and_memory_are_flat_after_many_requests(self):
        o = self.origin(lambda q: reply(body=pattern(2000)) if "pass" in q.target
                        else storable(pattern(2000)))
        p = self.cuttle("cache_mem 8 MB", lean=True)

        def run(i, n):
            for j in range(n):
                with Client(p.address) as c:
                    for k in range(5):
                        c.get(o.url("/%s%d" % ("pass" if k % 2 else "hit", j % 20)))

        together(4, lambda i: run(i, 50))
        time.sleep(0.3)
        descriptors, memory = p.descriptors(), p.memory_kb()
        together(4, lambda i: run(i, 150))
        wait_for(lambda: p.descriptors() <= descriptors + 2, "the descriptors to come back")
        self.assertLess(p.memory_kb() - memory, harness.MEMORY_FACTOR * (2 << 10))

    def test_clients_that_come_and_go_in_all_ways_leave_nothing(self):
        o = self.origin((0.05, reply(body=pattern(200_000))))
        p = self.cuttle()

        def run(i):
            for j in range(15):
                with Client(p.address) as c:
                    try:
                        c.request("GET", o.url("/%d" % j))
                        if j % 3 == 0:
                            c.reset()
                        elif j % 3 == 1:
                            c.read_until("\r\n\r\n")
                            c.reset()
                        else:
                            c.read_response()
                    except (OSError, ProtocolError):
                        pass
        self.get(p, o.url("/"))
        before = p.descriptors()
        together(10, run)
        wait_for(lambda: p.descriptors() <= before + 10, "the descriptors to come back")
        self.assertEqual(self.get(p, o.url("/")).body, pattern(200_000))

    def test_a_stop_during_everything_is_clean(self):
        o = self.origin(lambda q: (0.05, storable(pattern(100_000))))
        t = self.origin(raw=lambda c: [c.send(c.read_exactly(1)) for _ in range(10_000)])
        p = self.cuttle("shutdown_lifetime 1 second")
        stop = threading.Event()

        def run(i):
            try:
                if i == 0:
                    time.sleep(0.7)
                    p.stop()
                    stop.set()
                elif i < 4:
                    with Client(p.address) as c:
                        c.connect_tunnel(t.authority)
                        while not stop.is_set():
                            c.send("x")
                            c.read_exactly(1)
                else:
                    while not stop.is_set():
                        with Client(p.address) as c:
                            c.get(o.url("/%d" % (time.monotonic_ns() % 50)))
            except (OSError, ProtocolError):
                pass
        together(10, run)


if __name__ == "__main__":
    harness.main()
