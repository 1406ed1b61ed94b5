"""What a reload changes: each directive that counts as live is seen to change what the running
proxy does. Those about names are in test_dns.py."""
import contextlib
import itertools
import os
import re
import signal
import socket
import time

import harness
from harness import Client, Scenario, reply, storable, together, wait_for

# Live, and not to be seen here.
UNSEEN = {
    "host_verify_strict": "needs a connection that the packet filter diverts",
    "sendfile": "changes no byte",
}


class Live(Scenario):
    def setUp(self):
        self.number = itertools.count()
        self.o = self.origin(self.answer, host="127.0.0.1")

    def answer(self, q):
        """The first word of the path says which answer."""
        return {
            "page": lambda: storable(b"x" * 2000),
            "plain": lambda: reply(body=b"x"),
            "stale": lambda: reply("200 OK", "Cache-Control: max-age=0", 'ETag: "1"', body=b"x"),
            "none": lambda: reply("404 Not Found", body=b"none"),
            "echo": lambda: reply(body=q.raw_head),
            "length": lambda: reply(body=b"%d" % len(q.body)),
            "slow": lambda: (0.4, storable(b"x")),
            "hung": lambda: (harness.SILENT,),
            "large": lambda: storable(b"x" * (32 << 20)),
            "half": lambda: (reply("200 OK", "Cache-Control: max-age=60",
                                   "Content-Length: 100000"), b"x" * 50000, 0.4, b"y" * 50000),
            "fields": lambda: reply("200 OK", "X-Long: " + "x" * 6000, body=b"x"),
        }[re.search(r"/(\w+)", q.target.split("//")[-1]).group(1)]()

    def start(self, *lines, **options):
        self.p = self.cuttle(*lines, **options)

    def reload_as(self, *lines):
        """Not before the new configuration is in force is anything else done."""
        said = self.p.cache_log().count("reconfigured")
        self.p.write_conf(lines)
        self.p.send_signal(signal.SIGHUP)
        wait_for(lambda: self.p.cache_log().count("reconfigured") > said, "the new configuration")

    def assert_live(self, look, *states):
        """states: (a line or several, what look() is from then on)."""
        for lines, seen in states:
            self.reload_as(*([lines] if isinstance(lines, str) else lines))
            self.assertEqual(look(), seen, lines)

    def url(self, what, host=None):
        """One that nobody has asked for."""
        return self.o.url("/%s/%d" % (what, next(self.number)), host)

    def ask(self, what, *fields, **options):
        return self.get(self.p, self.url(what), *fields, **options)

    def is_kept(self, what="page", *fields):
        url = self.url(what)
        self.get(self.p, url)
        return self.get(self.p, url, *fields).hit


class Rules(Live):
    def test_acl_and_http_access(self):
        self.start()
        self.assert_live(lambda: [self.ask(w).status for w in ("page", "none")],
                         (("acl no urlpath_regex ^/page", "http_access deny no"), [403, 404]),
                         (("acl no urlpath_regex ^/none", "http_access deny no"), [200, 403]),
                         (("acl no urlpath_regex ^/none", "http_access deny !no"), [403, 404]))

    def test_include_reads_its_file_again(self):
        folder = self.temporary_folder()
        self.write(folder, "part", "http_access deny all\n")
        line = "include %s/part" % folder
        self.start(line)
        self.assertEqual(self.ask("page").status, 403)
        self.write(folder, "part", "# nothing\n")
        self.assert_live(lambda: self.ask("page").status, (line, 200))

    def test_what_may_be_kept_and_what_may_be_given(self):
        self.start()
        self.assert_live(self.is_kept,
                         ("cache deny all", False), ("cache allow all", True),
                         ("send_hit deny all", False), ("send_hit allow all", True),
                         ("store_miss deny all", False), ("store_miss allow all", True),
                         ("maximum_object_size 1 KB", False), ("maximum_object_size 1 MB", True),
                         ("maximum_object_size_in_memory 1 KB", False),
                         ("maximum_object_size_in_memory 1 MB", True),
                         ("minimum_object_size 4 KB", False), ("minimum_object_size 0", True),
                         ("cache_mem 0", False), ("cache_mem 64 MB", True))


