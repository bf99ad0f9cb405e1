"""What the real-process tests share: a server process, its clients, pictures, and waiting.

Environment: VITROVE_BUILD (build folder with the `vitrove` binary, default build/release),
VITROVE_TIME_FACTOR (how much slower this build may be; sanitizers set it).
"""

import base64
import http.client
import io
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

import numpy
from PIL import Image

import leak_budget  # of scripts/, where conftest looks as well
from local_engines import free_port  # noqa: F401 (tests take it from here)

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("VITROVE_BUILD", ROOT / "build" / "release"))
VITROVE = BUILD / "vitrove"
TIME_FACTOR = float(os.environ.get("VITROVE_TIME_FACTOR", "1"))
MEMORY_FACTOR = 1 if TIME_FACTOR == 1 else 5  # sanitizers keep what was freed, and shadow all
SAMPLE_MODEL = ROOT / "build" / "sample" / "model"
TINY_VIT = ROOT / "build" / "sample" / "tiny-vit"
PICTURES = ROOT / "build" / "sample" / "pictures"
STUB = "stub:dim=64,tokens=16,seed=1"
# For a server that is to find what is there, on a machine however busy: all have it (see Server), but
# those that are given another.
PATIENT = ("--store-timeout", "30s")
# For a server whose store is going to say nothing: more than a busy machine adds to an answer, and
# little enough to be waited for again and again.
HURRIED = ("--store-timeout", f"{int(min(2 * TIME_FACTOR, 5) * 1000)}ms")


def seconds(value):
    """A time limit, stretched for slow builds."""
    return value * TIME_FACTOR


def wait_until(condition, timeout=60, what="condition"):
    """Polls (this is a test, not the product) until `condition()` is truthy; returns its value."""
    end = time.monotonic() + seconds(timeout)
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"timed out waiting for {what}"
        time.sleep(0.02)


def in_time(limit, action, tries=12):
    """What action() returns, once a run of it took no longer than `limit` seconds: what a noisy
    machine adds to one run it does not add to all."""
    took = []
    while len(took) < tries:
        started = time.monotonic()
        result = action()
        took.append(time.monotonic() - started)
        if took[-1] <= seconds(limit):
            return result
    raise AssertionError(f"took {min(took):.3f} s at best, and may take {seconds(limit)}")


error_replies = []  # every one that a client of this test has seen; conftest judges them

LEAKS = {
    "an address in memory": re.compile(r"\b0x[0-9a-fA-F]{6,}"),
    "a path of this machine": re.compile(r"/(home|tmp|usr|var|root|work|etc|proc|opt|build)/"),
    "a password": re.compile(r"://[^/\s\"]*:[^/\s\"]*@"),
    "an internal host": re.compile(
        r"\b(127\.0\.0\.1|10\.\d+\.\d+\.\d+|169\.254\.\d+\.\d+|localhost)\b"),
    "a C++ name": re.compile(r"\b(std::|vitrove::|St\d+[a-z]|__[a-z]+|what\(\))"),
}


def check_error_body(response):
    """Design section 8: what every error looks like, and field case B87: what none may say."""
    text = response.body.decode()
    error = json.loads(text)["error"]
    assert set(error) == {"code", "message", "req_id", "item"}, text
    assert error["code"] and error["message"] and error["req_id"], text
    assert error["item"] is None or error["item"] >= 0, text
    assert len(error["message"]) < 500, text
    for what, pattern in LEAKS.items():
        assert not pattern.search(text), f"{what} in {text}"
    if response.status in (429, 503):
        assert int(response.headers["retry-after"]) > 0


class Response:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {name.lower(): value for name, value in headers}
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]


