#!/usr/bin/env python3
"""apt through cuttle as build farms have it: packages kept for months, indexes validated on every
use. CUTTLE names the program.

The archive is a signed suite as Debian's are. What it publishes changes at one moment, so that an
index of one publication beside a Release file of another can only come from the proxy. apt checks
each index against the signed file and calls the pair a Hash Sum mismatch."""
import email.utils
import hashlib
import lzma
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from real import Real, main                                                     # noqa: E402
from harness import Client                                                      # noqa: E402

PACKAGES = 12
BINARY = "application/octet-stream"
SUITE = "/dists/stable/"
BY_HASH = "by-hash/SHA256/"
RELEASE = "Origin: cuttle\nSuite: stable\nCodename: stable\n"

# Packages fresh for 90 days; what names them asked about each time.
BUILDERS = ("refresh_pattern -i (/cgi-bin/|\\?) 0 0% 0",
            "refresh_pattern /(|In)Release(|\\.gpg)$ 0 0% 0",
            "refresh_pattern /(Packages|Sources)(|\\.gz|\\.bz2|\\.xz)$ 0 0% 0",
            "refresh_pattern \\.deb$ 129600 100% 129600",
            "refresh_pattern \\.udeb$ 129600 100% 129600",
            "refresh_pattern \\.tar\\.(gz|bz2|xz|lzma)$ 129600 100% 129600",
            "refresh_pattern . 0 20% 4320")

