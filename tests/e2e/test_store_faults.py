"""What clients of the encode server see while a file store fails: nothing but time.

Groups C, D and E of the field cases, with real processes over real directories.
"""

import concurrent.futures
import contextlib
import os
import random
import shutil
import subprocess
import threading
import time

import pytest
from support import (STUB, TIME_FACTOR, Servers, SwitchedStore, file_store, png_url,
                     stored_values, wait_for_puts, wait_until, without_licence)


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    """Rows of the first 24 pictures as an encoder without any cache makes them."""
    from support import Server
    server = Server(tmp_path_factory.mktemp("golden"), "--pool-size", "0")
    rows = [server.embeddings([png_url(seed)]).item(0).tobytes() for seed in range(24)]
    assert server.stop() == 0
    return rows


def rows_of(server, seed):
    return server.embeddings([png_url(seed)]).item(0).tobytes()


def warm(start, folder, seeds, **options):
    """Fills a store through a server of its own; returns seed -> key."""
    server = start(store=file_store(folder), **options)
    keys = {}
    for seed in seeds:
        keys[seed] = server.encode_ok([png_url(seed)])["items"][0]["key"]
    wait_for_puts(server)
    assert server.stop() == 0
    return keys


def value_path(folder, key):
    return next(path for path in stored_values(folder) if path.name == key)


def test_damage_anywhere_in_a_value_is_a_miss_and_is_mended(start, store_folder, golden):
    """B45: bit flips in header and payload, one at a time."""
    keys = warm(start, store_folder, [0])
    good = value_path(store_folder, keys[0]).read_bytes()
    choose = random.Random(45)
    offsets = [choose.randrange(256) for _ in range(10)]
    offsets += [choose.randrange(256, len(good)) for _ in range(10)]
    server = start("--pool-size", "0", store=file_store(store_folder))
    for count, offset in enumerate(offsets, 1):
        damaged = bytearray(good)
        damaged[offset] ^= 1 << choose.randrange(8)
        value_path(store_folder, keys[0]).write_bytes(damaged)
        assert rows_of(server, 0) == golden[0], f"offset {offset}"
        assert server.metrics().sum("vitrove_rejected_values_total") == count
        wait_for_puts(server)
        assert server.sources([png_url(0)]) == ["store"], "the second read is a clean hit"


def test_a_value_under_another_key_is_not_believed(start, store_folder, golden):
    """B45: two values swapped, one copied to the other's name."""
    keys = warm(start, store_folder, [1, 2, 3])
    first, second, third = (value_path(store_folder, keys[seed]) for seed in (1, 2, 3))
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    third.write_bytes(one)
    server = start(store=file_store(store_folder))
    for seed in (1, 2, 3):
        assert rows_of(server, seed) == golden[seed]
    assert server.metrics().sum("vitrove_rejected_values_total", reason="key") == 3
    assert server.encodes() == 3


@pytest.mark.parametrize("change", ["shorter", "empty", "longer"])
def test_a_torn_value_is_a_miss(start, store_folder, golden, change):
    """B44: truncated by one byte, to nothing, and extended."""
    keys = warm(start, store_folder, [4])
    path = value_path(store_folder, keys[4])
    content = path.read_bytes()
    path.write_bytes({"shorter": content[:-1], "empty": b"", "longer": content + b"x"}[change])
    server = start(store=file_store(store_folder))
    assert rows_of(server, 4) == golden[4]
    assert server.encodes() == 1
    wait_for_puts(server)
    other = start(store=file_store(store_folder))
    assert rows_of(other, 4) == golden[4]
    assert other.encodes() == 0


def test_a_value_that_vanished_is_encoded_once_and_kept(start, store_folder, golden):
    """B40, B43: the object goes after it was seen; no loop, no verdict that sticks."""
    keys = warm(start, store_folder, [5])
    server = start(store=file_store(store_folder))
    assert server.sources([png_url(5)]) == ["store"]
    server.post("/flush?scope=local")
    value_path(store_folder, keys[5]).unlink()
    sources = [server.sources([png_url(5)])[0] for _ in range(100)]
    assert sources == ["encoded"] + ["local"] * 99
    wait_for_puts(server)
    assert value_path(store_folder, keys[5]).stat().st_size > 256
    assert rows_of(server, 5) == golden[5]


