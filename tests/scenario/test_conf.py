"""The configuration: mistakes are named by line, and it can be changed while the proxy runs."""
import os
import pwd
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

import harness
from harness import Client, Exited, Scenario, reply, run_cuttle, storable, together, wait_for


class Parsing(Scenario):
    def parse(self, *lines, name="cuttle.conf"):
        """-k parse of these lines: (exit code, all it said)."""
        self.conf = self.write(self.temporary_folder(), name, "\n".join(lines) + "\n")
        code, out, err = run_cuttle("-k", "parse", "-f", self.conf)
        return code, out + err

    def assert_refused(self, *lines, at=None):
        code, said = self.parse(*lines)
        self.assertNotEqual(code, 0, said)
        self.assertRegex(said, r"cuttle\.conf:%d: " % (at or len(lines)))
        return said

    def test_a_good_configuration_parses_with_0(self):
        code, said = self.parse(
            "# a comment", "http_port 3128", "acl lan src 10.0.0.0/8 192.168.0.0/16 fe80::/10",
            "acl work time MTWHF 08:00-17:00", "acl ads dstdomain .ads.example  # behind a line",
            "acl SSL_ports port 443", "http_access deny CONNECT !SSL_ports",
            "http_access allow lan", "http_access deny all", "cache_mem 64 MB",
            "maximum_object_size 8 MB",
            "refresh_pattern -i \\.deb$ 129600 100% 129600", "refresh_pattern . 0 20% 4320",
            "logformat mine %ts.%03tu %>a %rm %ru", "access_log stdio:/nowhere/access.log mine",
            "forwarded_for delete", "via off", "read_timeout 5 minutes", "workers 2")
        self.assertEqual(code, 0, said)

    def test_ten_mistakes_give_ten_messages_with_their_lines(self):
        mistakes = ["http_port nonsense", "acl lan src 10.0.0.300", "acl x no_such_type a",
                    "http_access maybe all", "http_access allow no_such_acl",
                    "cache_mem 12 bananas", "refresh_pattern ( 0 20% 4320", "read_timeout forever",
                    "via perhaps", "workers -1"]
        code, said = self.parse("http_port 3128", *mistakes)
        self.assertNotEqual(code, 0)
        for number, line in enumerate(mistakes, 2):
            word = line.split(" ")[0]
            self.assertEqual(len(re.findall(r"cuttle\.conf:%d: .*%s" % (number, word), said)), 1,
                             "%s\n%s" % (line, said))

    def test_a_broken_configuration_does_not_start(self):
        with self.assertRaises(Exited) as told:
            self.cuttle("cache_mem 12 bananas")
        self.assertRegex(told.exception.text, r"cuttle\.conf:\d+: cache_mem")

    def test_a_value_out_of_range_says_what_was_expected(self):
        self.assertRegex(self.assert_refused("http_port 3128", "cache_mem 4 MB"),
                         r"cache_mem: .*8 MB")

    def test_what_only_tunes_is_accepted_with_a_note(self):
        code, said = self.parse("http_port 3128", "coredump_dir /var/spool", "memory_pools off",
                                "icon_directory /usr/share/icons", "hierarchy_stoplist cgi-bin ?",
                                "cache_swap_low 90", "http_access deny all")
        self.assertEqual(code, 0, said)
        self.assertIn("icon_directory", said)

    def test_what_narrows_access_and_is_not_supported_is_refused(self):
        for line in ("auth_param basic program /usr/lib/auth /etc/users",
                     "acl users proxy_auth REQUIRED\nhttp_access deny !users\nhttp_access deny all", "external_acl_type t %SRC /bin/helper",
                     "ssl_bump terminate all", "adaptation_access x allow all"):
            self.assert_refused("http_port 3128", line, at=3 if "\n" in line else 2)

    def test_include_takes_in_other_files_and_names_them(self):
        folder = self.temporary_folder()
        self.write(folder, "a.conf", "acl lan src 10.0.0.0/8\n")
        bad = self.write(folder, "b.conf", "\n\nvia perhaps\n")
        code, said = self.parse("http_port 3128", "include %s/a.conf" % folder,
                                "http_access allow lan")
        self.assertEqual(code, 0, said)
        code, said = self.parse("http_port 3128", "include %s/*.conf" % folder)
        self.assertNotEqual(code, 0)
        self.assertIn("%s:3: " % bad, said)

    def test_an_include_ring_ends(self):
        folder = self.temporary_folder()
        ring = self.write(folder, "ring.conf", "include %s/ring.conf\n" % folder)
        code, _, _ = run_cuttle("-k", "parse", "-f", ring)
        self.assertNotEqual(code, 0)

    def test_acl_values_may_come_from_a_file(self):
        o = self.origin(reply(body=b"x"))
        names = self.write(self.temporary_folder(), "names", "# bad\nbad.test\n\n.worse.test\n")
        p = self.cuttle('acl bad dstdomain "%s"' % names, "http_access deny bad",
                        self.hosts(good_test="127.0.0.1"))
        self.assertEqual(self.get(p, o.url("/", "good.test")).status, 200)
        for name in ("bad.test", "a.worse.test", "worse.test"):
            self.assertEqual(self.get(p, o.url("/", name)).status, 403)

    def test_a_line_may_go_on_behind_a_backslash(self):
        code, said = self.parse("http_port 3128", "acl lan src 10.0.0.0/8 \\", "  192.168.0.0/16",
                                "http_access allow lan", "via perhaps")
        self.assertNotEqual(code, 0)
        self.assertRegex(said, r"cuttle\.conf:5: ")

    def test_binary_rubbish_is_no_configuration(self):
        folder = self.temporary_folder()
        path = os.path.join(folder, "rubbish.conf")
        with open(path, "wb") as f:
            f.write(bytes(range(256)) * 1000)
        code, _, err = run_cuttle("-k", "parse", "-f", path)
        self.assertIn(code, range(1, 99), err[-500:])

    def test_a_missing_file_is_told(self):
        code, out, err = run_cuttle("-k", "parse", "-f", "/nowhere/cuttle.conf")
        self.assertNotEqual(code, 0)
        self.assertIn("/nowhere/cuttle.conf", out + err)


