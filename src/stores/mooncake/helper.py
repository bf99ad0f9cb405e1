"""Vitrove's Mooncake helper: Mooncake's own Python client at the end of a socket.

Vitrove starts it with the interpreter that has the wheel, hands it the pool's memory as a file, and
asks it to move values between that memory and the cluster. What may go wrong inside the client (it
aborts, hangs, and blocks signals) then goes wrong here. The protocol is described in wire.h.

Descriptor 3 is the socket. Arguments: Vitrove's process id, and how many threads to run. Each
thread reads a question, answers it, and reads the next one; the end of the socket ends the process.
A thread that answers leaves the reading to the others only from when there is something to read: a
lone caller's questions are all answered by one thread, and wake no other. Small gets of several
callers go together.
"""

import sys

sys.path[:1] = []  # the folder this was started from has no business here

import ctypes  # noqa: E402
import itertools  # noqa: E402
import json  # noqa: E402
import mmap  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import threading  # noqa: E402
import traceback  # noqa: E402
from functools import partial  # noqa: E402

from frames import (EXIST, GET, MAP, PUT, REGION, REMOVE, SETUP, STARTED, STATE,  # noqa: E402
                    UNMAP, Leaving, Link, Nonsense, parse_items)
from gathering import Gathering, Question  # noqa: E402

SOCKET_FD = 3
INTERNAL_ERROR, BAD_PARAMETERS, MISSING, LEASED, TRANSFER_FAILED = -1, -600, -704, -706, -800
SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1}


class Region:
    """Memory of Vitrove's, mapped here from its file."""

    def __init__(self, fd, size):
        self.memory = mmap.mmap(fd, size)
        self.size = size
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.registered = False


def load_mooncake():
    """(the store's class, the replication configuration's, how the package calls itself)"""
    from mooncake import store

    name = "mooncake"
    try:
        from importlib import metadata
        for package in ("mooncake-transfer-engine", "mooncake-transfer-engine-non-cuda"):
            try:
                name = f"{package} {metadata.version(package)}"
            except metadata.PackageNotFoundError:
                pass
    except ImportError:
        pass
    return store, name


