"""Group C of the field cases over HTTP: what concurrent, failing and leaving clients see."""

import concurrent.futures
import random
import threading
import time

import pytest
from raw_http import RawClient, encode_request, rows_request
from support import (BY_SIZE, STUB, Embeddings, Server, data_url, file_store, large_url, png,
                     png_url, seconds, small_url, stored_values, wait_for_puts, wait_until)

SLOW = "stub:dim=64,tokens=16,seed=1,delay_ms=400"


def in_parallel(count, work):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def test_when_the_leader_fails_a_follower_takes_over(start):
    """B30: one failed encode costs one request, not all that waited for it."""
    server = start(encoder=SLOW + ",fail=first")
    replies = in_parallel(16, lambda _: server.encode([png_url(1)]))
    statuses = sorted(reply.status for reply in replies)
    assert statuses == [200] * 15 + [500]
    assert server.sources([png_url(1)]) == ["local"]


def test_when_the_leader_leaves_its_followers_are_answered(start):
    """B30: the connection of the first request is cut while its encode runs."""
    server = start(encoder=SLOW)
    with RawClient(server.port) as leader:
        leader.send(encode_request([png_url(2)]))
        wait_until(lambda: server.metrics().sum("vitrove_entries", state="filling") > 0, 20)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            followers = [pool.submit(server.encode, [png_url(2)]) for _ in range(8)]
            time.sleep(0.05)
            leader.socket.close()
            assert [follower.result().status for follower in followers] == [200] * 8
    assert server.encodes() <= 2


def test_a_slow_reader_gets_its_own_bytes_while_others_evict(start):
    """B33: a client that reads slowly holds its pages, while others turn over the rest twice."""
    golden = start("--pool-size", "0", encoder=BY_SIZE).embeddings([large_url(0)]).raw["embedding"]
    server = start("--pool-size", "40MiB", encoder=BY_SIZE)
    server.encode_ok([large_url(0)])
    with RawClient(server.port) as slow:
        slow.send(rows_request(large_url(0)))
        first = slow.read(1)
        wait_until(lambda: server.pinned() >= 16 << 20, 20, "the reply to hold its pages")
        for seed in range(1, 51):
            assert server.encode([small_url(seed)]).status == 200
        assert server.metrics().sum("vitrove_evictions_total") >= 50 - 24
        assert server.pinned() >= 16 << 20, "the kernel has not swallowed the reply"
        rest = slow.read(1 << 30, piece=65536)
    body = (first + rest).split(b"\r\n\r\n", 1)[1]
    assert Embeddings(body).raw["embedding"] == golden


def test_a_reader_that_is_slow_but_steady_is_served_to_the_end(start):
    """B33: far slower than a kernel's buffer drains, for longer than a reply may stand still."""
    timeout = seconds(5)
    server = start("--send-stall-timeout", f"{int(timeout * 1000)}ms", encoder=BY_SIZE)
    golden = server.embeddings([large_url(0)]).raw["embedding"]
    with RawClient(server.port) as slow:
        slow.send(rows_request(large_url(0)))
        first, end = b"", time.monotonic() + 2.5 * timeout
        while time.monotonic() < end:
            first += slow.read(1024, pace=0.1, piece=1024)  # 10 KB/s
        assert server.pinned() > 0, "most of it is still to be sent"
        rest = slow.read(1 << 30, piece=65536)
    body = (first + rest).split(b"\r\n\r\n", 1)[1]
    assert Embeddings(body).raw["embedding"] == golden


def test_readers_that_leave_give_their_pins_back(start):
    """B33, B66: connections cut at random points of a reply that is pinned."""
    # The old ones go for the new ones, whatever they are worth.
    server = start("--pool-size", "40MiB", "--eviction-policy", "lru", encoder=BY_SIZE)
    server.encode_ok([large_url(0), large_url(1)])
    choose = random.Random(33)
    for round_number in range(24):
        with RawClient(server.port) as client:
            client.send(rows_request(large_url(round_number % 2)))
            client.read(choose.randrange(1, 4 << 20), piece=65536)
            wait_until(lambda: server.pinned() > 0, 20, "a reply that is pinned")
        wait_until(lambda: server.pinned() == 0, 20, "the pins to come back")
    server.check_at_rest()
    fresh = [small_url(seed) for seed in range(10, 46)]  # 36 of 1 MiB, and their side data
    for url in fresh:
        assert server.sources([url]) == ["encoded"]
    assert server.sources(fresh) == ["local"] * 36, "every page can be had again"


