"""Who comes from another machine: in a network namespace of its own, with an address that is not loopback."""
import os
import shutil
import socket
import subprocess
import sys
import time
import unittest

import harness
from harness import Client, Name, Scenario, reply, wait_for

INSIDE = "CUTTLE_IN_NAMESPACE"
PROXY, STRANGER = "192.0.2.1", "192.0.2.2"        # RFC 5737: documentation, on the namespace's own loopback device


@unittest.skipUnless(os.environ.get(INSIDE), "runs in a namespace")
class InNamespace(Scenario):
    def proxy(self, *lines, access=""):
        port = harness.PortLease(PROXY)
        self.addCleanup(port.release)
        # Indented: in addition to the port that the harness waits for.
        p = self.cuttle(" http_port %s:%d" % (PROXY, port.number), *lines, access=access)
        self.port = port.number
        return p

    def ask(self, url, method="GET", source=STRANGER):
        with Client((PROXY, self.port), source=source) as c:
            return c.get(url, *(("Host: proxy",) if url.startswith("/") else ()), method=method)


class Strangers(InNamespace):
    """Never an open proxy, and the status pages are for this machine."""

    def test_a_configuration_without_rules_lets_nobody_in(self):
        o = self.origin(reply(body=b"x"), host=PROXY)
        self.proxy()
        for url, method in ((o.url("/"), "GET"), (o.url("/"), "PURGE"),
                            *(("%s:%d" % (PROXY, port), "CONNECT") for port in (22, 25, 443, 6379))):
            self.assertEqual(self.ask(url, method).status, 403, (url, method))
        self.assertEqual(o.connections, 0)

    def test_the_status_pages_are_for_this_machine_unless_a_rule_says_otherwise(self):
        self.proxy(access="http_access allow all")
        for page in "/", "/squid-internal-mgr/info", "/metrics":
            self.assertEqual(self.ask(page).status, 403, page)
        self.proxy("http_access allow manager", access="http_access allow all")
        self.assertEqual(self.ask("/squid-internal-mgr/info").status, 200)

    def test_what_listens_on_this_machine_alone_is_not_for_strangers(self):
        """SSRF: loopback, link-local and metadata addresses, by name and by CONNECT too, unless a rule speaks of them."""
        o = self.origin(reply(body=b"inside"))
        inside = self.hosts(**{"inner.test": "127.0.0.1", "meta.test": "169.254.169.254"})
        self.proxy(inside, access="http_access allow all")
        for host in "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "inner.test", "meta.test", "169.254.169.254", "localhost":
            self.assertEqual(self.ask("http://%s:%d/" % (host, o.port)).status, 403, host)
            self.assertEqual(self.ask("%s:%d" % (host, o.port), "CONNECT").status, 403, host)
        self.assertEqual(o.connections, 0)
        self.proxy("http_access allow to_localhost", access="http_access deny all")
        self.assertEqual(self.ask(o.url("/")).body, b"inside")

    def test_our_own_socket_is_a_loop_under_every_address_of_this_machine(self):
        """RFC 9110 7.6.3: found before a request or a tunnel has gone round even once."""
        everywhere = harness.PortLease("0.0.0.0")
        self.addCleanup(everywhere.release)
        self.proxy(" http_port 0.0.0.0:%d" % everywhere.number, "http_access allow to_localhost",
                   access="http_access allow all")
        for host in PROXY, "127.0.0.1", "0.0.0.0":
            for url, method in (("http://%s:%d/" % (host, everywhere.number), "GET"),
                                ("%s:%d" % (host, everywhere.number), "CONNECT")):
                self.assertEqual(self.ask(url, method).status, 508, url)

    def test_a_validation_in_the_background_does_not_go_where_its_client_may_not(self):
        """A name that was fine when its page was stored leads to this machine later (DNS rebinding)."""
        page = reply("200 OK", "Cache-Control: max-age=0, stale-while-revalidate=60", 'ETag: "1"', body=b"page")
        for inner in "127.0.0.1", "169.254.169.254":
            d = self.dns({"moving.test": Name(a=[PROXY], ttl_s=0)})
            o = self.origin(page, host=PROXY)
            inside = self.origin(reply(body=b"secret"), port=o.port)
            p = self.proxy(d.conf, "positive_dns_ttl 1 second", access="http_access allow all")
            self.assertEqual(self.ask(o.url("/", "moving.test")).body, b"page")
            d.names["moving.test"] = Name(a=[inner], ttl_s=0)
            time.sleep(1.2)
            self.assertTrue(self.ask(o.url("/", "moving.test")).hit)
            wait_for(lambda: len(d.asked("moving.test", harness.A)) >= 2, "the validation to look the name up")
            wait_for(lambda: p.counter("server.all.errors") >= 1, "the validation to end")
            self.assertEqual(inside.connections, 0, inner)

    def test_who_is_allowed_is_served(self):
        o = self.origin(reply(body=b"x"), host=PROXY)
        self.proxy("acl there src %s" % STRANGER, "http_access allow there", access="http_access deny all")
        self.assertEqual(self.ask(o.url("/")).body, b"x")
        self.assertEqual(self.ask(o.url("/"), source=PROXY).status, 403)