class Embeddings:
    """A safetensors reply: tensors as numpy arrays and Vitrove's metadata."""

    def __init__(self, body):
        (length,) = struct.unpack("<Q", body[:8])
        header = json.loads(body[8:8 + length])
        data = body[8 + length:]
        self.metadata = json.loads(header.pop("__metadata__")["vitrove"])
        self.raw, self.shapes, self.dtypes = {}, {}, {}
        end = 0
        for name, tensor in header.items():
            start, stop = tensor["data_offsets"]
            self.raw[name] = data[start:stop]
            self.shapes[name] = tensor["shape"]
            self.dtypes[name] = tensor["dtype"]
            end = max(end, stop)
        assert end == len(data), "the body is as long as its header says"

    def rows(self, name="embedding"):
        assert self.dtypes[name] == "F32"
        return numpy.frombuffer(self.raw[name], dtype="<f4").reshape(self.shapes[name])

    def item(self, index):
        """Rows of one item, cut out of the tensor by the metadata's offsets."""
        item = self.metadata["items"][index]
        return self.rows()[item["offset"]:item["offset"] + item["tokens"]]


class Client:
    def __init__(self, port, headers=None, timeout=60):
        self.port = port
        self.headers = headers or {}
        self.timeout = timeout

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                timeout=seconds(self.timeout))
        try:
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            connection.request(method, path, body, {**self.headers, **(headers or {})})
            reply = connection.getresponse()
            response = Response(reply.status, reply.getheaders(), reply.read())
            if response.status >= 400 and method != "HEAD":
                error_replies.append(response)
            return response
        finally:
            connection.close()

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.request("POST", path, body if body is not None else {}, **more)

    def encode(self, items, headers=None, **fields):
        return self.post("/encode", {"mm_items": items, "modality": "image", **fields},
                         headers=headers)

    def encode_ok(self, items, **fields):
        reply = self.encode(items, **fields)
        assert reply.status == 200, reply.body[:2000]
        return reply.json

    def sources(self, items, **fields):
        return [item["source"] for item in self.encode_ok(items, **fields)["items"]]

    def embeddings(self, items, **fields):
        reply = self.encode(items, **{"return": "safetensors", **fields})
        assert reply.status == 200, reply.body[:2000]
        return Embeddings(reply.body)

    def metrics(self):
        reply = self.get("/metrics")
        assert reply.status == 200
        return Metrics(reply.body.decode())

    def stats(self, **more):
        return self.get("/stats", **more).json


class Metrics:
    """Prometheus text, parsed strictly."""

    LINE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
    LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')

    def __init__(self, text):
        self.samples = []
        for line in text.splitlines():
            if not line or line.startswith("#"):
                continue
            match = self.LINE.match(line)
            assert match, f"not a sample: {line}"
            labels = dict(self.LABEL.findall(match[2] or ""))
            self.samples.append((match[1], labels, float(match[3])))

    def samples_of(self, name, above):
        return [(labels, value) for sample, labels, value in self.samples
                if sample == name and value > above]

    def sum(self, name, **labels):
        return sum(value for sample, have, value in self.samples
                   if sample == name and all(have.get(k) == v for k, v in labels.items()))


