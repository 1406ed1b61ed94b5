"""The store on disk: what it serves, what it survives, and that it never serves a wrong byte."""
import functools
import hashlib
import os
import random
import re
import subprocess
import threading
import time

import harness
from harness import Client, Scenario, pattern, reply, storable, wait_for

BIG = "maximum_object_size 16 MB"


def body_of(target, n=20_000):
    return pattern(n, int(hashlib.md5(target.encode()).hexdigest()[:2], 16))


class OnDisk(Scenario):
    LINES = ()

    def setUp(self):
        self.folder = os.path.join(self.temporary_folder(), "store")

    def proxy(self, *lines, megabytes=64, options=""):
        self.p = self.cuttle("cache_dir ufs %s %d 16 256 %s" % (self.folder, megabytes, options),
                             BIG, *self.LINES, *lines)
        self.wait_ready()
        return self.p

    def wait_ready(self):
        wait_for(lambda: "objects known" in self.p.cache_log(), "the store to be known")

    def storedir(self, name):
        text = self.p.manager("storedir")
        return float(re.search(re.escape(name) + r"\s*: ([0-9.]+)", text).group(1))

    def written(self, n):
        wait_for(lambda: self.storedir("Objects written") >= n, "%d objects to be written" % n)

    def restart(self, kill=False):
        if kill:
            self.p.kill()
        else:
            self.p.stop()
        os.unlink(self.p.path("cache.log"))
        self.p.start()
        self.wait_ready()


