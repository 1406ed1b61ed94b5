#!/usr/bin/env python3
"""Real clients through a real cuttle: browser, curl, wget, apt, git, WebSocket. CUTTLE names the program."""
import base64
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))
sys.dont_write_bytecode = True
from harness import Cuttle, wait_for                                            # noqa: E402
from web import Web, large, large_sha256                                        # noqa: E402

MB = 1 << 20
FRESH = {"Cache-Control": "max-age=3600"}
BIG = ("cache_mem 512 MB", "maximum_object_size 300 MB", "maximum_object_size_in_memory 300 MB")


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for piece in iter(lambda: f.read(MB), b""):
            digest.update(piece)
    return digest.hexdigest()


def pss_kb(pid):
    with open("/proc/%d/smaps_rollup" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))


class Real(unittest.TestCase):
    conf = ()

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cuttle-real-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.p = Cuttle(*self.conf)
        self.addCleanup(self.p.stop)
        self.proxy = "http://%s:%d" % self.p.address
        self.env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        self.env.update(http_proxy=self.proxy, https_proxy=self.proxy, no_proxy="", HOME=self.folder)

    def web(self, pages=None, **options):
        w = Web(pages, **options)
        self.addCleanup(w.close)
        return w

    def run_client(self, *words, timeout_s=120, **options):
        got = subprocess.run(words, env=self.env, cwd=self.folder, timeout=timeout_s, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, **options)
        self.assertEqual(got.returncode, 0, "%s\n%s" % (words, got.stdout.decode(errors="replace")[-2000:]))
        return got.stdout.decode(errors="replace")

    def file(self, name):
        return os.path.join(self.folder, name)


