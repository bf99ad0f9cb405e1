"""Somebody else: good requests, one after the other, beside whatever a test does to the server.

Every request is one picture in a file that nobody has seen: it is hashed, looked up, decoded and
preprocessed, and only then found to be the same picture. So the encoder's counters stand still.
"""

import itertools
import threading

from odd_media import chunk, rebuilt_png
from support import data_url, png

serial = itertools.count()


def new_file():
    """The same picture each time, in other bytes."""
    comment = b"Comment\0" + str(next(serial)).encode()
    return rebuilt_png(png(990), lambda kind, data: (
        chunk(kind, data) + (chunk(b"tEXt", comment) if kind == b"IHDR" else b"")))


class Bystander:
    """A context: at its end each request must have been answered, with the very rows that the first
    got while nothing else was going on."""

    def __init__(self, server):
        self.server = server
        self.over = threading.Event()
        self.seen = threading.Event()
        self.complaints = []
        self.thread = threading.Thread(target=self.run)

    def rows(self):
        return self.server.embeddings([data_url(new_file())]).raw

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