class Freshness(Live):
    def test_refresh_pattern(self):
        self.start()
        self.assert_live(lambda: self.is_kept("plain"),
                         ("refresh_pattern . 0 20% 60", False),
                         ("refresh_pattern . 60 20% 60", True))

    def test_negative_ttl(self):
        self.start()
        self.assert_live(lambda: self.is_kept("none"),
                         ("negative_ttl 0 seconds", False), ("negative_ttl 60 seconds", True))

    def test_offline_mode(self):
        self.start()

        def look():
            url, n = self.url("stale"), len(self.o.requests)
            for _ in range(2):
                self.get(self.p, url)
            return len(self.o.requests) - n
        self.assert_live(look, ("offline_mode off", 2), ("offline_mode on", 1))

    def test_reload_into_ims(self):
        self.start()

        def look():
            url = self.url("stale")
            self.get(self.p, url)
            self.get(self.p, url, "Cache-Control: no-cache")
            return self.o.last().field("If-None-Match")
        self.assert_live(look, ("reload_into_ims off", None), ("reload_into_ims on", '"1"'))

    def test_max_stale(self):
        self.start()

        def look():
            o = self.origin(storable(b"x", seconds=1))
            url = o.url("/%d" % next(self.number))
            self.get(self.p, url)
            o.close()
            time.sleep(2.2)
            return self.get(self.p, url).status
        self.assert_live(look, ("max_stale 1 week", 200), ("max_stale 0 seconds", 502))

    def test_collapsed_forwarding(self):
        self.start()

        def look():
            url, n = self.url("slow"), len(self.o.requests)
            together(3, lambda i: self.get(self.p, url))
            return len(self.o.requests) - n
        self.assert_live(look, ("collapsed_forwarding off", 3), ("collapsed_forwarding on", 1))

    def test_range_offset_limit(self):
        self.start()

        def look():
            self.ask("page", "Range: bytes=5-9")
            return self.o.last().field("Range")
        self.assert_live(look, ("range_offset_limit none", None),
                         ("range_offset_limit 0", "bytes=5-9"))

    def test_quick_abort(self):
        """The client leaves when half of 100 KB is there: is the rest fetched?"""
        self.start()

        def look():
            url = self.url("half")
            with Client(self.p.address) as c:
                c.request("GET", url)
                c.read_exactly(20000)
                c.reset()
            time.sleep(0.8)
            return self.get(self.p, url).hit
        usual = ["quick_abort_min 0 KB", "quick_abort_max 1000 KB", "quick_abort_pct 20"]
        self.assert_live(look, (usual, True),
                         ([*usual[:2], "quick_abort_pct 80"], False),
                         ([usual[0], "quick_abort_max 10 KB", usual[2]], False),
                         (["quick_abort_min -1 KB", *usual[1:]], True))


class Messages(Live):
    def test_fields_that_the_proxy_adds(self):
        self.start()
        self.assert_live(lambda: b"via:" in self.ask("echo").body.lower(),
                         ("via on", True), ("via off", False))
        self.assert_live(lambda: b"x-forwarded-for:" in self.ask("echo").body.lower(),
                         ("forwarded_for on", True), ("forwarded_for delete", False))
        self.assert_live(lambda: "two.test" in self.ask("page").cache_status,
                         ("visible_hostname one.test", False), ("visible_hostname two.test", True))

        self.assert_live(lambda: b"one.test" in self.ask("echo").body,
                         ("unique_hostname one.test", True), ("unique_hostname two.test", False))

        def page_names_the_manager():
            r = self.get(self.p, "http://127.0.0.9:9/%d" % next(self.number), "Accept: text/html")
            return b"me@two.test" in r.body
        self.assert_live(page_names_the_manager, ("cache_mgr me@one.test", False),
                         ("cache_mgr me@two.test", True))

    def test_sizes(self):
        self.start()
        self.assert_live(lambda: self.ask("page", "X-Long: " + "x" * 6000).status,
                         ("request_header_max_size 4 KB", 431),
                         ("request_header_max_size 16 KB", 200))
        self.assert_live(lambda: self.ask("fields").status,
                         ("reply_header_max_size 4 KB", 502), ("reply_header_max_size 16 KB", 200))
        self.assert_live(lambda: self.ask("length", method="POST", body=b"x" * 4000).status,
                         ("request_body_max_size 1 KB", 413), ("request_body_max_size 0", 200))

    def test_client_persistent_connections(self):
        self.start()
        self.assert_live(lambda: "close" in self.ask("page").tokens("Connection"),
                         ("client_persistent_connections on", False),
                         ("client_persistent_connections off", True))

    def dials(self, pause_s=0.0):
        """Connections that two requests take, after those that are idle have been used up."""
        self.ask("page")
        before = self.o.connections
        time.sleep(pause_s)
        self.ask("page")
        return self.o.connections - before

    def test_connections_to_origins(self):
        self.start(workers=1)  # each has idle ones of its own
        self.assert_live(self.dials, ("server_persistent_connections on", 0),
                         ("server_persistent_connections off", 1))
        self.assert_live(lambda: self.dials(1.6), ("server_idle_pconn_timeout 60 seconds", 0),
                         ("server_idle_pconn_timeout 1 second", 1))
        self.assert_live(lambda: self.dials(1.6), ("pconn_lifetime 60 seconds", 0),
                         ("pconn_lifetime 1 second", 1))