def test_values_that_go_between_the_look_and_the_get_are_misses(start, tmp_path, golden):
    """B43: the store says that they are there, and takes them away before they are read."""
    store = SwitchedStore("vanishing", tmp_path)
    server = start(**store.options)
    urls = [png_url(seed) for seed in range(6)]
    server.encode_ok(urls)
    wait_for_puts(server)
    server.post("/flush?scope=local")
    assert server.sources(urls) == ["store"] * 6
    server.post("/flush?scope=local")
    store.misbehave()
    for seed in range(6):
        assert rows_of(server, seed) == golden[seed]
    assert server.encodes() == 12
    store.behave()
    wait_for_puts(server)
    server.post("/flush?scope=local")
    assert server.sources(urls) == ["store"] * 6, "they were put again"
    assert server.get("/health").json["status"] == "ok", "an answer about a key is no fault"


FAULTS_OF_A_VALUE = {
    "missing": lambda path: path.unlink(),
    "short": lambda path: os.truncate(path, path.stat().st_size - 1),
    "damaged": lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\xee"),
}


@pytest.fixture(scope="module")
def eight_stored(tmp_path_factory):
    """(folder of a store, keys) of the first eight pictures."""
    folder = tmp_path_factory.mktemp("eight")
    return folder, warm(Servers(folder / "servers"), folder / "store", range(8))


@pytest.mark.parametrize("fault, bad", [
    ("missing", {4}), ("missing", {0}), ("missing", {7}), ("missing", {1, 2, 5}),
    ("missing", set(range(8))), ("short", {4}), ("damaged", {4}), ("damaged", set(range(8)))])
def test_only_what_cannot_be_loaded_is_encoded_anew(start, store_folder, eight_stored, golden,
                                                    fault, bad):
    """B39: of eight stored pictures in one request some are bad; the others come from the store."""
    folder, keys = eight_stored
    shutil.copytree(folder / "store", store_folder, dirs_exist_ok=True)
    for seed in bad:
        FAULTS_OF_A_VALUE[fault](value_path(store_folder, keys[seed]))
    server = start(store=file_store(store_folder))
    reply = server.embeddings([png_url(seed) for seed in range(8)])
    assert [reply.item(seed).tobytes() for seed in range(8)] == golden[:8]
    assert [item["source"] for item in reply.metadata["items"]] == [
        "encoded" if seed in bad else "store" for seed in range(8)]
    assert server.encodes() == len(bad)
    rejected = server.metrics().sum("vitrove_rejected_values_total")
    assert rejected == (0 if fault == "missing" else len(bad))


def test_a_killed_server_leaves_nothing_wrong_behind(start, store_folder, golden):
    """B44: SIGKILL at random moments while puts are running."""
    choose = random.Random(44)
    for _ in range(12 if TIME_FACTOR == 1 else 4):
        server = start("--pool-size", "16MiB", store=file_store(store_folder))
        order = choose.sample(range(24), 24)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            pending = [pool.submit(server.encode, [png_url(seed)]) for seed in order]
            time.sleep(choose.random() * 0.1)
            server.kill()
            for future in pending:
                future.exception()  # connections of a killed server may break in any way
    server = start("--pool-size", "0", store=file_store(store_folder))
    for seed in range(24):
        assert rows_of(server, seed) == golden[seed]
    assert server.metrics().sum("vitrove_rejected_values_total") == 0


def test_two_servers_write_the_same_keys_at_once(start, store_folder, golden):
    """B41: concurrent puts of one key are harmless."""
    servers = [start("--pool-size", "0", store=file_store(store_folder)) for _ in range(2)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        jobs = [(servers[i % 2], i % 6) for i in range(96)]
        replies = list(pool.map(lambda job: rows_of(*job), jobs))
    assert replies == [golden[seed] for _, seed in jobs]
    for server in servers:
        wait_for_puts(server)
        assert server.metrics().sum("vitrove_rejected_values_total") == 0


@pytest.mark.parametrize("limit", ["size=1m", "nr_inodes=60"])
def test_a_full_disk_fails_no_request_and_heals(start, tmp_path, golden, namespaces, limit):
    """B46: a file system of 1 MiB, or of 60 files, then space again."""
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"{limit},mode=755", "tmpfs", str(mount)],
                   check=True)
    server = None
    try:
        encoder = "stub:dim=512,tokens=32,seed=1"
        server = start("--pool-size", "0", encoder=encoder, store=file_store(mount))
        for seed in range(60):
            assert server.encode([png_url(seed)]).status == 200
            if seed % 10 == 0:
                wait_for_puts(server)
        wait_for_puts(server)
        errors = server.metrics().sum("vitrove_store_errors_total", op="put")
        assert errors > 0
        left = [p.read_bytes() for p in mount.rglob("*") if "tmp" in p.name]
        assert all(text.startswith(b"vitrove-claim") for text in left), "no partial files"
        assert len(left) <= 32, "files that claims use again"
        said = [line for line in server.log.splitlines() if "No space left" in line]
        assert 1 <= len(said) < errors, "it is said, and not for each"
        for path in stored_values(mount):
            path.unlink()
        def stored_again():
            server.encode([png_url(100)])
            return stored_values(mount)
        wait_until(stored_again, 30, "puts to resume")
        assert server.stop() == 0
    finally:
        if server is not None and server.process.poll() is None:
            server.kill()
        subprocess.run(["umount", str(mount)], check=False)