class Warm(OnDisk):
    def test_a_restart_is_warm(self):
        o = self.origin(lambda q: storable(body_of(q.target), 'ETag: "e"', "X-A: " + q.target))
        self.proxy()
        for i in range(20):
            self.get(self.p, o.url("/%d" % i))
        self.restart()
        for i in range(20):
            r = self.get(self.p, o.url("/%d" % i))
            self.assertEqual((r.hit, r.body, r.field("X-A")),
                             (True, body_of("/%d" % i), "/%d" % i))
        self.assertEqual(len(o.requests), 20)
        self.assertEqual({line.code for line in self.p.access_log(40)}, {"TCP_MISS", "TCP_HIT"})

    def test_a_restart_after_a_kill_is_warm(self):
        o = self.origin(lambda q: storable(body_of(q.target)))
        self.proxy()
        for i in range(20):
            self.get(self.p, o.url("/%d" % i))
        self.written(20)
        self.restart(kill=True)
        self.assertIn("from the records themselves", self.p.cache_log())
        for i in range(20):
            r = self.get(self.p, o.url("/%d" % i))
            self.assertEqual((r.hit, r.body), (True, body_of("/%d" % i)))

    def codes_of_hits(self, n_bytes):
        """What the log says of four hits after a restart, in the order of the alphabet: of two workers
        each has its own."""
        o = self.origin(storable(pattern(n_bytes)))
        self.proxy()
        self.get(self.p, o.url("/"))
        self.restart()
        for _ in range(4):
            r = self.get(self.p, o.url("/"))
            self.assertTrue(r.hit and r.body == pattern(n_bytes))
        return sorted(line.code for line in self.p.access_log(5))[:4]

    def test_only_what_is_read_again_comes_from_disk_into_memory(self):
        self.assertEqual(self.codes_of_hits(5000),
                         ["TCP_HIT", "TCP_HIT", "TCP_MEM_HIT", "TCP_MEM_HIT"])

    def test_what_is_sent_without_a_copy_stays_where_it_is(self):
        self.assertEqual(self.codes_of_hits(200_000), 4 * ["TCP_HIT"])

    def test_age_goes_on_while_the_proxy_does_not_run(self):
        """RFC 9111 4.2.3."""
        o = self.origin(storable(b"x", "Age: 10", seconds=600))
        self.proxy()
        self.get(self.p, o.url("/"))
        self.restart()
        time.sleep(1.1)
        self.assertIn(int(self.get(self.p, o.url("/")).field("Age")), range(11, 20))

    def test_what_ran_out_is_validated(self):
        o = self.origin(lambda q: reply("304 Not Modified", 'ETag: "a"', "Cache-Control: max-age=60",
                                        length=False) if q.field("If-None-Match") else
                        reply("200 OK", 'ETag: "a"', "Cache-Control: max-age=1", body=pattern(3000)))
        self.proxy()
        self.get(self.p, o.url("/"))
        self.restart()
        time.sleep(1.2)
        r = self.get(self.p, o.url("/"))
        self.assertEqual((r.status, r.body, len(o.requests)), (200, pattern(3000), 2))
        self.assertTrue(self.get(self.p, o.url("/")).hit)
        self.restart()
        self.assertTrue(self.get(self.p, o.url("/")).hit, "the new lifetime is on disk too")

    def test_variants_are_told_apart(self):
        o = self.origin(lambda q: storable(body_of(q.field("X") or "", 5000), "Vary: X"))
        self.proxy()
        for x in "123":
            self.get(self.p, o.url("/"), "X: " + x)
        self.restart()
        for x in "321":
            r = self.get(self.p, o.url("/"), "X: " + x)
            self.assertEqual((r.hit, r.body), (True, body_of(x, 5000)))
        self.assertFalse(self.get(self.p, o.url("/"), "X: 4").hit)

    def test_ranges_and_head_and_conditions_are_answered_from_disk(self):
        o = self.origin(storable(pattern(500_000), 'ETag: "a"'))
        self.proxy()
        self.get(self.p, o.url("/"))
        self.restart()
        r = self.get(self.p, o.url("/"), "Range: bytes=300000-300099")
        self.assertEqual((r.status, r.body), (206, pattern(500_000)[300_000:300_100]))
        self.restart()
        self.assertEqual(self.get(self.p, o.url("/"), 'If-None-Match: "a"').status, 304)
        self.restart()
        r = self.get(self.p, o.url("/"), method="HEAD")
        self.assertEqual((r.status, r.field("Content-Length"), r.hit), (200, "500000", True))
        self.assertEqual(len(o.requests), 1)

    def test_a_part_is_there_after_a_restart_and_is_completed(self):
        """RFC 9111 3.3: what came before a download broke off is asked for no more."""
        body = pattern(600_000)
        head = reply("200 OK", 'ETag: "a"', "Cache-Control: max-age=60", "Content-Length: 600000")

        def answer(q):
            wanted = re.match(r"bytes=(\d+)-$", q.field("Range") or "")
            if not wanted:
                return (head, body[:400_000], harness.CLOSE)
            at = int(wanted.group(1))
            return reply("206 Partial Content", 'ETag: "a"', "Cache-Control: max-age=60",
                         "Content-Range: bytes %d-599999/600000" % at, body=body[at:])
        o = self.origin(answer)
        self.proxy()
        with self.assertRaises(harness.ProtocolError):
            self.get(self.p, o.url("/"))
        for kill in (False, True):
            wait_for(lambda: self.storedir("Objects") >= 1, "the part to be written")
            self.restart(kill)
            r = self.get(self.p, o.url("/"), "Range: bytes=100000-100009")
            self.assertEqual((r.status, r.body), (206, body[100_000:100_010]))
            self.assertEqual(len(o.requests), 1)
        self.restart()
        self.assertTrue(self.get(self.p, o.url("/")).body == body)
        self.assertEqual(o.requests[-1].field("Range"), "bytes=400000-")

    def test_objects_larger_than_memory_keeps_pass_from_disk(self):
        body = pattern(3 << 20)
        o = self.origin(storable(body))
        self.proxy()
        self.get(self.p, o.url("/"))
        self.written(1)
        self.p.stop()
        self.p = self.cuttle("cache_dir ufs %s 64" % self.folder, BIG, "cache_mem 8 MB")
        self.wait_ready()
        r = self.get(self.p, o.url("/"))
        self.assertEqual((r.hit, r.body == body), (True, True))
        r = self.get(self.p, o.url("/"), "Range: bytes=2500000-2500099")
        self.assertEqual((r.hit, r.body), (True, body[2_500_000:2_500_100]))
        self.assertEqual(len(o.requests), 1)