class Arguments(Scenario):
    def test_v_tells_the_version(self):
        code, out, err = run_cuttle("-v")
        self.assertEqual(code, 0)
        self.assertRegex(out + err, r"(?i)cuttle.*\d+\.\d+")

    def test_the_manuals_come_from_the_program(self):
        for argument, title in (("--man8", ".TH CUTTLE 8"), ("--man5", ".TH CUTTLE.CONF 5"),
                                ("--man7", ".TH CUTTLE\\-HTTP 7")):
            code, out, _ = run_cuttle(argument)
            self.assertEqual((code, out[:len(title)]), (0, title))
            self.assertIn("RFC 9111" if argument == "--man7" else "cuttle", out)

    def test_z_makes_the_stores_on_disk(self):
        folder = self.temporary_folder()
        conf = self.write(folder, "c.conf", "http_port 3128\ncache_dir ufs %s/store 16\n" % folder)
        self.assertEqual(run_cuttle("-z", "-f", conf)[0], 0)
        self.assertEqual(os.path.getsize(folder + "/store/cuttle.store"), 16 << 20)
        bad = self.write(folder, "bad.conf", "http_port 3128\ncache_dir ufs /proc/x 16\n")
        code, out, err = run_cuttle("-z", "-f", bad)
        self.assertEqual(code, 1)
        self.assertIn("bad.conf:2: cache_dir: /proc/x: ", out + err)

    def test_z_has_nothing_to_make_without_a_disk_store(self):
        conf = self.write(self.temporary_folder(), "c.conf", "http_port 3128\n")
        self.assertEqual(run_cuttle("-z", "-f", conf)[0], 0)

    def test_an_unknown_argument_is_an_error(self):
        for arguments in (["--no-such-thing"], ["-d", "much"], ["-d"], ["-k", "nothing"]):
            code, out, err = run_cuttle(*arguments)
            self.assertEqual(code, 2, arguments)
            self.assertGreater(len(out + err), 10)

    def test_a_port_in_use_is_told(self):
        lease = harness.PortLease()
        self.addCleanup(lease.release)
        taken = socket.socket()
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", lease.number))
        taken.listen(1)
        self.addCleanup(taken.close)
        conf = self.write(self.temporary_folder(), "c.conf",
                          "http_port 127.0.0.1:%d\npid_filename none\ncache_log stderr\n"
                          "access_log none\n" % lease.number)
        code, out, err = run_cuttle("-N", "-f", conf)
        self.assertNotEqual(code, 0)
        self.assertIn(str(lease.number), out + err)

    def test_k_speaks_to_the_one_whose_pid_file_it_is(self):
        folder = self.temporary_folder()
        p = self.cuttle("pid_filename %s/pid" % folder)
        self.assertEqual(int(open(folder + "/pid").read()), p.pid)
        self.assertEqual(run_cuttle("-k", "check", "-f", p.conf_path)[0], 0)
        self.assertEqual(run_cuttle("-k", "reconfigure", "-f", p.conf_path)[0], 0)
        self.assertEqual(run_cuttle("-k", "rotate", "-f", p.conf_path)[0], 0)
        self.assertTrue(p.is_running())
        self.assertEqual(run_cuttle("-k", "shutdown", "-f", p.conf_path)[0], 0)
        wait_for(lambda: not p.is_running(), "the end")
        self.assertFalse(os.path.exists(folder + "/pid"))
        self.assertNotEqual(run_cuttle("-k", "check", "-f", p.conf_path)[0], 0)


