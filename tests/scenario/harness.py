"""harness - scripts both sides of the daemon, with nothing but Python's standard library.

A scenario starts cuttle with a few lines of configuration, an origin that answers as it is told,
maybe a name server, and then speaks raw bytes as a client. What is read from the proxy is parsed
strictly, so that a scenario fails when a length is wrong, not only when a body is. Whatever
waits is bounded by TIMEOUT_S. Ports are picked so that several runs live side by side.
When a scenario ends, the proxy gets SIGTERM and must leave with 0 and without a word from a
sanitizer; what the proxy sent to an origin must have been strict HTTP too.
"""
import collections
import contextlib
import email.utils
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

TIMEOUT_S = float(os.environ.get("CUTTLE_TIMEOUT", "10"))
HEAD_LIMIT_BYTES = 4 << 20
SANITIZER_WORDS = re.compile(
    r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|UndefinedBehavior|runtime error:")

# What a sanitizer's shadow and redzones make of a kilobyte, roughly.
MEMORY_FACTOR = {"address": 3, "thread": 10}.get(os.environ.get("CUTTLE_SANITIZE"), 1)

CLOSE = "close"            # steps of an origin's script: end the connection with a FIN,
RESET = "reset"            # with a RST,
HALF_CLOSE = "half-close"  # or only our sending side
SILENT = "silent"          # say nothing more, keep the connection open


class ProtocolError(AssertionError):
    """The peer sent something that is not strict HTTP/1.1."""


class Incomplete(ProtocolError):
    """The connection ended in the middle of a message; partial holds what had come."""

    def __init__(self, text, partial=b""):
        super().__init__(text)
        self.partial = partial


# ------------------------------------------------------------------ messages

class Message:
    def __init__(self, start, fields, raw_head):
        self.start, self.fields, self.raw_head = start, fields, raw_head
        self.body, self.trailers = b"", []

    def all(self, name):
        return [v for n, v in self.fields if n.lower() == name.lower()]

    def field(self, name):
        """The field's value, several joined by a comma (RFC 9110 5.3); None when absent."""
        values = self.all(name)
        return ", ".join(values) if values else None

    def tokens(self, name):
        return [t.strip().lower() for v in self.all(name) for t in v.split(",") if t.strip()]

    def __repr__(self):
        return "<%s %r, %d bytes>" % (self.start, self.fields, len(self.body))


class Request(Message):
    def __init__(self, start, fields, raw_head):
        super().__init__(start, fields, raw_head)
        parts = start.split(" ")
        if len(parts) != 3:
            raise ProtocolError("request line %r" % start)
        self.method, self.target, self.version = parts
        self.connection = None


class Response(Message):
    def __init__(self, start, fields, raw_head):
        super().__init__(start, fields, raw_head)
        parts = start.split(" ", 2)
        if len(parts) != 3 or not re.fullmatch(r"HTTP/1\.[01]", parts[0]) \
                or not re.fullmatch(r"[1-9][0-9][0-9]", parts[1]):
            raise ProtocolError("status line %r" % start)
        self.version, self.status, self.reason = parts[0], int(parts[1]), parts[2]
        self.interim = []          # the 1xx heads that came before
        self.until_close = False   # the body ended with the connection

    @property
    def cache_status(self):
        return self.field("Cache-Status") or ""

    @property
    def hit(self):
        return re.search(r";\s*hit\b", self.cache_status) is not None


def parse_fields(lines):
    fields = []
    for line in lines:
        found = re.fullmatch(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*", line, re.S)
        if not found or re.search(r"[\r\n\0]", found.group(2)):
            raise ProtocolError("field line %r" % line)
        fields.append((found.group(1), found.group(2)))
    return fields


def fields_text(fields):
    return "".join(f + "\r\n" for f in fields)


def as_bytes(data):
    return data.encode("latin-1") if isinstance(data, str) else data


def reply(status="200 OK", *fields, body=b"", length=True, date=True):
    """One response as bytes, with Date and Content-Length unless told otherwise."""
    head = "HTTP/1.1 %s\r\n" % status
    if date:
        head += "Date: %s\r\n" % email.utils.formatdate(usegmt=True)
    if length and not any(f.lower().startswith(("content-length:", "transfer-encoding:"))
                          for f in fields):
        head += "Content-Length: %d\r\n" % len(body)
    return as_bytes(head + fields_text(fields) + "\r\n") + as_bytes(body)


def storable(body=b"stored", *fields, seconds=60, status="200 OK"):
    return reply(status, "Cache-Control: max-age=%d" % seconds, *fields, body=body)


def chunks(*pieces, trailers=(), last=True):
    """A chunked body."""
    out = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in map(as_bytes, pieces) if p)
    return out + (b"0\r\n" + as_bytes(fields_text(trailers)) + b"\r\n" if last else b"")


def chunked(*pieces, fields=(), trailers=(), status="200 OK"):
    return (reply(status, "Transfer-Encoding: chunked", *fields)
            + chunks(*pieces, trailers=trailers))


def pattern(n_bytes, seed=0):
    """Bytes of which every stretch tells where it belongs."""
    line = b"".join(b"%08x" % ((seed << 20 | i) & 0xffffffff) for i in range(n_bytes // 8 + 1))
    return line[:n_bytes]


def wait_for(claim, what="the condition", timeout_s=TIMEOUT_S):
    """Polls claim() until it is true; returns its value."""
    end = time.monotonic() + timeout_s
    while True:
        value = claim()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("timed out waiting for " + what)
        time.sleep(0.01)


def together(n, function):
    """Runs function(0..n-1) in n threads at once and returns the results in order."""
    results, errors = [None] * n, []

    def run(i):
        try:
            results[i] = function(i)
        except BaseException as e:  # told to the scenario below
            errors.append(e)
    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(n)]
    for t in threads:
        t.start()
    end = time.monotonic() + 6 * TIMEOUT_S
    for t in threads:
        t.join(max(0.01, end - time.monotonic()))
        if t.is_alive():
            raise AssertionError("a thread of together() did not end")
    if errors:
        raise errors[0]
    return results


# ---------------------------------------------------------------- connection

class Wire:
    """A connected socket with a buffer: sends bytes, reads messages strictly."""

    def __init__(self, sock, timeout_s=TIMEOUT_S):
        self.sock, self.pending, self.ended = sock, b"", False
        sock.settimeout(timeout_s)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data, piece=None, pause_s=0.0):
        """Sends all; in pieces of so many bytes with a pause after each when told so."""
        data = as_bytes(data)
        if piece is None:
            self.sock.sendall(data)
            return
        for at in range(0, len(data), piece):
            self.sock.sendall(data[at:at + piece])
            time.sleep(pause_s)

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def close(self):
        with contextlib.suppress(OSError):
            self.sock.close()

    def reset(self):
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def fill(self):
        """Receives once; False at the end of the stream. A reset counts as an end."""
        if self.ended:
            return False
        try:
            data = self.sock.recv(65536)
        except ConnectionError:
            data = b""
        if not data:
            self.ended = True
            return False
        self.pending += data
        return True

    def take(self, n):
        data, self.pending = self.pending[:n], self.pending[n:]
        return data

    def read_until(self, mark, limit=HEAD_LIMIT_BYTES):
        mark = as_bytes(mark)
        searched = 0
        while True:
            at = self.pending.find(mark, searched)
            if at >= 0:
                return self.take(at + len(mark))
            searched = max(0, len(self.pending) - len(mark))
            if len(self.pending) > limit:
                raise ProtocolError("no %r within %d bytes" % (mark, limit))
            if not self.fill():
                raise Incomplete("closed before %r, after %r" % (mark, self.pending[-200:]),
                                 self.pending)

    def read_exactly(self, n):
        pieces, missing = [self.take(n)], n
        missing -= len(pieces[0])
        while missing > 0:
            if not self.fill():
                got = b"".join(pieces)
                raise Incomplete("closed after %d of %d bytes" % (len(got), n), got)
            pieces.append(self.take(missing))
            missing -= len(pieces[-1])
        return b"".join(pieces)

    def read_all(self):
        """Everything up to the end of the stream."""
        pieces = [self.take(len(self.pending))]
        while self.fill():
            pieces.append(self.take(len(self.pending)))
        return b"".join(pieces)

    def expect_close(self):
        rest = self.read_all()
        if rest:
            raise AssertionError("%d bytes instead of a close: %r" % (len(rest), rest[:200]))

    def expect_silence(self, for_s):
        """Nothing arrives, and the connection stays open."""
        if self.pending:
            raise AssertionError("bytes instead of silence: %r" % self.pending[:200])
        before = self.sock.gettimeout()
        self.sock.settimeout(for_s)
        try:
            if self.fill():
                raise AssertionError("bytes instead of silence: %r" % self.pending[:200])
            raise AssertionError("a close instead of silence")
        except socket.timeout:
            pass
        finally:
            self.sock.settimeout(before)

    def read_head(self):
        raw = self.read_until(b"\r\n\r\n")
        lines = raw[:-4].decode("latin-1").split("\r\n")
        if re.search(r"[\r\n\0]", lines[0]):
            raise ProtocolError("start line %r" % lines[0])
        return lines[0], parse_fields(lines[1:]), raw

    def read_chunked(self, message):
        pieces = []
        try:
            while True:
                line = self.read_until(b"\r\n", limit=65536)[:-2]
                if not re.fullmatch(rb"[0-9A-Fa-f]{1,16}", line):
                    raise ProtocolError("chunk size line %r" % line)
                size = int(line, 16)
                if size == 0:
                    break
                pieces.append(self.read_exactly(size))
                if self.read_exactly(2) != b"\r\n":
                    raise ProtocolError("no CRLF after a chunk")
            lines = []
            while True:
                line = self.read_until(b"\r\n")[:-2].decode("latin-1")
                if not line:
                    break
                lines.append(line)
            message.trailers = parse_fields(lines)
        except Incomplete as e:
            raise Incomplete("inside a chunked body: %s" % e, b"".join(pieces) + e.partial)
        return b"".join(pieces)

    def framing(self, message):
        """"chunked", a length or None; anything ambiguous is an error (RFC 9112 6.3)."""
        codings, lengths = message.tokens("Transfer-Encoding"), message.all("Content-Length")
        if codings and lengths:
            raise ProtocolError("both Transfer-Encoding and Content-Length")
        if codings:
            if codings != ["chunked"]:
                raise ProtocolError("Transfer-Encoding: %s" % codings)
            return "chunked"
        if len(lengths) > 1 or lengths and not re.fullmatch(r"[0-9]{1,18}", lengths[0]):
            raise ProtocolError("Content-Length: %s" % lengths)
        return int(lengths[0]) if lengths else None


class Client(Wire):
    """A client of the proxy (or of anything else)."""

    def __init__(self, address, timeout_s=TIMEOUT_S, source=None):
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.settimeout(timeout_s)
        if source:
            sock.bind((source, 0))
        sock.connect(address)
        super().__init__(sock, timeout_s)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def request(self, method, url, *fields, body=None, version="HTTP/1.1"):
        """Sends one request; Host comes from the url, Content-Length from the body."""
        head = "%s %s %s\r\n" % (method, url, version)
        authority = re.match(r"[a-z]+://([^/?#]*)", url)
        if not any(f.lower().startswith("host:") for f in fields):
            head += "Host: %s\r\n" % (authority.group(1) if authority else url)
        if body is not None and not any(
                f.lower().startswith(("content-length:", "transfer-encoding:")) for f in fields):
            head += "Content-Length: %d\r\n" % len(body)
        self.send(as_bytes(head + fields_text(fields) + "\r\n") + as_bytes(body or b""))

    def read_response_head(self):
        """The next head, 1xx ones included; the body is the caller's to read."""
        return Response(*self.read_head())

    def read_response(self, method="GET"):
        """The next final response with its body; 1xx heads before it end up in .interim."""
        interim = []
        while True:
            r = self.read_response_head()
            if r.status >= 200 or r.status == 101:
                break
            interim.append(r)
        r.interim = interim
        self.read_response_body(r, method)
        return r

    def read_response_body(self, r, method="GET"):
        framing = self.framing(r)
        if r.status < 200 or r.status == 204:
            if framing is not None:
                raise ProtocolError("%d with framing fields" % r.status)
            return
        if method == "HEAD" or r.status == 304 or method == "CONNECT" and r.status < 300:
            return
        if framing == "chunked":
            if r.version == "HTTP/1.0":
                raise ProtocolError("chunked in an HTTP/1.0 response")
            r.body = self.read_chunked(r)
        elif framing is None:
            r.body, r.until_close = self.read_all(), True
        else:
            r.body = self.read_exactly(framing)

    def get(self, url, *fields, method="GET", body=None, version="HTTP/1.1"):
        self.request(method, url, *fields, body=body, version=version)
        return self.read_response(method)

    def connect_tunnel(self, authority):
        r = self.get(authority, method="CONNECT")
        if r.status != 200:
            raise AssertionError("CONNECT %s: %d %s" % (authority, r.status, r.reason))
        return r


# -------------------------------------------------------------------- origin

class OriginConnection(Wire):
    def __init__(self, sock, origin, number):
        super().__init__(sock)
        self.origin, self.number, self.open = origin, number, True

    def fill(self):
        before = len(self.pending)
        got = super().fill()
        self.origin.received[self.number] += self.pending[before:]
        return got

    def read_request(self):
        """The next request's head; None at an orderly end."""
        if not self.pending and not self.fill():
            return None
        request = Request(*self.read_head())
        request.connection = self.number
        return request

    def read_body(self, request):
        framing = self.framing(request)
        if framing == "chunked":
            request.body = self.read_chunked(request)
        elif framing:
            request.body = self.read_exactly(framing)
        return request.body

    def play(self, steps):
        """Bytes are sent, numbers slept, events awaited, functions called with us."""
        if steps is None:
            return
        if isinstance(steps, (bytes, str, int, float)) or callable(steps):
            steps = [steps]
        for step in steps:
            if step == CLOSE:
                self.finish()
            elif step == RESET:
                self.open = False
                self.reset()
            elif step == HALF_CLOSE:
                self.half_close()
            elif step == SILENT:
                self.origin.closing.wait(6 * TIMEOUT_S)
            elif isinstance(step, (bytes, str)):
                self.send(step)
            elif isinstance(step, (int, float)):
                self.origin.closing.wait(step)
            elif isinstance(step, threading.Event):
                step.wait(TIMEOUT_S)
            elif callable(step):
                step(self)
            else:
                raise TypeError("no such step: %r" % (step,))
            if not self.open:
                return

    def finish(self):
        """FIN; unread bytes are taken first so that it does not become a RST."""
        self.open = False
        with contextlib.suppress(OSError):
            self.sock.setblocking(False)
            while self.sock.recv(65536):
                pass
        self.close()


class Origin:
    """A scripted server. answer is one of
      bytes or tuple  the reply to every request (a tuple of steps: see OriginConnection.play),
      list of replies one for each request in the order of arrival; then the last one again,
      dict            path -> any of these,
      function        called with the request (and the connection, when it takes two arguments);
                      what it returns is played.
    With raw=function(connection) nothing is read as HTTP: the function has the connection.
    Without reads_bodies the answer is given when the head is there."""

    def __init__(self, answer=None, raw=None, host="127.0.0.1", port=0, reads_bodies=True,
                 continues=True):
        self.answer, self.raw, self.host = answer, raw, host
        self.reads_bodies, self.continues = reads_bodies, continues
        self.requests, self.received, self.faults = [], collections.defaultdict(bytes), []
        self.connections, self.closing, self.lock = 0, threading.Event(), threading.Lock()
        self.open, self.turns = set(), {}
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((host, port))
        self.listener.listen(1024)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept_all, daemon=True).start()

    @property
    def authority(self):
        return ("[%s]:%d" if ":" in self.host else "%s:%d") % (self.host, self.port)

    def url(self, path="/", host=None):
        if host:
            return "http://%s:%d%s" % (host, self.port, path)
        return "http://%s%s" % (self.authority, path)

    def accept_all(self):
        while not self.closing.is_set():
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                c = OriginConnection(sock, self, self.connections)
                self.connections += 1
                self.open.add(c)
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def serve(self, c):
        try:
            if self.raw:
                self.raw(c)
            while not self.raw and c.open and self.serve_one(c):
                pass
        except (OSError, Incomplete, ValueError):
            pass                                   # the peer left, or we are closing
        except Exception as e:                     # not strict HTTP, or a mistake in a script
            self.faults.append("%s: %s" % (type(e).__name__, e))
        finally:
            c.close()
            with self.lock:
                self.open.discard(c)

    def serve_one(self, c):
        request = c.read_request()
        if request is None:
            return False
        if self.reads_bodies:
            if self.continues and "100-continue" in request.tokens("Expect"):
                c.send("HTTP/1.1 100 Continue\r\n\r\n")
            c.read_body(request)
        with self.lock:
            self.requests.append(request)
            steps = self.choose(self.answer, request, "all")
        c.play(steps(request, c) if callable(steps) and takes_two(steps)
               else steps(request) if callable(steps) else steps)
        return True

    def choose(self, answer, request, key):
        """Follows dicts by path and lists by turn down to one script."""
        while True:
            if isinstance(answer, dict):
                path = re.sub(r"^[a-z]+://[^/]*", "", request.target)
                key = path if path in answer else path.split("?")[0]
                if key not in answer:
                    return reply("404 Not Found", body=b"the origin has no " + as_bytes(path))
                answer = answer[key]
            elif isinstance(answer, list):
                turn = self.turns.get(key, 0)
                self.turns[key] = turn + 1
                answer = answer[min(turn, len(answer) - 1)]
                key = (key, turn)
            else:
                return answer

    def wait_requests(self, n):
        wait_for(lambda: len(self.requests) >= n, "%d requests at the origin" % n)
        return self.requests

    def last(self):
        return self.requests[-1]

    def close_connections(self):
        with self.lock:
            opened = list(self.open)
        for c in opened:
            with contextlib.suppress(OSError):
                c.sock.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.closing.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.close_connections()


