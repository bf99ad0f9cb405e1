"""Store engines that the demo and the benchmarks start for themselves, on ports of their own.

Each is a context manager whose `url` is what `vitrove serve --store` takes. They keep their files in
the folder they are given, and end with the program that started them, however it ends.
"""

import contextlib
import ctypes
import random
import signal
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOONCAKE = ROOT / "build" / "mooncake-venv"

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)
LOWEST_PORT = 12_000  # that free_port() gives


class EngineFailed(Exception):
    pass


def die_with_parent():
    """The kernel sends SIGTERM to this process when the one that started it ends, however it ends."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def free_port():
    """For a server that is to have the same port again when it is restarted, or for nobody: none of
    those that the kernel gives to whoever connects or asks for any. One of those may be taken in
    between; and who tries to connect to one that nobody has may be given it himself, and then talks
    to himself."""
    first_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(LOWEST_PORT, max(first_given, LOWEST_PORT + 1000))
        with contextlib.closing(socket.socket()) as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def end(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Engine:
    """Some programs. A subclass starts them in `start`, with `run`."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.processes = []

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def run(self, name, command, is_there):
        """Another program may take a port between our finding it and the engine's opening it:
        `command()` is asked anew for each try."""
        log = self.folder / f"{name}.log"
        for _ in range(5):
            with open(log, "wb") as out:
                try:
                    process = subprocess.Popen(
                        [str(word) for word in command()], stdin=subprocess.DEVNULL, stdout=out,
                        stderr=subprocess.STDOUT, preexec_fn=die_with_parent)
                except OSError as error:
                    raise EngineFailed(f"{name} cannot be started: {error}") from error
            self.processes.append(process)
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline:
                if is_there(log.read_text(errors="replace")):
                    return
                time.sleep(0.02)
            end(process)
        raise EngineFailed(f"{name} does not start:\n{log.read_text(errors='replace')[-2000:]}")

    def stop(self):
        for process in reversed(self.processes):
            end(process)
        self.processes.clear()


class Redis(Engine):
    words = "a redis-server of its own"

    def start(self):
        self.run("redis-server", self.command, lambda log: "Ready to accept connections" in log)

    def command(self):
        self.port = free_port()
        return ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--dir", self.folder,
                "--save", "", "--appendonly", "no", "--maxmemory", "1gb", "--maxmemory-policy",
                "allkeys-lru"]

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"


class Mooncake(Engine):
    """A master, and a client that lends it memory, from the wheel."""

    words = "a mooncake_master and a mooncake_client of its own"
    python = MOONCAKE / "bin" / "python"

    def start(self):
        programs = next(iter((MOONCAKE / "lib").glob("python3*/site-packages/mooncake")), None)
        if programs is None:
            raise EngineFailed("Mooncake is not installed: ./run setup sample")
        self.run("mooncake_master", lambda: self.master(programs), lambda _: self.listens())
        self.run("mooncake_client", lambda: self.client(programs),
                 lambda log: "Starting real client service" in log)

    def master(self, programs):
        self.port = free_port()
        return [programs / "mooncake_master", "--rpc_address=127.0.0.1", f"--rpc_port={self.port}",
                "--metrics_host=127.0.0.1", f"--metrics_port={free_port()}", "--logtostderr"]

    def client(self, programs):
        return [programs / "mooncake_client", "--host=127.0.0.1",
                "--metadata_server=P2PHANDSHAKE", f"--port={free_port()}",
                f"--master_server_address=127.0.0.1:{self.port}", "--global_segment_size=1 GB",
                "--logtostderr"]

    def listens(self):
        with contextlib.closing(socket.socket()) as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    @property
    def url(self):
        return f"mooncake://127.0.0.1:{self.port}?python={self.python}"


ENGINES = {"redis": Redis, "mooncake": Mooncake}