def test_a_failing_item_leaves_no_half_state(start, store_folder):
    """B36: the second item is broken; the first is whole and alone afterwards."""
    server = start(store=file_store(store_folder))
    broken = data_url(png(1)[:-40])
    reply = server.encode([png_url(3), broken])
    assert reply.status == 400
    assert reply.error["item"] == 1
    server.check_at_rest()
    assert server.encode([png_url(3)]).status == 200
    assert server.metrics().sum("vitrove_entries", state="filling") == 0


@pytest.mark.parametrize("failure", ["nan", "short", "error"])
def test_bad_output_is_an_error_and_never_cached(start, store_folder, failure):
    """B37: nothing of it in the pool or in the store."""
    server = start(encoder=f"{STUB},fail={failure}", store=file_store(store_folder))
    for _ in range(2):
        reply = server.encode([png_url(4)])
        assert reply.status == 500
        assert reply.error["code"] == "internal"
    server.check_at_rest()
    assert server.metrics().sum("vitrove_entries", state="ready") == 0
    assert server.stop() == 0
    assert stored_values(store_folder) == []
    healthy = start(encoder=STUB, store=file_store(store_folder))
    assert healthy.sources([png_url(4)]) == ["encoded"]


def test_reload_swaps_the_model_and_its_keys(start, store_folder):
    """B38: new weights never get old rows, and an instance on old weights keeps its own."""
    staying = start(store=file_store(store_folder))
    reloaded = start(store=file_store(store_folder))
    old = staying.embeddings([png_url(5)]).raw["embedding"]
    wait_for_puts(staying)
    assert reloaded.embeddings([png_url(5)]).raw["embedding"] == old

    answer = reloaded.post("/reload", {"encoder": "stub:dim=64,tokens=16,seed=2"})
    assert answer.status == 200, answer.body
    fresh = reloaded.embeddings([png_url(5)])
    assert fresh.metadata["items"][0]["source"] == "encoded"
    assert fresh.raw["embedding"] != old
    wait_for_puts(reloaded)
    assert staying.embeddings([png_url(5)]).raw["embedding"] == old
    assert reloaded.post("/reload", {"encoder": "/no/such/model"}).status == 400
    assert reloaded.embeddings([png_url(5)]).raw["embedding"] == fresh.raw["embedding"]


def test_requests_during_a_reload_are_all_answered(start):
    server = start()
    stop = threading.Event()
    statuses = []

    def client(number):
        while not stop.is_set():
            statuses.append(server.encode([png_url(number)]).status)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for seed in range(2, 8):
        assert server.post("/reload", {"encoder": f"stub:dim=64,tokens=16,seed={seed}"}).status == 200
    stop.set()
    for thread in threads:
        thread.join()
    assert set(statuses) == {200}


def test_encoding_many_then_reading_all_back(start, store_folder, tmp_path):
    """B35: no entry is a view of an encoder's reused buffer."""
    golden_server = Server(tmp_path / "golden", "--pool-size", "0")
    seeds = range(26)
    golden = [golden_server.embeddings([png_url(seed)]).item(0).tobytes() for seed in seeds]
    golden_server.stop()
    server = start(store=file_store(store_folder))
    server.encode_ok([png_url(seed) for seed in seeds])
    assert [server.embeddings([png_url(seed)]).item(0).tobytes() for seed in seeds] == golden
    wait_for_puts(server)
    server.post("/flush?scope=local")
    again = server.embeddings([png_url(seed) for seed in seeds])
    assert {item["source"] for item in again.metadata["items"]} == {"store"}
    assert [again.item(i).tobytes() for i in seeds] == golden


def test_a_storm_of_mixed_requests_ends_with_nothing_pinned(start, store_folder):
    """B66: hits, misses, doubles, broken items, early leavers, eviction, a flush in between."""
    server = start("--pool-size", "2MiB", store=file_store(store_folder),
                   encoder="stub:dim=256,tokens=64,seed=1")
    end = time.monotonic() + 3

    def client(number):
        choose = random.Random(number)
        while time.monotonic() < end:
            items = [png_url(choose.randrange(40)) for _ in range(choose.randint(1, 4))]
            kind = choose.random()
            if kind < 0.1:
                with RawClient(server.port) as leaver:
                    leaver.send(encode_request(items, **{"return": "safetensors"}))
            elif kind < 0.2:
                assert server.encode(items + ["data:;base64,AAAA"]).status in (400, 415)
            elif kind < 0.22:
                assert server.post("/flush?scope=local").status == 200
            else:
                assert server.encode(items).status == 200

    in_parallel(8, client)
    server.check_at_rest()
    assert server.pool_in_use_and_free() == 2 << 20, "no page is lost"