def read_text(path):
    with open(path) as f:
        return f.read()


def takes_two(function):
    code = getattr(function, "__code__", None)
    if code is None:
        return False
    return code.co_argcount - (1 if hasattr(function, "__self__") else 0) >= 2


# --------------------------------------------------------------- name server

A, AAAA, SOA, CNAME = 1, 28, 6, 5


class Name:
    """What the name server says of one name. delay_s, silent and truncated hold for both types
    or, as {A: value}, for one."""

    def __init__(self, a=(), aaaa=(), ttl_s=300, rcode=0, soa_minimum_s=60, delay_s=0,
                 truncated=False, silent=False, cname=None):
        self.addresses = {A: list(a), AAAA: list(aaaa)}
        self.ttl_s, self.rcode, self.soa_minimum_s = ttl_s, rcode, soa_minimum_s
        self.delay_s, self.truncated, self.silent, self.cname = delay_s, truncated, silent, cname


def of_type(value, qtype, absent):
    return value.get(qtype, absent) if isinstance(value, dict) else value


class Dns:
    """A name server on UDP and TCP. names: name -> Name; absent names do not exist (NXDOMAIN
    with SOA). queries holds (name, type, "udp" or "tcp") in the order of arrival."""

    def __init__(self, names=None, host="127.0.0.1"):
        self.names, self.queries = dict(names or {}), []
        self.closing, self.host = threading.Event(), host
        for _ in range(50):
            self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self.udp.bind((host, 0))
            self.port = self.udp.getsockname()[1]
            try:
                self.tcp.bind((host, self.port))
                break
            except OSError:
                self.udp.close()
                self.tcp.close()
        self.tcp.listen(64)
        self.udp.settimeout(0.2)
        for target in (self.serve_udp, self.serve_tcp):
            threading.Thread(target=target, daemon=True).start()

    @property
    def conf(self):
        return "dns_nameservers %s:%d" % (self.host, self.port)

    def asked(self, name, qtype=None):
        return [q for q in self.queries if q[0] == name.lower() and qtype in (None, q[1])]

    def serve_udp(self):
        while not self.closing.is_set():
            try:
                query, peer = self.udp.recvfrom(4096)
            except socket.timeout:
                continue
            except OSError:
                return
            threading.Thread(target=self.answer_udp, args=(query, peer), daemon=True).start()

    def answer_udp(self, query, peer):
        with contextlib.suppress(OSError):
            answer = self.answer(query, "udp")
            if answer:
                self.udp.sendto(answer, peer)

    def serve_tcp(self):
        while not self.closing.is_set():
            try:
                sock, _ = self.tcp.accept()
            except OSError:
                return
            threading.Thread(target=self.answer_tcp, args=(Wire(sock),), daemon=True).start()

    def answer_tcp(self, wire):
        with contextlib.suppress(OSError, Incomplete):
            while True:
                size = struct.unpack("!H", wire.read_exactly(2))[0]
                answer = self.answer(wire.read_exactly(size), "tcp")
                if answer:
                    wire.send(struct.pack("!H", len(answer)) + answer)
        wire.close()

    def answer(self, query, transport):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1").lower())
            at += 1 + query[at]
        qtype = struct.unpack("!H", query[at + 1:at + 3])[0]
        text = ".".join(labels)
        self.queries.append((text, qtype, transport))
        name = self.names.get(text) or Name(rcode=3)
        self.closing.wait(of_type(name.delay_s, qtype, 0))
        if of_type(name.silent, qtype, False):
            return None
        truncated = transport == "udp" and of_type(name.truncated, qtype, False)
        records, authority = self.records(name, qtype, truncated)
        flags = 0x8580 | (0x0200 if truncated else 0) | of_type(name.rcode, qtype, 0)
        head = query[:2] + struct.pack("!HHHHH", flags, 1, len(records), len(authority), 0)
        return head + query[12:at + 5] + b"".join(records + authority)

    def records(self, name, qtype, truncated):
        if truncated:
            return [], []
        answers, owner = [], b"\xc0\x0c"
        if name.cname:
            labels = name.cname.encode().split(b".")
            target = b"".join(b"%c%s" % (len(label), label) for label in labels) + b"\0"
            answers.append(record(owner, CNAME, name.ttl_s, target))
            name, owner = self.names.get(name.cname, Name(rcode=3)), target
        for address in name.addresses.get(qtype, []):
            family = socket.AF_INET if qtype == A else socket.AF_INET6
            answers.append(record(owner, qtype, name.ttl_s, socket.inet_pton(family, address)))
        if answers or of_type(name.rcode, qtype, 0) not in (0, 3) or name.soa_minimum_s is None:
            return answers, []
        soa = b"\0" b"\0" + struct.pack("!IIIII", 1, 3600, 600, 86400, name.soa_minimum_s)
        return [], [record(b"\0", SOA, name.soa_minimum_s, soa)]

    def close(self):
        self.closing.set()
        with contextlib.suppress(OSError):
            self.tcp.shutdown(socket.SHUT_RDWR)
        self.tcp.close()
        self.udp.close()


