"""Encode servers on a real Mooncake cluster: they share embeddings, and no request fails whatever
happens to master, holder and helper (field cases B43, B49, B50, B54, B55, B57, B60, B62, B63)."""

import contextlib
import itertools
import os
import signal

import pytest

import support
from clips import SAMPLES
from mooncake import Cluster, alive, helper_pid, store_of, wait_ready
from support import (BY_SIZE, HURRIED, PATIENT, STUB, TIME_FACTOR, data_url, png_url, run_cli, small_url,
                     wait_for_puts, wait_until)

GLOBAL_CACHE = "--enable-mm-global-cache"
CLIPS_BY_SIZE = "stub:dim=64,tokens=1-4096,seed=1"
HANG_MS = int(500 * TIME_FACTOR)  # of a helper that says nothing


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("mooncake"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def cluster(tmp_path):
    """One of this test's own, not yet started."""
    cluster = Cluster(tmp_path / "mooncake")
    yield cluster
    cluster.stop()


def start_on(start, cluster, *flags, **options):
    """As an SGLang operator would: a flag and a file."""
    return start(GLOBAL_CACHE, *flags, store=(), env=cluster.environment(), **options)


def pictures(first, count):
    return [png_url(seed) for seed in range(first, first + count)]


def put(server, urls):
    """Encodes, and comes back when the cluster has it."""
    before = store_of(server)["put"]["ok"]
    keys = {item["key"] for item in server.encode_ok(urls)["items"]}
    wait_until(lambda: store_of(server)["put"]["ok"] >= before + len(keys), 60, "puts to land")


def test_two_servers_share_embeddings_through_a_flag_and_a_file_alone(start, shared_cluster):
    a, b = (start_on(start, shared_cluster, *PATIENT) for _ in range(2))
    wait_ready(a)
    wait_ready(b)
    urls = pictures(100, 5)
    put(a, urls)
    assert b.sources(urls) == ["store"] * 5
    assert b.encodes() == 0
    assert (a.embeddings(urls).rows() == b.embeddings(urls).rows()).all()
    mixed = [png_url(99), *urls[:2]]
    assert b.sources(mixed) == ["encoded", "local", "local"]
    for server in (a, b):
        assert "mooncake-transfer-engine-non-cuda" in store_of(server)["detail"]
        assert "through the Python package mooncake-transfer-engine-non-cuda" in server.log


def test_a_cold_server_is_served_from_the_cluster_though_its_pool_is_off(start, shared_cluster):
    """B63, and memory that remains at --pool-size 0."""
    a = start_on(start, shared_cluster)
    wait_ready(a)
    urls = pictures(120, 4)
    put(a, urls)
    b = start_on(start, shared_cluster, "--pool-size", "0", *PATIENT)
    wait_ready(b)
    assert b.sources(urls) == ["store"] * 4
    assert b.sources([*urls[:1], png_url(119)]) == ["store", "encoded"]


@pytest.mark.parametrize("modality", SAMPLES)
def test_hit_and_miss_answer_alike(start, shared_cluster, modality):
    """B28: in every field but the source, also from a second server."""
    url = data_url(SAMPLES[modality])
    store = shared_cluster.url(prefix=f"{modality}/")
    first = start(*PATIENT, encoder=CLIPS_BY_SIZE, store=store)
    wait_ready(first)
    replies = [first.embeddings([url], modality=modality) for _ in range(2)]
    wait_until(lambda: store_of(first)["put"]["ok"] > 0, 60, "the put to land")
    wait_for_puts(first)
    second = start(*PATIENT, encoder=CLIPS_BY_SIZE, store=store)
    wait_ready(second)
    replies.append(second.embeddings([url], modality=modality))
    items = [reply.metadata["items"][0] for reply in replies]
    assert [item.pop("source") for item in items] == ["encoded", "local", "store"]
    assert items[0] == items[1] == items[2]
    assert bool(items[0].get("timestamps")) == (modality == "video")
    assert replies[0].raw == replies[1].raw == replies[2].raw


def test_what_is_deleted_is_gone_for_everybody(start, shared_cluster):
    a, b = (start_on(start, shared_cluster) for _ in range(2))
    wait_ready(a)
    wait_ready(b)
    put(a, pictures(130, 1))
    key = a.encode_ok(pictures(130, 1))["items"][0]["key"]
    assert b.get(f"/embeddings/{key}").status == 200
    assert a.request("DELETE", f"/embeddings/{key}").status == 200
    c = start_on(start, shared_cluster)
    wait_ready(c)
    assert c.get(f"/embeddings/{key}").status == 404


def test_doctor_tells_which_provider_is_in_use_and_what_is_wrong(shared_cluster, tmp_path):
    good = run_cli("doctor", shared_cluster.url())
    assert "put, get and remove work" in good.stdout, good.stdout + good.stderr
    assert "mooncake-transfer-engine-non-cuda" in good.stdout
    port = support.free_port()
    bad = run_cli("doctor", f"mooncake://127.0.0.1:{port}?python={shared_cluster.python}")
    assert bad.returncode == 1
    assert f"no master answers at 127.0.0.1:{port}: cannot connect: Connection refused" in bad.stdout
    bad = run_cli("doctor", shared_cluster.url(python="/no/python"))
    assert bad.returncode == 1
    assert "cannot start /no/python" in bad.stdout


@pytest.mark.parametrize("content, says", [
    (None, "cannot be read"), ("{", "not a JSON object"), ("{}", "master_server_address")])
def test_a_bad_file_stops_at_start_with_one_clear_line(tmp_path, content, says):
    path = tmp_path / "mooncake.json"
    if content is not None:
        path.write_text(content)
    result = run_cli("serve", "--port", "0", "--encoder", STUB, GLOBAL_CACHE,
                     env={"MOONCAKE_CONFIG_PATH": str(path)}, timeout=60)
    assert result.returncode == 2
    assert says in result.stderr
    assert len(result.stderr.strip().splitlines()) <= 2


def test_a_master_may_come_late_die_and_come_back(start, cluster):
    """B49: a server starts without it, and all requests are served throughout."""
    a = start_on(start, cluster, *HURRIED)
    urls = pictures(140, 3)
    assert a.sources(urls) == ["encoded"] * 3
    wait_until(lambda: "no master answers" in store_of(a)["detail"], 30, "the reason to be said")
    cluster.start()
    wait_ready(a)
    put_again(a, 150)

    cluster.kill("mooncake_master")
    for seed in range(160, 170):
        assert a.sources([png_url(seed)]) == ["encoded"]
    wait_until(lambda: "master" in store_of(a)["detail"], 30, "the loss to show")
    cluster.start()
    wait_ready(a)
    put_again(a, 170)
    b = start_on(start, cluster, *PATIENT)
    wait_ready(b)
    seed = put_again(a, 190)
    assert b.sources([png_url(seed)]) == ["store"]


def kill_helper(server):
    """If there is one: another may be on its way."""
    pid = helper_pid(server)
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def put_again(server, seed):
    """The seed of a picture that has reached the cluster; breakers may have to close first."""
    before = store_of(server)["put"]["ok"]
    seeds = iter(range(seed, seed + 10_000))

    def one_more():
        number = next(seeds)
        server.encode_ok([png_url(number)])
        wait_for_puts(server)
        return store_of(server)["put"]["ok"] > before and number

    return wait_until(one_more, 60, "puts to land again")


def test_a_holder_that_dies_costs_hits_and_no_request(start, cluster):
    """B60."""
    cluster.start()
    a = start_on(start, cluster)
    wait_ready(a)
    urls = pictures(200, 6)
    put(a, urls)
    cluster.kill("mooncake_client")
    b = start_on(start, cluster, *HURRIED)
    wait_ready(b)
    for url in urls:
        assert b.sources([url]) == ["encoded"]
    cluster.start_holder()
    put_again(b, 210)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_helper_that_dies_or_hangs_costs_no_request_and_another_takes_its_place(
        start, shared_cluster, how):
    """B50, B57."""
    a = start(*HURRIED, store=shared_cluster.url(hang_timeout=f"{HANG_MS}ms",
                                                 prefix=f"helper{int(how)}/"))
    wait_ready(a)
    put(a, pictures(220, 2))
    pid = helper_pid(a)
    os.kill(pid, how)
    for seed in range(230, 240):
        assert a.sources([png_url(seed)]) == ["encoded"]
    wait_until(lambda: not alive(pid), 60, "the helper to be ended")
    wait_until(lambda: helper_pid(a) not in (None, pid), 60, "another helper")
    wait_ready(a)
    put_again(a, 240)


def test_no_helper_outlives_its_server(start, shared_cluster):
    for end in ("stop", "kill"):
        server = start(store=shared_cluster.url())
        wait_ready(server)
        pid = helper_pid(server)
        assert alive(pid)
        getattr(server, end)()
        wait_until(lambda: not alive(pid), 30, "the helper to go")


def test_helpers_of_two_servers_do_not_meet(start, shared_cluster):
    """B62: nothing on the host is named the same."""
    servers = [start(store=shared_cluster.url(prefix=f"own{number}/")) for number in range(2)]
    for server in servers:
        wait_ready(server)
    put(servers[0], pictures(250, 2))
    assert servers[1].sources(pictures(250, 2)) == ["encoded"] * 2
    assert helper_pid(servers[0]) != helper_pid(servers[1])


def test_a_value_with_two_replicas_outlives_one_of_its_holders(start, cluster):
    """B60: with `replicas=2` the death of a holder costs not even the hits."""
    cluster.start()
    cluster.start_holder("second_client")
    a = start(store=cluster.url(replicas=2))
    wait_ready(a)
    urls = pictures(300, 6)
    put(a, urls)
    cluster.kill("mooncake_client")
    b = start(*HURRIED, store=cluster.url(replicas=2))
    wait_ready(b)

    def all_hit():
        b.post("/flush?scope=local")
        return b.sources(urls) == ["store"] * 6

    wait_until(all_hit, 60, "the other replica to be taken")
    assert (a.embeddings(urls).rows() == b.embeddings(urls).rows()).all()


def test_leases_that_run_out_during_a_transfer_cost_hits_at_most(start, tmp_path):
    """B54: with a lease of a millisecond many gets end after it. No request fails, and no row is
    another one."""
    cluster = Cluster(tmp_path / "mooncake", "--default_kv_lease_ttl=1ms")
    try:
        cluster.start()
        golden = start("--pool-size", "0").embeddings(pictures(320, 8)).rows()
        a = start(store=cluster.url())
        wait_ready(a)
        put(a, pictures(320, 8))
        cold = start("--pool-size", "0", store=cluster.url())
        wait_ready(cold)
        rounds = 0

        def some_ran_out():
            nonlocal rounds
            rounds += 1
            assert (cold.embeddings(pictures(320, 8)).rows() == golden).all()
            return rounds >= 20 and cold.lookups("miss") > 0

        wait_until(some_ran_out, 60, "a lease to run out")
        assert cold.lookups("store") + cold.lookups("miss") == 8 * rounds
        assert cold.lookups("store") > 0
    finally:
        cluster.stop()


def test_a_writer_that_dies_during_a_put_blocks_its_keys_for_a_while_only(start, tmp_path):
    """B55: a helper is killed with puts on the way. Nobody's request fails, the puts that fail
    meanwhile are counters, and later the same keys can be stored."""
    cluster = Cluster(tmp_path / "mooncake", "--put_start_discard_timeout_sec=3",
                      "--put_start_release_timeout_sec=5")
    try:
        cluster.start()
        a = start(*HURRIED, store=cluster.url(), encoder=BY_SIZE)
        wait_ready(a)
        seeds = itertools.count(0, 8)
        urls = []

        def killed_with_puts_on_their_way():
            wait_ready(a)
            first, before = next(seeds), store_of(a)["put"]["errors"]
            urls[:] = [small_url(seed) for seed in range(first, first + 8)]
            a.encode_ok(urls)
            kill_helper(a)
            wait_for_puts(a)
            return store_of(a)["put"]["errors"] > before

        wait_until(killed_with_puts_on_their_way, 120, "a helper to die in time")
        b = start(*HURRIED, store=cluster.url(), encoder=BY_SIZE)
        wait_ready(b)
        for _ in range(10):
            assert b.encode(urls).status == 200
            b.post("/flush?scope=local")
        wait_for_puts(b)
        assert store_of(b)["put"]["errors"] <= 10 * 2 * len(urls), "no put is repeated by itself"
        # Which waits for eight megabytes: on a busy machine they are no matter of 0.2 seconds.
        fresh = start("--pool-size", "0", *PATIENT, store=cluster.url(), encoder=BY_SIZE)
        wait_ready(fresh)

        def all_stored():
            fresh.encode_ok(urls)
            wait_for_puts(fresh)
            return fresh.sources(urls) == ["store"] * 8

        wait_until(all_stored, 120, "the keys to be free again")
    finally:
        cluster.stop()
