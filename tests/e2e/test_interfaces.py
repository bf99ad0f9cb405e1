"""Group G of the field cases: metrics, health, flush, errors, the end of a server."""

import concurrent.futures
import json
import shutil
import signal
import subprocess
import threading

import pytest
from raw_http import RawClient, rows_request
from support import (BY_SIZE, STUB, data_url, file_store, free_port, in_time, large_url, png,
                     png_url, seconds, stored_values, wait_for_puts, wait_until)


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared()


def test_counters_tell_exactly_what_happened(start, store_folder):
    """B74: a run whose truth is known: 20 from the store, 37 local, 43 encoded; then five requests
    of a known picture and a broken one, whose lookups count as a hit and a miss."""
    writer = start(store=file_store(store_folder))
    for seed in range(20):
        writer.encode_ok([png_url(seed)])
    wait_for_puts(writer)
    server = start(store=file_store(store_folder))
    for seed in range(63):
        server.encode_ok([png_url(seed)])
    for seed in range(37):
        server.encode_ok([png_url(seed)])
    for _ in range(5):
        assert server.encode([png_url(0), BROKEN]).status == 400
    server.get("/health_generate")
    server.get("/health")
    metrics = server.metrics()
    counted = {result: metrics.sum("vitrove_lookups_total", modality="image", result=result)
               for result in ("local", "joined", "store", "miss")}
    assert counted == {"local": 37 + 5, "joined": 0, "store": 20, "miss": 43 + 5}
    assert metrics.sum("vitrove_encoder_items_total") == 43, "probes are left out"
    assert metrics.sum("vitrove_requests_total", route="/encode", code="200") == 100
    assert metrics.sum("vitrove_requests_total", route="/encode", code="400") == 5
    assert metrics.sum("vitrove_encoder_seconds_total") > 0
    assert metrics.sum("vitrove_encode_seconds_saved_total") > 0
    assert metrics.sum("vitrove_entries", state="ready") == 63
    assert metrics.sum("vitrove_store_ops_total", op="get", result="ok") >= 20
    assert not metrics.samples_of("vitrove_store_errors_total", above=0), server.log[-6000:]
    assert metrics.sum("vitrove_request_seconds_count") >= 100


def test_a_fault_of_the_store_is_no_miss_of_it(start, store_folder):
    """B74: 100 requests, of which 37 are in the pool, 20 in the store, 33 nowhere, of 5 the store's
    value is damaged, and of 5 it cannot be read: those are encoded like the 33, and counted apart."""
    writer = start(store=file_store(store_folder))
    for seed in range(30):
        writer.encode_ok([png_url(seed)])
    wait_for_puts(writer)
    embeddings = [path for path in stored_values(store_folder) if path.stat().st_size > 1000]
    assert len(embeddings) == 30, "the others are aliases"
    for path in embeddings[:5]:
        path.write_bytes(path.read_bytes()[:-1])
    for path in embeddings[5:10]:
        path.unlink()
        path.mkdir()
    server = start(store=file_store(store_folder))
    for seed in range(63):
        server.encode_ok([png_url(seed)])
    for seed in range(37):
        server.encode_ok([png_url(seed)])
    metrics = server.metrics()
    counted = {result: metrics.sum("vitrove_lookups_total", modality="image", result=result)
               for result in ("local", "joined", "store", "miss")}
    assert counted == {"local": 37, "joined": 0, "store": 20, "miss": 43}
    assert metrics.sum("vitrove_rejected_values_total") == 5
    assert metrics.sum("vitrove_rejected_values_total", reason="size") == 5
    errors = metrics.sum("vitrove_store_errors_total", reason="EISDIR")
    assert errors > 0 and errors % 5 == 0, "of the five keys, as often as each was asked for"
    assert metrics.sum("vitrove_store_errors_total") == errors
    assert metrics.sum("vitrove_store_ops_total", result="error") == errors
    assert metrics.sum("vitrove_store_ops_total", op="get", result="absent") == 0


def test_prometheus_own_reader_finds_nothing_wrong(start, store_folder):
    """B74."""
    server = start(store=file_store(store_folder))
    server.encode_ok([png_url(1), png_url(2)])
    assert server.encode([BROKEN]).status == 400
    wait_for_puts(server)
    program = shutil.which("promtool")
    assert program, "scripts/setup.sh tests brings it"
    said = subprocess.run([program, "check", "metrics"], input=server.get("/metrics").body,
                          capture_output=True, timeout=60, check=False)
    assert (said.returncode, said.stdout, said.stderr) == (0, b"", b"")


def test_counters_never_go_down_and_add_up_under_load(start):
    server = start("--pool-size", "1MiB")
    done = threading.Event()
    seen = []

    def scrape():
        while not done.is_set():
            metrics = server.metrics()
            seen.append([metrics.sum("vitrove_lookups_total"),
                         metrics.sum("vitrove_encoder_items_total"),
                         metrics.sum("vitrove_evictions_total")])

    scraper = threading.Thread(target=scrape)
    scraper.start()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: server.encode_ok([png_url(n % 50), png_url(n % 7)]), range(200)))
    done.set()
    scraper.join()
    assert all(a <= b for before, after in zip(seen, seen[1:]) for a, b in zip(before, after))
    assert server.metrics().sum("vitrove_lookups_total") == 400