def record(owner, rtype, ttl_s, data):
    return owner + struct.pack("!HHIH", rtype, 1, ttl_s, len(data)) + data


# -------------------------------------------------------------------- daemon

class Exited(AssertionError):
    def __init__(self, code, text):
        super().__init__("cuttle left with %s: %s" % (code, text[-3000:]))
        self.code, self.text = code, text


class PortLease:
    """A TCP port below the ephemeral range. The UDP port of the same number is held as long as
    the lease, so that two runs never share one (SO_REUSEPORT would let them, in silence)."""

    def __init__(self, host="127.0.0.1"):
        for _ in range(500):
            self.number = random.randrange(10000, 32000)
            self.holder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            probe = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                self.holder.bind((host, self.number))
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((host, self.number))
                return
            except OSError:
                self.holder.close()
            finally:
                probe.close()
        raise AssertionError("no free port")

    def release(self):
        self.holder.close()


def is_listening(port, host="127.0.0.1"):
    """Looks into /proc instead of connecting: a probe would be a line in the access log."""
    sought = "%08X:%04X" % (struct.unpack("=I", socket.inet_aton(host))[0], port)
    with open("/proc/net/tcp") as f:
        return any(line.split()[1] == sought and line.split()[3] == "0A"
                   for line in f.read().splitlines()[1:])


