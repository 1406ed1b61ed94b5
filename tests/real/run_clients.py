#!/usr/bin/env python3
"""Real clients through a real cuttle: browser, curl, wget, git, WebSocket, against servers
that the test makes on the loopback. CUTTLE names the program."""
import base64
import concurrent.futures
import hashlib
import os
import socket
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from real import MB, PeakMemory, Real, main, sha256_of                          # noqa: E402
from harness import Client, wait_for                                            # noqa: E402
from web import FRESH, WEBSOCKET_GUID, large, large_sha256                      # noqa: E402

BINARY = "application/octet-stream"
NEVER = {"Cache-Control": "no-store"}
BIG = ("cache_mem 512 MB", "maximum_object_size 300 MB", "maximum_object_size_in_memory 300 MB")
CURL = ("curl", "-sS", "-f")
WGET = ("wget", "-q", "-t", "1")


class Downloads(Real):
    conf = BIG

    def object(self, size, fields):
        return self.web({"/a": (large(size), BINARY, fields)})

    def test_curl_gets_the_same_bytes_twice_the_second_time_from_the_store(self):
        w = self.object(20 * MB, FRESH)
        for _ in range(2):
            self.run_client(*CURL, "-o", "a", w.base + "/a")
            self.assertEqual(sha256_of(self.file("a")), large_sha256(20 * MB))
        self.assertEqual(w.asked(), 1)
        self.assertEqual(self.outcomes("/a", 2), [("TCP_MEM_HIT", 200), ("TCP_MISS", 200)])

    def resume(self, w, *client):
        """Goes on with a file of which a part is there."""
        begun = MB + 4711
        with open(self.file("a"), "wb") as f:
            f.write(large(5 * MB)(0, begun))
        before = w.sent_bytes
        self.run_client(*client, w.base + "/a")
        self.assertEqual(sha256_of(self.file("a")), large_sha256(5 * MB), client)
        return w.sent_bytes - before, 5 * MB - begun

    def test_curl_and_wget_resume_a_download(self):
        for client in CURL + ("-C", "-", "-o", "a"), WGET + ("-c", "-O", "a"):
            sent, missing = self.resume(self.object(5 * MB, NEVER), *client)
            self.assertEqual(sent, missing, "only what is missing comes from the origin")
            self.resume(self.object(5 * MB, FRESH), *client)
        self.assertEqual([status for _, status in self.outcomes("/a", 4)], [206] * 4)

    def test_curl_and_wget_resume_from_the_store(self):
        w = self.object(5 * MB, FRESH)
        self.run_client(*CURL, "-o", "whole", w.base + "/a")
        for client in CURL + ("-C", "-", "-o", "a"), WGET + ("-c", "-O", "a"):
            self.assertEqual(self.resume(w, *client)[0], 0)
        self.assertEqual(w.asked(), 1)
        self.assertEqual(self.outcomes("/a", 3), [("TCP_MEM_HIT", 206)] * 2 + [("TCP_MISS", 200)])

    def test_http_1_0_gets_everything_whole(self):
        for fields in FRESH, dict(FRESH, **{"Transfer-Encoding": "chunked"}):
            w = self.object(3 * MB, fields)
            for _ in range(2):
                self.run_client(*CURL, "-0", "-o", "a", w.base + "/a")
                self.assertEqual(sha256_of(self.file("a")), large_sha256(3 * MB))
            self.assertEqual(w.asked(), 1)

    def test_chunks_arrive_whole(self):
        for fields in FRESH, NEVER:
            w = self.object(20 * MB, dict(fields, **{"Transfer-Encoding": "chunked"}))
            for client in CURL + ("-o", "a"), WGET + ("-O", "a"):
                self.run_client(*client, w.base + "/a")
                self.assertEqual(sha256_of(self.file("a")), large_sha256(20 * MB))

    def test_twenty_in_parallel(self):
        w = self.web({"/%d" % i: (large(MB + i), BINARY, FRESH) for i in range(20)})
        words = [*CURL, "-Z", "--parallel-max", "20"]
        for i in range(20):
            words += ["-o", "f%d" % i, w.base + "/%d" % i]
        for _ in range(2):
            self.run_client(*words)
            for i in range(20):
                self.assertEqual(sha256_of(self.file("f%d" % i)), large_sha256(MB + i))
        self.assertEqual(w.asked(), 20)

    def test_twenty_wgets_in_parallel(self):
        w = self.web({"/%d" % i: (large(MB + i), BINARY, NEVER) for i in range(20)})
        urls = "\n".join(w.base + "/%d" % i for i in range(20))
        with open(self.file("urls"), "w") as f:
            f.write(urls)
        self.run_client("xargs", "-a", "urls", "-P", "20", "-n", "1", *WGET)
        for i in range(20):
            self.assertEqual(sha256_of(self.file("%d" % i)), large_sha256(MB + i))

    def test_a_hundred_downloads_of_one_large_object_reach_the_origin_once(self):
        size = 64 * MB
        w = self.object(size, FRESH)

        def fetch(_):
            return self.run_client("sh", "-c", "curl -sS -f %s/a | sha256sum" % w.base,
                                   timeout_s=300).split()[0]
        pool = concurrent.futures.ThreadPoolExecutor(100)
        with PeakMemory(self.p.pid) as memory, pool:
            sums = list(pool.map(fetch, range(100)))
        self.assertEqual(sums, [large_sha256(size)] * 100)
        self.assertEqual(w.asked(), 1)
        print("    100 x 64 MB, one fetch: PSS grew by %d MB at most" % (memory.grown_kb >> 10))
        self.assertLess(memory.grown_kb << 10, size + 50 * MB)


