"""Clients that know nothing of the proxy: their connections are diverted here by rules of nft, in a namespace of its own."""
import ctypes
import os
import shutil
import socket
import subprocess
import sys
import threading
import unittest

import harness
from harness import Client, Name, Scenario, chunked, reply, storable

INSIDE = "CUTTLE_IN_NAMESPACE"
REDIRECT, TPROXY = 3129, 3130                       # nobody else is in the namespace
ATTACKER, GOOD, OTHER = "127.0.0.5", "127.0.0.6", "127.0.0.7"
NAMES = {"good.example": GOOD, "evil.example": ATTACKER, "cdn.example": OTHER}

# Who binds to one of these sources is a client; the proxy itself does not, so its own connections are left alone.
RULES = """
table inet clients {
    chain out {
        type nat hook output priority -100
        ip saddr 127.0.0.9 tcp dport { 80, 8080 } redirect to :%(redirect)d
        ip6 saddr fd00::9 tcp dport 80 redirect to :%(redirect)d
        tcp dport 81 redirect to :%(redirect)d
    }
    chain in_nat {
        type nat hook prerouting priority dstnat
        iifname "lan-redirect" tcp dport 80 redirect to :%(redirect)d
    }
    chain in {
        type filter hook prerouting priority mangle
        ip saddr 127.0.0.10 tcp dport { 80, 8080 } tproxy ip to :%(tproxy)d meta mark set 1 accept
        ip6 saddr fd00::10 tcp dport 80 tproxy ip6 to :%(tproxy)d meta mark set 1 accept
        iifname "lan-tproxy" meta l4proto tcp socket transparent 1 meta mark set 1 accept
        iifname "lan-tproxy" tcp dport 80 tproxy ip to :%(tproxy)d meta mark set 1 accept
    }
}
""" % {"redirect": REDIRECT, "tproxy": TPROXY}
SETUP = """set -e
ip link set lo up
ip -6 addr add fd00::6 dev lo nodad
ip -6 addr add fd00::9 dev lo nodad
ip -6 addr add fd00::10 dev lo nodad
ip rule add fwmark 1 lookup 100
ip route add local default dev lo table 100
ip -6 rule add fwmark 1 lookup 100
ip -6 route add local default dev lo table 100
echo "$RULES" | nft -f -
exec "$@"
"""


def is_listening(port):
    """On whatever address, of either family."""
    lines = []
    for name in "/proc/net/tcp", "/proc/net/tcp6":
        with open(name) as f:
            lines += f.read().splitlines()[1:]
    return any(words[1].endswith(":%04X" % port) and words[3] == "0A" for words in map(str.split, lines))