class Names(Scenario):
    def test_proxies_of_one_visible_hostname_tell_each_other_by_their_unique_one(self):
        """Loops are found by the name in Via; people see the other."""
        o = self.origin(reply(body=b"x"))
        p = self.cuttle("visible_hostname all.test", "unique_hostname one.test")
        r = self.get(p, o.url("/"), "Via: 1.1 all.test (cuttle)")
        self.assertEqual(r.status, 200)
        self.assertIn("one.test", o.last().field("Via"))
        self.assertTrue(r.cache_status.startswith("one.test"), r.cache_status)
        looped = self.get(p, o.url("/"), "Via: 1.1 one.test")
        self.assertEqual(looped.status, 508)
        self.assertIn(b"all.test", looped.body)


@unittest.skipIf(os.geteuid(), "only root becomes somebody else")
class Accounts(Scenario):
    def ids(self, p):
        with open("/proc/%d/status" % p.pid) as f:
            return [int(n) for n in re.search(r"Uid:\s*(\d+).*\nGid:\s*(\d+)", f.read()).groups()]

    def assert_becomes(self, conf, user, group):
        p = self.cuttle(*conf)
        wait_for(lambda: self.ids(p) == [user, group], "another account")
        os.chmod(p.folder, 0o755)
        p.send_signal(signal.SIGHUP)  # opens the logs, which root has made, again
        wait_for(lambda: "reconfigured" in p.cache_log(), "the new configuration")
        self.assertNotIn("cache_effective", p.cache_log())
        self.assertEqual(os.stat(p.path("access.log")).st_uid, user)

    def test_root_becomes_the_user_the_group_or_both(self):
        daemon, nobody = pwd.getpwnam("daemon"), pwd.getpwnam("nobody")
        self.assert_becomes(["cache_effective_user daemon"], daemon.pw_uid, daemon.pw_gid)
        self.assert_becomes(["cache_effective_group daemon"], 0, daemon.pw_gid)
        self.assert_becomes(["cache_effective_user nobody", "cache_effective_group daemon"],
                            nobody.pw_uid, daemon.pw_gid)

    def test_an_account_that_is_not_there_is_told_at_once(self):
        for line in ("cache_effective_user nosuch", "cache_effective_group nosuch"):
            with self.assertRaises(Exited) as told:
                self.cuttle(line)
            self.assertRegex(told.exception.text,
                             r"cuttle\.conf:\d+: %s: .*nosuch" % line.split()[0])