def bytes_below(folder):
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # the evictor is at work
                total += os.stat(os.path.join(place, name)).st_size
    return total


@contextlib.contextmanager
def watching(folder):
    """Bytes below a folder, over and over while the body runs; what is written stays in `seen`."""
    seen, done = [], threading.Event()

    def watch():
        while not done.is_set():
            seen.append(bytes_below(folder))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


def test_capacity_holds_over_writers_and_restarts(start, store_folder):
    """B46, B62: two servers, one directory of 8 MiB, 40 MiB of traffic."""
    encoder = "stub:dim=1024,tokens=64,seed=1"  # 256 KiB a value
    url = file_store(store_folder, capacity="8MiB")
    # A writer may be ahead by a value or two; and while a folder is counted it changes.
    bound = (8 << 20) + 8 * (257 << 10)
    with watching(store_folder) as seen:
        servers = [start("--pool-size", "4MiB", encoder=encoder, store=url) for _ in range(2)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda n: [servers[n].encode_ok([png_url(seed)])
                                     for seed in range(n, 160, 2)], range(2)))
        for server in servers:
            wait_for_puts(server)
        for server in servers:
            assert server.stop() == 0
        again = start(encoder=encoder, store=url)
        for seed in range(200, 220):
            again.encode_ok([png_url(seed)])
        wait_for_puts(again)
    assert 6 << 20 < max(seen) <= bound
    wait_until(lambda: bytes_below(store_folder) <= 8 << 20, 60, "the evictor to trim the directory")


def test_foreign_files_in_the_directory_are_left_alone(start, store_folder):
    mine = store_folder / "notes.txt"
    mine.write_text("not an embedding")
    deep = store_folder / "v1" / "ab"
    deep.mkdir(parents=True)
    (deep / "readme").write_text("nor this")
    server = start(store=file_store(store_folder, capacity="1MiB"),
                   encoder="stub:dim=1024,tokens=64,seed=1")
    for seed in range(12):
        server.encode_ok([png_url(seed)])
    wait_for_puts(server)
    server.post("/flush?scope=all&model=%2A")
    assert mine.read_text() == "not an embedding"
    assert (deep / "readme").read_text() == "nor this"


def test_unreadable_values_are_misses(start, store_folder, golden):
    """B57: no permission, a directory in a file's place, a symlink loop, the whole folder gone."""
    keys = warm(start, store_folder, range(12))
    paths = {seed: value_path(store_folder, keys[seed]) for seed in keys}
    for seed in range(5):
        paths[seed].chmod(0)
    paths[5].unlink()
    paths[5].mkdir()
    paths[6].unlink()
    paths[6].symlink_to(paths[6])

    server = start("--pool-size", "4MiB", store=file_store(store_folder),
                   launcher=without_licence())
    for seed in range(12):
        assert rows_of(server, seed) == golden[seed]
    assert server.encodes() == 7
    assert server.metrics().sum("vitrove_store_errors_total", reason="EACCES") >= 5

    shutil.rmtree(store_folder, ignore_errors=True)
    server.post("/flush?scope=local")
    for seed in range(12):
        assert rows_of(server, seed) == golden[seed]
    assert server.get("/health").status == 200


