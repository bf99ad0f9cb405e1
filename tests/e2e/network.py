"""An internet of our own: a network namespace whose loopback device answers to any address.

A public address, a metadata service or a private network can then be a real origin, with real
sockets, and nothing leaves the machine. Needs what scripts/namespaces.py is about.

    with Internet("93.184.216.34", "169.254.169.254") as internet:
        with internet.inside():          # this thread, and all that it starts
            origin = Origin("::")
            server = start(...)
            server.encode(...)
"""

import contextlib
import ctypes
import os
import socket
import struct
import subprocess
import threading

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def check(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def this_threads_network():
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


class Internet:
    def __init__(self, *addresses):
        outside = this_threads_network()
        try:
            check(libc.unshare(CLONE_NEWNET))
            self.namespace = this_threads_network()
            for words in (("link", "set", "lo", "up"),
                          *(("addr", "add", address, "dev", "lo") for address in addresses)):
                subprocess.run(["ip", *words], check=True)
        finally:
            check(libc.setns(outside, CLONE_NEWNET))
            os.close(outside)

    @contextlib.contextmanager
    def inside(self):
        """Moves the calling thread there, and back. Threads and processes it starts stay."""
        outside = this_threads_network()
        check(libc.setns(self.namespace, CLONE_NEWNET))
        try:
            yield self
        finally:
            check(libc.setns(outside, CLONE_NEWNET))
            os.close(outside)

    def close(self):
        os.close(self.namespace)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class NameServer:
    """DNS over UDP on 127.0.0.1:53 of the network it is started in. `names` maps a name to the
    IPv4 addresses it has, one an answer in turn; the last one stays. `troubled` are names that it
    fails at (SERVFAIL)."""

    def __init__(self, troubled=(), **names):
        self.troubled = set(troubled)
        self.names = {name.replace("_", "."): list(addresses) for name, addresses in names.items()}
        self.asked = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            query, peer = self.socket.recvfrom(4096)
            if query == b"stop":
                return
            self.socket.sendto(self.answer(query), peer)

    def answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        question = query[12:at + 5]
        (kind,) = struct.unpack(">H", query[at + 1:at + 3])
        name = ".".join(labels).lower()
        addresses = self.names.get(name, [])
        record = b""
        if addresses and kind == 1:  # A
            address = addresses.pop(0) if len(addresses) > 1 else addresses[0]
            self.asked.append((name, address))
            record = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(address)
        code = 2 if name in self.troubled else 0 if addresses else 3
        return (query[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, bool(record), 0, 0)
                + question + record)

    def close(self):
        with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as knock:
            knock.sendto(b"stop", ("127.0.0.1", 53))
        self.thread.join()
        self.socket.close()


def resolver_launcher(folder):
    """Words before a command that make it ask 127.0.0.1 for names."""
    settings = folder / "resolv.conf"
    settings.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
    return ("unshare", "--mount", "sh", "-c", script, settings)