class Uploads(Real):
    def setUp(self):
        super().setUp()
        with open(self.file("up"), "wb") as f:
            for i in range(400):
                f.write(large(100 * MB)(i << 18, 1 << 18))
        self.expected = "%s %d\n" % (large_sha256(100 * MB), 100 * MB)

    def test_a_hundred_megabytes_by_put_post_and_chunks(self):
        w = self.web()
        for words in (("-T", "up"), ("-X", "POST", "-T", "up", "-H", "Transfer-Encoding: chunked"),
                      ("--data-binary", "@up", "-H", "Expect: 100-continue"),
                      ("--data-binary", "@up", "-H", "Expect:"),
                      ("-0", "-T", "up", "-H", "Expect:")):
            got = self.run_client(*CURL, *words, w.base + "/up")
            self.assertEqual(got, self.expected, words)
        got = self.run_client(*WGET, "-O", "-", "--post-file=up", w.base + "/up")
        self.assertEqual(got, self.expected)

    def test_a_hundred_megabytes_each_way_over_https(self):
        w = self.web({"/a": (large(100 * MB), BINARY, FRESH)}, certificate=self.certificate())
        got = self.run_client(*CURL, "-k", "-T", "up", w.base + "/up")
        self.assertEqual(got, self.expected)
        for client in CURL + ("-k", "-o", "a"), WGET + ("--no-check-certificate", "-O", "a"):
            self.run_client(*client, w.base + "/a")
            self.assertEqual(sha256_of(self.file("a")), large_sha256(100 * MB))
        wait_for(lambda: [a.code for a in self.p.access_log()] == ["TCP_TUNNEL"] * 3, "3 tunnels")


