"""tools/study: the files it leaves, from figures that need little time."""
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
STUDY = os.path.join(ROOT, "tools", "study")


def study(*words, timeout_s=120):
    return subprocess.run([sys.executable, STUDY, *words], capture_output=True, text=True, timeout=timeout_s)


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="cuttle-study-")
        cls.out = os.path.join(cls.folder.name, "out")
        cls.done = study("--quick", "--figures", "F9,F11", "--seconds", "0.3", "--out", cls.out)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def read(self, name):
        with open(os.path.join(self.out, name), encoding="utf-8") as f:
            return f.read()

    def test_it_says_of_each_figure_what_was_seen(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.assertRegex(self.done.stdout, r"F9 +(Seen|Not seen): with \d+ descriptors open")
        self.assertRegex(self.done.stdout, r"F11 +Most with \d: \d+ requests/s")

    def test_the_numbers_are_there_as_csv(self):
        rows = list(csv.DictReader(self.read("F9.csv").splitlines()))
        self.assertEqual({r["series"] for r in rows}, {"free number low", "free number high"})
        for r in rows:
            self.assertLessEqual(float(r["least"]), float(r["median"]))
            self.assertLessEqual(float(r["median"]), float(r["most"]))
            self.assertGreater(float(r["median"]), 0)
        self.assertGreater(float(list(csv.DictReader(self.read("F11.csv").splitlines()))[0]["median"]), 100)

    def test_the_page_has_all_of_it_in_one_file(self):
        page = self.read("report.html")
        for word in ("kernel", "processor", "libev", "descriptors of a process", "arms interleaved"):
            self.assertIn(word, page)
        self.assertEqual(len(re.findall("<svg", page)), 3)
        self.assertNotRegex(page, r'(src|href)="(http|/|[a-z]+\.)')
        ids = re.findall(r' id="([^"]+)"', page)
        self.assertEqual(len(ids), len(set(ids)), "drawings do not take each other's parts")

    def test_scripts_draw_again(self):
        os.unlink(os.path.join(self.out, "F9.svg"))
        subprocess.run(["gnuplot", "F9.gp"], cwd=self.out, check=True, capture_output=True)
        self.assertIn("free number low", self.read("F9.svg"))
        self.assertGreater(os.path.getsize(os.path.join(self.out, "F9.png")), 3000)

    def test_the_machine_is_told_for_other_programs_too(self):
        facts = json.loads(self.read("study.json"))
        self.assertIn("cores", facts["facts"])
        self.assertIn("F9", facts["figures"])


class Arguments(unittest.TestCase):
    def test_a_figure_nobody_knows_is_refused(self):
        done = study("--figures", "F99")
        self.assertEqual(done.returncode, 2)
        self.assertIn("F99: expected some of F1,", done.stderr)


if __name__ == "__main__":
    unittest.main()
