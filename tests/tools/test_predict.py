"""tools/predict as it is used: reports, exit statuses, and what it says about bad input."""
import csv
import gzip
import io
import json
import os
import subprocess
import tempfile
import unittest

PREDICT = os.path.join(os.environ["TOOLS"], "predict")

LINE = "%.3f %6d %s %s %d %s %s - %s -\n"


def log_of(requests):
    return "".join(LINE % r for r in requests).encode()


# Two clients, half a minute: two requests at once, a hit, a tunnel over all of it.
LOG = log_of([
    (1500000001, 1000, "10.0.0.1", "TCP_MISS/200", 1000, "GET", "http://a.example/1", "HIER_DIRECT/192.0.2.1"),
    (1500000001.5, 1000, "10.0.0.2", "TCP_MISS/200", 500, "GET", "http://a.example/2", "HIER_DIRECT/192.0.2.1"),
    (1500000005, 10, "10.0.0.2", "TCP_MEM_HIT/200", 1000, "GET", "http://a.example/1", "HIER_NONE/-"),
    (1500000030, 30000, "10.0.0.1", "TCP_TUNNEL/200", 99, "CONNECT", "b.example:443", "HIER_DIRECT/192.0.2.2"),
])


def run(*arguments, log=None):
    return subprocess.run([PREDICT, *arguments], input=log, capture_output=True, timeout=60)


class Predict(unittest.TestCase):
    def figures(self, log, *options):
        done = run("--json", *options, "-", log=log)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_the_peak_is_where_requests_and_tunnel_overlap(self):
        all_of_it = self.figures(LOG)["concurrency"]["all"]
        self.assertEqual(all_of_it["peak"], 3)
        self.assertEqual(all_of_it["peak_at"], "2017-07-14T02:40:00.500Z")
        self.assertAlmostEqual(all_of_it["mean"], 32.01 / 30, places=3)

    def test_each_timeout_has_its_three_arms_beside_off(self):
        arms = self.figures(LOG, "--idle-timeout", "2,20/3", "--fixed", "0")["descriptors"]["arms"]
        self.assertEqual([(a["persistence"], a["client_idle_s"], a["server_idle_s"]) for a in arms],
                         [("off", 0, 0), ("client", 2, 2), ("server", 2, 2), ("both", 2, 2),
                          ("client", 20, 3), ("server", 20, 3), ("both", 20, 3)])
        self.assertEqual([arms[0]["client_opened"], arms[0]["server_opened"], arms[0]["peak"]], [4, 3, 6])
        self.assertEqual(arms[4]["client_opened"], 3)

    def test_ideal_hits_and_the_curve_meet_at_all_bytes(self):
        caching = self.figures(LOG, "--sizes", "999,100%")["caching"]
        self.assertAlmostEqual(caching["ideal_any_get"]["hit_ratio"], 0.25)
        self.assertEqual([round(p["hit_ratio"], 4) for p in caching["lru"]], [0, 0.3333])

    def test_skipped_lines_have_a_reason_and_a_first_line(self):
        skipped = self.figures(b"# log\nno such thing at all\n" + LOG)["skipped"]
        self.assertEqual([(s["lines"], s["first_line"]) for s in skipped], [(1, 1), (1, 2)])

    def test_minutes_are_csv(self):
        done = run("--per-minute", "-", log=LOG)
        rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
        self.assertEqual([(r["minute"], r["requests"], r["open_peak"]) for r in rows], [("2017-07-14T02:40Z", "4", "3")])

    def test_the_report_says_what_is_missing(self):
        web = b'c - - [14/Jul/2017:02:40:00 +0000] "GET /a HTTP/1.1" 200 5\n' * 2
        self.assertIn(b"no durations. --delay MS", run("-", log=web).stdout)
        self.assertIn(b"MODEL: 2 requests have no duration", run("--delay", "100", "-", log=web).stdout)
        self.assertIn(b"the log has no times", run("-", log=b"1 5\n2 5\n").stdout)

    def test_a_file_is_read_and_gzip_unpacked(self):
        with tempfile.NamedTemporaryFile() as f:
            f.write(gzip.compress(LOG))
            f.flush()
            self.assertIn(b"requests 4, tunnels 1", run(f.name).stdout)

    def test_a_cut_gzip_is_reported_and_ends_with_3(self):
        done = run("-", log=gzip.compress(LOG)[:-4])
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"cut off", done.stderr)
        self.assertIn(b"requests 4", done.stdout)

    def test_nothing_to_read_ends_with_1(self):
        for log in (b"", b"three blind mice run\n"):
            done = run("-", log=log)
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertIn(b"no request in", done.stderr)
        self.assertEqual(run("/nonexistent/log").returncode, 1)

    def test_wrong_usage_is_one_line_and_ends_with_2(self):
        for wrong in ([], ["a", "b"], ["--idle-timeout", "5,", "a"], ["--idle-timeout", "x", "a"], ["--sizes", "0", "a"],
                      ["--hit-ratio", "101", "a"], ["--servers", "two", "a"], ["--delay", "-1", "a"], ["--no-such", "a"],
                      ["--json", "--per-minute", "a"], ["--fixed", "nan", "a"]):
            done = run(*wrong)
            self.assertEqual(done.returncode, 2, wrong)
            self.assertEqual((done.stderr.count(b"\n"), done.stdout), (1, b""), wrong)

    def test_help_needs_no_log(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"tools/predict [OPTIONS] LOG", done.stdout)


if __name__ == "__main__":
    unittest.main()
