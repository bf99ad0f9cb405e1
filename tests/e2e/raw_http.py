"""HTTP by hand, for clients that misbehave: slow readers, early leavers, half requests."""

import json
import socket
import time

from support import seconds


def rows_request(item, **fields):
    """Asks for the rows themselves: the reply that goes from the pool's pages to the socket."""
    return encode_request([item], **{"return": "safetensors"}, **fields)


def encode_request(items, host="127.0.0.1", **fields):
    body = json.dumps({"mm_items": items, "modality": "image", **fields}).encode()
    return (f"POST /encode HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n").encode() + body


class RawClient:
    """A connection whose receive buffer is small, so that the server feels how slowly it reads."""

    def __init__(self, port, receive_buffer=4096):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(seconds(60))
        self.socket.connect(("127.0.0.1", port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def read(self, size, pace=0.0, piece=4096):
        """Reads `size` bytes (or to the end), pausing between pieces."""
        got = bytearray()
        while len(got) < size:
            part = self.socket.recv(min(piece, size - len(got)))
            if not part:
                break
            got += part
            if pace:
                time.sleep(pace)
        return bytes(got)

    def read_reply(self, pace=0.0, piece=65536):
        """(status, body) of a reply with a Content-Length; `self.head` is what came before."""
        head = b""
        while b"\r\n\r\n" not in head:
            part = self.socket.recv(1)
            assert part, f"closed within the header: {head!r}"
            head += part
        self.head = head
        status = int(head.split(b" ", 2)[1])
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n")
                      if line.lower().startswith(b"content-length:"))
        return status, self.read(length, pace, piece)
