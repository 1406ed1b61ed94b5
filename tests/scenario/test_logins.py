"""Log-ins that hold for a connection (NTLM, Negotiate): nobody goes over another one's."""
import threading

import harness
from harness import Scenario, reply, wait_for

CHALLENGE = ("WWW-Authenticate: Negotiate", "WWW-Authenticate: NTLM")


class Domain:
    """An origin that lets a connection in: a first message, a challenge, a proof, then anything."""

    def __init__(self, scheme="NTLM"):
        self.scheme, self.stage, self.who, self.served = scheme, {}, {}, []
        self.lock = threading.Lock()

    def answer(self, request, connection):
        n, proof = connection.number, request.field("Authorization") or ""
        with self.lock:
            self.served.append((n, request.method, proof, request.body))
            if n not in self.who and proof.startswith(self.scheme + " proof:") and self.stage.get(n):
                self.who[n] = proof.split(":")[1]
            if n in self.who:
                return reply("200 OK", "Cache-Control: public, max-age=60",
                             body="for %s %s" % (self.who[n], request.body.decode()))
            if proof == self.scheme + " hello":
                self.stage[n] = True
                return reply("401 Unauthorized", "WWW-Authenticate: %s challenge" % self.scheme)
        return reply("401 Unauthorized", *CHALLENGE)


class LogIns(Scenario):
    def setUp(self):
        super().setUp()
        self.domain = Domain()
        self.o = self.origin(self.domain.answer)
        self.p = self.cuttle()

    def log_in(self, client, name, path="/", method="GET", body=None, scheme="NTLM"):
        url = self.o.url(path)
        self.assertEqual(client.get(url, method=method, body=body and b"").status, 401)
        first = client.get(url, "Authorization: %s hello" % scheme, method=method,
                           body=body and b"")
        self.assertEqual(first.status, 401)
        return client.get(url, "Authorization: %s proof:%s" % (scheme, name), method=method,
                          body=body)

    def test_another_client_never_goes_over_it(self):
        with self.client(self.p) as alice, self.client(self.p) as bob:
            self.assertEqual(self.log_in(alice, "alice").body, b"for alice ")
            self.assertEqual(bob.get(self.o.url("/other")).status, 401)
            self.assertEqual(bob.get(self.o.url("/")).status, 401)
            self.assertEqual(alice.get(self.o.url("/more")).body, b"for alice ")

    def test_nobody_goes_over_it_after_its_client_has_left(self):
        with self.client(self.p) as alice:
            self.log_in(alice, "alice")
        wait_for(lambda: not self.o.open, "the origin connection of the one who left to close")
        with self.client(self.p) as bob:
            self.assertEqual(bob.get(self.o.url("/")).status, 401)

    def test_two_handshakes_at_once_stay_apart(self):
        with self.client(self.p) as alice, self.client(self.p) as bob:
            url = self.o.url("/")
            for message in "hello", "proof:%s":
                for name, client in (("alice", alice), ("bob", bob)):
                    client.request("GET", url, "Authorization: NTLM " + message.replace("%s", name))
                answers = [(name, client.read_response())
                           for name, client in (("alice", alice), ("bob", bob))]
            for name, answer in answers:
                self.assertEqual(answer.body.decode(), "for %s " % name)
            self.assertEqual(bob.get(url).body, b"for bob ")
            self.assertEqual(alice.get(url).body, b"for alice ")

    def test_all_legs_of_a_post_go_over_one_connection(self):
        with self.client(self.p) as alice:
            answer = self.log_in(alice, "alice", method="POST", body=b"her order")
            self.assertEqual(answer.body, b"for alice her order")
            again = alice.get(self.o.url("/"), method="POST", body=b"another")
            self.assertEqual(again.body, b"for alice another")
        # From the first challenge on: the connection that it came over.
        self.assertEqual(len({n for n, *_ in self.domain.served}), 1)

    def test_what_comes_over_it_is_not_stored_for_others(self):
        with self.client(self.p) as alice:
            answer = self.log_in(alice, "alice", "/page")
            self.assertIn("bound-connection", answer.cache_status)
            self.assertFalse(alice.get(self.o.url("/page")).hit)
            with self.client(self.p) as bob:
                self.assertEqual(bob.get(self.o.url("/page")).status, 401)

    def test_those_who_wait_for_its_answer_do_not_get_it(self):
        released = threading.Event()
        slow = self.origin(lambda request, c: [released, self.domain.answer(request, c)]
                           if self.domain.who.get(c.number) else self.domain.answer(request, c))
        self.o = slow
        with self.client(self.p) as alice, self.client(self.p) as bob:
            self.log_in_slowly(alice, released)
            alice.request("GET", slow.url("/page"))
            slow.wait_requests(4)
            bob.request("GET", slow.url("/page"))
            threading.Timer(0.3, released.set).start()
            self.assertEqual(alice.read_response().body, b"for alice ")
            self.assertEqual(bob.read_response().status, 401)

    def log_in_slowly(self, client, released):
        released.set()
        self.assertEqual(self.log_in(client, "alice").body, b"for alice ")
        released.clear()

    def test_negotiate_and_kerberos_are_of_the_same_kind(self):
        for scheme in "Negotiate", "Kerberos":
            self.domain = Domain(scheme)
            self.o = self.origin(self.domain.answer)
            with self.client(self.p) as alice, self.client(self.p) as bob:
                self.assertEqual(self.log_in(alice, "alice", scheme=scheme).body, b"for alice ")
                self.assertEqual(bob.get(self.o.url("/")).status, 401, scheme)

    def test_a_client_is_told_that_such_a_log_in_works_here(self):
        with self.client(self.p) as c:
            answer = c.get(self.o.url("/"))
            self.assertEqual(answer.field("Proxy-Support"), "Session-Based-Authentication")
            self.assertIn("proxy-support", answer.tokens("Connection"))

    def test_a_log_in_for_each_request_binds_nothing(self):
        self.p = self.cuttle(workers=1)  # each has idle connections of its own
        o = self.origin(lambda r: reply(body=b"in") if r.field("Authorization") else
                        reply("401 Unauthorized", 'WWW-Authenticate: Basic realm="NTLM, x"'))
        with self.client(self.p) as alice, self.client(self.p) as bob:
            self.assertEqual(alice.get(o.url("/")).field("Proxy-Support"), None)
            self.assertEqual(alice.get(o.url("/"), "Authorization: Basic YTpi").body, b"in")
            self.assertEqual(bob.get(o.url("/")).status, 401)
        self.assertEqual(o.connections, 1)

    def test_one_whose_origin_hangs_up_is_asked_to_log_in_again(self):
        with self.client(self.p) as alice:
            self.log_in(alice, "alice")
            self.o.close_connections()
            wait_for(lambda: not self.o.open, "the origin connection to close")
            self.assertEqual(alice.get(self.o.url("/")).status, 401)
            self.assertEqual(self.log_in(alice, "alice").body, b"for alice ")


if __name__ == "__main__":
    harness.main()