class Gone(OnDisk):
    """What is no longer to be had does not come back."""
    def fill(self):
        self.o = self.origin(lambda q: storable(body_of(q.target)) if q.method == "GET" else reply())
        self.proxy("acl purge method PURGE", "http_access allow purge")
        for i in range(4):
            self.get(self.p, self.o.url("/%d" % i))
        self.written(4)

    def test_after_a_purge(self):
        for kill in (False, True):
            self.fill()
            self.assertEqual(self.get(self.p, self.o.url("/1"), method="PURGE").status, 200)
            self.assertFalse(self.get(self.p, self.o.url("/1"), "Cache-Control: only-if-cached").hit)
            time.sleep(0.3)
            self.restart(kill)
            for i in range(4):
                r = self.get(self.p, self.o.url("/%d" % i), "Cache-Control: only-if-cached")
                self.assertEqual(r.status, 504 if i == 1 else 200, (kill, i))
            self.p.stop()

    def test_a_purge_of_what_is_on_disk_alone(self):
        self.fill()
        self.restart()
        self.assertEqual(self.get(self.p, self.o.url("/1"), method="PURGE").status, 200)
        self.assertEqual(self.get(self.p, self.o.url("/9"), method="PURGE").status, 404)
        self.assertFalse(self.get(self.p, self.o.url("/1")).hit)

    def test_after_an_unsafe_method(self):
        self.fill()
        self.restart()
        self.get(self.p, self.o.url("/1"), method="POST", body=b"x")
        self.assertFalse(self.get(self.p, self.o.url("/1")).hit)
        self.assertTrue(self.get(self.p, self.o.url("/2")).hit)

    def test_a_newer_version_takes_its_place(self):
        n = [0]

        def answer(q):
            n[0] += 1
            return storable(pattern(9000, n[0]))
        o = self.origin(answer)
        self.proxy()
        self.get(self.p, o.url("/"))
        self.get(self.p, o.url("/"), "Cache-Control: no-cache")
        self.written(2)
        for kill in (True, False):
            self.restart(kill)
            self.assertEqual(self.get(self.p, o.url("/")).body, pattern(9000, 2))

    def test_a_newer_one_that_may_not_be_stored_takes_it_away(self):
        o = self.origin([storable(b"old"), reply("200 OK", "Cache-Control: no-store", body=b"new"),
                         storable(b"newer")])
        self.proxy()
        self.get(self.p, o.url("/"))
        self.written(1)
        self.get(self.p, o.url("/"), "Cache-Control: max-age=0")
        self.restart()
        self.assertEqual(self.get(self.p, o.url("/")).body, b"newer")


class Swept(OnDisk):
    """More than one object at once, by PURGE of the proxy's own pages."""
    ALLOWED = ("acl PURGE method PURGE", "http_access allow PURGE localhost", "http_access allow localhost")

    def fill(self):
        self.o = self.origin(lambda q: storable(body_of(q.target)))
        self.proxy(*self.ALLOWED)
        for i in range(10):
            for folder in "ab":
                self.get(self.p, self.o.url("/%s/%d" % (folder, i)))
        self.written(20)

    def sweep(self, page):
        return self.get(self.p, "http://%s:%d/squid-internal-mgr/%s" % (*self.p.address, page),
                        method="PURGE")

    def hits(self, folder):
        return sum(self.get(self.p, self.o.url("/%s/%d" % (folder, i)), "Cache-Control: only-if-cached").status
                   == 200 for i in range(10))

    def test_a_prefix_is_gone_from_memory_and_disk_and_stays_so(self):
        for kill in (False, True):
            self.folder += "-"
            self.fill()
            r = self.sweep("purge?prefix=" + self.o.url("/a/"))
            self.assertEqual((r.status, r.body), (200, b"10 in memory purged, those on disk follow\n"))
            self.assertEqual((self.hits("a"), self.hits("b")), (0, 10))
            wait_for(lambda: "10 objects purged that start with" in self.p.cache_log(), "the disk to follow")
            self.restart(kill)
            self.assertEqual((self.hits("a"), self.hits("b")), (0, 10))
            self.p.stop()

    def test_a_prefix_that_is_on_disk_alone_is_gone_too(self):
        self.fill()
        self.restart()
        self.assertEqual(self.sweep("purge?prefix=" + self.o.url("/b")).body,
                         b"0 in memory purged, those on disk follow\n")
        self.assertEqual((self.hits("a"), self.hits("b")), (10, 0))

    def test_everything_is_cleared_at_once_and_stays_so(self):
        for kill in (False, True):
            self.folder += "-"
            self.fill()
            self.assertEqual(self.sweep("clear").status, 200)
            self.assertEqual((self.hits("a"), self.hits("b")), (0, 0))
            self.restart(kill)
            self.assertEqual((self.hits("a"), self.hits("b")), (0, 0))
            self.get(self.p, self.o.url("/a/1"))
            self.assertEqual(self.hits("a"), 1)
            self.p.stop()

    def test_whoever_may_not_purge_may_not_sweep(self):
        self.ALLOWED = ("http_access allow localhost",)
        self.fill()
        for page in ("clear", "purge?prefix=" + self.o.url("/a/")):
            self.assertEqual(self.sweep(page).status, 403)
        self.assertEqual((self.hits("a"), self.hits("b")), (10, 10))

    def test_a_page_that_is_not_there_sweeps_nothing(self):
        self.fill()
        for page in ("purge", "purge?prefix=", "all"):
            self.assertEqual(self.sweep(page).status, 404)
        self.assertEqual((self.hits("a"), self.hits("b")), (10, 10))