class Reaching(Live):
    """Addresses of one name: the first is dead, the origin is at the last."""

    def start_with(self, dead):
        self.hosts_line = "hosts_file " + self.write(
            self.temporary_folder(), "hosts", "".join(
                "%s %s\n" % (address, " ".join("n%d.test" % i for i in range(20)))
                for address in (dead, "127.0.0.1")))
        self.start(self.hosts_line)

    def reach(self):
        began = time.monotonic()
        status = self.get(self.p, self.url("page", "n%d.test" % next(self.number))).status
        return status, time.monotonic() - began

    def black_hole(self, host):
        """An address that takes no connection and refuses none: its queue is full."""
        s = socket.socket()
        self.addCleanup(s.close)
        s.bind((host, self.o.port))
        s.listen(0)
        for _ in range(4):
            c = socket.socket()
            self.addCleanup(c.close)
            c.setblocking(False)
            c.connect_ex((host, self.o.port))
        return host

    def test_forward_max_tries(self):
        self.start_with("127.0.0.6")
        self.assert_live(lambda: self.reach()[0],
                         ((self.hosts_line, "forward_max_tries 1"), 502),
                         ((self.hosts_line, "forward_max_tries 2"), 200))

    def test_happy_eyeballs_connect_timeout(self):
        self.start_with(self.black_hole("127.0.0.5"))
        self.assert_live(
            lambda: self.reach()[1] > 1,
            ((self.hosts_line, "happy_eyeballs_connect_timeout 1200 milliseconds"), True),
            ((self.hosts_line, "happy_eyeballs_connect_timeout 20 milliseconds"), False))

    def test_connect_timeout_and_forward_timeout(self):
        self.start()
        hole = "http://%s:%d/" % (self.black_hole("127.0.0.5"), self.o.port)

        def look():
            began = time.monotonic()
            status = self.get(self.p, hole + str(next(self.number))).status
            return status, round(time.monotonic() - began)
        self.assert_live(look, ("connect_timeout 1 second", (504, 1)),
                         ("connect_timeout 2 seconds", (504, 2)),
                         ("forward_timeout 1 second", (504, 1)))


class Times(Live):
    def assert_ends_alone(self, send):
        """The proxy closes a client connection by itself, within 3 s of send(c)."""
        with Client(self.p.address) as c:
            send(c)
            c.sock.settimeout(3)
            with contextlib.suppress(ConnectionError):
                while c.sock.recv(65536):
                    pass

    def test_each_time_that_bounds_a_client(self):
        tunnelled = self.origin(raw=lambda c: self.o.closing.wait(8))
        kinds = {
            "request_start_timeout": lambda c: None,
            "request_timeout": lambda c: c.send(b"GET http://"),
            "client_idle_pconn_timeout": lambda c: c.get(self.url("page")),
            "client_lifetime": lambda c: c.get(self.url("page")),
            "tunnel_idle_timeout": lambda c: c.connect_tunnel(tunnelled.authority),
        }
        self.start()
        for name, send in kinds.items():
            self.reload_as(name + " 1 second")
            with self.subTest(name):
                self.assert_ends_alone(send)

    def test_read_timeout(self):
        self.start()
        self.reload_as("read_timeout 1 second")
        began = time.monotonic()
        self.assertEqual(self.ask("hung").status, 504)
        self.assertLess(time.monotonic() - began, 3)

    def test_write_timeout(self):
        self.start()
        self.reload_as("write_timeout 1 second")
        with Client(self.p.address) as c:
            c.request("GET", self.url("large"))
            time.sleep(3)
            with self.assertRaises((harness.Incomplete, OSError)):
                c.read_response()

    def test_shutdown_lifetime(self):
        self.start("shutdown_lifetime 60 seconds")
        self.reload_as("shutdown_lifetime 0 seconds")
        c = self.client(self.p)
        c.request("GET", self.url("hung"))
        self.o.wait_requests(1)
        self.assertLess(self.p.stop(), 5)