class Git(Real):
    COMMITS = 20

    def git(self, folder, *words):
        return self.run_client("git", "-c", "user.name=t", "-c", "user.email=t@example.com",
                               "-C", self.file(folder), *words)

    def commit(self, folder, name, size):
        with open(os.path.join(self.file(folder), name), "wb") as f:
            f.write(os.urandom(size))
        self.git(folder, "add", ".")
        self.git(folder, "commit", "-q", "-m", name)

    def repository(self):
        os.makedirs(self.file("work"))
        self.git("work", "init", "-q")
        for i in range(self.COMMITS):
            self.commit("work", "f%d" % i, 50_000)
        self.run_client("git", "clone", "-q", "--bare", "work", "repos/r.git")
        self.git("repos/r.git", "update-server-info")

    def commits(self, folder):
        self.git(folder, "fsck", "--strict")
        return self.git(folder, "log", "--oneline").count("\n")

    def test_git_clones_over_dumb_http(self):
        self.repository()
        pages, bare = {}, self.file("repos/r.git")
        for folder, _, names in os.walk(bare):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as f:
                    pages["/r.git/" + os.path.relpath(path, bare)] = (f.read(), BINARY, {})
        w = self.web(pages)
        self.run_client("git", "clone", "-q", w.base + "/r.git", "dumb")
        self.assertEqual(self.commits("dumb"), self.COMMITS)

    def test_git_clones_pushes_and_pulls_over_smart_http(self):
        self.repository()
        self.git("repos/r.git", "config", "http.receivepack", "true")
        w = self.web(git_root=self.file("repos"))
        for name in "smart", "other":
            self.run_client("git", "clone", "-q", w.base + "/git/r.git", name)
        self.commit("smart", "large", 3 * MB)          # more than http.postBuffer: goes in chunks
        self.git("smart", "push", "-q")
        self.git("other", "pull", "-q")
        self.assertEqual(self.commits("other"), self.COMMITS + 1)


class WebSockets(Real):
    def talk(self, c, path, host):
        key = base64.b64encode(os.urandom(16)).decode()
        c.request("GET", path, "Host: " + host, "Upgrade: websocket", "Connection: Upgrade",
                  "Sec-WebSocket-Key: " + key, "Sec-WebSocket-Version: 13")
        r = c.read_response_head()
        self.assertEqual(r.status, 101)
        digest = hashlib.sha1((key + WEBSOCKET_GUID).encode()).digest()
        self.assertEqual(r.field("Sec-WebSocket-Accept"), base64.b64encode(digest).decode())
        for i in range(100):
            text, mask = b"message %d" % i, os.urandom(4)
            c.send(bytes([0x81, 0x80 | len(text)]) + mask
                   + bytes(b ^ mask[k % 4] for k, b in enumerate(text)))
            self.assertEqual(c.read_exactly(2 + len(text)), bytes([0x81, len(text)]) + text)
        c.close()

    def client(self):
        c = Client(self.p.address)
        self.addCleanup(c.close)
        return c

    def test_an_echo_through_upgrade_and_through_connect(self):
        host = "127.0.0.1:%d" % self.web().port
        self.talk(self.client(), "http://%s/echo" % host, host)
        c = self.client()
        c.connect_tunnel(host)
        self.talk(c, "/echo", host)
        self.assertEqual({a.status for a in self.p.access_log(2)}, {101, 200})


PIXEL = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")

WATCH_IMAGES = """
let loaded = 0, bad = 0;
function done() { if (loaded + bad == %d) document.title = 'loaded ' + loaded + ' bad ' + bad; }
for (const e of document.querySelectorAll('img')) {
    if (e.complete) { e.naturalWidth ? loaded++ : bad++; done(); continue; }
    e.onload = () => { loaded++; done() };
    e.onerror = () => { bad++; done() };
}
"""