class Replaced(OnDisk):
    def test_it_goes_round_and_what_is_used_stays(self):
        o = self.origin(lambda q: storable(body_of(q.target, 100_000)))
        self.proxy("cache_mem 8 MB", megabytes=16)
        for i in range(300):
            self.get(self.p, o.url("/%d" % i))
            if i % 10 == 0:
                self.get(self.p, o.url("/0"))
        wait_for(lambda: self.storedir("Objects written") + self.storedir(
            "Objects not written (disk too slow)") >= 300, "all to be written")
        self.assertLessEqual(self.storedir("Objects, bytes"), 16 << 20)
        self.assertLess(os.path.getsize(self.folder + "/cuttle.store"), (16 << 20) + 1)
        hits = 0
        for i in range(299, -1, -1):
            r = self.get(self.p, o.url("/%d" % i))
            self.assertTrue(r.body == body_of("/%d" % i, 100_000), i)
            hits += r.hit
        self.assertGreater(hits, 80)

    def test_sizes_may_be_bounded(self):
        o = self.origin(lambda q: storable(pattern(int(q.target[1:]))))
        self.proxy(options="min-size=1000 max-size=5000")
        for n in (999, 1000, 5000, 5001):
            self.get(self.p, o.url("/%d" % n))
        self.written(2)
        self.restart()
        self.assertEqual([self.get(self.p, o.url("/%d" % n)).hit for n in (999, 1000, 5000, 5001)],
                         [False, True, True, False])

    def test_a_store_that_nothing_is_put_in_still_serves(self):
        o = self.origin(lambda q: storable(body_of(q.target)))
        self.proxy()
        self.get(self.p, o.url("/old"))
        self.written(1)
        self.p.stop()
        self.proxy(options="no-store")
        self.assertTrue(self.get(self.p, o.url("/old")).hit)
        self.get(self.p, o.url("/new"))
        self.restart()
        self.assertFalse(self.get(self.p, o.url("/new")).hit)

    def test_several_folders_share_what_is_stored(self):
        o = self.origin(lambda q: storable(body_of(q.target)))
        other = self.folder + "2"
        self.proxy("cache_dir aufs %s 64 16 256" % other)
        for i in range(40):
            self.get(self.p, o.url("/%d" % i))
        self.written(1)
        counts = [int(n) for n in re.findall(r"Objects +: (\d+)", self.p.manager("storedir"))]
        self.assertEqual(len(counts), 2)
        self.restart()
        self.assertTrue(all(self.get(self.p, o.url("/%d" % i)).hit for i in range(40)))
        counts = [int(n) for n in re.findall(r"Objects +: (\d+)", self.p.manager("storedir"))]
        self.assertEqual((sum(counts), min(counts) > 5), (40, True), counts)