class Logs(Live):
    def last_line(self, name="access.log"):
        path = "/page/%d?q=%d" % (next(self.number), next(self.number))
        self.get(self.p, self.o.url(path))
        text = path.split("?")[0]
        return wait_for(lambda: [line for line in self.p.read(name).splitlines()
                                 if text in line], "the line")[-1]

    def test_what_a_line_says(self):
        self.start()
        log = "access_log stdio:%s mine" % self.p.path("access.log")
        self.assert_live(lambda: "?q=" in self.last_line(), ("strip_query_terms on", False),
                         ("strip_query_terms off", True))
        self.assert_live(lambda: "Host:" in self.last_line(), ("log_mime_hdrs off", False),
                         ("log_mime_hdrs on", True))
        self.assert_live(lambda: self.last_line().split(" ")[0],
                         (("logformat mine one %ru", log), "one"),
                         (("logformat mine two %ru", log), "two"))

    def test_who_is_logged_and_how_much_of_his_address(self):
        self.start()
        native = "access_log stdio:%s squid" % self.p.path("access.log")
        self.assert_live(lambda: self.last_line().split()[2],
                         (("client_netmask 255.0.0.0", native), "127.0.0.0"),
                         (("client_netmask 255.255.255.255", native), "127.0.0.1"))

        for rule, logged in (("", True), ("log_access deny secret", False)):
            self.reload_as("acl secret urlpath_regex secret", native, rule)
            path = "/page/secret%d" % next(self.number)
            self.get(self.p, self.o.url(path))
            self.last_line()
            if logged:  # another worker may write it
                wait_for(lambda: path in self.p.read("access.log"), "its line")
            else:
                self.assertNotIn(path, self.p.read("access.log"))

    def test_access_log_goes_to_another_file(self):
        self.start()
        self.reload_as("access_log stdio:%s" % self.p.path("other.log"))
        self.assertIn("/page/", self.last_line("other.log"))

    def test_cache_log_goes_to_another_file_and_the_reload_is_told_there(self):
        self.start()
        self.p.write_conf(["cache_log %s" % self.p.path("events.log"), "icon_directory /x"])
        self.p.send_signal(signal.SIGHUP)
        wait_for(lambda: "reconfigured" in self.p.read("events.log"), "the new log")
        self.assertIn("icon_directory", self.p.read("events.log"))
        self.assertNotIn("reconfigured", self.p.read("cache.log"))
        self.p.send_signal(signal.SIGUSR1)
        os.rename(self.p.path("events.log"), self.p.path("old.log"))
        self.p.send_signal(signal.SIGUSR1)
        wait_for(lambda: os.path.exists(self.p.path("events.log")), "the rotated log")

    def test_a_cache_log_that_cannot_be_opened_leaves_the_old_one(self):
        self.start()
        self.reload_as("cache_log /nowhere/events.log", "cache_log /nowhere/events.log")
        self.assertIn("cannot open the event log /nowhere/events.log", self.p.read("cache.log"))
        self.assertIn("reconfigured", self.p.read("cache.log"))

    def test_logfile_rotate(self):
        self.start("logfile_rotate 0")
        self.last_line()
        self.reload_as("logfile_rotate 2")
        self.p.send_signal(signal.SIGUSR1)
        wait_for(lambda: os.path.exists(self.p.path("access.log.0")), "the old log")


class Restart(Live):
    def test_a_cache_dir_that_is_taken_away_is_used_until_the_next_start_and_that_is_told(self):
        """Bodies too large for memory go on to the disk."""
        lines = ["cache_mem 8 MB", "maximum_object_size 64 MB"]
        self.start("cache_dir cuttle %s 256" % self.temporary_folder(), *lines)
        self.assert_live(lambda: self.is_kept("large"), (lines, True))
        self.assertIn("cache_dir: the change holds from the next start on", self.p.cache_log())

    def test_what_needs_a_restart_is_told(self):
        self.start()
        for line in ("workers 7", "event_backend poll", "max_filedescriptors 512",
                     "memory_replacement_policy s3fifo", "cache_replacement_policy s3fifo",
                     "readiness_log /tmp/no", "readiness_log_interval 5 seconds",
                     "pid_filename /tmp/no", "cache_effective_user nobody",
                     "cache_effective_group nogroup", "http_port 127.0.0.1:1"):
            self.reload_as(line)
            self.assertIn("%s: the change holds from the next start on" % line.split(" ")[0],
                          self.p.cache_log())


class Complete(Scenario):
    def test_each_directive_that_counts_as_live_is_seen_here_or_among_the_names(self):
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        table = harness.read_text(os.path.join(root, "conf", "directives.def"))
        entries = re.findall(r"DIRECTIVE\((\w+),(?:[^\"]|\"[^\"]*\")*?(RELOAD_\w+)", table)
        seen = "".join(harness.read_text(os.path.join(root, "tests", "scenario", name))
                       for name in ("test_reload.py", "test_dns.py"))
        self.assertGreater(len(entries), 60)
        for name, reload in entries:
            if reload == "RELOAD_LIVE" and name not in UNSEEN:
                self.assertTrue(re.search(r'"%s[ "]' % name, seen), name)


if __name__ == "__main__":
    harness.main()