class Server(Client):
    """`vitrove serve` as a process of its own. Stopped, and checked for a clean end, by stop().

    A hit that comes too late is a miss, so it waits for its stores as long as PATIENT says, unless its
    arguments say otherwise."""

    def __init__(self, folder, *arguments, encoder=STUB, store="none", port=0, env=None,
                 headers=None, wait=True, launcher=()):
        super().__init__(port, headers)
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log_path = self.folder / f"server-{time.monotonic_ns()}.log"
        self.pool_bytes = None  # known once it is ready
        self.told_to_end = False
        stores = [store] if isinstance(store, str) else list(store)
        self.command = [*launcher, str(VITROVE), "serve", "--port", str(port),
                        "--encoder", str(encoder),
                        *[word for url in stores for word in ("--store", url)],
                        *map(str, arguments)]
        self.process = subprocess.Popen(
            self.command, stdout=open(self.log_path, "wb"), stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, cwd=self.folder,
            env={**os.environ, "VITROVE_LOG_LEVEL": "debug", "VITROVE_STORE_TIMEOUT": PATIENT[1],
                 **(env or {})})
        if wait:
            try:
                self.wait_ready()
                self.pool_bytes = self.pool_in_use_and_free()
            except BaseException:
                self.kill()
                raise

    @property
    def log(self):
        return self.log_path.read_text(errors="replace")

    def wait_ready(self, timeout=60):
        def listening():
            assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.log}"
            return re.search(r"listening on http://(?:127\.0\.0\.1|0\.0\.0\.0):(\d+)", self.log)

        self.port = int(wait_until(listening, timeout, "the server to listen")[1])
        wait_until(lambda: self.get("/ready").status == 200, timeout, "the server to be ready")

    def signal(self, number):
        self.told_to_end = True
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self, timeout=30):
        """SIGTERM, unless it was sent; returns the exit code."""
        if self.process.poll() is None and not self.told_to_end:
            self.signal(signal.SIGTERM)
        try:
            code = self.process.wait(seconds(timeout))
            assert not leak_budget.excesses(self.log)
            return code
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the server did not end after SIGTERM:\n{self.log[-4000:]}")

    def check_at_rest(self):
        """The invariants of a server without requests: nothing pinned, filling or lost."""
        def at_rest():
            metrics = self.metrics()
            return (metrics.sum("vitrove_pool_bytes", state="pinned") == 0
                    and metrics.sum("vitrove_entries", state="filling") == 0
                    and metrics.sum("vitrove_pool_bytes", state="quarantined") == 0)

        wait_until(at_rest, 30, "pins to return to zero")
        if self.pool_bytes is not None:
            assert self.pool_in_use_and_free() == self.pool_bytes, "no page is lost"

    def pool_in_use_and_free(self):
        metrics = self.metrics()
        return sum(metrics.sum("vitrove_pool_bytes", state=state) for state in ("used", "free"))

    def pinned(self):
        return self.metrics().sum("vitrove_pool_bytes", state="pinned")

    def memory(self, field="VmRSS"):
        """Bytes of /proc/PID/status: VmRSS now, VmHWM the most since start or reset_peak()."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) << 10

    def reset_peak(self):
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def entries(self):
        return self.metrics().sum("vitrove_entries")

    def encodes(self):
        return self.metrics().sum("vitrove_encoder_items_total")

    def requests_counted(self, route):
        return self.metrics().sum("vitrove_requests_total", route=route)

    def lookups(self, result):
        return self.metrics().sum("vitrove_lookups_total", result=result)


class Servers:
    """Called, it gives a running Server; it knows all that it has started."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.started = []

    def __call__(self, *arguments, **options):
        server = Server(self.folder / f"server-{len(self.started)}", *arguments, **options)
        self.started.append(server)
        return server

    def alive(self):
        return [server for server in self.started if server.process.poll() is None]

    def check_at_rest(self):
        for server in self.alive():
            if not getattr(server, "expect_unclean", False):
                server.check_at_rest()

    def finish(self):
        """Every one that is still alive must be at rest, and end with 0 on SIGTERM."""
        try:
            self.check_at_rest()
            alive = self.alive()
            for server in alive:  # all at once: each takes a moment
                server.signal(signal.SIGTERM)
            codes = [server.stop() for server in alive]
            assert codes == [0] * len(codes)
        finally:
            for server in self.alive():
                server.kill()


def wait_for_puts(server):
    """A put may take 30 s before it is given up."""
    wait_until(lambda: server.metrics().sum("vitrove_store_pending") == 0, 90, "puts to land")