# Packages and what is named after its content are kept against the word of client and origin.
KEEPERS = ("refresh_pattern -i ^http://.+\\.deb$ 21600 20 21600 ignore-reload override-expire",
           "refresh_pattern -i ^http://.+[0-9a-f]{64}.*$ 21600 20 21600 ignore-reload "
           "override-expire",
           "refresh_pattern ^http://.*$ 0 0 0",
           "refresh_pattern . 0 20 4320")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Archive:
    """Its files, as a folder would have them, are the pages of a web server."""

    def __init__(self, test, packages, package_fields=()):
        self.test, self.packages, self.package_fields = test, packages, dict(package_fields)
        self.by_hash, self.has_tags, self.has_dates = False, True, True
        self.version, self.pool, self.hashed = 0, {}, {}
        self.time_s = int(time.time()) - 3600
        self.folder = test.file("archive")
        os.makedirs(self.folder + "/pool")
        self.make_key()
        for i in range(packages):
            self.build(i)
        self.architecture = self.run("dpkg", "--print-architecture").decode().strip()
        self.index = self.run("apt-ftparchive", "packages", "pool")
        self.web = test.web({})
        self.publish()

    def run(self, *words, given=b""):
        return subprocess.run(words, cwd=self.folder, env=self.test.env, input=given, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def make_key(self):
        self.test.env["GNUPGHOME"] = self.test.file("gnupg")
        os.mkdir(self.test.file("gnupg"), 0o700)
        self.test.addCleanup(self.run, "gpgconf", "--kill", "all")
        self.run("gpg", "--batch", "--passphrase", "", "--quick-gen-key", "archive@example.com")
        with open(self.test.file("archive.gpg"), "wb") as f:
            f.write(self.run("gpg", "--batch", "--export"))

    def build(self, i):
        """A package that needs the next one."""
        name = "cuttle-test-%d" % i
        top = os.path.join(self.folder, "build")
        os.makedirs(top + "/DEBIAN")
        os.makedirs(top + "/usr/share/" + name)
        with open(top + "/DEBIAN/control", "w") as f:
            f.write("Package: %s\nVersion: 1.0\nArchitecture: all\nDescription: a test\n"
                    "Maintainer: Nobody <nobody@example.com>\n" % name)
            if i + 1 < self.packages:
                f.write("Depends: cuttle-test-%d\n" % (i + 1))
        with open(top + "/usr/share/%s/data" % name, "wb") as f:
            f.write(os.urandom(100_000 + i))
        path = "pool/%s_1.0_all.deb" % name
        self.run("dpkg-deb", "-Znone", "--build", top, path)
        shutil.rmtree(top)
        with open(os.path.join(self.folder, path), "rb") as f:
            self.pool["/" + path] = (f.read(), BINARY, self.package_fields)

    def page(self, content):
        """Sizes are equal from one publication to the next: they tell nothing."""
        tag = '"%s"' % sha256(b"%d " % self.time_s + content)[:16]
        date = email.utils.formatdate(self.time_s, usegmt=True)
        return content, BINARY, {"ETag": tag if self.has_tags else None,
                                 "Last-Modified": date if self.has_dates else None}

    def touch(self):
        """Dates and tags change, the content does not. Dates differ by a second: that is how
        finely they tell."""
        self.time_s = max(self.time_s + 1, int(time.time()))
        names = "InRelease", self.packages_name()
        pages = {SUITE + n: self.page(self.web.pages[SUITE + n][0]) for n in names}
        self.web.pages = dict(self.web.pages, **pages)

    def packages_name(self):
        return "main/binary-%s/Packages.xz" % self.architecture

    def publish(self):
        self.version += 1
        self.time_s = max(self.time_s + 1, int(time.time()))
        news = b"Package: cuttle-news\nVersion: %06d\nArchitecture: all\nDescription: news\n" \
               b"Maintainer: Nobody <nobody@example.com>\nFilename: pool/news.deb\nSize: 1\n" \
               b"SHA256: %s\n\n" % (self.version, b"0" * 64)
        plain = news + self.index
        packed = lzma.compress(plain)
        release = self.signed(plain, packed)
        name = self.packages_name()
        folder = SUITE + os.path.dirname(name) + "/"
        if self.by_hash:
            self.hashed[folder + BY_HASH + sha256(packed)] = self.page(packed)
        self.web.pages = {**self.pool, **self.hashed, SUITE + "InRelease": self.page(release),
                          SUITE + name: self.page(packed)}

    def signed(self, plain, packed):
        text = RELEASE + "Version: %06d\nArchitectures: %s\nComponents: main\nDate: %s\n" % (
            self.version, self.architecture, email.utils.formatdate(self.time_s, usegmt=True))
        if self.by_hash:
            text += "Acquire-By-Hash: yes\n"
        text += "SHA256:\n"
        name = self.packages_name()
        for content, path in (plain, name[:-3]), (packed, name):
            text += " %s %d %s\n" % (sha256(content), len(content), path)
        return self.run("gpg", "--batch", "--clearsign", given=text.encode())

    def answers(self, since=0):
        """What the origin was asked for of the indexes: (path, status, whether conditional)."""
        return [a for a in self.web.answers[since:] if a[0].startswith(SUITE)]


class Apt(Real):
    """apt with a root folder, and without the machine's configuration: its hooks would act here."""

    def machine(self, name):
        root = self.file(name)
        for d in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/apt/sources.list.d",
                  "var/cache/apt/archives/partial", "var/lib/apt/lists/partial",
                  "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log/apt", "tmp"):
            os.makedirs(os.path.join(root, d))
        open(root + "/var/lib/dpkg/status", "w").close()
        with open(root + "/etc/apt/sources.list", "w") as f:
            f.write("deb [signed-by=%s] %s stable main\n"
                    % (self.file("archive.gpg"), self.archive.web.base))
        with open(root + "/apt.conf", "w") as f:
            f.write('Dir "%s/";\nDir::State::status "%s/var/lib/dpkg/status";\n' % (root, root))
            f.write('Dir::Log "%s/var/log/apt";\nAPT::Sandbox::User "";\n' % root)
            f.write('Acquire::http::Proxy "%s";\nAcquire::Languages "none";\n' % self.proxy)
            f.write('Debug::NoLocking "1";\nAcquire::Retries "0";\n')
            f.write('Dpkg::Options { "--root=%s"; "--force-not-root"; "--force-bad-path"; '
                    '"--force-unsafe-io"; "--log=/dev/null"; };\n' % root)
        return root

    def begin_apt(self, root, *words):
        self.env["APT_CONFIG"] = root + "/apt.conf"
        return self.start_client("apt-get", "-q", "-y", *words)

    def end_apt(self, process):
        said = process.communicate(timeout=120)[0].decode(errors="replace")
        self.assertEqual(process.returncode, 0, said)
        for trouble in "Err:", "Ign:", "W:", "E:", "mismatch":
            self.assertNotIn(trouble, said)
        return said

    def apt(self, root, *words):
        return self.end_apt(self.begin_apt(root, *words))

    def list_of(self, root, name_end):
        folder = root + "/var/lib/apt/lists"
        name = next(n for n in os.listdir(folder) if n.endswith(name_end))
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            return f.read()

    def assert_up_to_date(self, root):
        version = "Version: %06d\n" % self.archive.version
        self.assertIn(version, self.list_of(root, "_InRelease"))
        self.assertIn(version, self.list_of(root, "_Packages"))

    def update(self, *roots):
        """All of them at once."""
        for process in [self.begin_apt(root, "update") for root in roots]:
            self.end_apt(process)
        for root in roots:
            self.assert_up_to_date(root)

    def assert_pair(self):
        """What a client gets that asks for nothing in particular: no max-age, no validator."""
        got = []
        for name in "InRelease", self.archive.packages_name():
            with Client(self.p.address) as c:
                r = c.get(self.archive.web.base + SUITE + name)
            self.assertEqual(r.status, 200)
            got.append(r.body)
        self.assertIn(b"Version: %06d\n" % self.archive.version, got[0])
        self.assertIn(sha256(got[1]).encode(), got[0])

    def install(self, root, packages, *words):
        self.apt(root, *words, "install", "cuttle-test-0")
        for i in range(packages):
            data = root + "/usr/share/cuttle-test-%d/data" % i
            self.assertEqual(os.path.getsize(data), 100_000 + i)
        shutil.rmtree(root + "/var/cache/apt/archives")