TALK = """<!DOCTYPE html><title>talk</title><script>
const hex = b => Array.from(new Uint8Array(b), x => x.toString(16).padStart(2, '0')).join('');
const sha = async b => hex(await crypto.subtle.digest('SHA-256', b));
async function upload() {
    const body = new Uint8Array(3000000).map((_, i) => i * i);
    const said = await (await fetch('/up', { method: 'POST', body })).text();
    return said == await sha(body) + ' 3000000\\n';
}
async function download() {
    const got = await (await fetch('/a')).arrayBuffer();
    return await sha(got) == '%s';
}
async function range() {
    const r = await fetch('/a', { headers: { Range: 'bytes=1000000-1000999' } });
    return r.status == 206 && (await r.arrayBuffer()).byteLength == 1000;
}
const echo = () => new Promise(resolve => {
    const s = new WebSocket(location.origin.replace('http', 'ws') + '/echo');
    let n = 0;
    s.onopen = () => s.send('message 0');
    s.onmessage = e => {
        if (e.data != 'message ' + n) resolve(false);
        if (++n == 50) { s.close(); resolve(true); } else s.send('message ' + n);
    };
    s.onerror = () => resolve(false);
});
const all = [upload, download, range, echo];
Promise.all(all.map(f => f().catch(() => false))).then(r => fetch('/report/' + r.join('-')));
</script>"""


class Browser(Real):
    PARTS = 60

    def pages(self):
        page = "<!DOCTYPE html><title>loading</title>"
        page += "".join('<img src="/p%d.gif">' % i for i in range(self.PARTS))
        page += "<script>%s</script>" % (WATCH_IMAGES % self.PARTS)
        pages = {"/": (page.encode(), "text/html", FRESH)}
        for i in range(self.PARTS):
            pages["/p%d.gif" % i] = (PIXEL + b"\0" * (i * 700), "image/gif", FRESH)
        return pages

    def chromium(self, *words):
        """The words of a browser without a past and, as far as it goes, without a home."""
        profile = tempfile.mkdtemp(dir=self.folder)
        return ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
                "--no-first-run", "--disable-background-networking", "--disable-component-update",
                "--disable-sync", "--disable-dev-shm-usage", "--user-data-dir=" + profile,
                "--proxy-server=" + self.proxy, "--proxy-bypass-list=<-loopback>",
                "--ignore-certificate-errors", *words)

    def load(self, url):
        words = self.chromium("--virtual-time-budget=20000", "--dump-dom", url)
        self.assertIn("loaded %d bad 0" % self.PARTS, self.run_client(*words))

    def test_a_page_of_sixty_parts_over_http_the_second_time_from_the_store(self):
        w = self.web(self.pages())
        self.load(w.base + "/")
        asked = w.asked()
        self.load(w.base + "/")
        self.assertGreaterEqual(asked, self.PARTS + 1)
        self.assertLessEqual(w.asked() - asked, 1)       # /favicon.ico has no lifetime
        hits = [a for a in self.p.logged(".gif", 2 * self.PARTS) if "HIT" in a.code]
        self.assertEqual(len(hits), self.PARTS)

    def test_the_same_over_https(self):
        w = self.web(self.pages(), certificate=self.certificate())
        for n in 1, 2:
            self.load(w.base + "/")
            self.assertGreaterEqual(w.asked(), n * (self.PARTS + 1))
        wait_for(lambda: any(a.code == "TCP_TUNNEL" and a.status == 200
                             and a.url.endswith(":%d" % w.port) for a in self.p.access_log()),
                 "a tunnel in the log")

    def talk(self, **options):
        """A page that uploads, downloads, takes a range and talks to a WebSocket."""
        w = self.web({"/": ((TALK % large_sha256(5 * MB)).encode(), "text/html", FRESH),
                      "/a": (large(5 * MB), BINARY, FRESH)}, **options)
        self.start_client(*self.chromium("--remote-debugging-port=0", w.base + "/"))
        said = wait_for(lambda: [p for p in list(w.counts) if p.startswith("/report/")],
                        "the page's report", 60)
        self.assertEqual(said, ["/report/true-true-true-true"])

    def test_a_page_that_talks_over_http(self):
        self.talk()

    def test_a_page_that_talks_over_https(self):
        self.talk(certificate=self.certificate())


if __name__ == "__main__":
    main()
