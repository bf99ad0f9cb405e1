"""The budget of a store that hangs, on real engines that are stopped whole (B50): no request fails;
a cold one takes at most one store deadline more than with the cache off; and once the breaker is
open nothing that can be measured.

Every single request is judged, by a deadline so long that no machine is mistaken for a store: to wait
for the store twice would take twice as long, to wait once while the breaker is open a whole deadline.
"""

import concurrent.futures
import itertools
import signal
import time

import pytest
from mooncake import Cluster, is_well, store_of
from redis_server import RedisServer
from support import TIME_FACTOR, png_url, run_cli, wait_for_puts, wait_until

DEADLINE = min(2 * TIME_FACTOR, 5)
BREAKER_FAULTS = 5
CLIENTS = 4


class StoppableRedis:
    def __init__(self, folder):
        self.server = RedisServer(folder)
        self.urls = [self.server.url(timeout="20s")]  # the deadline is to be first
        self.signal, self.stop = self.server.signal, self.server.stop

    def wait_ready(self, server):
        wait_until(lambda: server.get("/health").json["status"] == "ok", 60, "Redis to be reached")


class StoppableMooncake:
    tiers = [""]

    def __init__(self, folder):
        self.cluster = Cluster(folder)
        self.cluster.start()
        self.urls = [self.cluster.url(prefix=f"budget{tier}/") for tier in self.tiers]
        self.signal, self.stop = self.cluster.signal, self.cluster.stop

    def wait_ready(self, server):
        wait_until(lambda: all(is_well(store) for store in server.stats()["stores"]), 60,
                   "the stores to be ready")


class TwoTiers(StoppableMooncake):
    tiers = ["-near", "-far"]


@pytest.fixture(params=[StoppableRedis, StoppableMooncake, TwoTiers],
                ids=["redis", "mooncake", "two tiers"])
def engine(request, tmp_path):
    engine = request.param(tmp_path / "engine")
    yield engine
    engine.signal(signal.SIGCONT)
    engine.stop()


fresh = itertools.count(10_000)


def cold_time(server):
    """Of a request for a picture that nobody has seen."""
    url = png_url(next(fresh))
    started = time.monotonic()
    assert server.encode_ok([url])["items"][0]["source"] == "encoded"
    return time.monotonic() - started


def cold_times(server, count):
    """Of some at the same time."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _: cold_time(server), range(count)))


def is_paused(server):
    return all(store["breaker_open"] or store["state"] == "down"
               for store in server.stats()["stores"])


def faults(server):
    """Questions that the store did not answer as it should."""
    return server.metrics().sum("vitrove_store_errors_total", op="exist")


def test_an_engine_that_is_stopped_costs_one_deadline_and_then_nothing(start, engine):
    server = start("--store-timeout", f"{int(DEADLINE * 1000)}ms", store=engine.urls)
    off = start("--pool-size", "0")
    engine.wait_ready(server)
    usual = max(cold_times(off, CLIENTS) + cold_times(server, CLIENTS))
    wait_for_puts(server)

    engine.signal(signal.SIGSTOP)
    hanging = []
    while not hanging or (not is_paused(server) and len(hanging) < 10 * BREAKER_FAULTS):
        hanging += cold_times(server, CLIENTS)
    assert max(hanging) > DEADLINE / 2, "they did wait for the store"
    # The rest of a second deadline is for the machine.
    assert max(hanging) < usual + 1.9 * DEADLINE, "for each, one deadline"
    assert is_paused(server)
    assert server.get("/ready").status == 200

    before, paused = faults(server), []
    # Until the store was tried again, in vain: nobody waits for that either.
    while not paused or (faults(server) == before and len(paused) < 1000):
        paused += cold_times(server, 1)
        time.sleep(0.05)
    assert max(paused) < usual + 0.5 * DEADLINE, "each goes on without the store"

    engine.signal(signal.SIGCONT)

    def hits_come():
        url = png_url(next(fresh))
        server.encode_ok([url])
        wait_for_puts(server)
        server.post("/flush?scope=local")
        return server.sources([url]) == ["store"]

    wait_until(hits_come, 90, "hits to come again")

    def all_is_well():
        cold_time(server)
        return not any("paused" in store["detail"] for store in server.stats()["stores"])

    wait_until(all_is_well, 60, "each to be taken up again")


@pytest.mark.parametrize("engine", [StoppableMooncake], ids=["mooncake"], indirect=True)
def test_what_is_said_of_an_engine_that_is_stopped_is_true_and_says_what_to_do(start, engine):
    """Its helper says that it is ready, since nobody has told it otherwise."""
    server = start("--store-timeout", "200ms", store=engine.urls)
    engine.wait_ready(server)
    engine.signal(signal.SIGSTOP)

    def is_said():
        cold_time(server)
        return store_of(server)["breaker_open"]

    wait_until(is_said, 60, "the breaker")
    wait_until(lambda: server.get("/health").json["status"] == "degraded", 60, "it to be seen")
    words = store_of(server)["detail"]
    assert words.startswith("paused, since its reads"), words
    assert "`vitrove doctor URL` says what is wrong" in words
    assert store_of(server)["state"] == "down"
    assert "mooncake keeps failing" in server.log and "vitrove doctor with its URL" in server.log
    impatient = engine.cluster.url(hang_timeout="500ms", start_timeout="1s")
    said = run_cli("doctor", impatient, "--pool-size", "16MiB")
    assert said.returncode == 1
    assert "does not answer" in said.stdout or "hang" in said.stdout, said.stdout
