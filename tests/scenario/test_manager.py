"""The measurement pages at /squid-internal-mgr/, with the names Squid uses where it has them."""
import re

import harness
from harness import Client, Exited, Scenario, reply, storable, wait_for

PAGES = ("menu", "info", "counters", "filedescriptors", "readiness", "5min", "60min")


class Pages(Scenario):
    def setUp(self):
        self.o = self.origin(storable(b"x" * 1000))
        self.p = self.cuttle()
        with Client(self.p.address) as c:
            for _ in range(4):
                c.get(self.o.url("/"))

    def page(self, path, *fields, method="GET"):
        return self.get(self.p, "/squid-internal-mgr/" + path,
                        "Host: 127.0.0.1:%d" % self.p.port, *fields, method=method)

    def test_the_menu_names_every_page(self):
        menu = self.p.manager("menu")
        for page in PAGES:
            self.assertRegex(menu, r"(?m)^ *%s\b" % page)

    def test_pages_are_text_that_nobody_stores(self):
        for page in PAGES:
            r = self.page(page)
            self.assertEqual(r.status, 200, page)
            self.assertIn("text/plain", r.field("Content-Type"))
            self.assertRegex(r.field("Cache-Control") or "", "no-store|no-cache")
            self.assertEqual(self.page(page, method="HEAD").body, b"")

    def test_the_same_by_absolute_form(self):
        r = self.get(self.p, "http://127.0.0.1:%d/squid-internal-mgr/menu" % self.p.port)
        self.assertEqual(r.status, 200)

    def test_other_pages_and_methods_are_told_apart(self):
        self.assertEqual(self.page("no_such_page").status, 404)
        self.assertIn(self.page("menu", method="DELETE").status, (403, 405))

    def test_info_has_the_lines_tools_look_for(self):
        info = self.p.manager("info")
        for text in ("Number of HTTP requests received",
                     "Average HTTP requests per minute since start", "Select loop called",
                     "Hits as % of all requests", "Maximum number of file descriptors",
                     "Number of file desc currently in use", "Storage Mem size"):
            self.assertIn(text, info)

    def test_counters_count(self):
        wait_for(lambda: self.p.counter("client_http.requests") >= 4, "four requests counted")
        self.assertGreaterEqual(self.p.counter("client_http.hits"), 3)
        self.assertGreaterEqual(self.p.counter("server.http.requests"), 1)
        self.assertGreater(self.p.counter("select_loops"), 0)
        self.assertEqual(self.p.counter("client_http.errors"), 0)

    def test_averages_have_squids_names(self):
        for page in ("5min", "60min"):
            text = self.p.manager(page)
            for name in ("client_http.requests", "client_http.hits", "select_loops", "select_fds",
                         "average_select_fd_period", "cpu_usage"):
                self.assertRegex(text, r"(?m)^%s = " % re.escape(name), page)

    def test_descriptors_are_counted_by_purpose(self):
        with Client(self.p.address) as idle:
            idle.get(self.o.url("/"))
            text = self.p.manager("filedescriptors")
        for purpose in ("listening", "client active", "client idle", "server active",
                        "server idle", "tunnel", "DNS", "helper", "log"):
            self.assertRegex(text, r"(?i)\b%s\b" % purpose.replace(" ", "[ _]"))

    def test_the_census_agrees_with_the_system(self):
        idle = [self.client(self.p) for _ in range(20)]
        for c in idle:
            c.get(self.o.url("/"))
        in_use = re.search(r"Number of file desc currently in use: *(\d+)",
                           self.p.manager("info"))
        self.assertLess(abs(int(in_use.group(1)) - self.p.descriptors()), 8)

    def test_the_stopwatch_has_run(self):
        text = self.p.manager("readiness")
        for word in ("calls", "events", "CPU", "blocked"):
            self.assertRegex(text, r"(?i)\b%s" % word)


class Backends(Scenario):
    def test_each_backend_serves_or_falls_back_with_one_line(self):
        o = self.origin(storable(b"x"))
        for backend in ("auto", "epoll", "poll", "select", "io_uring"):
            p = self.cuttle("event_backend " + backend)
            for _ in range(3):
                self.assertEqual(self.get(p, o.url("/")).body, b"x", backend)
            text = p.manager("readiness")
            if backend in ("epoll", "poll", "select"):
                self.assertIn(backend, text)
            p.stop()

    def test_no_such_backend_is_a_mistake_in_the_configuration(self):
        with self.assertRaises(Exited):
            self.cuttle("event_backend kqueueueue")


class Closed(Scenario):
    def test_pages_are_never_fetched_from_elsewhere_by_their_name(self):
        o = self.origin(reply(body=b"theirs"))
        p = self.cuttle()
        r = self.get(p, o.url("/squid-internal-mgr/menu"))
        self.assertNotIn(b"5min", r.body)


if __name__ == "__main__":
    harness.main()
