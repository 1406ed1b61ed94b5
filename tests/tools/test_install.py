"""`cmake --install` into an empty folder: what is there, and whether it fits together."""
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

BUILD = os.environ["TOOLS"]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="cuttle-install-")
        cls.addClassCleanup(shutil.rmtree, cls.root)
        cls.install()

    @classmethod
    def install(cls):
        done = subprocess.run(["cmake", "--install", BUILD], capture_output=True, text=True,
                              timeout=120, env=dict(os.environ, DESTDIR=cls.root))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def find(self, end):
        """The one installed file whose path ends so."""
        found = [path for path in glob.glob(self.root + "/**", recursive=True)
                 if path.endswith(end)]
        self.assertEqual(len(found), 1, (end, found))
        return found[0]

    def read(self, end):
        with open(self.find(end)) as f:
            return f.read()

    def test_everything_is_in_its_place(self):
        for end in ("/sbin/cuttle", "/man/man8/cuttle.8", "/man/man5/cuttle.conf.5",
                    "/man/man7/cuttle-http.7", "/etc/cuttle/cuttle.conf", "/doc/cuttle/cuttle.conf",
                    "/doc/cuttle/LICENSE", "/lib/systemd/system/cuttle.service",
                    "/etc/logrotate.d/cuttle"):
            self.assertTrue(os.path.getsize(self.find(end)), end)

    def test_the_pages_are_of_this_program(self):
        version = run(self.find("/sbin/cuttle"), "-v").stdout.strip()
        self.assertIn(version, self.read("/cuttle.8"))
        for page in ("/cuttle.8", "/cuttle.conf.5", "/cuttle-http.7"):
            self.assertTrue(self.read(page).startswith(".TH CUTTLE"), page)

    def test_the_configuration_is_good_and_for_a_service(self):
        done = run(self.find("/sbin/cuttle"), "-k", "parse", "-f",
                   self.find("/etc/cuttle/cuttle.conf"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = self.read("/etc/cuttle/cuttle.conf").splitlines()
        for line in ("http_port 127.0.0.1:3128", "cache_dir cuttle /var/cache/cuttle 4000",
                     "access_log /var/log/cuttle/access.log squid",
                     "cache_log /var/log/cuttle/cache.log", "logfile_rotate 0",
                     "pid_filename /run/cuttle/cuttle.pid", "http_access deny all"):
            self.assertEqual(lines.count(line), 1, line)
        self.assertNotIn("stdout", "".join(lines))

    def test_a_configuration_that_is_there_is_kept(self):
        path = self.find("/etc/cuttle/cuttle.conf")
        with open(path, "a") as f:
            f.write("# mine\n")
        self.assertIn("Kept: " + path, self.install())
        self.assertTrue(self.read("/etc/cuttle/cuttle.conf").endswith("# mine\n"))
        self.assertFalse(self.read("/doc/cuttle/cuttle.conf").endswith("# mine\n"))

    def test_unit_configuration_and_logrotate_speak_of_the_same_places(self):
        unit, rotate = self.read("/cuttle.service"), self.read("/logrotate.d/cuttle")
        for path in re.findall(r"^Exec\w+=(/\S+/cuttle) .*-f (\S+)$", unit, re.M)[0]:
            self.assertTrue(os.path.exists(self.root + path), path)
        folders = {"cache_dir": "CacheDirectory", "access_log": "LogsDirectory",
                   "cache_log": "LogsDirectory", "pid_filename": "RuntimeDirectory"}
        for line in self.read("/etc/cuttle/cuttle.conf").splitlines():
            if line.split(" ")[0] in folders:
                self.assertRegex(line, r"/(cache|log|run)/cuttle\b")
                self.assertIn("\n%s=cuttle\n" % folders[line.split(" ")[0]], unit)
        self.assertIn("/var/log/cuttle/*.log", rotate)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd here")
    def test_systemd_understands_the_unit(self):
        """With the program's place in this folder, so that it finds it."""
        unit = self.read("/cuttle.service")
        path = os.path.join(self.root, "cuttle.service")
        with open(path, "w") as f:
            f.write(re.sub(r"(?<=Exec)(\w+)=(?=/\S+/cuttle )", r"\1=" + self.root, unit))
        self.addCleanup(os.remove, path)
        done = run("systemd-analyze", "verify", "--man=no", path)
        self.assertEqual([line for line in done.stderr.splitlines() if "cuttle.service" in line], [])


if __name__ == "__main__":
    unittest.main()
