"""A store that stops answering and does not fail: field cases B50 and B78.

The plugin `sleeping` (tests/plugins) hangs in every call for as long as a file exists.
"""

import concurrent.futures
import itertools
import re
import signal
import time
from pathlib import Path

import pytest
from raw_http import RawClient, encode_request
from support import TIME_FACTOR, SwitchedStore, png_url, seconds, wait_for_puts, wait_until

STORE_TIMEOUT = min(2 * TIME_FACTOR, 5)  # to wait for it twice is more than any machine adds
DRAIN_TIMEOUT = 2


@pytest.fixture
def store(tmp_path):
    store = SwitchedStore("sleeping", tmp_path)
    yield store
    store.behave()


def start_on(start, store, store_timeout):
    return start("--store-timeout", store_timeout, "--drain-timeout", f"{DRAIN_TIMEOUT}s",
                 **store.options)


def threads(server):
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"Threads:\s+(\d+)", status)[1])


def load(server, seeds):
    """The longest of requests for new pictures, by four clients."""
    def timed(seed):
        started = time.monotonic()
        assert server.encode([png_url(seed)]).status == 200
        return time.monotonic() - started

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return max(pool.map(timed, seeds))


def test_a_store_that_hangs_costs_its_deadline_then_nothing_and_comes_back(start, store):
    """B50."""
    server = start_on(start, store, f"{int(STORE_TIMEOUT * 1000)}ms")
    usual = load(server, range(100))
    wait_for_puts(server)
    assert server.get("/health").json["status"] == "ok"
    threads_before = threads(server)

    store.misbehave()
    crowded = load(server, range(100, 300))
    assert crowded < usual + 1.9 * STORE_TIMEOUT, "nobody waits twice"
    wait_until(lambda: server.get("/health").json["status"] == "degraded", 20, "the breaker")
    assert server.get("/ready").status == 200
    metrics = server.metrics()
    assert metrics.sum("vitrove_store_errors_total", reason="timeout") > 0
    assert metrics.sum("vitrove_lookups_total", result="miss") == 300, "and each is one miss"
    afterwards = load(server, range(300, 400))
    assert afterwards < usual + STORE_TIMEOUT / 2, "nobody waits"
    assert threads(server) <= threads_before
    pending = server.metrics().sum("vitrove_store_pending", op="get")
    pending += server.metrics().sum("vitrove_store_pending", op="exist")
    assert pending <= 16, "lookups do not queue up behind a store that is known to hang"

    store.behave()
    fresh = itertools.count(1000)

    def is_well_again():
        server.encode_ok([png_url(next(fresh))])
        return server.get("/health").json["status"] == "ok"

    wait_until(is_well_again, 30, "the breaker to close again")
    wait_for_puts(server)
    server.post("/flush?scope=local")
    assert server.sources([png_url(seed) for seed in range(8)]) == ["store"] * 8


def test_sigterm_is_obeyed_in_time_while_the_store_hangs(start, store):
    """B78: lookups and puts that never return keep nobody from leaving."""
    server = start_on(start, store, "200ms")
    server.encode_ok([png_url(1)])
    wait_for_puts(server)
    server.expect_unclean = True  # what hangs in the store is lost, and said to be
    shm = set(Path("/dev/shm").iterdir())
    store.misbehave()
    server.encode_ok([png_url(2)])
    wait_until(lambda: server.metrics().sum("vitrove_store_pending", op="put") > 0, 20)
    with RawClient(server.port) as accepted:
        accepted.send(encode_request([png_url(3)]))
        wait_until(lambda: server.metrics().sum("vitrove_store_pending") > 1
                   or server.lookups("miss") == 3, 20, "a lookup to hang as well")
        server.signal(signal.SIGTERM)
        started = time.monotonic()
        assert accepted.read_reply()[0] == 200, "it was accepted, so it is answered"
    server.process.wait(seconds(60))
    # The drain, and the five seconds that calls get to notice that they are asked to stop.
    assert time.monotonic() - started < DRAIN_TIMEOUT + 5 + seconds(20), "and not when the store wakes up"
    assert server.process.returncode >= 0, "it left by itself"
    assert set(Path("/dev/shm").iterdir()) <= shm