class Background(Scenario):
    """Without -N: the starter tells by its end how the start went."""

    def conf(self, *lines):
        self.folder = self.temporary_folder()
        self.lease = harness.PortLease()
        self.addCleanup(self.lease.release)
        usual = ["http_port 127.0.0.1:%d" % self.lease.number, "pid_filename %s/pid" % self.folder,
                 "cache_log %s/cache.log" % self.folder, "access_log none", "http_access allow all",
                 "shutdown_lifetime 0 seconds"]
        named = {line.split(" ")[0] for line in lines}
        self.addCleanup(self.end)
        return self.write(self.folder, "c.conf", "\n".join(
            [line for line in usual if line.split(" ")[0] not in named] + list(lines)) + "\n")

    def pid(self):
        with open(self.folder + "/pid") as f:
            return int(f.read())

    def end(self):
        if os.path.exists(self.folder + "/pid"):
            os.kill(self.pid(), signal.SIGTERM)
            wait_for(lambda: not os.path.exists(self.folder + "/pid"), "the daemon to end")

    def assert_told(self, conf, pattern):
        code, out, err = run_cuttle("-f", conf)
        self.assertEqual(code, 1, out + err)
        self.assertRegex(err, pattern)

    def test_the_starter_ends_with_0_when_the_daemon_serves(self):
        """And its output with it: who reads from it must not wait for the daemon's end."""
        o = self.origin(reply(body=b"x"))
        conf = self.conf()
        code, out, err = run_cuttle("-f", conf)
        self.assertEqual((code, out), (0, ""), err)
        with Client(("127.0.0.1", self.lease.number)) as c:
            self.assertEqual(c.get(o.url("/")).status, 200)
        self.assertEqual(run_cuttle("-k", "check", "-f", conf)[0], 0)
        self.assert_told(conf, r"process %d .*is running" % self.pid())
        for fd in range(3):
            self.assertEqual(os.readlink("/proc/%d/fd/%d" % (self.pid(), fd)), "/dev/null")

    def test_what_goes_wrong_at_the_start_is_told_and_ends_with_1(self):
        for line, what in (("access_log stdio:/nowhere/log", r"c\.conf:\d+: access_log: .*nowhere"),
                           ("pid_filename /nowhere/pid", r"pid_filename /nowhere/pid: No such")):
            self.assert_told(self.conf(line), what)
            self.assertFalse(os.path.exists(self.folder + "/pid"))
        conf = self.conf()
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", self.lease.number))
            taken.listen(1)
            self.assert_told(conf, r"c\.conf:1: http_port: .*in use")
        self.assertFalse(os.path.exists(self.folder + "/pid"))

    def test_a_daemon_that_dies_while_it_starts_is_told(self):
        """It hangs in opening a pipe nobody reads, until it is killed."""
        conf = self.conf()
        os.mkfifo(self.folder + "/cache.log")
        starter = subprocess.Popen([harness.binary(), "-f", conf], stderr=subprocess.PIPE)
        children = "/proc/%d/task/%d/children" % (starter.pid, starter.pid)
        with open(children) as f:
            child = wait_for(lambda: f.seek(0) or f.read().split(), "the daemon")[0]
        os.kill(int(child), signal.SIGKILL)
        said = starter.communicate(timeout=harness.TIMEOUT_S)[1].decode()
        self.assertEqual(starter.returncode, 1)
        self.assertIn("process %s ended while it started: Killed" % child, said)

    def test_a_log_that_leads_nowhere_in_the_background_is_told(self):
        code, _, err = run_cuttle("-f", self.conf("access_log stdio:/dev/stdout"))
        self.assertEqual(code, 0)
        self.assertIn("access_log stdout leads nowhere", err)

    def test_closed_standard_streams_are_nobodys_files(self):
        conf = self.conf()
        closed = 'exec "$0" -f "$1" <&- >&- 2>&-'
        done = subprocess.run(["sh", "-c", closed, harness.binary(), conf],
                              timeout=harness.TIMEOUT_S)
        self.assertEqual(done.returncode, 0)
        for fd in range(3):
            self.assertEqual(os.readlink("/proc/%d/fd/%d" % (self.pid(), fd)), "/dev/null")


