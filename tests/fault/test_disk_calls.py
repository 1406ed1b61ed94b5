"""The store on disk when its calls fail: in turn, always, by chance, and by writes that say they were
made and were not. What may come of it: a miss, or an answer that breaks off to be seen. What may
not: a wrong byte that looks right, now or after the next start, and a crash."""
import errno
import itertools
import os
import re
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))
import harness  # noqa: E402
from harness import Client, Incomplete, Scenario, pattern, storable, together, wait_for  # noqa: E402
from test_calls import ALWAYS, SHORT, Plan  # noqa: E402

DROPPED, TORN, SLOW, HANGS = 10000, 10001, 10002, 10003
N = 24


def body_of(i):
    return pattern((500, 20_000, 90_000, 300_000)[i % 4], i)


class Disk(Scenario):
    def setUp(self):
        folder = self.folder = self.temporary_folder()
        self.plan = Plan(os.path.join(folder, "plan"))
        self.addCleanup(self.plan.close)
        self.o = self.origin(lambda q: storable(body_of(int(q.target[1:])), 'ETag: "a"'))
        self.p = self.cuttle("cache_dir ufs %s/store 16" % folder, "cache_mem 8 MB",
                             "maximum_object_size 1 MB", "maximum_object_size_in_memory 64 KB",
                             "acl PURGE method PURGE", "http_access allow PURGE localhost",
                             environment={"CUTTLE_FAULTS": os.path.join(folder, "plan")})
        self.ready()

    def ready(self):
        wait_for(lambda: "objects known" in self.p.cache_log() or "it is not used" in self.p.cache_log(),
                 "the store to be known")

    def ask(self, i):
        """The hit or miss; None when it broke off, or could not be had."""
        with Client(self.p.address) as c:
            try:
                r = c.get(self.o.url("/%d" % i))
            except (Incomplete, ConnectionError):
                return None
        if r.status >= 500:
            return None
        self.assertTrue(r.body == body_of(i), "wrong bytes of %d that look right" % i)
        return r

    def everything(self, rounds=1):
        for _ in range(rounds):
            for i in range(N):
                self.ask(i)
        self.assertTrue(self.p.is_running())

    def restart(self, kill):
        self.p.kill() if kill else self.p.stop()
        self.start()

    def start(self):
        if os.path.exists(self.p.path("cache.log")):
            os.unlink(self.p.path("cache.log"))
        self.p.start()
        self.ready()

    def afterwards(self, what):
        """Without faults everything is answered whole, also after a kill and an orderly end. A spoilt
        block far into a body is found when its client has the head already: that answer breaks off,
        and the next one is whole."""
        self.plan.end()
        for kill in (True, False):
            self.restart(kill)
            for i in range(N):
                self.assertIsNotNone(self.ask(i) or self.ask(i), "%s: %d" % (what, i))

    def storm(self, call, *errors):
        for error in errors:
            self.plan.fail(call, error, times=ALWAYS)
            self.everything()
            self.restart(kill=False)
            self.everything()
            self.plan.end()
            self.afterwards("%s: %d" % (call, error))

    def in_turn(self, call, *errors):
        for error in errors:
            for skip in (0, 1, 4):
                self.plan.fail(call, error, skip=skip, times=2)
                self.everything()
                self.restart(kill=skip % 2 == 0)
                self.everything()
                self.plan.end()
            self.afterwards("%s: %d" % (call, error))

    def test_writes_fail(self):
        self.storm("pwrite", errno.ENOSPC)
        self.in_turn("pwrite", errno.EIO, SHORT, errno.EINTR)

    def test_writes_that_were_not_made(self):
        self.in_turn("pwrite", DROPPED, TORN)

    def test_reads_fail(self):
        self.everything()
        self.restart(kill=False)
        self.plan.fail("preadv2", errno.EAGAIN, times=ALWAYS)   # all by the pool's threads
        self.everything()
        self.plan.end()
        self.storm("preadv2", errno.EIO, errno.EOPNOTSUPP, SHORT)
        self.in_turn("pread", errno.EIO, SHORT, errno.EINTR)

    def test_a_disk_that_hangs_is_left_for_the_origin_after_five_seconds(self):
        """Small ones and large ones, one client or several; nobody waits longer than that."""
        self.everything()
        self.restart(kill=False)
        asked = len(self.o.requests)
        self.assertEqual(len(self.ask(0).body), 500)
        self.assertEqual(len(self.o.requests), asked, "it is on disk")
        self.plan.fail_all(["pread", "preadv2"], HANGS)
        began = time.monotonic()
        self.assertTrue(all(together(4, lambda i: self.ask(4 + i % 2 * 3))))
        self.assertTrue(4 < time.monotonic() - began < 10, time.monotonic() - began)
        self.plan.end()
        self.everything()

    def test_a_disk_that_hangs_half_way_is_left_for_the_origin_too(self):
        """What was sent stays the beginning; the origin's rest follows it. (What is sent from the
        page cache is there; a body that is read can hang.)"""
        self.p.conf_lines.append("sendfile off")
        body = pattern(1_000_000)
        self.o.answer = storable(body, 'ETag: "a"')
        self.get(self.p, self.o.url("/big"))
        self.restart(kill=False)
        asked = len(self.o.requests)
        with Client(self.p.address) as c:
            c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            c.request("GET", self.o.url("/big"))
            c.read_until("\r\n\r\n")
            self.assertEqual(len(self.o.requests), asked, "it is on disk")
            self.plan.fail_all(["pread", "preadv2"], HANGS)
            began = time.monotonic()
            self.assertTrue(c.read_exactly(1_000_000) == body)
        self.assertTrue(4 < time.monotonic() - began < 10, time.monotonic() - began)
        self.assertEqual(self.o.last().field("If-Range"), '"a"')
        self.plan.end()

    def test_sending_fails(self):
        self.everything()
        self.restart(kill=False)
        self.storm("sendfile", errno.EINVAL, errno.EIO)
        self.in_turn("sendfile", SHORT, errno.EAGAIN, errno.EPIPE)

    def test_bodies_above_128_KB_are_sent_with_the_sizes_as_shipped(self):
        o = self.origin(lambda q: storable(pattern(int(q.target[1:]))))
        p = self.cuttle("cache_dir ufs %s/shipped 16" % self.folder,
                        environment={"CUTTLE_FAULTS": os.path.join(self.folder, "plan")})
        sizes = (100_000, 131_072, 131_073, 300_000)
        for n in sizes:
            self.get(p, o.url("/%d" % n))
        p.stop()
        os.unlink(p.path("cache.log"))
        p.start()
        wait_for(lambda: "objects known" in p.cache_log(), "the store to be known")
        for _ in range(3):
            for n in sizes:
                self.plan.write(["sendfile"])            # counted, none fails
                r = self.get(p, o.url("/%d" % n))
                self.assertTrue(r.hit and r.body == pattern(n), n)
                self.assertEqual(self.plan.end()[0] > 0, n > 131_072, n)

    def test_a_file_system_without_holes(self):
        self.plan.fail("fallocate", errno.EOPNOTSUPP, times=ALWAYS)
        self.restart(kill=False)
        self.everything(rounds=3)
        self.plan.end()
        self.restart(kill=False)
        self.everything()
        self.in_turn("fallocate", errno.EIO)

    def starts_and_ends(self, call, n_calls, *errors):
        """The call fails each time it is made between an end and the next, alone and with all after it;
        the store may be out of use for that time, or know less than it did."""
        self.everything()
        for error in errors:
            for skip in range(n_calls):
                for times in (1, ALWAYS):
                    self.plan.fail(call, error, skip=skip, times=times)
                    self.restart(kill=False)
                    self.everything()
                    self.p.stop()
                    seen, failed = self.plan.end()
                    self.assertGreater(failed, 0, "%s was made %d times" % (call, seen))
                    self.start()
                    self.everything()
            self.afterwards("%s: %d" % (call, error))

    def test_files_that_cannot_be_opened(self):
        """The folder, the store, the snapshot to be read, and the one to be written."""
        self.starts_and_ends("openat", 4, errno.EMFILE)

    def test_a_file_that_cannot_be_given_its_length(self):
        self.starts_and_ends("ftruncate", 1, errno.ENOSPC)
        self.first_start("ftruncate", 2, errno.EIO)

    def test_what_cannot_be_brought_onto_the_medium(self):
        """The store before the snapshot tells of it, and the snapshot before it has its name."""
        self.starts_and_ends("fdatasync", 2, errno.EIO)
        self.first_start("fdatasync", 1, errno.EIO)

    def test_a_snapshot_that_cannot_get_its_name(self):
        self.starts_and_ends("renameat", 1, errno.ENOSPC)

    def test_a_start_that_cannot_be_read_leaves_the_store_for_the_next_one(self):
        self.everything()
        self.p.stop()
        self.plan.fail("pread", errno.EIO)
        self.start()
        self.assertIn("it is not used", self.p.cache_log())
        self.everything()
        self.assertEqual(self.plan.end()[1], 1)
        self.restart(kill=False)
        for i in range(N):
            self.assertTrue(self.ask(i).hit, i)

    def first_start(self, call, n_calls, error):
        """Of a store that is made, with a call that fails."""
        for skip in range(n_calls):
            self.p.kill()
            for name in os.listdir(self.folder + "/store"):
                os.unlink("%s/store/%s" % (self.folder, name))
            self.plan.fail(call, error, skip=skip, times=1)
            self.start()
            self.everything()
            self.assertEqual(self.plan.end()[1], 1)
            self.afterwards("%s in a new store: %d" % (call, error))

    def test_a_clear_that_cannot_be_noted_is_noted_later(self):
        self.everything()
        self.plan.fail("pwrite", errno.EIO, times=ALWAYS)
        self.assertEqual(self.get(self.p, "http://%s:%d/squid-internal-mgr/clear" % self.p.address,
                                  method="PURGE").status, 200)
        wait_for(lambda: self.plan.seen() > 0, "the disk to be told")
        self.plan.end()
        others = itertools.count(N)
        wait_for(lambda: self.another_is_stored(next(others)), "the disk to be told again")
        self.p.kill()
        self.start()
        before = len(self.o.requests)
        for i in range(N):
            self.assertFalse(self.ask(i).hit, i)
        self.assertEqual(len(self.o.requests), before + N)

    def another_is_stored(self, i):
        self.ask(i)
        text = self.p.manager("storedir")
        return int(re.search(r"Objects +: (\d+)", text).group(1)) >= 1

    def test_a_prefix_purge_on_a_slow_disk_holds_up_neither_stores_nor_the_end(self):
        """Each head takes the disk 50 ms: a purge of all takes more than a second."""
        self.everything()
        self.restart(kill=False)
        self.plan.fail("pread", SLOW, times=ALWAYS)
        r = self.get(self.p, "http://%s:%d/squid-internal-mgr/purge?prefix=%s" %
                     (*self.p.address, self.o.url("/")), method="PURGE")
        self.assertEqual(r.status, 200)
        before = len(self.o.requests)
        for i in range(N):
            self.assertFalse(self.ask(i).hit, "what was purged is served: %d" % i)
        self.assertEqual(len(self.o.requests), before + N)
        self.assertLess(self.p.stop(), 3)
        self.plan.end()
        self.start()
        for i in range(N):
            self.assertTrue(self.ask(i).hit, "what came after the purge is gone: %d" % i)

    def test_everything_by_chance(self):
        for seed in range(1, 3):
            self.plan.write(["pwrite", "pread", "preadv2", "sendfile", "fallocate", "openat", "ftruncate",
                             "fdatasync", "renameat"], per_mille=60, seed=seed)
            together(3, lambda i: self.everything())
            self.restart(kill=seed % 2 == 0)
            together(3, lambda i: self.everything())
            self.plan.end()
            self.afterwards("chance with seed %d" % seed)


if __name__ == "__main__":
    harness.main()
