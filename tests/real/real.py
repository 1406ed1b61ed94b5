"""real - what the runs with real clients stand on: a proxy of their own, a folder, an environment
in which programs find the proxy, and a report of one line a test.

A run uses nothing of the machine but what the packages bring: home, profile, package lists and
root folders are in the test's folder and go with it. Programs get a process group of their own,
so that a browser that hangs ends with all of its children.
"""
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "scenario"))
from harness import Cuttle                                                      # noqa: E402
from web import Web                                                             # noqa: E402

MB = 1 << 20


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for piece in iter(lambda: f.read(MB), b""):
            digest.update(piece)
    return digest.hexdigest()


def pss_kb(pid):
    with open("/proc/%d/smaps_rollup" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))


class PeakMemory:
    """The largest PSS of a process while the block runs, in KB, and what it was before."""

    def __init__(self, pid):
        self.pid, self.before_kb = pid, pss_kb(pid)
        self.peak_kb, self.ended = self.before_kb, threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def watch(self):
        with contextlib.suppress(OSError):
            while not self.ended.wait(0.1):
                self.peak_kb = max(self.peak_kb, pss_kb(self.pid))

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.peak_kb = max(self.peak_kb, pss_kb(self.pid))

    @property
    def grown_kb(self):
        return self.peak_kb - self.before_kb


class Real(unittest.TestCase):
    conf = ()

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cuttle-real-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.p = Cuttle(*self.conf)
        self.addCleanup(self.p.remove)
        self.addCleanup(self.p.stop)
        self.proxy = "http://%s:%d" % self.p.address
        self.env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        self.env.update(http_proxy=self.proxy, https_proxy=self.proxy, no_proxy="",
                        HOME=self.folder, GIT_CONFIG_NOSYSTEM="1", LC_ALL="C")

    def web(self, pages=None, **options):
        w = Web(pages, **options)
        self.addCleanup(w.close)
        return w

    def outcomes(self, path_end, count):
        """Code and status of the log's lines, sorted: those of several workers are not in order."""
        return sorted((a.code, a.status) for a in self.p.logged(path_end, count))

    def file(self, name):
        return os.path.join(self.folder, name)

    def start_client(self, *words, **options):
        """A program that runs beside the test; ended with it if it has not ended before."""
        process = subprocess.Popen(words, env=self.env, cwd=self.folder, start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, **options)
        self.addCleanup(self.end_client, process)
        return process

    def end_client(self, process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()

    def run_client(self, *words, timeout_s=120, **options):
        """Runs it to its end, which must be a good one, and returns what it said."""
        process = self.start_client(*words, **options)
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.end_client(process)
            self.fail("%s: no end within %d s" % (words, timeout_s))
        said = said.decode(errors="replace")
        self.assertEqual(process.returncode, 0, "%s\n%s" % (words, said[-2000:]))
        return said

    def certificate(self):
        """A key and a certificate that nobody vouches for, in one file."""
        self.run_client("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=127.0.0.1", "-keyout", "key", "-out", "crt")
        with open(self.file("pem"), "wb") as out:
            for name in "key", "crt":
                with open(self.file(name), "rb") as part:
                    out.write(part.read())
        return self.file("pem")


class Report(unittest.TextTestResult):
    """A line a test: ok NAME, or not ok NAME; what went wrong follows at the end."""

    def tell(self, word, test):
        took = time.monotonic() - self.began
        self.stream.write("%s %s (%.1f s)\n" % (word, test._testMethodName[5:], took))
        self.stream.flush()

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def addSuccess(self, test):
        super().addSuccess(test)
        self.tell("ok", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.tell("not ok", test)

    def addError(self, test, err):
        super().addError(test, err)
        self.tell("not ok", test)

    def addSkip(self, test, reason):
        """Nothing here is optional."""
        self.addError(test, (unittest.SkipTest, unittest.SkipTest(reason), None))


def need_packages():
    """Those of the list that are missing, by apt-get."""
    setup = os.path.join(HERE, "..", "..", "tools", "setup.sh")
    names = os.path.join(HERE, "packages")
    subprocess.run(["bash", "-c", '. "$0"; need_packages $(cat "$1")', setup, names], check=True)


def main():
    if not os.environ.get("CUTTLE"):
        sys.exit("CUTTLE must name the program; tools/test --real does that")
    need_packages()
    os.environ["CUTTLE"] = os.path.abspath(os.environ["CUTTLE"])
    runner = unittest.TextTestRunner(sys.stdout, verbosity=0, resultclass=Report)
    result = unittest.main(testRunner=runner, exit=False).result
    bad = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (max(0, result.testsRun - bad), bad), flush=True)
    sys.exit(1 if bad or not result.testsRun else 0)