class Spoilt(OnDisk):
    """Whatever happens to the file: right bytes or a miss, a clear line, and no crash."""
    N = 30

    def fill(self):
        self.o = self.origin(lambda q: storable(body_of(q.target)))
        self.proxy()
        for i in range(self.N):
            self.get(self.p, self.o.url("/%d" % i))
        self.written(self.N)

    def store(self):
        return self.folder + "/cuttle.store"

    def check(self):
        hits = 0
        for i in range(self.N):
            r = self.get(self.p, self.o.url("/%d" % i))
            self.assertTrue(r.body == body_of("/%d" % i), i)
            hits += r.hit
        return hits

    def spoil(self, how, kill=True):
        self.folder += "-"         # a new one each time
        self.fill()
        self.p.kill() if kill else self.p.stop()
        how()
        os.unlink(self.p.path("cache.log"))
        self.p.start()
        self.wait_ready()
        hits = self.check()
        self.p.stop()
        return hits

    def flip(self, times, seed):
        rnd = random.Random(seed)
        with open(self.store(), "r+b") as f:
            for _ in range(times):
                at = rnd.randrange(65536, 65536 + self.N * 20_500)
                f.seek(at)
                byte = f.read(1)[0]
                f.seek(at)
                f.write(bytes([byte ^ 1 << rnd.randrange(8)]))

    def test_flipped_bits(self):
        for kill in (True, False):
            self.assertLess(self.spoil(lambda: self.flip(20, kill), kill), self.N)

    def test_flipped_bits_under_a_running_proxy(self):
        self.fill()
        self.p.stop()
        self.p.start()
        self.wait_ready()
        self.flip(40, 7)
        self.assertLess(self.check(), self.N)
        self.assertGreater(self.storedir("Records found spoilt"), 0)

    def test_flipped_bits_are_found_in_idle_time(self):
        self.fill()
        self.p.stop()
        self.flip(20, 3)
        self.p.start()
        self.wait_ready()
        wait_for(lambda: self.storedir("Records found spoilt") > 0, "idle time to find them")
        self.assertGreater(self.storedir("Bytes checked in idle time"), 0)
        self.assertIn("found in idle time", self.p.cache_log())
        self.assertLess(self.check(), self.N)

    def test_a_file_cut_short(self):
        self.assertGreater(self.spoil(lambda: os.truncate(self.store(), 65536 + 10 * 20_500)), 5)

    def test_a_file_of_zeros_and_one_of_garbage(self):
        def zeros():
            with open(self.store(), "r+b") as f:
                f.write(bytes(2 << 20))

        def garbage():
            with open(self.store(), "r+b") as f:
                f.write(random.Random(1).randbytes(2 << 20))
        for how in (zeros, garbage):
            for kill in (True, False):
                self.assertEqual(self.spoil(how, kill), 0)

    def test_a_snapshot_that_lies(self):
        def index():
            with open(self.folder + "/cuttle.index", "r+b") as f:
                f.seek(200)
                f.write(b"\xff" * 64)
        self.assertEqual(self.spoil(index, kill=False), self.N)

    def test_what_looks_like_a_record_in_a_body_is_none(self):
        """An origin sends a record as a body; a scan that meets it goes past it."""
        self.fill()
        with open(self.store(), "rb") as f:
            f.seek(65536)
            record = f.read(20_000)
        record = record[:32] + bytes(8) + record[40:]      # of another store
        sealed = bytearray(record)
        self.o.answer = lambda q: storable(bytes(sealed) * 3, "X-Planted: 1")
        for i in range(5):
            self.get(self.p, self.o.url("/planted%d" % i))
        self.written(self.N + 5)
        self.restart(kill=True)
        self.o.answer = lambda q: storable(body_of(q.target))
        self.assertEqual(self.check(), self.N)

    def test_another_version_and_a_spoilt_start_begin_empty_and_say_so(self):
        version_1 = bytes.fromhex("435554544c452d440100000000000000000000040000000007000000000000000900"
                                  "000000000000000000000000000000000000000000008b7c999c408e9f2b")
        for start, says in ((version_1, "made for another version"),
                            (b"no store at all" * 8, "is no store, or its start is spoilt")):
            def spoil():
                with open(self.store(), "r+b") as f:
                    f.write(start)
            self.folder += "-"
            self.fill()
            self.p.kill()
            spoil()
            os.unlink(self.p.path("cache.log"))
            self.p.start()
            self.wait_ready()
            self.assertIn(says + "; it starts empty", self.p.cache_log())
            self.assertEqual(self.check(), 0)
            self.p.stop()

    def test_another_size_starts_empty(self):
        self.fill()
        self.p.stop()
        self.proxy(megabytes=32)
        self.assertIn("another size", self.p.cache_log())
        self.assertEqual(self.check(), 0)

    def test_two_processes_do_not_share_a_folder(self):
        self.fill()
        first = self.p
        second = self.cuttle("cache_dir ufs %s 64" % self.folder)
        self.assertIn("another process uses it", second.cache_log())
        self.assertEqual(self.get(second, self.o.url("/1")).body, body_of("/1"))
        self.p = first
        self.assertEqual(self.check(), self.N)

    def test_a_folder_that_cannot_be_made(self):
        o = self.origin(storable(b"x"))
        p = self.cuttle("cache_dir ufs /proc/nowhere 64")
        self.assertIn("it is not used", p.cache_log())
        self.assertEqual(self.get(p, o.url("/")).body, b"x")

    def test_a_folder_that_vanishes(self):
        self.fill()
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))
        os.rmdir(self.folder)
        self.check()
        self.p.stop()
        self.p.start()
        self.wait_ready()
        self.assertEqual(self.check(), 0)


class WarmInTwoRings(Warm):
    LINES = ("cache_replacement_policy s3fifo",)


