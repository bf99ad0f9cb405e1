"""What a single Redis is put through in test_redis.py, for one behind TLS and a password, and for a
cluster of three: it hangs, refuses writes, is emptied and restarted, and no request fails (B50, B52,
B53). And the rights that docs/stores.md asks for, and a name that is not known yet (B49)."""

import re
import signal

import network
import pytest
from redis_server import RedisCluster, RedisServer, make_certificates
from support import HURRIED, PATIENT, ROOT, png_url, run_cli, seconds, wait_for_puts, wait_until
from test_redis import Load, golden, hits_come, start_redis, url_of  # noqa: F401 (fixtures)

PASSWORD = "p@ss:w/rd#1"


class Kind:
    """Some servers as one."""

    def __init__(self, folder, kind):
        self.cluster = None
        if kind == "tls":
            self.servers = [RedisServer(folder / "server", password=PASSWORD,
                                        tls=make_certificates(folder / "certificates"))]
        else:
            self.cluster = RedisCluster(folder / "cluster")
            self.servers = self.cluster.servers

    def url(self):
        return (self.cluster or self.servers[0]).url(timeout="1s", connect_timeout="1s")

    def __call__(self, *words):
        for server in self.servers:
            server(*words)

    def each(self, action, *arguments):
        for server in self.servers:
            getattr(server, action)(*arguments)

    def values(self):
        return [key for server in self.servers for key in server.values()]

    def is_well(self):
        return self.cluster is None or self.cluster.is_whole()


@pytest.fixture(params=["tls", "cluster"])
def kind(request, tmp_path):
    kind = Kind(tmp_path, request.param)
    yield kind
    kind.each("stop")


def wait_for_hits(server):
    wait_until(lambda: all(hits_come(server, seed) for seed in range(4)), 60, "hits to resume")


def test_one_that_hangs_costs_a_deadline_at_most(start, kind, golden):  # noqa: F811
    """B50: SIGSTOP under load, and hits again after SIGCONT."""
    server = start(*HURRIED, store=kind.url())
    with Load([server], golden) as load:
        load.more(50)
        for _ in range(2):
            kind.each("signal", signal.SIGSTOP)
            server.post("/flush?scope=local")
            load.more(60)
            kind.each("signal", signal.SIGCONT)
            load.more(20)
    assert load.slowest < seconds(20), "nobody waits beyond the budget"
    assert server.metrics().sum("vitrove_store_errors_total") > 0, "errors are no misses"
    wait_for_hits(server)


def test_one_that_refuses_writes_fails_no_request(start, kind, golden):  # noqa: F811
    """B52: and takes them again when there is room."""
    server = start("--pool-size", "0", store=kind.url())

    def refusals():
        return server.metrics().sum("vitrove_store_errors_total", op="put", reason="ENOMEM")

    with Load([server], golden) as load:
        load.more(30)
        kind("CONFIG", "SET", "maxmemory", "1")
        kind("FLUSHALL")
        wait_until(lambda: refusals() > 0, 60, "puts to be refused")
        load.more(50)
        kind("CONFIG", "SET", "maxmemory", "0")
        wait_until(kind.values, 60, "puts to land")
    wait_for_hits(server)


def test_one_that_is_emptied_harms_nobody(start, kind, golden):  # noqa: F811
    server = start("--pool-size", "0", store=kind.url())
    with Load([server], golden) as load:
        for _ in range(10):
            kind("FLUSHALL")
            load.more(10)
    wait_for_hits(server)


def test_one_that_is_restarted_again_and_again_harms_nobody(start, kind, golden):  # noqa: F811
    """B49: away at the start as well."""
    kind.each("kill")
    server = start("--pool-size", "1MiB", *HURRIED, store=kind.url())
    with Load([server], golden) as load:
        load.more(20)
        for _ in range(2):
            kind.each("start")
            wait_until(kind.is_well, 60, "the cluster to be whole")
            load.more(20)
            kind.each("kill")
            load.more(20)
        kind.each("start")
    wait_for_hits(server)


def test_one_that_still_loads_its_file_costs_misses(start, start_redis, golden):  # noqa: F811
    """B52: LOADING, after a restart; then what it holds is served."""
    redis = start_redis()
    first = start(store=redis.url())
    first.encode_ok([png_url(seed) for seed in range(16)])
    wait_for_puts(first)
    redis("SAVE")
    redis.kill()
    server = start("--pool-size", "0", store=url_of(redis))
    # A tenth of a second for each value and alias, looking at its clients in between.
    redis.arguments += ["--key-load-delay", "100000",
                        "--loading-process-events-interval-bytes", "1024"]
    redis.start(wait=False)
    wait_until(redis.is_loading, 60, "Redis to be loading")
    for seed in range(4):
        assert server.embeddings([png_url(seed)]).item(0).tobytes() == golden[seed]
    wait_until(redis.answers, 120, "Redis to have loaded")
    assert len(redis.values()) == 16
    wait_until(lambda: server.sources([png_url(9)]) == ["store"], 60, "hits")