class Reload(Scenario):
    def reconfigured(self, p, claim):
        p.send_signal(signal.SIGHUP)
        wait_for(claim, "the new configuration")

    def test_sighup_brings_the_new_access_list(self):
        o = self.origin(reply(body=b"x"))
        p = self.cuttle(access="http_access allow all")
        with Client(p.address) as kept:
            self.assertEqual(kept.get(o.url("/")).status, 200)
            p.write_conf(access="http_access deny all")
            self.reconfigured(p, lambda: self.get(p, o.url("/")).status == 403)
            self.assertEqual(kept.get(o.url("/")).status, 403, "a kept connection sees it too")
            p.write_conf(access="http_access allow all")
            self.reconfigured(p, lambda: self.get(p, o.url("/")).status == 200)

    def test_the_store_survives(self):
        o = self.origin(storable(b"kept"))
        p = self.cuttle("visible_hostname one.test")
        self.get(p, o.url("/"))
        p.write_conf(["visible_hostname two.test"])
        self.reconfigured(p, lambda: "two.test" in self.get(p, o.url("/")).cache_status)
        self.assertTrue(self.get(p, o.url("/")).hit)
        self.assertEqual(len(o.requests), 1)

    def test_a_broken_configuration_leaves_the_old_one_in_force(self):
        o = self.origin(reply(body=b"x"))
        p = self.cuttle()
        p.write_conf(["via perhaps"], access="http_access deny all")
        p.send_signal(signal.SIGHUP)
        wait_for(lambda: re.search(r"cuttle\.conf:\d+: via", p.cache_log()), "the complaint")
        self.assertEqual(self.get(p, o.url("/")).status, 200)

    def test_running_transfers_and_tunnels_go_on(self):
        o = self.origin((reply("200 OK", "Content-Length: 20"), b"x" * 10, 1.0, b"y" * 10))
        t = self.origin(raw=lambda c: [c.send(c.read_exactly(1)) for _ in range(2)])
        p = self.cuttle()
        download, tunnel = self.client(p), self.client(p)
        download.request("GET", o.url("/"))
        tunnel.connect_tunnel(t.authority)
        tunnel.send("a")
        self.assertEqual(tunnel.read_exactly(1), b"a")
        p.write_conf(access="http_access deny all")
        self.reconfigured(p, lambda: self.get(p, o.url("/")).status == 403)
        self.assertEqual(download.read_response().body, b"x" * 10 + b"y" * 10)
        tunnel.send("b")
        self.assertEqual(tunnel.read_exactly(1), b"b")

    def test_no_connection_is_refused_and_none_broken_while_it_reloads(self):
        o = self.origin(reply(body=b"x" * 5000))
        p = self.cuttle()
        stop = threading.Event()

        def run(i):
            n = 0
            while not stop.is_set() or i == 0 and n == 0:
                if i == 0:
                    for _ in range(15):
                        p.send_signal(signal.SIGHUP)
                        time.sleep(0.15)
                    stop.set()
                    return 0
                self.assertEqual(self.get(p, o.url("/")).status, 200)
                n += 1
            return n
        self.assertGreater(sum(together(6, run)), 20)


    def reload_as(self, p, lines):
        """A new configuration, and not before it is in force is anything else done."""
        before = p.cache_log().count("reconfigured")
        p.write_conf(lines)
        p.send_signal(signal.SIGHUP)
        wait_for(lambda: p.cache_log().count("reconfigured") > before, "the new configuration")

    def test_each_request_sees_one_whole_configuration_and_nothing_breaks(self):
        """Two that deny different paths, by turns, under load; then the end, in time."""
        go = threading.Event()
        o = self.origin(lambda q: (reply("200 OK", "Content-Length: 20"), b"x" * 10, go, b"y" * 10)
                        if q.target == "/long" else reply(body=b"x" * 5000))
        t = self.origin(raw=lambda c: [c.send(c.read_exactly(1)) for _ in range(2)])
        confs = [["visible_hostname %s.test" % name, "acl no urlpath_regex ^/%s" % other,
                  "http_access deny no", "shutdown_lifetime 10 seconds"]
                 for name, other in ("ab", "ba")]
        p = self.cuttle(*confs[0])
        downloads, tunnels = ([self.client(p) for _ in range(5)] for _ in range(2))
        for c in downloads:
            c.request("GET", o.url("/long"))
            c.read_exactly(10)
        for c in tunnels:
            c.connect_tunnel(t.authority)
            c.send("a")
            self.assertEqual(c.read_exactly(1), b"a")
        seen, stop = set(), threading.Event()
        whole = ({("a", 200, "a"), ("b", 403, "a")}, {("b", 200, "b"), ("a", 403, "b")})

        def ask(c, path):
            r = c.get(o.url("/" + path))
            name = (r.field("Via") if r.status == 200 else r.field("Proxy-Status"))
            seen.add((path, r.status, re.search(r"(\w)\.test", name).group(1)))

        def run(i):
            if i == 0:
                try:
                    for n in range(12):
                        wait_for(lambda: seen >= whole[n % 2], "answers by this configuration")
                        self.reload_as(p, confs[(n + 1) % 2])
                finally:
                    stop.set()
            while not stop.is_set():
                with Client(p.address) as c:
                    for path in "abab"[:1 + i % 4]:
                        ask(c, path)
        together(21, run)
        self.assertEqual(seen, whole[0] | whole[1])
        p.send_signal(signal.SIGTERM)
        wait_for(lambda: not harness.is_listening(p.port), "the listeners to close")
        go.set()
        for c in downloads:
            c.read_until(b"x" * 10 + b"y" * 10) if c.pending else c.read_until(b"y" * 10)
        for c in tunnels:
            c.send("b")
            self.assertEqual(c.read_exactly(1), b"b")
        self.assertLess(p.stop(), 9)

    def test_many_reloads_leave_nothing_behind(self):
        names = self.write(self.temporary_folder(), "names",
                           "".join("n%d.example\n" % i for i in range(2000)))
        lines = ['acl bad dstdomain "%s"' % names, "http_access deny bad"]
        o = self.origin(reply(body=b"x"))
        p = self.cuttle(*lines, lean=True)
        for n in range(150):
            if n == 30:
                memory, descriptors = p.memory_kb(), p.descriptors()
            self.reload_as(p, lines)
            if n % 10 == 0:
                self.get(p, o.url("/"))
        self.assertLess(p.memory_kb() - memory, harness.MEMORY_FACTOR * (2 << 10))
        self.assertLessEqual(p.descriptors(), descriptors + 2)