def binary():
    path = os.environ.get("CUTTLE")
    if not path:
        raise unittest.SkipTest("CUTTLE names no binary")
    return path


def run_cuttle(*arguments, timeout_s=TIMEOUT_S):
    """Runs it to its end: (exit code, stdout, stderr)."""
    done = subprocess.run([binary(), *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout_s)
    return (done.returncode, done.stdout.decode("utf-8", "replace"),
            done.stderr.decode("utf-8", "replace"))


NATIVE = re.compile(
    r"^ *(?P<time>\d+\.\d{3}) +(?P<elapsed_ms>-?\d+) (?P<client>\S+) "
    r"(?P<code>\w+)/(?P<status>\d{3}) (?P<bytes>\d+) (?P<method>\S+) (?P<url>\S+) "
    r"(?P<user>\S+) (?P<hierarchy>\w+)/(?P<peer>\S+) (?P<type>\S+)$")


class AccessLine:
    """One line of Squid's native format."""

    def __init__(self, text):
        found = NATIVE.match(text)
        if not found:
            raise AssertionError("no line of the native format: %r" % text)
        self.text = text
        self.__dict__.update(found.groupdict())
        self.status, self.bytes = int(self.status), int(self.bytes)
        self.elapsed_ms, self.time = int(self.elapsed_ms), float(self.time)

    def __repr__(self):
        return self.text


class Cuttle:
    """The daemon with a configuration of its own in a temporary folder."""

    def __init__(self, *conf_lines, workers=None, access="http_access allow all", arguments=(),
                 prefix=(), environment=None, lean=False):
        self.folder = tempfile.mkdtemp(prefix="cuttle-")
        self.workers = workers or int(os.environ.get("CUTTLE_WORKERS", "1"))
        self.conf_lines, self.access = list(conf_lines), access
        self.arguments, self.prefix = arguments, prefix
        self.environment = dict(environment or {})
        if lean:                   # freed memory goes back instead of into ASan's quarantine
            self.environment["ASAN_OPTIONS"] = ":".join(filter(None, (
                os.environ.get("ASAN_OPTIONS"), "quarantine_size_mb=1",
                "thread_local_quarantine_size_kb=64", "allocator_release_to_os_interval_ms=100")))
        self.conf_path = self.path("cuttle.conf")
        self.process = self.lease = None
        self.start()

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with contextlib.suppress(FileNotFoundError):
            with open(self.path(name), encoding="utf-8", errors="replace") as f:
                return f.read()
        return ""

    def write_conf(self, conf_lines=None, access=None):
        if conf_lines is not None:
            self.conf_lines = list(conf_lines)
        if access is not None:
            self.access = access
        named = {line.split(" ")[0] for line in self.conf_lines}
        usual = ["http_port 127.0.0.1:%d" % self.port,
                 "access_log stdio:%s squid" % self.path("access.log"),
                 "cache_log %s" % self.path("cache.log"),
                 "pid_filename none", "shutdown_lifetime 1 second", "visible_hostname cuttle.test",
                 "workers %d" % self.workers,
                 "event_backend %s" % os.environ.get("CUTTLE_BACKEND", "auto")]
        lines = [line for line in usual if line.split(" ")[0] not in named]
        with open(self.conf_path, "w") as f:
            f.write("\n".join(lines + self.conf_lines + [self.access or ""]) + "\n")

    def start(self):
        for attempt in range(3):
            self.lease = PortLease()
            self.port = self.lease.number
            self.write_conf()
            try:
                self.launch()
                return
            except Exited as e:
                self.lease.release()
                if "in use" not in e.text or attempt == 2:
                    self.remove()
                    raise

    def launch(self):
        command = list(self.prefix) + [binary(), "-N", "-f", self.conf_path, *self.arguments]
        with open(self.path("stdout"), "wb") as out, open(self.path("stderr"), "wb") as err:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.folder,
                env=dict(os.environ, **self.environment))
        wait_for(lambda: self.process.poll() is not None or is_listening(self.port),
                 "cuttle to listen", 2 * TIMEOUT_S)
        if self.process.poll() is not None:
            raise Exited(self.process.returncode, self.read("stderr") + self.read("cache.log"))

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    @property
    def pid(self):
        return self.process.pid

    def send_signal(self, number):
        self.process.send_signal(number)

    def is_running(self):
        return self.process.poll() is None

    def stop(self, number=signal.SIGTERM, timeout_s=2 * TIMEOUT_S):
        """Ends it and returns how long that took; anything but a clean end is a failure."""
        if self.process is None:
            return 0.0
        began = time.monotonic()
        if self.is_running():
            self.send_signal(number)
        try:
            code = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = "no end within %d s" % timeout_s
        took = time.monotonic() - began
        self.process = None
        self.lease.release()
        said = self.read("stderr")
        reports = [line for line in said.splitlines() if SANITIZER_WORDS.search(line)]
        if code != 0 or reports:
            raise AssertionError("cuttle left with %s\n--- stderr\n%s\n--- cache_log\n%s" % (
                code, said[-12000:], self.read("cache.log")[-3000:]))
        return took

    def kill(self):
        if self.process and self.is_running():
            self.process.kill()
            self.process.wait()
        self.process = None

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def access_log(self, count=0, name="access.log"):
        """The parsed lines; waits until there are at least count."""
        def lines():
            text = self.read(name)
            whole = text[:text.rfind("\n") + 1].splitlines()
            return [AccessLine(t) for t in whole if "transaction-end-before-headers" not in t]
        if count:
            wait_for(lambda: len(lines()) >= count,
                     "%d lines in the access log, there are %r" % (count, lines()))
        return lines()

    def logged(self, path_end, count=1):
        """Waits for count access log lines whose URL ends so, and returns them."""
        def found():
            return [a for a in self.access_log() if a.url.endswith(path_end)]
        wait_for(lambda: len(found()) >= count, "%d log lines for %s" % (count, path_end))
        return found()

    def cache_log(self):
        return self.read("cache.log") + self.read("stderr")

    def manager(self, page):
        """The text of a manager page."""
        with Client(self.address) as c:
            r = c.get("/squid-internal-mgr/" + page, "Host: 127.0.0.1:%d" % self.port)
        if r.status != 200:
            raise AssertionError("manager page %s: %d" % (page, r.status))
        return r.body.decode("utf-8", "replace")

    def counter(self, name):
        """One `name = value` of the counters page."""
        found = re.search(r"^%s *= *([0-9.]+)" % re.escape(name), self.manager("counters"), re.M)
        if not found:
            raise AssertionError("no counter %s" % name)
        return float(found.group(1))

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def memory_kb(self):
        with open("/proc/%d/status" % self.pid) as f:
            return int(re.search(r"VmRSS:\s*(\d+)", f.read()).group(1))

    def cpu_s(self):
        with open("/proc/%d/stat" % self.pid) as f:
            parts = f.read().rsplit(")", 1)[1].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


