"""An HTTP origin on loopback that misbehaves as told.

    origin = Origin()
    origin.serve("/cat.png", content(png))          # a good answer
    origin.serve("/slow.png", dripping(png))        # one of the faults below
    server.encode([origin.url("/cat.png")])
    assert origin.hits["/cat.png"] == 1             # the canary: who has been here

A behaviour is a function of one Exchange: the request, and the socket to answer it on. Each request
has a thread and a connection of its own. Faults that last end when the peer leaves or the origin
closes, so that no test waits for them.
"""

import collections
import gzip
import socket
import socketserver
import struct
import threading

PIECE = 16 * 1024


class Exchange:
    def __init__(self, origin, sock, method, path, headers):
        self.origin, self.socket = origin, sock
        self.method, self.path, self.headers = method, path, headers

    def send(self, data):
        """Sends in pieces, and counts what the kernel took."""
        for start in range(0, len(data), PIECE):
            piece = data[start:start + PIECE]
            self.socket.sendall(piece)
            self.origin.count_sent(self.path, len(piece))

    def head(self, status=200, *headers):
        lines = [f"HTTP/1.1 {status} Because", "Connection: close", *headers]
        self.socket.sendall("".join(f"{line}\r\n" for line in lines).encode() + b"\r\n")

    def pause(self, seconds):
        """False when the origin is closing."""
        return not self.origin.closing.wait(seconds)

    def reset(self):
        """Ends the connection with RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        origin = self.server.origin
        # Small buffers, so that what was sent is close to what was read.
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE)
        try:
            exchange = self.read_request(origin)
            if exchange:
                address = self.request.getsockname()[0].removeprefix("::ffff:")
                origin.behaviour_of(exchange.path, address)(exchange)
        except OSError:
            pass  # the peer went away, which is up to it

    def read_request(self, origin):
        reader = self.request.makefile("rb")
        words = reader.readline(65536).decode("latin-1").split()
        if len(words) != 3:
            origin.hits["(no HTTP)"] += 1
            return None
        headers = {}
        while (line := reader.readline(65536).decode("latin-1").strip()):
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return Exchange(origin, self.request, words[0], words[1], headers)


class TcpServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        self.origin.faults.append(client_address)


class TcpServer6(TcpServer):
    address_family = socket.AF_INET6

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # IPv4 too
        super().server_bind()


class Origin:
    """`host` "::" listens on every address of both families."""

    def __init__(self, host="127.0.0.1", port=0):
        self.host = host
        self.hits = collections.Counter()  # by path, counted before anything is answered
        self.sent = collections.Counter()  # bytes of bodies, by path
        self.reached = collections.defaultdict(set)  # addresses of ours that peers came to, by path
        self.closing = threading.Event()
        self.faults = []
        self.behaviours = {}
        self.lock = threading.Lock()
        self.tcp = (TcpServer6 if ":" in host else TcpServer)((host, port), Handler)
        self.tcp.origin = self
        self.port = self.tcp.server_address[1]
        self.thread = threading.Thread(target=self.tcp.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.closing.set()
        self.tcp.shutdown()
        self.tcp.server_close()
        self.thread.join()
        assert not self.faults, "the origin itself went wrong"

    def url(self, path, host=None):
        return f"http://{host or self.host}:{self.port}{path}"

    def serve(self, path, behaviour):
        self.behaviours[path] = behaviour
        return self.url(path)

    def behaviour_of(self, path, address):
        with self.lock:
            self.hits[path] += 1
            self.reached[path].add(address)
        return self.behaviours.get(path, status(404))

    def count_sent(self, path, count):
        with self.lock:
            self.sent[path] += count


# Good answers

def content(body, content_type="image/png", *headers):
    def answer(exchange):
        exchange.head(200, f"Content-Type: {content_type}", f"Content-Length: {len(body)}",
                      *headers)
        exchange.send(body)
    return answer


def chunked(body):
    def answer(exchange):
        exchange.head(200, "Transfer-Encoding: chunked")
        for start in range(0, len(body), PIECE):
            send_chunk(exchange, body[start:start + PIECE])
        exchange.send(b"0\r\n\r\n")
    return answer


def until_closed(body):
    """Neither a length nor chunks: the end of the connection is the end of the body."""
    def answer(exchange):
        exchange.head(200)
        exchange.send(body)
    return answer


def redirect(location, code=302):
    def answer(exchange):
        exchange.head(code, f"Location: {location}", "Content-Length: 0")
    return answer


def changing(*bodies):
    """Another body at each visit; the last one stays."""
    rest = list(bodies)

    def answer(exchange):
        with exchange.origin.lock:
            body = rest.pop(0) if len(rest) > 1 else rest[0]
        content(body)(exchange)
    return answer


def healing(failures, fault, then):
    """`fault` for so many visits, `then` afterwards."""
    left = [failures]

    def answer(exchange):
        with exchange.origin.lock:
            left[0] -= 1
            is_ill = left[0] >= 0
        (fault if is_ill else then)(exchange)
    return answer


# Faults

def status(code, body=b"nothing for you here"):
    def answer(exchange):
        exchange.head(code, "Content-Type: text/plain", f"Content-Length: {len(body)}")
        exchange.send(body)
    return answer


def html():
    page = b"<!DOCTYPE html><html><head><title>Sorry</title></head><body>Log in first</body></html>"
    return content(page, "image/png")


def no_content():
    return lambda exchange: exchange.head(204)


def silence():
    """Takes the request and never says a word."""
    def answer(exchange):
        while exchange.pause(0.1) and not has_left(exchange):
            pass
    return answer


def slow_head():
    """A header a moment, for ever."""
    def answer(exchange):
        exchange.socket.sendall(b"HTTP/1.1 200 OK\r\n")
        while exchange.pause(0.1):
            exchange.socket.sendall(b"X-More: to come\r\n")
    return answer


def dripping(body, pause=0.1):
    """Promises the whole body, and sends a byte a moment."""
    def answer(exchange):
        exchange.head(200, f"Content-Length: {len(body)}")
        for byte in body:
            exchange.send(bytes([byte]))
            if not exchange.pause(pause):
                return
    return answer


def reset_midway(body):
    def answer(exchange):
        exchange.head(200, f"Content-Length: {len(body)}")
        exchange.send(body[:len(body) // 2])
        exchange.reset()
    return answer


def short_body(body):
    """Ends properly before it has sent what Content-Length promised."""
    def answer(exchange):
        exchange.head(200, f"Content-Length: {len(body)}")
        exchange.send(body[:-10])
    return answer


def longer_than_declared(body, declared):
    def answer(exchange):
        exchange.head(200, f"Content-Length: {declared}")
        exchange.send(body)
    return answer


def broken_chunks(body):
    def answer(exchange):
        exchange.head(200, "Transfer-Encoding: chunked")
        send_chunk(exchange, body[:len(body) // 2])
        exchange.send(b"zz\r\nno size at all\r\n")
    return answer


def hang_up():
    return lambda exchange: exchange.socket.close()


def no_http():
    return lambda exchange: exchange.socket.sendall(b"220 smtp.example.com ESMTP\r\n" * 3)


def endless_chunked(piece=b"\x89PNG\r\n\x1a\n" * 2048):
    def answer(exchange):
        exchange.head(200, "Transfer-Encoding: chunked")
        while exchange.pause(0):
            send_chunk(exchange, piece)
    return answer


def endless(piece=b"\x89PNG\r\n\x1a\n" * 2048):
    """No length, no end."""
    def answer(exchange):
        exchange.head(200)
        while exchange.pause(0):
            exchange.send(piece)
    return answer


def huge_promise(declared):
    """Declares that many bytes, and sends them for as long as somebody takes them."""
    def answer(exchange):
        exchange.head(200, f"Content-Length: {declared}")
        while exchange.pause(0):
            exchange.send(bytes(PIECE))
    return answer


def gzip_bomb(megabytes):
    """A small gzip body that swells to so much, whatever encoding was asked for."""
    body = gzip.compress(bytes(1 << 20), 9) * megabytes  # members one after the other
    return content(body, "image/png", "Content-Encoding: gzip")


def endless_head():
    def answer(exchange):
        exchange.socket.sendall(b"HTTP/1.1 200 OK\r\n")
        line = b"X-Filler: " + b"x" * 8000 + b"\r\n"
        while exchange.pause(0):
            exchange.socket.sendall(line)
            exchange.origin.count_sent(exchange.path, len(line))
    return answer


def send_chunk(exchange, data):
    exchange.send(b"%x\r\n%s\r\n" % (len(data), data))


def has_left(exchange):
    """True when the peer has closed its side."""
    exchange.socket.setblocking(False)
    try:
        return exchange.socket.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    finally:
        exchange.socket.setblocking(True)
