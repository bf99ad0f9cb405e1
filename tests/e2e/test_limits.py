"""Group F of the field cases over HTTP: memory and limits."""

import concurrent.futures
import contextlib
import fcntl
import json
import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from raw_http import RawClient, encode_request, rows_request
from support import (BY_SIZE, MEMORY_FACTOR, STUB, TIME_FACTOR, VITROVE, Client, data_url, encoded,
                     file_store, large_url, patches_url, picture, png_url, seconds, wait_until)


PAGES_64 = "4MiB"


def test_a_log_that_nobody_reads_stops_nothing():
    """Neither requests nor the end: standard error is a pipe that is full."""
    server = subprocess.Popen(
        [VITROVE, "serve", "--port", "0", "--encoder", STUB, "--store", "none"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "VITROVE_LOG_LEVEL": "debug"})
    try:
        fcntl.fcntl(server.stderr, fcntl.F_SETPIPE_SZ, 4096)
        client = Client(int(server.stdout.readline().rsplit(":", 1)[1]))
        for seed in range(200):
            assert client.encode([png_url(seed % 10)]).status == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait(seconds(60)) == 0
    finally:
        server.kill()
        server.communicate()


def test_no_thread_steps_back_from_others(start, store_folder):
    """Threads that write to stores take the locks of those that answer hits, and do the removals that
    somebody waits for: one with less of a processor would hold up all."""
    server = start(store=file_store(store_folder))
    tasks = list(Path(f"/proc/{server.process.pid}/task").iterdir())
    niceness = {(task / "stat").read_text().rpartition(")")[2].split()[16] for task in tasks}
    assert len(tasks) > 4 and len(niceness) == 1


def test_an_item_larger_than_the_pool_is_answered_and_evicts_nobody(start):
    """B64: pool of 64 pages, item of 65."""
    server = start("--pool-size", PAGES_64, encoder=BY_SIZE)
    small = [png_url(seed, 56, 56) for seed in range(3)]
    server.encode_ok(small)
    large = patches_url(9, 40, 26)  # 1040 rows: 65 pages
    reply = server.embeddings([large])
    assert reply.shapes["embedding"] == [1040, 1024]
    assert server.sources([large]) == ["encoded"], "not cached"
    assert server.sources(small) == ["local"] * 3


def test_an_item_of_exactly_the_pool_is_cached(start):
    server = start("--pool-size", PAGES_64, encoder=BY_SIZE)
    exact = patches_url(9, 36, 28)  # 1008 rows: 63 pages, and one that side data begins
    assert server.sources([exact]) == ["encoded"]
    assert server.sources([exact]) == ["local"]


def test_two_items_that_do_not_fit_together_are_both_answered(start):
    """B64: 0.6 + 0.6 of the pool in one request, ten clients at once."""
    server = start("--pool-size", PAGES_64, encoder=BY_SIZE)

    def client(number):
        return server.encode([patches_url(10 + number, 32, 19), patches_url(30 + number, 32, 19)])

    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        assert [reply.status for reply in pool.map(client, range(10))] == [200] * 10