def refused(server, items, *statuses, item=0, **fields):
    """An error that names the item at fault; afterwards nothing is cached, and the next request is
    served. Returns the error."""
    def cached():  # others may be filling entries meanwhile
        return server.metrics().sum("vitrove_entries", state="ready")

    before = cached()
    reply = server.encode(items, req_id="a-bad-one", **fields)
    assert reply.status in statuses, reply.body[:500]
    assert reply.error["req_id"] == "a-bad-one"
    assert reply.error["item"] == item
    assert cached() == before
    server.encode_ok([png_url(1)])
    return reply.error


def without_licence():
    """Words before a command that take from root the right to open what nobody may open."""
    return () if os.geteuid() != 0 else (
        "setpriv", "--bounding-set=-dac_override,-dac_read_search",
        "--inh-caps=-dac_override,-dac_read_search")


def run_cli(*arguments, env=None, cwd=None, timeout=120, launcher=()):
    """Runs the command line; returns the CompletedProcess with text output."""
    return subprocess.run([*launcher, str(VITROVE), *map(str, arguments)], capture_output=True,
                          text=True, cwd=cwd,
                          env={**os.environ, "VITROVE_STORE_TIMEOUT": PATIENT[1], **(env or {})},
                          timeout=seconds(timeout), stdin=subprocess.DEVNULL)


def on_a_terminal(*arguments):
    """What the command line writes to a terminal, and what to a file."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen([str(VITROVE), *map(str, arguments)], stdout=subprocess.PIPE,
                                   stderr=theirs, stdin=subprocess.DEVNULL)
        os.close(theirs)
        seen = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # how a terminal without its other side ends
                break
            if not piece:
                break
            seen += piece
        out = process.stdout.read().decode()
        process.stdout.close()
        assert process.wait(seconds(120)) in (0, 5)
        return seen.decode(), out
    finally:
        os.close(ours)


# Pictures, each of them deterministic: equal arguments are equal bytes.

def picture(seed=0, width=96, height=64):
    """A small colourful picture that is different for every seed."""
    random = numpy.random.RandomState(seed)
    coarse = random.randint(0, 256, (4, 6, 3)).astype(numpy.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def encoded(image, format="PNG", **options):
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def png(seed=0, width=96, height=64):
    return encoded(picture(seed, width, height))


def data_url(content, mime="image/png"):
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"


def png_url(seed=0, width=96, height=64):
    return data_url(png(seed, width, height))


# Rows of 4 KiB, one for each patch of 14 pixels: 16 of them fill a page.
BY_SIZE = "stub:dim=1024,tokens=16-100000,seed=1"


def patches_url(seed, columns, rows):
    """A picture of so many patches."""
    return data_url(encoded(picture(seed, 14 * columns, 14 * rows), "JPEG"))


def large_url(seed):
    """16 MiB of rows: far more than a kernel takes in when the client does not read."""
    return patches_url(seed, 64, 64)


def small_url(seed):
    """1 MiB of rows."""
    return patches_url(seed, 16, 16)


def file_store(folder, capacity="1GiB", **options):
    more = "".join(f"&{name}={value}" for name, value in options.items())
    return f"file://{folder}?capacity={capacity}{more}"


class SwitchedStore:
    """A plugin of tests/plugins that misbehaves for as long as a file exists. `options` are those
    that a server needs to find it."""

    def __init__(self, name, folder, more=""):
        self.switch = folder / "misbehave"
        url = f"{name}:?while_exists={self.switch}{more}"
        self.options = {"store": url, "env": {"VITROVE_PLUGIN_PATH": str(BUILD / "test-plugins")}}

    def misbehave(self):
        self.switch.touch()

    def behave(self):
        self.switch.unlink(missing_ok=True)


def stored_values(folder):
    """Files of embeddings below a file store's folder."""
    found = []
    for place, _, names in os.walk(folder):  # folders may vanish meanwhile: that is no error here
        found += [Path(place) / name for name in names if name.startswith("vt1-")]
    return sorted(path for path in found if path.is_file())


def remove_tree(path):
    shutil.rmtree(path, ignore_errors=True)
