"""Mooncake as SGLang's operators mostly have it: the servers themselves lend the memory, and one of
them dies (B60). And what the helper does with the server's own memory."""

import os
from pathlib import Path

import pytest
from mooncake import Cluster, helper_pid, store_of, wait_ready
from support import HURRIED, png_url, seconds, wait_for_puts, wait_until
from test_mooncake import GLOBAL_CACHE, pictures, put, put_again
from test_redis import SEEDS, Load, golden  # noqa: F401 (a fixture)


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path / "mooncake")
    yield cluster
    cluster.stop()


def start_lender(start, cluster, *flags):
    return start(GLOBAL_CACHE, *flags, store=(),
                 env=cluster.environment(global_segment_size="256mb"))


def test_servers_that_lend_memory_need_no_other_holder(start, cluster):
    """One leaves in order, one is killed, and a new one comes."""
    cluster.start_master()
    a, b = (start_lender(start, cluster) for _ in range(2))
    for server in (a, b):
        wait_ready(server)
    urls = pictures(400, 8)
    put(a, urls)
    assert b.sources(urls) == ["store"] * 8
    assert a.stop() == 0
    b.post("/flush?scope=local")
    for url in urls:  # what lay in the memory of the one that left is gone, and nothing is wrong
        assert b.sources([url])[0] in ("store", "encoded")
    put_again(b, 420)
    newcomer = start_lender(start, cluster)
    wait_ready(newcomer)
    seed = put_again(newcomer, 440)
    assert b.sources([png_url(seed)]) == ["store"]


def test_a_lender_that_is_killed_under_load_costs_hits_and_no_request(
        start, cluster, golden):  # noqa: F811
    """B60: the survivor sees misses, not errors, and hits come back, with a newcomer as well."""
    cluster.start_master()
    killed, survivor = (start_lender(start, cluster, *HURRIED, "--pool-size", "0") for _ in range(2))
    for server in (killed, survivor):
        wait_ready(server)
    urls = pictures(0, SEEDS)
    put(killed, urls)
    with Load([survivor], golden) as load:
        load.more(50)
        killed.kill()
        load.more(100)
        newcomer = start_lender(start, cluster, "--pool-size", "0")
        wait_ready(newcomer)
        load.servers = [survivor, newcomer]
        load.more(50)
        assert load.slowest < seconds(30), "nobody waits for the dead one"

    def all_hits(server):
        sources = [server.sources([url])[0] for url in urls]
        wait_for_puts(server)
        return set(sources) == {"store"}

    for server in (survivor, newcomer):
        wait_until(lambda: all_hits(server), 120, "hits to resume")


def test_the_helper_works_on_the_pool_itself(start, cluster):
    """No byte is copied between: the pool is registered with the helper, and staging is not used."""
    cluster.start()
    server = start(store=cluster.url())
    wait_ready(server)
    put(server, pictures(460, 2))
    server.post("/flush?scope=local")
    assert server.sources(pictures(460, 2)) == ["store"] * 2
    assert store_of(server)["get"]["ok"] >= 2
    assert "vitrove-pool" in Path(f"/proc/{helper_pid(server)}/maps").read_text()
    staging = [os.stat(fd) for fd in Path(f"/proc/{server.process.pid}/fd").iterdir()
               if os.readlink(fd).startswith("/memfd:vitrove-mooncake ")]
    assert staging and all(one.st_blocks == 0 for one in staging)