# ------------------------------------------------------------------ scenario

class Scenario(unittest.TestCase):
    """Starts things that are ended and judged when the test is over."""

    def cuttle(self, *conf_lines, **options):
        proxy = Cuttle(*conf_lines, **options)
        self.addCleanup(proxy.remove)
        self.addCleanup(proxy.stop)
        return proxy

    def origin(self, answer=None, **options):
        o = Origin(answer, **options)
        self.addCleanup(self.judge_origin, o)
        self.addCleanup(o.close)
        return o

    def judge_origin(self, o):
        self.assertEqual(o.faults, [], "what the origin received was not strict HTTP")

    def dns(self, names=None):
        d = Dns(names)
        self.addCleanup(d.close)
        return d

    def client(self, proxy, **options):
        c = Client(proxy.address, **options)
        self.addCleanup(c.close)
        return c

    def get(self, proxy, url, *fields, **options):
        """One request on a connection of its own."""
        with Client(proxy.address) as c:
            return c.get(url, *fields, **options)

    def raw(self, proxy, data, method="GET"):
        """Sends bytes on a connection of its own and reads one response."""
        with Client(proxy.address) as c:
            c.send(data)
            return c.read_response(method)

    def hosts(self, **names):
        """The line for a hosts file; underscores stand for dots: a_test="127.0.0.2"."""
        text = "".join("%s %s\n" % (address, name.replace("_", "."))
                       for name, address in names.items())
        return "hosts_file " + self.write(self.temporary_folder(), "hosts", text)

    def dead_port(self):
        """A port nobody listens on, ours until the end of the test."""
        lease = PortLease()
        self.addCleanup(lease.release)
        return lease.number

    def temporary_folder(self):
        folder = tempfile.mkdtemp(prefix="cuttle-")
        self.addCleanup(shutil.rmtree, folder, True)
        return folder

    def write(self, folder, name, text):
        path = os.path.join(folder, name)
        with open(path, "w") as f:
            f.write(text)
        return path


def main():
    unittest.main(argv=sys.argv if len(sys.argv) > 1 else [sys.argv[0], "-v"])