def test_readiness_follows_a_stuck_encoder_and_liveness_does_not(start):
    """B75."""
    server = start("--stall-timeout", "300ms", encoder=STUB + ",delay_ms=5000")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        stuck = pool.submit(server.encode, [png_url(1)])
        wait_until(lambda: server.get("/ready").status == 503, 20, "readiness to notice")
        assert server.get("/health").status == 200
        assert stuck.result().status == 200
    wait_until(lambda: server.get("/ready").status == 200, 20)


def test_a_probe_really_encodes(start):
    """B75: a cached answer would hide a broken encoder."""
    server = start(encoder=STUB + ",fail=error")
    assert server.get("/health").status == 200
    assert server.get("/health_generate").status == 500
    healthy = start()
    assert healthy.get("/health_generate").status == 200


def test_a_store_that_is_away_is_degraded_not_dead(start, tmp_path):
    """B49, B75: the folder cannot be made, since a file stands in its way; later it can."""
    obstacle = tmp_path / "obstacle"
    obstacle.write_text("in the way")
    server = start(store=file_store(obstacle / "store"))
    assert server.encode([png_url(1)]).status == 200
    wait_for_puts(server)
    health = server.get("/health")
    assert health.status == 200 and health.json["status"] == "degraded"
    assert server.get("/ready").status == 200
    obstacle.unlink()

    def stored():
        server.post("/flush?scope=local")
        server.encode([png_url(1)])
        return obstacle.exists() and stored_values(obstacle / "store")
    wait_until(stored, 60, "puts to begin once the folder can be made")


def test_flush_under_load_fails_nobody_and_empties_what_it_says(start, store_folder):
    """B76."""
    server = start(store=file_store(store_folder))
    foreign = start(encoder="stub:dim=64,tokens=16,seed=9", store=file_store(store_folder))
    foreign.encode_ok([png_url(0)])
    wait_for_puts(foreign)
    theirs = stored_values(store_folder)
    done = threading.Event()
    statuses = set()

    def client(number):
        while not done.is_set():
            statuses.add(server.encode([png_url(number)]).status)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for count in range(30):
        reply = server.post(f"/flush?scope={('local', 'store', 'all')[count % 3]}")
        assert reply.status == 200
    done.set()
    for thread in threads:
        thread.join()
    assert statuses == {200}

    wait_for_puts(server)
    report = server.post("/flush?scope=all").json
    assert {tier["name"].split("#")[0] for tier in report["tiers"]} == {"pool", "file"}
    assert stored_values(store_folder) == theirs, "another model's values are untouched"
    assert server.sources([png_url(0)]) == ["encoded"]
    assert server.post("/flush?scope=store&model=%2A").status == 200
    wait_until(lambda: not [p for p in theirs if p.exists()], 20)
    assert server.post("/flush?scope=everything").status == 400


def test_a_flush_of_one_instance_leaves_the_others_pool_and_never_its_rows_wrong(
        start, store_folder):
    """B76: two of one model over one store. What the other has in its pool stays right to serve, and
    its own flush takes that away, too."""
    one, other = (start(store=file_store(store_folder)) for _ in range(2))
    golden = one.embeddings([png_url(1)]).raw["embedding"]
    wait_for_puts(one)
    assert other.sources([png_url(1)]) == ["store"]
    assert one.post("/flush?scope=all").status == 200
    assert stored_values(store_folder) == []
    assert other.sources([png_url(1)]) == ["local"]
    assert other.embeddings([png_url(1)]).raw["embedding"] == golden
    assert one.sources([png_url(1)]) == ["encoded"], "nothing comes back by way of the other"
    wait_for_puts(one)
    assert other.post("/flush?scope=local").status == 200
    assert other.sources([png_url(1)]) == ["store"]
    assert other.embeddings([png_url(1)]).raw["embedding"] == golden


BROKEN = data_url(png(0)[:-30])


@pytest.mark.parametrize("items, index, status", [
    ([BROKEN], 0, 400),
    ([png_url(1), png_url(2), BROKEN, png_url(3), png_url(4)], 2, 400),
    (["http://127.0.0.1:1/x.png"], 0, 403),
    ([png_url(1), "ftp://example.com/x"], 1, 400),
    ([data_url(b"8BPS" + bytes(64))], 0, 415),
    ([{"digest": "00" * 32}], 0, 403),
])
def test_an_error_names_its_request_and_item(server, items, index, status):
    """B77: never a 200 with partial data, and never long after."""
    reply = in_time(2, lambda: server.encode(items, req_id="who-asks", num_parts=3, part_idx=1))
    assert reply.status == status, reply.body
    assert set(reply.error) == {"code", "message", "req_id", "item"}
    assert reply.error["req_id"] == "who-asks"
    assert reply.error["item"] == index


def test_an_encoder_error_reaches_every_kind_of_request(start):
    """B77."""
    server = start(encoder=STUB + ",fail=error")
    for fields in ({}, {"num_parts": 3, "part_idx": 1}, {"return": "safetensors"}):
        reply = in_time(2, lambda: server.encode([png_url(1), png_url(2)], **fields))
        assert reply.status == 500
        assert reply.error["item"] in (0, 1)


