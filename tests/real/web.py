"""web - a small, honest web server for real clients: ranges, validators, uploads, CGI for git,
WebSocket. It counts what it is asked, and how many bytes of content it sent."""
import base64
import hashlib
import http.server
import os
import posixpath
import socketserver
import ssl
import subprocess
import threading
import time
import urllib.parse

FRESH = {"Cache-Control": "max-age=3600"}
LAST_MODIFIED = "Wed, 01 Jan 2020 00:00:00 GMT"        # in the past whatever the clock says
WEBSOCKET_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass

    def setup(self):
        super().setup()
        self.server.web.count("connections")

    def body(self):
        """The request body, in pieces."""
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            while True:
                n = int(self.rfile.readline().split(b";")[0], 16)
                if n == 0:
                    while self.rfile.readline() not in (b"\r\n", b""):
                        pass
                    return
                yield self.rfile.read(n)
                self.rfile.readline()
        left = int(self.headers.get("Content-Length") or 0)
        while left:
            piece = self.rfile.read(min(left, 1 << 16))
            if not piece:
                return
            left -= len(piece)
            yield piece

    def answer(self, status, body=b"", kind="text/plain", **fields):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        self.server.web.count(self.path)
        path = urllib.parse.urlsplit(self.path).path
        if path.startswith("/git/"):
            return self.git()
        if path == "/echo" and self.headers.get("Upgrade", "").lower() == "websocket":
            return self.echo()
        content = self.server.web.content(path)
        if content is None:
            return self.answer(404, b"no such page")
        return self.give(*content)

    do_HEAD = do_GET

    def give(self, size, piece, kind, fields):
        """size bytes made by piece(from, n); a range of them when the client asks for one."""
        validators = {"ETag": '"%x"' % size, "Last-Modified": LAST_MODIFIED}
        fields = {k: v for k, v in dict(validators, **fields).items() if v is not None}
        tag, modified = fields.get("ETag"), fields.get("Last-Modified")
        if self.is_unchanged(tag, modified):
            self.note(304)
            self.send_response(304)
            self.send_fields({k: v for k, v in fields.items() if k in validators})
            return self.end_headers()
        chunked = "Transfer-Encoding" in fields and self.request_version != "HTTP/1.0"
        first, last, status = (0, size - 1, 200) if chunked \
            else self.wanted(size, (tag, modified))
        self.note(status)
        if status == 416:
            return self.answer(416, b"", Content_Range="bytes */%d" % size)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if not chunked:
            self.send_header("Content-Length", str(last - first + 1))
        if status == 206:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (first, last, size))
        self.send_fields({k: v for k, v in fields.items() if chunked or k != "Transfer-Encoding"})
        self.end_headers()
        if self.command != "HEAD":
            self.send_content(first, last, piece, chunked)

    def note(self, status):
        asks = self.headers.get("If-None-Match") or self.headers.get("If-Modified-Since")
        self.server.web.answered(self.path, status, bool(asks))

    def send_fields(self, fields):
        for name, value in fields.items():
            self.send_header(name, value)

    def is_unchanged(self, tag, modified):
        """RFC 9110 13.2.2: If-Modified-Since counts only without If-None-Match."""
        if tag and self.headers.get("If-None-Match"):
            return tag in self.headers["If-None-Match"]
        return bool(modified) and self.headers.get("If-Modified-Since") == modified

    def wanted(self, size, validators):
        """(first, last, status) of the single range asked for, or of everything."""
        wanted = self.headers.get("Range", "")
        if not wanted.startswith("bytes=") or "," in wanted \
                or self.headers.get("If-Range", validators[0]) not in validators:
            return 0, size - 1, 200
        a, b = wanted[6:].split("-")
        first, last = (int(a), int(b or size - 1)) if a else (size - int(b), size - 1)
        return first, min(last, size - 1), 416 if first >= size else 206

    def send_content(self, first, last, piece, chunked):
        while first <= last:
            n = min(1 << 18, last - first + 1)
            data = piece(first, n)
            self.wfile.write(b"%x\r\n%s\r\n" % (n, data) if chunked else data)
            self.server.web.add_sent(n)
            first += n
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def do_POST(self):
        self.server.web.count(self.path)
        if self.path.startswith("/git/"):
            return self.git()
        digest, n = hashlib.sha256(), 0
        for piece in self.body():
            digest.update(piece)
            n += len(piece)
        self.answer(200, ("%s %d\n" % (digest.hexdigest(), n)).encode())

    do_PUT = do_POST

    def git(self):
        """git-http-backend, as any CGI server runs it."""
        url = urllib.parse.urlsplit(self.path)
        env = dict(os.environ, GIT_PROJECT_ROOT=self.server.web.git_root, GIT_HTTP_EXPORT_ALL="1",
                   GIT_CONFIG_NOSYSTEM="1", HOME=self.server.web.git_root, PATH_INFO=url.path[4:],
                   QUERY_STRING=url.query, REQUEST_METHOD=self.command,
                   CONTENT_TYPE=self.headers.get("Content-Type", ""),
                   HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding", ""),
                   GIT_PROTOCOL=self.headers.get("Git-Protocol", ""))
        got = subprocess.run(["git", "http-backend"], input=b"".join(self.body()),
                             stdout=subprocess.PIPE, env=env, timeout=60)
        head, _, body = got.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(fields.pop("Status", "200").split()[0])
        kind = fields.pop("Content-Type", "text/plain")
        self.answer(status, body, kind, **{k.replace("-", "_"): v for k, v in fields.items()})

    def echo(self):
        """RFC 6455: the handshake, then every short text frame comes back."""
        key = self.headers["Sec-WebSocket-Key"] + WEBSOCKET_GUID
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept",
                         base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        self.close_connection = True
        while True:
            head = self.rfile.read(2)
            if len(head) < 2 or head[0] & 15 == 8:
                return
            mask = self.rfile.read(4)
            data = bytes(c ^ mask[i % 4] for i, c in enumerate(self.rfile.read(head[1] & 127)))
            self.wfile.write(bytes([0x81, len(data)]) + data)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, *_):
        pass


