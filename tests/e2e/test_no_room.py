"""B63: a server that is cold, and in whose pool there is no room, is served from what others have
stored, whatever the store is. (With a pool that pins have filled: tests/unit/cache/stores_test.cpp.)"""

import pytest
from mooncake import Cluster, wait_ready
from redis_server import RedisServer
from support import BY_SIZE, PATIENT, file_store, patches_url, small_url, wait_for_puts

STORED = [patches_url(seed, 32, 32) for seed in range(3)]  # 4 MiB of rows


@pytest.fixture(params=["file", "redis", "mooncake"])
def store(request, tmp_path, store_folder):
    """(its URL, how to wait until a server has it)"""
    if request.param == "file":
        yield file_store(store_folder), lambda server: None
        return
    if request.param == "redis":
        engine = RedisServer(tmp_path / "redis")
        yield engine.url(), lambda server: None
    else:
        engine = Cluster(tmp_path / "mooncake")
        engine.start()
        yield engine.url(), wait_ready
    engine.stop()


def test_stored_values_are_served_though_the_pool_has_no_room(start, store):
    """Again and again: each is read into staging memory. Smaller ones use the pool beside them."""
    url, wait_for_store = store
    first = start(encoder=BY_SIZE, store=url)
    wait_for_store(first)
    golden = [first.embeddings([picture]).raw for picture in STORED]
    small = first.embeddings([small_url(9)]).raw
    wait_for_puts(first)
    server = start("--pool-size", "2MiB", *PATIENT, encoder=BY_SIZE, store=url)
    wait_for_store(server)
    for _ in range(2):
        for picture, raw in zip(STORED, golden):
            reply = server.embeddings([picture])
            assert reply.metadata["items"][0]["source"] == "store"
            assert reply.raw == raw
    assert server.embeddings([small_url(9)]).raw == small
    assert server.sources([small_url(9)]) == ["local"]
    assert server.encodes() == 0
