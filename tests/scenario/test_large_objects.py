"""Bodies that memory does not keep: written to the disk as they come, and sent from there."""
import os
import random
import re
import socket
import threading
import time

import harness
from harness import CLOSE, Client, ProtocolError, Scenario, chunked, pattern, reply
from harness import storable, wait_for

MB = 1 << 20
BODY = pattern(10 * MB + 12345)
MEMORY = "cache_mem 8 MB"           # so that a body above 1 MB is too large for it
TAGGED = ('ETag: "a"',)


def other(i):
    """Another body, quickly made."""
    return b"%08d" % i * (3 * MB // 8)


class Large(Scenario):
    def setUp(self):
        self.folder = os.path.join(self.temporary_folder(), "store")

    def proxy(self, *lines, megabytes=128):
        self.p = self.cuttle("cache_dir ufs %s %d 16 256" % (self.folder, megabytes),
                             "maximum_object_size 64 MB", MEMORY, *lines)
        self.wait_ready()

    def wait_ready(self):
        wait_for(lambda: "objects known" in self.p.cache_log(), "the store to be known")

    def storedir(self, name):
        text = self.p.manager("storedir")
        return float(re.search(re.escape(name) + r"\s*: ([0-9.]+)", text).group(1))

    def written(self, n):
        wait_for(lambda: self.storedir("Objects written") >= n, "%d objects to be written" % n)

    def restart(self, kill=False):
        self.p.kill() if kill else self.p.stop()
        os.unlink(self.p.path("cache.log"))
        self.p.start()
        self.wait_ready()

    def check(self, url, body=BODY, hit=True, *fields):
        r = self.get(self.p, url, *fields)
        self.assertEqual((r.status in (200, 206), r.hit, len(r.body)), (True, hit, len(body)))
        self.assertTrue(r.body == body)
        return r


class Stored(Large):
    def test_a_body_larger_than_memory_keeps_is_on_disk_when_it_has_come(self):
        o = self.origin(storable(BODY))
        self.proxy()
        self.assertIn("stored", self.check(o.url("/"), hit=False).field("Cache-Status"))
        self.written(1)
        for _ in range(3):
            self.check(o.url("/"))
        for kill in (False, True):
            self.restart(kill)
            self.check(o.url("/"))
        self.assertEqual(len(o.requests), 1)
        self.assertEqual(self.storedir("Objects"), 1, "pieces are no objects")

    def test_a_body_of_unknown_length_is_stored_too(self):
        pieces = [BODY[i:i + 50_000] for i in range(0, len(BODY), 50_000)]
        o = self.origin(chunked(*pieces, fields=("Cache-Control: max-age=60",)))
        self.proxy()
        self.check(o.url("/"), hit=False)
        self.written(1)
        self.check(o.url("/"))
        self.restart()
        self.check(o.url("/"))

    def test_ranges_inside_it_are_answered_from_disk(self):
        o = self.origin(storable(BODY))
        self.proxy()
        self.check(o.url("/"), hit=False)
        self.written(1)
        for first, last in ((0, 0), (1, 65536), (MB - 1, MB), (5 * MB + 7, 7 * MB),
                            (len(BODY) - 5, len(BODY) - 1)):
            r = self.check(o.url("/"), BODY[first:last + 1], True,
                           "Range: bytes=%d-%d" % (first, last))
            self.assertEqual(r.field("Content-Range"),
                             "bytes %d-%d/%d" % (first, last, len(BODY)))
        self.check(o.url("/"), BODY[-1000:], True, "Range: bytes=-1000")
        self.check(o.url("/"), BODY[9 * MB:], True, "Range: bytes=%d-" % (9 * MB))
        self.check(o.url("/"), BODY, True, "Range: bytes=3-4,%d-%d" % (8 * MB, 8 * MB + 1))
        r = self.get(self.p, o.url("/"), method="HEAD")
        self.assertEqual((r.hit, r.field("Content-Length")), (True, str(len(BODY))))
        self.assertEqual(len(o.requests), 1)

    def test_one_that_breaks_off_is_not_stored(self):
        head = reply("200 OK", "Cache-Control: max-age=60", "Content-Length: %d" % len(BODY))
        o = self.origin([(head, BODY[:5 * MB], CLOSE), storable(BODY)])
        self.proxy()
        with self.assertRaises(ProtocolError):
            self.get(self.p, o.url("/"))
        self.check(o.url("/"), hit=False)
        self.written(1)
        self.check(o.url("/"))

    def test_a_client_that_leaves_early_does_not_stop_what_quick_abort_lets_go_on(self):
        o = self.origin(lambda q: (storable(BODY)[:6 * MB], 0.3, storable(BODY)[6 * MB:]))
        self.proxy("quick_abort_min -1 KB")
        with Client(self.p.address) as c:
            c.request("GET", o.url("/"))
            c.read_response_head()
        self.written(1)
        self.check(o.url("/"))
        self.assertEqual(len(o.requests), 1)

    def test_one_above_maximum_object_size_is_not_stored(self):
        o = self.origin(storable(BODY))
        self.proxy("maximum_object_size 5 MB")
        for _ in range(2):
            self.check(o.url("/"), hit=False)
        self.assertEqual(self.storedir("Objects written"), 0)

    def test_a_newer_version_takes_its_place(self):
        newer = pattern(9 * MB, 3)
        o = self.origin([storable(BODY), storable(newer)])
        self.proxy()
        self.check(o.url("/"), hit=False)
        self.written(1)
        self.check(o.url("/"), newer, False, "Cache-Control: no-cache")
        self.written(2)
        self.check(o.url("/"), newer)
        self.restart(kill=True)
        self.check(o.url("/"), newer)

    def test_a_purge_takes_it_away_for_good(self):
        o = self.origin(storable(BODY))
        self.proxy("acl PURGE method PURGE", "http_access allow PURGE")
        self.check(o.url("/"), hit=False)
        self.written(1)
        self.assertEqual(self.get(self.p, o.url("/"), method="PURGE").status, 200)
        self.check(o.url("/"), hit=False)


class Freshened(Large):
    def origin_that_validates(self, body, *more):
        def answer(q):
            if q.field("If-None-Match"):
                return reply("304 Not Modified", *TAGGED, "Cache-Control: max-age=60", *more, length=False)
            return reply("200 OK", *TAGGED, "Cache-Control: max-age=1", body=body)
        return self.origin(answer)

    def bytes_a_validation_writes(self, body, *more):
        o = self.origin_that_validates(body, *more)
        self.proxy()
        self.check(o.url("/"), body, False)
        self.written(1)
        time.sleep(1.2)
        before = self.storedir("Bytes written")
        self.assertTrue(self.get(self.p, o.url("/")).body == body)
        wait_for(lambda: self.storedir("Bytes written") > before, "the new head to be written")
        written = self.storedir("Bytes written") - before
        for kill in (False, True):
            self.restart(kill)
            r = self.check(o.url("/"), body)
            for field in more:
                self.assertEqual(r.field(field.split(":")[0]), field.split(": ")[1])
        self.assertEqual(len(o.requests), 2, "the new lifetime is on disk")
        return written

    def test_a_304_leaves_a_large_body_where_it_is(self):
        self.assertLess(self.bytes_a_validation_writes(BODY), 1024)

    def test_a_304_leaves_a_small_body_where_it_is(self):
        self.assertLess(self.bytes_a_validation_writes(pattern(20_000)), 1024)

    def test_a_head_that_has_grown_finds_another_place(self):
        self.assertLess(self.bytes_a_validation_writes(BODY, "X-Long: " + "x" * 500), 2048)

    def test_a_small_one_whose_head_has_grown_is_written_again(self):
        self.assertGreater(self.bytes_a_validation_writes(pattern(20_000), "X-Long: " + "x" * 500), 20_000)


class NeverWrong(Large):
    def flip(self, at):
        with open(self.folder + "/cuttle.store", "r+b") as f:
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ 4]))

    def test_a_flipped_bit_far_in_cuts_the_response(self):
        o = self.origin(storable(BODY))
        self.proxy()
        self.check(o.url("/"), hit=False)
        self.written(1)
        self.p.stop()
        self.flip(65536 + 6 * MB)
        self.p.start()
        self.wait_ready()
        with Client(self.p.address) as c:
            c.request("GET", o.url("/"))
            c.read_response_head()
            got = bytes(c.pending)
            try:
                while True:
                    c.pending = b""
                    if not c.fill():
                        break
                    got += c.pending
            except OSError:
                pass
        self.assertGreater(len(got), MB)
        self.assertLess(len(got), len(BODY), "cut off")
        self.assertTrue(got == BODY[:len(got)], "and right as far as it goes")
        self.check(o.url("/"), hit=False)

    def slow_readers(self, url, n):
        """Each has read a different piece of it, and then stops reading."""
        out = []
        for i in range(n):
            c = Client(self.p.address)
            c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536 << i % 4)
            c.request("GET", url)
            self.assertEqual(c.read_response_head().status, 200)
            got = bytearray(c.pending)
            while len(got) < (i * MB * 3) // 4:
                c.pending = b""
                if not c.fill():
                    self.fail("cut too early")
                got += c.pending
            c.pending = b""
            out.append((c, got))
        return out

    def finish(self, c, got):
        """All that is still to come, or what came before it was cut off."""
        try:
            while len(got) < len(BODY) and c.fill():
                got += c.pending
                c.pending = b""
        except OSError:
            pass
        c.close()
        return bytes(got)

    def test_what_is_written_round_while_slow_clients_read_never_reaches_them(self):
        """Pages that are on their way out of the file are not written over under them."""
        o = self.origin(lambda q: storable(BODY if q.target == "/slow" else
                                           other(int(q.target[1:]))))
        self.proxy(megabytes=64)
        self.check(o.url("/slow"), hit=False)
        self.written(1)
        self.check(o.url("/slow"))
        slow = self.slow_readers(o.url("/slow"), 12)
        for i in range(60):                        # 180 MB through a store of 64
            self.check(o.url("/%d" % i), other(i), False)
        whole = 0
        for c, got in slow:
            got = self.finish(c, got)
            self.assertTrue(got == BODY[:len(got)], "a wrong byte")
            whole += len(got) == len(BODY)
        self.assertLessEqual(whole, 12)
        for i in range(60):
            self.assertTrue(self.get(self.p, o.url("/%d" % i)).body == other(i))

    def test_kills_in_the_middle_leave_whole_objects_or_none(self):
        o = self.origin(lambda q: storable(other(int(q.target[1:]))))
        self.proxy(megabytes=64)
        rnd = random.Random(5)
        for _ in range(4):
            threads = [threading.Thread(target=self.quietly, args=(o.url("/%d" % i),)) for i in range(8)]
            for t in threads:
                t.start()
            time.sleep(rnd.random() * 0.4)
            self.p.kill()
            for t in threads:
                t.join()
            self.p.start()
            self.wait_ready()
            for i in range(8):
                self.assertTrue(self.get(self.p, o.url("/%d" % i)).body == other(i))

    def quietly(self, url):
        try:
            self.get(self.p, url)
        except (OSError, ProtocolError):
            pass


if __name__ == "__main__":
    harness.main()