class Web:
    """http, or https with a certificate file."""

    def __init__(self, pages=None, git_root=None, certificate=None, host="127.0.0.1"):
        self.pages, self.git_root = pages or {}, git_root
        self.counts, self.sent_bytes, self.lock = {}, 0, threading.Lock()
        self.answers = []                # (path, status, whether a validator was sent) of pages
        self.server = Server((host, 0), Handler)
        self.server.web = self
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.base = "http%s://%s:%d" % ("s" if certificate else "", host, self.port)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def count(self, path):
        with self.lock:
            self.counts[path] = self.counts.get(path, 0) + 1

    def answered(self, path, status, conditional):
        with self.lock:
            self.answers.append((path, status, conditional))

    def asked(self):
        with self.lock:
            return sum(n for path, n in self.counts.items() if path.startswith("/"))

    def add_sent(self, n_bytes):
        with self.lock:
            self.sent_bytes += n_bytes

    def content(self, path):
        """(size, piece, type, fields)"""
        page = self.pages.get(posixpath.normpath(path))
        if page is None:
            return None
        body, kind, fields = page
        if callable(body):
            return body(None, None), body, kind, fields
        return len(body), lambda first, n: body[first:first + n], kind, fields

    def close(self):
        self.server.shutdown()
        self.server.server_close()


BLOCK = hashlib.sha512(b"cuttle").digest() * 4096      # 256 KB that repeat nothing within 64 bytes


def large(size, pause_s=0.0):
    """A body of size bytes that differs at every place: block number, then the block."""
    def piece(first, n):
        if first is None:
            return size
        if pause_s:
            time.sleep(pause_s)
        out = bytearray()
        while n:
            number, at = divmod(first, len(BLOCK))
            block = b"%016d" % number + BLOCK[16:]
            take = block[at:at + n]
            out += take
            first += len(take)
            n -= len(take)
        return bytes(out)
    return piece


def large_sha256(size):
    digest, first, piece = hashlib.sha256(), 0, large(size)
    while first < size:
        n = min(1 << 18, size - first)
        digest.update(piece(first, n))
        first += n
    return digest.hexdigest()
