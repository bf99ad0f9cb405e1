"""Gets of several callers that go to Mooncake as one batch; CMake puts this into helper.py.

Its client makes a batch of sixteen values in little more time than a call for one, and several calls
at the same time hardly faster than one after the other. So while a call with small gets is under way,
others wait for its end and then go together, in the thread that made it: none waits on purpose, and
a lone caller never. What does not fit in (large values, a key that is there already, since of two
equal keys in a batch one buffer stays empty) is asked for at once and by itself, and so is all that
waits when the call under way takes long: one that hangs holds nobody up.
"""

import threading
import time

LARGEST_QUESTION, LARGEST_BATCH, MOST_ITEMS = 1 << 20, 4 << 20, 256  # bytes, bytes
PATIENCE = 0.01  # seconds; a batch takes one to four milliseconds


class Question:
    """A get. `items`: as in helper.py."""

    def __init__(self, call, items):
        self.call, self.items = call, items
        self.bytes = sum(size for _, runs in items for _, _, size in runs)


class Gathering:
    """Thread-safe."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = 0  # threads that come back for what has gathered
        self.waiting = []
        self.keys = set()  # of those that wait
        self.bytes = 0
        self.since = 0.0  # when the first of them came

    def begin(self, question):
        """The questions to ask now, after which the asker comes back with next(). None: it waits
        for another who does."""
        with self.lock:
            if not self.running or not self._fits(question):
                self.running += 1
                return [question]
            if not self.waiting:
                self.since = time.monotonic()
            self.waiting.append(question)
            self.keys.update(key for key, _ in question.items)
            self.bytes += question.bytes
            return None

    def _fits(self, question):
        return (question.bytes <= LARGEST_QUESTION
                and self.bytes + question.bytes <= LARGEST_BATCH
                and len(self.keys) + len(question.items) <= MOST_ITEMS
                and self.keys.isdisjoint(key for key, _ in question.items))

    def next(self):
        """What to ask now; when it is nothing, the asker is done."""
        with self.lock:
            if not self.waiting:
                self.running -= 1
            return self._take()

    def patience(self):
        """Seconds for which what waits may go on waiting; None when nothing does."""
        if not self.waiting:
            return None
        return max(0.0, self.since + PATIENCE - time.monotonic())

    def take_over(self):
        """The questions to ask now, as after begin(), when patience is at its end."""
        with self.lock:
            if self.waiting:
                self.running += 1
            return self._take()

    def _take(self):
        taken, self.waiting = self.waiting, []
        self.keys, self.bytes = set(), 0
        return taken
