"""One encode in a cluster: servers that share a store do not encode the same at the same time."""

import concurrent.futures
import json
import signal
import socket

import pytest
from redis_server import RedisServer
from support import (HURRIED, STUB, TIME_FACTOR, data_url, file_store, png, png_url, run_cli,
                     wait_for_puts, wait_until)

SLOW = f"{STUB},delay_ms={int(1500 * min(TIME_FACTOR, 3))}"  # for others to come meanwhile


@pytest.fixture
def redis(tmp_path):
    server = RedisServer(tmp_path / "redis")
    yield server
    server.stop()


@pytest.fixture(params=["file", "redis"])
def store(request, store_folder):
    if request.param == "file":
        return file_store(store_folder)
    return request.getfixturevalue("redis").url()


def claims(server, result):
    return server.metrics().sum("vitrove_claims_total", result=result)


def claim_files(folder):
    return list(folder.rglob(".vt1-claim-*"))


def ask(server, url):
    return server.embeddings([url])


def test_a_cold_burst_on_two_servers_is_one_encode(start, store):
    servers = [start(store=store, encoder=SLOW) for _ in range(2)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda i: ask(servers[i % 2], png_url(1)), range(8)))
    assert sum(server.encodes() for server in servers) == 1
    assert len({reply.raw["embedding"] for reply in replies}) == 1
    sources = {reply.metadata["items"][0]["source"] for reply in replies}
    assert {"encoded", "store"} <= sources
    assert sum(claims(server, "won") for server in servers) == 1
    assert sum(claims(server, "waited") for server in servers) == 1
    assert sum(server.stats()["claims"]["waited"] for server in servers) == 1


def test_a_server_encodes_what_is_its_own_before_it_waits(start, store):
    one, two = (start(store=store, encoder=SLOW) for _ in range(2))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        other = pool.submit(ask, one, png_url(1))
        wait_until(lambda: claims(one, "won") == 1)
        reply = two.encode_ok([png_url(1), png_url(2), png_url(3)])
        other.result()
    assert [item["source"] for item in reply["items"]] == ["store", "encoded", "encoded"]
    assert one.encodes() == 1
    assert two.encodes() == 2


def test_a_killed_claimant_costs_its_time_at_most(start, store):
    """SIGKILL in the middle of an encode: the other takes over before its own deadline."""
    one = start(store=store, encoder=STUB + ",delay_ms=600000")
    two = start(store=store, encoder=STUB)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        lost = pool.submit(lambda: one.encode([png_url(1)]))
        wait_until(lambda: claims(one, "won") == 1)
        waiting = pool.submit(two.sources, [png_url(1)])
        wait_until(lambda: two.metrics().sum("vitrove_entries", state="filling") == 1)
        one.kill()
        assert waiting.result() == ["encoded"]
        with pytest.raises(Exception):
            lost.result()
    assert two.encodes() == 1
    assert claims(two, "won") == 1
    assert claims(two, "expired") == 0
    wait_for_puts(two)
    third = start(store=store)
    assert third.sources([png_url(1)]) == ["store"]


def test_without_claims_each_encodes_for_itself(start, store_folder):
    """Also while another one is at it, who would not be done in any test's time."""
    one = start("--no-claims", store=file_store(store_folder),
                encoder=STUB + ",delay_ms=600000")
    two = start("--no-claims", store=file_store(store_folder))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        lost = pool.submit(lambda: one.encode([png_url(1)]))
        wait_until(lambda: one.metrics().sum("vitrove_entries", state="filling") > 0)
        assert two.sources([png_url(1)]) == ["encoded"]
        assert one.metrics().sum("vitrove_entries", state="filling") > 0, "it is still at it"
        for server in (one, two):
            assert server.metrics().sum("vitrove_claims_total") == 0
        one.kill()
        with pytest.raises(Exception):
            lost.result()


def test_a_store_that_dies_while_waiting_costs_a_lookup(start, redis):
    one = start(*HURRIED, store=redis.url(), encoder=STUB + ",delay_ms=20000")
    two = start(*HURRIED, store=redis.url(), encoder=STUB)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        slow = pool.submit(one.sources, [png_url(1)])
        wait_until(lambda: claims(one, "won") == 1)
        waiting = pool.submit(two.sources, [png_url(1)])
        wait_until(lambda: two.metrics().sum("vitrove_entries", state="filling") == 1)
        redis.signal(signal.SIGSTOP)
        try:
            assert waiting.result() == ["encoded"]
        finally:
            redis.signal(signal.SIGCONT)
        assert slow.result() == ["encoded"]
    assert claims(two, "failed") == 1
    assert claims(two, "expired") == 0


def test_claims_are_gone_when_their_work_is_done(start, store_folder):
    server = start(store=file_store(store_folder))
    for seed in range(20):
        server.encode_ok([png_url(seed)])
    broken = data_url(png(99)[:200])
    assert 400 <= server.encode([broken]).status < 500
    wait_for_puts(server)
    wait_until(lambda: not claim_files(store_folder))
    assert claims(server, "won") == 20, "what cannot be decoded is not encoded"


def test_a_file_store_and_redis_are_claimed_at_the_far_one(start, redis, tmp_path):
    servers = [start(store=[file_store(tmp_path / f"near-{i}"), redis.url()], encoder=SLOW)
               for i in range(2)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda server: ask(server, png_url(1)), servers))
    assert sum(server.encodes() for server in servers) == 1
    assert not claim_files(tmp_path)


def test_a_read_only_policy_writes_nothing(start, store_folder):
    reader = start("--write-policy", "never", store=file_store(store_folder))
    assert reader.sources([png_url(1)]) == ["encoded"]
    writer = start("--write-policy", "behind", "--write-behind-delay", "1h",
                   store=file_store(store_folder))
    assert writer.sources([png_url(1)]) == ["encoded"]
    assert writer.stop() == 0, "what waits is sent when the server ends"
    assert start(store=file_store(store_folder)).sources([png_url(1)]) == ["store"]


def test_puts_after_uses(start, store_folder):
    server = start("--put-after-uses", "2", store=file_store(store_folder))
    other = start(store=file_store(store_folder))
    server.encode_ok([png_url(1)])
    server.encode_ok([png_url(2)])
    server.encode_ok([png_url(2)])
    wait_for_puts(server)
    assert other.sources([png_url(1), png_url(2)]) == ["encoded", "store"]


def test_encode_spreads_files_over_servers_and_survives_deaths(start, tmp_path):
    """B61: three servers, of which one is killed while the files go out, and a fourth that takes
    connections and never says a word: a file that waited for it as for an encode would take 120 s."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for seed in range(40):
        (folder / f"{seed:02}.png").write_bytes(png(seed))
    servers = [start(encoder=STUB + ",delay_ms=30") for _ in range(3)]
    addresses = [word for server in servers
                 for word in ("--server", f"http://127.0.0.1:{server.port}")]
    hole = socket.create_server(("127.0.0.1", 0), backlog=64)
    addresses += ["--server", f"http://127.0.0.1:{hole.getsockname()[1]}"]
    with concurrent.futures.ThreadPoolExecutor(1) as pool, hole:
        run = pool.submit(run_cli, "encode", folder, *addresses, "--json", timeout=100)
        wait_until(lambda: servers[1].encodes() >= 2)
        servers[1].kill()
        result = run.result()
    assert result.returncode == 0, result.stdout
    assert len(json.loads(result.stdout)["items"]) == 40
    assert '"error"' not in result.stdout
    assert servers[0].encodes() >= 10
    assert servers[2].encodes() >= 10
