"""Somebody else: good requests, one after the other, beside whatever a test does to the server.

Every request is one picture (or sound) in a file that nobody has seen: it is hashed, looked up,
decoded and preprocessed, and only then found to be the same picture. So the encoder's counters stand
still.
"""

import itertools
import math
import struct
import threading

from clips import wav
from odd_media import chunk, rebuilt_png
from support import data_url, png

serial = itertools.count()


def new_file(width=96, height=64):
    """The same picture each time, in other bytes."""
    comment = b"Comment\0" + str(next(serial)).encode()
    return rebuilt_png(png(990, width, height), lambda kind, data: (
        chunk(kind, data) + (chunk(b"tEXt", comment) if kind == b"IHDR" else b"")))


def new_small_file():
    """For servers with limits that few files keep to."""
    return new_file(14, 14)


def new_sound():
    """The same sound each time, in other bytes."""
    samples = [0.3 * math.sin(0.2 * i) for i in range(4000)]
    return wav(samples) + b"note" + struct.pack("<II", 4, next(serial))


FILES = {"image": new_file, "audio": new_sound}


class Bystander:
    """A context: at its end each request must have been answered, with the very rows that the first
    got while nothing else was going on."""

    def __init__(self, server, modality="image", file=None):
        self.server = server
        self.modality = modality
        self.file = file or FILES[modality]
        self.over = threading.Event()
        self.seen = threading.Event()
        self.complaints = []
        self.thread = threading.Thread(target=self.run)

    def rows(self):
        url = data_url(self.file())
        return self.server.embeddings([url], modality=self.modality).raw

    def run(self):
        while True:
            try:
                if self.rows() != self.expected:
                    self.complaints.append("other rows")
            except Exception as error:
                self.complaints.append(repr(error))
            self.seen.set()
            if self.over.wait(0.05):  # not a load, but company
                return

    def __enter__(self):
        self.expected = self.rows()
        self.thread.start()
        return self

    def __exit__(self, kind, *_):
        self.over.set()
        self.thread.join()
        if kind is None:
            assert self.seen.is_set() and not self.complaints, self.complaints[:3]