class GoneFromTwoRings(Gone):
    LINES = ("cache_replacement_policy s3fifo",)


class AnotherPolicy(OnDisk):
    def test_what_is_stored_stays(self):
        o = self.origin(lambda q: storable(body_of(q.target)))
        for policy, kill in (("s3fifo", False), ("lru", True), ("s3fifo", True), ("lru", False)):
            self.LINES = ("cache_replacement_policy " + policy,)
            self.proxy()
            self.assertIn(": " + policy, self.p.manager("storedir"))
            for i in range(20):
                self.assertTrue(self.get(self.p, o.url("/%d" % i)).body == body_of("/%d" % i))
            if policy == "s3fifo" and not kill:
                self.written(20)
            self.p.kill() if kill else self.p.stop()
        self.assertEqual(len(o.requests), 20)

    def test_heap_names_are_mapped_with_a_note(self):
        self.LINES = ("cache_replacement_policy heap LFUDA", "memory_replacement_policy heap GDSF")
        self.proxy()
        self.assertIn("heap LFUDA is taken as s3fifo", self.p.read("stderr") + self.p.cache_log())
        self.assertIn(": s3fifo", self.p.manager("storedir"))


class Full(OnDisk):
    def test_a_full_disk_costs_no_answer(self):
        """4 MB of room for a store that was promised 64; and then there is more."""
        top = os.path.dirname(self.folder)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", top],
                          stderr=subprocess.DEVNULL).returncode:
            self.skipTest("a file system of 4 MB cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", top], check=True)
        o = self.origin(lambda q: storable(body_of(q.target, 300_000)))
        self.proxy("cache_mem 8 MB")
        for i in 2 * tuple(range(50)):
            self.assertTrue(self.get(self.p, o.url("/%d" % i)).body == body_of("/%d" % i, 300_000))
        wait_for(lambda: self.storedir("Faults of writing") > 0, "the disk to be full")
        self.assertLess(self.p.cache_log().count("No space"), 4)
        subprocess.run(["mount", "-o", "remount,size=64m", "none", top], check=True)
        time.sleep(1.2)
        before = self.storedir("Objects written")
        for i in range(50, 60):
            self.get(self.p, o.url("/%d" % i))
        self.written(before + 10)
        self.restart()
        hits = 0
        for i in range(60):
            r = self.get(self.p, o.url("/%d" % i))
            self.assertTrue(r.body == body_of("/%d" % i, 300_000), i)
            hits += r.hit
        self.assertGreaterEqual(hits, 10)


@functools.lru_cache(4096)
def crash_body(target):
    """Small ones in one record, some in pieces, and some that memory does not keep."""
    n = int(target[1:])
    size = 1_300_000 if n % 97 == 0 else 200_000 if n % 23 == 0 else 3000 + len(target) * 9000
    return body_of(target, size)


class Crashes(OnDisk):
    ROUNDS = 6

    def test_a_kill_at_any_moment_never_gives_a_wrong_byte(self):
        """Load, a kill, a restart; everything is asked for and compared."""
        o = self.origin(lambda q: storable(crash_body(q.target)))
        self.proxy("cache_mem 8 MB", megabytes=8)
        rnd = random.Random(3)
        hits = 0
        for round_ in range(int(os.environ.get("CUTTLE_ROUNDS", self.ROUNDS))):
            stop = threading.Event()

            def load(seed):
                mine = random.Random(seed)
                while not stop.is_set():
                    try:
                        self.get(self.p, o.url("/%d" % mine.randrange(2000)))
                    except (OSError, AssertionError):
                        return
            loads = [threading.Thread(target=load, args=(round_ * 4 + i,)) for i in range(4)]
            for t in loads:
                t.start()
            time.sleep(rnd.uniform(0.05, 0.8))
            self.p.kill()
            stop.set()
            for t in loads:
                t.join()
            self.p.start()
            wait_for(lambda: "objects known" in self.p.cache_log(), "the store to be known")
            for i in range(0, 2000, 7):
                r = self.get(self.p, o.url("/%d" % i), "Cache-Control: only-if-cached")
                if r.status == 200:
                    hits += 1
                    self.assertTrue(r.body == crash_body("/%d" % i), i)
        self.assertGreater(hits, 0)


class CrashesInTwoRings(Crashes):
    ROUNDS = 3
    LINES = ("cache_replacement_policy s3fifo",)


if __name__ == "__main__":
    harness.main()