class Recipe:
    """The same for each set of refresh_pattern lines."""
    package_fields = ()
    reload_words = ()

    def open_archive(self, packages=0):
        self.archive = Archive(self, packages, self.package_fields)

    def test_a_package_fetched_by_one_machine_is_a_hit_for_the_next(self):
        self.open_archive(PACKAGES)
        for name in "one", "two":
            root = self.machine(name)
            self.update(root)
            self.install(root, PACKAGES, *self.reload_words)
        self.assertIn("Hit:", self.apt(root, "update"))
        asked = [n for path, n in self.archive.web.counts.items() if path.endswith(".deb")]
        self.assertEqual(asked, [1] * PACKAGES)
        hits = [a for a in self.p.logged(".deb", 2 * PACKAGES) if "_HIT" in a.code]
        self.assertEqual(len(hits), PACKAGES)

    def test_unchanged_indexes_are_asked_for_with_a_condition_and_answered_304(self):
        self.open_archive()
        for self.archive.by_hash in False, True:
            self.archive.publish()
            self.update(self.machine("first-%d" % self.archive.by_hash))
            self.assert_pair()
            seen = len(self.archive.web.answers)
            other = self.machine("other-%d" % self.archive.by_hash)
            self.update(other)                  # a machine that has nothing, and so asks for all
            self.apt(other, "update")
            self.assert_pair()
            asked = self.archive.answers(seen)
            self.assertEqual({a[1:] for a in asked}, {(304, True)}, asked)
            self.assertGreaterEqual([a[0] for a in asked].count(SUITE + "InRelease"), 3)

    def follow(self, *waits_s):
        """Publications seen at once: by two clients at the same time that have the last one, by one
        that asks alone and one that comes after it, by a new one."""
        a, b = (self.machine("%s%d" % (n, self.archive.version)) for n in "ab")
        self.update(a, b)
        for wait_s in waits_s:
            self.archive.publish()
            time.sleep(wait_s)
            self.update(a, b)
            self.assert_pair()
        self.archive.publish()
        self.update(a)
        self.archive.publish()
        self.assert_pair()
        self.update(b, self.machine("c%d" % self.archive.version))
        self.archive.touch()
        self.update(a, b)
        self.assert_pair()

    def follow_each_kind_of_validator(self, by_hash):
        self.open_archive()
        self.archive.by_hash = by_hash
        for tags, dates in (True, True), (False, True), (True, False):
            self.archive.has_tags, self.archive.has_dates = tags, dates
            self.archive.publish()
            self.follow(*((0, 0.5, 1, 2) if tags and dates else (0,)))

    def test_a_publication_is_seen_by_the_next_update_of_any_client(self):
        self.follow_each_kind_of_validator(by_hash=False)

    def test_a_publication_by_hash_is_seen_by_the_next_update_of_any_client(self):
        self.follow_each_kind_of_validator(by_hash=True)


class Builders(Recipe, Apt):
    conf = BUILDERS


class Keepers(Recipe, Apt):
    """The origin wants its packages validated each time, the client wants them anew."""
    conf = KEEPERS
    package_fields = (("Cache-Control", "max-age=0"), ("Expires", "0"))
    reload_words = ("-o", "Acquire::http::No-Cache=true")


if __name__ == "__main__":
    main()
