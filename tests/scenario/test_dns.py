"""Names: asked on the worker's loop, kept for their TTL, and never able to hang a client."""
import os
import re
import signal
import time

import harness
from harness import A, AAAA, Client, Name, Scenario, reply, together


class Asking(Scenario):
    def setUp(self):
        """What is not stored is not served in the place of an error either."""
        self.o = self.origin(lambda q: reply("200 OK", "Cache-Control: no-store",
                                             body=(q.field("Host") or "").encode()),
                             host="127.0.0.2")

    def proxy(self, names, *conf, **options):
        self.d = self.dns(names)
        return self.cuttle(self.d.conf, "dns_timeout 3 seconds", "hosts_file none", *conf,
                           **options)

    def ask(self, p, host, path="/"):
        """(status, seconds)"""
        began = time.monotonic()
        r = self.get(p, self.o.url(path, host))
        return r.status, time.monotonic() - began


class Names(Asking):
    def test_an_answer_is_kept_for_its_ttl(self):
        p = self.proxy({"a.test": Name(a=["127.0.0.2"], ttl_s=2)}, workers=1)
        for _ in range(3):
            self.assertEqual(self.ask(p, "a.test")[0], 200)
        self.assertEqual(len(self.d.asked("a.test", A)), 1)
        time.sleep(2.5)
        self.assertEqual(self.ask(p, "a.test")[0], 200)
        self.assertEqual(len(self.d.asked("a.test", A)), 2)

    def test_positive_dns_ttl_bounds_it(self):
        p = self.proxy({"a.test": Name(a=["127.0.0.2"], ttl_s=3600)}, "positive_dns_ttl 1 second")
        self.ask(p, "a.test")
        time.sleep(2.2)
        self.ask(p, "a.test")
        self.assertEqual(len(self.d.asked("a.test", A)), 2)

    def test_a_ttl_of_0_is_served_and_asked_again(self):
        p = self.proxy({"a.test": Name(a=["127.0.0.2"], ttl_s=0)})
        for _ in range(2):
            self.assertEqual(self.ask(p, "a.test")[0], 200)
            time.sleep(1.1)
        self.assertEqual(len(self.d.asked("a.test", A)), 2)

    def test_names_compare_without_case_and_may_end_in_a_dot(self):
        p = self.proxy({"a.test": Name(a=["127.0.0.2"])})
        for name in ("a.test", "A.TEST", "a.Test"):
            self.assertEqual(self.ask(p, name)[0], 200)
        self.assertEqual(len(self.d.asked("a.test", A)), 1)
        self.assertIn(self.ask(p, "a.test.")[0], (200, 400))

    def test_a_name_that_does_not_exist_is_503_and_kept_for_the_soas_time(self):
        """RFC 2308 5."""
        p = self.proxy({"gone.test": Name(rcode=3, soa_minimum_s=2)}, "negative_dns_ttl 60 seconds")
        for _ in range(3):
            status, took = self.ask(p, "gone.test")
            self.assertEqual(status, 503)
            self.assertLess(took, 2)
        self.assertEqual(len(self.d.asked("gone.test", A)), 1)
        self.d.names["gone.test"] = Name(a=["127.0.0.2"])
        time.sleep(2.5)
        self.assertEqual(self.ask(p, "gone.test")[0], 200)

    def test_the_fault_is_told(self):
        p = self.proxy({})
        r = self.get(p, self.o.url("/", "none.test"))
        self.assertIn("dns_error", r.field("Proxy-Status"))
        self.assertEqual(p.access_log(1)[0].status, 503)

    def test_a_server_that_fails_is_an_error_in_time(self):
        p = self.proxy({"bad.test": Name(rcode=2)})
        status, took = self.ask(p, "bad.test")
        self.assertIn(status, (503, 504))
        self.assertLess(took, 5)

    def test_a_silent_server_delays_only_those_who_asked_it(self):
        p = self.proxy({"dumb.test": Name(silent=True), "a.test": Name(a=["127.0.0.2"])})

        def run(i):
            if i == 0:
                return self.ask(p, "dumb.test")
            time.sleep(0.2)
            return self.ask(p, "a.test")
        (status, took), *others = together(6, run)
        self.assertEqual(status, 504)
        self.assertTrue(2 < took < 6, took)
        for status, took in others:
            self.assertEqual(status, 200)
            self.assertLess(took, 1.5)

    def test_a_client_that_leaves_during_a_lookup_is_no_trouble(self):
        p = self.proxy({"dumb.test": Name(silent=True), "a.test": Name(a=["127.0.0.2"])})
        for _ in range(10):
            with Client(p.address) as c:
                c.request("GET", "http://dumb.test/")
                c.reset()
        self.assertEqual(self.ask(p, "a.test")[0], 200)

    def test_equal_questions_are_joined(self):
        p = self.proxy({"slow.test": Name(a=["127.0.0.2"], delay_s=0.7)})
        self.assertEqual({s for s, _ in together(20, lambda i: self.ask(p, "slow.test"))}, {200})
        self.assertLessEqual(len(self.d.asked("slow.test", A)), p.workers)

    def test_one_family_that_fails_does_not_fail_the_name(self):
        for broken in (Name(a=["127.0.0.2"], rcode={AAAA: 2}),
                       Name(a=["127.0.0.2"], silent={AAAA: True}),
                       Name(a=["127.0.0.2"], delay_s={AAAA: 2})):
            p = self.proxy({"half.test": broken})
            status, took = self.ask(p, "half.test")
            self.assertEqual(status, 200)
            self.assertLess(took, 1.5)
            p.stop()

    def test_a_dead_address_costs_a_moment_only(self):
        """RFC 8305 5: the next attempt starts after 250 ms, or at once after a refusal."""
        p = self.proxy({"dead.test": Name(a=["192.0.2.1", "127.0.0.2"]),
                        "refused.test": Name(a=["127.0.0.3", "127.0.0.4", "127.0.0.2"]),
                        "six.test": Name(a=["127.0.0.2"], aaaa=["::1"])})
        for name in ("refused.test", "six.test", "dead.test"):
            status, took = self.ask(p, name)
            self.assertEqual(status, 200, name)
            self.assertLess(took, 2.0, name)

    def test_a_truncated_answer_is_asked_for_by_tcp(self):
        """RFC 7766 5: at the configured port."""
        many = ["127.0.0.2"] + ["127.0.1.%d" % i for i in range(1, 40)]
        p = self.proxy({"big.test": Name(a=many, truncated=True)})
        self.assertEqual(self.ask(p, "big.test")[0], 200)
        self.assertIn("tcp", {q[2] for q in self.d.asked("big.test", A)})

    def test_an_alias_is_followed(self):
        p = self.proxy({"alias.test": Name(cname="real.test"), "real.test": Name(a=["127.0.0.2"])})
        self.assertEqual(self.ask(p, "alias.test")[0], 200)
        self.assertEqual(self.o.last().field("Host"), "alias.test:%d" % self.o.port)

    def test_odd_names_end_at_once_and_without_a_question(self):
        p = self.proxy({})
        for name in ("l" * 64 + ".test", "n." * 130 + "test", "a..b", ".a"):
            status, took = self.ask(p, name)
            self.assertIn(status, (400, 503), name)
            self.assertLess(took, 1, name)
        self.assertEqual(self.d.queries, [])

    def test_the_hosts_file_comes_first_and_is_read_again(self):
        folder = self.temporary_folder()
        path = self.write(folder, "hosts", "# ours\n127.0.0.2  h.test other.test  # two\n")
        self.d = self.dns({})
        p = self.cuttle(self.d.conf, "hosts_file " + path)
        for name in ("h.test", "other.test", "H.TEST"):
            self.assertEqual(self.ask(p, name)[0], 200)
        self.assertEqual(self.d.queries, [])
        self.write(folder, "hosts", "127.0.0.2 new.test\n")
        os.utime(path, (time.time() + 5, time.time() + 5))
        harness.wait_for(lambda: self.ask(p, "new.test")[0] == 200, "the new hosts file")

    def test_a_second_name_server_steps_in(self):
        quiet, live = self.dns({"a.test": Name(silent=True)}), self.dns(
            {"a.test": Name(a=["127.0.0.2"])})
        p = self.cuttle("dns_nameservers 127.0.0.1:%d 127.0.0.1:%d" % (quiet.port, live.port),
                        "dns_timeout 10 seconds", "dns_retransmit_interval 1 second",
                        "hosts_file none")
        self.assertEqual(self.ask(p, "a.test")[0], 200)

    def two_servers(self, first, second, *conf):
        """A proxy that asks at the address `first`, and then the Dns `second`."""
        return self.cuttle("dns_nameservers %s 127.0.0.1:%d" % (first, second.port),
                           "hosts_file none", *conf)

    def test_a_silent_first_name_server_costs_one_name_a_second_and_no_other(self):
        """A dead port's UDP is held, so that what is sent there is neither answered nor refused."""
        live = self.dns({"%s.test" % c: Name(a=["127.0.0.2"]) for c in "abcdefgh"})
        p = self.two_servers("127.0.0.1:%d" % self.dead_port(), live)
        status, took = self.ask(p, "a.test")
        self.assertEqual(status, 200)
        self.assertTrue(0.9 < took < 3, took)
        for c in "bcdefgh":  # whichever worker is asked
            status, took = self.ask(p, c + ".test")
            self.assertEqual(status, 200)
            self.assertLess(took, 0.9)

    def test_a_closed_first_name_server_costs_nothing(self):
        live = self.dns({"%s.test" % c: Name(a=["127.0.0.2"]) for c in "abcd"})
        p = self.two_servers("127.0.0.9:9", live)
        for c in "abcd":
            status, took = self.ask(p, c + ".test")
            self.assertEqual(status, 200)
            self.assertLess(took, 0.9)

    def test_a_name_server_that_refuses_or_fails_leaves_it_to_the_next_at_once(self):
        for rcode in (2, 5):
            bad = self.dns({"a.test": Name(rcode=rcode)})
            live = self.dns({"a.test": Name(a=["127.0.0.2"])})
            p = self.two_servers("127.0.0.1:%d" % bad.port, live)
            status, took = self.ask(p, "a.test")
            self.assertEqual(status, 200)
            self.assertLess(took, 0.9)
            self.assertEqual(len(bad.asked("a.test", A)), 1)
            p.stop()

    def test_a_name_server_that_dies_is_replaced_by_the_one_that_lives(self):
        names = {"%s.test" % c: Name(a=["127.0.0.2"]) for c in "abc"}
        first, second = self.dns(names), self.dns(names)
        p = self.two_servers("127.0.0.1:%d" % first.port, second)
        self.assertEqual(self.ask(p, "a.test")[0], 200)
        self.assertEqual(second.queries, [])
        for name in names.values():
            name.silent = True
        first.names, second.names = names, {"b.test": Name(a=["127.0.0.2"]),
                                            "c.test": Name(a=["127.0.0.2"])}
        self.assertTrue(0.9 < self.ask(p, "b.test")[1] < 3)
        self.assertLess(self.ask(p, "c.test")[1], 0.9)

    def test_a_servfail_or_refused_is_not_kept_like_a_name_that_does_not_exist(self):
        for rcode in (2, 5):
            p = self.proxy({"a.test": Name(rcode=rcode), "gone.test": Name(rcode=3)},
                           "negative_dns_ttl 60 seconds")
            self.assertEqual(self.ask(p, "a.test")[0], 503)
            self.assertEqual(self.ask(p, "gone.test")[0], 503)
            self.d.names.update({n: Name(a=["127.0.0.2"]) for n in ("a.test", "gone.test")})
            time.sleep(2.3)
            self.assertEqual(self.ask(p, "a.test")[0], 200)
            self.assertEqual(self.ask(p, "gone.test")[0], 503)
            p.stop()

    def test_answers_that_belong_to_nobody_are_ignored(self):
        """A spoofed or broken packet on the port harms nobody."""
        p = self.proxy({"a.test": Name(a=["127.0.0.2"], delay_s=0.3)})
        real = self.d.answer
        self.d.answer = lambda query, transport: (
            self.d.udp.sendto(os.urandom(40), self.peer) if hasattr(self, "peer") else None,
            real(query, transport))[1]
        self.assertEqual(self.ask(p, "a.test")[0], 200)