class Shipped(InNamespace):
    """The configuration that --print-conf shows, as it is and with one network let in."""
    OURS = ("http_port ", "access_log ", "cache_mem ")

    def shipped(self, let_in=False):
        text = harness.run_cuttle("--print-conf")[1]
        if let_in:
            text = text.replace("#http_access allow localnet", "http_access allow localnet")
            text = "acl localnet src %s\n" % STRANGER + text
        self.p = self.proxy(*(line for line in text.splitlines() if not line.startswith(self.OURS)))

    def ask_from_here(self, url, method="GET"):
        with Client(self.p.address) as c:
            return c.get(url, *(("Host: proxy",) if url.startswith("/") else ()), method=method)

    def origins(self, *ports):
        return [self.origin(reply(body=b"x"), host=PROXY, port=port) for port in ports]

    def test_strangers_get_nothing_from_it(self):
        self.shipped()
        origins = self.origins(22, 25, 80, 443, 6379)
        for o in origins:
            for url, method in (o.url("/"), "GET"), (o.authority, "CONNECT"), (o.url("/"), "PURGE"):
                self.assertEqual(self.ask(url, method).status, 403, (url, method))
        for page in "/", "/squid-internal-mgr/info", "/metrics":
            self.assertEqual(self.ask(page).status, 403, page)
        self.assertEqual([o.connections for o in origins], [0] * 5)

    def test_who_is_let_in_goes_to_the_web_alone(self):
        """From this machine as from the network that was named."""
        self.shipped(let_in=True)
        web, tls, *closed = self.origins(80, 443, 22, 25, 465)
        for ask in self.ask, self.ask_from_here:
            self.assertEqual(ask(web.url("/")).body, b"x")
            self.assertEqual(ask(tls.authority, "CONNECT").status, 200)
            for o in closed:
                self.assertEqual(ask(o.url("/")).status, 403, o.port)
            for o in (*closed, web):
                self.assertEqual(ask(o.authority, "CONNECT").status, 403, o.port)
            self.assertEqual(ask("%s:6379" % PROXY, "CONNECT").status, 403)
            self.assertEqual(ask(web.url("/"), "PURGE").status, 403)
        self.assertEqual([o.connections for o in closed], [0] * 3)
        self.assertEqual(self.ask("/squid-internal-mgr/info").status, 403)
        self.assertEqual(self.ask_from_here("/squid-internal-mgr/info").status, 200)


def in_namespace():
    """This file again, with a network of its own."""
    setup = "ip link set lo up && ip addr add %s/32 dev lo && ip addr add %s/32 dev lo && exec \"$@\"" % (PROXY, STRANGER)
    words = ["unshare", "-n", "sh", "-c", setup, "sh", sys.executable] + sys.argv
    return subprocess.run(words, env=dict(os.environ, **{INSIDE: "1"})).returncode


if __name__ == "__main__":
    if os.environ.get(INSIDE) or not shutil.which("ip") or subprocess.run(["unshare", "-n", "true"], stderr=subprocess.DEVNULL).returncode:
        harness.main()
    else:
        sys.exit(in_namespace())