def test_a_name_that_appears_later_is_found(start, start_redis, tmp_path, golden,  # noqa: F811
                                            namespaces):
    """B49."""
    with network.Internet() as internet, internet.inside():
        names = network.NameServer()
        try:
            redis = start_redis()
            server = start(store=f"redis://cache.example.com:{redis.port}",
                           launcher=network.resolver_launcher(tmp_path))
            assert server.embeddings([png_url(0)]).item(0).tobytes() == golden[0]
            wait_until(lambda: server.get("/health").json["status"] == "degraded", 30, "the lack")
            assert "cache.example.com" in server.stats()["stores"][0]["detail"]
            names.names["cache.example.com"] = ["127.0.0.1"]
            wait_until(lambda: server.get("/health").json["status"] == "ok", 30, "the name")
            server.encode_ok([png_url(1)])
            wait_for_puts(server)
            assert hits_come(server, 1)
            assert server.stop() == 0
        finally:
            names.close()


def documented_rights():
    """(commands of a single server, those that a cluster needs besides)"""
    text = re.sub(r"\s+", " ", (ROOT / "docs" / "stores.md").read_text())
    found = re.search(r"The user needs `([A-Z ]+)` \(and ((?:`[A-Z]+`,? )+)for a cluster\)"
                      r" on `~vitrove:\*`", text)
    assert found, "docs/stores.md says which commands a user needs"
    return found[1].split(), re.findall("[A-Z]+", found[2])


@pytest.mark.parametrize("is_cluster", [False, True], ids=["single", "cluster"])
def test_large_values_are_hits_for_a_user_who_may_not_read_parts(start, tmp_path, is_cluster):
    """An ACL of before they came in parts."""
    folder = tmp_path / "redis"
    servers = RedisCluster(folder).servers if is_cluster else [RedisServer(folder)]
    try:
        for redis in servers:
            redis("ACL", "SETUSER", "vitrove", "on", ">secret", "~vitrove:*", "+@all", "-getrange")
        scheme = "redis+cluster" if is_cluster else "redis"
        url = f"{scheme}://vitrove:secret@127.0.0.1:{servers[0].port}"
        a, b = (start(*PATIENT, encoder="stub:dim=1024,tokens=512,seed=1", store=url)
                for _ in range(2))
        pictures = [png_url(seed) for seed in range(6)]
        a.encode_ok(pictures)
        wait_for_puts(a)
        for picture in pictures:
            assert b.sources([picture]) == ["store"]
        assert b.metrics().sum("vitrove_store_errors_total") == 0
        # /stats shows the store as it was seen last, which may be before its first call.
        wait_until(lambda: "values above 832 KiB come whole" in b.stats()["stores"][0]["detail"], 60,
                   "the store to say so")
        assert b.stats()["stores"][0]["state"] == "ready"
        assert b.log.count("values above 832 KiB come whole") == 1
        assert "grant STRLEN and GETRANGE" in b.log
    finally:
        for redis in servers:
            redis.stop()


@pytest.mark.parametrize("is_cluster", [False, True], ids=["single", "cluster"])
def test_a_user_needs_the_documented_rights_and_no_others(start, tmp_path, is_cluster):
    """Whatever servers and the command line do with a store."""
    folder = tmp_path / "redis"
    servers = RedisCluster(folder).servers if is_cluster else [RedisServer(folder)]
    try:
        single, more = documented_rights()
        commands = single + (more if is_cluster else [])
        for redis in servers:
            redis("ACL", "SETUSER", "vitrove", "on", ">secret", "~vitrove:*",
                  *(f"+{command.lower()}" for command in commands))
        scheme = "redis+cluster" if is_cluster else "redis"
        url = f"{scheme}://vitrove:secret@127.0.0.1:{servers[0].port}"
        said = run_cli("doctor", url, "--pool-size", "16MiB")
        assert "put, get and remove work; claims work" in said.stdout, said.stdout
        a, b = (start(*PATIENT, store=url) for _ in range(2))
        key = a.encode_ok([png_url(seed) for seed in range(12)])["items"][0]["key"]
        wait_for_puts(a)
        assert set(b.sources([png_url(seed) for seed in range(12)])) == {"store"}
        assert key in run_cli("ls", "--store", url).stdout
        assert run_cli("bench", "store", url, "--size", "5MiB", "--count", "2", "--time",
                       "1ms").returncode == 0
        assert run_cli("rm", key, "--store", url).returncode == 0
        assert a.post("/flush?scope=all").status == 200
        assert [one for redis in servers for one in redis.values()] == []
        for redis in servers:
            assert redis("ACL", "LOG") == [], "nothing else was tried"
    finally:
        for redis in servers:
            redis.stop()