class Diverted:
    @classmethod
    def setUpClass(cls):
        if not os.environ.get(INSIDE):
            raise unittest.SkipTest("needs a network namespace with nft rules, which is not permitted here or nft is missing")

    def proxy(self, *lines, names=NAMES, **options):
        # Indented: in addition to the port that the harness waits for.
        named = () if any("dns_nameservers" in line for line in lines) else (self.hosts(**names),)
        p = self.cuttle(self.ports, *named, *lines, **options)
        harness.wait_for(lambda: is_listening(self.port), "the port for diverted connections")
        return p

    def server(self, answer, host, port=80):
        """A word is a page that may be stored."""
        word = isinstance(answer, bytes) and not answer.startswith(b"HTTP/")
        return self.origin(storable(answer) if word else answer, host=host, port=port)

    def at(self, host, port=80):
        c = Client((host, port), source=self.source6 if ":" in host else self.source)
        self.addCleanup(c.close)
        return c

    def ask(self, host, name, path="/x", *fields, port=80, **options):
        with self.at(host, port) as c:
            return c.get(path, "Host: " + name, *fields, **options)

    def passed(self, r, body):
        """Served, past the store."""
        self.assertEqual((r.status, r.body), (200, body))
        self.assertRegex(r.cache_status, r"; fwd=bypass; .*detail=host-mismatch$")
        self.assertNotIn("stored", r.cache_status)

    def said_rarely(self, p, words):
        """Each worker says it once."""
        self.assertIn(p.cache_log().count(words), range(1, p.workers + 1))

    # ---- G-55

    def test_a_wrong_host_poisons_nothing(self):
        self.server(b"evil", ATTACKER)
        good = self.server(b"good", GOOD)
        p = self.proxy()
        self.passed(self.ask(ATTACKER, "good.example"), b"evil")
        r = self.ask(GOOD, "good.example")
        self.assertEqual((r.body, r.hit), (b"good", False))
        self.assertIn("stored", r.cache_status)
        r = self.ask(GOOD, "good.example")
        self.assertEqual((r.body, r.hit), (b"good", True))
        self.passed(self.ask(ATTACKER, "good.example"), b"evil")
        r = self.get(p, "http://good.example/x")
        self.assertEqual((r.body, r.hit), (b"good", True))
        self.assertEqual(len(good.requests), 1)

    def test_a_name_that_has_another_address_here_is_served(self):
        o = self.server(b"page", GOOD)
        p = self.proxy()
        for _ in range(6):
            self.passed(self.ask(GOOD, "cdn.example"), b"page")
        self.assertEqual([r.field("Host") for r in o.requests], ["cdn.example"] * 6)
        self.said_rarely(p, "cdn.example is not at %s:80" % GOOD)
        self.assertEqual(p.counter("diverted.host_mismatches"), 6)

    def test_a_name_that_nobody_knows_is_served(self):
        self.server(b"page", GOOD)
        d = self.dns({"slow.example": Name(a=[GOOD], delay_s=0.3)})
        self.proxy(d.conf, "hosts_file none")
        self.passed(self.ask(GOOD, "none.example"), b"page")
        r = self.ask(GOOD, "slow.example")
        self.assertIn("stored", r.cache_status)
        self.assertEqual(self.ask(GOOD, "slow.example").hit, True)

    def test_each_of_a_names_addresses_is_its_own(self):
        a, b = self.server(b"same", GOOD), self.server(b"same", OTHER)
        d = self.dns({"two.example": Name(a=[GOOD, OTHER])})
        self.proxy(d.conf, "hosts_file none")
        for n, host in enumerate((OTHER, GOOD, OTHER)):
            self.assertIn("stored", self.ask(host, "two.example", "/%d" % n).cache_status)
        self.assertEqual((len(a.requests), len(b.requests)), (1, 2))
        self.assertTrue(self.ask(GOOD, "two.example", "/0").hit)

    def test_nobody_is_collapsed_with_another_servers_answer(self):
        go = threading.Event()
        self.addCleanup(go.set)
        good = self.server((go, storable(b"good")), GOOD)
        self.server(b"evil", ATTACKER)
        self.proxy()
        first, second = self.at(GOOD), self.at(GOOD)
        for c in first, second:
            c.request("GET", "/x", "Host: good.example")
        good.wait_requests(1)
        self.passed(self.ask(ATTACKER, "good.example"), b"evil")
        go.set()
        self.assertEqual([c.read_response().body for c in (first, second)], [b"good"] * 2)
        self.assertEqual(len(good.requests), 1)

    def test_another_servers_answer_throws_nothing_out_of_the_store(self):
        self.server(b"good", GOOD)
        self.server(b"evil", ATTACKER)
        self.proxy()
        self.ask(GOOD, "good.example")
        self.assertEqual(self.ask(ATTACKER, "good.example", method="POST", body=b"x").body, b"evil")
        self.assertEqual(self.ask(ATTACKER, "good.example", method="HEAD").status, 200)
        self.assertTrue(self.ask(GOOD, "good.example").hit)
        self.assertEqual(self.ask(ATTACKER, "good.example", "/x", "Cache-Control: only-if-cached").status, 504)

    def test_strict_verification_refuses_instead(self):
        evil = self.server(b"evil", ATTACKER)
        self.server(b"good", GOOD)
        p = self.proxy("host_verify_strict on")
        with self.at(ATTACKER) as c:
            r = c.get("/x", "Host: good.example")
            self.assertEqual(r.status, 409)
            self.assertIn("http_request_error", r.field("Proxy-Status"))
            self.assertEqual(c.get("/x", "Host: evil.example").body, b"evil")
        self.assertEqual(self.ask(GOOD, "good.example").body, b"good")
        self.assertEqual(len(evil.requests), 1)
        self.assertEqual([a.hierarchy for a in p.access_log(3) if a.status == 409], ["HIER_NONE"])

    # ---- requests

    def test_requests_as_to_an_origin(self):
        o = self.server(chunked(b"a", b"b", fields=("Cache-Control: max-age=9",)), GOOD)
        p = self.proxy()
        with self.at(GOOD) as c:
            for path in "/1", "/2", "/1":
                r = c.get(path, "Host: good.example", "Proxy-Connection: keep-alive")
                self.assertEqual(r.body, b"ab")
                self.assertIsNone(r.field("Proxy-Connection"))
            self.assertTrue(r.hit)
            self.assertEqual(c.get("http://GOOD.example:80/1", "Host: else.example").hit, True)
            c.send("GET /1 HTTP/1.0\r\nHost: good.example\r\n\r\n")
            r = c.read_response()
            self.assertEqual((r.body, r.field("Connection")), (b"ab", "close"))
            c.expect_close()
        self.assertEqual([r.target for r in o.requests], ["/1", "/2"])
        self.assertIsNone(o.last().field("Proxy-Connection"))
        lines = p.access_log(5)
        self.assertEqual([a.url for a in lines[:2]], ["http://good.example/1", "http://good.example/2"])
        self.assertEqual((lines[0].client, lines[0].hierarchy, lines[0].peer), (self.source, "ORIGINAL_DST", GOOD))

    def test_without_host(self):
        o = self.server(b"page", GOOD)
        self.proxy()
        with self.at(GOOD) as c:
            c.send("GET /old HTTP/1.0\r\n\r\n")
            self.assertIn("stored", c.read_response().cache_status)
        self.assertEqual(o.last().field("Host"), GOOD)
        self.assertTrue(self.ask(GOOD, GOOD, "/old").hit)
        for fields in "", "Host: a\r\nHost: a\r\n", "Host: a b\r\n":
            with self.at(GOOD) as c:
                c.send("GET / HTTP/1.1\r\n%s\r\n" % fields)
                self.assertEqual(c.read_response().status, 400)
                c.expect_close()
        self.assertEqual(len(o.requests), 1)

    def test_the_port_is_where_the_client_was_going(self):
        low, high = self.server(b"low", GOOD), self.server(b"high", GOOD, port=8080)
        self.proxy()
        self.passed(self.ask(GOOD, "good.example:8080"), b"low")
        self.passed(self.ask(GOOD, "good.example", port=8080), b"high")
        self.assertIn("stored", self.ask(GOOD, "good.example:8080", port=8080).cache_status)
        self.assertEqual((len(low.requests), len(high.requests)), (1, 2))

    def test_options_and_pages_are_the_origins(self):
        o = self.server(b"theirs", GOOD)
        p = self.proxy("http_access allow manager")
        for path in "/", "/metrics", "/squid-internal-mgr/info":
            self.assertEqual(self.ask(GOOD, "good.example", path).body, b"theirs")
            self.assertEqual(self.ask(GOOD, "cuttle.test", path).body, b"theirs")
            self.assertEqual(self.ask(GOOD, "127.0.0.1:%d" % p.port, path).body, b"theirs")
        self.assertEqual(self.ask(GOOD, "good.example", "*", method="OPTIONS").body, b"theirs")
        self.assertEqual(o.last().target, "*")
        self.assertEqual(self.ask(GOOD, "good.example", "*", "Max-Forwards: 0", method="OPTIONS").status, 200)
        self.assertEqual(len(o.requests), 10)

    def test_connect_is_refused(self):
        o = self.server(b"page", GOOD)
        self.proxy()
        with self.at(GOOD) as c:
            self.assertEqual(c.get("%s:80" % GOOD, method="CONNECT").status, 403)
            c.expect_close()
        self.assertEqual(o.connections, 0)

    def test_a_body_goes_to_the_destination(self):
        o = self.server(reply(body=b"ok"), ATTACKER)
        self.proxy()
        r = self.ask(ATTACKER, "good.example", method="POST", body=b"x" * 100000)
        self.assertEqual(r.body, b"ok")
        self.assertEqual(len(o.last().body), 100000)

    def test_an_upgrade_goes_to_the_destination(self):
        def answer(q, c):
            c.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst")
            c.send(c.read_exactly(4)[::-1])
        self.server(answer, ATTACKER)
        self.proxy()
        with self.at(ATTACKER) as c:
            r = c.get("/ws", "Host: good.example", "Upgrade: websocket", "Connection: Upgrade")
            self.assertEqual((r.status, c.read_exactly(5)), (101, b"first"))
            c.send("abcd")
            self.assertEqual(c.read_exactly(4), b"dcba")

    def test_a_client_that_leaves_during_the_lookup(self):
        o = self.server(b"page", GOOD)
        d = self.dns({"slow.example": Name(a=[GOOD], delay_s=0.5)})
        p = self.proxy(d.conf, "hosts_file none")
        for _ in range(3):
            with self.at(GOOD) as c:
                c.request("GET", "/x", "Host: slow.example")
                harness.wait_for(lambda: d.queries, "the question")
                c.reset()
        p.access_log(3)
        self.assertIn("stored", self.ask(GOOD, "slow.example").cache_status)
        self.assertEqual(len(o.requests), 1)

    def test_a_dead_destination_is_not_replaced(self):
        good = self.server(b"good", GOOD)
        self.proxy()
        r = self.ask(OTHER, "good.example")
        self.assertEqual(r.status, 502)
        self.assertIn("connection_refused", r.field("Proxy-Status"))
        self.assertEqual(good.connections, 0)

    def test_validation_in_the_background_goes_to_the_destination(self):
        stale = "max-age=0, stale-while-revalidate=60"
        a, b = (self.server(reply("200 OK", "Cache-Control: " + stale, "ETag: \"1\"", body=b"x"), host) for host in (GOOD, OTHER))
        d = self.dns({"two.example": Name(a=[GOOD, OTHER])})
        self.proxy(d.conf, "hosts_file none", "server_persistent_connections off")
        self.ask(OTHER, "two.example")
        self.assertTrue(self.ask(OTHER, "two.example").hit)
        b.wait_requests(2)
        self.assertEqual(a.connections, 0)

    # ---- rules

    def test_rules_see_the_host_and_the_real_destination(self):
        o = self.server(b"page", GOOD)
        evil = self.server(b"evil", ATTACKER)
        self.proxy("acl bad dst %s" % ATTACKER, "acl named dstdomain .cdn.example", "acl low port 80",
                   "acl here myportname diverted", "http_access deny bad", "http_access deny named",
                   "http_access deny here !low")
        for name in "good.example", GOOD, "evil.example":
            self.assertEqual(self.ask(ATTACKER, name).status, 403, name)
        self.assertEqual(self.ask(GOOD, "cdn.example").status, 403)
        self.assertEqual(self.ask(GOOD, "good.example", port=8080).status, 403)
        for name in "good.example", "evil.example", ATTACKER:
            self.assertEqual(self.ask(GOOD, name).status, 200, name)
        self.assertEqual((evil.connections, len(o.requests)), (0, 3))

    def test_a_denied_request_asks_no_name_server(self):
        d = self.dns({"two.example": Name(a=[GOOD])})
        self.proxy(d.conf, "hosts_file none", "http_access deny all")
        self.assertEqual(self.ask(GOOD, "two.example").status, 403)
        self.assertEqual(d.queries, [])

    def test_rules_of_the_store_go_by_the_real_destination(self):
        for line in ("cache deny it", "send_hit deny it", "store_miss deny it"):
            servers = [self.server(b"page", host) for host in (GOOD, OTHER)]
            p = self.proxy("acl it dst %s" % GOOD, line)
            for host, name, hit in ((GOOD, "good.example", False), (OTHER, "cdn.example", True)):
                self.assertFalse(self.ask(host, name).hit, line)
                self.assertEqual(self.ask(host, name).hit, hit, line)
            p.stop()
            for o in servers:
                o.close()

    # ---- loops

    def test_what_nothing_diverted_is_refused(self):
        p = self.proxy()
        for _ in range(6):
            with Client(("127.0.0.1", self.port)) as c:
                self.assertEqual(c.get("/", "Host: 127.0.0.1:%d" % self.port).status, 403)
                c.expect_close()
        self.said_rarely(p, "came straight to http_port")
        self.assertEqual(self.get(p, "http://127.0.0.1:%d/" % self.port).status, 508)

    # ---- other networks

    def test_through_a_gateway_to_an_address_that_is_not_ours(self):
        """Three namespaces: a client, the gateway with the proxy, and the origin's."""
        lan, wan = Neighbour(self, self.cable, "198.51.100"), Neighbour(self, "wan", "203.0.113")
        o = wan.run(lambda: self.server(b"far", "203.0.113.2"))
        p = self.proxy(names={"far.example": "203.0.113.2"})
        for hit in False, True:
            with lan.run(lambda: Client(("203.0.113.2", 80))) as c:
                r = c.get("/x", "Host: far.example")
                self.assertEqual((r.status, r.body, r.hit), (200, b"far", hit))
        self.assertEqual(p.access_log(2)[0].client, "198.51.100.2")
        self.assertEqual(len(o.requests), 1)

    def test_ipv6(self):
        o = self.server(b"six", "fd00::6")
        self.server(b"four", GOOD)
        self.proxy(names={"good.example": "fd00::6"})
        self.assertIn("stored", self.ask("fd00::6", "good.example").cache_status)
        self.assertTrue(self.ask("fd00::6", "good.example").hit)
        self.assertIn("stored", self.ask("fd00::6", "[fd00::6]").cache_status)
        self.passed(self.ask(GOOD, "good.example"), b"four")
        with self.at("fd00::6") as c:
            c.send("GET /old HTTP/1.0\r\n\r\n")
            self.assertEqual(c.read_response().body, b"six")
        self.assertEqual(o.last().field("Host"), "[fd00::6]")


