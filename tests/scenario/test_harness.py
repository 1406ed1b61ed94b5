"""The harness against itself: a client that talks to the origin without a proxy between."""
import struct
import unittest

import harness
from harness import (A, AAAA, CLOSE, Client, Dns, Incomplete, Name, ProtocolError, Scenario,
                     Wire, chunked, chunks, pattern, reply)


class Harness(Scenario):
    def client_of(self, origin):
        c = Client((origin.host, origin.port))
        self.addCleanup(c.close)
        return c

    def test_a_body_of_each_framing_is_read(self):
        o = self.origin({"/length": reply(body=b"abc"),
                         "/chunked": chunked(b"ab", b"c", trailers=["X-Sum: 1"]),
                         "/close": (reply(length=False), b"abc", CLOSE)})
        c = self.client_of(o)
        self.assertEqual(c.get(o.url("/length")).body, b"abc")
        r = c.get(o.url("/chunked"))
        self.assertEqual((r.body, r.trailers), (b"abc", [("X-Sum", "1")]))
        r = c.get(o.url("/close"))
        self.assertEqual((r.body, r.until_close), (b"abc", True))

    def test_replies_of_a_list_come_in_turn(self):
        o = self.origin([reply(body=b"1"), reply(body=b"2")])
        c = self.client_of(o)
        self.assertEqual([c.get(o.url()).body for _ in range(3)], [b"1", b"2", b"2"])
        self.assertEqual((len(o.requests), o.connections), (3, 1))

    def test_a_request_body_reaches_the_origin(self):
        o = self.origin(reply())
        c = self.client_of(o)
        c.get(o.url("/l"), method="POST", body=pattern(100000))
        self.assertEqual(o.last().body, pattern(100000))
        c.get(o.url("/c"), "Transfer-Encoding: chunked", method="POST", body=chunks(b"x", b"yz"))
        self.assertEqual(o.last().body, b"xyz")

    def test_a_cut_body_is_told(self):
        o = self.origin((reply("200 OK", "Content-Length: 10", body=b"abcde"), CLOSE))
        with self.assertRaises(Incomplete) as told:
            self.client_of(o).get(o.url())
        self.assertEqual(told.exception.partial, b"abcde")

    def test_ambiguous_framing_is_told(self):
        for bad in (["Content-Length: 1", "Content-Length: 1"], ["Content-Length: +1"],
                    ["Content-Length: 1", "Transfer-Encoding: chunked"],
                    ["Transfer-Encoding: gzip"], ["X : y", "Content-Length: 1"]):
            o = self.origin(reply("200 OK", *bad, body=b"x", length=False))
            with self.assertRaises(ProtocolError):
                self.client_of(o).get(o.url())

    def test_the_name_server_answers_on_udp_and_tcp(self):
        d = self.dns({"a.test": Name(a=["127.0.0.9"], aaaa=["::1"]),
                      "big.test": Name(a=["127.0.0.%d" % i for i in range(1, 41)],
                                       truncated=True)})
        self.assertEqual(self.ask(d, "a.test", A)[2:8].hex(), "858000010001")
        self.assertEqual(self.ask(d, "a.test", AAAA)[-16:], b"\0" * 15 + b"\1")
        self.assertEqual(self.ask(d, "none.test", A)[3] & 15, 3)
        self.assertTrue(self.ask(d, "big.test", A)[2] & 2)
        self.assertEqual(self.ask(d, "big.test", A, tcp=True)[6:8], b"\0\x28")

    def ask(self, d: Dns, name, qtype, tcp=False):
        labels = b"".join(b"%c%s" % (len(p), p) for p in name.encode().split(b".")) + b"\0"
        query = (b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + labels + struct.pack("!HH", qtype, 1))
        if tcp:
            wire = Client((d.host, d.port))
            wire.send(struct.pack("!H", len(query)) + query)
            answer = wire.read_exactly(struct.unpack("!H", wire.read_exactly(2))[0])
        else:
            sock = harness.socket.socket(harness.socket.AF_INET, harness.socket.SOCK_DGRAM)
            wire = Wire(sock)
            sock.sendto(query, (d.host, d.port))
            answer = sock.recv(4096)
        wire.close()
        return answer


if __name__ == "__main__":
    harness.main()