def test_a_client_that_leaves_while_its_reply_is_sent_leaves_nothing_behind(start):
    """B77: 16 MiB of rows, of a request in parts."""
    server = start("--pool-size", "64MiB", encoder=BY_SIZE)
    server.encode_ok([large_url(1)])

    def leave_early():
        with RawClient(server.port) as leaver:
            leaver.send(rows_request(large_url(1), num_parts=3, part_idx=1))
            assert leaver.read(1) == b"H"
            assert server.pinned() >= 16 << 20, "the rest waits for the client"
        wait_until(lambda: server.pinned() == 0, 30, "the pins to come back")

    before = server.requests_counted("/encode")
    in_time(2, leave_early)
    assert server.requests_counted("/encode") > before
    assert server.sources([large_url(1)]) == ["local"]


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b'{"mm_items": []}', b'{"mm_items": "x"}', b'{"mm_items": [1]}',
    b'{"mm_items": [{}]}', b'{"mm_items": ["data:,"]}', b"\xff\xfe",
    json.dumps({"mm_items": [png_url(1)], "modality": "smell"}).encode(),
    json.dumps({"mm_items": [png_url(1)], "num_parts": 1, "part_idx": 1}).encode(),
    json.dumps({"mm_items": [png_url(1)], "num_parts": 0}).encode(),
    json.dumps({"mm_items": [png_url(1)], "hashes": ["12"]}).encode(),
    json.dumps({"mm_items": [png_url(1)], "hashes": ["00" * 32]}).encode(),
    json.dumps({"mm_items": [png_url(1)], "return": "tensor"}).encode(),
    json.dumps({"mm_items": [png_url(1)], "mm_processor_kwargs": {"wings": 2}}).encode(),
    json.dumps({"mm_items": [png_url(1)], "req_id": "x" * 5_000_000}).encode(),
    json.dumps({"mm_items": [png_url(1)], "req_id": "a\r\nb"}).encode(),
    b'{"mm_items":' + b"[" * 100_000,
])
def test_a_bad_body_is_a_clear_400(server, body):
    reply = server.post("/encode", body)
    assert reply.status == 400, reply.body[:500]
    assert set(reply.error) == {"code", "message", "req_id", "item"}
    assert len(reply.body) < 2000
    assert server.encode([png_url(1)]).status == 200


def test_unknown_routes_and_methods_are_json_errors(server):
    assert server.get("/nowhere").status == 404
    assert server.get("/nowhere").error["code"] == "not_found"
    assert server.request("PUT", "/encode", b"{}").status == 405
    assert server.get("/embeddings/vt1-short").status in (400, 404)
    assert server.get("/embeddings/vt1-" + "0" * 64).status == 404


def test_the_status_page_is_a_page(server):
    page = server.get("/")
    assert page.status == 200 and page.headers["content-type"].startswith("text/html")
    assert b"Vitrove" in page.body


def test_sigterm_answers_what_was_accepted_and_flushes_puts(start, store_folder):
    """B78: load, SIGTERM, no accepted request lost, puts readable by another server."""
    server = start(encoder=STUB + ",delay_ms=20", store=file_store(store_folder))
    answered, refused = [], []

    def client(number):
        for seed in range(number * 100, number * 100 + 100):
            try:
                reply = server.encode([png_url(seed)])
            except OSError:  # the listener has closed: the balancer's turn
                refused.append(seed)
                return
            (answered if reply.status == 200 else refused).append(seed)
            if reply.status != 200:
                assert reply.status == 503 and "retry-after" in reply.headers
                return

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        clients = [pool.submit(client, number) for number in range(8)]
        wait_until(lambda: len(answered) > 20, 20)
        server.signal(signal.SIGTERM)
        for future in clients:
            future.result()
    assert server.process.wait(seconds(60)) == 0
    other = start(store=file_store(store_folder))
    for seed in answered:
        assert other.sources([png_url(seed)]) == ["store"], f"picture {seed}"
    assert not [p for p in store_folder.rglob("*") if "tmp" in p.name]


def test_a_second_signal_ends_at_once(start):
    server = start(encoder=f"{STUB},delay_ms={int(seconds(200) * 1000)}")
    server.expect_unclean = True
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: pytest.raises(Exception, server.encode, [png_url(1)]))
        wait_until(lambda: server.metrics().sum("vitrove_entries", state="filling") > 0, 20)
        server.signal(signal.SIGTERM)
        wait_until(lambda: "draining" in server.log, 60, "the first to be seen")
        server.signal(signal.SIGTERM)
        server.process.wait(seconds(60))
    assert server.process.returncode != 0


def test_sglang_spellings_are_understood(tmp_path):
    from support import run_cli
    result = run_cli("serve", "--port", free_port(), "--encoder", STUB, "--enable-mm-global-cache",
                     env={"MOONCAKE_CONFIG_PATH": ""}, timeout=60)
    assert result.returncode == 2
    assert "mooncake" in result.stderr
