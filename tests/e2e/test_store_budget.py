"""The budget of a store that hangs, on real engines that are stopped whole (B50): no request fails;
a cold one takes at most one store deadline more than with the cache off; and once the breaker is
open nothing that can be measured."""

import itertools
import signal
import statistics
import time

import pytest
from mooncake import Cluster, wait_ready
from redis_server import RedisServer
from support import png_url, seconds, wait_for_puts, wait_until

DEADLINE = 0.4


class StoppableRedis:
    def __init__(self, folder):
        self.server = RedisServer(folder)
        self.signal, self.stop = self.server.signal, self.server.stop

    def url(self):
        return self.server.url()

    def wait_ready(self, server):
        wait_until(lambda: server.get("/health").json["status"] == "ok", 60, "Redis to be reached")


class StoppableMooncake:
    def __init__(self, folder):
        self.cluster = Cluster(folder)
        self.cluster.start()
        self.wait_ready = wait_ready
        self.url, self.signal, self.stop = (self.cluster.url, self.cluster.signal,
                                            self.cluster.stop)


@pytest.fixture(params=[StoppableRedis, StoppableMooncake], ids=["redis", "mooncake"])
def engine(request, tmp_path):
    engine = request.param(tmp_path / "engine")
    yield engine
    engine.signal(signal.SIGCONT)
    engine.stop()


fresh = itertools.count(10_000)


def cold_times(server, count):
    """Of requests for pictures that nobody has seen, one after the other."""
    times = []
    for _ in range(count):
        url = png_url(next(fresh))
        started = time.monotonic()
        assert server.encode_ok([url])["items"][0]["source"] == "encoded"
        times.append(time.monotonic() - started)
    return times


def test_an_engine_that_is_stopped_costs_one_deadline_and_then_nothing(start, engine):
    off = start("--pool-size", "0")
    usual = cold_times(off, 20)
    server = start("--store-timeout", f"{int(DEADLINE * 1000)}ms", store=engine.url())
    engine.wait_ready(server)
    cold_times(server, 5)
    wait_for_puts(server)

    engine.signal(signal.SIGSTOP)
    hanging = cold_times(server, 12)
    # What a noisy machine adds to some it does not add to half of them.
    assert statistics.median(hanging) <= statistics.median(usual) + DEADLINE + seconds(0.2)
    wait_until(lambda: server.get("/health").json["status"] == "degraded", 60, "it to be seen")

    def nothing_measurable():
        return statistics.median(cold_times(server, 10)) < statistics.median(usual) + DEADLINE / 4

    wait_until(nothing_measurable, 60, "the breaker to keep the store out of it")
    assert server.get("/ready").status == 200

    engine.signal(signal.SIGCONT)

    def hits_come():
        url = png_url(next(fresh))
        server.encode_ok([url])
        wait_for_puts(server)
        server.post("/flush?scope=local")
        return server.sources([url]) == ["store"]

    wait_until(hits_come, 90, "hits to come again")