def test_memory_stays_what_the_operator_asked_for(start):
    """B65, B72: many more pictures than fit, of two sizes. Shared memory stays within the pool, and
    what is not the pool does not grow."""
    server = start("--pool-size", "16MiB", encoder=BY_SIZE)
    sizes = ((4, 4), (8, 8))  # 64 and 256 KiB of rows

    def encode(seeds):
        for first in range(seeds.start, seeds.stop, 10):
            server.encode_ok([patches_url(seed, *sizes[seed % 2])
                              for seed in range(first, first + 10)])

    count = 2000 if TIME_FACTOR == 1 else 400
    encode(range(count // 4))
    early = server.memory("RssAnon")
    encode(range(count // 4, count))
    # The address sanitizer keeps up to 256 MiB of what was freed.
    growth = 16 << 20 if TIME_FACTOR == 1 else 320 << 20
    assert server.memory("RssAnon") - early < growth
    metrics = server.metrics()
    used, free = (metrics.sum("vitrove_pool_bytes", state=state) for state in ("used", "free"))
    assert used + free == 16 << 20
    assert metrics.sum("vitrove_evictions_total") >= count - 256
    assert server.encodes() == count
    assert server.memory("RssShmem") <= (16 + 24) << 20, "the pool, staging and header slots"


def test_no_eviction_means_what_does_not_fit_is_uncached(start):
    server = start("--pool-size", "1MiB", "--no-eviction",
                   encoder="stub:dim=1024,tokens=63,seed=1")  # 4 pictures fit
    for seed in range(8):
        assert server.encode([png_url(seed)]).status == 200
    assert server.sources([png_url(seed) for seed in range(4)]) == ["local"] * 4
    assert server.sources([png_url(seed) for seed in range(4, 8)]) == ["encoded"] * 4
    assert server.metrics().sum("vitrove_evictions_total") == 0


def timed_sources(server, url):
    started = time.monotonic()
    sources = server.sources([url])
    return time.monotonic() - started, sources


def side_by_side(servers, urls):
    """For each server, seconds of the quickest and sources of all: requests in turn, so that what
    else the machine does troubles both."""
    seen = [[timed_sources(server, url) for server in servers] for url in urls]
    return [(min(one[0] for one in each), [source for one in each for source in one[1]])
            for each in zip(*seen)]


def cpu_seconds(server):
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_when_nothing_can_be_evicted_new_pictures_are_answered_uncached(start):
    """B69: a slow client holds the pages that new pictures would need: none of them waits for it,
    and nothing spins while it holds them."""
    server, idle = (start("--pool-size", "40MiB", encoder=BY_SIZE) for _ in range(2))
    large = [patches_url(seed, 80, 80) for seed in range(20)]  # 25 MiB of rows
    server.encode_ok([large_url(50)])
    with RawClient(server.port) as slow:
        slow.send(rows_request(large_url(50)))
        slow.read(1)
        wait_until(lambda: server.pinned() >= 16 << 20, 60, "the reply to hold its pages")
        (crowded, sources), (usual, usual_sources) = side_by_side([server, idle], large)
        assert sources == usual_sources == ["encoded"] * 20
        assert server.sources(large[10:12]) == ["encoded"] * 2, "there was no room for them"
        assert crowded < 1.2 * usual + seconds(0.05), "the quickest of many: noise aside"
        used, started = cpu_seconds(server), time.monotonic()
        time.sleep(0.5)
        elapsed = time.monotonic() - started
        assert cpu_seconds(server) - used < 0.2 * elapsed + 0.05
        assert server.pinned() >= 16 << 20
    server.check_at_rest()
    assert server.sources(large[10:11]) == ["encoded"]
    assert server.sources(large[10:11]) == ["local"], "the pages are there again"


@pytest.mark.parametrize("stores", [("none",), ("memory:?capacity=64MiB",)])
def test_many_requests_for_ten_times_the_pool_all_finish(start, stores):
    """B69: 64 requests of one to eight pictures over a pool of a tenth of what they ask for."""
    server = start("--pool-size", "4MiB", encoder="stub:dim=1024,tokens=64,seed=1", store=stores)
    urls = [data_url(encoded(picture(seed, 480, 270), "JPEG")) for seed in range(160)]  # 40 MiB
    choose = random.Random(69)
    requests = [choose.sample(urls, choose.randint(1, 8)) for _ in range(64)]
    for _ in range(5 if TIME_FACTOR == 1 else 2):
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            replies = list(pool.map(server.encode, requests))
        assert [reply.status for reply in replies] == [200] * 64
        assert [len(reply.json["items"]) for reply in replies] == [len(r) for r in requests]
    assert server.metrics().sum("vitrove_evictions_total", reason="space") > 0
    server.check_at_rest()


def test_a_reader_that_stalls_is_dropped_and_its_pins_come_back(start):
    server = start("--pool-size", "64MiB", "--send-stall-timeout", "500ms", encoder=BY_SIZE)
    with RawClient(server.port) as stalled:
        stalled.send(rows_request(large_url(1)))
        first = stalled.read(1)
        wait_until(lambda: server.pinned() == 0, 30, "the stalled reply to be given up")
        with contextlib.suppress(ConnectionResetError):
            rest = stalled.read(1 << 30, piece=65536)
            assert len(first) == 1 and len(rest) < 16 << 20, "the reply was cut, not swallowed"
    assert server.sources([large_url(1)]) == ["local"]


class Probe:
    """Asks /health over and over while the body of the `with` runs."""

    def __init__(self, server):
        self.server, self.done = server, threading.Event()
        self.times, self.statuses = [], set()  # of the answers
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.done.wait(0.02):
            started = time.monotonic()
            self.statuses.add(self.server.get("/health").status)
            self.times.append(time.monotonic() - started)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def test_overload_answers_every_request_and_health_stays_quick(start):
    """B71, B75: five hundred connections at once. Each gets a 200, or a 429 or 503 that says when
    to come again; none is lost, and afterwards all is as before."""
    server = start("--pool-size", "0", "--max-queue", "32", encoder=STUB + ",delay_ms=20")
    count = 500 if TIME_FACTOR == 1 else 200
    urls = [data_url(encoded(picture(seed, 3840, 2160), "JPEG")) for seed in range(10)]
    with contextlib.ExitStack() as stack, Probe(server) as probe:
        clients = [stack.enter_context(RawClient(server.port, receive_buffer=65536))
                   for _ in range(count)]
        for number, client in enumerate(clients):
            client.send(encode_request([urls[number % len(urls)]]))
        replies = [client.read_reply() for client in clients]
    statuses = [status for status, _ in replies]
    assert set(statuses) <= {200, 429, 503}
    assert 200 in statuses and 429 in statuses, "both what it can do and what it cannot"
    for client, status in zip(clients, statuses):
        assert status == 200 or b"\r\nretry-after: " in client.head.lower()
    assert probe.statuses == {200} and len(probe.times) > 10
    slow = [each for each in probe.times if each >= seconds(1)]
    assert len(slow) <= max(2, len(probe.times) // 10), "but for what two busy cores add now and then"
    metrics = server.metrics()
    for status in set(statuses):
        counted = metrics.sum("vitrove_requests_total", route="/encode", code=str(status))
        assert counted == statuses.count(status)
    assert server.encode([urls[0]]).status == 200


@pytest.mark.parametrize("flag, limit, items, status, word", [
    ("--max-items", "2", [png_url(1)] * 3, (400, 413), "2"),
    ("--max-item-bytes", "1KiB", [data_url(b"\xff\xd8\xff" + bytes(4000))], (413,), "bytes"),
    ("--max-image-pixels", "1000", [png_url(1)], (413,), "pixels"),
    ("--max-body-bytes", "4KiB", ["data:;base64," + "A" * 9000], (413,), ""),
])
def test_every_limit_is_named_in_its_error(start, flag, limit, items, status, word):
    server = start(flag, limit, encoder=STUB)
    reply = server.encode(items)
    assert reply.status in status, reply.body
    assert word in reply.error["message"]
    assert server.get("/health").status == 200


def test_a_request_that_runs_too_long_is_a_504(start):
    server = start("--request-timeout", "300ms", encoder=STUB + ",delay_ms=3000")
    reply = server.encode([png_url(1)])
    assert reply.status == 504
    assert reply.error["code"] == "deadline_exceeded"


def test_with_few_descriptors_connections_are_refused_and_nobody_waits(start):
    """B75: beyond what the limit of open files allows, a 503 with an error's body."""
    server = start("--pool-size", PAGES_64, launcher=("prlimit", "--nofile=320:320"))
    connections = [RawClient(server.port) for _ in range(120)]
    try:
        refused = RawClient(server.port)
        refused.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status, body = refused.read_reply()
        assert status == 503
        assert set(json.loads(body)["error"]) == {"code", "message", "req_id", "item"}
        refused.socket.close()
    finally:
        for connection in connections:
            connection.socket.close()
    wait_until(lambda: server.get("/health").status == 200, 60, "room again")


def test_a_short_request_cannot_name_gigabytes(start, tmp_path):
    """B83, B85: what is received is bounded in sum, and the server goes on."""
    (tmp_path / "large").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40 << 20))
    server = start("--allowed-local-media-path", tmp_path, "--max-inflight-bytes", "64MiB",
                   "--max-body-bytes", "1MiB")
    server.encode_ok([png_url(1)])
    url = f"file://{tmp_path}/large"
    # While what went before is being put away, it may be "not now" (503) instead of "never".
    assert server.encode([url] * 20).status in {413, 503}
    wait_until(lambda: server.encode([url] * 20).status == 413, 60, "the request to be too large")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: server.encode([url]), range(24)))
    assert {reply.status for reply in replies} <= {400, 503}
    for reply in replies:
        assert reply.status == 400 or f"the limit is {64 << 20} bytes in flight" in reply.error["message"]
    assert server.memory("VmHWM") < (256 << 20) * MEMORY_FACTOR
    assert server.sources([png_url(1)]) == ["local"]