class Reload(Asking):
    """What a reload changes about names holds for the next question; those under way end as they
    began. Each request dials anew: a kept connection needs no name."""
    ANEW = "server_persistent_connections off"

    def reload_as(self, p, *lines):
        """Not before the new configuration is in force is anything else done."""
        before = p.cache_log().count("reconfigured")
        p.write_conf([self.ANEW, *(line for line in lines if line != self.ANEW)])
        p.send_signal(signal.SIGHUP)
        harness.wait_for(lambda: p.cache_log().count("reconfigured") > before,
                         "the new configuration")

    def test_other_name_servers_are_asked_and_what_the_old_ones_said_is_forgotten(self):
        p = self.proxy({"a.test": Name(a=["127.0.0.3"]), "gone.test": Name(rcode=3)})
        self.assertEqual(self.ask(p, "a.test")[0], 502)
        self.assertEqual(self.ask(p, "gone.test")[0], 503)
        other = self.dns({n: Name(a=["127.0.0.2"]) for n in ("a.test", "gone.test")})
        self.reload_as(p, other.conf, "hosts_file none")
        for name in ("a.test", "gone.test"):
            self.assertEqual(self.ask(p, name)[0], 200)
        self.assertEqual(len(self.d.asked("a.test", A)), 1)

    def test_what_is_known_survives_a_reload_that_does_not_touch_it(self):
        p = self.proxy({"a.test": Name(a=["127.0.0.2"])})
        self.assertEqual(self.ask(p, "a.test")[0], 200)
        self.reload_as(p, *p.conf_lines, "via off")
        self.assertEqual(self.ask(p, "a.test")[0], 200)
        self.assertEqual(len(self.d.asked("a.test", A)), 1)

    def test_append_domain_holds_and_what_was_not_found_without_it_is_found(self):
        p = self.proxy({"printer.corp.test": Name(a=["127.0.0.2"])}, self.ANEW)
        self.assertEqual(self.ask(p, "printer")[0], 503)
        self.reload_as(p, *p.conf_lines, "append_domain .corp.test")
        self.assertEqual(self.ask(p, "printer")[0], 200)
        self.reload_as(p, *p.conf_lines[:-1])
        self.assertEqual(self.ask(p, "printer")[0], 503)

    def test_dns_defnames_holds(self):
        self.d = self.dns({"printer.corp.test": Name(a=["127.0.0.2"])})
        p = self.cuttle(self.d.conf, "hosts_file none",
                        environment={"LOCALDOMAIN": "first.test corp.test"})
        self.assertEqual(self.ask(p, "printer")[0], 503)
        self.reload_as(p, *p.conf_lines, "dns_defnames on")
        self.assertEqual(self.ask(p, "printer")[0], 200)

    def test_another_hosts_file_is_read_and_none_is_none(self):
        folder = self.temporary_folder()
        one = self.write(folder, "one", "127.0.0.2 one.test\n")
        two = self.write(folder, "two", "127.0.0.2 two.test\n")
        self.d = self.dns({})
        p = self.cuttle(self.d.conf, "hosts_file " + one, self.ANEW)
        for line, known in (("hosts_file " + two, "two.test"), ("hosts_file none", None),
                            ("hosts_file " + one, "one.test")):
            self.reload_as(p, self.d.conf, line)
            for name in ("one.test", "two.test"):
                self.assertEqual(self.ask(p, name)[0] == 200, name == known, line)

    def test_negative_dns_ttl_ends_what_is_kept_and_bounds_what_comes(self):
        p = self.proxy({"gone.test": Name(rcode=3)}, "negative_dns_ttl 60 seconds")
        self.assertEqual(self.ask(p, "gone.test")[0], 503)
        self.reload_as(p, *p.conf_lines[:-1], "negative_dns_ttl 1 second")
        for _ in range(2):
            time.sleep(1.2)
            self.assertEqual(self.ask(p, "gone.test")[0], 503)
        self.assertEqual(len(self.d.asked("gone.test", A)), 3)

    def test_positive_dns_ttl_ends_what_is_kept_and_bounds_what_comes(self):
        p = self.proxy({"a.test": Name(a=["127.0.0.2"], ttl_s=3600)}, self.ANEW)
        self.assertEqual(self.ask(p, "a.test")[0], 200)
        self.reload_as(p, *p.conf_lines, "positive_dns_ttl 1 second")
        for _ in range(2):
            time.sleep(1.2)
            self.assertEqual(self.ask(p, "a.test")[0], 200)
        self.assertEqual(len(self.d.asked("a.test", A)), 3)

    def test_dns_timeout_and_dns_retransmit_interval_hold(self):
        p = self.proxy({"dumb.test": Name(silent=True)})
        self.reload_as(p, self.d.conf, "hosts_file none", "dns_timeout 1 second",
                       "dns_retransmit_interval 200 milliseconds")
        status, took = self.ask(p, "dumb.test")
        self.assertEqual(status, 504)
        self.assertLess(took, 2)
        self.assertGreater(len(self.d.asked("dumb.test", A)), 1)

    def test_dns_v4_first_holds_for_names_whose_address_did_not_prove_itself(self):
        six = self.origin(lambda q: reply(body=b"six"), host="::1")
        self.origin(lambda q: reply(body=b"four"), host="127.0.0.2", port=six.port)
        both = Name(a=["127.0.0.2"], aaaa=["::1"])
        p = self.proxy({"a.test": both, "b.test": both}, self.ANEW)
        self.assertEqual(self.get(p, six.url("/", "a.test")).body, b"six")
        self.reload_as(p, *p.conf_lines, "dns_v4_first on")
        self.assertEqual(self.get(p, six.url("/", "b.test")).body, b"four")

    def test_ipcache_size_lets_names_go(self):
        p = self.proxy({"n%d.test" % i: Name(a=["127.0.0.2"]) for i in range(40)})
        for i in range(40):
            self.ask(p, "n%d.test" % i)
        self.reload_as(p, *p.conf_lines, "ipcache_size 16")
        entries = re.search(r"(?i)entries[^0-9]*([0-9]+)", p.manager("ipcache")).group(1)
        self.assertLessEqual(int(entries), 16)

    def test_questions_under_way_end_under_the_old_servers_whatever_is_reloaded(self):
        """Slow, silent and joined ones, over many reloads, with clients that leave meanwhile."""
        names = {"s%d.test" % i: Name(a=["127.0.0.2"], delay_s=0.6) for i in range(8)}
        names["dumb.test"] = Name(silent=True)
        p = self.proxy(names, self.ANEW)
        other = self.dns({"dumb.test": Name(silent=True)})
        confs = (p.conf_lines, [other.conf, "dns_timeout 1 second", "hosts_file none"])
        for _ in range(5):
            with Client(p.address) as c:
                c.request("GET", "http://dumb.test/")
                c.reset()

        def run(i):
            if i < 16:
                return self.ask(p, "s%d.test" % (i % 8), "/%d" % i)[0]
            if i < 20:
                return self.ask(p, "dumb.test", "/%d" % i)[0]
            time.sleep(0.2)
            for n in range(5):
                self.reload_as(p, *confs[(n + 1) % 2])
        told = together(21, run)
        self.assertEqual(told[:20], [200] * 16 + [504] * 4)
        self.assertEqual(self.ask(p, "s1.test")[0], 503, "the other servers do not know it")

    def test_an_end_with_old_and_new_questions_under_way_is_an_orderly_end(self):
        p = self.proxy({"dumb.test": Name(silent=True)})
        clients = [self.client(p) for _ in range(4)]
        for i, c in enumerate(clients):
            c.request("GET", "http://dumb.test/")
            time.sleep(0.1)
            if i % 2:
                self.reload_as(p, *p.conf_lines)
        p.stop()


if __name__ == "__main__":
    harness.main()
