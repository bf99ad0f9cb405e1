"""Frames over the socket between Vitrove and its Mooncake helper (see wire.h), and who reads them;
CMake puts this into helper.py."""

import array
import json
import select
import socket
import struct
import threading

MAGIC, VERSION = 0x4B4D5456, 1
SETUP, MAP, UNMAP, PUT, GET, EXIST, REMOVE = range(1, 8)
ANSWER, STARTED, STATE = 16, 17, 18
MAX_PAYLOAD, MAX_ITEMS, MAX_KEY = 4 << 20, 1024, 512
HEADER = struct.Struct("=IHHQII")
COUNT = struct.Struct("=I")
ITEM = struct.Struct("=HH")
RUN = struct.Struct("=IIQQ")
ANSWER_ITEM = struct.Struct("=qQ")
REGION = struct.Struct("=IIQ")


class Nonsense(Exception):
    """Vitrove said something that the protocol does not allow: nothing after it can be trusted."""


class Leaving(Exception):
    """Vitrove has closed its end."""


def parse_items(payload):
    """[(key, [(region, offset, bytes)])], range-checked but for the regions."""
    try:
        (count,) = COUNT.unpack_from(payload, 0)
        at = COUNT.size
        if count > MAX_ITEMS:
            raise Nonsense("too many items")
        items = []
        for _ in range(count):
            key_size, runs = ITEM.unpack_from(payload, at)
            at += ITEM.size
            if not 0 < key_size <= MAX_KEY or at + key_size + runs * RUN.size > len(payload):
                raise Nonsense("an item that does not fit")
            key = bytes(payload[at:at + key_size]).decode()
            at += key_size
            end = at + runs * RUN.size
            items.append((key, [(region, offset, size) for region, _, offset, size
                                in RUN.iter_unpack(payload[at:end])]))
            at = end
    except (struct.error, UnicodeDecodeError) as error:
        raise Nonsense("a payload that ends too early") from error
    if at != len(payload):
        raise Nonsense("bytes after the last item")
    return items


def frame(kind, call, payload):
    return HEADER.pack(MAGIC, VERSION, kind, call, len(payload), 0) + payload


class Turn:
    """Who reads from the socket. Where nobody has the turn and there is something to read, a thread
    that waits for it is woken. Python's own lock would wake one as soon as it is free, to fight for
    the interpreter with the thread that is about to call Mooncake, and would have another thread
    make each call, which makes Mooncake slower."""

    def __init__(self, sock):
        self.socket = sock
        self.taken = threading.Lock()
        self.more = select.epoll()
        self.more.register(sock, 0)

    def try_take(self):
        if not self.taken.acquire(blocking=False):
            return False
        self.more.modify(self.socket, 0)
        return True

    def take(self):
        while not self.try_take():
            self.more.poll()

    def give(self, at_once=False):
        """In this order: a thread that is told and finds the turn taken is not told again. At once:
        though there may be nothing to read."""
        self.taken.release()
        events = select.EPOLLIN | (select.EPOLLOUT if at_once else 0)
        self.more.modify(self.socket, events | select.EPOLLONESHOT)


class Link:
    """The socket: whole frames in and out, one thread at a time in each direction."""

    def __init__(self, sock):
        self.socket = sock
        self.turn = Turn(sock)
        self.arriving = select.poll()
        self.arriving.register(sock, select.POLLIN)
        self.writing = threading.Lock()

    def _read(self, count):
        data = bytearray(count)
        view = memoryview(data)
        while view:
            got = self.socket.recv_into(view)
            if got == 0:
                raise Leaving
            view = view[got:]
        return data

    def _read_header(self):
        """The header, and the descriptor that may come with its first byte."""
        fds = array.array("i")
        data, control, _, _ = self.socket.recvmsg(HEADER.size, socket.CMSG_SPACE(fds.itemsize),
                                                  socket.MSG_CMSG_CLOEXEC)
        for level, kind, value in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(value[:len(value) - len(value) % fds.itemsize])
        if not data:
            raise Leaving
        if len(data) < HEADER.size:
            data = data + bytes(self._read(HEADER.size - len(data)))
        return data, fds[0] if fds else None

    def is_readable(self, seconds):
        return bool(self.arriving.poll(seconds * 1000))

    def read(self):
        """(type, call, payload, descriptor); the caller has the turn."""
        header, fd = self._read_header()
        magic, version, kind, call, size, _ = HEADER.unpack(header)
        if magic != MAGIC or version != VERSION or size > MAX_PAYLOAD:
            raise Nonsense("a header of somebody else")
        return kind, call, memoryview(self._read(size)), fd

    def write(self, frames):
        with self.writing:
            self.socket.sendall(frames)

    def answer(self, *answered):
        """(call, answers) of one or several questions, in one piece."""
        self.write(b"".join(
            frame(ANSWER, call, COUNT.pack(len(answers)) +
                  b"".join(ANSWER_ITEM.pack(code, size) for code, size in answers))
            for call, answers in answered))

    def tell(self, kind, **words):
        self.write(frame(kind, 0, json.dumps(words).encode()))
