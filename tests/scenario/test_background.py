"""A validation in the background keeps to what the request that caused it may, and lives on its rules."""
import signal
import time

import harness
from harness import Dns, Name, Scenario, reply, wait_for

STALE = "Cache-Control: max-age=0, stale-while-revalidate=60"


def page(body=b"page"):
    return reply("200 OK", STALE, 'ETag: "1"', body=body)


class Background(Scenario):
    def test_it_connects_to_the_addresses_that_were_judged(self):
        """The name changes with every look: what the rule saw is what is dialled, whoever dials."""
        class Changing(Dns):
            turns = 0

            def records(self, name, qtype, truncated):
                if qtype == harness.A:
                    Changing.turns += 1
                inside = Changing.turns > 2
                return super().records(Name(a=["127.0.0.1" if inside else "127.0.0.2"], ttl_s=0),
                                       qtype, truncated)
        d = Changing({"changing.test": Name()})
        self.addCleanup(d.close)
        o = self.origin(page(), host="127.0.0.2")
        inside = self.origin(reply(body=b"secret"), port=o.port)
        p = self.cuttle("acl in dst 127.0.0.1", "http_access deny in", d.conf, "hosts_file none",
                        "positive_dns_ttl 1 second", "server_persistent_connections off")
        url = o.url("/", "changing.test")
        self.assertEqual(self.get(p, url).body, b"page")
        time.sleep(1.2)
        self.assertTrue(self.get(p, url).hit)
        o.wait_requests(2)
        self.assertEqual(inside.connections, 0)

    def test_it_keeps_the_policy_of_its_request_over_a_reload(self):
        """The request waits for a slow name server, the configuration is read again meanwhile, and
        the refresh_pattern line that was found is used when the validation is answered."""
        d = self.dns({"slow.test": Name(a=["127.0.0.1"], ttl_s=0)})
        o = self.origin([page(), (0.7, page())])
        p = self.cuttle("acl never dst 192.0.2.1", "http_access deny never", d.conf,
                        "hosts_file none", "positive_dns_ttl 1 second",
                        "refresh_pattern -i page 0 20% 4320", "refresh_pattern . 0 20% 4320")
        url = o.url("/page", "slow.test")
        self.get(p, url)
        time.sleep(1.2)
        d.names["slow.test"].delay_s = 0.7
        with self.client(p) as c:
            c.request("GET", url)
            wait_for(lambda: len(d.asked("slow.test", harness.A)) > 1, "the name to be asked for")
            for _ in range(2):
                p.send_signal(signal.SIGHUP)
                time.sleep(0.2)
            self.assertTrue(c.read_response().hit)
        o.wait_requests(2)
        wait_for(lambda: self.get(p, url).status == 200, "the validated page")

    def test_it_asks_for_the_whole_whatever_part_its_request_wanted(self):
        o = self.origin(page(b"0123456789"))
        p = self.cuttle()
        self.get(p, o.url("/"))
        part = self.get(p, o.url("/"), "Range: bytes=2-4")
        self.assertEqual((part.status, part.body), (206, b"234"))
        o.wait_requests(2)
        self.assertIsNone(o.last().field("Range"))
        self.assertEqual(o.last().field("If-None-Match"), '"1"')


class Said(Scenario):
    def test_a_failure_is_logged_with_what_was_being_done(self):
        p = self.cuttle(arguments=("-d", "5"))
        self.get(p, "http://127.0.0.1:%d/" % self.dead_port())
        with self.client(p) as c:
            c.get("127.0.0.1:%d" % self.dead_port(), method="CONNECT")
        self.get(p, "http://nowhere.invalid/")
        wait_for(lambda: "(while connecting)" in p.cache_log(), "the failed tunnel in the log")
        self.assertIn("(while waiting for the answer)", p.cache_log())
        self.assertNotIn("(while failing)", p.cache_log())


if __name__ == "__main__":
    harness.main()