class Redirected(Diverted, Scenario):
    source, source6, cable, port = "127.0.0.9", "fd00::9", "lan-redirect", REDIRECT
    ports = " http_port %d intercept name=diverted" % REDIRECT

    def test_our_own_connections_diverted_to_us_are_a_loop(self):
        """The rule for port 81 takes everybody's, as a rule without an exception for the proxy does."""
        p = self.proxy()
        with Client((GOOD, 81), source="127.0.0.9") as c:
            self.assertEqual(c.get("/", "Host: good.example:81").status, 508)
        self.assertEqual(len(p.access_log(2)), 2)

    def test_a_port_with_an_address(self):
        self.ports = " http_port 127.0.0.1:%d intercept" % REDIRECT
        self.test_a_wrong_host_poisons_nothing()
        self.assertEqual(self.ask(GOOD, "good.example").hit, True)


class Tproxied(Diverted, Scenario):
    source, source6, cable, port = "127.0.0.10", "fd00::10", "lan-tproxy", TPROXY
    ports = " http_port %d tproxy name=diverted" % TPROXY

    def test_a_port_with_an_address(self):
        self.ports = " http_port 127.0.0.1:%d tproxy" % TPROXY
        subprocess.run(["nft", "insert rule inet clients in ip saddr 127.0.0.11 tcp dport 80 tproxy ip to 127.0.0.1:%d meta mark set 1 accept"
                        % TPROXY], check=True)
        self.source = "127.0.0.11"
        self.test_a_wrong_host_poisons_nothing()