class Helper:
    def __init__(self, link):
        self.link = link
        self.module, self.name = load_mooncake()
        self.store = self.module.MooncakeDistributedStore()
        self.gathering = Gathering()
        self.regions = {}
        self.unanswered = []  # regions that wait for the set-up: (call, number)
        self.ready = False
        self.lock = threading.Lock()  # of the regions and `ready`
        self.config = None
        self.lends = False

    # --- set-up ---

    def set_up(self, settings):
        try:
            detail = self._connect(settings)
        except Exception as error:  # whatever pybind makes of it
            detail = f"Mooncake's set-up failed: {error}"
        if detail:
            self.link.tell(STATE, ok=False, detail=detail)
            return
        with self.lock:
            self.ready = True
            waiting, self.unanswered = self.unanswered, []
            for call, number in waiting:
                self.link.answer((call, [(self._register(number), 0)]))
        self.link.tell(STATE, ok=True)

    def _connect(self, settings):
        """Empty when it worked, else why not."""
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        more = {"tenant_id": settings["tenant"]} if settings["tenant"] else {}
        code = self.store.setup(
            settings["hostname"] or own_address(settings["master"]), settings["metadata"],
            settings["segment"], settings["local_buffer"], settings["protocol"],
            settings["device"], settings["master"], **more)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # the client may have blocked some
        if code == -300:
            return "Mooncake's set-up failed: master and client are of different versions"
        if code != 0:
            return f"Mooncake's set-up failed with code {code} (master, protocol and device right?)"
        self.config = self._replication(settings)
        self.lends = settings["segment"] > 0
        return ""

    def _replication(self, settings):
        config = self.module.ReplicateConfig()
        config.replica_num = settings["replicas"]
        if settings["hard_pin"]:
            config.with_hard_pin = True
        if settings["soft_pin"]:
            if hasattr(config, "with_soft_pin"):
                config.with_soft_pin = True
            else:
                config.soft_pin_action = self.module.SoftPinAction.ENABLE
        return config

    # --- memory ---

    def map(self, call, payload, fd):
        if fd is None or len(payload) != REGION.size:
            raise Nonsense("a region without its file")
        number, _, size = REGION.unpack(payload)
        try:
            region = Region(fd, size)
        except (OSError, ValueError, OverflowError):  # no memory, or no such size
            traceback.print_exc()
            self.link.answer((call, [(INTERNAL_ERROR, 0)]))
            return
        finally:
            os.close(fd)
        with self.lock:
            self.regions[number] = region
            if not self.ready:
                self.unanswered.append((call, number))
                return
            code = self._register(number)
        self.link.answer((call, [(code, 0)]))

    def _register(self, number):
        region = self.regions.get(number)
        if region is None:
            return BAD_PARAMETERS
        code = self.store.register_buffer(region.address, region.size)
        region.registered = code == 0
        return code

    def unmap(self, call, payload):
        if len(payload) != REGION.size:
            raise Nonsense("a region of another form")
        number, _, _ = REGION.unpack(payload)
        with self.lock:
            region = self.regions.pop(number, None)
            if region is not None and region.registered:
                self.store.unregister_buffer(region.address)
        # The mapping itself goes with the last reference to it; Vitrove asks for this when no call
        # names the region any more.
        del region
        self.link.answer((call, [(0, 0)]))

    def addresses(self, runs):
        """Two lists, of addresses and of sizes; None when a run is outside its region."""
        pointers, sizes = [], []
        for number, offset, size in runs:
            region = self.regions.get(number)
            if region is None or size == 0 or offset > region.size or size > region.size - offset:
                return None
            pointers.append(region.address + offset)
            sizes.append(size)
        return (pointers, sizes) if pointers else None

    # --- questions ---

    def move(self, items, transfer):
        """Codes of `transfer(keys, pointers, sizes)`, and of what cannot even be asked for."""
        codes = [BAD_PARAMETERS] * len(items)
        places = [(i, self.addresses(runs)) for i, (_, runs) in enumerate(items)]
        places = [(i, place) for i, place in places if place]
        if not places:
            return codes
        got = transfer([items[i][0] for i, _ in places], [place[0] for _, place in places],
                       [place[1] for _, place in places])
        for (i, _), code in zip(places, got):
            codes[i] = code
        if len(got) < len(places):  # and nobody knows which ones are missing
            return [INTERNAL_ERROR] * len(items)
        return codes

    def put(self, items):
        codes = self.move(items, lambda keys, pointers, sizes:
                          self.store.batch_put_from_multi_buffers(keys, pointers, sizes,
                                                                  self.config))
        return [(code, 0) for code in codes]

    def get(self, items):
        codes = self.move(items, self.store.batch_get_into_multi_buffers)
        # Buffers that do not add up to the value's size show as one of these; only the size tells.
        doubtful = [items[i][0] for i, code in enumerate(codes)
                    if code in (BAD_PARAMETERS, TRANSFER_FAILED, INTERNAL_ERROR)]
        sizes = self.sizes(doubtful)
        return [(code, sizes.get(key, 0)) for code, (key, _) in zip(codes, items)]

    def exist(self, items):
        keys = [key for key, _ in items]
        codes = self.store.batch_is_exist(keys)
        if len(codes) != len(keys):
            return [(INTERNAL_ERROR, 0)] * len(keys)
        sizes = self.sizes([key for key, code in zip(keys, codes) if code == 1])
        return [(code, sizes.get(key, 0)) for key, code in zip(keys, codes)]

    def sizes(self, keys):
        """What is known of them; what cannot be told is no reason to lose the answers there are."""
        found = {}
        try:
            self._find_sizes(keys, found)
        except Exception:
            traceback.print_exc()
        return found

    def _find_sizes(self, keys, found):
        """With one question for all where the wheel has one."""
        if not keys:
            return
        if hasattr(self.store, "batch_get_replica_desc"):
            for key, replicas in self.store.batch_get_replica_desc(keys).items():
                for replica in replicas:
                    if replica.is_memory_replica():
                        found[key] = replica.get_memory_descriptor().buffer_descriptor.size
                        break
        for key in keys:
            if key not in found:
                size = self.store.get_size(key)
                if size > 0:
                    found[key] = size
                elif size != MISSING:
                    break  # no use in asking on

    def remove(self, items):
        answers = []
        for key, _ in items:
            try:
                code = self.store.remove(key, True)
            except TypeError:  # a wheel from before it could be forced
                code = self.store.remove(key)
            answers.append((code, 0))
        return answers

    def answers(self, kind, items):
        question = {PUT: self.put, GET: self.get, EXIST: self.exist, REMOVE: self.remove}[kind]
        try:
            # Before its set-up the client crashes on any question.
            return question(items) if self.ready else [(INTERNAL_ERROR, 0)] * len(items)
        except Exception:
            traceback.print_exc()
            return [(INTERNAL_ERROR, 0)] * len(items)

    def answers_together(self, questions):
        """Of gets, a list for each. Where something went wrong with the batch, each is asked for by
        itself, since it may be the matter of one."""
        if len(questions) > 1:
            answers = self.answers(GET, [item for one in questions for item in one.items])
            if not self.ready or all(code != INTERNAL_ERROR for code, _ in answers):
                rest = iter(answers)
                return [list(itertools.islice(rest, len(one.items))) for one in questions]
        return [self.answers(GET, one.items) for one in questions]

    # --- threads ---

    def serve(self):
        turn = self.link.turn
        has_turn = False
        while True:
            if not has_turn:
                turn.take()
            answer = self.next_question()
            # Somebody has to look after those that wait for a call under way.
            turn.give(at_once=bool(self.gathering.waiting))
            has_turn = answer()

    def answer_one(self, kind, call, payload):
        """True when the turn was taken: before the answer is out, lest the next question wakes
        another thread."""
        answers = self.answers(kind, parse_items(payload))
        has_turn = self.link.turn.try_take()
        self.link.answer((call, answers))
        return has_turn

    def answer_gets(self, questions):
        """And what gathers meanwhile."""
        has_turn = False
        while questions:
            answers = self.answers_together(questions)
            done, questions = questions, self.gathering.next()
            if not questions:
                has_turn = self.link.turn.try_take()
            self.link.answer(*zip((question.call for question in done), answers))
        return has_turn

    def next_question(self):
        """What answers it. All that is no call is done here, in the order in which it came: a
        question may name a region just mapped."""
        while True:
            patience = self.gathering.patience()
            if patience is not None and not self.link.is_readable(patience):
                late = self.gathering.take_over()
                if late:
                    return partial(self.answer_gets, late)
                continue
            kind, call, payload, fd = self.link.read()
            if kind == MAP:
                self.map(call, payload, fd)
                continue
            if fd is not None:
                os.close(fd)
            if kind == UNMAP:
                self.unmap(call, payload)
            elif kind == SETUP:
                threading.Thread(target=self.set_up, args=(json.loads(bytes(payload)),),
                                 daemon=True).start()
            elif kind == GET:
                begun = self.gathering.begin(Question(call, parse_items(payload)))
                if begun:
                    return partial(self.answer_gets, begun)
            elif kind in (PUT, EXIST, REMOVE):
                return partial(self.answer_one, kind, call, payload)
            else:
                raise Nonsense("a frame of unknown type")

    def run(self):
        try:
            self.serve()
        except (Leaving, OSError):
            self.leave()
        except BaseException:
            traceback.print_exc()
            os._exit(2)

    def leave(self):
        """The other threads may be anywhere, so the process ends without them. Closing the client
        takes a second, and matters only where the cluster has to give memory back."""
        with self.lock:
            if self.ready and self.lends:
                self.ready = False  # other threads hear the end as well
                for region in self.regions.values():
                    if region.registered:
                        self.store.unregister_buffer(region.address)
                self.store.close()
        os._exit(0)