def test_directories_in_the_place_of_values_cost_their_own_keys_alone(start, store_folder, golden):
    """B57: and not the store, whose other values go on being read and written."""
    keys = warm(start, store_folder, range(12))
    for seed in range(10):
        path = value_path(store_folder, keys[seed])
        path.unlink()
        path.mkdir()
        (path / "foreign").touch()
    server = start(store=file_store(store_folder))
    for seed in range(10):
        assert rows_of(server, seed) == golden[seed]
        wait_for_puts(server)
    assert server.sources([png_url(10), png_url(11)]) == ["store", "store"]
    key = server.encode_ok([png_url(12)])["items"][0]["key"]
    wait_for_puts(server)
    assert value_path(store_folder, key).is_file()
    assert server.metrics().sum("vitrove_store_errors_total", op="put", reason="ENOTEMPTY") == 10


def test_a_read_only_store_serves_hits_and_refuses_puts_quietly(start, store_folder, golden,
                                                               namespaces):
    """B57: puts fail with EROFS; hits and requests do not."""
    warm(start, store_folder, [0, 1])
    subprocess.run(["mount", "--bind", str(store_folder), str(store_folder)], check=True)
    server = None
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(store_folder)], check=True)
        server = start(store=file_store(store_folder))
        assert server.sources([png_url(0), png_url(1)]) == ["store", "store"]
        assert rows_of(server, 2) == golden[2]
        wait_for_puts(server)
        assert server.metrics().sum("vitrove_store_errors_total", op="put") > 0
        assert server.stop() == 0
    finally:
        if server is not None and server.process.poll() is None:
            server.kill()
        subprocess.run(["umount", str(store_folder)], check=False)


def test_a_model_name_of_any_length_and_spelling_makes_short_file_names(start, store_folder,
                                                                        tmp_path):
    """B48: the name of a model is no part of any file name."""
    from support import TINY_VIT
    odd = tmp_path / ("ü ..\n" + "x" * 200)
    shutil.copytree(TINY_VIT, odd)
    server = start(encoder=odd, store=file_store(store_folder))
    server.encode_ok([png_url(1)])
    assert server.stop() == 0
    again = start(encoder=odd, store=file_store(store_folder))
    assert again.sources([png_url(1)]) == ["store"]
    assert all(len(path.name) <= 100 for path in store_folder.rglob("*"))


@pytest.mark.parametrize("arguments, says", [
    (("--store", "nosuch://x"), "memory"),
    (("--store", "file:///tmp/x?capcity=1GiB"), "capcity"),
    (("--store", "file:relative"), "absolute"),
    (("--store", "memory:?capacity=lots"), "lots"),
    (("--store", "/no/such/plugin.so"), "plugin"),
    (("--enable-mm-global-cache", "--store", "memory:"), "--store"),
    (("--store", "none", "--store", "memory:"), "none"),
    (("--mm-global-cache-backend", "nosuch", "--enable-mm-global-cache"), "nosuch"),
])
def test_a_wrong_choice_of_store_stops_at_start_with_one_clear_line(tmp_path, arguments, says):
    """B79."""
    from support import run_cli
    result = run_cli("serve", "--port", "0", "--encoder", STUB, *arguments, timeout=60)
    assert result.returncode == 2, result.stderr
    assert says in result.stderr
    assert len(result.stderr.strip().splitlines()) <= 2


@pytest.mark.parametrize("stores, second", [
    (("none",), "local"), (("memory:?capacity=64MiB",), "local"),
    (("memory:?capacity=64MiB", "FILE"), "local")])
def test_every_combination_of_tiers_works(start, store_folder, stores, second):
    urls = [file_store(store_folder) if url == "FILE" else url for url in stores]
    server = start(store=urls)
    assert server.sources([png_url(1)]) == ["encoded"]
    assert server.sources([png_url(1)]) == [second]
    if urls != ["none"]:
        wait_for_puts(server)
        server.post("/flush?scope=local")
        assert server.sources([png_url(1)]) == ["store"]


def test_a_far_hit_is_copied_to_the_nearer_tier(start, store_folder, tmp_path):
    far = file_store(store_folder)
    near_folder = tmp_path / "near"
    warm(start, store_folder, [1])
    server = start(store=[file_store(near_folder), far])
    assert server.sources([png_url(1)]) == ["store"]
    wait_for_puts(server)
    assert len(stored_values(near_folder)) >= 1


def test_a_port_in_use_is_a_clear_error(start):
    """B62."""
    from support import run_cli
    server = start()
    result = run_cli("serve", "--port", server.port, "--encoder", STUB, "--store", "none",
                     timeout=30)
    assert result.returncode == 4
    assert "in use" in result.stderr
    assert server.get("/health").status == 200