class Downloads(Real):
    conf = BIG

    def test_curl_gets_the_same_bytes_twice_the_second_time_from_the_store(self):
        w = self.web({"/a": (large(20 * MB), "application/octet-stream", FRESH)})
        for _ in range(2):
            self.run_client("curl", "-sS", "-f", "-o", "a", w.base + "/a")
            self.assertEqual(sha256_of(self.file("a")), large_sha256(20 * MB))
        self.assertEqual(w.asked(), 1)

    def test_curl_and_wget_resume_a_download(self):
        for pages in (FRESH, {"Cache-Control": "no-store"}):
            w = self.web({"/a": (large(5 * MB), "application/octet-stream", pages)})
            for client in (("curl", "-sS", "-f", "-C", "-", "-o", "a"), ("wget", "-q", "-c", "-O", "a")):
                with open(self.file("a"), "wb") as f:
                    f.write(large(5 * MB)(0, MB + 4711))
                self.run_client(*client, w.base + "/a")
                self.assertEqual(sha256_of(self.file("a")), large_sha256(5 * MB), client)

    def test_http_1_0_gets_everything_whole(self):
        w = self.web({"/a": (large(3 * MB), "application/octet-stream", FRESH)})
        for _ in range(2):
            self.run_client("curl", "-sS", "-f", "-0", "-o", "a", w.base + "/a")
            self.assertEqual(sha256_of(self.file("a")), large_sha256(3 * MB))

    def test_twenty_in_parallel(self):
        w = self.web({"/%d" % i: (large(MB + i), "application/octet-stream", FRESH) for i in range(20)})
        words = ["curl", "-sS", "-f", "-Z", "--parallel-max", "20"]
        for i in range(20):
            words += ["-o", "f%d" % i, w.base + "/%d" % i]
        for _ in range(2):
            self.run_client(*words)
            for i in range(20):
                self.assertEqual(sha256_of(self.file("f%d" % i)), large_sha256(MB + i))
        self.assertEqual(w.asked(), 20)

    def test_a_hundred_downloads_of_one_large_object_reach_the_origin_once(self):
        w = self.web({"/big": (large(200 * MB), "application/octet-stream", FRESH)})
        sums, size = [], 200 * MB

        def fetch(i):
            got = subprocess.run("curl -sS -f %s/big | sha256sum" % w.base, shell=True, env=self.env, stdout=subprocess.PIPE, timeout=300)
            sums.append(got.stdout.split()[0].decode())
        threads = [threading.Thread(target=fetch, args=(i,)) for i in range(100)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(set(sums), {large_sha256(size)})
        self.assertEqual(len(sums), 100)
        self.assertEqual(w.asked(), 1)
        print("    100 x 200 MB, one fetch; PSS %d MB" % (pss_kb(self.p.pid) // 1024))


class SlowClients(Real):
    def test_a_slow_client_of_a_gigabyte_costs_less_than_a_megabyte(self):
        w = self.web({"/g": (large(1024 * MB), "application/octet-stream", {"Cache-Control": "no-store"})})
        self.run_client("curl", "-sS", "-o", "/dev/null", "-r", "0-999999", w.base + "/g")
        before = pss_kb(self.p.pid)
        slow = []
        for _ in range(20):
            s = socket.create_connection(self.p.address)
            s.sendall(("GET %s/g HTTP/1.1\r\nHost: x:%d\r\n\r\n" % (w.base, w.port)).encode())
            slow.append(s)
        for _ in range(10):
            time.sleep(0.2)
            for s in slow:
                s.recv(1000)
        each = (pss_kb(self.p.pid) - before) / len(slow)
        for s in slow:
            s.close()
        print("    slow client of 1 GB: %.0f KB each" % each)
        self.assertLess(each, 1024)


class Uploads(Real):
    def test_a_hundred_megabytes_by_put_post_and_chunks(self):
        w = self.web()
        with open(self.file("up"), "wb") as f:
            for i in range(400):
                f.write(large(100 * MB)(i << 18, 1 << 18))
        want = "%s %d\n" % (large_sha256(100 * MB), 100 * MB)
        for words in (("-T", "up"), ("-X", "POST", "-T", "up", "-H", "Transfer-Encoding: chunked"),
                      ("--data-binary", "@up", "-H", "Expect: 100-continue"), ("-0", "-T", "up", "-H", "Expect:")):
            self.assertEqual(self.run_client("curl", "-sS", "-f", *words, w.base + "/up"), want, words)
        self.assertEqual(self.run_client("wget", "-q", "-O", "-", "--post-file=up", w.base + "/up"), want)


class Packages(Real):
    def repository(self):
        """One package, an index, no signature."""
        top = self.file("repo")
        os.makedirs(top + "/pkg/DEBIAN")
        os.makedirs(top + "/pkg/usr/share/cuttle-test")
        with open(top + "/pkg/DEBIAN/control", "w") as f:
            f.write("Package: cuttle-test\nVersion: 1.0\nArchitecture: all\nMaintainer: Nobody <nobody@example.com>\nDescription: a test\n")
        with open(top + "/pkg/usr/share/cuttle-test/data", "wb") as f:
            f.write(os.urandom(200_000))
        self.run_client("dpkg-deb", "--build", top + "/pkg", top + "/cuttle-test_1.0_all.deb")
        shutil.rmtree(top + "/pkg")
        for command, name in ("apt-ftparchive packages .", "Packages"), ("apt-ftparchive release .", "Release"):
            text = subprocess.run(command.split(), cwd=top, stdout=subprocess.PIPE, check=True).stdout
            with open(os.path.join(top, name), "wb") as f:
                f.write(text)
        pages = {}
        for name in os.listdir(top):
            with open(os.path.join(top, name), "rb") as f:
                pages["/" + name] = (f.read(), "application/octet-stream", {"Cache-Control": "max-age=60"})
        return pages

    def apt(self, root, *words):
        for d in ("etc/apt/sources.list.d", "etc/apt/preferences.d", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial",
                  "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log/apt"):
            os.makedirs(os.path.join(root, d), exist_ok=True)
        status = os.path.join(root, "var/lib/dpkg/status")
        open(status, "a").close()
        return self.run_client("apt-get", "-q", "-y", "-o", "Dir=" + root, "-o", "Dir::State::status=" + status,
                               "-o", "Acquire::http::Proxy=" + self.proxy, "-o", "Acquire::http::Proxy::127.0.0.1=" + self.proxy,
                               "-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=1", "-o", "Dpkg::Options::=--root=" + root,
                               "-o", "Dpkg::Options::=--force-not-root", "-o", "Dpkg::Options::=--log=/dev/null", "-o", "Dir::Log=" + root, *words)

    def test_apt_updates_and_installs_and_the_next_machine_is_served_from_the_store(self):
        w = self.web(self.repository())
        for machine in ("one", "two"):
            root = self.file(machine)
            os.makedirs(root + "/etc/apt")
            with open(root + "/etc/apt/sources.list", "w") as f:
                f.write("deb [trusted=yes] %s ./\n" % w.base)
            self.apt(root, "update")
            self.apt(root, "install", "cuttle-test")
            self.assertTrue(os.path.exists(root + "/usr/share/cuttle-test/data"))
        self.assertEqual(sum(n for path, n in w.counts.items() if path.endswith(".deb")), 1)
        self.assertTrue([line for line in self.p.access_log(6) if line.text.count(".deb") and "HIT" in line.code])


class Git(Real):
    def test_git_clones_over_smart_and_dumb_http(self):
        work, bare = self.file("work"), self.file("repos/r.git")
        git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-C", work)
        os.makedirs(work)
        self.run_client(*git, "init", "-q")
        for i in range(20):
            with open(os.path.join(work, "f%d" % i), "wb") as f:
                f.write(os.urandom(50_000))
            self.run_client(*git, "add", ".")
            self.run_client(*git, "commit", "-q", "-m", "c%d" % i)
        self.run_client("git", "clone", "-q", "--bare", work, bare)
        self.run_client("git", "-C", bare, "update-server-info")
        smart = self.web(git_root=self.file("repos"))
        self.run_client("git", "clone", "-q", smart.base + "/git/r.git", "smart")
        pages = {}
        for folder, _, names in os.walk(bare):
            for name in names:
                with open(os.path.join(folder, name), "rb") as f:
                    pages["/r.git/" + os.path.relpath(os.path.join(folder, name), bare)] = (f.read(), "application/octet-stream", {})
        dumb = self.web(pages)
        self.run_client("git", "clone", "-q", dumb.base + "/r.git", "dumb")
        for name in "smart", "dumb":
            self.assertEqual(self.run_client("git", "-C", self.file(name), "log", "--oneline").count("\n"), 20)


class WebSockets(Real):
    def talk(self, s, path, host):
        key = base64.b64encode(os.urandom(16)).decode()
        s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: %s\r\n"
                   "Sec-WebSocket-Version: 13\r\n\r\n" % (path, host, key)).encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += s.recv(1)
        self.assertTrue(head.startswith(b"HTTP/1.1 101"), head)
        want = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
        self.assertIn(want, head)
        for i in range(100):
            text = b"message %d" % i
            mask = os.urandom(4)
            s.sendall(bytes([0x81, 0x80 | len(text)]) + mask + bytes(c ^ mask[k % 4] for k, c in enumerate(text)))
            got = b""
            while len(got) < len(text) + 2:
                got += s.recv(100)
            self.assertEqual(got[2:], text)
        s.close()

    def test_an_echo_through_upgrade_and_through_connect(self):
        w = self.web()
        host = "127.0.0.1:%d" % w.port
        s = socket.create_connection(self.p.address, timeout=10)
        self.talk(s, "http://%s/echo" % host, host)
        s = socket.create_connection(self.p.address, timeout=10)
        s.sendall(("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host)).encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += s.recv(1)
        self.assertTrue(head.startswith(b"HTTP/1.1 200"), head)
        self.talk(s, "/echo", host)
        self.assertEqual({line.status for line in self.p.access_log(2)}, {101, 200})


class Browser(Real):
    PARTS = 60

    def pages(self):
        script = ("let n=0,bad=0;function done(){if(n+bad==%d)document.title='loaded '+n+' bad '+bad;}"
                  "for(const e of document.querySelectorAll('img')){if(e.complete){e.naturalWidth?n++:bad++;done();}"
                  "else{e.onload=()=>{n++;done()};e.onerror=()=>{bad++;done()}}}" % self.PARTS)
        pixel = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
        page = "<!DOCTYPE html><title>loading</title>" + "".join('<img src="/p%d.gif">' % i for i in range(self.PARTS))
        pages = {"/": ((page + "<script>%s</script>" % script).encode(), "text/html", FRESH)}
        pages.update({"/p%d.gif" % i: (pixel + b"\0" * (i * 700), "image/gif", FRESH) for i in range(self.PARTS)})
        return pages

    def load(self, url):
        profile = tempfile.mkdtemp(dir=self.folder)
        out = self.run_client("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                              "--disable-background-networking", "--disable-component-update", "--disable-sync",
                              "--user-data-dir=" + profile, "--proxy-server=" + self.proxy, "--proxy-bypass-list=<-loopback>",
                              "--ignore-certificate-errors", "--virtual-time-budget=20000", "--dump-dom", url)
        self.assertIn("loaded %d bad 0" % self.PARTS, out)

    def test_a_page_of_sixty_parts_over_http_the_second_time_from_the_store(self):
        w = self.web(self.pages())
        self.load(w.base + "/")
        asked = w.asked()
        self.load(w.base + "/")
        self.assertGreaterEqual(asked, self.PARTS + 1)
        self.assertLessEqual(w.asked() - asked, 1)       # /favicon.ico has no lifetime
        hits = [line for line in self.p.access_log(2 * self.PARTS + 2) if "HIT" in line.code and ".gif" in line.text]
        self.assertEqual(len(hits), self.PARTS)

    def test_the_same_over_https(self):
        pem = self.file("pem")
        self.run_client("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                        "-keyout", self.file("key"), "-out", self.file("crt"))
        with open(pem, "w") as f:
            f.write(open(self.file("key")).read() + open(self.file("crt")).read())
        w = self.web(self.pages(), certificate=pem)
        for _ in range(2):
            self.load(w.base + "/")
        wait_for(lambda: any(line.code == "TCP_TUNNEL" and line.status == 200 for line in self.p.access_log(1)), "a tunnel in the log")


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    bad = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun - bad, bad))
    sys.exit(1 if bad else 0)