def own_address(master):
    """The address from which the master is reached, which is the one others reach us at."""
    host, _, port = master.rpartition(":")
    if "://" in master or "," in master or not host:
        return socket.gethostname()
    family, kind, protocol, _, address = socket.getaddrinfo(host.strip("[]"), int(port),
                                                            type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(address)  # sends nothing
        return probe.getsockname()[0]


def die_with(parent):
    """A helper that hangs does not notice that Vitrove is gone; the kernel does."""
    set_death_signal = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
    try:
        os.kill(parent, 0)  # a wrapper may stand between Vitrove and us: the parent is named
    except ProcessLookupError:
        os._exit(0)


def explain(error):
    if isinstance(error, ModuleNotFoundError) and error.name in ("mooncake", "mooncake.store"):
        return (f"the Python at {sys.executable} has no Mooncake: install mooncake-transfer-engine "
                "or mooncake-transfer-engine-non-cuda there, or name another with python=")
    return f"Mooncake could not be loaded by {sys.executable}: {error}"


def main():
    parent, threads = int(sys.argv[1]), int(sys.argv[2])
    die_with(parent)
    os.set_inheritable(SOCKET_FD, False)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    link = Link(socket.socket(fileno=SOCKET_FD))
    try:
        helper = Helper(link)
    except Exception as error:
        link.tell(STARTED, ok=False, detail=explain(error))
        return
    link.tell(STARTED, ok=True, provider=f"the Python package {helper.name}", many_runs=True)
    # The main thread stays out of it: it is the one that Python delivers signals on.
    workers = [threading.Thread(target=helper.run, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