class Rotation(Scenario):
    def test_no_line_is_lost_torn_or_doubled(self):
        o = self.origin(lambda q: reply(body=b"x"))
        p = self.cuttle("logfile_rotate 0")
        names, stop = ["access.log"], threading.Event()

        def rotate():
            for i in range(5):
                time.sleep(0.2)
                os.rename(p.path("access.log"), p.path("access.%d" % i))
                names.append("access.%d" % i)
                p.send_signal(signal.SIGUSR1)
                wait_for(lambda: os.path.exists(p.path("access.log")), "the new file")
            stop.set()

        def run(i):
            if i == 0:
                return rotate()
            n = 0
            with Client(p.address) as c:
                while not stop.is_set():
                    c.get(o.url("/%d-%d" % (i, n)))
                    n += 1
            return n
        asked = sum(filter(None, together(5, run)))

        def lines():
            return [line.url for name in names for line in p.access_log(name=name)]
        wait_for(lambda: len(lines()) >= asked, "%d lines" % asked)
        self.assertEqual((len(lines()), len(set(lines()))), (asked, asked))

    def test_a_rotation_that_cannot_be_done_keeps_the_old_file(self):
        o = self.origin(reply(body=b"x"))
        p = self.cuttle("logfile_rotate 0")
        self.get(p, o.url("/1"))
        p.logged("/1")
        kept = p.path("kept.log")
        os.rename(p.path("access.log"), kept)
        os.mkdir(p.path("access.log"))
        p.send_signal(signal.SIGUSR1)
        time.sleep(0.5)
        self.get(p, o.url("/2"))
        wait_for(lambda: [a for a in p.access_log(name="kept.log") if a.url.endswith("/2")],
                 "the line in the old file")

    def test_a_rotation_that_failed_is_told_and_works_the_next_time(self):
        o = self.origin(reply(body=b"x"))
        p = self.cuttle("logfile_rotate 0")
        os.rename(p.path("access.log"), p.path("kept.log"))
        os.mkdir(p.path("access.log"))
        p.send_signal(signal.SIGUSR1)
        wait_for(lambda: "cannot reopen" in p.cache_log(), "the complaint")
        self.get(p, o.url("/one"))
        wait_for(lambda: "/one" in p.read("kept.log"), "the line in the old file")
        os.rmdir(p.path("access.log"))
        p.send_signal(signal.SIGUSR1)
        wait_for(lambda: os.path.exists(p.path("access.log")), "the new file")
        self.get(p, o.url("/two"))
        p.logged("/two")
        self.assertNotIn("/two", p.read("kept.log"))

    def test_a_log_whose_reader_died_stops_nobody_and_is_taken_up_again(self):
        o = self.origin(reply(body=b"x"))
        pipe = os.path.join(self.temporary_folder(), "pipe")
        os.mkfifo(pipe)

        def read_until(fd, text):
            got = []

            def has_come():
                try:
                    got.append(os.read(fd, 65536))
                except BlockingIOError:
                    pass
                return text in b"".join(got)
            wait_for(has_come, "%r in the pipe" % text)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        p = self.cuttle("access_log stdio:%s squid" % pipe, "logfile_rotate 0")
        self.get(p, o.url("/first"))
        read_until(reader, b"/first")
        os.close(reader)
        with Client(p.address) as c:
            for i in range(200):
                self.assertEqual(c.get(o.url("/%d" % i)).status, 200)
        wait_for(lambda: "cannot write the access log" in p.cache_log(), "the complaint")
        self.assertLess(p.cache_log().count("cannot write the access log"), 20)
        p.send_signal(signal.SIGUSR1)
        self.assertEqual(self.get(p, o.url("/")).status, 200)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        p.send_signal(signal.SIGUSR1)

        def asked_again():
            self.get(p, o.url("/again"))
            try:
                return b"/again" in os.read(reader, 65536)
            except BlockingIOError:
                return False
        wait_for(asked_again, "lines in the pipe again")

    def test_everything_is_written_at_an_orderly_end(self):
        o = self.origin(reply(body=b"x"))
        p = self.cuttle()
        with Client(p.address) as c:
            for i in range(50):
                c.get(o.url("/%d" % i))
        p.stop()
        self.assertEqual(len(p.access_log()), 50)


