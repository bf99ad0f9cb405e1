"""A Redis cluster under the encode server: slots move and masters die, and no request fails (B53).
"""

import signal
import time

import pytest
from redis_server import RedisCluster, make_certificates
from support import HURRIED, png_url, run_cli, seconds, wait_for_puts, wait_until
from test_redis import Load, golden, hits_come  # noqa: F401 (a fixture)


@pytest.fixture(params=["plain", "tls and password"])
def cluster(request, tmp_path):
    secure = request.param != "plain"
    cluster = RedisCluster(tmp_path / "cluster", password="p@ss:w/rd#1" if secure else None,
                           tls=make_certificates(tmp_path / "tls") if secure else None)
    yield cluster
    cluster.stop()


def test_servers_share_embeddings_through_a_cluster(start, cluster, golden):  # noqa: F811
    first = start(store=cluster.url())
    first.encode_ok([png_url(seed) for seed in range(24)])
    wait_for_puts(first)
    assert all(server.values() for server in cluster.servers), "spread over all"
    second = start(store=cluster.url())
    assert set(second.sources([png_url(seed) for seed in range(24)])) == {"store"}
    for seed in range(24):
        assert second.embeddings([png_url(seed)]).item(0).tobytes() == golden[seed]
    assert second.post("/flush?scope=all").status == 200
    assert cluster.values() == []


def test_slots_move_under_load(start, cluster, golden):  # noqa: F811
    server = start("--pool-size", "1MiB", *HURRIED,
                   store=cluster.url(timeout="1s", connect_timeout="1s"))
    server.encode_ok([png_url(seed) for seed in range(24)])
    wait_for_puts(server)
    names = cluster.keys()
    with Load([server], golden) as load:
        for name in names[:8]:
            slot = cluster.servers[0]("CLUSTER", "KEYSLOT", name)
            number = next(i for i, one in enumerate(cluster.servers) if name in one.keys())
            source, target = cluster.servers[number], cluster.servers[(number + 1) % 3]
            cluster.move_slot(slot, source, target)
            load.more(10)
    wait_until(lambda: all(hits_come(server, seed) for seed in range(4)), 60, "hits to resume")


def test_masters_die_under_load(start, cluster, golden):  # noqa: F811
    server = start("--pool-size", "1MiB", *HURRIED,
                   store=cluster.url(timeout="1s", connect_timeout="1s"))
    with Load([server], golden) as load:
        load.more(50)
        for number in (1, 0):
            cluster.servers[number].kill()
            load.more(50)
            cluster.servers[number].start()
            wait_until(cluster.is_whole, 60, "the cluster to be whole")
            load.more(50)

    wait_until(lambda: all(hits_come(server, seed) for seed in range(4)), 60, "hits to resume")
    wait_until(lambda: server.get("/health").json["status"] == "ok", 60, "to be well again")


def test_a_replica_takes_over(start, cluster, golden):  # noqa: F811
    """B53: after the failover, puts and hits go to the new master."""
    master = cluster.servers[0]
    replica = cluster.add_replica(master)
    server = start("--pool-size", "1MiB", *HURRIED,
                   store=cluster.url(timeout="1s", connect_timeout="1s"))
    with Load([server], golden) as load:
        load.more(50)
        master.kill()
        load.more(50)
        wait_until(lambda: b"role:master" in replica("INFO", "replication"), 60, "the failover")
        load.more(50)
    replica("FLUSHALL")

    def new_master_is_used():
        server.post("/flush?scope=local")
        server.encode_ok([png_url(seed) for seed in range(24)])
        wait_for_puts(server)
        return replica.values()

    wait_until(new_master_is_used, 60, "puts to reach the new master")
    wait_until(lambda: all(hits_come(server, seed) for seed in range(24)), 60, "hits")


def test_a_flush_empties_the_others_when_one_server_hangs(start, cluster):
    """In bounded time; the reply says that the store is not done, the command line why, and once the
    server goes on the next flush takes the rest."""
    server = start(*HURRIED, store=cluster.url())
    server.encode_ok([png_url(seed) for seed in range(24)])
    wait_for_puts(server)
    held = [len(one.values()) for one in cluster.servers]
    assert all(held) and sum(held) == 24
    here = f"http://127.0.0.1:{server.port}"
    for number, hanging in enumerate(cluster.servers):  # whichever of them is asked first
        hanging.signal(signal.SIGSTOP)
        try:
            started = time.monotonic()
            report = server.post("/flush?scope=store").json
            assert time.monotonic() - started < seconds(40), "a server that hangs is given up"
            (tier,) = report["tiers"]
            assert (report["complete"], tier["complete"], tier["name"]) == (False, False, "redis")
            others = [one for one in cluster.servers if one is not hanging]
            assert [one.values() for one in others] == [[], []]
            assert tier["removed"] == sum(held) - held[number]
            wait_until(lambda: server.stats()["stores"][0]["detail"], 60, "it to be known")
            said = run_cli("flush", "--server", here, "--scope", "store")
            assert said.returncode == 1
            assert "but some may be left: try again" in said.stdout
            assert f"127.0.0.1:{hanging.tls_port or hanging.port}: " in said.stdout
        finally:
            hanging.signal(signal.SIGCONT)
        wait_until(cluster.is_whole, 60, "the cluster to be whole")
        wait_until(lambda: server.get("/health").json["status"] == "ok", 60, "all to be reached")
        report = server.post("/flush?scope=store").json
        assert report["complete"] and report["tiers"][0]["removed"] == held[number]
        assert cluster.values() == []
        server.post("/flush?scope=local")
        server.encode_ok([png_url(seed) for seed in range(24)])
        wait_for_puts(server)
        wait_until(lambda: [len(one.values()) for one in cluster.servers] == held, 60, "all again")
