"""readiness_log: what finding out which descriptors are ready has cost, interval by interval."""
import csv
import os
import signal
import time

import harness
from harness import Client, Scenario, storable, wait_for


class ReadinessLog(Scenario):
    def proxy(self, *lines):
        self.file = os.path.join(self.temporary_folder(), "ready.csv")
        self.p = self.cuttle("readiness_log " + self.file, *lines)

    def rows(self, path=None):
        with open(path or self.file, newline="") as f:
            return list(csv.DictReader(f))

    def total(self, column):
        return sum(float(r[column]) for r in self.rows())

    def test_each_second_has_a_line_that_tells_that_second_alone(self):
        o = self.origin(storable(b"x" * 1000))
        self.proxy()
        for _ in range(20):
            self.get(self.p, o.url("/"))
        wait_for(lambda: len(self.rows()) >= 3, "three lines")
        wait_for(lambda: self.total("requests") == 20, "all requests to be told of")
        self.assertEqual(self.total("hits"), 19)
        self.assertGreater(self.total("bytes_out"), 20_000)
        for r in self.rows():
            self.assertAlmostEqual(float(r["interval_s"]), 1, delta=0.5)
            self.assertEqual(r["workers"], os.environ.get("CUTTLE_WORKERS", "1"))
            self.assertLessEqual(float(r["call_cpu_s"]), float(r["thread_cpu_s"]) + 1e-6)
            self.assertIn(r["backend"], ("epoll", "poll", "select", "io_uring"))
        busy = max(self.rows(), key=lambda r: int(r["requests"]))
        self.assertGreater(int(busy["calls"]), 0)
        self.assertGreater(float(busy["client_s"]), 0)

    def test_descriptors_are_told_by_purpose(self):
        self.proxy()
        with Client(self.p.address), Client(self.p.address):
            wait_for(lambda: self.rows() and int(self.rows()[-1]["fds_client_active"])
                     + int(self.rows()[-1]["fds_client_idle"]) == 2, "two clients to be counted")
            last = self.rows()[-1]
            self.assertEqual(int(last["fds"]), sum(int(v) for k, v in last.items()
                                                   if k.startswith("fds_") and k != "fds_peak"))

    def test_a_longer_interval_has_fewer_lines(self):
        self.proxy("readiness_log_interval 3 seconds")
        time.sleep(4.5)
        self.assertEqual(len(self.rows()), 1)
        self.assertAlmostEqual(float(self.rows()[0]["interval_s"]), 3, delta=0.6)

    def test_rotation_starts_a_new_file_with_its_columns(self):
        self.proxy()
        wait_for(self.rows, "a line")
        os.rename(self.file, self.file + ".0")
        os.kill(self.p.pid, signal.SIGUSR1)
        wait_for(lambda: os.path.exists(self.file) and self.rows(), "a line in the new file")
        self.assertIn("call_cpu_s", self.rows()[0])

    def test_a_second_start_goes_on_in_the_same_file(self):
        self.proxy()
        wait_for(self.rows, "a line")
        self.p.stop()
        n = len(self.rows())
        self.p.start()
        wait_for(lambda: len(self.rows()) > n, "another line")
        with open(self.file) as f:
            self.assertEqual(sum(line.startswith("time,") for line in f), 1)

    def test_a_file_that_cannot_be_opened_costs_the_log_alone(self):
        self.p = self.cuttle("readiness_log /nowhere/at/all.csv")
        o = self.origin(storable())
        self.assertEqual(self.get(self.p, o.url("/")).status, 200)
        self.assertIn("readiness_log /nowhere/at/all.csv: No such file", self.p.cache_log())


if __name__ == "__main__":
    harness.main()