class Formats(Scenario):
    def line(self, form, *fields):
        o = self.origin(reply("200 OK", "Content-Type: text/css", body=b"abc"))
        folder = self.temporary_folder()
        conf = ["access_log stdio:%s/log %s" % (folder, form)]
        if form == "mine":
            conf.insert(0, "logformat mine %>a|%rm|%ru|%>Hs|%{X-A}>h|%mt|%Ss")
        p = self.cuttle(*conf)
        self.get(p, o.url("/x"), *fields)
        p.stop()
        with open(folder + "/log") as f:
            return f.read(), o.url("/x")

    def test_common_and_combined(self):
        common = (r'^127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] '
                  r'"GET %s HTTP/1\.1" 200 \d+ ')
        text, url = self.line("common")
        self.assertRegex(text, common % re.escape(url) + r"TCP_MISS:HIER_DIRECT\n$")
        text, url = self.line("combined", "Referer: r", 'User-Agent: u"a')
        self.assertRegex(text, common % re.escape(url) + r'"r" "u.+a" TCP_MISS:HIER_DIRECT\n$')

    def test_json_is_json(self):
        import json
        text, url = self.line("json", 'User-Agent: "\\\xe9')
        self.assertIn(url, [str(v) for v in json.loads(text).values()])

    def hosts_logged(self, *lines, name="access.log"):
        """The log's lines as (client, path) of three requests from two clients, sorted: each
        worker hands over its own."""
        o = self.origin(lambda q: reply(body=b"x"))
        p = self.cuttle("acl b urlpath_regex ^/b", *lines)
        for source, path in (("127.0.0.1", "/a"), ("127.1.2.3", "/b"), ("127.1.2.3", "/c")):
            with Client(p.address, source=source) as c:
                self.assertEqual(c.get(o.url(path)).status, 200)
        p.stop()
        return sorted((a.client, a.url[-2:]) for a in p.access_log(name=name))

    def test_addresses_of_clients_are_masked(self):
        self.assertEqual(self.hosts_logged("client_netmask 255.255.0.0"),
                         [("127.0.0.0", "/a"), ("127.1.0.0", "/b"), ("127.1.0.0", "/c")])

    def test_what_log_access_denies_is_in_no_log(self):
        self.assertEqual(self.hosts_logged("log_access deny b"),
                         [("127.0.0.1", "/a"), ("127.1.2.3", "/c")])

    def test_what_goes_to_the_log_none_is_in_none_behind_it(self):
        folder = self.temporary_folder()
        self.assertEqual(
            self.hosts_logged("access_log stdio:%s/before" % folder, "access_log none b",
                              "access_log stdio:%s/log squid" % folder, name=folder + "/log"),
            [("127.0.0.1", "/a"), ("127.1.2.3", "/c")])
        with open(folder + "/before") as f:
            self.assertEqual(len(f.readlines()), 3)

    def test_files_are_made_without_the_rights_of_umask(self):
        for line, mode in (("umask 027", 0o640), ("umask 077", 0o600)):
            p = self.cuttle(line, "pid_filename pid")
            for name in ("access.log", "cache.log", "pid"):
                self.assertEqual(os.stat(p.path(name)).st_mode & 0o777, mode, name)
            p.stop()

    def test_a_format_of_ones_own(self):
        text, url = self.line("mine", "X-A: v")
        self.assertEqual(text, "127.0.0.1|GET|%s|200|v|text/css|TCP_MISS\n" % url)


if __name__ == "__main__":
    harness.main()