class Neighbour:
    """Another machine on a cable of its own: PREFIX.2, with the gateway at PREFIX.1."""

    def __init__(self, test, name, prefix):
        self.process = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo up; exec sleep 600"], stdout=subprocess.PIPE)
        test.addCleanup(self.end)
        self.process.stdout.readline()
        inside = ["nsenter", "-t", str(self.process.pid), "-n", "ip"]
        here = ["ip"]
        for words in (here + ["link", "add", name, "type", "veth", "peer", "name", "far0", "netns", str(self.process.pid)],
                      here + ["addr", "add", prefix + ".1/24", "dev", name], here + ["link", "set", name, "up"],
                      inside + ["addr", "add", prefix + ".2/24", "dev", "far0"], inside + ["link", "set", "far0", "up"],
                      inside + ["route", "add", "default", "via", prefix + ".1"]):
            subprocess.run(words, check=True)

    def run(self, function):
        """A socket stays in the namespace in which its thread was when it made it."""
        got = []

        def inside():
            with open("/proc/%d/ns/net" % self.process.pid) as f:
                if ctypes.CDLL(None, use_errno=True).setns(f.fileno(), 0) == 0:
                    got.append(function())
        t = threading.Thread(target=inside)
        t.start()
        t.join()
        return got[0]

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Ports(Scenario):
    def test_an_accel_port_is_refused_by_the_check_too(self):
        conf = self.write(self.temporary_folder(), "conf", "http_port 3128 accel\nhttp_access deny all\n")
        code, out, err = harness.run_cuttle("-k", "parse", "-f", conf)
        self.assertEqual(code, 1)
        self.assertIn(conf + ":1: http_port: accel is not supported yet", out + err)

    def test_tproxy_without_the_capability_says_so(self):
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("needs root and setpriv")
        with self.assertRaises(harness.Exited) as e:
            # Its only port: with an ordinary one beside it, that one is seen listening before this one fails.
            self.cuttle("http_port 127.0.0.1:%d tproxy" % self.dead_port(),
                        prefix=("setpriv", "--bounding-set", "-net_admin,-net_raw", "--inh-caps", "-all"))
        self.assertIn("tproxy needs CAP_NET_ADMIN", e.exception.text)


def in_namespace():
    """This file again, with a network of its own."""
    words = ["unshare", "-n", "sh", "-c", SETUP, "sh", sys.executable] + sys.argv
    return subprocess.run(words, env=dict(os.environ, **{INSIDE: "1", "RULES": RULES})).returncode


def is_permitted():
    return (shutil.which("ip") and shutil.which("nft") and
            subprocess.run(["unshare", "-n", "nft", "list", "ruleset"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0)


if __name__ == "__main__":
    if os.environ.get(INSIDE) or not is_permitted():
        harness.main()
    else:
        sys.exit(in_namespace())
