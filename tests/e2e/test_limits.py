"""Group F of the field cases over HTTP: memory and limits."""

import concurrent.futures
import json
import re
import time
from pathlib import Path

import pytest
from raw_http import RawClient, encode_request
from support import (STUB, TIME_FACTOR, data_url, encoded, picture, png_url, seconds, wait_until)


def resident_kib(server, field="RssShmem"):
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", text)[1])


def patches_url(seed, columns, rows):
    """A picture of so many 14-pixel patches: the stub gives it a row for each."""
    return data_url(encoded(picture(seed, 14 * columns, 14 * rows), "JPEG"))


PAGES_64 = "4MiB"
BY_SIZE = "stub:dim=1024,tokens=16-100000,seed=1"  # 16 rows a page


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


def test_the_pool_is_as_large_as_the_operator_asked(start):
    """B65, B72: many more pictures than fit; resident shared memory stays within the pool."""
    server = start("--pool-size", "16MiB", encoder="stub:dim=1024,tokens=64,seed=1")
    for seed in range(200):
        assert server.encode([png_url(seed)]).status == 200
    metrics = server.metrics()
    used, free = (metrics.sum("vitrove_pool_bytes", state=state) for state in ("used", "free"))
    assert used + free == 16 << 20
    assert metrics.sum("vitrove_evictions_total") >= 200 - 64
    assert resident_kib(server) <= 16 * 1024 + 24 * 1024, "the pool, staging and header slots"


def test_no_eviction_means_what_does_not_fit_is_uncached(start):
    server = start("--pool-size", "1MiB", "--no-eviction",
                   encoder="stub:dim=1024,tokens=63,seed=1")  # 4 pictures fit
    for seed in range(8):
        assert server.encode([png_url(seed)]).status == 200
    assert server.sources([png_url(seed) for seed in range(4)]) == ["local"] * 4
    assert server.sources([png_url(seed) for seed in range(4, 8)]) == ["encoded"] * 4
    assert server.metrics().sum("vitrove_evictions_total") == 0


def test_when_everything_is_pinned_new_pictures_are_still_answered(start):
    """B69: slow clients hold what they may; twenty new pictures."""
    server = start("--pool-size", "4MiB", encoder="stub:dim=1024,tokens=256,seed=1")
    slow = [RawClient(server.port) for _ in range(4)]
    try:
        for seed, client in enumerate(slow):
            client.send(encode_request([png_url(seed)], **{"return": "safetensors"}))
            client.read(1)
        for seed in range(10, 30):
            assert server.encode([png_url(seed)]).status == 200
    finally:
        for client in slow:
            client.socket.close()
    server.check_at_rest()


def test_a_reader_that_stalls_is_dropped_and_its_pins_come_back(start):
    server = start("--pool-size", "64MiB", "--send-stall-timeout", "500ms",
                   encoder="stub:dim=1024,tokens=4096,seed=1")  # 16 MiB a reply
    with RawClient(server.port) as stalled:
        stalled.send(encode_request([png_url(1)], **{"return": "safetensors"}))
        stalled.read(1)
        wait_until(lambda: server.metrics().sum("vitrove_pool_bytes", state="pinned") == 0, 30,
                   "the stalled reply to be given up")
    assert server.sources([png_url(1)]) == ["local"]


def test_overload_answers_every_request_and_health_stays_quick(start):
    """B71, B75: a burst of large pictures; each is a 200 or a 429, none is lost."""
    server = start("--max-queue", "16")
    count = 120 if TIME_FACTOR == 1 else 40
    urls = [data_url(encoded(picture(seed, 1920, 1080), "JPEG")) for seed in range(8)]
    slowest = 0.0

    def client(number):
        return server.encode([urls[number % 8]], mm_processor_kwargs={})

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        pending = [pool.submit(client, number) for number in range(count)]
        while not all(future.done() for future in pending):
            started = time.monotonic()
            assert server.get("/health").status == 200
            slowest = max(slowest, time.monotonic() - started)
            time.sleep(0.05)
        replies = [future.result() for future in pending]
    statuses = {reply.status for reply in replies}
    assert statuses <= {200, 429, 503}
    assert all("retry-after" in reply.headers for reply in replies if reply.status != 200)
    assert slowest < seconds(2), "the client shares the two cores with the server"
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
    (tmp_path / "large").write_bytes(bytes(40 << 20))
    server = start("--allowed-local-media-path", tmp_path, "--max-inflight-bytes", "64MiB",
                   "--max-body-bytes", "1MiB")
    server.encode_ok([png_url(1)])
    url = f"file://{tmp_path}/large"
    assert server.encode([url] * 20).status == 413
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        statuses = set(pool.map(lambda _: server.encode([url]).status, range(24)))
    assert statuses <= {415, 503}
    assert resident_kib(server, "VmHWM") < 256 * 1024
    assert server.sources([png_url(1)]) == ["local"]
